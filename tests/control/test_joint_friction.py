"""What joints take of their torques by friction and damping is given to them."""

import numpy as np
import pytest

from mcplan.control.controller import WholeBodyController
from mcplan.control.joint_friction import JointFriction
from mcplan.model.robot_file import load_robot
from mcplan.planning import plan as make_plan
from mcplan.scene import load_scenario
from tests.sim.other_robots import humanoid

RUBS = {"l_elbow": (0.4, 1.5), "r_knee": (0.0, 2.0), "waist": (0.7, 0.0)}
"""Joints with damping (N m s/rad) and friction (N m)."""

STAND = {
    "mcplan": 1,
    "name": "stand",
    "environment": {"surfaces": [{"name": "floor", "size": [2, 2]}]},
    "start": {"posture": "ready", "contacts": [{"patch": "feet", "surface": "floor", "x": 0, "y": 0, "yaw": 0}]},
    "stances": [{"com": [0.04, 0.0]}],
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A humanoid of boxes, three of whose joints rub."""
    folder = tmp_path_factory.mktemp("rubs")
    file = humanoid(folder)
    urdf = folder / "humanoid.urdf"
    text = urdf.read_text()
    for name, (damping, friction) in RUBS.items():
        at = text.index("</joint>", text.index(f'<joint name="{name}"'))
        text = text[:at] + f'<dynamics damping="{damping}" friction="{friction}"/>' + text[at:]
    urdf.write_text(text)
    return str(file)


def of(robot, values):
    return np.array([values.get(name, 0.0) for name in robot.joint_names])


def test_what_moves_is_given_its_friction_and_half_of_its_damping(path):
    robot = load_robot(path)
    friction = JointFriction(robot, 1.0)
    assert friction
    v = of(robot, {"l_elbow": -3.0, "r_knee": 2.0, "waist": 1.0, "r_elbow": 1.0})
    expected = of(robot, {"l_elbow": -0.5 * 0.4 * 3.0 - 1.5, "r_knee": 2.0, "waist": 0.5 * 0.7})
    np.testing.assert_allclose(friction.torque(v, np.zeros(robot.n)), expected, atol=1e-9)
    np.testing.assert_allclose(JointFriction(robot, 0.25).torque(v, np.zeros(robot.n)), 0.25 * expected, atol=1e-9)


def test_what_rests_is_given_it_where_it_is_to_move(path):
    robot = load_robot(path)
    friction = JointFriction(robot, 1.0)
    rest = np.zeros(robot.n)
    assert not friction.torque(rest, rest).any()
    about = friction.torque(rest, of(robot, {"l_elbow": -10.0, "r_knee": 0.1}))
    np.testing.assert_allclose(about, of(robot, {"l_elbow": -1.5, "r_knee": 2.0 * np.tanh(0.1)}), atol=1e-6)


def test_without_a_share_or_without_friction_there_is_nothing_to_make_up_for(path):
    assert not JointFriction(load_robot(path), 0.0)
    assert not JointFriction(load_robot("hrp2"), 1.0)


def test_the_program_s_motion_stays_and_its_torques_bear_the_friction_too(path):
    plan = make_plan(load_scenario(STAND, {"robot": path}))
    robot, q = plan.scenario.robot, plan.stances[0].q
    v = np.concatenate([np.zeros(6), of(robot, {"l_elbow": 0.4, "waist": -0.3})])
    with_it = WholeBodyController(plan, 1e-3, "contact").step(0.0, q, v)
    settings = {"robot": path, "control.friction_compensation": 0.0}
    without = WholeBodyController(make_plan(load_scenario(STAND, settings)), 1e-3, "contact").step(0.0, q, v)
    np.testing.assert_allclose(with_it.vd, without.vd, atol=1e-5)
    given = JointFriction(robot, 1.0).torque(v[6:], np.zeros(robot.n))
    np.testing.assert_allclose(with_it.tau - without.tau, given, atol=1e-5)
    assert np.abs(given).max() > 1.0
