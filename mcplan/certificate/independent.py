"""Independent rigid-body dynamics (Newton-Euler in maximal coordinates), without the controller's kernels.

The equations of Newton and Euler hold for each link i of the robot's description, with vectors in world axes (a_c,i:
acceleration of the centre of mass, f_i, n_i: total force and moment). Fixed and locked joints are joints that do not
move::

    f_i = m_i (a_c,i - g)            n_i = I_i alpha_i + omega_i x I_i omega_i

The wrench that a joint transmits is the sum over its descendant links, minus the contact wrenches on them. Its
component along the joint axis, plus ``armature * vd``, is the generalised force. All samples are computed at once. No
code is shared with ``mcplan.core``: neither tree nor quaternions nor constants.

Sources: S1 sec. 3.4 (projected Newton-Euler); Featherstone 2008, sec. 2.15 on rigid bodies.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcplan.record.records import RobotRecord

STANDARD_GRAVITY = np.array([0.0, 0.0, -9.81])
"""m/s², world axes."""

CHUNK_SAMPLES = 2048
"""Samples per block, so that the states of the links fit into the processor cache."""

LAST_BALL_PART = 2
"""Index of the last of the three parts of a ball joint in a record; the rotation of the joint belongs to this part."""


@dataclass(frozen=True, eq=False)
class MechanismMotion:
    """Poses, centre of mass and forces of N samples.

    Parameters
    ----------
    com : (N, 3) centre of mass, m.
    force : (N, 6+n) ``M vd + h - sum J' w``: base force and moment at the base origin, then joint torques, N and N m.
    R, p : per patch (N, 3, 3) and (N, 3): pose of its frame in the world, m.
    """

    com: np.ndarray
    force: np.ndarray
    R: dict[str, np.ndarray]
    p: dict[str, np.ndarray]

    def split(self, counts: Sequence[int]) -> Iterator["MechanismMotion"]:
        """Yield the first ``counts[0]`` samples, the next ``counts[1]``, and so on."""
        ends = np.cumsum([0, *counts])
        for part in map(slice, ends[:-1], ends[1:]):
            R, p = ({name: x[part] for name, x in poses.items()} for poses in (self.R, self.p))
            yield MechanismMotion(self.com[part], self.force[part], R, p)


class Mechanism:
    """A robot as links and joints.

    Parameters
    ----------
    record : the robot's numbers.
    """

    def __init__(self, record: RobotRecord):
        self.record = record
        self.n = len(record.coordinates)
        self.mass = np.array([link.mass for link in record.links])
        self._com = [np.array(link.com) for link in record.links]
        self._inertia = [np.array(link.inertia) for link in record.links]
        self._armature = np.array(record.armature)
        self._joints = [(j, np.array(j.R), np.array(j.p), np.array(j.axis)) for j in record.joints]
        self._patches = {patch.name: patch for patch in record.patches}

    def motion(
        self,
        q: np.ndarray,
        v: np.ndarray | None = None,
        vd: np.ndarray | None = None,
        wrench: np.ndarray | None = None,
        patches: Sequence[str] = (),
    ) -> MechanismMotion:
        """Recompute poses and forces.

        Parameters
        ----------
        q, v, vd : (N, 7+n), (N, 6+n), (N, 6+n); at rest without v and vd.
        wrench : (N, P, 6) of the environment on the patches, at their origins, world axes; zero by default.
        patches : names of the P patches.
        """
        N, P = len(q), len(patches)
        at_rest = v is None and vd is None
        v = np.zeros((N, 6 + self.n)) if v is None else v
        vd = np.zeros((N, 6 + self.n)) if vd is None else vd
        wrench = np.zeros((N, P, 6)) if wrench is None else wrench
        com, force = np.empty((N, 3)), np.empty((N, 6 + self.n))
        R, p = {name: np.empty((N, 3, 3)) for name in patches}, {name: np.empty((N, 3)) for name in patches}
        for start in range(0, N, CHUNK_SAMPLES):
            rows = slice(start, min(start + CHUNK_SAMPLES, N))
            pose = {name: (R[name][rows], p[name][rows]) for name in patches}
            self._fill_block(q[rows], v[rows], vd[rows], wrench[rows], com[rows], force[rows], pose, at_rest)
        return MechanismMotion(com, force, R, p)

    def poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the poses of all links at configurations (N, 7+n): R (N, L, 3, 3) and p (N, L, 3), m."""
        zero = np.zeros((6 + self.n, len(q)))
        links, _ = self._link_states(q.T, zero, zero, at_rest=True)
        R = np.stack([link.R for link in links]).transpose(3, 0, 1, 2)
        return np.ascontiguousarray(R), np.stack([link.p for link in links]).transpose(2, 0, 1).copy()

    def generalized(self, q: np.ndarray, loads: Mapping[int, np.ndarray]) -> np.ndarray:
        """Return the generalised force (..., N, 6+n) of forces on links, at configurations (N, 7+n).

        Parameters
        ----------
        loads : by link, (..., N, 6) force and moment about the world's origin, world axes, N and N m.
        """
        zero = np.zeros((6 + self.n, len(q)))
        links, joints = self._link_states(q.T, zero, zero, at_rest=True)
        base, no_load = links[0].p, np.zeros((3, *next(iter(loads.values()), q).shape[:-1]))
        f, m = [no_load] * len(links), [no_load] * len(links)
        for link, load in loads.items():
            parts = np.moveaxis(load, -1, 0)
            f[link], m[link] = parts[:3], parts[3:] - cross(base, parts[:3])
        torque = self._joint_torques(f, m, joints, base)
        return np.moveaxis(np.concatenate([f[0], m[0], torque]), 0, -1)

    def _joint_torques(self, f: list[np.ndarray], m: list[np.ndarray], joints: list, base: np.ndarray) -> np.ndarray:
        """Return the joint torques (n, N); add forces and moments (about the base origin) of links to those of parents.

        Afterwards f[0] and m[0] are the totals at the base.
        """
        torque = np.zeros((self.n, *f[0].shape[1:]))
        for (joint, *_), (origin, axis) in zip(reversed(self._joints), reversed(joints), strict=True):
            F, T = f[joint.child], m[joint.child]
            f[joint.parent] = f[joint.parent] + F
            m[joint.parent] = m[joint.parent] + T
            if joint.coordinate >= 0:
                component = _dot(axis, F) if joint.kind == "prismatic" else _dot(axis, T - cross(origin - base, F))
                torque[joint.coordinate] += joint.multiplier * component
        return torque

    def _fill_block(
        self,
        q: np.ndarray,
        v: np.ndarray,
        vd: np.ndarray,
        wrench: np.ndarray,
        com: np.ndarray,
        force: np.ndarray,
        pose: dict[str, tuple[np.ndarray, np.ndarray]],
        at_rest: bool,
    ) -> None:
        """Compute com, force, and pose (R, p by patch) of a block of samples; the arrays are filled in place."""
        links, origins = self._link_states(q.T, v.T, vd.T, at_rest)
        f, m = self._newton_euler(links, at_rest)
        base = links[0].p
        total = np.zeros((3, len(q)))
        for mass, c, link in zip(self.mass, self._com, links, strict=True):
            if mass:
                total += mass * (link.p + c @ link.R)
        com[:] = (total / self.mass.sum()).T
        for column, (name, (R, p)) in enumerate(pose.items()):
            patch = self._patches[name]
            link = links[patch.link]
            origin = link.p + np.array(patch.p) @ link.R
            R[:] = (np.array(patch.R).T @ link.R).transpose(2, 0, 1)
            p[:] = origin.T
            w = np.ascontiguousarray(wrench[:, column].T)
            f[patch.link] = f[patch.link] - w[:3]
            m[patch.link] = m[patch.link] - w[3:] - cross(origin - base, w[:3])
        torque = self._joint_torques(f, m, origins, base)
        force[:, :3], force[:, 3:6] = f[0].T, m[0].T
        force[:, 6:] = torque.T + self._armature * vd[:, 6:]

    def _link_states(
        self, q: np.ndarray, v: np.ndarray, vd: np.ndarray, at_rest: bool
    ) -> tuple[list["_LinkState"], list]:
        """Return the states of all links, and origin and axis of all joints in the world; samples are the last axis.

        ``at_rest`` states that v and vd are zero, so that all links have the rates of the base.
        """
        zero = np.zeros((3, q.shape[1]))
        states: list[_LinkState] = [_LinkState(rotation_of(q[3:7]), q[:3], v[3:6], vd[:3], vd[3:6])]
        states += [states[0]] * (len(self.mass) - 1)
        origins = []
        for joint, R_joint, p_joint, axis in self._joints:
            parent = states[joint.parent]
            R = np.matmul(R_joint.T, parent.R)
            arm = p_joint @ parent.R
            omega, alpha, e = parent.omega, parent.alpha, zero
            if (part := joint.part) is not None:
                first = joint.coordinate - part
                ball = BallMotion(*(x[k + first : k + first + 3] for x, k in ((q, 7), (v, 6), (vd, 6))))
                e = _rotate(R, ball.J[:, part])
                if part == LAST_BALL_PART:
                    relative_omega, relative_alpha = _rotate(R, ball.omega), _rotate(R, ball.alpha)
                    omega, alpha = omega + relative_omega, alpha + relative_alpha + cross(parent.omega, relative_omega)
                    R = np.einsum("ij...,jk...->ik...", R, ball.R)
                p = parent.p + arm
                a = parent.a + cross(parent.alpha, arm) + cross(parent.omega, cross(parent.omega, arm))
                states[joint.child] = _LinkState(R, p, omega, a, alpha)
                origins.append((p, e))
                continue
            rate: np.ndarray | float = 0.0
            if joint.coordinate >= 0:
                i = joint.coordinate
                position = joint.multiplier * q[7 + i] + joint.offset
                rate, accel = joint.multiplier * v[6 + i], joint.multiplier * vd[6 + i]
            else:
                position, accel = np.full(q.shape[1], joint.offset), 0.0
            if joint.kind != "fixed":
                e = axis @ R
                if joint.kind == "prismatic":
                    arm = arm + e * position
                else:
                    R = _rotated_about(R, axis, position)
            p, a = parent.p + arm, parent.a
            if not at_rest:
                a = a + cross(parent.alpha, arm) + cross(parent.omega, cross(parent.omega, arm))
                if joint.kind == "prismatic":
                    a = a + (2 * cross(omega, e * rate) + e * accel)
                elif joint.kind != "fixed":
                    omega = omega + e * rate
                    alpha = alpha + e * accel + cross(parent.omega, e * rate)
            states[joint.child] = _LinkState(R, p, omega, a, alpha)
            origins.append((p, e))
        return states, origins

    def _newton_euler(self, links: list["_LinkState"], at_rest: bool) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the net non-gravitational force on each link, and its moment about the base origin."""
        base = links[0].p
        zero = np.zeros_like(base)
        forces, moments = [], []
        for mass, c, inertia, link in zip(self.mass, self._com, self._inertia, links, strict=True):
            if not mass and not inertia.any():
                forces.append(zero)
                moments.append(zero)
                continue
            r = c @ link.R
            if at_rest:
                f = mass * (link.a - STANDARD_GRAVITY[:, None])
                forces.append(f)
                moments.append(cross(link.p + r - base, f))
                continue
            a = link.a + cross(link.alpha, r) + cross(link.omega, cross(link.omega, r))
            f = mass * (a - STANDARD_GRAVITY[:, None])
            spin = _rotate(link.R, inertia @ _rotate_back(link.R, link.omega))
            n = _rotate(link.R, inertia @ _rotate_back(link.R, link.alpha)) + cross(link.omega, spin)
            forces.append(f)
            moments.append(n + cross(link.p + r - base, f))
        return forces, moments


@dataclass(frozen=True, eq=False)
class _LinkState:
    """A link at N samples: R (3, 3, N) as in ``rotation_of``; position, angular velocity, accelerations (3, N)."""

    R: np.ndarray
    p: np.ndarray
    omega: np.ndarray
    a: np.ndarray
    alpha: np.ndarray


class BallMotion:
    """Rotation, angular velocity and acceleration of a ball joint, in the joint's frame.

    Parameters
    ----------
    phi, rate, second : (3, N) rotation vectors and their first and second time derivatives: rad, rad/s, rad/s².

    Attributes
    ----------
    R : (3, 3, N) rotation of the unit quaternion (cos t/2, sin t/2 phi/t) with t = |phi|; row index first.
    J : (3, 3, N) left Jacobian ``1 + a [phi] + b [phi]²`` with a = (1 - cos t) / t², b = (t - sin t) / t³.
    omega, alpha : (3, N) ``J phi'`` and ``J phi'' + J' phi'``.
    """

    def __init__(self, phi: np.ndarray, rate: np.ndarray, second: np.ndarray):
        square = np.sum(phi * phi, axis=0)
        t = np.sqrt(square)
        quat = np.concatenate([np.cos(t / 2)[None], 0.5 * np.sinc(t / (2 * np.pi)) * phi])
        self.R = rotation_of(quat)
        K, K_rate = _cross_matrix(phi), _cross_matrix(rate)
        KK = np.einsum("ij...,jk...->ik...", K, K)
        K_change = np.einsum("ij...,jk...->ik...", K, K_rate) + np.einsum("ij...,jk...->ik...", K_rate, K)
        a, small = 0.5 * np.sinc(t / (2 * np.pi)) ** 2, square < 1e-3
        safe = np.where(small, 1.0, square)
        b = np.where(small, 1 / 6 - square / 120 + square**2 / 5040, (1 - np.sinc(t / np.pi)) / safe)
        # derivatives of a, b by t²/2, as the time derivative of t²/2 is phi . phi'
        da = np.where(small, -1 / 12 + square / 180 - square**2 / 6720, (np.sinc(t / np.pi) - 2 * a) / safe)
        db = np.where(small, -1 / 60 + square / 1260 - square**2 / 60480, (a - 3 * b) / safe)
        self.J = np.eye(3)[..., None] + a * K + b * KK
        g = np.sum(phi * rate, axis=0)
        J_rate = a * K_rate + b * K_change + g * (da * K + db * KK)
        self.omega = np.einsum("ij...,j...->i...", self.J, rate)
        self.alpha = np.einsum("ij...,j...->i...", self.J, second) + np.einsum("ij...,j...->i...", J_rate, rate)


def _cross_matrix(x: np.ndarray) -> np.ndarray:
    """Return matrices (3, 3, N) with ``[x] y = x cross y`` for columns (3, N)."""
    K = np.zeros((3, 3, x.shape[1]))
    K[0, 1], K[0, 2], K[1, 2] = -x[2], x[1], -x[0]
    K[1, 0], K[2, 0], K[2, 1] = x[2], -x[1], x[0]
    return K


def rotation_of(quat_wxyz: np.ndarray) -> np.ndarray:
    """Return rotation matrices (3, 3, N) of quaternions (4, N); the first index is that of the world axis.

    The quaternion is normalised: ``R = I + 2 s [u] + 2 [u]²`` for the unit quaternion (s, u).
    """
    w, x, y, z = quat_wxyz / np.sqrt(np.sum(quat_wxyz * quat_wxyz, axis=0))
    R = np.empty((3, 3, np.shape(quat_wxyz)[1]))
    R[0, 0], R[0, 1], R[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    R[1, 0], R[1, 1], R[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    R[2, 0], R[2, 1], R[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
    return R


def quaternion_step(quat_wxyz: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Return ``exp(rotation) * quat`` (4, N): quaternions (4, N) turned by rotation vectors (3, N) in world axes."""
    half = 0.5 * np.sqrt(np.sum(rotation * rotation, axis=0))
    s, u = np.cos(half), 0.5 * np.sinc(half / np.pi) * rotation
    w, x = quat_wxyz[0], quat_wxyz[1:]
    return np.concatenate([(s * w - _dot(u, x))[None], s * x + w * u + cross(u, x)])


def pose_twist(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the logarithm (N, 6) of poses R (N, 3, 3), p (N, 3): linear, then angular part, m and rad.

    A pure rotation about an axis has no component along the other directions, whatever its angle.
    Barfoot, State Estimation for Robotics (2017), eq. 7.95b: V^-1 p = p - w x p / 2 + (1 - a cot a) w x (w x p) / |w|^2
    with a = |w| / 2.
    """
    w = rotation_vector(R)
    angle = np.linalg.norm(w, axis=-1)
    half = np.maximum(angle, 1e-3) / 2
    factor = np.where(angle < 1e-3, 1 / 12, (1 - half / np.tan(half)) / (4 * half**2))
    turn = np.cross(w, p)
    return np.concatenate([p - turn / 2 + factor[..., None] * np.cross(w, turn), w], axis=-1)


def deviation(R: np.ndarray, p: np.ndarray, selection: np.ndarray) -> np.ndarray:
    """Return the components (N, 6) of poses R (N, 3, 3), p (N, 3) along the orthonormal rows (m, 6) of a selection.

    Linear components come first. If no row has an angular part, as for a point contact, only the position counts.
    """
    S = np.reshape(selection, (-1, 6))
    twist = pose_twist(R, p) if S[:, 3:].any() else np.concatenate([p, np.zeros_like(p)], axis=-1)
    return np.asarray(twist @ S.T @ S)


def contact_deviation(contact: Any, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the deviation (N, 6) of patches at poses R (N, 3, 3), p (N, 3), in contact axes, from a contact.

    Only constrained directions count. For a rolling ball of radius r, whose link is turned by phi, the deviation is

        p - r phi x n = (x + r phi_y, y - r phi_x, z),    n = -z (normal of the support in contact axes)
    """
    if not contact.radius:
        return deviation(R, p, np.asarray(contact.selection))
    phi, offset = rotation_vector(R), np.array(p, float)
    offset[..., 0] += contact.radius * phi[..., 1]
    offset[..., 1] -= contact.radius * phi[..., 0]
    return np.concatenate([offset, np.zeros_like(offset)], axis=-1)


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return rotation vectors (N, 3) of R (N, 3, 3), rad, up to pi; computed from the largest quaternion component."""
    R = np.asarray(R)
    trace = np.trace(R, axis1=-2, axis2=-1)
    squares = np.stack([1 + trace, *(1 - trace + 2 * R[..., i, i] for i in range(3))], axis=-1)
    skew = np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], axis=-1)
    sums = R + np.swapaxes(R, -1, -2)
    columns = np.empty((*R.shape[:-2], 4, 4))  # the same quaternion four times, scaled by 4 times one of its components
    columns[..., 0, 0], columns[..., 0, 1:] = squares[..., 0], skew
    for i in range(3):
        columns[..., i + 1, 0] = skew[..., i]
        columns[..., i + 1, 1:] = sums[..., i, :]
        columns[..., i + 1, i + 1] = squares[..., i + 1]
    best = np.argmax(squares, axis=-1)
    quat = np.take_along_axis(columns, best[..., None, None], axis=-2)[..., 0, :]
    quat = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
    quat = np.where(quat[..., :1] < 0, -quat, quat)
    norm = np.linalg.norm(quat[..., 1:], axis=-1)
    angle = 2 * np.arctan2(norm, quat[..., 0])
    return quat[..., 1:] * np.where(norm > 1e-12, angle / np.where(norm > 1e-12, norm, 1.0), 2.0)[..., None]


def integrate(q: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray:
    """Return ``q + dt v`` on R³ x SO(3) x Rⁿ for configurations (N, 7+n) and velocities (N, 6+n)."""
    quat = quaternion_step(q[:, 3:7].T, dt * v[:, 3:6].T).T
    return np.concatenate([q[:, :3] + dt * v[:, :3], quat, q[:, 7:] + dt * v[:, 6:]], axis=1)


def configuration_difference(expected: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the absolute difference (k, 6+n) of configurations (k, 7+n) by rows of v, m and rad.

    A quaternion and its negative are the same rotation; all three rotational rows hold the norm of the difference.
    """
    sign = np.where(np.sum(expected[:, 3:7] * q[:, 3:7], axis=1) < 0, -1.0, 1.0)[:, None]
    rotation = 2 * np.linalg.norm(sign * expected[:, 3:7] - q[:, 3:7], axis=1)[:, None]
    difference = np.abs(expected - q)
    return np.concatenate([difference[:, :3], np.repeat(rotation, 3, axis=1), difference[:, 7:]], axis=1)


def _rotated_about(R: np.ndarray, axis: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return ``R exp([axis] angle)`` by the formula of Rodrigues; R is (3, 3, N)."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    RK = np.matmul(K.T, R)
    return R + np.sin(angle) * RK + (1 - np.cos(angle)) * np.matmul(K.T, RK)


def _rotate(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    return R[:, 0] * x[0] + R[:, 1] * x[1] + R[:, 2] * x[2]


def _rotate_back(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    return R[0] * x[0] + R[1] * x[1] + R[2] * x[2]


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross product a x b along the first axis (3, ...); `numpy.cross` takes several times as long."""
    c = np.empty(a.shape if a.shape == b.shape else (3, *np.broadcast_shapes(a.shape[1:], b.shape[1:])))
    c[0] = a[1] * b[2] - a[2] * b[1]
    c[1] = a[2] * b[0] - a[0] * b[2]
    c[2] = a[0] * b[1] - a[1] * b[0]
    return c
