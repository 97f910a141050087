import numpy as np
import pytest

from mcplan.planning import plan, stance_planner
from mcplan.planning.search.stance_search import CARRIES, requirements_met
from mcplan.scene.load import load_scenario

SHORT = {"parameters.distance": 0.7}


@pytest.fixture(scope="module")
def pair():
    """The same sequence with the postures of the search, and refined."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stance_planner, "refine", lambda prover, paths: paths)
        raw = plan(load_scenario("walk", SHORT))
    return raw, plan(load_scenario("walk", SHORT))


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


def test_a_required_patch_counts_when_it_carries_not_when_it_touches():
    require = (frozenset({"left_hand", "right_hand"}), frozenset({"left_grip"}))
    touching = {"left_hand": np.zeros(6), "left_grip": np.array([0.0, 0.0, CARRIES - 0.1, 9.0, 9.0, 9.0])}
    assert requirements_met(require, touching) == frozenset()
    touching["right_hand"] = np.array([0.0, 4.0, 4.0, 0.0, 0.0, 0.0])
    assert requirements_met(require, touching) == {0}


def test_a_plan_loads_what_it_is_required_to():
    planned = plan(load_scenario("lean", {"planner.require": ["right_hand"]}))
    assert (
        max(np.linalg.norm(s.wrenches["right_hand"][:3]) for s in planned.stances if "right_hand" in s.wrenches) > 5.0
    )
