"""Programs of ticks of plans: the kernel against the declared CVXPY form, at states of bundled scenarios.

``python -m tests.whole_body.test_plan_ticks NAME.plan.yaml ...`` does the same along whole plans of one's own.
"""

import sys

import numpy as np
import pytest

from mcplan.control.usual_tick import UsualTick
from mcplan.planning.plan_file import load_plan
from mcplan.sim.simulate import Simulation
from mcplan.whole_body.rows.forces import TorqueBand
from mcplan.whole_body.settings import UNBOUNDED
from mcplan.whole_body.solution import Solution
from mcplan.whole_body.whole_body import WholeBodyQP
from tests import shared
from tests.whole_body import reference


def compare_ticks(plan, physics, every, ticks=None):
    """Simulate a plan; every so many ticks compare parameters and solution; return the number of compared ticks.

    It is one number for ticks in one kernel, and one for those that are computed step by step.

    Rows of contacts and limits that follow from others are dropped by the kernel, and only compared by their solution.
    """
    simulation, compared = Simulation(plan, physics), {True: 0, False: 0}
    fill, respond = WholeBodyQP.update_and_attempt, UsualTick.respond

    def step_by_step(qp, terms, contacts, tasks, previous=None, limits=(), planned=None, torque_band=None):
        last = previous.unknowns if isinstance(previous, Solution) else previous
        solution = fill(qp, terms, contacts, tasks, previous, limits, planned, torque_band)
        if simulation.index % every == 0 and solution is not None:
            compare(qp, terms, tasks, last, planned, torque_band, solution)
            compared[False] += 1
        return solution

    def in_one_kernel(tick, t, is_steady):
        tasks, terms = simulation.controller.tasks, simulation.controller.terms
        last, torque = tasks.previous.unknowns, tasks.previous.tau
        solution = respond(tick, t, is_steady)
        if simulation.index % every == 0 and solution is not None:
            tasks.held.turn_axes(terms)
            planned = simulation.controller.planned_forces.references
            is_bounded = tasks.bounds_torques(is_steady) and tick.balance_error <= tick._largest_error
            band = TorqueBand(torque, tasks.torque_steps) if is_bounded else None
            compare(tasks.problem, terms, tasks.tasks, last, planned, band, solution)
            compared[True] += 1
        return solution

    def compare(qp, terms, tasks, last, planned, torque_band, solution):
        expected = reference.parameters(qp, terms, tasks, 0.0, last, planned)
        if len(qp.contacts) > 1:  # rows that follow from others are dropped
            del expected["contact_jacobian"], expected["contact_acceleration"]
        for name in ("limit_matrix", "limit_lower"):
            expected.pop(name, None)
        if "torque_min" in qp.data:
            torque, step = torque_band or (np.zeros(qp.structure.n), UNBOUNDED)
            expected["torque_min"], expected["torque_max"] = torque - step, torque + step
        for name, value in expected.items():
            place = f"{name}, t = {simulation.t}"
            np.testing.assert_allclose(qp.data[name], value, rtol=1e-9, atol=1e-9, err_msg=place)
        qp.problem.solve(solver=qp.settings.solver)
        scale = max(1.0, float(np.max(np.abs(qp.vd.value))))
        np.testing.assert_allclose(solution.vd, qp.vd.value, atol=1e-5 * scale, err_msg=f"vd, t = {simulation.t}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WholeBodyQP, "update_and_attempt", step_by_step)
        patch.setattr(UsualTick, "respond", in_one_kernel)
        while (ticks is None or simulation.index < ticks) and simulation.step() is not None:
            pass
    return compared


@pytest.mark.parametrize(("name", "physics"), [("step", "contact"), ("sway", "qp")])
def test_the_kernel_solves_the_declared_program_along_a_plan(name, physics):
    compared = compare_ticks(shared.planned(name), physics, 151, 1500)
    assert sum(compared.values()) >= 9
    assert compared[True] >= 5
    assert compared[False] >= 1


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(path, sum(compare_ticks(load_plan(path), "contact", 200).values()), "ticks agree")
