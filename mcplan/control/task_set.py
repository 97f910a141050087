"""Tasks and contact constraints of the whole-body program, updated from the references at each tick."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mcplan.control.avoidance import Avoidance
from mcplan.control.command import LoadedContact, Ramp
from mcplan.control.handled import HandledObjects
from mcplan.control.held_contacts import HeldContacts
from mcplan.control.motion import Motion
from mcplan.core.motion.reference import write_body
from mcplan.motion.limb_path import Pose
from mcplan.motion.pendulum import Pendulum, lowest
from mcplan.motion.time_parameterization import PathTiming
from mcplan.robot.robot import Robot
from mcplan.robot.system import SystemTerms
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.packed import is_unchanged
from mcplan.whole_body.pool import ProblemPool
from mcplan.whole_body.priorities import PrioritisedQP
from mcplan.whole_body.rows.forces import TorqueBand, torque_steps
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.solution import Solution
from mcplan.whole_body.tasks.com import AngularMomentumTask, ComTask
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.tasks.task import Task, damping, unknown_of
from mcplan.whole_body.whole_body import WholeBodyQP

NO_GAINS: Mapping[str, float] = {}
"""No changes of weights and gains."""

NO_CURVE = np.zeros(1), np.zeros(0), np.zeros((0, 6, 3)), np.zeros((2, 3, 3))
"""Arguments of ``core.motion.reference.sample_curve`` without a curve."""

NO_LAW = np.zeros(0), np.zeros((0, 7)), np.zeros(2)
"""Arguments of ``core.motion.reference.sample_law`` without a common time parameterization."""

STIFFNESS_RETURN_S = 0.5
"""Time in which the contact stiffness returns after it was dropped (s). Preloads stay dropped for this time, and return
within as long."""

MIN_STIFFNESS_SHARE = 0.02
"""Fraction of the contact stiffness below which there is nothing to drop."""

COM_ACCELERATION_TOLERANCE = 0.2
"""Tolerated error of the CoM acceleration (m/s²)."""

PRELOAD_COST_FRACTION = 0.2
"""Preloads are dropped if that lowers the cost of the program by more than this fraction of the cost of the CoM error.
Example: a hand that pushes a bar with 10 N takes half of the balancing force of a robot on one foot."""

TORQUE_RATE_FACTOR = 4.0 / 3.0
"""Factor on the torque rate limit if the program is infeasible, for example by hundredths of a N m."""

POSTURE_INERTIA_KG_M2 = 0.2
"""The posture weight of a joint is proportional to its effective inertia above this inertia."""

GRIP_FRICTION_FRACTION = 0.5
"""Usable fraction of the friction of compliant contacts that hold an object in the air: a smaller one makes a firmer
grip, which also keeps the object from turning about the line through two hands."""

VELOCITY_FRACTION = 0.99
"""Usable fraction of the joint velocity limits with compliant contacts: accelerations differ slightly from those of the
program."""

AIR_ORIENTATION_WEIGHT = 1e-5
"""Orientation weight of a limb in the air relative to one in contact: less than that of the posture."""


class TaskSet:
    """Tasks, contact constraints and quadratic programs of the controller, which persist from step to step.

    Parameters
    ----------
    robot : Robot
    environment : obstacles and supports.
    settings : gains, weights and the solver.
    dt : control period (s).
    q : (7+n,) posture for the effective inertia of the joints.
    objects : objects handled by the robot.
    further : user-defined tasks, in addition to those of the plan.
    extra : user-defined terms in CVXPY (`whole_body.declaration.Extra`).
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: ControlSettings,
        dt: float,
        q: np.ndarray,
        objects: HandledObjects,
        further: Sequence[Task] = (),
        extra: Extra | None = None,
    ):
        s = self.settings = self._base_settings = settings
        self._patches = list(robot.patches)
        self._gains: Mapping[str, float] = NO_GAINS
        self.com = ComTask(s.weights.com, s.gains.com_kp)
        self.trunk = LinkPoseTask(robot.link_names[0], position=False, weight=s.weights.trunk, kp=s.gains.trunk_kp)
        # without the inertia a light pull at a hand would move the chest (long lever) before the arm
        self._inertia = np.maximum(1.0, np.diag(robot.mass_matrix(q))[6:] / POSTURE_INERTIA_KG_M2)
        self.posture = PostureTask(q[7:], s.weights.posture * self._inertia, s.gains.posture_kp)
        self.posture.priority = s.posture_priority
        self.momentum = AngularMomentumTask(s.weights.angular_momentum, s.gains.angular_momentum_kd)
        self.limbs: dict[str, LinkPoseTask] = {}
        self._limb_weights: dict[str, tuple[float, float]] = {}
        self.body = _BodyReferences(self, robot.scale.leg)
        self._bar_tasks: dict[str, LinkPoseTask] = {}
        self.objects = objects
        self.further: tuple[Any, ...] = tuple(further)
        self.avoidance = Avoidance(robot, environment, s, dt) if s.avoidance.pairs else None
        self._limits = (self.avoidance,) if self.avoidance else ()
        self.held = HeldContacts(s, objects)
        self._dt, self.torque_steps = dt, dt * torque_steps(robot, s.gains.torque_rate)
        self.preload_drop_time = -np.inf
        self.previous: Solution | None = None
        self._cached_tasks: tuple[tuple, tuple[Task, ...]] = ((), ())
        self._inputs: tuple[tuple[ContactConstraint, ...], tuple[Task, ...]] = ((), ())
        self.torque_band: TorqueBand | None = None
        self.problem: WholeBodyQP | PrioritisedQP
        self.pool = ProblemPool(
            objects.system if objects else robot,
            QPSettings(
                dt=dt,
                solver=s.solver,
                form=s.form,
                velocity_fraction=VELOCITY_FRACTION if s.compliant else 1.0,
                # as hard as the planned motion brakes: less would disturb it near a limit
                limit_deceleration=QPSettings.limit_deceleration
                if s.pace is None
                else min(s.pace.acceleration, QPSettings.max_limit_acceleration),
                force_weight=s.weights.force,
                force_rate_weight=s.weights.force_rate,
                torque_band=s.gains.torque_rate > 0.0,
            ),
            extra,
        )

    def declare(
        self,
        contacts: Sequence[Contact],
        limbs: Iterable[str],
        terms: Terms,
        supports: Sequence[ContactConstraint] = (),
        objects: Sequence[Task] = (),
    ) -> None:
        """Declare and compile the program of contacts and swinging limbs before the run: too slow for a tick.

        ``supports`` and ``objects`` are the contacts of objects with their supports, and the tasks of those that move.
        After a slip it happens in the first tick that needs the program.
        """
        contacts = sorted(contacts, key=lambda contact: self._patches.index(contact.patch))  # as in `Motion`
        loaded = [LoadedContact(contact, Ramp(0.0, 0.0, 0.0, 0.0), 0.0) for contact in contacts]
        constraints = [*(self.held.close(closed) for closed in loaded), *supports]
        tasks = [*self._tasks(limbs, contacts), *objects]
        problem = self.pool.get(constraints, tasks, self._limits)
        if isinstance(problem, WholeBodyQP):
            problem.bind(terms, constraints, tasks, self._limits)
        if self.avoidance:
            self.avoidance.cache_fixed_pairs(contacts)

    def rehearse(self, terms: Terms, motion: Motion) -> None:
        """Solve without effect, to load the compiled kernels before the run; at rest the second time takes others."""
        for _ in range(2):
            self.follow(0.0, terms, motion)
            self.solve(0.0, terms, motion)
        self.pool.rehearse()

    def forget(self) -> None:
        """Forget the last tick, after a rehearsal."""
        self.previous = None
        self.held.scale_stiffness(1.0)

    def follow(self, t: float, terms: Terms, motion: Motion, gains: Mapping[str, float] = NO_GAINS) -> float:
        """Write the references at time t (s) into the tasks; return the capture-point error (m).

        ``gains`` override weights and gains of the settings.
        """
        if gains != self._gains:
            self._apply_gains(gains)
        error = self.body.write(t, terms, motion)
        self.follow_limbs(t, motion)
        return error

    def follow_limbs(self, t: float, motion: Motion) -> None:
        """Write the references of limbs at time t (s) into their tasks."""
        weight = self.settings.weights.limb
        for patch, path in motion.limbs.items():
            task = self._limb(patch)
            tightness = path.write(t, task.reference)
            weights = weight, weight * AIR_ORIENTATION_WEIGHT ** (1.0 - tightness)
            if weights != self._limb_weights.get(patch):
                task.weight[:3], task.weight[3:] = self._limb_weights[patch] = weights

    def solve(
        self,
        t: float,
        terms: Terms,
        motion: Motion,
        planned: Mapping[str, np.ndarray] | None = None,
        steady: bool = True,
    ) -> Solution:
        """Update contacts and limits to time t, and solve the program for the state in ``terms``; `follow` goes before.

        ``planned`` are force references by patch. If the state is not ``steady``, torques may jump.

        If the program is infeasible, constraints are relaxed in this order: the torque rate limit is raised, then
        dropped; preloads are dropped for a while; the contact stiffness is dropped and returns gradually (contacts that
        drift by fractions of a millimetre may demand contradictory accelerations). Contact damping stays.
        """
        contacts, tasks, poses = self.prepare(t, terms, motion)
        for limit in self._limits:
            limit.update(terms, motion, poses)
        self.bound_torques(steady)
        inputs = contacts, tasks
        if self.further or not is_unchanged(inputs, self._inputs):  # priorities of a user's task may change
            self._inputs = inputs
            self.problem = self.pool.get(contacts, tasks, self._limits)
        return self.complete(t, terms, planned, self._attempt(terms, planned))

    def prepare(
        self, t: float, terms: Terms, motion: Motion
    ) -> tuple[tuple[ContactConstraint, ...], tuple[Task, ...], Mapping[str, Pose] | None]:
        """Return contacts and tasks at time t (s), the same tuples until one changes, and the poses of objects."""
        if self.held.stiffness_share < 1.0:
            self.held.scale_stiffness(min(1.0, self.held.stiffness_share + self._dt / STIFFNESS_RETURN_S))
        self.held.preload_share, grip_share = self.shares(t, motion)
        for task in self.further:
            if (follow := getattr(task, "follow", None)) is not None:
                follow(t)
        if (key := (motion.closed, *motion.limbs)) != self._cached_tasks[0]:
            self._cached_tasks = key, tuple(self._tasks(motion.limbs, motion.closed))
        tasks = self._cached_tasks[1]
        contacts = self.held.fill_all(t, motion, terms, grip_share)
        poses = None
        if isinstance(terms, SystemTerms):
            for constraint, loaded in zip(contacts, motion.contacts.values(), strict=True):
                self.objects.move_with_object(constraint, loaded, terms)
                if (carrier := self.objects.carrier(loaded.contact)) is not None:
                    is_held, s = carrier in motion.held_objects, self.settings
                    share = s.contact.friction_fraction
                    if is_held and s.compliant:
                        share = GRIP_FRICTION_FRACTION
                    constraint.friction = share * min(loaded.contact.friction, loaded.friction)
            tasks = (*tasks, *self.objects.tasks(t, motion))
            tasks = self._inputs[1] if is_unchanged(tasks, self._inputs[1]) else tasks
            contacts = (*contacts, *self.objects.supports(t, motion, terms))
            poses = self.objects.poses
        # the same tuple: neither pool nor program look at its items again
        return self._inputs[0] if is_unchanged(contacts, self._inputs[0]) else contacts, tasks, poses

    def shares(self, t: float, motion: Motion) -> tuple[float, float]:
        """Return the fractions of preloads and of the limits of grips that apply at time t (s)."""
        drop = min(max((t - self.preload_drop_time) / STIFFNESS_RETURN_S - 1.0, 0.0), 1.0)
        return motion.preload_share(t) * drop, motion.grip_share(t)

    def is_settled(self, t: float, motion: Motion) -> bool:
        """Whether from time t (s) on stiffness, preloads and force limits of contacts are constant."""
        is_whole = self.held.stiffness_share == 1.0 and t >= self.preload_drop_time + 2.0 * STIFFNESS_RETURN_S
        return is_whole and self.held.is_settled and t >= motion.shares_end_time

    def complete(
        self, t: float, terms: Terms, planned: Mapping[str, np.ndarray] | None, solution: Solution | None
    ) -> Solution:
        """Return the solution, without one that of the relaxed program, and keep it for the next tick."""
        solution = solution or self._attempt_relaxed(t, terms, planned) or self.problem.solve()
        self.previous = solution
        return solution

    def bound_torques(self, steady: bool) -> None:
        """Bound the rate of the torques in this tick, if the settings do and the state is ``steady``."""
        is_bounded, last = self.bounds_torques(steady), self.previous
        self.torque_band = TorqueBand(last.tau, self.torque_steps) if is_bounded and last is not None else None

    def bounds_torques(self, steady: bool) -> bool:
        """Return whether the rate of the torques is bounded in this tick."""
        return steady and self.settings.gains.torque_rate > 0.0

    @property
    def contacts(self) -> tuple[ContactConstraint, ...]:
        """Contacts of the last program."""
        return self._inputs[0]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Tasks of the last program."""
        return self._inputs[1]

    def _attempt(self, terms: Terms, planned: Mapping[str, np.ndarray] | None) -> Solution | None:
        """Fill and solve the program of the present contacts and tasks."""
        contacts, tasks = self._inputs
        return self.problem.update_and_attempt(
            terms, contacts, tasks, self.previous, self._limits, planned, self.torque_band
        )

    def _attempt_relaxed(self, t: float, terms: Terms, planned: Mapping[str, np.ndarray] | None) -> Solution | None:
        """Relax constraints in the order of `solve` until the program has a solution; return None if it has none."""
        for relax in (self._widen_torque_band, self._drop_torque_band, self._drop_preloads, self._drop_stiffness):
            if relax(t) and (solution := self._attempt(terms, planned)) is not None:
                return solution
        return None

    def put_balance_first(self, t: float, terms: Terms, solution: Solution) -> bool:
        """Drop the preloads for a while from time t (s) on if they disturb the balance; return whether they do.

        They do so if the last solution misses part of the CoM acceleration, and would cost much less without preloads.
        """
        A, target = self.com.rows(terms)
        com_error = A @ solution.vd - target
        com_cost = float(self.com.weight @ com_error**2)
        is_disturbed = (
            float(np.linalg.norm(com_error)) > COM_ACCELERATION_TOLERANCE
            and self.problem.preload_price() > PRELOAD_COST_FRACTION * com_cost
        )
        if is_disturbed:
            self.preload_drop_time = t
        return is_disturbed

    def _tasks(self, limbs: Iterable[str], closed: Sequence[Contact]) -> list[Task]:
        """Return all tasks, for the swinging patches ``limbs`` and the closed contacts."""
        patches = {contact.patch for contact in closed}
        plan_tasks: list[Task] = [self.com, self.trunk, self.posture, self.momentum, *map(self._limb, limbs)]
        # force tasks need a closed contact
        further = [task for task in self.further if unknown_of(task) != "force" or task.patch in patches]
        return [*plan_tasks, *further, *(self._bar_task(contact) for contact in closed if contact.rolls)]

    def _limb(self, patch: str) -> LinkPoseTask:
        """Return the task of a swinging limb."""
        if patch not in self.limbs:
            self.limbs[patch] = LinkPoseTask(patch, weight=self.settings.weights.limb, kp=self.settings.gains.limb_kp)
        return self.limbs[patch]

    def _widen_torque_band(self, t: float) -> bool:
        """Raise the torque rate limit; return whether there is one."""
        if self.torque_band is None:
            return False
        self.torque_band = self.torque_band._replace(step=TORQUE_RATE_FACTOR * self.torque_band.step)
        return True

    def _drop_torque_band(self, t: float) -> bool:
        """Drop the torque rate limit; return whether there was one."""
        bounded, self.torque_band = self.torque_band is not None, None
        return bounded

    def _drop_preloads(self, t: float) -> bool:
        """Drop the preloads of contacts from time t (s) on; return whether there were any."""
        contacts = self.contacts
        has_preload = any(contact.preload > 0.0 for contact in contacts)
        if has_preload:
            self.preload_drop_time = t
            for contact in contacts:
                contact.preload = 0.0
        return has_preload

    def _drop_stiffness(self, t: float) -> bool:
        """Drop the contact stiffness; return whether there was any."""
        if self.held.stiffness_share <= MIN_STIFFNESS_SHARE:
            return False
        self.held.scale_stiffness(0.0)
        return True

    def _apply_gains(self, gains: Mapping[str, float]) -> None:
        """Override weights and gains, by their keys in the settings."""
        self._gains, s = gains, self._base_settings.updated(gains)
        self.settings = s
        self.com.weight, self.trunk.weight = s.weights.com, s.weights.trunk
        self.posture.weight = s.weights.posture * self._inertia
        self.momentum.weight, self.momentum.kd = s.weights.angular_momentum, s.gains.angular_momentum_kd
        g = s.gains
        for task, kp in ((self.com, g.com_kp), (self.trunk, g.trunk_kp), (self.posture, g.posture_kp)):
            task.kp, task.kd = kp, damping(kp, None)
        for task in self._bar_tasks.values():
            task.weight, task.kp, task.kd = s.weights.trunk, s.gains.trunk_kp, damping(s.gains.trunk_kp, None)
        for limb in self.limbs.values():
            limb.kp, limb.kd = s.gains.limb_kp, damping(s.gains.limb_kp, None)
        self.objects.apply_gains(s)

    def _bar_task(self, contact: Contact) -> LinkPoseTask:
        """Return the task that holds the planned orientation of a sole on a bar, which could roll off."""
        s, patch = self.settings, contact.patch
        if patch not in self._bar_tasks:
            self._bar_tasks[patch] = LinkPoseTask(patch, position=False, weight=s.weights.trunk, kp=s.gains.trunk_kp)
        self._bar_tasks[patch].R = contact.R
        return self._bar_tasks[patch]


class _BodyReferences:
    """References of centre of mass, angular momentum, trunk and joints, written into their tasks by one kernel.

    Parameters
    ----------
    tasks : their tasks.
    size : of the robot, relative to HRP-2.
    """

    def __init__(self, tasks: TaskSet, size: float):
        self._com, self.size = tasks.com, size
        self.outputs = (
            np.empty((3, 3)), tasks.com.values, tasks.momentum.values, tasks.trunk.reference, tasks.posture.values,
        )  # fmt: skip
        self.clocks, self._timings = np.empty((3, 3)), dict[int, PathTiming]()
        self._timing: PathTiming | None = None  # of all references, if they have the same
        self._references: tuple = ()
        self._contacts: tuple[Contact, ...] = ()
        self.ground = np.inf

    def write(self, t: float, terms: Terms, motion: Motion) -> float:
        """Write the references at time t (s); return the capture-point error (m)."""
        self.prepare(motion)
        time = self.law_time(t, motion)
        return write_body(*time, *self.arguments, terms.centroidal, self.ground, self.size, *self.outputs)

    def prepare(self, motion: Motion) -> None:
        """Set the arguments of the kernel for the present references and contacts."""
        references = motion.com, motion.angular_momentum, motion.posture
        if not is_unchanged(references, self._references):
            self._references = references
            self._set(*references)
        if (closed := motion.closed) is not self._contacts:
            self._contacts, self.ground = closed, lowest(closed)

    def law_time(self, t: float, motion: Motion) -> tuple[float, float, float]:
        """Return the first three arguments of the kernel at time t (s); set the clocks of references of their own."""
        if self._timing is not None:
            return self._timing.law_time(t)
        self.clocks[:, 0] = t
        for row, timing in self._timings.items():
            self.clocks[row] = timing.at(t)
        if isinstance(motion.com, Pendulum):
            self._com.position, self._com.velocity, self._com.acceleration = motion.com.sample(t)
        return 0.0, 1.0, 0.0

    def _set(self, *references: Any) -> None:
        """Set the arguments of the kernel from the law to the clocks, and the timing of each reference."""
        self.clocks[:] = 0.0, 1.0, 0.0
        self._timings = {row: one.timing for row, one in enumerate(references) if hasattr(one, "timing")}
        first = self._timings.get(0)
        is_common = first is not None and len(self._timings) == 3 and all(map(first.agrees, self._timings.values()))
        self._timing = first if is_common else None
        law = NO_LAW if self._timing is None else self._timing.law.arrays
        com, momentum, posture = [getattr(reference, "path", reference) for reference in references]
        arrays = [
            NO_CURVE if curve is None or isinstance(curve, Pendulum) else curve.arrays for curve in (com, momentum)
        ]
        self.arguments = *law, *arrays[0], *arrays[1], *posture.arrays, *posture.workspace, self.clocks
