"""Physics ``mujoco``: joint torques drive the robot in MuJoCo; motion and contact forces are read back."""

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.record.world import World, with_losses
from mcplan.robot.patch import MOUNT
from mcplan.robot.pose import cross
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.sim.mujoco.build import build
from mcplan.sim.mujoco.coordinates import Coordinates
from mcplan.sim.mujoco.grips import Grips
from mcplan.sim.mujoco.touch import ContactReader
from mcplan.sim.physics import Action, StepOutcome, action_of
from mcplan.util.text import summary


class MujocoPhysics:
    """Robot in MuJoCo, driven by joint torques only.

    A step from (q, v) to (q+, v+) satisfies

        M (v+ - v) / dt + h = S' tau + sum J' w + tau_ext,   q+ = integrate(q, v+, dt)

    In MuJoCo the velocity of a free joint has its linear part in world axes and its angular part in body axes. The base
    rotates by ``quat * exp(dt omega)``. This rotation about ``omega`` does not change ``omega``, so the world and body
    components of ``vd`` differ only by the rotation of the base, and both equations hold exactly. The integrator
    ``implicitfast`` adds joint damping to ``M`` in the first equation. ``tau_ext`` contains this term, and the
    negative of ``tau`` beyond the motor limits.

    A fixed base has no joint in MuJoCo. Its wrench is the residual of the six base rows of the equation of motion.

    Parameters
    ----------
    robot, environment : the robot, and its environment with free objects.
    q, v : (7+n,), (6+n,) initial state; v None: at rest.
    patches : names of the recorded patches, in the order of the record.
    contacts : planned contacts; they give friction, sliding, and limits and free directions of grasps.

    Attributes
    ----------
    q, v : the current state; set it with ``reset``.
    model, data : MuJoCo's model and data.
    """

    name = "mujoco"

    __repr__ = summary

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        q: np.ndarray,
        v: np.ndarray | None = None,
        patches: Sequence[str] = (),
        contacts: Sequence[Contact] = (),
    ):
        if robot.fixed and MOUNT not in patches:
            patches = (MOUNT, *patches)
        self.robot, built_model = robot, build(robot, environment, q, contacts)
        self.model, self.data = built_model.model, mujoco.MjData(built_model.model)
        self._options, self._max_torque = self.model.opt, robot.limits.torque
        self._coordinates = Coordinates(robot, self.model)
        self._qvel_index = self._coordinates.qvel_index
        self._first_velocity, self._base_pose = self._coordinates.first, np.array(q[:7], float)
        self._motor = np.array([self.model.actuator(f"motor:{name}").id for name in robot.joint_names], int)
        damping = self.model.dof_damping
        self._damping = (damping if damping.ndim == 1 else damping[:, 0])[self._qvel_index]
        self._is_damped = bool(self._damping.any())
        object_joints = [self.model.joint(f"object:{thing.name}") for thing in environment.objects]
        self._object_qpos = np.array([joint.qposadr[0] + np.arange(7) for joint in object_joints], int).reshape(-1, 7)
        self._object_qvel = np.array([joint.dofadr[0] + np.arange(6) for joint in object_joints], int).reshape(-1, 6)
        self._contact_reader = ContactReader(robot, built_model, self._coordinates, patches)
        grips = [contact for contact in contacts if contact.patch != MOUNT]
        if robot.fixed and any(contact.kind == "grasp" for contact in grips):
            raise InputError(f"physics mujoco: {robot.name} has a fixed base and grasps; use the physics contact")
        self._grips = Grips(robot, environment, built_model, grips)
        self.reset(q, v)

    @classmethod
    def of_world(cls, world: World) -> "MujocoPhysics":
        """Return the back end of a world, with the joint friction and damping of that world."""
        robot = with_losses(world.robot, world.settings)
        return cls(robot, world.environment, world.q, patches=world.patches, contacts=world.contacts)

    def reset(self, q: np.ndarray, v: np.ndarray | None = None) -> None:
        """Set the state (7+n,), (6+n,) of the robot; objects return to their initial poses. ``v`` None: at rest."""
        mujoco.mj_resetData(self.model, self.data)
        self._grips.reset()
        self._is_pushed = False
        q, v = np.array(q, float), np.zeros(self.robot.nv) if v is None else np.array(v, float)
        R, first_velocity = _rotation(q[3:7]), self._first_velocity
        mujoco_v = np.concatenate([v[:3], R.T @ v[3:6], v[6:]])
        self._coordinates.put(self.data, q[7:] if first_velocity else q, mujoco_v[first_velocity:])
        self.q, self.v = q, v

    @property
    def object_q(self) -> np.ndarray:
        """Poses (O, 7) of the objects."""
        return self.data.qpos[self._object_qpos]

    @property
    def object_v(self) -> np.ndarray:
        """Velocities (O, 6) of the objects, world axes."""
        q, v = self.object_q, self.data.qvel[self._object_qvel]
        for row, omega in zip(q, v[:, 3:], strict=True):
            omega[:] = _rotation(row[3:]) @ omega
        return v

    def step(self, action: Action | ArrayLike, dt: float = 1e-3) -> StepOutcome:
        """Advance the state by dt (s) under an action, or under joint torques (n,).

        Torques are clipped to the motor limits.
        """
        action = action_of(action, self.robot.n)
        data, q, v = self.data, self.q, self.v
        self._grips.follow(data, self.q, action.active)
        self._apply_external(action.external)
        qpos, qvel = data.qpos.copy(), data.qvel[self._qvel_index]
        self.advance(action.tau, dt)
        rate_change = (data.qvel[self._qvel_index] - qvel) / dt if self._is_damped else None
        self._coordinates.settle(data, qpos, dt)
        self.read_state()
        # contacts, forces and poses in MuJoCo's data are those at the beginning of the step
        forces = self._contact_reader.read(data, action.active)
        grip_wrenches = self._grips.wrenches(data, self._contact_reader)
        points = self._contact_reader.with_grips(data, forces.points, grip_wrenches)
        wrenches = grip_wrenches | forces.wrenches
        tau_ext = self._joint_forces(dt, rate_change)
        if forces.other is not None:
            tau_ext += forces.other
        if (np.abs(action.tau) > self._max_torque).any():
            tau_ext[6:] += self._within_limits(action.tau) - action.tau
        if action.external is not None:
            tau_ext += action.external
        if self.robot.fixed:
            base_wrench = {MOUNT: self._base_wrench(q, v, (self.v - v) / dt, wrenches, tau_ext)}
            wrenches, points = wrenches | base_wrench, self._contact_reader.with_grips(data, points, base_wrench)
        touching = [patch for patch in self._contact_reader.patches if patch in action.active or patch in wrenches]
        return StepOutcome((self.v - v) / dt, tau_ext, wrenches, points, tuple(touching))

    def advance(self, tau: np.ndarray, dt: float) -> None:
        """Make one MuJoCo step of dt (s) under joint torques (n,); ``read_state`` then updates ``q`` and ``v``."""
        self._options.timestep = dt
        self.data.ctrl[self._motor] = self.controls(tau)
        mujoco.mj_step(self.model, self.data)

    def controls(self, tau: np.ndarray) -> np.ndarray:
        """Return MuJoCo's motor controls (n,) for joint torques (n,).

        Motors of ball joints have no limits in MuJoCo, so with ball joints the torques are clipped here.
        """
        if not self._coordinates.balls:
            return tau
        generalised = np.concatenate([np.zeros(6 - self._first_velocity), self._within_limits(tau)])
        return self._coordinates.moments(generalised)[6 - self._first_velocity :]

    def _within_limits(self, tau: np.ndarray) -> np.ndarray:
        """Return torques (n,) clipped to the motor limits, N m."""
        return np.minimum(np.maximum(tau, -self._max_torque), self._max_torque)

    def _apply_external(self, external: np.ndarray | None) -> None:
        """Apply an external generalised force (6+n,), given in world axes."""
        if external is None:
            if self._is_pushed:
                self.data.qfrc_applied[self._qvel_index], self._is_pushed = 0.0, False
            return
        self._is_pushed = True
        force = np.array(external)
        force[3:6] = _rotation(self.q[3:7]).T @ force[3:6]
        self.data.qfrc_applied[self._qvel_index] = self._coordinates.moments(force[self._first_velocity :])

    def read_state(self) -> None:
        """Update ``q`` and ``v`` from MuJoCo's data."""
        self.q, self.v = self._coordinates.state(self.data)
        if self.robot.fixed:
            self.q, self.v = np.concatenate([self._base_pose, self.q]), np.concatenate([np.zeros(6), self.v])
            return
        mujoco.mju_rotVecQuat(self.v[3:6], self.v[3:6].copy(), self.q[3:7])

    def _joint_forces(self, dt: float, vd: np.ndarray | None) -> np.ndarray:
        """Return the generalised force of joint limits, joint friction and damping; there is none on a free base."""
        data = self.data
        force = data.qfrc_passive[self._qvel_index]
        first, count = (
            data.ne,
            data.nf + data.nl,
        )  # the rows of friction and limits follow those of equality constraints
        if count:
            J = data.efc_J.reshape(-1, self.model.nv)[first : first + count]
            force += (data.efc_force[first : first + count] @ J)[self._qvel_index]
        if vd is not None:
            force -= dt * self._damping * vd
        force = self._coordinates.forces(force)
        return np.concatenate([np.zeros(6), force]) if self.robot.fixed else force

    def _base_wrench(
        self, q: np.ndarray, v: np.ndarray, vd: np.ndarray, wrenches: Mapping[str, np.ndarray], other_forces: np.ndarray
    ) -> np.ndarray:
        """Return the wrench (6,) of the world on a fixed base: the residual of the base rows of the equation of motion.

        ``wrenches`` are those on the patches, ``other_forces`` (6+n,) all other generalised forces.
        """
        base_wrench = (self.robot.inverse_dynamics(q, v, vd) - other_forces)[:6]
        for patch, wrench in wrenches.items():
            arm = self._contact_reader.pose(self.data, patch)[1] - q[:3]
            base_wrench -= np.concatenate([wrench[:3], wrench[3:] + cross(arm, wrench[:3])])
        return base_wrench


def _rotation(quat_wxyz: np.ndarray) -> np.ndarray:
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, quat_wxyz)
    return R.reshape(3, 3)
