"""What joints take of their torques by friction and damping is given to them."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan import Surface, contact
from mcplan.control.controller import WholeBodyController
from mcplan.control.joint_torques import JointFriction
from mcplan.planning.planner import plan as make_plan
from mcplan.planning.timing.path_dynamics import DAMPING_TORQUE_SHARE, joint_speeds
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import load_scenario
from mcplan.statics.equilibrium import balance, equilibrium_torque_margin
from mcplan.statics.feasibility import can_hold
from mcplan.statics.support_region import torque_support_region
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


DT = 1e-3


def added(friction, robot, v, vd):
    """Terms added to the diagonal of the mass matrix, and to the nonlinear effects (n,)."""
    M, h = np.zeros((robot.nv, robot.nv)), np.zeros(robot.nv)
    friction.add(M, h, v, vd)
    assert not (M - np.diag(np.diag(M))).any()
    assert not np.diag(M)[:6].any()
    assert not h[:6].any()
    return np.diag(M)[6:], h[6:]


def test_what_moves_is_given_its_friction_and_its_damping_at_the_end_of_the_tick(path):
    robot = load_robot(path)
    friction = JointFriction(robot, 1.0, DT)
    assert friction
    v = of(robot, {"l_elbow": -3.0, "r_knee": 2.0, "waist": 1.0, "r_elbow": 1.0})
    inertia, torque = added(friction, robot, v, np.zeros(robot.n))
    expected = of(robot, {"l_elbow": -0.4 * 3.0 - 1.5, "r_knee": 2.0, "waist": 0.7})
    np.testing.assert_allclose(torque, expected, atol=1e-9)
    np.testing.assert_allclose(inertia, of(robot, {"l_elbow": 0.4 * DT, "waist": 0.7 * DT}), atol=1e-15)
    part = added(JointFriction(robot, 0.25, DT), robot, v, np.zeros(robot.n))
    np.testing.assert_allclose(part, 0.25 * np.array([inertia, expected]), atol=1e-9)


def test_what_rests_is_given_it_where_it_is_to_move(path):
    robot = load_robot(path)
    friction = JointFriction(robot, 1.0, DT)
    rest = np.zeros(robot.n)
    assert not added(friction, robot, rest, rest)[1].any()
    _, about = added(friction, robot, rest, of(robot, {"l_elbow": -10.0, "r_knee": 0.1}))
    np.testing.assert_allclose(about, of(robot, {"l_elbow": -1.5, "r_knee": 2.0 * np.tanh(0.1)}), atol=1e-6)


def test_without_a_share_or_without_friction_there_is_nothing_to_make_up_for(path):
    assert not JointFriction(load_robot(path), 0.0, DT)
    assert not JointFriction(load_robot("hrp2"), 1.0, DT)


def test_the_program_s_motion_stays_and_its_torques_bear_the_friction_too(path):
    plan = make_plan(load_scenario(STAND, {"robot": path}))
    robot, q = plan.scenario.robot, plan.stances[0].q
    v = np.concatenate([np.zeros(6), of(robot, {"l_elbow": 0.4, "waist": -0.3})])
    with_it = WholeBodyController(plan, 1e-3, "contact").step(0.0, q, v)
    settings = {"robot": path, "control.gains.friction_compensation": 0.0}
    without = WholeBodyController(make_plan(load_scenario(STAND, settings)), 1e-3, "contact").step(0.0, q, v)
    np.testing.assert_allclose(with_it.vd, without.vd, atol=1e-5)
    inertia, given = added(JointFriction(robot, 1.0, DT), robot, v[6:], np.zeros(robot.n))
    np.testing.assert_allclose(with_it.tau - without.tau, given + inertia * with_it.vd[6:], atol=1e-5)
    assert np.abs(given).max() > 1.0


def test_motions_are_planned_with_what_friction_and_damping_leave(path):
    robot = load_robot(path)
    torque, velocity = robot.limits.torque, robot.limits.velocity
    left = torque - of(robot, {name: friction for name, (_, friction) in RUBS.items()})
    np.testing.assert_allclose(robot.usable_torque, left)
    for part in (0.5, 100.0):
        speeds = part * velocity
        for name in ("l_elbow", "waist"):
            k = robot.joint_names.index(name)
            speeds[k] = min(speeds[k], DAMPING_TORQUE_SHARE * torque[k] / RUBS[name][0])
        np.testing.assert_allclose(joint_speeds(robot, part), speeds)
    assert not np.allclose(speeds, 100.0 * velocity)  # damping bounds the last ones


@pytest.mark.parametrize("share", [1.0, 0.4, 0.2])
def test_stances_are_held_with_what_friction_leaves_of_torques(path, tmp_path, share):
    """As by a robot without friction whose motors give less by as much."""
    rubs, smooth = load_robot(path), load_robot(humanoid(tmp_path))
    weaker = replace(smooth, limits=replace(smooth.limits, torque=rubs.usable_torque))
    q, floor = rubs.posture("ready"), Surface("floor", size=(2, 2))
    feet = [contact(rubs, f"{side}_sole", floor, near=q) for side in ("left", "right")]
    regions = [torque_support_region(robot, q, feet, share) for robot in (rubs, weaker)]
    assert regions[0].area == pytest.approx(regions[1].area, abs=1e-9)
    assert can_hold(rubs, q, feet, share) == can_hold(weaker, q, feet, share)
    forces = [balance(robot, q, feet, torque_share=share) for robot in (rubs, weaker)]
    assert forces[0].torque_feasible == forces[1].torque_feasible
    np.testing.assert_allclose(forces[0].tau, forces[1].tau, atol=1e-6)
    pushes = [equilibrium_torque_margin(robot, q, feet) for robot in (rubs, weaker)]
    assert pushes[0] == pytest.approx(pushes[1])
    if share < 1.0:  # here the torques bind
        assert regions[0].area < torque_support_region(smooth, q, feet, share).area - 1e-5
