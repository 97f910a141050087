"""The whole-body program solved compiled and by ``problem.solve``, at random: structures, states, what is active.

All of it, ten thousand feasible programs and those that have no solution, with a report of counts and differences::

    python -m tests.whole_body.agreement [count] [--seed N] [--robot NAME]
"""

import argparse
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace

import cvxpy as cp
import numpy as np

from tests.whole_body.comparison import TOLERANCE, compare
from tests.whole_body.hard_programs import (
    HARD,
    free_variable,
    linear_with_limits,
    no_regularisation,
    too_much_force,
    torn_contacts,
)
from tests.whole_body.random_programs import Case, draw_case, fill, robots


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


def run_hard(count: int, seed: int = 0, per_case: int = 10, report=print):
    """Classify ``count`` programs, most without a solution; return counts, the worst of the rest, what disagreed."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        everyone = robots(Path(folder))
    counts, wrong, worst = Counter(), [], defaultdict(float)
    tried = number = 0
    while tried < count:
        make, options = list(HARD.items())[number % len(HARD)]
        name = list(everyone)[(number // len(HARD)) % len(everyone)]
        low = 1 if make in (too_much_force, torn_contacts) else 0
        case = draw_case(everyone[name], name, rng, contacts=int(rng.integers(low, 5)), **options)
        linear = make in (no_regularisation, linear_with_limits)
        if linear:
            case.efforts.clear()
        number += 1
        for _ in range(per_case):
            kind = make(case, rng)
            out = compare(case.qp.problem, case.qp.fast.compiled, unique=not linear and make is not free_variable)
            tried += 1
            truth = out.arbiter or out.ours
            counts[make.__name__, f"compiled {out.ours}, DAQP {out.theirs}, arbiter {out.arbiter or 'not asked'}"] += 1
            if out.ours != truth:
                wrong.append((case, f"{make.__name__}: {kind}", out))
            elif out.ours == cp.OPTIMAL:
                for what in ("cost", "primal", "residual"):
                    worst[what] = max(worst[what], getattr(out, what))
                if max(out.cost, out.primal, out.residual) > TOLERANCE:
                    wrong.append((case, f"{make.__name__}: {kind}", out))
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
