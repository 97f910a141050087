"""``mcplan info --stance`` says what the library says, in text, JSON and a figure."""

import json

import numpy as np
import pytest

import mcplan as mc
from mcplan.analysis.stance_statics import stance_statics
from mcplan.cli.main import main


@pytest.fixture(scope="module")
def plan():
    return mc.plan("sway")


def test_the_regions_are_those_of_the_library(plan):
    found, robot = stance_statics(plan, 1), plan.scenario.robot
    stance = plan.stances[1]
    flat = mc.support_region(robot, stance.q, stance.contacts)
    assert found.region.area == pytest.approx(flat.area)
    assert found.torque_region.area <= found.region.area + 1e-9
    # flat ground with enough friction: the ZMP may be wherever the centre of mass may
    assert found.zmp is not None
    assert found.zmp.area == pytest.approx(flat.area, rel=1e-6)
    assert found.acceleration_region.section(found.com[2]).area < flat.area
    assert found.rank.internal == 6
    assert found.shortfall is None
    assert min(cone.depth(np.array([0, 0, 100.0, 0, 0, 0])) for cone in found.wrench_sets.values()) > 0.0


def test_it_is_printed_drawn_and_written_as_json(plan, tmp_path, capsys):
    path = tmp_path / "sway.plan.yaml"
    mc.save_plan(plan, path)
    figure = tmp_path / "stance.svg"
    assert main(["info", str(path), "--stance", "1", "-o", str(figure)]) == 0
    text = capsys.readouterr().out
    assert "12 independent constraints, base controllable, 6 internal" in text
    assert "region of the centre of mass: " in text
    assert "left_sole" in figure.read_text()
    assert main(["info", str(path), "--stance", "1", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["constraints"]["base_controllable"] is True
    assert len(values["regions"]["region of the centre of mass"]) >= 4
    assert len(values["wrenches"]["left_sole"]["rays"]) == 32


def test_what_cannot_be_asked_is_said(plan, tmp_path, capsys):
    assert main(["info", "sway", "--stance", "9"]) == 2
    assert "sway has stances 0 to 4" in capsys.readouterr().err
    assert main(["info", "sway", "--stance", "1", "-o", str(tmp_path / "a.txt")]) == 2
    assert ".svg, .png or .pdf" in capsys.readouterr().err
    assert main(["info", "--stance", "1"]) == 2
    assert "needs the name of a plan or a scenario" in capsys.readouterr().err


def test_a_scenario_says_what_its_start_constrains(capsys):
    assert main(["info", "sway", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["constraints"]["internal"] == 6
