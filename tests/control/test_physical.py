"""The parts of the controller that answer to physics that it does not own."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.control.criteria import Measurement, criterion_of
from mcplan.control.joint_torques import JointImpedance
from mcplan.motion.descent import Descent
from mcplan.motion.limb_path import LimbPath
from mcplan.robot.anatomy import RobotScale
from mcplan.scenario.load import load_scenario
from mcplan.settings.control import COMPLIANT_DEFAULTS, ControlSettings
from mcplan.settings.margins import shrink_points, with_control_margins
from mcplan.settings.states import Until

SOLE = np.array([[-0.1, -0.075, 0], [0.13, -0.075, 0], [0.13, 0.056, 0], [-0.1, 0.056, 0]])


@pytest.mark.parametrize("physics", ["qp", "contact"])
def test_defaults_follow_the_size_of_the_robot_and_what_a_file_gives_does_not(physics):
    given = ControlSettings(gains={"com_kp": 80.0})
    whole, half = given.under(physics), given.under(physics, RobotScale(0.5, 0.5, 0.5, 0.5))
    assert half.gains.com_kp == whole.gains.com_kp == 80.0
    assert half.avoidance.swing_clearance == whole.avoidance.swing_clearance / 2
    assert half.avoidance.edge_clearance == whole.avoidance.edge_clearance / 2
    assert half.timing.limb_speed == pytest.approx(whole.timing.limb_speed / np.sqrt(2))
    assert half.gains.limb_kp == 2 * whole.gains.limb_kp
    assert half.contact.touch_force == whole.contact.touch_force / 8
    assert half.weights.com == whole.weights.com


def test_the_settings_of_a_scenario_are_those_of_its_robot():
    scenario = load_scenario("sway")
    assert scenario.control_in("contact") == scenario.control.under("contact")
    scale = RobotScale(0.5, 0.6, 0.7, 0.8)
    light = replace(scenario, robot=SimpleNamespace(scale=scale))
    assert light.control_in("contact") == scenario.control.under("contact", scale)


def test_settings_of_a_file_outrank_those_of_the_physics():
    given = ControlSettings(contact={"friction_fraction": 0.9})
    assert given.under("qp").contact.friction_fraction == 0.9
    under = given.under("mujoco")
    assert under.contact.friction_fraction == 0.9
    rest = {name: value for name, value in COMPLIANT_DEFAULTS.items() if name != "contact.friction_fraction"}
    assert {name: under.value(name) for name in rest} == rest
    assert ControlSettings.model_validate(under.model_dump()) == under


@pytest.mark.parametrize("physics", ["qp", "mujoco"])
def test_of_a_contact_the_same_part_of_its_force_and_of_its_moment_is_counted_on(soles, physics):
    settings = ControlSettings().under(physics)
    own = settings.contact
    grip = replace(soles[0], kind="grasp", max_force=200.0, max_moment=30.0)
    counted = with_control_margins(grip, settings)
    assert (counted.max_force, counted.max_moment) == (200.0 * own.force_fraction, 30.0 * own.force_fraction)
    assert counted.friction == grip.friction * own.friction_fraction
    np.testing.assert_array_equal(counted.points, shrink_points(grip.points, own.pressure_margin))
    assert with_control_margins(soles[0], settings).max_force == np.inf
    assert physics == "qp" or own.force_fraction != own.friction_fraction


def test_contact_points_are_drawn_in_by_the_margin_and_keep_their_middle():
    inner = shrink_points(SOLE, 0.01)
    np.testing.assert_allclose(np.abs(inner - SOLE)[:, :2], 0.01)
    np.testing.assert_allclose(inner.mean(axis=0), SOLE.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(shrink_points(0.1 * SOLE, 0.01).max(axis=0) * 1.5, 0.1 * SOLE.max(axis=0), rtol=0.2)
    edge = np.array([[0, -0.05, 0], [0, 0.05, 0.0]])
    np.testing.assert_allclose(shrink_points(edge, 0.01), [[0, -0.04, 0], [0, 0.04, 0]])


def touched_at(forces, step=0.001):
    """When a series of forces counts as touch; None: it never does."""
    touch = criterion_of(Until(force="foot", above=20.0, altogether=0.003), 0.0)
    labels = [touch.evaluate(Measurement(step * k, force={"foot": force})) for k, force in enumerate(forces)]
    return next((k for k, label in enumerate(labels) if label), None)


def test_a_force_must_last_to_count_as_touch():
    assert touched_at([0, 0, 25, 25, 25, 25]) == 5
    assert touched_at([0, 0, 25, 25, 10, 0]) is None
    assert touched_at([25, 25, *([0] * 25), 25, 25]) is None  # it has bounced off: earlier forces no longer count


def test_a_patch_that_chatters_on_its_support_touches_it():
    # a toe on hard ground: single milliseconds of load, none between them
    assert touched_at([30, 0, 0] * 5) == 12
    assert touched_at([30, *([0] * 12)] * 20) is None


@pytest.fixture
def descent():
    above = np.eye(3), np.array([0.1, 0.0, 0.01])
    path = LimbPath((np.eye(3), np.zeros(3)), above, np.array([0, 0, 0.05]), np.array([0, 0, 0.05]), start_time=1.0)
    return Descent(path, np.array([0, 0, 1.0]), 0.02, 0.03)


def test_the_descent_follows_its_path_then_goes_down_the_normal_at_its_speed_and_stops(descent):
    end = descent.path.end_time
    for t in np.linspace(1.0, end, 20):
        np.testing.assert_array_equal(descent.sample(t).p, descent.path.sample(t).p)
    down = descent.sample(end + 0.5)
    np.testing.assert_allclose(down.velocity, [0, 0, -0.02, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(descent.sample(descent.end_time + 1.0).p, [0.1, 0, -0.02], atol=1e-12)
    np.testing.assert_array_equal(descent.sample(descent.end_time).velocity, 0.0)


def test_velocity_and_acceleration_are_the_derivatives_of_the_descent(descent):
    h = 1e-5
    for t in descent.path.end_time + np.array([0.03, 0.15, 0.4, 1.0]):
        before, now, after = (descent.sample(x) for x in (t - h, t, t + h))
        np.testing.assert_allclose((after.p - before.p) / (2 * h), now.velocity[:3], atol=1e-8)
        np.testing.assert_allclose((after.velocity - before.velocity) / (2 * h), now.acceleration, atol=1e-7)


def joint(leak, steps, friction, kp=1000.0):
    """A joint of 0.5 kg m² that the program wants to move with a sine, against Coulomb friction; largest error."""
    dt, inertia, q, v, worst = 1e-3, 0.5, np.zeros(1), np.zeros(1), 0.0
    impedance = JointImpedance(kp, 20.0, leak, np.array([150.0]), np.array([inertia]), dt)
    for k in range(steps):
        t = k * dt
        wanted = 0.2 * (1 - np.cos(2 * t)), 0.4 * np.sin(2 * t), 0.8 * np.cos(2 * t)
        vd = np.array([wanted[2]]) + 40 * (wanted[0] - q) + 2 * np.sqrt(40) * (wanted[1] - v)
        tau = impedance.torque(q, v, vd, inertia * vd)
        v = v + dt * (tau - friction * np.tanh(v / 0.01)) / inertia
        q = q + dt * v
        worst = max(worst, abs(wanted[0] - q[0]))
    return worst


def test_impedance_answers_friction_that_the_program_does_not_know():
    assert joint(0.05, 3000, 2.0) < 0.5 * joint(0.05, 3000, 2.0, kp=0.0)


def test_springs_of_weak_joints_are_softer_in_proportion_to_what_they_can_bear():
    """All of them answer the same error with the same part of their torque limit."""
    limit = np.array([10.0, 150.0, 300.0])
    impedance = JointImpedance(1000.0, 20.0, 0.05, limit, np.full(3, 1e3), 1e-3)
    zero = np.zeros(3)
    impedance.torque(zero, zero, zero, zero)
    share = impedance.torque(np.full(3, -0.01), zero, zero, zero) / limit
    assert share[1] == pytest.approx(10.0 / 150.0, rel=0.05)
    assert share == pytest.approx(np.full(3, share[1]))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_torques_that_are_sent_are_cut_at_the_limit_of_each_joint_either_way(sign):
    limit, zero = np.array([10.0, 150.0]), np.zeros(2)
    impedance = JointImpedance(1000.0, 20.0, 0.05, limit, np.ones(2), 1e-3)
    for part in (0.5, 0.99, 1.01, 20.0):
        sent = impedance.torque(zero, zero, zero, sign * part * limit)
        np.testing.assert_allclose(sent, sign * min(part, 1.0) * limit)


def test_what_has_met_its_support_is_not_held_to_the_velocity_that_it_had():
    """After an impact the damper finds no difference; without the reset it drives the joint on."""
    zero, one = np.zeros(1), np.ones(1)

    def after_an_impact(reset):
        impedance = JointImpedance(0.0, 20.0, 0.05, np.array([150.0]), np.full(1, 1e3), 1e-3)
        impedance.torque(zero, one, zero, zero)
        if reset:
            impedance.reset_velocity(zero)
        return impedance.torque(zero, zero, zero, zero)[0]

    assert after_an_impact(True) == pytest.approx(0.0, abs=1e-9)
    assert after_an_impact(False) > 10.0


def test_without_disturbance_impedance_adds_nothing_to_speak_of():
    # both integrate the same acceleration; the damper adds nothing
    assert joint(0.05, 3000, 0.0) == pytest.approx(joint(0.05, 3000, 0.0, kp=0.0), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("inertia", [1e-4, 2e-3])
def test_a_joint_that_moves_little_comes_to_rest_as_well(inertia):
    # its damper, 20 N m s/rad, would turn back the speed of 0.002 kg m² tenfold within a millisecond
    dt, q, v = 1e-3, np.zeros(1), np.ones(1)
    impedance = JointImpedance(1000.0, 20.0, 0.05, np.array([150.0]), np.array([inertia]), dt)
    impedance.torque(q, np.zeros(1), np.zeros(1), np.zeros(1))
    speeds = []
    for _ in range(400):
        v = v + dt * impedance.torque(q, v, np.zeros(1), np.zeros(1)) / inertia
        q = q + dt * v
        speeds.append(abs(v[0]))
    assert max(speeds) < 1.0
    assert max(speeds[300:]) < 0.05


def test_torques_are_cut_to_the_limits():
    impedance = JointImpedance(1000.0, 20.0, 0.05, np.array([10.0, np.inf]), np.array([1.0, 1.0]), 1e-3)
    impedance.torque(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2))
    tau = impedance.torque(np.full(2, -5.0), np.zeros(2), np.zeros(2), np.zeros(2))
    assert tau[0] == 10.0
    assert tau[1] > 1000.0
