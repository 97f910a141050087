"""Contact reader of MuJoCo: contact points by patch, wrenches, and generalised forces."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from mcplan.core.contact.points import (
    CONTACT,
    FORCE,
    INDEX_SIZE,
    LINK,
    NO_PATCH,
    NORMAL,
    PATCH,
    POINT_SIZE,
    POSITION,
    SEVERAL,
    SHAPE,
    split_contacts,
    sum_patches,
)
from mcplan.robot.pose import Pose
from mcplan.robot.robot import Robot
from mcplan.sim.mujoco.build import BuiltModel
from mcplan.sim.mujoco.coordinates import Coordinates
from mcplan.sim.physics import PointForces
from mcplan.sim.touching_patch import touching_patch


class StepContacts(NamedTuple):
    """Contacts of one step.

    points : contact points that carry force.
    wrenches : wrench on each patch, (6,) at the patch origin in world axes.
    other : (6+n,) generalised force of contacts without a patch, world axes.
    """

    points: PointForces
    wrenches: dict[str, np.ndarray]
    other: np.ndarray


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
        self._link_of = np.array([robot.link_names.index(robot.patches[name].link) for name in self.patches], int)
        self._patches_on_link: dict[int, list[str]] = {}
        for name in self.patches:
            if robot.patches[name].kind != "grasp":
                for link in _touching_links(robot, name):
                    self._patches_on_link.setdefault(robot.link_names.index(link), []).append(name)
        self._frames = {}
        for name in self.patches:
            body, offset = robot.frame(name)
            self._frames[name] = built_model.model.body(f"body:{body}").id, offset[:9].reshape(3, 3), offset[9:]
        bodies, offsets = [body for body, _, _ in self._frames.values()], [p for _, _, p in self._frames.values()]
        self._body_offsets = np.array(bodies, np.int64), np.array(offsets, float).reshape(-1, 3)
        self._patch_of = np.array(list(map(self._default_patch, range(len(built_model.patch)))), np.int64)
        self._has_shared_geoms = SEVERAL in self._patch_of

    def _default_patch(self, geom: int) -> int:
        """Return the patch index of points on a geom: ``SEVERAL`` if their positions decide, ``NO_PATCH`` if none."""
        nearby, own_patch = (
            self._patches_on_link.get(int(self._built_model.link[geom]), []),
            self._built_model.patch[geom],
        )
        return SEVERAL if nearby and nearby != [own_patch] else self._patch_index.get(own_patch or "", NO_PATCH)

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
        rows, frames = contacts.efc_address.astype(np.int64), np.ascontiguousarray(contacts.frame)
        index, point = np.empty((2 * len(rows), INDEX_SIZE), np.int64), np.empty((2 * len(rows), POINT_SIZE))
        count = split_contacts(
            rows, contacts.geom.astype(np.int64), np.ascontiguousarray(contacts.pos), frames, forces,
            self._built_model.link, self._patch_of, self._link_count, index, point,
        )  # fmt: skip
        index, point = index[:count], point[:count]
        if self._has_shared_geoms:
            pose = cache(partial(self.pose, data))
            for i in np.flatnonzero(index[:, PATCH] == SEVERAL).tolist():
                geom, x = index[i, SHAPE].item(), point[i]
                index[i, PATCH] = self._patch(pose, geom, x[POSITION:NORMAL], x[NORMAL:FORCE], active)
        wrench, unplanned_contacts = np.empty((len(self.patches), 6)), np.empty(count, np.int64)
        touched = np.empty(len(self.patches), bool)
        unplanned_count = sum_patches(
            index, point, *self._body_offsets, data.xmat, data.xpos, self._link_of, wrench, touched, unplanned_contacts
        )
        unplanned_force = np.zeros(self.robot.nv)
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
        points = PointForces(
            index[:, LINK], index[:, PATCH], point[:, POSITION:NORMAL], point[:, NORMAL:FORCE], point[:, FORCE:]
        )
        return StepContacts(
            points, {self.patches[p]: wrench[p] for p in np.flatnonzero(touched).tolist()}, unplanned_force
        )

    def with_grips(self, data: Any, points: PointForces, grip_wrenches: Mapping[str, np.ndarray]) -> PointForces:
        """Add one point per grip: its force acts at the patch origin; its moment is in the wrench only."""
        if not grip_wrenches:
            return points
        poses = [self.pose(data, name) for name in grip_wrenches]
        grip_points = PointForces(
            self._link_of[[self._patch_index[name] for name in grip_wrenches]],
            np.array([self._patch_index[name] for name in grip_wrenches]),
            np.array([p for _, p in poses]),
            np.array([R[:, 2] for R, _ in poses]),
            np.array([wrench[:3] for wrench in grip_wrenches.values()]),
        )
        return PointForces(*map(np.concatenate, zip(points, grip_points, strict=True)))

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

    def _patch(
        self, pose: Callable[[str], Pose], geom: int, xyz: np.ndarray, normal: np.ndarray, active: Sequence[str]
    ) -> int:
        """Return the index of the patch of a point on a geom: by its position, otherwise the geom's own patch."""
        nearby_patches, own_patch = self._patches_on_link[self._built_model.link[geom]], self._built_model.patch[geom]
        patch_at_point = touching_patch(nearby_patches, self.robot.patches, pose, xyz, normal, active)
        return self._patch_index.get(patch_at_point or own_patch or "", NO_PATCH)


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
