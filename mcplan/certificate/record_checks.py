"""Record checks (hashes, and agreement of scenario, plan and robot), and solver checks (failures, slack form).

All other checks rely on the record; an inconsistent record proves nothing.
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

SAME = 1e-9
"""Numbers of the plan that was rebuilt from its document, in their own unit: coordinates become poses by other sums."""

FOUND = ("mcplan", "stances", "plan", "robot")
"""Keys in which documents of a plan and of its scenario may differ: version, results, path of the robot."""

OF_ROBOT = ("links", "joints", "coordinates", "lower", "upper", "velocity", "torque", "armature", "patches")
"""Parts of a robot's record that its files say again."""


def record_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the checks of the record."""
    record = evidence.record
    for name, part in (("scenario", record.scenario), ("plan", record.plan)):
        yield _line(f"record: {name}", list(_document(name, part)))
    wrong = list(_robot_files(record.robot))
    between = list(_differences("", _user_part(record.scenario.document), _user_part(record.plan.document)))
    asked, kept = _sequence(record.scenario.document), _sequence(record.plan.document)
    if kept is not None and not record.scenario.document.get("goal"):  # plans of earlier versions keep none
        between += _differences("stances", asked, kept)
    stances: list[str] = []
    if record.plan.document:
        try:
            plan = evidence.plan
        except RunError as error:
            stances.append(str(error))
        else:
            between += contacts_not_in_scenario(plan)
            again = record_robot(plan.scenario.robot)
            wrong += _differences("robot", *(_part(robot, OF_ROBOT) for robot in (record.robot, again)))
            mine, other = record.plan, record_plan(plan)
            stances += _differences("plan", *(_part(each, ("stances", "bodies")) for each in (mine, other)))
    yield _line("record: robot", wrong)
    yield _line("record: plan is of the scenario", [f"scenario and plan differ: {text}" for text in between])
    yield _line("record: stances are the plan's", stances)


def _line(name: str, wrong: list[str]) -> Check:
    more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
    failure = f"{name}: " + "; ".join(wrong[:3]) + more if wrong else ""
    return Check(name, float(len(wrong)), "differences", "== 0", not wrong, "", failure)


def _document(name: str, part: DocumentRecord) -> Iterator[str]:
    if not part.document:
        yield f"there is no {name} to judge by"
    elif digest(part.document) != part.digest:
        yield f"the {name} is not the one whose hash is kept"


def _robot_files(robot: RobotRecord) -> Iterator[str]:
    text = "".join(robot.files.get(name, "") for name in ("robot.urdf", "robot.yaml", "robot.srdf"))
    if not text:
        yield "there are no files of the robot to judge by"
    elif hashlib.sha256(text.encode()).hexdigest() != robot.digest:
        yield "the robot's files are not those whose hash is kept"


def _user_part(document: Mapping[str, Any]) -> Any:
    """Return the user's part of a document: without results and without names of files."""
    return _without_files({key: value for key, value in document.items() if key not in FOUND})


def _sequence(document: Mapping[str, Any]) -> Any:
    """Return the hand-written sequence of a scenario, which a plan's document keeps beside its own stances."""
    stances = document.get("stances")
    if isinstance(stances, list) and not any(isinstance(item, Mapping) and "q" in item for item in stances):
        return stances
    plan = document.get("plan")
    return plan.get("sequence") if isinstance(plan, Mapping) else None


def _without_files(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_files(item) for key, item in value.items() if key != "file"}
    return [_without_files(item) for item in value] if isinstance(value, list) else value


def _part(record: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in record.model_dump(mode="json").items() if name in names}


def _differences(where: str, one: Any, other: Any) -> Iterator[str]:
    """Yield where two values differ, as ``a.b[0] is 1, expected 2``."""
    numbers = isinstance(one, int | float) and isinstance(other, int | float) and not isinstance(one, bool)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted({*one, *other}):
            yield from _differences(f"{where}.{key}" if where else key, one.get(key), other.get(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from _differences(f"{where}[{i}]", a, b)
    elif not (abs(one - other) <= SAME * max(1.0, abs(other)) if numbers else one == other):
        yield f"{where} is {_short(one)}, expected {_short(other)}"


def _short(value: Any) -> str:
    text = f"{value:.9g}" if isinstance(value, float) and np.isfinite(value) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def solver_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the lines of the certificate that concern the solutions of the controller's program.

    The program is due at every step, or at the whole fraction of them that ``control.rate`` says; a step at which it
    was due and did not run counts as one without a solution.
    """
    run, tolerances = evidence.run, evidence.tolerances
    if name := evidence.record.controller:
        asked = int(np.count_nonzero(run.qp_status != NO_QP))
        failure = (
            f"{asked} samples say that a program was solved, and the run that {name} gave the torques" if asked else ""
        )
        if evidence.record.physics == "qp":
            failure = f"physics qp integrates what a program says, and the run says that {name} gave the torques"
        yield Check("no program", float(asked), f"ticks beside {name}", "== 0", not failure, "", failure)
        return
    every = steps_per_tick(evidence)
    due = np.arange(len(run)) % every == 0
    without = due & ((run.qp_status == HOLD) | (run.qp_status == NO_QP))
    yield _share(evidence, "ticks without a solution", without, due, tolerances.hold)
    amount = np.full(len(run), np.inf) if run.qp_slack is None else run.qp_slack
    slack = (run.qp_status == SLACK) & ~(amount <= NEGLIGIBLE_VIOLATION)
    yield _share(evidence, "ticks in slack form", slack, due, tolerances.slack)
    if run.qp_slack is None:
        yield Check("slack", None, "", "", True, "the run does not say how much")
        return
    total = float(np.sum(np.where(slack, amount, 0.0)) * every * run.dt)
    worst = int(np.argmax(np.where(slack, amount, 0.0)))
    where = f"up to {amount[worst]:.3g} at {evidence.time(worst)}" if slack.any() else ""
    failure = f"the program gave up {total:.4g} m/s (rad/s, N s) of its rows, {where}"
    yield at_most("slack", total, "m/s, rad/s, N s", tolerances.slack_amount, where, failure)


def steps_per_tick(evidence: RecomputedRun) -> int:
    """Return how many steps a tick of the controller lasts, by the scenario."""
    rate = evidence.section("control").get("rate")
    if not isinstance(rate, int | float) or not rate > 0.0:
        return 1
    return max(1, round(1.0 / (rate * evidence.run.dt)))


def _share(evidence: RecomputedRun, name: str, ticks: np.ndarray, due: np.ndarray, bound: float) -> Check:
    count = int(np.count_nonzero(ticks))
    share = count / max(int(np.count_nonzero(due)), 1)
    where = f"{count}, the first at {evidence.time(int(np.argmax(ticks)))}" if count else ""
    return at_most(name, share, "of all", bound, where, f"{name}: {where}; {share:.3g} of all, allowed {bound:g}")
