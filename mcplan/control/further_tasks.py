"""The tasks that a scenario asks for beside those of its plan."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mcplan.errors import InputError, Problem, ScenarioError
from mcplan.planning.plan import Plan
from mcplan.settings.tasks import TaskSpec
from mcplan.whole_body.tasks.forces import ContactForceTask, TorqueTask
from mcplan.whole_body.tasks.look_at import LookAtTask
from mcplan.whole_body.tasks.pose import LinkPoseTask, RelativePoseTask


class FurtherTasks:
    """Makes the tasks of ``control.tasks``, and lets each weigh something in its states alone.

    Parameters
    ----------
    plan : Plan
    states : names of the states of its machine.

    Attributes
    ----------
    tasks : in the order of the file.

    Raises
    ------
    ScenarioError
        A task names a state that the machine does not have.
    """

    def __init__(self, plan: Plan, states: Iterable[str]):
        scenario, known = plan.scenario, list(dict.fromkeys(states))
        specs = scenario.control.tasks
        wrong: list[Problem] = []
        for k, spec in enumerate(specs):
            for i, name in enumerate(spec.during):
                if not any(_is(state, name) for state in known):
                    message = f"there is no state `{name}`; there are: {', '.join(known)}"
                    wrong.append(scenario.document.problem(("control", "tasks", k, "during", i), message))
        if wrong:
            raise ScenarioError(*wrong)
        self.tasks = [_made(plan, spec) for spec in specs]
        self._during = [
            (task, np.array(task.weight), spec.during) for task, spec in zip(self.tasks, specs, strict=True)
        ]
        self._state = ""

    def enter(self, state: str) -> None:
        """Hear of the present state."""
        if state == self._state:
            return
        self._state = state
        for task, weight, during in self._during:
            if during:
                task.weight = weight * float(any(_is(state, name) for name in during))


def _is(state: str, name: str) -> bool:
    """Whether a state has a name, or is one of those with this verb."""
    return name in (state, state.split()[0])


def _made(plan: Plan, spec: TaskSpec) -> Any:
    given = {name: getattr(spec, name) for name in ("weight", "kp") if getattr(spec, name) is not None}
    task = _of_kind(plan, spec, given)
    task.priority = spec.priority
    return task


def _of_kind(plan: Plan, spec: TaskSpec, given: dict[str, float]) -> Any:
    robot, q = plan.scenario.robot, plan.stances[0].q
    if spec.look_at is not None:
        s = spec.look_at
        look = LookAtTask(s.frame, s.axis, s.eye, s.target_frame, **given)
        look.target[:] = s.target
        return look
    if spec.relative_pose is not None:
        r = spec.relative_pose
        pair = RelativePoseTask(r.frame, r.reference, r.position, r.orientation, **given)
        X = np.linalg.solve(robot.frame_pose(q, r.reference), robot.frame_pose(q, r.frame))
        pair.R, pair.p = (X[:3, :3], X[:3, 3]) if r.pose is None else (r.pose.R, r.pose.p)
        return pair
    if spec.link_pose is not None:
        s_ = spec.link_pose
        link = LinkPoseTask(s_.frame, s_.position, s_.orientation, **given)
        X = robot.frame_pose(q, s_.frame)
        link.R, link.p = (X[:3, :3], X[:3, 3]) if s_.pose is None else (s_.pose.R, s_.pose.p)
        return link
    if spec.contact_force is not None:
        c = spec.contact_force
        if c.normal is not None:
            force = ContactForceTask(c.patch, (2,), "contact", **given)
            force.wrench[2] = c.normal
        else:
            assert c.force is not None
            force = ContactForceTask(c.patch, (0, 1, 2), c.axes, **given)
            force.wrench[:3] = c.force
        return force
    assert spec.torque is not None
    weight = given.get("weight", 1e-4)
    if not spec.torque.by_limit:
        return TorqueTask(robot.n, weight)
    limit = robot.limits.torque
    if not np.isfinite(limit).all():
        joint = robot.joint_names[int(np.argmin(np.isfinite(limit)))]
        raise InputError(f"control.tasks: torque by_limit, but joint {joint} has no torque limit")
    return TorqueTask(robot.n, weight / limit**2)
