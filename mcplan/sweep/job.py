"""Execution of one case on a worker: plan, simulate, verify, and the row of results.

Cases that differ only in `simulation` share one plan; it is computed once and stored while the sweep runs. Each
of their rows has the time of this planning.
"""

import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mcplan.certificate.report import Report
from mcplan.certificate.verify import verify
from mcplan.document.build import Mark
from mcplan.document.document import Document, dump_document
from mcplan.errors import InputError, JobFailed, SimulationFailed
from mcplan.planning.plan import Plan
from mcplan.planning.plan_file import plan_document, plan_of
from mcplan.planning.planner import plan as make_plan
from mcplan.record.run import Run
from mcplan.robot.description import RobotWarning
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import robot_identity
from mcplan.scenario.load import load_scenario
from mcplan.scenario.scenario import Scenario
from mcplan.sim.simulate import Simulation, simulate
from mcplan.sweep.case import Case, code_version, digest, mesh_digests
from mcplan.sweep.store import DONE, FAILED, CaseOutcome
from mcplan.util.files import write_text


@dataclass(frozen=True)
class Job:
    """A case as sent to a worker: plain values. The worker needs the files of a custom robot and of meshes.

    Parameters
    ----------
    data : the scenario, resolved.
    path : path of the scenario's file; paths of robots and meshes are relative to it.
    robot : identity that the robot must have (`mcplan.robot.robot_file.robot_identity`).
    seed, steps, keep : as in the experiment.
    output_directory : directory of the case's output files; paths in a plan file are relative to it.
    plans : directory of shared plans; empty: plans are not shared.
    meshes : expected sha256 (hex) of each mesh of the environment (`mcplan.sweep.case`).
    """

    data: dict[str, Any]
    path: str
    robot: str
    seed: int
    steps: str
    keep: tuple[str, ...]
    output_directory: str
    plans: str = ""
    meshes: tuple[str, ...] = ()


SIMULATION = "simulation"
"""Section of a scenario that does not affect the plan."""


def _in_simulation(name: str) -> bool:
    """Return whether a field affects only the simulation."""
    return name.partition(".")[0] == SIMULATION


def can_share_plan(names: tuple[str, ...]) -> bool:
    """Return whether cases that differ in these fields may share a plan."""
    return any(map(_in_simulation, names))


def plans_first(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Sort cases so that one case of each plan comes first; otherwise several workers would compute the same plan."""
    count_of_plan: Counter[str] = Counter()
    ranks = []
    for case in cases:
        inputs = {name: value for name, value in case.overrides.items() if not _in_simulation(name)}
        plan = digest([case.scenario, inputs, case.seed, case.variant, case.robot])
        ranks.append(count_of_plan[plan])
        count_of_plan[plan] += 1
    return tuple(case for _, case in sorted(zip(ranks, cases, strict=True), key=lambda pair: pair[0]))


class SharedPlan:
    """File of a plan that several cases share.

    Parameters
    ----------
    job : the case; without a directory for plans on this machine nothing is read or written.
    seed : seed of the planner.
    """

    def __init__(self, job: Job, seed: int):
        inputs = {key: value for key, value in job.data.items() if key != SIMULATION}
        self._job, self._file = job, None
        if job.plans and Path(job.plans).parent.is_dir():
            name = digest([inputs, job.meshes, job.path, job.robot, seed, code_version()])
            self._file = Path(job.plans) / f"{name}.json"

    def read(self, robot: Robot) -> tuple[dict[str, Any], Plan | None] | None:
        """Return the planning columns and the plan, if one was found; None if no case has planned yet."""
        if self._file is None or not self._file.is_file():
            return None
        stored = json.loads(self._file.read_text(encoding="utf-8"))
        if stored["plan"] is None:
            return stored["row"], None
        simulation = {key: value for key, value in self._job.data.items() if key == SIMULATION}
        data = {key: value for key, value in stored["plan"].items() if key != SIMULATION} | simulation
        return stored["row"], plan_of(Scenario.of(Document(self._job.path, data, Mark(None)), robot=robot))

    def write(self, row: dict[str, Any], plan: Plan | None) -> None:
        """Write the planning columns, and the plan if one was found."""
        if self._file is not None:
            data = None if plan is None else plan_document(plan, Path(self._job.path).parent)
            write_text(self._file, json.dumps({"row": row, "plan": data}))


PLAN_MARGINS = {
    "plan_equilibrium": ("equilibrium", min),
    "plan_equilibrium_torque": ("equilibrium_torque", min),
    "plan_friction": ("friction", min),
    "plan_friction_ratio": ("friction_ratio", max),
    "plan_torque": ("torque", max),
    "plan_clearance": ("clearance", min),
    "plan_position": ("position", min),
}
"""For each column: name of the margin in a stance, and the function that selects the worst value."""

RUN_VALUES = {
    "goal_reached": "goal_reached",
    "worst_friction_margin": "friction_margin",
    "worst_friction_ratio": "friction_ratio",
    "worst_torque_ratio": "torque_ratio",
    "worst_velocity_ratio": "velocity_ratio",
    "worst_position_margin": "position_margin",
    "worst_clearance": "clearance",
    "worst_slip": "slip",
    "solver_failures": "solver_failures",
    "eom_residual": "eom_residual",
}
"""For each column: key in the certificate of a run."""


MAX_LISTED_CHECKS = 2
"""Maximum number of failed checks in a cause; further ones are usually consequences."""


def run_case(job: Job) -> CaseOutcome:
    """Run a case, without robot warnings: loading the experiment has already printed them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotWarning)
        return _outcome(job)


def _outcome(job: Job) -> CaseOutcome:
    start_time = time.perf_counter()
    row: dict[str, Any] = {"success": False, "planned": False}
    files: dict[str, bytes] = {}
    status = DONE
    try:
        scenario = _load_scenario(job)
        _simulate_case(scenario, job, row, files)
    except InputError as error:
        row |= {"stage": "case", "cause": "wrong input", "failure": str(error)}
        status = FAILED
    return CaseOutcome(status, row, time.perf_counter() - start_time, files)


def warm_up(physics: tuple[str, ...]) -> None:
    """Compile every kernel that a case may need, so that parallel processes do not compile the same one."""
    make_plan(load_scenario("walk", {"parameters.distance": 0.3}))
    plan = make_plan(load_scenario("sway"))
    verify(plan)
    for name in physics:
        simulation = Simulation(plan, name)
        for _ in range(20):
            simulation.step()
        verify(simulation.finish())


def _planner_seed(job: Job) -> int:
    """Return the seed of the planner; 0 for variants, which already differ, as in a first attempt by a user."""
    return 0 if job.data.get("variant") else job.seed


def _simulate_case(scenario: Scenario, job: Job, row: dict[str, Any], files: dict[str, bytes]) -> None:
    """Plan, simulate and verify; fill in the row and the files, up to the first stage that fails."""
    plan = _plan_case(scenario, job, row)
    if plan is not None and "plan" in job.keep:
        files["plan.yaml"] = dump_document(plan_document(plan, job.output_directory)).encode()
    if plan is None or job.steps == "plan":
        return
    stopped: JobFailed | None = None
    try:
        run = _record_time(row, "run_time", lambda: simulate(plan, seed=job.seed))
    except SimulationFailed as failure:
        stopped, run = failure, failure.run
    except JobFailed as failure:
        stopped, run = failure, None
    row["finished"] = stopped is None
    if run is not None:
        plan_verify_time = row["verify_time"]
        report = _record_time(row, "verify_time", lambda: verify(run))
        row["verify_time"] += plan_verify_time
        row |= _run_values(run, report)
        _judge(row, report, "certificate")
        files |= _run_files(run, report, job.keep)
    if stopped is not None:
        row |= {"success": False, "stage": "simulation", "cause": _cause(stopped, run), "failure": str(stopped)}


def _plan_case(scenario: Scenario, job: Job, row: dict[str, Any]) -> Plan | None:
    """Return the plan of a case, computed now or by a case that shares it; fill in the planning columns."""
    seed = _planner_seed(job)
    shared = SharedPlan(job, seed)
    if (stored := shared.read(scenario.robot)) is not None:
        row |= stored[0]
        return stored[1]
    plan: Plan | None = None
    try:
        plan = _record_time(row, "plan_time", lambda: make_plan(scenario, seed=seed))
    except JobFailed as failure:
        row |= {"stage": "plan", "cause": "no plan", "failure": str(failure)}
        row |= _search_values(getattr(failure, "tree", None))
    else:
        certificate = _record_time(row, "verify_time", lambda: verify(plan))
        row |= {"planned": True, "certified": certificate.success, **_plan_values(plan), **_search_values(plan.tree)}
        if job.steps == "plan":
            _judge(row, certificate, "plan certificate")
    shared.write(row, plan)
    return plan


def _load_scenario(job: Job) -> Scenario:
    document = Document(job.path, job.data, Mark(None))
    scenario = Scenario.of(document, robot=_robots.get(job.robot))
    if robot_identity(scenario.robot) != job.robot:
        raise InputError(f"{scenario.robot.name}: the robot's files here are not those of the machine that sweeps")
    if mesh_digests(document) != job.meshes:
        raise InputError(f"{job.path}: its mesh files here are not those of the machine that sweeps")
    _robots.setdefault(job.robot, scenario.robot)
    return scenario


_robots: dict[str, Robot] = {}
"""Cache of robots by identity: loading one can take as long as planning."""


def _record_time(row: dict[str, Any], name: str, call: Callable[[], Any]) -> Any:
    """Call a function, and record its clock time (s) in the column ``name``."""
    start_time = time.perf_counter()
    try:
        return call()
    finally:
        row[name] = time.perf_counter() - start_time


def _judge(row: dict[str, Any], report: Report, stage: str) -> None:
    """Fill in success, stage, cause and failure from a certificate."""
    row |= {
        "success": report.success,
        "stage": "" if report.success else stage,
        "cause": _causes([check.name for check in report.checks if not check.passed]),
        "failure": "\n".join(report.failures),
    }


def _causes(lines: list[str]) -> str:
    """Return the first failed checks of a certificate, and the number of further ones."""
    more = f"; {len(lines) - MAX_LISTED_CHECKS} more" if len(lines) > MAX_LISTED_CHECKS else ""
    return "; ".join(lines[:MAX_LISTED_CHECKS]) + more


def _cause(stopped: JobFailed, run: Run | None) -> str:
    """Return a short cause why a simulation stopped, with the phase."""
    cause = stopped.cause if isinstance(stopped, SimulationFailed) else "stopped"
    return cause if run is None or not len(run) else f"{cause} in {run.phases[run.phase[-1]]}"


def _search_values(tree: Any) -> dict[str, Any]:
    return {} if tree is None else {"nodes": len(tree.nodes), "posture_calls": tree.calls}


def _plan_values(plan: Plan) -> dict[str, Any]:
    values: dict[str, Any] = {
        "stances": len(plan.stances),
        "plan_duration": sum(transition.duration for transition in plan.transitions),
    }
    for column, (name, worst) in PLAN_MARGINS.items():
        margins = [margin for stance in plan.stances if (margin := stance.margins.get(name)) is not None]
        values[column] = worst(margins) if margins else None
    return values


def _run_values(run: Run, report: Report) -> dict[str, Any]:
    results: Mapping[str, Any] = report.to_json()
    fell = results["fell"]
    values = {column: results[key] for column, key in RUN_VALUES.items()}
    control = run.timing.get("control")
    if control is not None and len(control):
        median, percentile_99 = np.percentile(1e3 * control, [50, 99])
        values |= {"control_time": float(median), "control_time_99": float(percentile_99)}
    return values | {"upright": None if fell is None else not fell, "duration": float(run.t[-1] - run.t[0] + run.dt)}


def _run_files(run: Run, report: Report, keep: tuple[str, ...]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    if "report" in keep:
        files["report.json"] = json.dumps(report.to_json(), indent=1).encode()
    if "run" in keep:
        with TemporaryDirectory() as directory:
            file = Path(directory) / "run.npz"
            run.save(file)
            files["run.npz"] = file.read_bytes()
    return files
