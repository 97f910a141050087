"""Whole-body controller: state machine, references, and one quadratic program per control step."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from mcplan.control.command import Command, Notice, PointLoads
from mcplan.control.contact_detectors import LiftOffDetector, SlipDetector
from mcplan.control.criteria import LazyValues, Measurement
from mcplan.control.further_tasks import FurtherTasks
from mcplan.control.handled import HandledObjects
from mcplan.control.held_contacts import PlannedForces
from mcplan.control.joint_torques import (
    IMPEDANCE_KD_NM_S_RAD,
    IMPEDANCE_KP_NM_RAD,
    IMPEDANCE_LEAK_S,
    JointFriction,
    JointImpedance,
)
from mcplan.control.machine import Machine
from mcplan.control.motion import Motion
from mcplan.control.phases import height_over, phases_of
from mcplan.control.program import program_of
from mcplan.control.stepping import Stepping
from mcplan.control.task_set import TaskSet
from mcplan.control.usual_tick import UsualTick
from mcplan.core.motion.reference import pose_distance
from mcplan.errors import InputError
from mcplan.motion.limb_path import Pose
from mcplan.motion.time_parameterization import TimedPath
from mcplan.planning.plan import Plan
from mcplan.robot.system import SystemTerms
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.solution import Solution
from mcplan.whole_body.tasks.task import Task

LIMB_TOLERANCE_FACTOR = 3.0
"""Tolerance of the tracking error of a moving limb, relative to that of the centre of mass."""

ROTATION_LEVER_M = 0.1
"""Displacement that counts as much as a rotation of a patch by one radian (m)."""

PUSHED_ERROR, PUSHED_TIME_S = 1.5, 1.0
"""Capture-point error relative to ``com_tolerance`` beyond which the robot counts as pushed, and time after a push (s).
In both the rate of torques is not bounded. Touchdowns at a quick pace reach 1.2."""

BALANCE_FIRST_ERROR = 0.5
"""Capture-point error relative to ``com_tolerance`` beyond which balance has priority over preloads."""


class WholeBodyController:
    """Execute a plan from any state near its beginning.

    Parameters
    ----------
    plan : Plan; its scenario gives the robot and the settings.
    dt : time between two steps (s).
    physics : name of the back end; its default settings apply.
    tasks : additional tasks: objects with ``rows`` (`whole_body.tasks.task.Task`). If a task has a method
        ``follow(t)``, it is called with the time (s) before each tick.
    extra : additional terms of the program, in CVXPY (`whole_body.declaration.Extra`).

    Attributes
    ----------
    machine : the state machine; ``machine.done`` at the end of the plan.
    motion : references and contacts, which the state machine sets.
    """

    def __init__(
        self, plan: Plan, dt: float, physics: str = "qp", tasks: Sequence[Task] = (), extra: Extra | None = None
    ):
        self.plan, self.dt = plan, dt
        self.robot, self.settings = plan.scenario.robot, plan.scenario.control_in(physics)
        first = plan.stances[0]
        scenario = plan.scenario
        self.objects = HandledObjects(plan, self.settings, dt)
        planning_settings, object_mass = scenario.transition_settings, self.objects.mass
        self.motion = Motion(self.robot, scenario.environment, self.settings, first.q, planning_settings, object_mass)
        for contact in first.contacts:
            self.motion.close(contact, -1.0, 0.0)
        for segment in plan.segments:  # compute their curves before the first tick
            self.motion.rehearse(segment)
        states = program_of(phases_of(plan), plan.scenario, [contact.patch for contact in first.contacts])
        self._further = FurtherTasks(plan, [state.name for state in states])
        tasks = (*self._further.tasks, *tasks)
        self.machine = Machine(states, self.motion)
        patches = {contact.patch for stance in plan.stances for contact in stance.contacts}
        patches |= {course.patch for segment in plan.segments for course in segment.courses}
        patches |= {patch for spec in self.settings.states if spec.do for patch in spec.do.limbs}
        task_frames = {frame for task in tasks for frame in task.frames}
        frames = list(dict.fromkeys([self.robot.link_names[0], *sorted(patches | task_frames)]))
        for thing in self.objects.things:
            self.motion.handle(thing)
        self.terms = self.objects.terms(frames) if self.objects else Terms(self.robot, frames)
        scene = plan.scenario.environment
        self.tasks = TaskSet(self.robot, scene, self.settings, dt, first.q, self.objects, tasks, extra)
        s = self.settings
        self.planned_forces = PlannedForces(plan, dt, s)
        self._slip_detector, self._lift_off_detector = SlipDetector(s, self.objects.frame), LiftOffDetector(s)
        self._stepping = Stepping(plan, s)
        self.impedance = (
            JointImpedance(
                IMPEDANCE_KP_NM_RAD,
                IMPEDANCE_KD_NM_S_RAD,
                IMPEDANCE_LEAK_S,
                self.robot.limits.torque,
                self._inertia(),
                dt,
            )
            if s.compliant
            else None
        )
        self._friction = JointFriction(self.robot, s.gains.friction_compensation, dt)
        self._wrenches: Mapping[str, np.ndarray] = dict(first.wrenches)
        self._commanded: Mapping[str, np.ndarray] = self._wrenches
        self._usual = UsualTick(
            self.terms, self.motion, self.machine, self.tasks, self.planned_forces, self.impedance,
            self._slip_detector, self._stepping, PUSHED_ERROR * s.timing.com_tolerance,
        )  # fmt: skip
        self._nv, self._t, self._start_delay, self._push_time = self.robot.nv, 0.0, 0.0, -np.inf
        self._vd = np.zeros(self._nv)
        self._moves_objects = physics == "qp"
        motion = self.motion
        # lazy: most criteria read only the clock, and no other measurement is computed then
        self._measurement = Measurement(
            0.0,
            LazyValues(lambda: ("com", *motion.limbs, *motion.objects), self._error),
            LazyValues(lambda: ("com", "joints", *motion.limbs), self._speed),
            LazyValues(lambda: (*motion.contacts, *motion.targets), self.normal_force),
            LazyValues(lambda: tuple(motion.targets), self._height),
        )
        self._declare()

    def __repr__(self) -> str:
        return f"WholeBodyController({self.plan.scenario.name!r}, {self.robot.name}, dt={self.dt:g} s)"

    def _declare(self) -> None:
        """Declare the programs of all stances and motions of the plan, and solve one, before the first tick."""
        if self.impedance is not None:
            self.impedance.rehearse()
        for contacts, limbs, index, moved in contacts_along(self.plan):
            expected = self.objects.expected(index, moved) if self.objects else ((), ())
            self.tasks.declare(contacts, limbs, self.terms, *expected)
        if avoidance := self.tasks.avoidance:
            for segment in self.plan.segments:
                avoidance.cache_end_distances(segment.posture.knots)
        for contact in {contact for stance in self.plan.stances for contact in stance.contacts}:
            self._slip_detector.map_centre(contact)
        for stance in self.plan.stances:  # a recovery step may start from any of them
            for patch in self._stepping.steppable_feet(stance.contacts):
                self.tasks.declare(
                    [contact for contact in stance.contacts if contact.patch != patch], [patch], self.terms
                )
        if not self.tasks.further:  # a user's task may expect calls in ticks only
            state = self.plan.stances[0].q, np.zeros(self._nv)
            self.terms.update(*(self.objects.initial_state(*state) if self.objects else state))
            self.tasks.rehearse(self.terms, self.motion)
            self._usual.rehearse()
            self.tasks.forget()
            self.objects.forget()
            self._slip_detector.update(0.0, self.terms, self.motion, {})
            self._stepping.rehearse(self.terms, self.motion)

    def step(
        self,
        t: float,
        q: np.ndarray,
        v: np.ndarray,
        wrenches: Mapping[str, np.ndarray] | None = None,
        objects: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Command:
        """Return the command for a state.

        Parameters
        ----------
        t : s; grows by dt from step to step.
        q, v : (7+n,), (6+n,) measured state.
        wrenches : measured, (6,) by patch; None: those of the last command.
        objects : poses (O,7) and velocities (O,6) of the scene's objects; required if the plan handles objects.
        """
        clock, measured = time.perf_counter(), wrenches is not None
        if wrenches is not None:
            self._wrenches = wrenches
        measured_state: tuple[np.ndarray, ...] = (q, v)
        if isinstance(self.terms, SystemTerms):
            if objects is None:
                raise InputError("the plan handles objects, but step() was given no poses of them")
            measured_state = self.objects.state(q, v, *objects)
        if not (is_usual := self._usual.observe(*measured_state)):
            self.terms.update(*measured_state)
        if self._friction:
            self._friction.add(self.terms.M, self.terms.h, v[6:], self._vd[6 : self._nv])
        if wrenches is not None:
            if not is_usual:
                self._slip_detector.update(t, self.terms, self.motion, wrenches)
            self._lift_off_detector.update(t, self.terms, self.motion, self._commanded, wrenches)
        terms_time = time.perf_counter()
        motion, patches, lands = self.motion, self.motion.patches, False
        if self.machine.update(t, self.measure(t), self) or (not is_usual and self._insert_recovery(t)):
            self._start_delay = motion.clock.delay
            lands = not motion.contacts.keys() <= set(patches)
            patches = motion.patches
            if lands and self.impedance is not None:
                self.impedance.reset_velocity(v[6:])
        machine_time = time.perf_counter()
        state, phase = self.machine.state, self.machine.events[-1]
        self._further.enter(phase.name)
        tolerance, tau, is_steady = self.settings.timing.com_tolerance, None, t > self._push_time + PUSHED_TIME_S
        if is_usual and (solution := self._usual.respond(t, is_steady)) is not None:
            balance_error, tau = self._usual.balance_error / tolerance, self._usual.torque
        else:
            balance_error = self.tasks.follow(t, self.terms, motion, state.gains) / tolerance
            planned = self.planned_forces.follow(phase.stance, motion.closed)
            is_steady = is_steady and not lands and balance_error <= PUSHED_ERROR
            solution = self.tasks.solve(t, self.terms, motion, planned, is_steady)
        if balance_error > PUSHED_ERROR:
            self._push_time = t
        if balance_error > BALANCE_FIRST_ERROR:
            self.tasks.put_balance_first(t, self.terms, solution)
        self._wrenches = self._commanded = wrenches = self.objects.without_objects(solution.wrenches)
        self._vd = solution.vd
        if tau is None:
            tau = solution.tau
            if self.impedance is not None:
                tau = self.impedance.torque(q[7:], v[6:], solution.vd[6 : self._nv], tau)
            self._usual.lay_out(measured)
        self._update_clock(t, balance_error)
        forces = solution.forces
        self.objects.last_forces = forces
        return Command(
            solution.vd[: self._nv], tau, wrenches, self.objects.without_objects(forces), solution.status,
            (phase.name, phase.stance), patches, solution.message,
            {"terms": terms_time - clock, "machine": machine_time - terms_time,
             "program": time.perf_counter() - machine_time},
            *self._object_outputs(solution), 0.0 if solution.ok else solution.violation,
        )  # fmt: skip

    def _insert_recovery(self, t: float) -> bool:
        """Insert a recovery step if the robot would fall; return whether it does. A state lasts at least one tick."""
        diversion = self._stepping.update(t, self.terms, self.motion, self.machine)
        if diversion is not None:
            self.machine.divert(t, self, diversion.phases, "falls", diversion.successor)
        return diversion is not None

    def _update_clock(self, t: float, balance_error: float) -> None:
        """Slow the reference clock down from the next tick on if the robot lags behind its references.

        ``balance_error`` is the capture-point error relative to ``com_tolerance``. Limbs count unless they descend
        with touch detection.
        """
        motion, s = self.motion, self.settings
        error = 0.0
        if isinstance(motion.posture, TimedPath) and not motion.passing and t < motion.posture.end_time:
            limbs = [
                pose_distance(self.terms.frame_values(name), self.tasks.limbs[name].reference, ROTATION_LEVER_M)
                for name, path in motion.limbs.items()
                if isinstance(path, TimedPath)
            ]
            error = max(
                balance_error, *[limb / (LIMB_TOLERANCE_FACTOR * s.timing.com_tolerance) for limb in limbs], 0.0
            )
        motion.clock.advance(self.dt, error)

    def _object_outputs(self, solution: Solution) -> tuple[np.ndarray | None, dict[str, PointLoads]]:
        """Return the accelerations of the objects and the forces on them, which only physics ``qp`` takes over."""
        if not isinstance(self.terms, SystemTerms) or not self._moves_objects:
            return None, {}
        loads = self.objects.forces(self.terms, self.motion, self.objects.last_forces)
        return self.objects.accelerations(solution.vd), loads

    def _inertia(self) -> np.ndarray:
        """Return the effective inertia of each joint with all others free (n,): the minimum over the stances."""
        mobility = [np.diag(np.linalg.inv(self.robot.mass_matrix(stance.q)))[6:] for stance in self.plan.stances]
        return 1.0 / np.max(mobility, axis=0)

    def measure(self, t: float) -> Measurement:
        """Return errors, speeds and forces at the present state, relative to the references at time t (s).

        They are evaluated lazily, and become invalid with the next ``measure``.
        """
        self._t = t
        delay = self.motion.clock.delay - self._start_delay
        self._measurement.elapsed = t - self.machine.start_time - delay
        return self._measurement

    def _error(self, name: str) -> float:
        """Return the tracking error of the centre of mass (m) or of a patch (m, with rotations times a lever arm)."""
        terms, motion, t = self.terms, self.motion, self._t
        if name == "com":
            return float(np.linalg.norm(terms.com - motion.com.sample(t).value))
        reference = np.empty(24)
        (motion.limbs.get(name) or motion.objects[name]).write(t, reference)
        return pose_distance(terms.frame_values(name), reference, ROTATION_LEVER_M)

    def _height(self, patch: str) -> float:
        """Return the distance of a patch from the contact that it moves to, along the normal (m)."""
        frame, contact = self.terms.frame(patch), self.motion.targets[patch]
        return height_over(contact, frame.p - contact.rolled(frame.R))

    def _speed(self, name: str) -> float:
        """Return the speed of the centre of mass, of the fastest joint, or of a patch."""
        if name == "com":
            return float(np.linalg.norm(self.terms.com_velocity))
        if name == "joints":
            return float(np.max(np.abs(self.terms.v[6 : self._nv]), initial=0.0))
        velocity = self.terms.frame(name).velocity
        return float(np.hypot(np.linalg.norm(velocity[:3]), ROTATION_LEVER_M * np.linalg.norm(velocity[3:])))

    @property
    def notices(self) -> list[Notice]:
        """Events that the plan did not foresee."""
        return self.motion.notices

    @property
    def com_reference(self) -> np.ndarray:
        """Reference of the centre of mass in the last step (3,), m."""
        return self.tasks.com.position

    @property
    def q(self) -> np.ndarray:
        """Configuration of the robot at the present state (7+n,)."""
        return self.terms.q[: self.robot.nq].copy()

    @property
    def joint_rates(self) -> np.ndarray:
        """Velocities of the joints at the present state (n,)."""
        return self.terms.v[6 : self._nv].copy()

    def pose(self, frame: str) -> Pose:
        """Return R (3,3) and p (3,) of a patch frame at the present state."""
        terms = self.terms.frame(frame)
        return terms.R.copy(), terms.p.copy()

    def normal_force(self, patch: str) -> float:
        """Return the normal force of a contact, or of a patch that moves to one (N).

        Of a grasp: the magnitude of its force.
        """
        return self._normal_force(patch, self._wrenches)

    def _normal_force(self, patch: str, wrenches: Mapping[str, np.ndarray]) -> float:
        """Return the normal force of a patch in the given wrenches (N)."""
        wrench, loaded = wrenches.get(patch), self.motion.contacts.get(patch)
        contact = self.motion.targets.get(patch) if loaded is None else loaded.contact
        if wrench is None or contact is None:
            return 0.0
        force = np.asarray(wrench)[:3]
        return float(np.linalg.norm(force) if contact.kind == "grasp" else force @ contact.normal)

    def load(self, patch: str) -> float:
        """Return the force limit (N) that just permits the measured and the commanded wrench of a contact.

        The moment limit of a grasp scales with its force limit. For an object: the load of its support.
        """
        if patch in self.motion.object_supports:
            return float(self.objects.support_force(patch) @ self.motion.object_supports[patch].contact.normal)
        # a compliant contact may lose its force for one tick: the commanded wrench keeps torques from jumping then
        return max(self._required_limit(patch, wrenches) for wrenches in (self._wrenches, self._commanded))

    def _required_limit(self, patch: str, wrenches: Mapping[str, np.ndarray]) -> float:
        """Return the force limit (N) that just permits the wrench of a contact."""
        force, loaded = self._normal_force(patch, wrenches), self.motion.contacts[patch]
        contact, wrench = loaded.contact, wrenches.get(patch)
        if contact.kind != "grasp" or wrench is None:
            return force
        share = float(np.linalg.norm(np.asarray(wrench)[3:])) / (self.motion.grip_share(self._t) * contact.max_moment)
        return max(force, min(share, 1.0) * loaded.full)


def contacts_along(plan: Plan) -> Iterator[tuple[Sequence[Contact], Collection[str], int, Collection[str]]]:
    """Yield closed contacts, swinging patches, stance, and moved objects of each segment and stance of a plan.

    A released patch keeps its reference, as in `Motion.follow`, until its limb moves to another contact.
    """
    limb = {name: patch.limb for name, patch in plan.scenario.robot.patches.items()}
    swinging: set[str] = set()
    for index, stance in enumerate(plan.stances):
        closed = {limb[contact.patch] for contact in stance.contacts}
        for k, segment in enumerate(() if stance.transition is None else stance.transition.segments):
            reaching = {limb[course.patch] for course in segment.courses if course.target is not None}
            swinging = {name for name in swinging if limb[name] not in reaching} | {
                course.patch for course in segment.courses
            }
            yield segment.contacts, swinging, index, segment.objects or ()
            if k == 0 and stance.change == "remove" and stance.moved is not None and limb[stance.moved] not in closed:
                swinging = swinging | {stance.moved}
        swinging = swinging - set(stance.patches)
        yield stance.contacts, swinging, index, ()
