"""Verification of runs and plans: all results are recomputed independently and checked.

Only the file of a run is needed, which contains the robot, the scenario and the plan. The controller and its kernels
are not used.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.certificate.clearance_checks import clearance_checks, stance_clearance, unplanned_point_checks
from mcplan.certificate.contact_checks import force_checks
from mcplan.certificate.external_checks import external_checks
from mcplan.certificate.motion_checks import motion_checks
from mcplan.certificate.object_checks import object_checks, stance_objects
from mcplan.certificate.place_checks import place_checks
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.record_checks import record_checks, solver_checks
from mcplan.certificate.report import Check, Report
from mcplan.certificate.stance_checks import judge_plan, stance_checks
from mcplan.certificate.tolerances import Tolerances
from mcplan.certificate.transition_checks import transition_checks
from mcplan.errors import InputError
from mcplan.planning.plan import Plan
from mcplan.record.recording import record_plan, record_robot
from mcplan.record.run import Run, load_run
from mcplan.util.progress import report_progress
from mcplan.util.qp_status import HOLD, SLACK


def verify(run: Any, tolerances: Tolerances | None = None) -> Report:
    """Verify a run, or a plan: its stances and the motions between them.

    Parameters
    ----------
    run : Run or Plan; or the path of ``run.npz``, of its directory, or of a plan file (``.yaml``).
    tolerances : allowed deviations; by default those of the run's physics.

    Raises
    ------
    RunError, ScenarioError
        The file cannot be read.
    InputError
        ``run`` is neither a run nor a plan.
    """
    if isinstance(run, str | Path):
        if Path(run).suffix.lower() in (".yaml", ".yml"):
            from mcplan.planning.plan_file import load_plan  # only a plan file needs the planner's imports

            run = load_plan(run)
        else:
            run = load_run(run)
    if not isinstance(run, Run | Plan):
        expected = "a Run, a Plan, or the path of one"
        raise InputError(f"verify: expected {expected}, not {type(run).__name__}")
    if not isinstance(run, Run):
        title = f"plan {run.scenario.name}, {len(run.stances)} stances"
        robot = record_robot(run.scenario.robot)
        report_progress("judging stances")
        checks = [*stance_checks(run, robot), stance_clearance(run), *stance_objects(run)]
        report_progress("judging the motions between them")
        checks += transition_checks(run, robot)
        report = judge_plan(robot, record_plan(run), title, checks)
        return replace(report, values=report.values | {"goal_reached": goal_reached(report.checks)})
    with np.errstate(all="ignore"):  # a tampered run may hold any number; NaN fails its check
        return _judge(run, tolerances)


def _judge(run: Run, tolerances: Tolerances | None) -> Report:
    count, finite = finite_samples(run)
    checks = [finite]
    if count:
        report_progress("judging motion")
        evidence = RecomputedRun(run if count == len(run) else first_samples(run, count), tolerances)
        checks += [*record_checks(evidence), *motion_checks(evidence), *external_checks(evidence)]
        report_progress("judging forces")
        checks += [*force_checks(evidence), *unplanned_point_checks(evidence), *place_checks(evidence)]
        report_progress("judging clearances")
        checks += [*clearance_checks(evidence), *object_checks(evidence), *solver_checks(evidence)]
    by_name = {check.name: check for check in checks}

    def value(name: str) -> Any:
        return by_name[name].value if name in by_name else None

    values = {
        "goal_reached": goal_reached(checks) and finite.passed if count else False,
        "fell": not by_name["fall"].passed if count else None,
        "eom_residual": value("equation of motion"),
        "integration_residual": value("integration identity"),
        "friction_margin": value("friction margin"),
        "friction_ratio": value("friction ratio"),
        "torque_ratio": value("torque"),
        "velocity_ratio": value("velocity"),
        "position_margin": value("position"),
        "slip": value("slip"),
        "clearance": value("clearance"),
        "solver_failures": int(np.count_nonzero((run.qp_status == SLACK) | (run.qp_status == HOLD))),
    }
    name = run.record.scenario.document.get("name") or run.record.robot.name
    title = f"{name}, {run.record.physics}, {len(run)} samples, {run.t[-1] - run.t[0] + run.dt:.3f} s"
    values = {key: json_number(item) for key, item in values.items()}
    return Report(title, tuple(checks), values, tuple(notice.model_dump() for notice in run.record.notices))


def first_samples(run: Run, count: int) -> Run:
    """Return the first ``count`` samples of a run."""
    points = int(run.point_start[count])
    arrays = {}
    for name, array in run.arrays().items():
        end = count + 1 if name == "point_start" else points if name.startswith("point_") else count
        arrays[name] = array[:end]
    return replace(run, **arrays)  # type: ignore[arg-type]


def finite_samples(run: Run) -> tuple[int, Check]:
    """Return the number of samples before the first invalid one, and the check that there is none.

    A sample is invalid if a number is not finite, or its base quaternion is far from length 1.
    """
    count, failure = len(run), ""
    sample = run.point_sample()
    for name, array in run.arrays().items():
        bad = ~np.isfinite(array.reshape(len(array), int(np.prod(array.shape[1:])))).all(axis=1)
        if name == "q":
            bad |= ~(np.abs(np.linalg.norm(array[:, 3:7], axis=1) - 1) < 0.5)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            k = int(sample[i]) if name.startswith("point_") else i
            if k < count:
                count, failure = k, f"{name} is not a number at t = {run.t[k]:.3f} s (sample {k})"
    excluded = float(len(run) - count)
    return count, Check("all numbers finite", excluded, "samples left out", "== 0", not failure, "", failure)


def goal_reached(checks: Iterable[Check]) -> bool:
    """Whether all checks of the goal passed: its items, and the execution of the plan to its end."""
    names = ("goal", "item ", "last stance", "carried out")
    return all(check.passed for check in checks if check.name.startswith(names))


def json_number(value: Any) -> Any:
    """Return a value for JSON: None for numbers that are not finite."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
