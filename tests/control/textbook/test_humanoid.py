"""Controllers of the textbooks on a humanoid's contacts."""

import numpy as np
import pytest

import mcplan as mc
from mcplan.control.textbook import joints_between
from mcplan.robot.terms import Terms
from mcplan.textbook.constraint.contact_rows import contact_rows

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


def test_the_robot_moves_as_if_the_virtual_forces_acted_on_it(plan):
    """Virtual work (3.118): on its contacts, torques and virtual force accelerate the robot at rest alike."""
    robot, first, random = plan.scenario.robot, plan.stances[0], np.random.default_rng(0)
    control = mc.VirtualModelControl(robot, first.contacts, first.q, com=robot.com(first.q) + 0.02, over=1.0)
    terms = Terms(robot, control.frames)
    for _ in range(3):
        q = robot.integrate(first.q, 0.05 * random.normal(size=robot.nv), 1.0)
        terms.update(q, np.zeros(robot.nv))
        rows = contact_rows(robot, q, terms.v, first.contacts)
        known = mc.ConstrainedDynamics(robot, q, terms.v, rows)
        tau, force = control.torque(0.7, terms, {}), control.virtual_force(0.7, terms)
        assert np.abs(force).max() > 10.0
        np.testing.assert_allclose(known.acceleration(tau), known.acceleration(known.h + force), atol=1e-7)


def test_inverse_dynamics_on_a_support_crouches_with_the_least_torques_or_with_others(plan):
    robot, first = plan.scenario.robot, plan.stances[0]
    start, rise = first.q[7:], np.zeros(robot.n)
    for name, value in (("JOINT2", -0.2), ("JOINT3", 0.4), ("JOINT4", -0.2)):
        for leg in ("RLEG_", "LLEG_"):
            rise[robot.joint_names.index(leg + name)] = value
    path = joints_between(start, start + rise, 0.7)
    other = np.zeros(robot.n)
    other[robot.joint_names.index("RLEG_JOINT1")], other[robot.joint_names.index("LLEG_JOINT1")] = 15.0, -15.0
    runs = []
    for tau_0 in (None, other):
        control = mc.SupportedInverseDynamics(robot, first.contacts, path, 100.0, tau_0=tau_0)
        run = mc.simulate(plan, controller=control, duration=0.9)
        report = mc.verify(run)
        assert report.success, report.failures
        np.testing.assert_allclose(run.q[-1, 7:], start + rise, atol=0.02)
        runs.append(run)
    # the other torques squeeze the feet together or apart: the lateral forces change, the motion does not
    lateral = [run.wrench[700:, run.patches.index("left_sole"), 1].mean() for run in runs]
    assert abs(lateral[1] - lateral[0]) > 5.0
    np.testing.assert_allclose(runs[1].com[-1], runs[0].com[-1], atol=3e-3)
