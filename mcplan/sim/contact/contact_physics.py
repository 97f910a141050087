"""Physics ``contact``: torques in, motion and contact forces out."""

from collections.abc import Iterable, Sequence

import numpy as np

from mcplan.core.contact_model import (
    ANCHOR,
    AXES,
    BOUND,
    FREE,
    GRASP_SIZE,
    HELD,
    LINK,
    PATCH,
    POINT,
    TURNING,
    scratch,
    touch,
)
from mcplan.core.contact_step import contact_step
from mcplan.core.tree import workspace
from mcplan.errors import InputError, SimulationFailed
from mcplan.model.robot import Robot
from mcplan.scene.environment import Environment
from mcplan.scene.settings import Push, SimulationSettings
from mcplan.sim.contact.law import law_array
from mcplan.sim.contact.pack import object_places, pack_scene
from mcplan.sim.physics import Action, Outcome
from mcplan.sim.recorder import PointForces


class ContactPhysics:
    """Robot and free objects in contact with an environment, driven by joint torques.

    Parameters
    ----------
    robot, environment : what there is.
    q : (7+n,) first configuration; v : (6+n,) first velocity, None for rest.
    patches : names of the patches that the record knows, in its order; None takes all of the robot's.
    settings : what contacts and joints are like.

    Attributes
    ----------
    q, v : state of the robot.
    object_q, object_v : (O, 7), (O, 6) of the objects: their centres of mass; world axes.
    t : s.
    contacts, iterations : of the last step.
    """

    name = "contact"

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        q: np.ndarray,
        patches: Sequence[str] | None = None,
        settings: SimulationSettings | None = None,
        v: np.ndarray | None = None,
    ):
        self.robot, self.environment, self.settings = robot, environment, settings or SimulationSettings()
        self.patches = tuple(robot.patches if patches is None else patches)
        self.q = np.array(q, float)
        self.v = np.zeros(robot.nv) if v is None else np.array(v, float)
        self.t = 0.0
        self.scene = pack_scene(robot, environment, self.patches, self.settings, self.q)
        places = object_places(environment)
        self.object_q = np.array([[*p, *_quaternion(R)] for R, p in places]).reshape(-1, 7)
        self.object_v = np.zeros((len(places), 6))
        self.grasps = np.zeros((len(self.patches), GRASP_SIZE))
        self._law = law_array(self.settings.contact)
        self._work, self._scratch, self._touch = workspace(robot.tree), scratch(self.scene, robot.nv), touch(self.scene)
        self._force = np.zeros(len(self.scene.parent))
        self._wrench, self._tau_ext = np.zeros((len(self.patches), 6)), np.zeros(robot.nv)
        self._counts = np.zeros(2, np.int64)
        self._holding = [name for name in self.patches if robot.patches[name].kind == "grasp"]
        for push in self.settings.pushes:
            robot.frame(push.link)

    @property
    def contacts(self) -> int:
        """Contacts that were looked at in the last step."""
        return int(self._counts[0])

    @property
    def iterations(self) -> int:
        """Newton steps of the last step."""
        return int(self._counts[1])

    def step(self, action: Action, dt: float) -> Outcome:
        """Advance the state by dt (s)."""
        if self._holding:
            self._close_and_open(action.active)
        before = self.v
        self.q, self.v = self.q.copy(), self.v.copy()
        extra = self._apply(action.tau)
        contact_step(
            self.robot.tree, self.scene, self._law, self.grasps, self._force, float(dt), self._work, self._scratch,
            self._touch, self.q, self.v, self.object_q, self.object_v, self._wrench, self._tau_ext, self._counts,
        )  # fmt: skip
        self.t += dt
        return self._outcome((self.v - before) / dt, extra)

    def _apply(self, tau: np.ndarray) -> np.ndarray | None:
        """Write the generalized forces; returns those that are not torques as commanded."""
        force, nv, extra = self._force, self.robot.nv, None
        force[6:nv] = tau
        if self.settings.torque_limits:
            limit = self.robot.limits.torque
            if (np.abs(tau) > limit).any():
                force[6:nv] = np.clip(tau, -limit, limit)
                extra = np.concatenate([np.zeros(6), force[6:nv] - tau])
        force[:6] = 0.0
        for push in self.settings.pushes:
            if push.start <= self.t + 1e-9 < push.start + push.duration:
                generalized = push_force(self.robot, self.q, push)
                force[:nv] += generalized
                extra = generalized if extra is None else extra + generalized
        return extra

    def _outcome(self, vd: np.ndarray, extra: np.ndarray | None) -> Outcome:
        touching = self._touch
        count = self._counts[0]
        if not np.isfinite(self.v).all():
            raise SimulationFailed(f"the contact physics lost the state at t = {self.t:g} s")
        index = touching.index[:count]
        loaded = (touching.impulse[:count] != 0.0).any(axis=1) & (index[:, TURNING] == 0)
        rows = np.flatnonzero(loaded)
        value = touching.value[rows]
        points = PointForces(
            index[rows, LINK],
            index[rows, PATCH],
            value[:, POINT : POINT + 3],
            value[:, AXES + 6 : AXES + 9],
            touching.force[rows],
        )
        used = np.unique(points.patch)
        active = [p for p in range(len(self.patches)) if p in used or self.grasps[p, HELD] > 0.0]
        wrenches = {self.patches[p]: self._wrench[p].copy() for p in active}
        tau_ext = self._tau_ext.copy() if extra is None else self._tau_ext + extra
        return Outcome(vd, tau_ext, wrenches, points, tuple(wrenches))

    def _close_and_open(self, active: Iterable[str]) -> None:
        """Close the hands that the robot closes on a bar within reach; open the others."""
        for name in self._holding:
            row = self.grasps[self.patches.index(name)]
            if name not in active:
                row[HELD] = 0.0
            elif row[HELD] == 0.0 and self._within_reach(name):
                X, patch = self.robot.frame_pose(self.q, name), self.robot.patches[name]
                row[HELD] = 1.0
                row[ANCHOR : ANCHOR + 9], row[ANCHOR + 9 : ANCHOR + 12] = X[:3, :3].ravel(), X[:3, 3]
                row[BOUND : BOUND + 2] = patch.max_force, patch.max_moment

    def free_grasp(self, patch: str, directions: Sequence[int]) -> None:
        """Let a hold of this patch move freely in directions (0..2 linear, 3..5 angular, patch axes): a hinge."""
        if patch not in self._holding:
            raise InputError(f"{patch!r} is no grasp of {self.robot.name!r}")
        row = self.grasps[self.patches.index(patch)]
        row[FREE : FREE + 6] = 0.0
        row[[FREE + d for d in directions]] = 1.0

    def _within_reach(self, name: str) -> bool:
        p = self.robot.frame_pose(self.q, name)[:3, 3]
        for bar in self.environment.bars:
            along = np.clip((p - bar.ends[0]) @ bar.direction, 0.0, bar.length)
            if (
                np.linalg.norm(p - bar.ends[0] - along * bar.direction)
                <= bar.radius + self.settings.contact.grasp_reach
            ):
                return True
        return False


def push_force(robot: Robot, q: np.ndarray, push: Push) -> np.ndarray:
    """Return the generalized force (6+n,) of a push: ``J' f`` at its point."""
    X, J = robot.frame_pose(q, push.link), robot.frame_jacobian(q, push.link)
    force = np.array(push.force, float)
    arm = X[:3, :3] @ np.array(push.point, float)
    return J[:3].T @ force + J[3:].T @ np.cross(arm, force)


def _quaternion(R: np.ndarray) -> np.ndarray:
    from mcplan.core.rotation import matrix_to_quaternion

    quat = np.zeros(4)
    matrix_to_quaternion(np.array(R, float), quat)
    return quat
