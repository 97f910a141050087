"""Simulation loop: controller, physics, recorder."""

import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec

import numpy as np
from numpy.typing import ArrayLike

from mcplan.control.command import Command
from mcplan.control.controller import WholeBodyController
from mcplan.control.textbook.of_scenario import textbook_controller
from mcplan.control.torque_driven import TorqueController, TorqueDriven
from mcplan.core.bundle import SOUND, check
from mcplan.errors import InputError, SimulationFailed
from mcplan.planning.plan import Plan
from mcplan.planning.planner import plan as make_plan
from mcplan.record.run import Run
from mcplan.record.world import World, draw_world
from mcplan.scenario.scenario import Scenario
from mcplan.sim.disturbance import Disturbance, steps_per_tick, validate_disturbances
from mcplan.sim.failure import FailureDetector
from mcplan.sim.observer import Observer, StepSample
from mcplan.sim.physics import Action, Maker, Physics
from mcplan.sim.recorder import RunRecorder
from mcplan.util.arguments import check_each, check_instance, check_integer, describe
from mcplan.util.back_ends import BACK_ENDS, BackEnd, load_object
from mcplan.util.qp_status import NO_QP
from mcplan.util.spelling import did_you_mean_or_all
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.tasks.task import Task


def find_back_end(name: str) -> BackEnd:
    """Return the entry of a back end; raise an error if there is none or its library is not installed."""
    if name not in BACK_ENDS:
        raise InputError(f"there is no physics {name!r}{did_you_mean_or_all(str(name), BACK_ENDS)}")
    entry = BACK_ENDS[name]
    if entry.package and find_spec(entry.package) is None:
        raise InputError(f"physics {name} needs the package {entry.package}: pip install {entry.package}")
    return entry


TASK_ATTRIBUTES = ("weight", "dimension", "key", "diagonal", "frames", "rows")
"""Attributes that every task has (`whole_body.tasks.task.Task`)."""


def back_end(physics: str | Maker | None, default: str) -> tuple[str, Maker]:
    """Return name and factory of a physics back end.

    A custom back end is a class that is constructed from a ``World``; its name is its attribute ``name``, or that of
    the class.

    Raises
    ------
    InputError
        There is no back end of this name, or the object is not a factory.
    """
    choice = default if physics is None else physics
    if isinstance(choice, str):
        return choice, load_object(find_back_end(choice).made_by).of_world
    if not callable(choice):
        expected = f"{', '.join(BACK_ENDS)}, or a class constructed from a World"
        raise InputError(f"physics: expected {expected}, not {type(choice).__name__}")
    return str(getattr(choice, "name", None) or getattr(choice, "__name__", type(choice).__name__)), choice


def make_physics(
    scenario: Scenario, physics: str | Maker | None = None, q: ArrayLike | None = None, seed: int = 0
) -> Physics:
    """Return a back end without controller: a robot in its environment, driven by your torques.

        physics = mc.make_physics(scenario, "contact")
        while True:
            outcome = physics.step(tau)    # joint torques (n,) for 1 ms; the state is then physics.q, physics.v

    Parameters
    ----------
    scenario : has the robot, the environment, and the settings ``simulation`` with payloads and model errors. Its
        pushes, noise and delay act only in a `Simulation`.
    physics : name of a back end, or a custom one (`back_end`); None: that of the scenario.
    q : (nq,) initial posture; None: the start of the scenario.
    seed : seed of random model errors.

    Raises
    ------
    InputError
        There is no such back end, or ``scenario`` is not a Scenario.
    """
    scenario = check_instance("make_physics", "scenario", scenario, Scenario)
    _, maker = back_end(physics, scenario.simulation.physics)
    q_start = np.array(scenario.start.q if q is None else q, float)
    robot = scenario.robot
    if q_start.shape != (robot.nq,):
        raise InputError(f"q has the shape {q_start.shape}; {robot.name} has ({robot.nq},)")
    patches, contacts = list(robot.patches), scenario.start.contacts
    nominal_world = World(robot, scenario.environment, q_start, patches, scenario.simulation, contacts)
    return maker(draw_world(nominal_world, [contact.support for contact in contacts], seed)[0])


class Simulation:
    """Execution of a plan, one physics step at a time.

    Parameters
    ----------
    plan : Plan
    physics : name of a back end, or a custom one (`back_end`); None: that of the scenario.
    observers : called at every step and phase.
    seed : seed of all random numbers; recorded with the run.
    tasks, extra : user-defined tasks and terms, see `control.controller.WholeBodyController`.
    controller : custom controller (`control.torque_driven.TorqueController`); None: that of the scenario.
    duration : s, length of a run under a custom controller; None: that of the scenario.

    Attributes
    ----------
    controller : the controller of the run.
    physics : the back end of the run; ``physics.q`` and ``physics.v`` are the state of the robot.
    disturbance : pushes, and errors of torques and measurements between controller and physics.
    t : time (s), the product of step index and dt, so that rounding does not accumulate.
    """

    def __init__(
        self,
        plan: Plan,
        physics: str | Maker | None = None,
        observers: Iterable[Observer] = (),
        seed: int = 0,
        tasks: Sequence[Task] = (),
        extra: Extra | None = None,
        controller: TorqueController | None = None,
        duration: float | None = None,
    ):
        check_instance("Simulation", "plan", plan, Plan)
        check_integer("Simulation", "seed", seed)
        tasks = _checked_tasks(tasks)
        observers = check_each("Simulation", "observers", observers, Observer)
        settings = plan.scenario.simulation
        name, maker = back_end(physics, settings.physics)
        custom_controller = textbook_controller(plan) if controller is None else controller
        if custom_controller is not None and (name == "qp" or tasks or extra is not None):
            reason = "physics qp integrates" if name == "qp" else "further tasks and terms are part of"
            raise InputError(
                f"{type(custom_controller).__name__} computes torques only, and {reason} the whole-body program; "
                "choose contact or mujoco, without tasks and extra"
            )
        if custom_controller is None and duration is not None:
            raise InputError("duration: a plan under the whole-body controller lasts as long as its state machine")
        validate_disturbances(plan.scenario, name, custom_controller is not None)
        robot = plan.scenario.robot
        self.plan, self.dt, self.seed = plan, float(settings.dt), seed
        self._steps_per_tick = steps_per_tick(plan.scenario)
        self.controller: WholeBodyController | TorqueDriven = (
            WholeBodyController(plan, self._steps_per_tick * self.dt, name, tasks, extra)
            if custom_controller is None
            else TorqueDriven(plan, custom_controller, duration or plan.scenario.control.duration)
        )
        controller_name = "" if custom_controller is None else type(custom_controller).__name__
        self.recorder = RunRecorder(plan, self.dt, name, seed, controller_name)
        contacts = [contact for stance in plan.stances for contact in stance.contacts]
        nominal_world = World(
            robot, plan.scenario.environment, plan.stances[0].q, self.recorder.patches, settings, contacts
        )
        start_supports = [contact.support for contact in plan.stances[0].contacts]
        world, record = draw_world(nominal_world, start_supports, seed)
        self.recorder.set_world(record, world.robot)
        self.physics = maker(world)
        self.disturbance = Disturbance(robot, settings, self.dt, seed)
        self.observers = tuple(observers)
        self.index = 0
        self._max_steps = int(np.ceil(settings.time_limit / self.dt))
        self._notified_events = 0
        self._command: Command | None = None
        self._measured: Mapping[str, np.ndarray] | None = None
        self._failure = FailureDetector(plan, self.dt, settings.max_infeasible_time)
        for observer in self.observers:
            observer.on_world(world)
            observer.on_start(1 / self.dt, len(self.controller.machine.phases))

    def __repr__(self) -> str:
        return f"Simulation({self.plan.scenario.name!r}, {type(self.physics).__name__}, t={self.t:.3f} s)"

    @property
    def t(self) -> float:
        """Time (s)."""
        return self.index * self.dt

    @property
    def done(self) -> bool:
        """Whether the state machine has reached its end."""
        return self.controller.machine.done

    def step(self) -> StepSample | None:
        """Advance by one step; return its sample, or None when the state machine has reached its end.

        Raises
        ------
        SimulationFailed
            A value of the state is not a number, the robot has fallen, the program was infeasible for too long, a patch
            missed its support, or the time limit is reached. ``finish`` still returns the record.
        """
        t, q, v = self.t, self.physics.q, self.physics.v
        if self.index >= self._max_steps:
            raise SimulationFailed(f"still in phase {self._phase_text()} at the time limit of {t:g} s", "time limit")
        if check(q, False) != SOUND or check(v, False) != SOUND:
            raise SimulationFailed(
                f"the state is not a number at t = {t:g} s, in phase {self._phase_text()}", "not a number"
            )
        control_start = time.perf_counter()
        objects = (self.physics.object_q, self.physics.object_v) if self.recorder.objects else None
        command = self._command
        if command is None or self.index % self._steps_per_tick == 0:
            measured = self.disturbance.measured(q, v)
            self._command = command = self.controller.step(t, *measured, self._measured, objects)
            timing, status = {**command.timing, "control": time.perf_counter() - control_start}, command.status
        else:
            timing, status = {}, NO_QP
        machine = self.controller.machine
        if machine.done or len(machine.events) != self._notified_events:
            self._notify_phases()
        if machine.done:
            return None
        if fall := self._failure.fell(self.controller.terms.com, self.controller.com_reference):
            raise SimulationFailed(f"{fall}, in phase {self._phase_text()} at t = {t:g} s", "fell")
        tau = self.disturbance.delivered(command.tau)
        external = self.disturbance.external(t, q)
        action = Action(
            tau, command.vd, command.wrenches, command.forces, command.active, external,
            command.object_vd, self.recorder.object_points(command.object_loads) if command.object_loads else None,
        )  # fmt: skip
        physics_start = time.perf_counter()
        outcome = self.physics.step(action, self.dt)
        if self.physics.name != "qp":
            self._measured = outcome.wrenches
        timing["physics"] = time.perf_counter() - physics_start
        self.recorder.append(
            t, q, v, outcome.vd, tau, outcome.tau_ext, outcome.wrenches, outcome.forces, outcome.active,
            command.phase, status, timing, objects,
            outcome.object_points, command.violation if status != NO_QP else 0.0, outcome.wrench_table,
        )  # fmt: skip
        sample = StepSample(self.index, t, q, v, tau, outcome.wrenches, outcome.forces, status,
                            len(machine.events), len(machine.states),
                            None if objects is None else objects[0])  # fmt: skip
        for observer in self.observers:
            observer.on_step(sample)
        self.index += 1
        if failure_message := self._failure.no_solution(t, command.status, command.message, command.violation):
            raise SimulationFailed(f"{self._phase_text()}: {failure_message}", "no solution")
        return sample

    def finish(self, stopped: str | None = None) -> Run:
        """Return the record of all steps so far; ``stopped`` is the reason of a failure, None at the end."""
        for observer in self.observers:
            observer.on_end(stopped)
        return self.recorder.finish(stopped, self.controller.notices)

    def _phase_text(self) -> str:
        phase = self.controller.machine.phase
        return f"{phase.name!r} of stance {phase.stance}"

    def _notify_phases(self) -> None:
        """Notify observers of the phase that ended and of the one that began since the last step, if any."""
        events, notified = self.controller.machine.events, self._notified_events
        ended_event = events[notified - 1] if notified and events[notified - 1].ended_by is not None else None
        new_event = events[notified] if len(events) > notified else None
        if ended_event is not None:
            self.recorder.end_phase(ended_event.ended_by or "")
        for event in (ended_event, new_event):
            if event is not None:
                for observer in self.observers:
                    observer.on_phase(event)
        self._notified_events = len(events)


def _checked_tasks(tasks: Sequence[Task]) -> Sequence[Task]:
    """Return ``tasks``; raise an error if one of them is not a task."""
    if hasattr(tasks, "rows") or isinstance(tasks, str) or not isinstance(tasks, Sequence):
        raise InputError(f"tasks: expected a list of tasks, not {describe(tasks)}")
    for number, task in enumerate(tasks):
        if missing := [name for name in TASK_ATTRIBUTES if not hasattr(task, name)]:
            raise InputError(
                f"tasks[{number}]: {describe(task)} is not a task: it has no {', '.join(missing)} (mcplan.Task)"
            )
    return tasks


def simulate(
    plan: Plan | Scenario | str,
    physics: str | Maker | None = None,
    observers: Iterable[Observer] = (),
    seed: int = 0,
    tasks: Sequence[Task] = (),
    extra: Extra | None = None,
    controller: TorqueController | None = None,
    duration: float | None = None,
) -> Run:
    """Simulate a plan from its first stance to its end.

    Parameters
    ----------
    plan : a Plan; or a Scenario or the name of a bundled one, which is planned first.
    physics : back end: a name (``qp``, ``contact``, ``mujoco``), or a custom class (`back_end`);
        None: that of the scenario.
    observers : called at every step and phase.
    seed : seed of all random numbers.
    tasks : additional tasks (`mcplan.Task`): objects with ``rows``.
    extra : additional terms of the program of each tick, in CVXPY.
    controller : custom controller in place of the whole-body controller: an object with ``torque(t, terms, wrenches)``.
    duration : s, length of a run under a custom controller; None: ``control.duration`` of the scenario.

    Raises
    ------
    SimulationFailed
        The simulation failed; ``run`` of the exception is the record up to that time, or None if it is empty.
    """
    if isinstance(plan, Scenario | str):
        plan = make_plan(plan)
    if not isinstance(plan, Plan):
        raise InputError(f"simulate: expected a Plan, a Scenario or a name, not {describe(plan)}")
    simulation = Simulation(plan, physics, observers, seed, tasks, extra, controller, duration)
    try:
        while simulation.step() is not None:
            pass
    except SimulationFailed as failure:
        failure.run = simulation.finish(str(failure)) if len(simulation.recorder) else None
        raise
    return simulation.finish()
