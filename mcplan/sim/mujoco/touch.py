"""Contact reader of MuJoCo: contact points by patch, wrenches, and generalised forces."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mcplan.core.bundle import bundle
from mcplan.core.contact.model import PATCH_BODY, PATCH_LINK
from mcplan.core.contact.points import (
    CONTACT,
    FORCE,
    INDEX_SIZE,
    LINK,
    NORMAL,
    POINT_SIZE,
    POSITION,
    read_contacts,
)
from mcplan.core.contact.touching import NO_PATCH
from mcplan.robot.pose import Pose
from mcplan.robot.robot import Robot
from mcplan.sim.mujoco.build import BuiltModel
from mcplan.sim.mujoco.coordinates import Coordinates
from mcplan.sim.physics import PointForces
from mcplan.sim.touching_patch import active_mask, patch_tables


class StepContacts(NamedTuple):
    """Contacts of one step.

    points : contact points that carry force.
    wrenches : wrench on each patch, (6,) at the patch origin in world axes.
    other : (6+n,) generalised force of contacts without a patch, world axes; None: there are none.
    """

    points: PointForces
    wrenches: dict[str, np.ndarray]
    other: np.ndarray | None


class ContactReader:
    """Reads the contacts of a step from MuJoCo's data.

    Parameters
    ----------
    robot, built_model : the robot, and its MuJoCo model.
    coordinates : conversion between the robot's coordinates and MuJoCo's.
    patches : names of the recorded patches; contact points refer to them by index.
    """

    def __init__(self, robot: Robot, built_model: BuiltModel, coordinates: Coordinates, patches: Sequence[str]):
        self.robot, self.patches = robot, tuple(patches)
        self._built_model, self._coordinates, self._base = built_model, coordinates, built_model.model.body("body:0").id
        self._patch_index = {name: i for i, name in enumerate(self.patches)}
        self._link_count = len(robot.link_names)
        index, shape, corners = patch_tables(robot, self.patches)
        self._link_of = index[:, PATCH_LINK].copy()
        self._frames = {}
        for k, name in enumerate(self.patches):
            body, offset = robot.frame(name)
            index[k, PATCH_BODY] = built_model.model.body(f"body:{body}").id
            self._frames[name] = int(index[k, PATCH_BODY]), offset[:9].reshape(3, 3), offset[9:]
        patch_of = [self._patch_index.get(name or "", NO_PATCH) for name in built_model.patch]
        frame, pose = np.zeros((len(self.patches), 12)), np.zeros((1, 12))
        self._tables, _ = bundle(
            [built_model.link, np.array(patch_of, int), index, shape, corners, self._on_link(), frame, pose]
        )
        self._touched = np.empty(len(self.patches), bool)

    def _on_link(self) -> np.ndarray:
        """Return the table (links, P) of the patches that points on the geoms of a link may belong to."""
        on_link = np.zeros((self._link_count, len(self.patches)), int)
        for k, name in enumerate(self.patches):
            if self.robot.patches[name].kind != "grasp":
                on_link[[self.robot.link_names.index(link) for link in _touching_links(self.robot, name)], k] = 1
        return on_link

    def base_rotation(self, data: Any) -> np.ndarray:
        """Return the rotation (3,3) of the base at the beginning of the step."""
        return data.xmat[self._base].reshape(3, 3)

    def base_position(self, data: Any) -> np.ndarray:
        """Return the position (3,) of the base at the beginning of the step."""
        return data.xpos[self._base]

    def pose(self, data: Any, patch: str) -> Pose:
        """Return the pose R (3,3), p (3,) of a patch at the beginning of the step."""
        body, R, p = self._frames[patch]
        R_body = data.xmat[body].reshape(3, 3)
        return R_body @ R, data.xpos[body] + R_body @ p

    def read(self, data: Any, active: Sequence[str]) -> StepContacts:
        """Return the contacts of the step that began at the poses in ``data``; ``active`` patches take precedence."""
        contacts, forces = data.contact, data.efc_force
        rows, limit = contacts.efc_address.copy(), 2 * data.ncon
        index, point = np.empty((limit, INDEX_SIZE), np.int64), np.empty((limit, POINT_SIZE))
        wrench, unplanned_contacts = np.empty((len(self.patches), 6)), np.empty(limit, np.int64)
        count, unplanned_count = read_contacts(
            rows, contacts.geom.copy(), contacts.pos.copy(), contacts.frame.copy(), forces, data.xmat, data.xpos,
            active_mask(self.patches, tuple(active)), *self._tables, index, point, wrench, self._touched,
            unplanned_contacts,
        )  # fmt: skip
        index, point = index[:count], point[:count]
        unplanned_force = None
        if unplanned_count:
            unplanned_force = self._generalised(data, rows[unplanned_contacts[:unplanned_count]])
            if self.robot.fixed:
                on_robot = np.isin(index[:, CONTACT], unplanned_contacts[:unplanned_count]) & (
                    index[:, LINK] < self._link_count
                )
                xyz, force = point[on_robot, POSITION:NORMAL], point[on_robot, FORCE:]
                unplanned_force[:3], unplanned_force[3:6] = (
                    force.sum(axis=0),
                    _moment(xyz - self.base_position(data), force),
                )
        wrenches = {self.patches[p]: wrench[p] for p, touched in enumerate(self._touched.tolist()) if touched}
        return StepContacts(PointForces(index[:, :CONTACT], point), wrenches, unplanned_force)

    def with_grips(self, data: Any, points: PointForces, grip_wrenches: Mapping[str, np.ndarray]) -> PointForces:
        """Add one point per grip: its force acts at the patch origin; its moment is in the wrench only."""
        if not grip_wrenches:
            return points
        poses = [self.pose(data, name) for name in grip_wrenches]
        grip_points = PointForces.of(
            self._link_of[[self._patch_index[name] for name in grip_wrenches]],
            np.array([self._patch_index[name] for name in grip_wrenches]),
            np.array([p for _, p in poses]),
            np.array([R[:, 2] for R, _ in poses]),
            np.array([wrench[:3] for wrench in grip_wrenches.values()]),
        )
        return points.joined(grip_points)

    def _generalised(self, data: Any, first: np.ndarray) -> np.ndarray:
        """Return the generalised force (6+n,) of contacts whose constraint rows begin at ``first``, world axes.

        MuJoCo has no velocities of a fixed base; its six entries are zero.
        """
        rows = (first[:, None] + np.arange(3)).ravel()
        J = data.efc_J.reshape(len(data.efc_force), self._built_model.model.nv)[rows]
        force = self._coordinates.reduced(data.efc_force[rows] @ J)
        if self.robot.fixed:
            return np.concatenate([np.zeros(6), force])
        force[3:6] = self.base_rotation(data) @ force[3:6]
        return force


def _touching_links(robot: Robot, patch: str) -> list[str]:
    """Return the links whose shapes represent a patch: its own link, or all links of its body if that has no shapes."""
    own_link, body = robot.patches[patch].link, robot.frame(patch)[0]
    if any(geometry.role != "visual" for geometry in robot.geometry[own_link]):
        return [own_link]
    return [link for link in robot.link_names if robot.frame(link)[0] == body]


def _moment(arm: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Return the sum of ``arm x force`` (3,) over rows, ten times as fast as ``np.cross``."""
    (x, y, z), (a, b, c) = arm.T, force.T
    return np.array([y @ c - z @ b, z @ a - x @ c, x @ b - y @ a])
