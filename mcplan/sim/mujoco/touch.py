"""What touches what: MuJoCo's contacts as points of patches, wrenches, and generalised forces."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mcplan.model.robot import Robot
from mcplan.sim.mujoco.build import Built
from mcplan.sim.mujoco.coordinates import Coordinates
from mcplan.sim.recorder import PointForces
from mcplan.sim.touching_patch import touching_patch


class ContactForces(NamedTuple):
    """Contacts of one step.

    points : contact points that carry something.
    wrenches : by patch, (6,) at the patch origin in world axes.
    other : (6+n,) generalised force of the contacts that are no patch's, world axes.
    """

    points: PointForces
    wrenches: dict[str, np.ndarray]
    other: np.ndarray


class Touch:
    """Reads contacts.

    Parameters
    ----------
    robot, built : the robot and its model.
    coordinates : where the robot's are in MuJoCo's, of a fixed base those of the joints alone.
    patches : names, in the order in which contact points count them.
    """

    def __init__(self, robot: Robot, built: Built, coordinates: Coordinates, patches: Sequence[str]):
        self.robot, self.patches = robot, tuple(patches)
        self._built, self._coordinates, self._base = built, coordinates, built.model.body("body:0").id
        self._index = {name: i for i, name in enumerate(self.patches)}
        self._links = len(robot.link_names)
        self._link_of = np.array([robot.link_names.index(robot.patches[name].link) for name in self.patches], int)
        self._on_link: dict[int, list[str]] = {}
        for name in self.patches:
            if robot.patches[name].kind != "grasp":
                for link in _touching_for(robot, name):
                    self._on_link.setdefault(robot.link_names.index(link), []).append(name)
        self._frames = {}
        for name in self.patches:
            body, offset = robot.frame(name)
            self._frames[name] = built.model.body(f"body:{body}").id, offset[:9].reshape(3, 3), offset[9:]

    def base_rotation(self, data: Any) -> np.ndarray:
        """Rotation (3,3) of the base at the beginning of the step."""
        return data.xmat[self._base].reshape(3, 3)

    def base_place(self, data: Any) -> np.ndarray:
        """Place (3,) of the base at the beginning of the step."""
        return data.xpos[self._base]

    def pose(self, data: Any, patch: str) -> tuple[np.ndarray, np.ndarray]:
        """R (3,3) and p (3,) of a patch at the beginning of the step."""
        body, R, p = self._frames[patch]
        R_body = data.xmat[body].reshape(3, 3)
        return R_body @ R, data.xpos[body] + R_body @ p

    def read(self, data: Any, active: Sequence[str]) -> ContactForces:
        """Return what touched during the step that began in the state of the poses in ``data``."""
        found, f = data.contact, data.efc_force
        first = found.efc_address
        (k,) = np.nonzero(first >= 0)
        k = k[f[first[k]] > 0.0]
        frames = found.frame[k].reshape(-1, 3, 3)
        on_second = np.einsum("kij,ki->kj", frames, f[first[k][:, None] + np.arange(3)])
        # each contact twice, as both of its sides see it; the environment's sides are dropped
        geom = found.geom[k].ravel()
        link, other = self._built.link[geom], self._built.link[found.geom[k][:, ::-1].ravel()]
        sign = np.tile([-1.0, 1.0], len(k))[:, None]
        xyz = np.repeat(found.pos[k], 2, axis=0)
        normal, force = sign * np.repeat(frames[:, 0], 2, axis=0), sign * np.repeat(on_second, 2, axis=0)
        patch = np.full(len(geom), -1)
        robot_meets_rest = (link >= 0) & (link < self._links) & ((other < 0) | (other >= self._links))
        for i in np.flatnonzero(robot_meets_rest):
            name = self._patch(data, int(link[i]), self._built.patch[geom[i]], xyz[i], normal[i], active)
            patch[i] = -1 if name is None else self._index[name]
        wrenches = {}
        for index in sorted(set(patch[patch >= 0].tolist())):
            name = self.patches[index]
            mine = patch == index
            arm, F = xyz[mine] - self.pose(data, name)[1], force[mine]
            wrenches[name] = np.concatenate([F.sum(axis=0), _moment(arm, F)])
        loose = (patch.reshape(-1, 2) < 0).all(axis=1)
        strays = self._generalised(data, first[k[loose]])
        if self.robot.fixed:
            mine = np.repeat(loose, 2) & (link >= 0) & (link < self._links)
            strays[:3], strays[3:6] = force[mine].sum(axis=0), _moment(xyz[mine] - self.base_place(data), force[mine])
        shown, on_patch = link >= 0, patch >= 0
        link[on_patch] = self._link_of[patch[on_patch]]
        points = PointForces(link[shown], patch[shown], xyz[shown], normal[shown], force[shown])
        return ContactForces(points, wrenches, strays)

    def with_grips(self, data: Any, points: PointForces, held: Mapping[str, np.ndarray]) -> PointForces:
        """Return the points with one more for each grip: its force acts at its origin, its moment is no point's."""
        if not held:
            return points
        poses = [self.pose(data, name) for name in held]
        more = PointForces(
            self._link_of[[self._index[name] for name in held]],
            np.array([self._index[name] for name in held]),
            np.array([p for _, p in poses]),
            np.array([R[:, 2] for R, _ in poses]),
            np.array([wrench[:3] for wrench in held.values()]),
        )
        return PointForces(*map(np.concatenate, zip(points, more, strict=True)))

    def _generalised(self, data: Any, first: np.ndarray) -> np.ndarray:
        """Return the generalised force (6+n,) of contacts whose rows begin at ``first``, world axes.

        Of a fixed base MuJoCo knows no rows; they are left zero.
        """
        if not len(first):
            return np.zeros(self.robot.nv)
        rows = (first[:, None] + np.arange(3)).ravel()
        force = self._coordinates.reduced(data.efc_force[rows] @ data.efc_J.reshape(-1, self._built.model.nv)[rows])
        if self.robot.fixed:
            return np.concatenate([np.zeros(6), force])
        force[3:6] = self.base_rotation(data) @ force[3:6]
        return force

    def _patch(
        self, data: Any, link: int, own: str | None, xyz: np.ndarray, normal: np.ndarray, active: Sequence[str]
    ) -> str | None:
        """Return the patch that a point of a link belongs to: one that it lies in, else the geom's own, or None."""
        near = self._on_link.get(link, ())
        if near == [own]:
            return own
        found = touching_patch(near, self.robot.patches, lambda name: self.pose(data, name), xyz, normal, active)
        return found or (own if own in self._index else None)


def _touching_for(robot: Robot, patch: str) -> list[str]:
    """Return the links whose shapes touch for a patch: its own, or if that is a mere frame, what it is fixed to."""
    own, body = robot.patches[patch].link, robot.frame(patch)[0]
    if any(geometry.role != "visual" for geometry in robot.geometry[own]):
        return [own]
    return [link for link in robot.link_names if robot.frame(link)[0] == body]


def _moment(arm: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Sum of ``arm x force`` (3,) over rows; ``np.cross`` costs ten times as much."""
    (x, y, z), (a, b, c) = arm.T, force.T
    return np.array([y @ c - z @ b, z @ a - x @ c, x @ b - y @ a])
