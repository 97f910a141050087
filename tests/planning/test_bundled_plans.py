"""Every bundled scenario is planned, and its plan certified."""

import re
from pathlib import Path

import pytest

from mcplan.certificate.verify import verify
from mcplan.planning.planner import plan
from mcplan.scenario.load import load_scenario
from mcplan.util.bundled import bundled_scenarios

ELSEWHERE = {
    "planning/search/test_stance_search.py": {"walk", "stairs"},
    "planning/test_sequence.py": {"sway", "single_support", "step", "table_hand", "handstand"},
    "sim/test_push.py": {"push"},
    "sim/test_lift.py": {"lift", "carry"},
    "control/test_program.py": {"sway_own_states"},
    "control/test_kneeling.py": {"kneel"},
    "../experiments/table.yaml": {"ladder_vertical"},  # a minute and more: by hand, over many variants
}
"""Where the others are planned as they stand."""

HERE = ("lean", "table", "table_lean", "plate")
LONG = ("crawl", "handstand_entry", "ladder", "rubble", "stairs_rail", "step_over", "tilted_step", "turn", "wedge")


def test_none_is_left_out():
    assert {*HERE, *LONG}.union(*ELSEWHERE.values()) == set(bundled_scenarios())
    for file, names in ELSEWHERE.items():
        text = (Path(__file__).parents[1] / file).read_text()
        assert all(re.search(rf"\b{name}\b", text) for name in names)


@pytest.mark.parametrize("name", [*HERE, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)])
def test_it_is_planned_and_the_plan_certified(name):
    found = plan(load_scenario(name))
    report = verify(found)
    assert report.success, report.text()
    if name == "stairs_rail":  # feet alone would do: a hand touches because the scenario requires it, and no more
        hands = [stance for stance in found.stances if stance.change == "add" and "sole" not in stance.moved]
        assert len(hands) == 1
