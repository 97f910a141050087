"""Physics ``contact``: rigid-body dynamics with Coulomb contacts, driven by joint torques."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.contact.bundle import pack_constants, pack_variables
from mcplan.core.contact.model import (
    ANCHOR,
    BOUNCE_SPEED,
    CAPACITY,
    COMPLIANCE,
    IS_FREE,
    IS_HELD,
    IS_SOFT,
    LAW_SIZE,
    MAX_WRENCH,
    RECOVERY,
    RECOVERY_SPEED,
    RESTITUTION,
    SPRING_DAMPING,
    SPRING_STIFFNESS,
    contact_table,
    exchange,
    scratch,
)
from mcplan.core.contact.step import contact_step
from mcplan.core.rigid_body.free_bodies import move_to_frames
from mcplan.errors import InputError, SimulationFailed
from mcplan.record.world import World, closing_grasp
from mcplan.robot.patch import MOUNT
from mcplan.robot.pose import quat_from_rotation
from mcplan.robot.robot import Robot
from mcplan.robot.solid import shape_inertia
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.simulation import ContactLaw, SimulationSettings
from mcplan.sim.contact.pack import object_poses_at_com, pack_scene
from mcplan.sim.physics import Action, PointForces, StepOutcome, action_of
from mcplan.sim.touching_patch import active_mask
from mcplan.util.arrays import read_only
from mcplan.util.text import summary


def law_array(settings: ContactLaw) -> np.ndarray:
    """Return the parameters (LAW_SIZE,) of a contact law in the order of the kernels, read-only."""
    law = np.zeros(LAW_SIZE)
    law[[COMPLIANCE, RECOVERY, RECOVERY_SPEED]] = settings.compliance, settings.recovery, settings.recovery_speed
    law[[RESTITUTION, BOUNCE_SPEED]] = settings.restitution, settings.bounce_speed
    law[[IS_SOFT, SPRING_STIFFNESS, SPRING_DAMPING]] = float(settings.soft), settings.stiffness, settings.damping
    return read_only(law)


class ContactPhysics:
    """Robot and free objects with Coulomb contacts in an environment, driven by joint torques.

    Parameters
    ----------
    robot, environment : the robot, and its environment with free objects.
    q : (7+n,) initial configuration.
    patches : names of the recorded patches, in the order of the record; None: all patches of the robot.
    settings : settings of contacts and joints; None: the defaults.
    v : (6+n,) initial velocity; None: at rest.
    contacts : planned contacts; their friction, force limits and free directions apply whenever the same patch and
        support touch. For several contacts of one such pair see ``pair_frictions`` and ``closing_grasp``.

    Attributes
    ----------
    q, v : state of the robot.
    object_q, object_v : (O, 7), (O, 6) pose and velocity of the objects' frames, world axes.
    t : time, s.
    centre_q, centre_v : (O, 7), (O, 6) pose and velocity of the objects' centres of mass, world axes.
    contact_count, iterations : number of contacts and of Newton iterations in the last step.
    converged : whether the fixed point of Coulomb's law was found in the last step.
    """

    name = "contact"

    __repr__ = summary

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        q: np.ndarray,
        patches: Sequence[str] | None = None,
        settings: SimulationSettings | None = None,
        v: np.ndarray | None = None,
        contacts: Iterable[Contact] = (),
    ):
        self.robot, self.environment, self.settings = robot, environment, settings or SimulationSettings()
        self.patches = tuple(robot.patches if patches is None else patches)
        self.q = np.array(q, float)
        self.v = np.zeros(robot.nv) if v is None else np.array(v, float)
        self.t = 0.0
        contacts = tuple(contacts)
        self.scene = pack_scene(robot, environment, self.patches, self.settings, self.q, contacts)
        self._planned_grasps = [contact for contact in contacts if contact.kind == "grasp"]
        object_poses = object_poses_at_com(environment)
        offsets = [shape_inertia(thing.shape, thing.mass)[0] for thing in environment.objects]
        self._com_offsets = np.array(offsets, float).reshape(-1, 3)
        constants = pack_constants(robot.tree, self.scene, law_array(self.settings.contact))
        exchanged = exchange(robot.tree, len(self.patches), len(object_poses))
        variables, exchanged, self._contacts = pack_variables(
            exchanged, scratch(self.scene, robot.nv), contact_table(self.scene)
        )
        self._bundles = *constants, *variables
        self.grasps, self.centre_q, self.centre_v = exchanged.grasp, exchanged.object_q, exchanged.object_v
        self._tau, self._force, self._active = exchanged.tau, exchanged.force, exchanged.active
        self._vd, self._wrench, self._tau_ext = exchanged.vd, exchanged.wrench, exchanged.tau_ext
        self._counts = exchanged.counts
        self._active_patches: tuple[str, ...] = ()
        self._is_pushed = False
        self._held = b""
        self._labels = read_only(np.empty((0, 2), np.int64))
        self._touching: dict[str, int] = {}
        self._touching_patches: tuple[str, ...] = ()
        self.centre_q[:] = np.array([[*p, *quat_from_rotation(R)] for R, p in object_poses]).reshape(-1, 7)
        grips = [name for name in self.patches if robot.patches[name].kind == "grasp"]
        self._grip_names = [name for name in grips if name != MOUNT]
        self._has_grasps = bool(grips)
        if robot.fixed:
            self._hold(MOUNT, self.q, (np.inf, np.inf))

    @classmethod
    def of_world(cls, world: World) -> "ContactPhysics":
        """Return the back end of a world."""
        arguments = (world.robot, world.environment, world.q, world.patches, world.settings)
        return cls(*arguments, contacts=world.contacts)

    @property
    def contact_count(self) -> int:
        """Number of contacts in the last step."""
        return int(self._counts[0])

    @property
    def iterations(self) -> int:
        """Number of Newton iterations in the last step."""
        return int(self._counts[1])

    @property
    def converged(self) -> bool:
        """Whether the fixed point of Coulomb's law was found in the last step."""
        return bool(self._counts[5])

    def step(self, action: Action | ArrayLike, dt: float = 1e-3) -> StepOutcome:
        """Advance the state by dt (s) under an action or under joint torques (n,)."""
        if not isinstance(action, Action):
            action = action_of(action, self.robot.n)
        if self._grip_names:
            self._update_grasps(action.active)
        self.q, self.v = self.q.copy(), self.v.copy()
        self._tau[:] = action.tau
        if action.external is not None or self._is_pushed:
            self._is_pushed = action.external is not None
            self._force[: self.robot.nv] = action.external if self._is_pushed else 0.0
        if (active := tuple(action.active)) is not self._active_patches:
            self._active_patches, self._active[:] = active, active_mask(self.patches, active)
        contact_step(*self._bundles, float(dt), self.q, self.v)
        self.t += dt
        return self._outcome()

    def _outcome(self) -> StepOutcome:
        _, _, count, finite, lost, _, is_changed = self._counts.tolist()
        held = self.grasps[:, IS_HELD].tobytes() if self._has_grasps else b""
        if is_changed or held != self._held:
            self._held, self._labels = held, read_only(self._contacts.report_index[:count].copy())
            touching = {*self._labels[:, 1].tolist(), *np.flatnonzero(self.grasps[:, IS_HELD]).tolist()}
            self._touching = {name: p for p, name in enumerate(self.patches) if p in touching}
            self._touching_patches = tuple(self._touching)
        if lost:
            raise SimulationFailed(
                f"more than {CAPACITY} simultaneous contacts at t = {self.t:g} s, the limit of physics contact",
                "too many contacts",
            )
        if not finite:
            raise SimulationFailed(f"the state of physics contact is not finite at t = {self.t:g} s", "not a number")
        wrench = self._wrench.copy()
        wrenches = {name: wrench[p] for name, p in self._touching.items()}
        points = PointForces(self._labels, read_only(self._contacts.report[:count].copy()))
        vd, tau_ext = self._vd.copy(), self._tau_ext.copy()
        return StepOutcome(vd, tau_ext, wrenches, points, self._touching_patches, None, wrench)

    def _update_grasps(self, active: Iterable[str]) -> None:
        """Close the active grasps on bars within reach; open the others."""
        for name in self._grip_names:
            row = self.grasps[self.patches.index(name)]
            if name not in active:
                row[IS_HELD] = 0.0
            elif row[IS_HELD] == 0.0 and (bar := self._within_reach(name)) is not None:
                planned_grasps = [
                    contact for contact in self._planned_grasps if (contact.patch, contact.support) == (name, bar)
                ]
                grasp = closing_grasp(planned_grasps, self.robot.frame_pose(self.q, name)[:3, 3])
                limits = grasp or self.robot.patches[name]
                self._hold(name, self.q, (limits.max_force, limits.max_moment))
                row[IS_FREE : IS_FREE + 6] = 0.0 if grasp is None else ~grasp.selection.any(axis=0)

    def _hold(self, name: str, q: np.ndarray, limits: tuple[float, float]) -> None:
        """Hold a patch at its pose at q, with limits of force (N) and moment (N m)."""
        if name not in self.patches:
            raise InputError(f"physics contact: patch {name} of {self.robot.name} is not in `patches`")
        row, X = self.grasps[self.patches.index(name)], self.robot.frame_pose(q, name)
        row[IS_HELD] = 1.0
        row[ANCHOR : ANCHOR + 9], row[ANCHOR + 9 : ANCHOR + 12] = X[:3, :3].ravel(), X[:3, 3]
        row[MAX_WRENCH : MAX_WRENCH + 2] = limits

    def _within_reach(self, name: str) -> str | None:
        """Return the name of the nearest bar within reach of the patch."""
        p = self.robot.frame_pose(self.q, name)[:3, 3]
        best_bar, min_gap = None, self.settings.contact.grasp_reach
        for bar in self.environment.bars:
            along = np.clip((p - bar.ends[0]) @ bar.direction, 0.0, bar.length)
            gap = float(np.linalg.norm(p - bar.ends[0] - along * bar.direction)) - bar.radius
            if gap <= min_gap:
                best_bar, min_gap = bar.name, gap
        return best_bar

    @property
    def object_q(self) -> np.ndarray:
        """Poses (O, 7) of the frames of the objects."""
        return self._object_state()[0]

    @property
    def object_v(self) -> np.ndarray:
        """Velocities (O, 6) of the frames of the objects, linear then angular, world axes."""
        return self._object_state()[1]

    def _object_state(self) -> tuple[np.ndarray, np.ndarray]:
        """Return poses and velocities of the frames of the objects."""
        q, v = self.centre_q.copy(), self.centre_v.copy()
        move_to_frames(self._com_offsets, q, v, np.empty((3, 3)))
        return q, v
