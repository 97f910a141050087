"""The file of a search tree holds all that a look at it needs."""

import json

import numpy as np
import pytest

from mcplan.errors import InputError
from mcplan.planning.search.tree import read_tree, tree_path, write_tree
from mcplan.scene.placement import make_contact
from tests import shared


@pytest.fixture(scope="module")
def planned():
    return shared.planned("stairs")


@pytest.fixture
def file(planned, tmp_path):
    write_tree(planned.tree, planned.scenario, tmp_path / "stairs.tree.json")
    return tmp_path / "stairs.tree.json"


def test_a_tree_survives_its_file(planned, file):
    scenario, tree, failure = read_tree(file)
    assert tree == planned.tree
    assert failure == ""
    assert [s.name for s in scenario.environment.surfaces] == [s.name for s in planned.scenario.environment.surfaces]
    assert tree_path("a/stairs.plan.yaml").name == "stairs.plan.tree.json"


def test_the_path_leads_from_the_start_to_the_last_contacts_of_the_plan(planned):
    tree = planned.tree
    first, last = (tree.nodes[tree.path[k]] for k in (0, -1))
    assert first["parent"] is None
    for parent, child in zip(tree.path, tree.path[1:], strict=False):
        assert tree.nodes[child]["parent"] == parent
    ends = {contact["patch"]: contact for contact in last["contacts"]}
    for contact in planned.stances[-1].contacts:
        planner_has = make_contact(planned.scenario.robot, planned.scenario.environment, ends[contact.patch])
        assert np.allclose(planner_has.p, contact.p, atol=1e-6)


def test_the_search_expands_its_start_and_ends_at_its_goal_unexpanded(planned):
    nodes = planned.tree.nodes
    assert nodes[0]["expanded"]
    assert not nodes[planned.tree.path[-1]]["expanded"]


def test_a_rejected_move_says_where_it_would_have_gone(planned):
    scenario = planned.scenario
    for move in planned.tree.rejected:
        assert {c["patch"] for c in move["contacts"]} <= set(scenario.robot.patches)
        for contact in move["contacts"]:
            assert make_contact(scenario.robot, scenario.environment, contact).support == contact["surface"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda d: d.pop("mcplan_tree"), "mcplan_tree"),
        (lambda d: d.pop("scenario"), "scenario"),
        (lambda d: d["nodes"][1].update(parent=5), "nodes"),
        (lambda d: d["nodes"][0].pop("q"), "nodes"),
        (lambda d: d["rejected"][0].update(parent=999), "rejected"),
        (lambda d: d.update(path=[999]), "path"),
    ],
)
def test_damage_is_named(file, change, word):
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match=word):
        read_tree(file)


def test_what_is_no_json_is_an_input_error(tmp_path):
    (tmp_path / "x.tree.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        read_tree(tmp_path / "x.tree.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_tree(tmp_path / "missing.tree.json")
