"""Forces, motion and impacts of hard contacts: against their equations, and against both physics."""

import numpy as np
import pytest

import mcplan as mc
from mcplan.control.textbook import support_torque
from mcplan.sim.physics import action_of
from mcplan.textbook.constraint.contact_rows import contact_rows, point_rows

ROBOT = mc.load_robot("hrp2")
FLOOR = mc.Surface("floor", size=(4, 4), friction=2.0)


def soles(q):
    return [mc.contact(ROBOT, f"{side}_sole", FLOOR, near=q) for side in ("left", "right")]


@pytest.fixture(scope="module")
def standing():
    q = ROBOT.posture("half_sitting")
    plan = mc.plan(
        mc.Scenario(ROBOT, mc.Environment([FLOOR]), soles(q), stances=[{"contacts": [c.to_data() for c in soles(q)]}])
    )
    return plan.stances[0]


def dynamics(q, v, contacts):
    return mc.ConstrainedDynamics(ROBOT, q, v, contact_rows(ROBOT, q, v, contacts))


def test_motion_under_constraints_keeps_them_and_the_equation_of_motion():
    random = np.random.default_rng(0)
    for _ in range(5):
        q, v = ROBOT.random_configuration(random), random.normal(size=ROBOT.nv)
        known, tau = dynamics(q, v, soles(q)), random.normal(size=ROBOT.n) * 20
        vd, f = known.acceleration(tau), known.contact_force(tau)
        np.testing.assert_allclose(known.rows.J @ vd + known.rows.bias, 0.0, atol=1e-7)
        force = np.concatenate([np.zeros(6), tau]) + known.rows.J.T @ f
        np.testing.assert_allclose(known.M @ vd + known.h, force, atol=1e-7)
        np.testing.assert_allclose(known.residual(vd, tau), 0.0, atol=1e-7)


def test_the_null_space_is_a_projector_without_acceleration_or_force_at_the_support():
    random = np.random.default_rng(1)
    q = ROBOT.random_configuration(random)
    known = dynamics(q, np.zeros(ROBOT.nv), soles(q))
    N, J = known.null_space, known.rows.J
    np.testing.assert_allclose(N @ N, N, atol=1e-9)
    np.testing.assert_allclose(J @ N, 0.0, atol=1e-9)
    np.testing.assert_allclose(J @ np.linalg.solve(known.M, N.T), 0.0, atol=1e-9)


def test_rows_that_repeat_each_other_change_nothing():
    random = np.random.default_rng(2)
    q, v = ROBOT.random_configuration(random), random.normal(size=ROBOT.nv)
    once, twice = dynamics(q, v, soles(q)), dynamics(q, v, [*soles(q), *soles(q)])
    tau = random.normal(size=ROBOT.n)
    np.testing.assert_allclose(twice.acceleration(tau), once.acceleration(tau), atol=1e-7)
    np.testing.assert_allclose(twice.impact().loss, once.impact().loss, rtol=1e-8)


def test_an_impact_stops_the_contacts_and_takes_the_energy_that_is_gone():
    random = np.random.default_rng(3)
    for _ in range(5):
        q, v = ROBOT.random_configuration(random), random.normal(size=ROBOT.nv)
        known = dynamics(q, v, soles(q))
        hit = known.impact()
        np.testing.assert_allclose(known.rows.J @ hit.v, 0.0, atol=1e-8)
        np.testing.assert_allclose(known.M @ (hit.v - v), known.rows.J.T @ hit.impulse, atol=1e-7)
        kinetic = [0.5 * u @ known.M @ u for u in (v, hit.v)]
        np.testing.assert_allclose(hit.loss, kinetic[0] - kinetic[1], rtol=1e-8)
        np.testing.assert_allclose(hit.loss, 0.5 * (hit.v - v) @ known.M @ (hit.v - v), rtol=1e-8)  # (3.70)


@pytest.mark.parametrize("physics", ["contact", "mujoco"])
def test_the_physics_exert_the_force_of_the_constraint(standing, physics):
    """A robot that holds its posture: both soles stick, so the floor does what (3.61) says."""
    robot, q = ROBOT, standing.q
    scenario = mc.Scenario(robot, mc.Environment([FLOOR]), standing.contacts, posture=q)
    world = mc.make_physics(scenario, physics)
    tau = standing.tau + np.random.default_rng(4).normal(size=robot.n)
    action = action_of(tau, robot.n)._replace(active=standing.patches)
    for _ in range(30):  # contacts that give settle first
        begun, v = world.q.copy(), world.v.copy()
        outcome = world.step(action)
    known = dynamics(begun, v, standing.contacts)
    f = known.contact_force(tau)
    total = sum(outcome.wrenches[name][2] for name in standing.patches)
    below = sum((contact.selection.T @ f[known.rows.owner == k])[2] for k, contact in enumerate(standing.contacts))
    # a sole's z axis points down
    np.testing.assert_allclose(total, -below, rtol=0.02)
    np.testing.assert_allclose(outcome.vd, known.acceleration(tau), atol=0.15)


def dropped(physics, height=0.05):
    """Let the arm's tip, moving down, meet the floor; return velocities before and after, and the posture."""
    arm = mc.load_robot("arm7")
    q = arm.posture("ready")
    q[7:] = [0.2, 0.9, 0.1, 1.2, -0.2, 0.7, 0.0]
    down = arm.frame_pose(q, "tip")[2, 3]
    floor = mc.Surface("low", xyz=(0, 0, down - 1e-5), size=(4, 4), friction=5.0)
    world = mc.make_physics(mc.Scenario(arm, mc.Environment([floor]), posture=q, simulation={"physics": physics}))
    J = arm.frame_jacobian(q, "tip")[:3, 6:]
    v = np.concatenate([np.zeros(6), np.linalg.pinv(J) @ [0.0, 0.0, -0.5]])
    world.v = v.copy()
    hold = arm.nonlinear_effects(q, v)[6:]
    world.step(hold)
    return arm, q, v, world.v


@pytest.mark.filterwarnings("ignore:.*friction coefficient of 5")
def test_an_impact_in_the_contact_physics_is_that_of_the_projector():
    arm, q, before, after = dropped("contact")
    base = np.concatenate([np.eye(6), np.zeros((6, 7))], axis=1)
    tip = point_rows(arm, q, before, "tip")
    rows = type(tip)(np.vstack([base, tip.J]), np.concatenate([np.zeros(6), tip.bias]), np.arange(9))
    hit = mc.ConstrainedDynamics(arm, q, before, rows).impact()
    np.testing.assert_allclose(after, hit.v, atol=2e-3 * np.abs(before).max())
    M = arm.mass_matrix(q)
    np.testing.assert_allclose(0.5 * (before @ M @ before - after @ M @ after), hit.loss, rtol=5e-3)


def test_torques_of_the_null_space_change_internal_forces_and_nothing_else(standing):
    random = np.random.default_rng(5)
    known = dynamics(standing.q, np.zeros(ROBOT.nv), standing.contacts)
    wanted = known.null_space @ random.normal(size=ROBOT.nv)
    least, free = support_torque(known, wanted)
    other, _ = support_torque(known, wanted, 50.0 * random.normal(size=ROBOT.n))
    np.testing.assert_allclose(known.acceleration(least), wanted, atol=1e-6)
    np.testing.assert_allclose(known.acceleration(other), wanted, atol=1e-6)
    assert np.linalg.norm(least) < np.linalg.norm(other)
    assert np.abs(known.contact_force(other) - known.contact_force(least)).max() > 10.0
    assert round(np.trace(free)) == mc.stance_rank(ROBOT, standing.q, standing.contacts).internal
