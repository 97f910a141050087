"""The runs of a search: limbs that may help are left free first, and are drawn to supports afterwards."""

from itertools import pairwise

import numpy as np
import pytest

from mcplan.errors import PlanningFailed
from mcplan.planning import stance_planner
from mcplan.planning.planner import plan
from mcplan.planning.search.potential import FREE_LIMB
from mcplan.planning.search.space import portfolio
from mcplan.scenario.load import load_scenario


def test_limbs_that_may_help_are_left_free_in_the_first_run_alone():
    first, *others = portfolio(0.4, 1.0, True)
    assert first.free_limb == 0.0
    assert {run.free_limb for run in others} == {FREE_LIMB}
    assert others[0] == first._replace(free_limb=FREE_LIMB)


def test_where_none_may_help_no_run_is_made_twice():
    runs = portfolio(0.4, 1.0, False)
    assert len(set(runs)) == len(runs) == len(portfolio(0.4, 1.0, True)) - 1
    assert {run.free_limb for run in runs} == {0.0}


@pytest.mark.parametrize("size", [0.5, 1.5])
def test_lengths_follow_the_robot(size):
    for one, other in zip(portfolio(0.4, 1.0, True), portfolio(0.4 * size, size, True), strict=True):
        np.testing.assert_allclose([other.window, other.grid], [size * one.window, size * one.grid])
        assert (other.weight, other.calls) == (one.weight, one.calls)


def test_later_runs_are_finer_and_look_farther():
    runs = portfolio(0.4, 1.0, True)
    for before, after in pairwise(runs):
        assert after.grid <= before.grid
        assert after.window >= before.window


def test_where_many_limbs_go_one_run_lets_the_last_one_go_first():
    alike, runs = portfolio(0.4, 1.0, False), portfolio(0.4, 1.0, False, many=True)
    (led,) = set(runs) - set(alike)
    assert led.lead >= 1.0
    assert led._replace(lead=0.0) in alike
    assert [run for run in runs if run != led] == alike


@pytest.mark.parametrize("most", [900, 20000])
def test_the_last_run_has_what_is_left_of_the_budget(most, monkeypatch):
    budgets = []

    class Nothing:
        closest = None

        def __init__(self, *of):
            pass

        def start(self, *of):
            return None

        def paths(self, root, budget, nodes):
            budgets.append(budget.calls)
            return iter(())

    monkeypatch.setattr(stance_planner, "StanceSearch", Nothing)
    with pytest.raises(PlanningFailed):
        plan(load_scenario("walk", {"planner.max_calls": most}))
    assert all(calls <= most for calls in budgets)
    assert 0.9 * most < budgets[-1]
    assert budgets[0] == 300
