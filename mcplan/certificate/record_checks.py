"""Record checks (hashes, and agreement of scenario, plan and robot), and solver checks (failures, slack form).

All other checks rely on the record; with an inconsistent record they would prove nothing.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mcplan.certificate.contact_checks import contacts_not_in_scenario
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.report import Check, at_most
from mcplan.certificate.tolerances import NEGLIGIBLE_VIOLATION
from mcplan.errors import RunError
from mcplan.record.recording import digest, record_plan, record_robot
from mcplan.record.records import DocumentRecord, RobotRecord
from mcplan.util.qp_status import HOLD, NO_QP, SLACK

ROUNDING = 1e-9
"""Tolerance of numbers of the plan rebuilt from its document (relative above 1): sums are in another order."""

UNCOMPARED_KEYS = ("mcplan", "stances", "plan", "robot")
"""Keys in which the documents of a plan and of its scenario may differ: version, results, path of the robot."""

ROBOT_FIELDS = (
    "links",
    "joints",
    "coordinates",
    "lower",
    "upper",
    "velocity",
    "torque",
    "armature",
    "patches",
)
"""Fields of a robot's record that also follow from its files."""


def record_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the checks of the record."""
    record = evidence.record
    for name, part in (("scenario", record.scenario), ("plan", record.plan)):
        yield _line(f"record: {name}", list(_document_errors(name, part)))
    robot_errors = list(_robot_file_errors(record.robot))
    plan_errors = list(_differences("", _user_part(record.scenario.document), _user_part(record.plan.document)))
    scenario_sequence, plan_sequence = _sequence(record.scenario.document), _sequence(record.plan.document)
    if plan_sequence is not None and not record.scenario.document.get("goal"):  # plans of earlier versions have none
        plan_errors += _differences("stances", scenario_sequence, plan_sequence)
    stance_errors: list[str] = []
    if record.plan.document:
        try:
            plan = evidence.plan
        except RunError as error:
            stance_errors.append(str(error))
        else:
            plan_errors += contacts_not_in_scenario(plan)
            rebuilt = record_robot(plan.scenario.robot)
            robot_errors += _differences("robot", *(_fields(robot, ROBOT_FIELDS) for robot in (record.robot, rebuilt)))
            recorded, rebuilt_plan = record.plan, record_plan(plan)
            stance_errors += _differences(
                "plan", *(_fields(record_part, ("stances", "bodies")) for record_part in (recorded, rebuilt_plan))
            )
    yield _line("record: robot", robot_errors)
    yield _line("record: plan is of the scenario", [f"scenario and plan differ: {text}" for text in plan_errors])
    yield _line("record: stances are the plan's", stance_errors)


def _line(name: str, errors: list[str]) -> Check:
    suffix = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    failure = f"{name}: " + "; ".join(errors[:3]) + suffix if errors else ""
    return Check(name, float(len(errors)), "differences", "== 0", not errors, "", failure)


def _document_errors(name: str, part: DocumentRecord) -> Iterator[str]:
    if not part.document:
        yield f"there is no {name} to compare with"
    elif digest(part.document) != part.digest:
        yield f"the {name} does not have the recorded hash"


def _robot_file_errors(robot: RobotRecord) -> Iterator[str]:
    text = "".join(robot.files.get(name, "") for name in ("robot.urdf", "robot.yaml", "robot.srdf"))
    if not text:
        yield "there are no files of the robot to compare with"
    elif hashlib.sha256(text.encode()).hexdigest() != robot.digest:
        yield "the robot's files do not have the recorded hash"


def _user_part(document: Mapping[str, Any]) -> Any:
    """Return a document without results and file names: what the user wrote."""
    return _without_files({key: value for key, value in document.items() if key not in UNCOMPARED_KEYS})


def _sequence(document: Mapping[str, Any]) -> Any:
    """Return the user's contact sequence in a document; a plan stores it separately from its own stances."""
    stances = document.get("stances")
    if isinstance(stances, list) and not any(isinstance(item, Mapping) and "q" in item for item in stances):
        return stances
    plan = document.get("plan")
    return plan.get("sequence") if isinstance(plan, Mapping) else None


def _without_files(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_files(item) for key, item in value.items() if key != "file"}
    return [_without_files(item) for item in value] if isinstance(value, list) else value


def _fields(record: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in record.model_dump(mode="json").items() if name in names}


def _differences(where: str, value: Any, expected: Any) -> Iterator[str]:
    """Yield the differences of two nested values, as ``a.b[0] is 1, expected 2``."""
    numbers = isinstance(value, int | float) and isinstance(expected, int | float) and not isinstance(value, bool)
    if isinstance(value, Mapping) and isinstance(expected, Mapping):
        for key in sorted({*value, *expected}):
            yield from _differences(f"{where}.{key}" if where else key, value.get(key), expected.get(key))
    elif isinstance(value, list) and isinstance(expected, list) and len(value) == len(expected):
        for i, (a, b) in enumerate(zip(value, expected, strict=True)):
            yield from _differences(f"{where}[{i}]", a, b)
    elif not (abs(value - expected) <= ROUNDING * max(1.0, abs(expected)) if numbers else value == expected):
        yield f"{where} is {_shortened(value)}, expected {_shortened(expected)}"


def _shortened(value: Any) -> str:
    text = f"{value:.9g}" if isinstance(value, float) and np.isfinite(value) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def solver_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the checks of the solutions of the controller's program.

    The program is due at every step, or with a lower ``control.rate`` at every few steps. A step at which it was due
    but did not run counts as a tick without a solution.
    """
    run, tolerances = evidence.run, evidence.tolerances
    if name := evidence.record.controller:
        solved = int(np.count_nonzero(run.qp_status != NO_QP))
        failure = f"{solved} samples have a solved program, although the torques are those of {name}" if solved else ""
        if evidence.record.physics == "qp":
            failure = f"physics qp integrates the solution of a program, but the torques are those of {name}"
        yield Check("no program", float(solved), f"ticks beside {name}", "== 0", not failure, "", failure)
        return
    stride = steps_per_tick(evidence)
    is_due = np.arange(len(run)) % stride == 0
    unsolved = is_due & ((run.qp_status == HOLD) | (run.qp_status == NO_QP))
    yield _tick_share(evidence, "ticks without a solution", unsolved, is_due, tolerances.hold)
    amount = np.full(len(run), np.inf) if run.qp_slack is None else run.qp_slack
    slack = (run.qp_status == SLACK) & ~(amount <= NEGLIGIBLE_VIOLATION)
    yield _tick_share(evidence, "ticks in slack form", slack, is_due, tolerances.slack)
    if run.qp_slack is None:
        yield Check("slack", None, "", "", True, "the run has no record of the amount")
        return
    total = float(np.sum(np.where(slack, amount, 0.0)) * stride * run.dt)
    worst = int(np.argmax(np.where(slack, amount, 0.0)))
    where = f"up to {amount[worst]:.3g} at {evidence.time(worst)}" if slack.any() else ""
    failure = f"the program gave up {total:.4g} m/s (rad/s, N s) of its rows, {where}"
    yield at_most("slack", total, "m/s, rad/s, N s", tolerances.slack_amount, where, failure)


def steps_per_tick(evidence: RecomputedRun) -> int:
    """Return the number of simulation steps per tick of the controller, from ``control.rate`` in the scenario."""
    rate = evidence.section("control").get("rate")
    if not isinstance(rate, int | float) or not rate > 0.0:
        return 1
    return max(1, round(1.0 / (rate * evidence.run.dt)))


def _tick_share(evidence: RecomputedRun, name: str, ticks: np.ndarray, is_due: np.ndarray, bound: float) -> Check:
    count = int(np.count_nonzero(ticks))
    share = count / max(int(np.count_nonzero(is_due)), 1)
    where = f"{count}, the first at {evidence.time(int(np.argmax(ticks)))}" if count else ""
    return at_most(name, share, "of all", bound, where, f"{name}: {where}; {share:.3g} of all, allowed {bound:g}")
