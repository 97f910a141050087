"""Checks of the controller's program: how many ticks had no solution, and what those in slack form gave up."""

from collections.abc import Iterator

import numpy as np

from mcplan.certificate.evidence import Evidence
from mcplan.certificate.report import Check
from mcplan.sim.loss import SMALL
from mcplan.sim.run import HOLD, NO_QP, SLACK


def solver_checks(evidence: Evidence) -> Iterator[Check]:
    """Yield the lines of the certificate that concern the solutions of the controller's program.

    The program is due at every step, or at the whole fraction of them that ``control.rate`` says; a step at which it
    was due and is said not to have been asked counts as one without a solution.
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
    slack = (run.qp_status == SLACK) & ~(amount <= SMALL)
    yield _share(evidence, "ticks in slack form", slack, due, tolerances.slack)
    if run.qp_slack is None:
        yield Check("slack", None, "", "", True, "the run does not say how much")
        return
    total = float(np.sum(np.where(slack, amount, 0.0)) * every * run.dt)
    worst = int(np.argmax(np.where(slack, amount, 0.0)))
    where = f"up to {amount[worst]:.3g} at {evidence.time(worst)}" if slack.any() else ""
    bound = tolerances.slack_amount
    failure = "" if total <= bound else f"the program gave up {total:.4g} m/s (rad/s, N s) of its rows, {where}"
    yield Check("slack", total, "m/s, rad/s, N s", f"<= {bound:g}", not failure, where, failure)


def steps_per_tick(evidence: Evidence) -> int:
    """Return how many steps a tick of the controller lasts, by the scenario."""
    rate = evidence.section("control").get("rate")
    if not isinstance(rate, int | float) or not rate > 0.0:
        return 1
    return max(1, round(1.0 / (rate * evidence.run.dt)))


def _share(evidence: Evidence, name: str, ticks: np.ndarray, due: np.ndarray, bound: float) -> Check:
    count = int(np.count_nonzero(ticks))
    share = count / max(int(np.count_nonzero(due)), 1)
    where = f"{count}, the first at {evidence.time(int(np.argmax(ticks)))}" if count else ""
    failure = "" if share <= bound else f"{name}: {where}; {share:.3g} of all, allowed {bound:g}"
    return Check(name, share, "of all", f"<= {bound:g}", not failure, where, failure)
