"""Controllers of the textbooks on a humanoid's contacts."""

import numpy as np
import pytest

import mcplan as mc
from mcplan.control.classical import joints_between

FLOOR = mc.Surface("floor", size=(4, 4))


@pytest.fixture(scope="module")
def plan():
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    soles = [mc.contact(robot, f"{side}_sole", FLOOR, near=q) for side in ("left", "right")]
    stances = [{"contacts": [sole.to_data() for sole in soles]}]
    control = {"type": "virtual_model", "duration": 1.5}
    simulation = {"physics": "contact", "time_limit": 20}
    return mc.plan(
        mc.Scenario(robot, mc.Environment([FLOOR]), soles, stances=stances, control=control, simulation=simulation)
    )


@pytest.mark.parametrize("physics", ["contact", "mujoco"])
def test_hrp2_stands_by_its_virtual_model(plan, physics):
    run = mc.simulate(plan, physics=physics)
    report = mc.verify(run)
    assert report.success, report.failures
    np.testing.assert_allclose(run.com[-1], run.com[0], atol=2e-3)
    assert np.abs(run.v[-1]).max() < 1e-2


def test_a_virtual_spring_at_the_centre_of_mass_has_the_stiffness_it_says(plan):
    """Pushed with 20 N at the trunk, the robot yields by that over m kp, as the other springs are soft."""
    robot, first = plan.scenario.robot, plan.stances[0]
    push = {"link": "BODY", "force": [0.0, 20.0, 0.0], "point": [0, 0, 0], "start": 0.0, "duration": 10.0}
    pushed = mc.plan(plan.scenario.replace(simulation={"pushes": [push]}))
    soft = mc.VirtualModelControl(robot, first.contacts, first.q, kp=40.0, joint_kp=0.0, turn_kp=2000.0)
    run = mc.simulate(pushed, controller=soft, duration=2.0)
    away = run.com[-1, 1] - run.com[0, 1]
    print("AWAY", away * 40 * robot.mass / 20)
    assert away == pytest.approx(20.0 / (40.0 * robot.mass), rel=0.2)


def test_inverse_dynamics_on_a_support_crouches_with_the_least_torques_or_with_others(plan):
    robot, first = plan.scenario.robot, plan.stances[0]
    start, rise = first.q[7:], np.zeros(robot.n)
    for name, value in (("JOINT2", -0.2), ("JOINT3", 0.4), ("JOINT4", -0.2)):
        for leg in ("RLEG_", "LLEG_"):
            rise[robot.joint_names.index(leg + name)] = value
    path = joints_between(start, start + rise, 1.0)
    other = np.zeros(robot.n)
    other[robot.joint_names.index("RLEG_JOINT1")], other[robot.joint_names.index("LLEG_JOINT1")] = 15.0, -15.0
    runs = []
    for tau_0 in (None, other):
        control = mc.SupportedInverseDynamics(robot, first.contacts, path, 100.0, tau_0=tau_0)
        run = mc.simulate(plan, controller=control, duration=1.3)
        report = mc.verify(run)
        assert report.success, report.failures
        np.testing.assert_allclose(run.q[-1, 7:], start + rise, atol=0.02)
        runs.append(run)
    # the other torques squeeze the feet together or apart: the lateral forces change, the motion does not
    lateral = [run.wrench[1000:, run.patches.index("left_sole"), 1].mean() for run in runs]
    assert abs(lateral[1] - lateral[0]) > 5.0
    np.testing.assert_allclose(runs[1].com[-1], runs[0].com[-1], atol=3e-3)
