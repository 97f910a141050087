from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.errors import PlanningFailed
from mcplan.planning import stance_planner
from mcplan.planning.feasibility import MIN_LOAD_N, CallBudget
from mcplan.planning.planner import plan
from mcplan.planning.posture.result import Effort, PostureResult
from mcplan.planning.search import improve as refine_module
from mcplan.planning.search.improve import REFERENCE_SHARE, _refined_posture, _SequencePosture
from mcplan.planning.search.move_checks import satisfied_requirements
from mcplan.planning.search.node import ContactStep, StanceNode
from mcplan.planning.stance_planner import _StancePlanner
from mcplan.robot.anatomy import HRP2_SCALE
from mcplan.scenario.load import load_scenario
from tests import shared

SHORT = {"parameters.distance": 0.7}


@pytest.fixture(scope="module")
def pair():
    """The same sequence with the postures of the search, and refined."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stance_planner, "refine_postures", lambda _, paths: paths)
        raw = plan(load_scenario("walk", SHORT))
    return raw, shared.planned("walk", parameters__distance=0.7)


def test_refined_postures_keep_the_contacts_and_resist_more(pair):
    raw, refined = pair
    assert [s.patches for s in raw.stances] == [s.patches for s in refined.stances]
    for one, other in zip(raw.stances, refined.stances, strict=True):
        for contact in one.contacts:
            assert contact.same_place(other.contact(contact.patch))
    least = [min(s.margins["equilibrium"] for s in planned.stances[1:]) for planned in pair]
    assert least[1] > 1.3 * least[0]


def test_refined_postures_stay_within_wider_joint_limits(pair):
    for stance in pair[1].stances[1:-1]:
        assert stance.margins["position"] > 0.05 - 1e-6


def test_only_the_postures_beside_a_blocked_motion_stay_as_they_were_found(pair, monkeypatch):
    looks = []

    def blocked(feasibility, path):
        looks.append(path)
        return [SimpleNamespace(node=path[1])] if len(looks) == 1 else []

    monkeypatch.setattr(refine_module, "blocked_motions", blocked)
    planned = plan(load_scenario("walk", SHORT))
    assert len(looks) == 2
    found, better = (
        [np.array_equal(a.q, b.q) for a, b in zip(planned.stances, of.stances, strict=True)][1:] for of in pair
    )
    assert all(a or b for a, b in zip(found, better, strict=True))
    taken_back = np.flatnonzero(np.logical_not(better))
    assert 0 < len(taken_back) <= len(looks[0][1].steps)
    assert np.all(np.diff(taken_back) == 1)


def test_a_required_patch_counts_when_it_carries_not_when_it_touches():
    require = (frozenset({"left_hand", "right_hand"}), frozenset({"left_grip"}))
    touching = {"left_hand": np.zeros(6), "left_grip": np.array([0.0, 0.0, MIN_LOAD_N - 0.1, 9.0, 9.0, 9.0])}
    assert satisfied_requirements(require, touching, MIN_LOAD_N) == frozenset()
    assert satisfied_requirements(require, touching, 0.9 * MIN_LOAD_N) == {1}
    touching["right_hand"] = np.array([0.0, 4.0, 4.0, 0.0, 0.0, 0.0])
    assert satisfied_requirements(require, touching, MIN_LOAD_N) == {0}


def test_a_plan_loads_what_it_is_required_to():
    planned = plan(load_scenario("lean", {"planner.require": ["right_hand"]}))
    assert (
        max(np.linalg.norm(s.wrenches["right_hand"][:3]) for s in planned.stances if "right_hand" in s.wrenches) > 5.0
    )


def test_a_plan_whose_required_patch_only_touches_is_refused():
    require = (frozenset({"left_hand", "right_hand"}), frozenset({"left_grip"}))
    asked = SimpleNamespace(require=require, feasibility=SimpleNamespace(min_load=MIN_LOAD_N))
    force = {"right_hand": np.array([0.0, 0.0, 2 * MIN_LOAD_N, 0, 0, 0]), "left_grip": np.full(6, 0.5 * MIN_LOAD_N)}
    stances = [SimpleNamespace(wrenches={patch: wrench}) for patch, wrench in force.items()]
    with pytest.raises(PlanningFailed, match="path found, but the contact force on left_grip stays below 5 N"):
        _StancePlanner._check_requirements(asked, stances)
    stances[1].wrenches["left_grip"] = 2 * stances[1].wrenches["left_grip"]
    _StancePlanner._check_requirements(asked, stances)
    asked.feasibility.min_load = 4 * MIN_LOAD_N  # of a robot four times as heavy
    with pytest.raises(PlanningFailed, match="left_hand or right_hand stays below 20 N"):
        _StancePlanner._check_requirements(asked, stances)


@pytest.fixture
def paths(monkeypatch):
    """Two moves after the start, each to a posture of its own; better ones are 10 more."""
    monkeypatch.setattr(
        refine_module, "_refined_posture", lambda _, generators, posture, *near: posture.q_search + 10.0
    )
    nodes = [StanceNode((), {}, np.zeros(1), None, None, (), 0.0, 0.0, None, frozenset(), 0)]
    for k in (1, 2):
        q = np.array([float(k)])
        steps = (ContactStep((), "add", "left_sole", (), (), q, ()),)
        nodes.append(StanceNode((), {}, q, nodes[-1], None, steps, 0.0, 0.0, None, frozenset(), k))
    return [nodes]


CHECKS = SimpleNamespace(generator=lambda settings: None)


def bar(monkeypatch, k, postures):
    """Let the motion to node k be blocked between some postures."""

    def blocked(feasibility, path):
        seen = [float(node.q[0]) for node in path]
        if postures(seen):
            yield SimpleNamespace(node=path[k])

    monkeypatch.setattr(refine_module, "blocked_motions", blocked)


@pytest.mark.parametrize(("k", "left"), [(1, [0.0, 1.0, 12.0]), (2, [0.0, 1.0, 2.0])])
def test_postures_around_a_motion_that_is_blocked_are_taken_back(paths, k, left, monkeypatch):
    bar(monkeypatch, k, lambda seen: seen[k] > 10.0)
    (better,) = refine_module.refine_postures(CHECKS, paths)
    assert [float(node.q[0]) for node in better] == left
    assert [float(node.steps[-1].q[0]) for node in better[1:]] == left[1:]


def test_where_a_motion_is_blocked_with_the_first_postures_too_no_better_ones_help(paths, monkeypatch):
    bar(monkeypatch, 2, lambda seen: True)
    assert refine_module.refine_postures(CHECKS, paths) is None


def test_postures_of_a_free_path_are_the_better_ones(paths, monkeypatch):
    bar(monkeypatch, 2, lambda seen: False)
    (better,) = refine_module.refine_postures(CHECKS, paths)
    assert [float(node.q[0]) for node in better] == [0.0, 11.0, 12.0]


def refined(reachable, insets, last=False):
    """Return the posture that a knot at 5 between 0 and 4 gets, whose generators find 11, 12; and their guides."""
    guides = []

    def generator(q, inset):
        def generate(contacts, loaded, guide, starts, leaving):
            guides.append(float(guide[0]))
            margins = {"com_inset": inset}
            return PostureResult(np.array([q]), contacts, (), None, margins, (), "done", Effort())

        return SimpleNamespace(generate=generate)

    continuity = SimpleNamespace(reaches=lambda held, a, b: (float(a[0]), float(b[0])) in reachable)
    feasibility = SimpleNamespace(
        robot=SimpleNamespace(difference=lambda a, b: b - a, integrate=lambda q, v, s: q + s * v, scale=HRP2_SCALE),
        postures=SimpleNamespace(continuity=continuity),
        references=SimpleNamespace(guide=lambda contacts, q: np.array([20.0])), budget=CallBudget(),
    )  # fmt: skip
    before, posture, after = (_SequencePosture((), (), (), np.array([q]), np.array([q])) for q in (0.0, 5.0, 4.0))
    made = [generator(q, inset) for q, inset in zip((11.0, 12.0), insets, strict=True)]
    found = _refined_posture(feasibility, made, posture, before, posture if last else after)
    assert feasibility.budget.calls == len(guides)
    return float(found[0]), guides


ALL = {(0.0, 11.0), (11.0, 4.0), (0.0, 12.0), (12.0, 4.0)}


def test_a_posture_is_sought_between_its_neighbours_drawn_to_its_reference():
    found, guides = refined(ALL, (0.05, 0.05))
    assert found == 11.0
    assert guides == [pytest.approx(2.0 + REFERENCE_SHARE * (20.0 - 2.0))]


def test_a_posture_that_a_neighbour_does_not_reach_or_that_is_not_steady_is_not_taken():
    for missing in ((0.0, 11.0), (11.0, 4.0)):
        assert refined(ALL - {missing}, (0.05, 0.05))[0] == 12.0
    assert refined(ALL, (0.0, 0.05))[0] == 12.0
    assert refined(set(), (0.05, 0.05))[0] == 5.0  # then it stays as it was
    # the last one has no neighbour behind it
    assert refined({(0.0, 11.0)}, (0.05, 0.05), last=True)[0] == 11.0
