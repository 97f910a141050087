"""Robots that come with a Python package: their proposed files carry a motion through, planned and in MuJoCo."""

import pytest

from mcplan.certificate.verify import verify
from mcplan.planning.planner import plan
from mcplan.robot.mesh_file import find_package
from mcplan.scenario.load import load_scenario
from mcplan.sim.simulate import simulate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_package("example-robot-data") is None, reason="pip install 'mcplan[robots]'"),
    # their files hold inertias that no body has
    pytest.mark.filterwarnings("ignore::mcplan.robot.description.RobotWarning"),
    pytest.mark.filterwarnings("ignore:the moments of inertia of:RuntimeWarning"),
]


def test_anymal_is_planned_onto_a_plate():
    """Four feet that are balls, and no arms."""
    report = verify(plan(load_scenario("plate", {"robot": "anymal"}, variant=3)))
    assert report.success, report.text()


def test_talos_steps_onto_a_plate_in_mujoco():
    """Its feet are meshes: they end in the soles' planes, and what touches are the soles."""
    report = verify(simulate(plan(load_scenario("plate", {"robot": "talos"}, variant=1)), physics="mujoco"))
    assert report.success, report.text()


def test_go2_steps_onto_a_plate_quickly_on_four_balls():
    """Balls roll while the body is over them, and the robot is small: its certificate looks at the same heights."""
    planned = plan(load_scenario("plate", {"robot": "go2", "control.pace": "fast"}, variant=1))
    report = verify(planned)
    assert report.success, report.failures
    assert any(check.name == "transition: dynamic balance" for check in report.checks)
    report = verify(simulate(planned, physics="contact"))
    assert report.success, report.text()
