"""What a case does: plan, and carry the plan out; everything that there is to say about it, in one row.

What is sent to a worker; apart from the job, whose imports take seconds.

Plans that cases of a sweep share which differ only in how they are carried out: found once, kept while it runs.

Whichever case finds a plan, the rows of all of them say how long that took.
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
    """A case as it is sent to a worker: plain values, no file of the sender's is needed but that of a robot of its own.

    Parameters
    ----------
    data : the scenario, resolved.
    path : of the scenario's file; the path of a robot or a mesh is relative to it.
    robot : identity that the robot must have (`mcplan.robot.robot_file.robot_identity`).
    seed, steps, keep : as in the experiment.
    kept : directory of the files that are kept of the case; what a plan is read from is relative to it.
    plans : directory for plans that cases share (`mcplan.sweep.job`); none without a name.
    meshes : sha256 (hex) of each mesh around the robot, which the files there must have (`mcplan.sweep.case`).
    """

    data: dict[str, Any]
    path: str
    robot: str
    seed: int
    steps: str
    keep: tuple[str, ...]
    kept: str
    plans: str = ""
    meshes: tuple[str, ...] = ()


CARRIED_OUT = "simulation"
"""The section of a scenario that no planner looks at."""


def _carried_out(name: str) -> bool:
    """Say whether a field matters only when a plan is carried out."""
    return name.partition(".")[0] == CARRIED_OUT


def shares(names: tuple[str, ...]) -> bool:
    """Whether cases that differ in these fields may have one plan."""
    return any(map(_carried_out, names))


def plans_first(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return cases in such an order that one of each plan comes before the others: workers would find it twice."""
    known: Counter[str] = Counter()
    turns = []
    for case in cases:
        asked = {name: value for name, value in case.overrides.items() if not _carried_out(name)}
        plan = digest([case.scenario, asked, case.seed, case.variant, case.robot])
        turns.append(known[plan])
        known[plan] += 1
    return tuple(case for _, case in sorted(zip(turns, cases, strict=True), key=lambda pair: pair[0]))


class SharedPlan:
    """Where the plan of a case is, or will be.

    Parameters
    ----------
    task : the case; a directory for plans that it does not name, or that is on another machine, holds none.
    seed : of the planner.
    """

    def __init__(self, task: Job, seed: int):
        asked = {key: value for key, value in task.data.items() if key != CARRIED_OUT}
        self._task, self._file = task, None
        if task.plans and Path(task.plans).parent.is_dir():
            name = digest([asked, task.meshes, task.path, task.robot, seed, code_version()])
            self._file = Path(task.plans) / f"{name}.json"

    def read(self, robot: Robot) -> tuple[dict[str, Any], Plan | None] | None:
        """Return what was said of the planning, and the plan if one was found; None where nobody has tried."""
        if self._file is None or not self._file.is_file():
            return None
        kept = json.loads(self._file.read_text(encoding="utf-8"))
        if kept["plan"] is None:
            return kept["row"], None
        own = {key: value for key, value in self._task.data.items() if key == CARRIED_OUT}
        data = {key: value for key, value in kept["plan"].items() if key != CARRIED_OUT} | own
        return kept["row"], plan_of(Scenario.of(Document(self._task.path, data, Mark(None)), robot=robot))

    def write(self, row: dict[str, Any], plan: Plan | None) -> None:
        """Keep what there is to say of the planning, and the plan if one was found."""
        if self._file is not None:
            data = None if plan is None else plan_document(plan, Path(self._task.path).parent)
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
"""From a column to the margin of a stance and how the worst of them is found."""

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
"""From a column to the key of the certificate of a run."""


NAMED = 2
"""Broken lines of a certificate that a cause names: the others follow from them, more often than not."""


def run_case(task: Job) -> CaseOutcome:
    """Carry out a case; what is doubtful about its robot has been told where the sweep began."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotWarning)
        return _outcome(task)


def _outcome(task: Job) -> CaseOutcome:
    clock = time.perf_counter()
    row: dict[str, Any] = {"success": False, "planned": False}
    files: dict[str, bytes] = {}
    status = DONE
    try:
        scenario = _scenario(task)
        _simulate_case(scenario, task, row, files)
    except InputError as error:
        row |= {"stage": "case", "cause": "wrong input", "failure": str(error)}
        status = FAILED
    return CaseOutcome(status, row, time.perf_counter() - clock, files)


def warm_up(physics: tuple[str, ...]) -> None:
    """Compile every kernel that a case may need, so that no two processes do it at the same time."""
    make_plan(load_scenario("walk", {"parameters.distance": 0.3}))
    plan = make_plan(load_scenario("sway"))
    verify(plan)
    for name in physics:
        simulation = Simulation(plan, name)
        for _ in range(20):
            simulation.step()
        verify(simulation.finish())


def _planner_seed(task: Job) -> int:
    """Return the seed of the planner: a variant is another problem already, and is solved as a user would at first."""
    return 0 if task.data.get("variant") else task.seed


def _simulate_case(scenario: Scenario, task: Job, row: dict[str, Any], files: dict[str, bytes]) -> None:
    """Fill in the row and the files, up to the stage that fails."""
    plan = _planned(scenario, task, row)
    if plan is not None and "plan" in task.keep:
        files["plan.yaml"] = dump_document(plan_document(plan, task.kept)).encode()
    if plan is None or task.steps == "plan":
        return
    stopped: JobFailed | None = None
    try:
        run = _timed(row, "run_time", lambda: simulate(plan, seed=task.seed))
    except SimulationFailed as failure:
        stopped, run = failure, failure.run
    except JobFailed as failure:
        stopped, run = failure, None
    row["finished"] = stopped is None
    if run is not None:
        before = row["verify_time"]
        report = _timed(row, "verify_time", lambda: verify(run))
        row["verify_time"] += before
        row |= _run_values(run, report)
        _judge(row, report, "certificate")
        files |= _run_files(run, report, task.keep)
    if stopped is not None:
        row |= {"success": False, "stage": "simulation", "cause": _cause(stopped, run), "failure": str(stopped)}


def _planned(scenario: Scenario, task: Job, row: dict[str, Any]) -> Plan | None:
    """Return the plan of a case, found now or by a case that shares it; fill in what there is to say of it."""
    seed = _planner_seed(task)
    shared = SharedPlan(task, seed)
    if (known := shared.read(scenario.robot)) is not None:
        row |= known[0]
        return known[1]
    plan: Plan | None = None
    try:
        plan = _timed(row, "plan_time", lambda: make_plan(scenario, seed=seed))
    except JobFailed as failure:
        said = {"stage": "plan", "cause": "no plan", "failure": str(failure)}
        row |= {**said, **_search(getattr(failure, "tree", None))}
    else:
        certificate = _timed(row, "verify_time", lambda: verify(plan))
        row |= {"planned": True, "certified": certificate.success, **_plan_values(plan), **_search(plan.tree)}
        if task.steps == "plan":
            _judge(row, certificate, "plan certificate")
    shared.write(row, plan)
    return plan


def _scenario(task: Job) -> Scenario:
    document = Document(task.path, task.data, Mark(None))
    scenario = Scenario.of(document, robot=_robots.get(task.robot))
    if robot_identity(scenario.robot) != task.robot:
        raise InputError(f"{scenario.robot.name}: the robot's files here are not those of the machine that sweeps")
    if mesh_digests(document) != task.meshes:
        raise InputError(f"{task.path}: its mesh files here are not those of the machine that sweeps")
    _robots.setdefault(task.robot, scenario.robot)
    return scenario


_robots: dict[str, Robot] = {}
"""Robots of this process by their identity: loading one takes as long as many a plan."""


def _timed(row: dict[str, Any], name: str, call: Callable[[], Any]) -> Any:
    clock = time.perf_counter()
    try:
        return call()
    finally:
        row[name] = time.perf_counter() - clock


def _judge(row: dict[str, Any], report: Report, stage: str) -> None:
    row |= {
        "success": report.success,
        "stage": "" if report.success else stage,
        "cause": _causes([check.name for check in report.checks if not check.passed]),
        "failure": "\n".join(report.failures),
    }


def _causes(lines: list[str]) -> str:
    """Return the first lines of a certificate that are broken, and how many more there are."""
    more = f"; {len(lines) - NAMED} more" if len(lines) > NAMED else ""
    return "; ".join(lines[:NAMED]) + more


def _cause(stopped: JobFailed, run: Run | None) -> str:
    """Return in a few words why a simulation had to stop, and in which phase."""
    cause = stopped.cause if isinstance(stopped, SimulationFailed) else "stopped"
    return cause if run is None or not len(run) else f"{cause} in {run.phases[run.phase[-1]]}"


def _search(tree: Any) -> dict[str, Any]:
    return {} if tree is None else {"nodes": len(tree.nodes), "posture_calls": tree.calls}


def _plan_values(plan: Plan) -> dict[str, Any]:
    values: dict[str, Any] = {
        "stances": len(plan.stances),
        "plan_duration": sum(transition.duration for transition in plan.transitions),
    }
    for column, (name, worst) in PLAN_MARGINS.items():
        found = [margin for stance in plan.stances if (margin := stance.margins.get(name)) is not None]
        values[column] = worst(found) if found else None
    return values


def _run_values(run: Run, report: Report) -> dict[str, Any]:
    said: Mapping[str, Any] = report.to_json()
    fell = said["fell"]
    values = {column: said[key] for column, key in RUN_VALUES.items()}
    control = run.timing.get("control")
    if control is not None and len(control):
        median, high = np.percentile(1e3 * control, [50, 99])
        values |= {"control_time": float(median), "control_time_99": float(high)}
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
