"""The whole-body program solved compiled and by ``problem.solve``, at random: structures, states, what is active.

All of it, ten thousand feasible programs and those that have no solution, with a report of counts and differences::

    python -m tests.qp.agreement [count] [--seed N] [--robot NAME]
"""

import argparse
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import cvxpy as cp
import numpy as np

from mcplan.model.robot_file import load_robot
from mcplan.model.terms import Terms
from mcplan.qp import (
    AngularMomentumTask,
    CollisionAvoidance,
    ComTask,
    ContactConstraint,
    ContactForceTask,
    LinkPoseTask,
    PostureTask,
    QPSettings,
    TorqueTask,
    WholeBodyQP,
)
from tests.qp.conftest import contact_at
from tests.qp.kkt import classify, program_at, residuals_of_compiled, residuals_of_daqp
from tests.qp.small_robots import biped, quadruped

TOLERANCE = 1e-6
"""Largest relative difference of cost, residuals and primals."""

POSTURE = {"hrp2": "half_sitting", "quadruped": "stand", "biped": "stand"}
DAQP = {"solver": cp.DAQP, "eps_prox": -1e-5, "iter_limit": 2000, "primal_tol": 1e-10}
CLARABEL = {"solver": cp.CLARABEL, "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
SLIDING = np.eye(6)[1:]
EDGES = {"toe": 4, "knee": 4, "heel": 4, "edge": 4, "forearm": 3}
"""Rotation that an edge leaves free, by the end of the patch's name."""


def robots(folder: Path):
    """HRP-2 and two unlike it."""
    return {"hrp2": load_robot("hrp2"), "quadruped": quadruped(folder), "biped": biped(folder)}


@dataclass
class Case:
    """One structure: a program, and how to draw states and contacts for it."""

    name: str
    robot: object
    patches: list
    kinds: dict
    settings: QPSettings
    efforts: list
    slots: int
    terms: Terms = None
    qp: WholeBodyQP = None
    label: dict = field(default_factory=dict)


def draw_case(robot, name, rng, contacts=None, torque=None, **options) -> Case:
    """A random structure: up to four contacts on different limbs, random options, sometimes weak motors.

    ``torque`` scales the torque limits; ``options`` are settings that are not random.
    """
    by_limb = defaultdict(list)
    for patch in robot.patches.values():
        by_limb[patch.limb].append(patch.name)
    count = int(rng.integers(0, 5)) if contacts is None else contacts
    limbs = rng.permutation(sorted(by_limb))[:count]
    patches = [str(rng.choice(by_limb[limb])) for limb in limbs]
    kinds = {}
    for patch in patches:
        p = robot.patches[patch]
        edge = next((row for end, row in EDGES.items() if patch.endswith(end) and len(p.points) == 2), None)
        selection = None if edge is None else np.delete(np.eye(6), edge, axis=0)
        kind = p.kind
        if p.kind == "surface" and selection is None and rng.random() < 0.25:
            kind, selection = ("point", None) if rng.random() < 0.5 else ("surface", SLIDING)
        if p.kind == "grasp" and rng.random() < 0.3:
            selection = np.delete(np.eye(6), 4, axis=0)
        kinds[patch] = (kind, selection, int(rng.choice([4, 8])))
    settings = QPSettings(
        explain="never",
        torque_weight=float(rng.choice([0.0, 0.0, 1e-6])),
        force_rate_weight=float(rng.choice([0.0, 1e-5])),
        force_weight=float(rng.choice([1e-5, 1e-3])),
        wrench_weight=(1e-5, 1e-5, 1e-8, 2e-5, 2e-5, 2e-5) if patches and rng.random() < 0.3 else None,
        dt=float(rng.choice([1e-3, 4e-3])),
    )
    settings = replace(settings, **options)
    efforts = []
    if rng.random() < 0.25:
        efforts.append("torque")
    if patches and rng.random() < 0.25:
        efforts.append("force")
    scale = float(rng.choice([1.0, 1.0, 0.5])) if torque is None else torque
    limited = SimpleNamespace(
        nv=robot.nv, n=robot.n, joint_names=robot.joint_names, patches=robot.patches, tree=robot.tree,
        frame=robot.frame, integrate=robot.integrate, full=robot,
        limits=replace(robot.limits, torque=scale * robot.limits.torque),
    )  # fmt: skip
    return Case(name, limited, patches, kinds, settings, efforts, int(rng.choice([0, 0, 3])))


def draw_state(case: Case, rng):
    """Random ``q`` and ``v``: near a posture or far from it, calm or fast, sometimes with joints at their limits."""
    robot = case.robot
    lower, upper = robot.limits.lower, robot.limits.upper
    calm = rng.random() < 0.6
    size = (0.1 if calm else 0.4) * (1.0 if len(case.patches) < 3 else 0.3)
    motion = np.r_[rng.normal(size=6) * 0.4, rng.normal(size=robot.n) * 2 * size]
    q = robot.integrate(robot.full.posture(POSTURE[case.name]), motion, 1.0)
    low, high = np.where(np.isfinite(lower), lower, -np.pi), np.where(np.isfinite(upper), upper, np.pi)
    v = size * np.r_[0.5 * rng.normal(size=6), rng.normal(size=robot.n)]
    kind = "calm" if calm else "fast"
    q[7:] = np.clip(q[7:], low + 0.02, high - 0.02)
    if rng.random() < 0.3:
        kind += ", joints at limits"
        for joint in rng.choice(robot.n, 3, replace=False):
            side = rng.random() < 0.5
            q[7 + joint] = (high[joint] - 0.004) if side else (low[joint] + 0.004)
            v[6 + joint] = (1 if side else -1) * abs(v[6 + joint]) * 0.3
    return q, v, kind


def draw_contacts(case: Case, q, rng):
    """Contacts where the patches are, a little off, with random friction and bounds on the forces."""
    contacts = []
    for patch in case.patches:
        kind, selection, faces = case.kinds[patch]
        own = case.robot.patches[patch]
        bounds = {"max_force": own.max_force, "max_moment": own.max_moment} if kind == "grasp" else {}
        friction = float(rng.uniform(0.15, 1.0))
        place = contact_at(case.robot, patch, q, kind, friction, selection, **bounds)
        contact = ContactConstraint(place, faces=faces, kp=float(rng.choice([0.0, 100.0])), kd=20.0)
        contact.p = contact.p + 1e-3 * rng.normal(size=3)
        if kind != "grasp" and rng.random() < 0.3:
            contact.max_force = float(rng.uniform(0.05, 1.0)) * 9.81 * case.robot.full.mass
        if kind != "grasp" and rng.random() < 0.2:
            contact.min_force = min(float(rng.uniform(0.0, 0.1)) * 9.81 * case.robot.full.mass, contact.max_force)
        contacts.append(contact)
    return contacts


def draw_tasks(case: Case, q, contacts, rng):
    """A controller's tasks with references that are sometimes far away, and pairs of bodies that are near."""
    robot, terms = case.robot, case.terms
    far = rng.random() < 0.4
    com = ComTask(weight=float(rng.choice([1.0, 100.0])))
    com.position = terms.com + 0.02 * rng.normal(size=3)
    com.acceleration = (3.0 if far else 0.3) * rng.normal(size=3)
    trunk = LinkPoseTask(robot.full.link_names[0], position=False, weight=5.0, kp=100.0)
    trunk.R = terms.frame(robot.full.link_names[0]).R.copy()
    posture = PostureTask(q[7:] + 0.1 * rng.normal(size=robot.n))
    tasks = [com, posture, trunk, AngularMomentumTask()]
    if "torque" in case.efforts:
        task = TorqueTask(robot.n, weight=1e-4)
        task.torque = 0.1 * rng.normal(size=robot.n)
        tasks.append(task)
    if "force" in case.efforts:
        task = ContactForceTask(case.patches[0], weight=1e-2)
        task.wrench = 20.0 * rng.normal(size=6)
        tasks.append(task)
    limits = []
    if case.slots:
        avoidance = CollisionAvoidance(case.slots, dt=case.settings.dt)
        near = int(rng.integers(0, case.slots + 2))
        J = rng.normal(size=(near, robot.nv)) * (rng.random((near, robot.nv)) < 0.4)
        avoidance.set_pairs(0.02 + 0.02 * rng.random(near), J)
        limits.append(avoidance)
    return tasks, limits, far


def fill(case: Case, rng, extra=None, change=lambda contacts: None, rest=False):
    """Draw a state and fill the program of the case, which is declared at the first call."""
    q, v, kind = draw_state(case, rng)
    v *= not rest
    if case.terms is None:
        case.terms = Terms(case.robot, [*case.patches, case.robot.full.link_names[0]])
    case.terms.update(q, v)
    contacts = draw_contacts(case, q, rng)
    change(contacts)
    tasks, limits, far = draw_tasks(case, q, contacts, rng)
    if case.qp is None:
        case.qp = WholeBodyQP(case.robot, contacts, tasks, case.settings, extra, limits)
    previous = {c.patch: 10.0 * rng.normal(size=c.shape.unknowns) for c in contacts if rng.random() < 0.7}
    push = 5.0 * rng.normal(size=case.robot.nv) if rng.random() < 0.3 else None
    case.qp.update(case.terms, contacts, tasks, push, previous, limits)
    return kind + (", far targets" if far else "")


@dataclass
class Outcome:
    """What the two ways of solving give, and how far apart they are, relatively."""

    ours: str
    theirs: str
    arbiter: str = ""
    cost: float = 0.0
    primal: float = 0.0
    residual: float = 0.0
    residual_of_plain: float = 0.0
    fallback: bool = False
    active: tuple = ()
    seconds: tuple = (0.0, 0.0)
    note: str = ""

    @property
    def solved(self) -> bool:
        """Whether both found a solution."""
        return self.ours == self.theirs == cp.OPTIMAL


def compare(problem, compiled, unique=True) -> Outcome:
    """Solve compiled at its ``theta`` and by CVXPY at the parameters' values, which are the same."""
    before, start = compiled.fallbacks, time.perf_counter()
    ours = compiled.solve()
    middle = time.perf_counter()
    x, dual, objective = compiled.x.copy(), compiled.dual.copy(), compiled.objective
    mine = {v.id: np.array(compiled.value(v)) for v in problem.variables()} if ours == cp.OPTIMAL else {}
    theirs, raw, value = _plain(problem)
    out = Outcome(ours, theirs, seconds=(middle - start, time.perf_counter() - middle))
    out.fallback = compiled.fallbacks > before
    data = program_at(compiled)
    if ours == cp.OPTIMAL:
        out.residual, out.active = residuals_of_compiled(data, x, dual)
    if theirs == cp.OPTIMAL:
        out.residual_of_plain = residuals_of_daqp(data, raw)
    if out.solved:
        out.cost = abs(objective - value) / max(1.0, abs(value))
        if unique:
            out.primal = _distance(mine, {v.id: v.value for v in problem.variables()})
    disagree = ours != theirs or max(out.cost, out.primal, out.residual_of_plain) > TOLERANCE
    if not out.solved:
        out.arbiter = classify(data)
    if disagree and cp.OPTIMAL in (ours, theirs):
        _arbitrate(problem, out, mine, objective, unique)
    return out


def _plain(problem):
    """``problem.solve`` with DAQP in its parts, so that what DAQP itself returned is at hand."""
    options = {key: value for key, value in DAQP.items() if key != "solver"}
    data, chain, inverse = problem.get_problem_data(cp.DAQP, solver_opts=options)
    raw = chain.solve_via_data(problem, data, solver_opts=dict(options))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.unpack_results(raw, chain, inverse)
    except cp.SolverError:
        return cp.SOLVER_ERROR, raw, np.nan
    return problem.status, raw, problem.value


def _arbitrate(problem, out: Outcome, mine, objective, unique) -> None:
    """Let CLARABEL's answer, where it has one, take the place of DAQP's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(**CLARABEL)
    except cp.SolverError:
        return
    if mine and problem.status == cp.OPTIMAL:  # an inaccurate one is none; then the residual alone must prove ours
        out.arbiter = cp.OPTIMAL
        cost = abs(objective - problem.value) / max(1.0, abs(problem.value))
        primal = _distance(mine, {v.id: v.value for v in problem.variables()}) if unique else 0.0
        out.note = (
            f"ours {out.ours}, DAQP {out.theirs}; from DAQP: cost {out.cost:.1e} primal {out.primal:.1e} residual "
            f"{out.residual_of_plain:.1e}; from CLARABEL: cost {cost:.1e} primal {primal:.1e}"
        )
        out.cost, out.primal = cost, primal


def _distance(mine, theirs) -> float:
    """Largest difference over the largest entry, by variable."""
    worst = 0.0
    for key, value in mine.items():
        a, b = np.asarray(value, dtype=float), np.asarray(theirs[key], dtype=float)
        worst = max(worst, float(np.max(np.abs(a - b), initial=0.0)) / max(1.0, float(np.max(np.abs(b), initial=0.0))))
    return worst


def run(count: int, seed: int = 0, only: str | None = None, per_case: int = 60, report=print):
    """Compare ``count`` feasible programs, evenly over the robots; return counts, the worst, and what disagreed."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        everyone = {name: r for name, r in robots(Path(folder)).items() if only in (None, name)}
    counts, times, wrong = Counter(), [], []
    worst = defaultdict(float)
    feasible, case_number = 0, 0
    while feasible < count:
        name = list(everyone)[case_number % len(everyone)]
        case = draw_case(everyone[name], name, rng, contacts=(case_number // len(everyone)) % 5)
        case_number += 1
        for _ in range(per_case):
            kind = fill(case, rng)
            out = compare(case.qp.problem, case.qp.fast.compiled)
            verdict = out.ours if out.ours == out.theirs else f"compiled {out.ours}, DAQP {out.theirs}, {out.arbiter}"
            counts["result", verdict] += 1
            if out.ours != cp.OPTIMAL:
                if out.ours != out.arbiter:
                    wrong.append((case, kind, out))
                continue
            feasible += 1
            times.append(out.seconds)
            for what in (("robot", name), ("contacts", len(case.patches)), ("state", kind), ("fallback", out.fallback)):
                counts[what] += 1
            for what in _kinds_of_active_rows(case, out.active):
                counts["active", what] += 1
            for patch in case.patches:
                counts["contact kind", _kind_of(case, patch)] += 1
            for what in ("cost", "primal", "residual", "residual_of_plain"):
                worst[what] = max(worst[what], getattr(out, what))
            if out.note:
                counts["arbiter asked", name] += 1
            unconfirmed = out.theirs != cp.OPTIMAL and out.arbiter != cp.OPTIMAL
            if unconfirmed or max(out.cost, out.primal, out.residual) > TOLERANCE:
                wrong.append((case, kind, out))
            if feasible == count:
                break
        report(f"{feasible} of {count}; {case_number} structures; {dict(worst)}; {len(wrong)} disagree")
    return SimpleNamespace(counts=counts, worst=dict(worst), times=np.array(times), wrong=wrong, structures=case_number)


def no_motors(case, rng):
    """Torque limits of a thousandth: the limbs can neither hang still nor carry."""
    return fill(case, rng)


def too_much_force(case, rng):
    """A contact must press with two hundred times the robot's weight, or with more than it may."""

    def change(contacts):
        for contact in contacts:
            contact.min_force = 200 * 9.81 * case.robot.full.mass

    return fill(case, rng, change=change)


def torn_contacts(case, rng):
    """The contacts are asked to part faster than the joints' bounds allow."""

    def change(contacts):
        for contact in contacts:
            contact.kp, contact.p = 1e4, contact.p + rng.normal(size=3)

    return fill(case, rng, change=change)


def pulled_up(case, rng):
    """The robot may not move, and is pulled: by less than the contacts bear, or by more."""

    def still(qp):
        return [], [qp.vd == 0]

    def change(contacts):
        for contact in contacts:
            contact.kp = 0.0

    return fill(case, rng, still, change, rest=True)


def free_variable(case, rng):
    """The user adds a variable with a price and no bound on the side where it pays; sometimes the price is zero."""

    def added(qp):
        z, price = cp.Variable(2), cp.Parameter(2, name="price")
        qp.price = price
        return [price @ z], [z >= -1.0]

    kind = fill(case, rng, extra=added)
    case.qp.price.value = rng.normal(size=2) * (rng.random(2) < 0.6)
    case.qp.fast.compiled.set(case.qp.price, case.qp.price.value)
    return kind


def no_regularisation(case, rng):
    """Nothing but linear terms in the accelerations: they fall for ever unless limits catch them."""
    kind = fill(case, rng)
    for name in ("acceleration_weight", "task_matrix", "force_weight"):
        if name in case.qp.data:
            case.qp.data[name][...] = 0.0
    case.qp.data["acceleration_pull"][...] = rng.normal(size=case.robot.nv)
    return kind


def linear_with_limits(case, rng):
    """The same with the limits: a linear program."""
    return no_regularisation(case, rng)


UNLIMITED = {"torque_limits": False, "velocity_limits": False, "position_limits": False}
HARD = {
    no_motors: {"torque": 1e-3},
    too_much_force: {},
    torn_contacts: {},
    pulled_up: {},
    free_variable: {},
    no_regularisation: {**UNLIMITED, "wrench_weight": None, "torque_weight": 0.0},
    linear_with_limits: {"wrench_weight": None, "torque_weight": 0.0},
}
"""Ways to have no solution, and what the structure needs for them."""


def run_hard(count: int, seed: int = 0, per_case: int = 10, report=print):
    """Classify ``count`` programs, most without a solution; return counts, the worst of the rest, what disagreed."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        everyone = robots(Path(folder))
    counts, wrong, worst = Counter(), [], defaultdict(float)
    tried = number = 0
    while tried < count:
        way, options = list(HARD.items())[number % len(HARD)]
        name = list(everyone)[(number // len(HARD)) % len(everyone)]
        low = 1 if way in (too_much_force, torn_contacts) else 0
        case = draw_case(everyone[name], name, rng, contacts=int(rng.integers(low, 5)), **options)
        linear = way in (no_regularisation, linear_with_limits)
        if linear:
            case.efforts.clear()
        number += 1
        for _ in range(per_case):
            kind = way(case, rng)
            out = compare(case.qp.problem, case.qp.fast.compiled, unique=not linear and way is not free_variable)
            tried += 1
            truth = out.arbiter or out.ours
            counts[way.__name__, f"compiled {out.ours}, DAQP {out.theirs}, arbiter {out.arbiter or 'not asked'}"] += 1
            if out.ours != truth:
                wrong.append((case, f"{way.__name__}: {kind}", out))
            elif out.ours == cp.OPTIMAL:
                for what in ("cost", "primal", "residual"):
                    worst[what] = max(worst[what], getattr(out, what))
                if max(out.cost, out.primal, out.residual) > TOLERANCE:
                    wrong.append((case, f"{way.__name__}: {kind}", out))
    report(f"{tried} programs without solution for the most part, {number} structures; {len(wrong)} disagree")
    return SimpleNamespace(counts=counts, worst=dict(worst), times=np.zeros((0, 2)), wrong=wrong, structures=number)


def _kind_of(case: Case, patch: str) -> str:
    kind, selection, _ = case.kinds[patch]
    if kind == "surface":
        edge = len(case.robot.patches[patch].points) == 2
        kind = "edge" if edge else "sliding surface" if selection is not None else "surface"
    return kind if selection is None or kind != "grasp" else "hinged grasp"


def _kinds_of_active_rows(case: Case, active):
    """Which groups of the declared inequalities have a positive multiplier; -1 stands for the torque bounds."""
    rows, start = [], 0
    for group in case.qp.declaration.rows:
        if not group.equality:
            size = group.expression.size
            rows.append((group.name, range(start, start + size)))
            start += size
    return {name for name, place in rows for k in active if k in place} | ({"torque"} if -1 in active else set())


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=10_000, help="feasible programs")
    parser.add_argument("--hard", type=int, default=None, help="programs without solution; a tenth of count")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--robot", default=None, help="one of hrp2, quadruped, biped; all")
    arguments = parser.parse_args()
    start = time.perf_counter()
    feasible = run(arguments.count, arguments.seed, arguments.robot)
    middle = time.perf_counter()
    hard = run_hard(arguments.count // 10 if arguments.hard is None else arguments.hard, arguments.seed)
    ends = (middle - start, time.perf_counter() - middle)
    for title, result, seconds in zip(("feasible", "without solution"), (feasible, hard), ends, strict=True):
        print(f"\n{title}: {result.structures} structures, {seconds:.0f} s")
        for key, number in sorted(result.counts.items(), key=str):
            print(f"  {key[0]:<18} {key[1]!s:<60} {number}")
        for what, value in result.worst.items():
            print(f"  largest {what:<20} {value:.2e}")
        for case, kind, out in result.wrong[:20]:
            print(f"  DISAGREE {case.name} {case.patches} {kind} {case.settings}\n    {out}")
    if len(feasible.times):
        compiled, plain = np.median(feasible.times, axis=0) * 1e3
        print(f"\nmedian time of a solve: compiled {compiled:.3f} ms, CVXPY with DAQP {plain:.3f} ms")
    raise SystemExit(bool(feasible.wrong or hard.wrong))


if __name__ == "__main__":
    main()
