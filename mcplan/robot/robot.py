"""Robot class: kinematics and dynamics; its methods check shapes, call one kernel and return new arrays."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from threading import local

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.bundle import QUATERNION_TOLERANCE, SOUND, check
from mcplan.core.rigid_body import batch
from mcplan.core.rigid_body.com import centroidal_momentum_matrix, com, com_jacobian
from mcplan.core.rigid_body.forward_dynamics import forward_dynamics
from mcplan.core.rigid_body.frame import frame_bias_acceleration, frame_jacobian, frame_pose
from mcplan.core.rigid_body.inverse_dynamics import inverse_dynamics, nonlinear_effects
from mcplan.core.rigid_body.manifold import difference, integrate
from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.tree import BALL, GRAVITY, MASS, TYPE, Tree, V, workspace, workspaces
from mcplan.errors import InputError
from mcplan.robot.anatomy import Fold, RobotScale, find_feet, find_folds, measure_sizes
from mcplan.robot.assemble import JointLimits, frame_offset
from mcplan.robot.description import Geometry, UrdfModel, joint_unit
from mcplan.robot.patch import MOUNT, Patch
from mcplan.util.arguments import describe
from mcplan.util.arrays import read_only
from mcplan.util.html_table import folded, html_of, html_table
from mcplan.util.spelling import did_you_mean


def state_array(name: str, value: ArrayLike, size: int, is_q: bool) -> np.ndarray:
    """Check and convert one state (size,) or a batch (B, size) for the kernels; copy only if necessary.

    Parameters
    ----------
    name : name of the argument, for errors.
    is_q : whether the state is a configuration, whose entries 3 to 6 are the quaternion of the base.

    Raises
    ------
    InputError
        The shape is wrong, a value is not finite, or the quaternion does not have length 1.
    """
    if (
        type(value) is np.ndarray
        and value.shape == (size,)
        and value.dtype == np.float64
        and value.flags.carray
        and check(value, is_q) == SOUND
    ):
        return value
    try:
        array = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} should be an array of {size} numbers") from None
    if array.ndim not in (1, 2) or array.shape[-1] != size:
        raise InputError(f"{name} has the shape {array.shape}; expected ({size},) or (B, {size})")
    if not np.isfinite(array).all():
        entry = np.argwhere(~np.isfinite(array))[0]
        index = ", ".join(str(i) for i in entry)
        raise InputError(f"{name}[{index}] = {array[tuple(entry)]} is not finite")
    if is_q:
        norms = np.linalg.norm(array[..., 3:7], axis=-1)
        if np.any(np.abs(norms - 1) > QUATERNION_TOLERANCE):
            length = float(norms.flat[np.argmax(np.abs(norms - 1))])
            raise InputError(f"{name}[3:7], the base quaternion w x y z, has the length {length:.9g}; expected 1")
    return array if array.flags.writeable else array.copy()


MIN_PARALLEL_BATCH = 4096
"""Minimum batch size for parallel kernels: for smaller batches, starting threads would take longer."""

IDENTITY_POSE = frame_offset(np.eye(3), np.zeros(3))
"""Pose (12,) of a body in itself."""

MAX_LISTED_NAMES = 20
"""Maximum number of names listed in an error."""


@dataclass(frozen=True, eq=False, repr=False)
class Robot:
    """A robot with a floating base, or with a fixed one (``fixed``) at the pose ``q[:7]``.

    ``q`` (nq,) consists of base position, base quaternion w x y z and joint positions; ``v`` (nv,) of linear and
    angular velocity of the base (world axes, at the base origin) and joint rates. Methods of kinematics and dynamics
    also accept batches of states along a leading axis.
    """

    name: str
    tree: Tree
    description: UrdfModel
    joint_names: tuple[str, ...]
    limits: JointLimits
    frames: Mapping[str, tuple[int, np.ndarray]]
    """By link or patch: index of its body, and its pose in the body (12,), rotation row-major and position."""
    patches: Mapping[str, Patch] = field(default_factory=dict)
    posture_table: Mapping[str, np.ndarray] = field(default_factory=dict)
    locked: Mapping[str, float] = field(default_factory=dict)
    collision_ignore: frozenset[frozenset[str]] = frozenset()
    """Pairs of links that may overlap, in addition to links connected by a joint."""
    path: Path | None = None
    digest: str = ""
    srdf_path: Path | None = None
    """The SRDF with ignored pairs and postures, if there is one."""
    srdf_postures: frozenset[str] = frozenset()
    _scratch: local = field(default_factory=local, repr=False)

    def __repr__(self) -> str:
        patches = f"{len(self.patches)} patches{', fixed base' if self.fixed else ''}"
        return f"Robot({self.name!r}, {self.n} joints, {self.mass:.4g} kg, {patches})"

    def _repr_html_(self) -> str:
        """Return tables of patches and joints for notebooks."""
        limits, patches = self.limits, self.patches.values()
        columns = zip(self.joint_names, limits.lower, limits.upper, limits.velocity, limits.torque, strict=True)
        joints = html_table(["joint", "lower", "upper", "velocity", "torque"], columns)
        return html_of(
            self,
            html_table(["patch", "link", "kind", "limb"], [(p.name, p.link, p.kind, p.limb) for p in patches]),
            f"<p>postures: {escape(', '.join(self.postures) or 'none')}</p>",
            folded(f"{self.n} joints: limits in rad, rad/s, N m (m, m/s, N where they slide)", joints),
        )

    def __getstate__(self) -> dict:
        """Exclude the scratch space, which is local to a thread."""
        return {key: value for key, value in self.__dict__.items() if key != "_scratch"}

    def __setstate__(self, state: dict) -> None:
        # unpickled arrays are writeable, but the kernels are compiled for read-only ones
        tree = Tree(*(read_only(array) for array in state["tree"]))
        frames = {name: (body, read_only(offset)) for name, (body, offset) in state["frames"].items()}
        self.__dict__.update(state | {"tree": tree, "frames": frames, "_scratch": local()})

    # -- properties -----------------------------------------------------------------------------------------------

    @cached_property
    def n(self) -> int:
        """Number of independent joint coordinates."""
        return len(self.joint_names)

    @cached_property
    def nq(self) -> int:
        """Size of ``q``: ``7 + n``."""
        return 7 + self.n

    @cached_property
    def nv(self) -> int:
        """Size of ``v``: ``6 + n``."""
        return 6 + self.n

    @property
    def fixed(self) -> bool:
        """Whether the base is fixed to the world: its patch ``fixed_base`` is always in contact.

        ``M`` and ``h`` have rows of the base nevertheless: their residual is the wrench on the base.
        """
        return MOUNT in self.patches

    @cached_property
    def mass(self) -> float:
        """Total mass, kg."""
        return float(self.tree.inertia[:, MASS].sum())

    @cached_property
    def sizes(self) -> dict[str, float]:
        """Sizes by name (m), see `mcplan.robot.anatomy.measure_sizes`."""
        return measure_sizes(self)

    @cached_property
    def scale(self) -> RobotScale:
        """Sizes relative to those of HRP-2, the reference robot of the default settings."""
        return RobotScale.of(self)

    @cached_property
    def folds(self) -> dict[str, tuple[Fold, ...]]:
        """By patch, the joints that fold its limb: knee or elbow."""
        return find_folds(self)

    def folds_of(self, patches: Iterable[str]) -> set[Fold]:
        """Return the joints that fold the limbs of the given patches."""
        return {fold for patch in patches for fold in self.folds.get(patch, ())}

    @cached_property
    def feet(self) -> dict[str, np.ndarray]:
        """Foot patches, with the positions (2,) of their origins relative to the point below the base, m."""
        return find_feet(self)

    @cached_property
    def joint_units(self) -> tuple[str, ...]:
        """Unit of each joint's position: ``m`` for prismatic joints, ``rad`` for others."""
        return tuple(joint_unit(self.description.joints[name].type) for name in self.joint_names)

    @property
    def armature(self) -> np.ndarray:
        """Reflected inertia of each joint (n,), kg m² or kg; included in ``M``."""
        return self.tree.armature[6:]

    @property
    def joint_damping(self) -> np.ndarray:
        """Viscous damping of each joint (n,), N m s/rad or N s/m."""
        return np.array([self.description.joints[name].damping for name in self.joint_names])

    @property
    def joint_friction(self) -> np.ndarray:
        """Dry friction of each joint (n,), N m or N."""
        return np.array([self.description.joints[name].friction for name in self.joint_names])

    @cached_property
    def usable_torque(self) -> np.ndarray:
        """Torque limit of each joint minus dry friction (n,), N m or N, at least a tenth of the limit.

        In a posture that needs a larger torque friction helps to hold the joint, but the joint cannot move out of it.
        """
        return np.maximum(self.limits.torque - self.joint_friction, 0.1 * self.limits.torque)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of all links of the URDF, in depth-first order."""
        return tuple(self.description.links)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of all links, then of all patches."""
        return tuple(self.frames)

    @property
    def geometry(self) -> dict[str, tuple[Geometry, ...]]:
        """Shapes of each link, by name."""
        return {name: link.geometry for name, link in self.description.links.items()}

    @property
    def urdf_path(self) -> Path:
        """Path of the URDF file."""
        return self.description.path

    @property
    def postures(self) -> tuple[str, ...]:
        """Names of the postures."""
        return tuple(self.posture_table)

    def posture(self, name: str) -> np.ndarray:
        """Return the named posture as ``q`` (nq,)."""
        return self._lookup("posture", name, self.posture_table).copy()

    @property
    def ball_columns(self) -> tuple[int, ...]:
        """Joint index of the first of the three coordinates of each ball joint: a rotation vector, rad."""
        return tuple(int(row[V]) - 6 for row in self.tree.topology if row[TYPE] == BALL)

    def neutral(self) -> np.ndarray:
        """Return ``q`` (nq,) with the base at the world's origin and every joint at zero, or at its nearest limit."""
        q = np.zeros(self.nq)
        q[3] = 1.0
        q[7:] = np.clip(0.0, self.limits.lower, self.limits.upper)
        return q

    def random_configuration(self, seed: int | np.random.Generator = 0) -> np.ndarray:
        """Return a random ``q``: base within 1 m of the origin in each axis, any orientation, joints in their limits.

        A missing limit is replaced by one at a distance of pi from the other limit, or from zero. A fixed base is at
        the origin.
        """
        random = np.random.default_rng(seed)
        q = np.empty(self.nq)
        q[:3] = random.uniform(-1, 1, 3)
        quat = random.normal(size=4)
        q[3:7] = quat / np.linalg.norm(quat)
        lower, upper = self.limits.lower, self.limits.upper
        low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0) - np.pi)
        high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower, 0) + np.pi)
        q[7:] = random.uniform(low, high)
        if self.fixed:
            q[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
        return q

    def frame(self, name: str) -> tuple[int, np.ndarray]:
        """Return the index of the body that carries a link or patch, and the pose of the link or patch in it (12,)."""
        return self._lookup("link or patch", name, self.frames)

    # -- kinematics and dynamics ----------------------------------------------------------------------------------

    def mass_matrix(self, q) -> np.ndarray:
        """Return the mass matrix ``M`` (nv, nv), armature included."""
        return self._call(mass_matrix, batch.mass_matrix, (self.nv, self.nv), q=q)

    def nonlinear_effects(self, q, v) -> np.ndarray:
        """Return ``h`` (nv,): Coriolis, centrifugal and gravity forces in ``M vd + h = force``."""
        return self._call(nonlinear_effects, batch.nonlinear_effects, (self.nv,), q=q, v=v)

    def inverse_dynamics(self, q, v, vd) -> np.ndarray:
        """Return the generalized force ``M vd + h`` (nv,)."""
        return self._call(inverse_dynamics, batch.inverse_dynamics, (self.nv,), q=q, v=v, vd=vd)

    def forward_dynamics(self, q, v, tau) -> np.ndarray:
        """Return ``vd = M^-1 (S' tau - h)`` (nv,) under joint torques (n,).

        ``tau`` may also be a generalized force (nv,), with a part on the base. For a fixed base only the rows of the
        joints are solved.
        """
        if self.fixed:

            def joints(tree, q, v, force, work, out):
                net_force = force - self.nonlinear_effects(q, v)
                out[:6], out[6:] = 0.0, np.linalg.solve(self.mass_matrix(q)[6:, 6:], net_force[6:])

            return self._call(joints, None, (self.nv,), q=q, v=v, tau=self._generalized(tau))

        def one(tree, q, v, force, work, out):
            forward_dynamics(tree, q, v, force, work, np.empty((self.nv, self.nv)), out)

        def many(tree, q, v, force, work, out):
            batch.forward_dynamics(tree, q, v, force, work, np.empty((len(work), self.nv, self.nv)), out)

        return self._call(one, many, (self.nv,), q=q, v=v, tau=self._generalized(tau))

    def com(self, q) -> np.ndarray:
        """Return the centre of mass (3,) in the world, m."""
        return self._call(com, batch.com, (3,), q=q)

    def gravity_torque(self, q) -> np.ndarray:
        """Return ``g`` (nv,), the generalized force that supports the weight: ``m g_0 J_com' e_z`` (S4), N and N m."""
        return self.mass * GRAVITY * self.com_jacobian(q)[..., 2, :]

    def com_jacobian(self, q) -> np.ndarray:
        """Return the Jacobian ``J`` (3, nv) of the centre of mass c: ``dc/dt = J v``."""

        def one(tree, q, work, out):
            com_jacobian(tree, q, work, np.empty(3), out)

        def many(tree, q, work, out):
            batch.com_jacobian(tree, q, work, np.empty((len(q), 3)), out)

        return self._call(one, many, (3, self.nv), q=q)

    def centroidal_momentum_matrix(self, q) -> np.ndarray:
        """Return ``A`` (6, nv): ``A v`` is the linear momentum and the angular momentum about the centre of mass."""
        return self._call(centroidal_momentum_matrix, batch.centroidal_momentum_matrix, (6, self.nv), q=q)

    def frame_pose(self, q, name: str) -> np.ndarray:
        """Return the pose ``X_WF`` (4, 4) of a link or patch."""
        return self._call(frame_pose, batch.frame_pose, (4, 4), *self.frame(name), q=q)

    def body_pose(self, q, body: int) -> np.ndarray:
        """Return the pose (4, 4) of a body of the tree: the frame of the link that its joint moves."""
        return self._call(frame_pose, batch.frame_pose, (4, 4), body, IDENTITY_POSE, q=q)

    def frame_jacobian(self, q, name: str) -> np.ndarray:
        """Return ``J`` (6, nv): ``J v`` is the linear and angular velocity at the frame's origin, world axes."""
        return self._call(frame_jacobian, batch.frame_jacobian, (6, self.nv), *self.frame(name), q=q)

    def frame_bias_acceleration(self, q, v, name: str) -> np.ndarray:
        """Return ``Jdot v`` (6,): the classical acceleration of the frame at ``vd = 0``."""
        kernels = frame_bias_acceleration, batch.frame_bias_acceleration
        return self._call(*kernels, (6,), *self.frame(name), q=q, v=v)

    def integrate(self, q, v, dt: float) -> np.ndarray:
        """Return the configuration (nq,) reached from ``q`` by the constant velocity ``v`` in the time ``dt`` (s)."""
        try:
            dt = float(dt)
        except (TypeError, ValueError):
            raise InputError(f"dt = {describe(dt)}; expected a number of seconds") from None
        if not np.isfinite(dt):
            raise InputError(f"dt = {dt} is not finite")

        def one(tree, q, v, work, out):
            integrate(q, v, dt, out)

        return self._call(one, None, (self.nq,), q=q, v=v)

    def difference(self, q0, q1) -> np.ndarray:
        """Return ``v`` (nv,) with ``integrate(q0, v, 1) = q1``."""

        def one(tree, q0, q1, work, out):
            difference(q0, q1, out)

        return self._call(one, None, (self.nv,), q0=q0, q1=q1)

    # -- argument checks and kernel calls -------------------------------------------------------------------------

    def _call(
        self, kernel: Callable, batch_kernel: Callable | None, shape: tuple[int, ...], *frame, **arguments
    ) -> np.ndarray:
        """Check the arguments; return the output of ``kernel`` by state, or of ``batch_kernel`` for large batches.

        ``frame`` are further arguments after the states: the body of a frame, and the pose of the frame in it (12,).
        """
        arrays = [self._checked(name, value) for name, value in arguments.items()]
        batches = {array.shape[0] for array in arrays if array.ndim == 2}
        if not batches:
            out = np.empty(shape)
            kernel(self.tree, *arrays, *frame, self._work(), out)
            return out
        if len(batches) > 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(arguments, arrays, strict=True))
            raise InputError(f"the leading axes differ: {shapes}")
        (size,) = batches
        out = np.empty((size, *shape))
        batched = [array if array.ndim == 2 else np.tile(array, (size, 1)) for array in arrays]
        if batch_kernel is None or size < MIN_PARALLEL_BATCH:
            tree, work = self.tree, self._work()
            for *state, row in zip(*batched, out, strict=True):
                kernel(tree, *state, *frame, work, row)
        else:
            batch_kernel(self.tree, *batched, *frame, self._workspaces(), out)
        return out

    def _generalized(self, tau) -> np.ndarray:
        """Return the generalized force of joint torques; a generalized force is returned unchanged."""
        array = np.asarray(tau)
        if array.ndim in (1, 2) and array.shape[-1] == self.n:
            return np.concatenate([np.zeros((*array.shape[:-1], 6)), array], axis=-1)
        return array

    def _checked(self, name: str, value) -> np.ndarray:
        is_q = name.startswith("q")
        return state_array(name, value, self.nq if is_q else self.nv, is_q)

    def _work(self):
        if not hasattr(self._scratch, "work"):
            self._scratch.work = workspace(self.tree)
        return self._scratch.work

    def _workspaces(self):
        if not hasattr(self._scratch, "workspaces"):
            self._scratch.workspaces = workspaces(self.tree, os.cpu_count() or 1)
        return self._scratch.workspaces

    def _lookup(self, kind: str, name: str, table: Mapping):
        if name not in table:
            omitted = f", and {len(table) - MAX_LISTED_NAMES} more" if len(table) > MAX_LISTED_NAMES else ""
            hint = did_you_mean(str(name), table) or f"; it has {', '.join(list(table)[:MAX_LISTED_NAMES])}{omitted}"
            raise InputError(f"robot {self.name!r} has no {kind} {name!r}{hint}")
        return table[name]
