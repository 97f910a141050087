"""Paths whose swings are blocked are left for others."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.cli.main import main
from mcplan.errors import PlanningFailed
from mcplan.planning import stance_planner
from mcplan.planning.feasibility import MotionChecker
from mcplan.planning.planner import plan
from mcplan.planning.posture.result import Violation
from mcplan.planning.search import improve as improve_module
from mcplan.planning.timing.duration import DurationModel
from mcplan.planning.transition.knots import PathViolation
from mcplan.planning.transition.segments import Retraction, SegmentCache
from mcplan.scenario.load import load_scenario
from mcplan.statics.feasibility import Shortfall
from tests import shared

SHORT = {"parameters.distance": 0.7}


def steps(planned, patch):
    """Distances between the places of a patch, in order."""
    places = [stance.contact(patch).p for stance in planned.stances if patch in stance.patches]
    ways = [float(np.linalg.norm(after - before)) for before, after in pairwise(places)]
    return [way for way in ways if way > 0.0]


def bar(monkeypatch, longest):
    """Let swings on one support that are longer than this (m) be blocked."""
    looked = SegmentCache.probe

    def look(segments, begin, q, added):
        old = begin.resting.get(added[0].patch)
        if old is not None and np.linalg.norm(old.p - added[0].p) > longest:
            return SimpleNamespace(missed=0.05, worst=PathViolation(0.5, ("a", "b")))
        return looked(segments, begin, q, added)

    monkeypatch.setattr(SegmentCache, "probe", look)


def test_a_path_is_looked_for_whose_swings_are_free(monkeypatch):
    before = shared.planned("walk", parameters__distance=0.7)
    longest = max(steps(before, "left_sole"))
    bar(monkeypatch, longest - 0.01)
    other = plan(load_scenario("walk", SHORT))
    assert max(steps(other, "left_sole")) <= longest - 0.01


def bar_what_is_found(monkeypatch, longest):
    """Let swings on one support that are longer than this (m) look free, and be blocked when they are found."""
    found = SegmentCache.swing

    def swing(segments, begin, q, added):
        old, free = begin.resting.get(added[0].patch), found(segments, begin, q, added)
        far = old is not None and np.linalg.norm(old.p - added[0].p) > longest
        return replace(free, missed=0.05, worst=PathViolation(0.5, ("a", "b"))) if far else free

    monkeypatch.setattr(SegmentCache, "swing", swing)


@pytest.mark.slow
def test_a_path_whose_swings_looked_free_is_left_for_another(monkeypatch):
    longest = max(steps(shared.planned("walk", parameters__distance=0.7), "left_sole"))
    bar_what_is_found(monkeypatch, longest - 0.01)
    other = plan(load_scenario("walk", SHORT))
    assert max(steps(other, "left_sole")) <= longest - 0.01
    assert all(segment.missed < 0.05 for segment in other.segments)
    bar_what_is_found(monkeypatch, 0.0)
    with pytest.raises(PlanningFailed, match="come 50 mm too close"):
        plan(load_scenario("walk", SHORT | {"planner.max_calls": 300}))


def overload(monkeypatch, lacks):
    """Let contacts not hold the robot on the first motion of a foot to a place on its support."""
    found, first = SegmentCache.swing, []

    def swing(segments, begin, q, added):
        one = found(segments, begin, q, added)
        first.append(one)
        return replace(one, held=one is not first[0])

    monkeypatch.setattr(SegmentCache, "swing", swing)
    monkeypatch.setattr(DurationModel, "overload", lambda self, segment: None if segment.held else lacks)


@pytest.mark.parametrize(
    ("lacks", "violation"),
    [
        (Shortfall("torque", "RLEG_JOINT3", 1.04, ""), Violation("torque", "RLEG_JOINT3", pytest.approx(0.04))),
        (Shortfall("com", "left_sole", 0.03, ""), Violation("equilibrium", "com", 0.03)),
    ],
)
def test_a_path_on_which_contacts_do_not_hold_the_robot_is_left_for_another(monkeypatch, lacks, violation):
    overload(monkeypatch, lacks)
    found, violations = [], MotionChecker.violations
    monkeypatch.setattr(
        MotionChecker, "violations", lambda self, motion: found.append(violations(self, motion)) or found[-1]
    )
    other = plan(load_scenario("walk", SHORT))
    assert (violation,) in found
    assert all(segment.held for segment in other.segments)


@pytest.mark.slow
def test_where_contacts_hold_the_robot_on_no_way_there_is_no_plan(monkeypatch):
    monkeypatch.setattr(DurationModel, "overload", lambda self, segment: Shortfall("com", "left_sole", 0.03, ""))
    with pytest.raises(PlanningFailed, match="the centre of mass stays 30 mm outside its support region"):
        plan(load_scenario("walk", SHORT | {"planner.max_calls": 300}))


def test_motions_of_a_free_path_are_found_for_the_postures_that_the_plan_has(monkeypatch):
    """The search itself looks at none."""
    found, refined = [], []
    swing, look, refine = SegmentCache.swing, SegmentCache.probe, stance_planner.refine_postures
    monkeypatch.setattr(SegmentCache, "swing", lambda *of: found.append(of) or swing(*of))
    monkeypatch.setattr(SegmentCache, "probe", lambda *of: found.append(of) or look(*of))
    monkeypatch.setattr(stance_planner, "refine_postures", lambda *of: refined.append(len(found)) or refine(*of))
    plan(load_scenario("walk", SHORT))
    assert refined == [0]
    assert found


def test_where_a_motion_is_blocked_whatever_the_postures_the_next_search_looks_at_its_own(monkeypatch):
    longest = max(steps(shared.planned("walk", parameters__distance=0.7), "left_sole"))
    found, refined = [], []
    bar(monkeypatch, longest - 0.01)
    look, refine = SegmentCache.probe, stance_planner.refine_postures

    def refining(checks, paths):
        before, better = len(found), refine(checks, paths)
        refined.append((before, len(found), better is not None))
        return better

    monkeypatch.setattr(SegmentCache, "probe", lambda *of: found.append(of) or look(*of))
    monkeypatch.setattr(stance_planner, "refine_postures", refining)
    plan(load_scenario("walk", SHORT))
    (first, after, free), (second, _, at_last) = refined
    assert first == 0
    assert second > after
    assert (free, at_last) == (False, True)


def test_what_is_refined_in_vain_is_not_the_searchs_to_pay(monkeypatch):
    """Another path takes postures that are not known yet."""
    longest = max(steps(shared.planned("walk", parameters__distance=0.7), "left_sole"))
    refined, refine = [], stance_planner.refine_postures
    bar(monkeypatch, 0.8 * longest)

    def in_vain(checks, paths):
        checks.budget.calls += 5000
        refined.append(refine(checks, paths))
        return refined[-1] if len(refined) > 1 else None

    monkeypatch.setattr(stance_planner, "refine_postures", in_vain)
    assert plan(load_scenario("walk", SHORT | {"planner.max_calls": 600})).segments
    assert len(refined) == 2


def test_where_all_are_blocked_there_is_no_plan_and_the_best_path_is_told(monkeypatch, tmp_path, capsys):
    bar(monkeypatch, 0.0)
    message = r"path of \d moves found.*\n.*blocked: (left|right)_sole from floor to floor: .*a and b come 50 mm"
    with pytest.raises(PlanningFailed, match=message) as failure:
        plan(load_scenario("walk", SHORT | {"planner.max_calls": 300}))
    assert len(failure.value.best) > 1  # its nodes
    assert failure.value.tree.nodes
    options = ["--set", "parameters.distance=0.7", "--set", "planner.max_calls=300"]
    assert main(["plan", "walk", *options, "-o", str(tmp_path / "plan.yaml")]) == 1
    assert "blocked: " in capsys.readouterr().err
    assert not (tmp_path / "plan.yaml").exists()
    assert (tmp_path / "plan.tree.json").exists()


def test_what_is_proven_begins_where_the_motions_of_the_plan_begin(monkeypatch):
    """A hand that is let go and lifted clear moves the body: the next motion begins in another posture."""
    proven, motions = [], improve_module._motions

    def recorded(feasibility, path):
        proven.clear()
        for found in motions(feasibility, path):
            proven.append(found[-1])
            yield found

    monkeypatch.setattr(improve_module, "_motions", recorded)
    planned = plan(load_scenario("tilted_step", variant=5003))
    assert any(isinstance(motion, Retraction) for motion in proven)
    starts = {segment.q[0].tobytes() for segment in planned.segments}
    assert all(motion.q0.tobytes() in starts for motion in proven)


def test_free_paths_stay_as_they_are(monkeypatch):
    first = shared.planned("walk", parameters__distance=0.7)
    bar(monkeypatch, np.inf)
    again = plan(load_scenario("walk", SHORT))
    for one, other in zip(first.stances, again.stances, strict=True):
        assert np.array_equal(one.q, other.q)
