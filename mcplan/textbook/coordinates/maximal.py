"""Maximal coordinates: one pose per body and joint constraints, as physics engines use them (S3 section 6).

S3 is Liu and Jain, "A quick tutorial on multibody dynamics". Each body has the position of its centre of mass and a
rotation; the velocities are stacked as ``V = [v_1 ... v_m, w_1 ... w_m]`` (eq. 60), in world axes. Links connected by
fixed joints are one body, named after the first of them. ::

    import numpy as np
    import mcplan as mc

    robot = mc.load_robot("hrp2")
    bodies, q = mc.coordinates.Maximal(robot), robot.posture("half_sitting")
    weight = np.outer(bodies.mass, [0.0, 0.0, -9.81])
    gravity = bodies.generalized_force(q, weight, np.zeros_like(weight))
    assert np.allclose(-gravity, robot.nonlinear_effects(q, np.zeros(robot.nv)))

S3: `docs/sources.md`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body.tree import (
    AXIS,
    BALL,
    COM,
    MASS,
    MULTIPLIER,
    OFFSET,
    ORIGIN,
    PARENT,
    REVOLUTE,
    ROTATION,
    TYPE,
    V as COLUMN,
    parents_of,
)
from mcplan.errors import InputError
from mcplan.robot.pose import cross_matrix
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.chart import Array, numbers, real
from mcplan.textbook.coordinates.jacobian import point_jacobian
from mcplan.textbook.coordinates.quaternion import UNIT_QUATERNION
from mcplan.textbook.coordinates.rotation_vector import ROTATION_VECTOR
from mcplan.util.text import summary

JOINT_TOLERANCE = 1e-6
"""Largest violation of the joints by velocities (m/s, rad/s) or poses (m, entries of rotations) that is accepted."""


@dataclass(frozen=True, eq=False)
class BodyPoses:
    """Poses of the bodies.

    Attributes
    ----------
    position : (m, 3) centres of mass of the m bodies in the world (metres).
    rotation : (m, 3, 3) rotations from the axes of the bodies to those of the world.
    """

    position: Array
    rotation: Array

    __repr__ = summary


class Maximal:
    """A robot in maximal coordinates.

    Attributes
    ----------
    robot : the robot.
    bodies : names of the bodies, the base first, each after its parent.
    """

    __repr__ = summary

    def __init__(self, robot: Robot):
        self.robot = robot
        tree = robot.tree
        names: dict[int, str] = {}
        for name in robot.link_names:
            body, offset = robot.frame(name)
            if body not in names and np.array_equal(offset, [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]):
                names[body] = name
        self.bodies = tuple(names[i] for i in range(len(tree.topology)))
        self.com = np.array([tree.inertia[i, COM : COM + 3] for i in range(len(self.bodies))])
        """Centres of mass in the bodies' frames (m, 3)."""
        self.mass = np.array(tree.inertia[:, MASS])
        """Masses (m,), kg."""

    # -- positions ------------------------------------------------------------------------------------------------

    def poses(self, q: ArrayLike) -> BodyPoses:
        """Return the poses of the bodies at a configuration (nq,)."""
        q = numbers(q, (self.robot.nq,), "q")
        X = np.array([self.robot.frame_pose(q, name) for name in self.bodies])
        return BodyPoses(np.einsum("kij,kj->ki", X[:, :3, :3], self.com) + X[:, :3, 3], X[:, :3, :3].copy())

    def configuration(self, poses: BodyPoses) -> Array:
        """Return the configuration (nq,) of poses that satisfy the joints; angles within pi of the middle of the range.

        Raises
        ------
        InputError : no configuration has these poses; the message names the body with the largest error.
        """
        robot, tree = self.robot, self.robot.tree
        q, is_solved = np.zeros(robot.nq), np.zeros(robot.nv, dtype=bool)
        count = len(self.bodies)
        R, p = numbers(poses.rotation, (count, 3, 3), "rotation"), numbers(poses.position, (count, 3), "position")
        origin = p - np.einsum("kij,kj->ki", R, self.com)
        q[:3], q[3:7] = origin[0], UNIT_QUATERNION.parameters(R[0])
        middle = np.clip(0.5 * (robot.limits.lower + robot.limits.upper), -1e9, 1e9)
        for k in range(1, len(self.bodies)):
            row, joint = tree.topology[k], tree.joint[k]
            column = int(row[COLUMN])
            if is_solved[column] or joint[MULTIPLIER] == 0.0:
                continue
            is_solved[column] = True
            parent = int(row[PARENT])
            if row[TYPE] >= BALL:
                if row[TYPE] == BALL + 2:
                    R_ball = R[parent].T @ R[k]
                    q[column - 1 : column + 2] = ROTATION_VECTOR.parameters(R_ball)
                continue
            R_joint = R[parent] @ joint[ROTATION : ROTATION + 9].reshape(3, 3)
            axis = joint[AXIS : AXIS + 3]
            if row[TYPE] == REVOLUTE:
                R_hinge = R_joint.T @ R[k]
                K = cross_matrix(axis)
                # R_hinge = exp(angle K): sum(K * R_hinge) = 2 sin(angle), trace less the part along axis = 2 cos(angle)
                angle = float(np.arctan2(np.sum(K * R_hinge), np.trace(R_hinge) - axis @ R_hinge @ axis))
                value = (angle - joint[OFFSET]) / joint[MULTIPLIER]
                period = 2 * np.pi / abs(joint[MULTIPLIER])
                centre = middle[column - 6] if np.isfinite(middle[column - 6]) else 0.0
                value += period * np.round((centre - value) / period)
            else:
                start = origin[parent] + R[parent] @ joint[ORIGIN : ORIGIN + 3]
                value = float((R_joint @ axis) @ (origin[k] - start) - joint[OFFSET]) / joint[MULTIPLIER]
            q[column + 1] = value
        actual = self.poses(q)
        error = np.maximum(np.abs(actual.position - p).max(axis=1), np.abs(actual.rotation - R).max(axis=(1, 2)))
        if error.max() > JOINT_TOLERANCE:
            worst = int(np.argmax(error))
            raise InputError(
                f"no configuration has these poses: the pose of {self.bodies[worst]!r} violates the joints by "
                f"{error[worst]:.3g} (m, or entry of the rotation), expected at most {JOINT_TOLERANCE:g}"
            )
        return q

    # -- velocities -----------------------------------------------------------------------------------------------

    def jacobian(self, q: ArrayLike) -> Array:
        """Return J (6 m, nv), ``V = J v``: linear rows of all bodies, then the angular ones (S3 eq. 60)."""
        parts = [point_jacobian(self.robot, q, name, com) for name, com in zip(self.bodies, self.com, strict=True)]
        return np.vstack([J[:3] for J in parts] + [J[3:] for J in parts])

    def velocity(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the bodies' velocities V (6 m,) of the robot's v (nv,)."""
        return np.asarray(self.jacobian(q) @ numbers(v, (self.robot.nv,), "v"))

    def generalized_velocity(self, q: ArrayLike, V: ArrayLike, strict: bool = True) -> Array:
        """Return the robot's v (nv,) of velocities of the bodies, ``(J'J)^-1 J' V`` (S3 eq. 61).

        Parameters
        ----------
        strict : whether to reject velocities that violate the joints; otherwise return the nearest feasible one.

        Raises
        ------
        InputError : V violates the joints; the message names the body with the largest error.
        """
        J = self.jacobian(q)
        given = numbers(V, (len(J),), "V")
        v = np.linalg.lstsq(J, given, rcond=None)[0]
        error = np.abs(J @ v - given)
        if strict and error.max() > JOINT_TOLERANCE * max(1.0, float(np.abs(given).max())):
            body = self.bodies[(int(np.argmax(error)) // 3) % len(self.bodies)]
            raise InputError(f"V violates the joints: the velocity of {body!r} is {error.max():.3g} m/s or rad/s off")
        return np.asarray(v, dtype=np.float64)

    def joint_rates(self, q: ArrayLike, V: ArrayLike) -> Array:
        """Return the rates of revolute and ball joints (nv,) from angular velocities, body by body (S3 eq. 62 to 66).

        ``rate_k = J^_k' R_parent' (w_k - w_parent)``, with the joint's axis J^ in the parent's frame: no large system
        is solved. The rates of prismatic joints do not follow from angular velocities; they are NaN.
        """
        tree, poses = self.robot.tree, self.poses(q)
        count, parents, q = len(self.bodies), parents_of(tree), real(q, "q")
        V = numbers(V, (6 * count,), "V")
        w = V[3 * count :].reshape(count, 3)
        out = np.full(self.robot.nv, np.nan)
        out[:3] = V[:3] - np.cross(w[0], poses.rotation[0] @ self.com[0])
        out[3:6] = w[0]
        for k in range(count - 1, 0, -1):
            row = tree.topology[k]
            parent = int(row[PARENT])
            if row[TYPE] == BALL + 2:
                column, relative = int(row[COLUMN]), poses.rotation[parent].T @ (w[k] - w[parents[k]])
                out[column - 2 : column + 1] = ROTATION_VECTOR.E_inverse(q[column - 1 : column + 2]) @ relative
            elif row[TYPE] == REVOLUTE and tree.joint[k, MULTIPLIER] != 0.0:
                relative = poses.rotation[parent].T @ (w[k] - w[parent])
                out[row[COLUMN]] = self._hinge(k) @ relative / tree.joint[k, MULTIPLIER]
        return out

    # -- forces ---------------------------------------------------------------------------------------------------

    def generalized_force(self, q: ArrayLike, force: ArrayLike, torque: ArrayLike) -> Array:
        """Return Q (nv,) of forces at the centres of mass and torques on the bodies, ``J_v' f + J_w' tau`` (eq. 67).

        Parameters
        ----------
        force, torque : (m, 3) on each body, world axes, N and N m. A force at another point r adds the torque
            ``(r - x) x f``.
        """
        count = len(self.bodies)
        f, tau = numbers(force, (count, 3), "force"), numbers(torque, (count, 3), "torque")
        return np.asarray(self.jacobian(q).T @ np.concatenate([f.ravel(), tau.ravel()]))

    def body_forces(self, q: ArrayLike, Q: ArrayLike) -> tuple[Array, Array]:
        """Return the minimum-norm forces and torques (m, 3) on the bodies with the sum Q (nv,): S3 eq. 70."""
        pair = np.linalg.lstsq(self.jacobian(q).T, numbers(Q, (self.robot.nv,), "Q"), rcond=None)[0]
        f, tau = np.asarray(pair, dtype=np.float64).reshape(2, len(self.bodies), 3)
        return f, tau

    def hinge_torques(self, tau: ArrayLike) -> Array:
        """Return the minimum-norm torque vector (m, 3) of each revolute joint, in its parent's frame: S3 eq. 71.

        The base's row is zero. ``tau`` (n,) are the joint torques.

        Raises
        ------
        InputError : the robot has prismatic, ball or mimic joints.
        """
        tau = numbers(tau, (self.robot.n,), "tau")
        columns = self.robot.tree.topology[1:, COLUMN]
        if (self.robot.tree.topology[1:, TYPE] != REVOLUTE).any() or len(set(columns)) < len(columns):
            raise InputError(f"{self.robot.name!r} has prismatic, ball or mimic joints; expected revolute ones only")
        return np.vstack([np.zeros(3), *(tau[columns[k - 1] - 6] * self._hinge(k) for k in range(1, len(self.bodies)))])

    def body_torques(self, q: ArrayLike, hinge: ArrayLike) -> Array:
        """Return the torques on the bodies (m, 3), world axes, of torque vectors in revolute joints (m, 3): S3 eq. 68.

        Each joint torque acts on its body, and with opposite sign on the parent.
        """
        poses = self.poses(q)
        hinge = numbers(hinge, (len(self.bodies), 3), "hinge torques")
        out = np.zeros_like(hinge)
        for k in range(1, len(self.bodies)):
            parent = int(self.robot.tree.topology[k, PARENT])
            in_world = poses.rotation[parent] @ hinge[k]
            out[k] += in_world
            out[parent] -= in_world
        return out

    def _hinge(self, k: int) -> Array:
        """Return the axis (3,) of a body's joint in the parent's frame."""
        joint = self.robot.tree.joint[k]
        return np.asarray(joint[ROTATION : ROTATION + 9].reshape(3, 3) @ joint[AXIS : AXIS + 3], dtype=np.float64)
