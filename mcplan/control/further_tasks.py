"""User-defined tasks of a scenario (``control.tasks``), in addition to those of the plan."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mcplan.errors import InputError, Problem, ScenarioError
from mcplan.planning.plan import Plan
from mcplan.settings.tasks import (
    ContactForceSpec,
    LinkPoseSpec,
    LookAtSpec,
    RelativePoseSpec,
    TaskSpec,
    TorqueSpec,
)
from mcplan.whole_body.tasks.forces import ContactForceTask, TorqueTask
from mcplan.whole_body.tasks.look_at import LookAtTask
from mcplan.whole_body.tasks.pose import LinkPoseTask, RelativePoseTask


class FurtherTasks:
    """Tasks of ``control.tasks``; each has a nonzero weight only in its states.

    Parameters
    ----------
    plan : Plan
    states : names of the states of the plan's state machine.

    Attributes
    ----------
    tasks : the tasks, in the order of the scenario file.

    Raises
    ------
    ScenarioError
        A task names a state that the machine does not have.
    """

    def __init__(self, plan: Plan, states: Iterable[str]):
        scenario, state_names = plan.scenario, list(dict.fromkeys(states))
        specs = scenario.control.tasks
        problems: list[Problem] = []
        for k, spec in enumerate(specs):
            for i, name in enumerate(spec.during):
                if not any(_has_name_or_verb(state, name) for state in state_names):
                    message = f"there is no state `{name}`; there are: {', '.join(state_names)}"
                    problems.append(scenario.document.problem(("control", "tasks", k, "during", i), message))
        if problems:
            raise ScenarioError(*problems)
        self.tasks = [_make_task(plan, spec) for spec in specs]
        self._during = [
            (task, np.array(task.weight), spec.during) for task, spec in zip(self.tasks, specs, strict=True)
        ]
        self._state = ""

    def enter(self, state: str) -> None:
        """Set the task weights for a state."""
        if state == self._state:
            return
        self._state = state
        for task, weight, during in self._during:
            if during:
                task.weight = weight * float(any(_has_name_or_verb(state, name) for name in during))


def _has_name_or_verb(state: str, name: str) -> bool:
    """Whether ``name`` is the full name of a state, or its verb."""
    return name in (state, state.split()[0])


def _make_task(plan: Plan, spec: TaskSpec) -> Any:
    options = {name: getattr(spec, name) for name in ("weight", "kp") if getattr(spec, name) is not None}
    kind = spec.kinds[0]
    task = TASK_FACTORIES[kind](plan, getattr(spec, kind), options)
    task.priority = spec.priority
    return task


def _look_at(plan: Plan, spec: LookAtSpec, options: dict[str, float]) -> LookAtTask:
    task = LookAtTask(spec.frame, spec.axis, spec.eye, spec.target_frame, **options)
    task.target[:] = spec.target
    return task


def _link_pose(plan: Plan, spec: LinkPoseSpec, options: dict[str, float]) -> LinkPoseTask:
    task = LinkPoseTask(spec.frame, spec.position, spec.orientation, **options)
    X = plan.scenario.robot.frame_pose(plan.stances[0].q, spec.frame)
    task.R, task.p = (X[:3, :3], X[:3, 3]) if spec.pose is None else (spec.pose.R, spec.pose.p)
    return task


def _relative_pose(plan: Plan, spec: RelativePoseSpec, options: dict[str, float]) -> RelativePoseTask:
    robot, q = plan.scenario.robot, plan.stances[0].q
    task = RelativePoseTask(spec.frame, spec.reference, spec.position, spec.orientation, **options)
    X = np.linalg.solve(robot.frame_pose(q, spec.reference), robot.frame_pose(q, spec.frame))
    task.R, task.p = (X[:3, :3], X[:3, 3]) if spec.pose is None else (spec.pose.R, spec.pose.p)
    return task


def _contact_force(plan: Plan, spec: ContactForceSpec, options: dict[str, float]) -> ContactForceTask:
    if spec.normal is not None:
        task = ContactForceTask(spec.patch, (2,), "contact", **options)
        task.wrench[2] = spec.normal
    else:
        assert spec.force is not None
        task = ContactForceTask(spec.patch, (0, 1, 2), spec.axes, **options)
        task.wrench[:3] = spec.force
    return task


def _torque(plan: Plan, spec: TorqueSpec, options: dict[str, float]) -> TorqueTask:
    robot, weight = plan.scenario.robot, options.get("weight", 1e-4)
    if not spec.by_limit:
        return TorqueTask(robot.n, weight)
    limit = robot.limits.torque
    if not np.isfinite(limit).all():
        joint = robot.joint_names[int(np.argmin(np.isfinite(limit)))]
        raise InputError(f"control.tasks: torque by_limit, but joint {joint} has no torque limit")
    return TorqueTask(robot.n, weight / limit**2)


TASK_FACTORIES: Mapping[str, Callable[[Plan, Any, dict[str, float]], Any]] = {
    "look_at": _look_at,
    "link_pose": _link_pose,
    "relative_pose": _relative_pose,
    "contact_force": _contact_force,
    "torque": _torque,
}
"""Function for each kind in `settings.tasks.KINDS` that makes a task from plan, specification, weight and gain."""
