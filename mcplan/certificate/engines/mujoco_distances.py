"""Signed distances between the collision shapes of a run by MuJoCo (``mj_geomDistance``)."""

from collections.abc import Iterable, Mapping
from typing import Any

import mujoco
import numpy as np

from mcplan.certificate.engines.collision_shapes import CollisionShape, link_shapes, object_shapes, scene_shapes
from mcplan.certificate.engines.contract import Unsupported
from mcplan.certificate.engines.mujoco_model import add_links, quat_wxyz, state_indices
from mcplan.errors import RunError
from mcplan.record.records import RunRecord

MIN_HALF_SIZE = 1e-7
"""m: smallest half side of a box; MuJoCo refuses boxes without volume, such as slabs of zero thickness."""

KINDS = {
    "box": mujoco.mjtGeom.mjGEOM_BOX, "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER, "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "hull": mujoco.mjtGeom.mjGEOM_MESH,
}  # fmt: skip


class MujocoDistances:
    """Signed distances between links, and between links and the environment.

    Parameters
    ----------
    record : record of the run; nothing else is used.

    Raises
    ------
    RunError
        The shapes in the run cannot be read.
    Unsupported
        MuJoCo refuses one of them.
    """

    def __init__(self, record: RunRecord):
        spec = mujoco.MjSpec()
        spec.compiler.degree = False
        bodies = dict(zip((link.name for link in record.robot.links), add_links(spec, record.robot), strict=True))
        try:
            shapes = [(bodies[shape.owner], shape) for shape in link_shapes(record)]
            shapes += [(spec.worldbody, shape) for shape in scene_shapes(record)]
            free_objects = list(object_shapes(record))
        except (KeyError, IndexError, TypeError, ValueError, StopIteration) as error:
            if isinstance(error, RunError):
                raise
            raise RunError(f"the shapes in this run cannot be read: {error!r}") from error
        for shape in free_objects:
            shapes.append((spec.worldbody.add_body(name=f"object:{shape.owner}", mocap=True), shape))
        for number, (body, shape) in enumerate(shapes):
            _add_geom(spec, body, shape, f"shape:{number}")
        try:
            self._model = spec.compile()
        except ValueError as error:
            raise Unsupported(f"MuJoCo refuses the shapes of this run: {error}") from error
        self._model.opt.ccd_tolerance, self._model.opt.ccd_iterations = 1e-12, 500
        self._data = mujoco.MjData(self._model)
        self._cached_pairs: tuple[tuple[tuple[str, str], ...], np.ndarray] | None = None
        self._geoms: dict[str, list[int]] = {}
        for number, (_, shape) in enumerate(shapes):
            self._geoms.setdefault(shape.owner, []).append(self._model.geom(f"shape:{number}").id)
        self._qpos_index, _ = state_indices(self._model, record.robot)
        self._mocap = {shape.owner: int(self._model.body(f"object:{shape.owner}").mocapid[0]) for shape in free_objects}

    def distances(
        self, x: np.ndarray, objects: Mapping[str, np.ndarray], pairs: Iterable[tuple[str, str]], max_distance: float
    ) -> np.ndarray:
        """Return the signed distance (m) of every pair of names, at most ``max_distance``.

        Parameters
        ----------
        x : (7+m,) state as in ``Engine``.
        objects : pose (7,) of every object.
        """
        model, data = self._model, self._data
        data.qpos[self._qpos_index] = x
        for name, pose in objects.items():
            data.mocap_pos[self._mocap[name]], data.mocap_quat[self._mocap[name]] = pose[:3], pose[3:]
        mujoco.mj_kinematics(model, data)
        pairs = tuple(pairs)
        i, j, number = self._geom_pairs(pairs)
        centre_distance = np.linalg.norm(data.geom_xpos[i] - data.geom_xpos[j], axis=1)
        found = np.full(len(pairs), max_distance)
        for k in np.flatnonzero(centre_distance - model.geom_rbound[i] - model.geom_rbound[j] < max_distance):
            distance = mujoco.mj_geomDistance(model, data, i[k], j[k], max_distance, None)
            found[number[k]] = min(found[number[k]], distance)
        return found

    def _geom_pairs(self, pairs: tuple[tuple[str, str], ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the indices of both geoms and of the pair of names, for each pair of geoms; the result is cached."""
        if self._cached_pairs is None or self._cached_pairs[0] != pairs:
            rows = [(i, j, k) for k, (a, b) in enumerate(pairs) for i in self._geoms[a] for j in self._geoms[b]]
            self._cached_pairs = pairs, np.array(rows, int).reshape(-1, 3).T
        i, j, number = self._cached_pairs[1]
        return i, j, number


def _add_geom(spec: Any, body: Any, shape: CollisionShape, name: str) -> None:
    options: dict[str, Any] = {"name": name, "type": KINDS[shape.kind], "pos": shape.p, "quat": quat_wxyz(shape.R)}
    if shape.kind == "hull":
        mesh = spec.add_mesh(name=name, uservert=np.asarray(shape.vertices, float).ravel())
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
        options["meshname"] = name
    else:
        size = np.zeros(3)
        size[: len(shape.size)] = shape.size
        options["size"] = np.maximum(size, MIN_HALF_SIZE) if shape.kind == "box" else size
    body.add_geom(**options)
