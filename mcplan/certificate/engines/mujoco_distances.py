"""EngineDistances between the collision shapes of a run by MuJoCo (``mj_geomDistance``)."""

from collections.abc import Iterable, Mapping
from typing import Any

import mujoco
import numpy as np

from mcplan.certificate.engines.collision_shapes import CollisionShape, link_shapes, object_shapes, scene_shapes
from mcplan.certificate.engines.contract import Unsupported
from mcplan.certificate.engines.mujoco_model import add_links, places, quat_wxyz
from mcplan.errors import RunError
from mcplan.record.records import RunRecord

THINNEST = 1e-7
"""m: MuJoCo has no solids without volume; a slab of no thickness has this much."""

KINDS = {
    "box": mujoco.mjtGeom.mjGEOM_BOX, "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER, "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "hull": mujoco.mjtGeom.mjGEOM_MESH,
}  # fmt: skip


class MujocoDistances:
    """Signed distances between links, and between links and things around them.

    Parameters
    ----------
    record : of the run; everything comes from its texts and numbers.

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
            things = list(object_shapes(record))
        except (KeyError, IndexError, TypeError, ValueError, StopIteration) as error:
            if isinstance(error, RunError):
                raise
            raise RunError(f"the shapes in this run cannot be read: {error!r}") from error
        for shape in things:
            shapes.append((spec.worldbody.add_body(name=f"object:{shape.owner}", mocap=True), shape))
        for number, (body, shape) in enumerate(shapes):
            _add(spec, body, shape, f"shape:{number}")
        try:
            self._model = spec.compile()
        except ValueError as error:
            raise Unsupported(f"MuJoCo refuses the shapes of this run: {error}") from error
        self._model.opt.ccd_tolerance, self._model.opt.ccd_iterations = 1e-12, 500
        self._data = mujoco.MjData(self._model)
        self._known: tuple[tuple[tuple[str, str], ...], np.ndarray] | None = None
        self._geoms: dict[str, list[int]] = {}
        for number, (_, shape) in enumerate(shapes):
            self._geoms.setdefault(shape.owner, []).append(self._model.geom(f"shape:{number}").id)
        self._place, _ = places(self._model, record.robot)
        self._mocap = {shape.owner: int(self._model.body(f"object:{shape.owner}").mocapid[0]) for shape in things}

    def distances(
        self, x: np.ndarray, objects: Mapping[str, np.ndarray], pairs: Iterable[tuple[str, str]], most: float
    ) -> np.ndarray:
        """Return the signed distance of every pair of names, ``most`` (m) where it is more.

        Parameters
        ----------
        x : (7+m,) state as in ``Engine``.
        objects : pose (7,) of every object.
        """
        model, data = self._model, self._data
        data.qpos[self._place] = x
        for name, pose in objects.items():
            data.mocap_pos[self._mocap[name]], data.mocap_quat[self._mocap[name]] = pose[:3], pose[3:]
        mujoco.mj_kinematics(model, data)
        pairs = tuple(pairs)
        i, j, number = self._candidates(pairs)
        apart = np.linalg.norm(data.geom_xpos[i] - data.geom_xpos[j], axis=1)
        found = np.full(len(pairs), most)
        for k in np.flatnonzero(apart - model.geom_rbound[i] - model.geom_rbound[j] < most):
            distance = mujoco.mj_geomDistance(model, data, i[k], j[k], most, None)
            found[number[k]] = min(found[number[k]], distance)
        return found

    def _candidates(self, pairs: tuple[tuple[str, str], ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the geoms of all pairs of names, and which pair each two of them belong to; the last is remembered."""
        if self._known is None or self._known[0] != pairs:
            rows = [(i, j, k) for k, (a, b) in enumerate(pairs) for i in self._geoms[a] for j in self._geoms[b]]
            self._known = pairs, np.array(rows, int).reshape(-1, 3).T
        i, j, number = self._known[1]
        return i, j, number


def _add(spec: Any, body: Any, shape: CollisionShape, name: str) -> None:
    options: dict[str, Any] = {"name": name, "type": KINDS[shape.kind], "pos": shape.p, "quat": quat_wxyz(shape.R)}
    if shape.kind == "hull":
        mesh = spec.add_mesh(name=name, uservert=np.asarray(shape.vertices, float).ravel())
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
        options["meshname"] = name
    else:
        size = np.zeros(3)
        size[: len(shape.size)] = shape.size
        options["size"] = np.maximum(size, THINNEST) if shape.kind == "box" else size
    body.add_geom(**options)
