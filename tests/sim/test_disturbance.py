"""Payloads, pushes, wrong worlds, late and noisy signals: the same for both back ends, and in the record."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.certificate.independent import Mechanism
from mcplan.certificate.verify import verify
from mcplan.errors import ScenarioError
from mcplan.planning.planner import plan as make_plan
from mcplan.record.recording import record_robot
from mcplan.record.world import World, draw_world, with_inertias
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import load_scenario
from mcplan.settings.disturbance import Imperfections, Payload, Push
from mcplan.settings.simulation import SimulationSettings
from mcplan.sim.disturbance import Disturbance, push_force
from mcplan.sim.simulate import Simulation, make_physics, simulate

STILL = {
    "stances": "[{contacts: [{patch: left_sole, surface: floor}, {patch: right_sole, surface: floor}]}]",
    "environment.surfaces": "[{name: floor, size: [4, 2]}, {name: mat, pose: {xyz: [3, 0, 0]}, size: [1, 1]}]",
    "control.timing.start_time": 5.0,
}
"""Of ``sway``: HRP-2 stands on the floor; the robot stays off the mat."""


@pytest.fixture(scope="module")
def plan():
    return make_plan(load_scenario("sway", STILL))


def with_simulation(plan, control=None, **settings):
    scenario = plan.scenario
    simulation = scenario.simulation.model_copy(update=settings)
    scenario = replace(scenario, simulation=simulation, control=scenario.control.model_copy(update=control or {}))
    return replace(plan, scenario=scenario)


def stepped(plan, steps, physics, seed=0):
    simulation = Simulation(plan, physics, seed=seed)
    for _ in range(steps):
        simulation.step()
    return simulation, simulation.finish()


def held(report, *names):
    found = {check.name: check for check in report.checks}
    return [name for name in names if not found[name].passed]


PHYSICAL = (
    "equation of motion",
    "integration identity",
    "friction margin",
    "centre of mass",
    "torque",
    "contact place",
)

EVERYTHING = {
    "pushes": (Push(link="CHEST_LINK1", force=(30.0, -20.0, 5.0), start=0.01, duration=0.05, point=(0.0, 0.1, 0.2)),),
    "payloads": (Payload(link="RARM_LINK6", mass=2.0, com=(0.0, 0.0, -0.1)),),
    "joint_friction": 0.01,
    "joint_damping": 0.5,
    "imperfections": Imperfections(
        mass_scale=1.02, mass_error=0.05, friction_scale=0.8, friction_error=0.1, ground_height=0.01, ground_tilt=0.03,
        torque_noise=0.002, torque_delay=0.002, position_noise=1e-5, velocity_noise=1e-3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("physics", ["contact", "mujoco"])
def test_the_record_of_an_imperfect_run_explains_it(plan, physics):
    """What another path recomputes from the record alone holds to the same tolerances as in a perfect run."""
    _, run = stepped(with_simulation(plan, **EVERYTHING), 120, physics, seed=3)
    assert held(verify(run), *PHYSICAL) == []
    assert set(run.record.world.friction) == {"floor", "mat"}
    assert set(run.record.world.surfaces) == {"mat"}
    weight = run.wrench[-20:, :, 2].sum(axis=1).mean()
    truth = sum(link.mass for link in run.record.world.links.values()) * 9.81
    assert weight == pytest.approx(truth, rel=0.05)
    assert truth > 1.02 * sum(link.mass for link in run.record.robot.links) * 9.81


@pytest.mark.parametrize("physics", ["contact", "mujoco"])
def test_a_record_without_its_world_is_found_out(plan, physics):
    _, run = stepped(with_simulation(plan, payloads=EVERYTHING["payloads"]), 30, physics)
    forged = replace(run, record=run.record.model_copy(update={"world": type(run.record.world)()}))
    assert held(verify(run), "equation of motion") == []
    assert held(verify(forged), "equation of motion", "centre of mass") == ["equation of motion", "centre of mass"]


@pytest.mark.parametrize("physics", ["contact", "mujoco"])
def test_a_seed_gives_the_same_run_to_the_bit_and_another_seed_another(plan, physics):
    pushed = with_simulation(plan, **EVERYTHING)
    runs = [stepped(pushed, 30, physics, seed)[1] for seed in (1, 1, 2)]
    assert all(np.array_equal(a, runs[1].arrays()[name]) for name, a in runs[0].arrays().items())
    assert runs[0].record == runs[1].record
    assert not np.array_equal(runs[0].tau, runs[2].tau)
    assert runs[0].record.world != runs[2].record.world


@pytest.mark.parametrize("physics", ["contact", "mujoco"])
def test_a_push_is_in_the_record_and_changes_the_momentum(plan, physics):
    push = Push(link="BODY", force=(0.0, 60.0, 0.0), start=0.005, duration=0.02)
    _, run = stepped(with_simulation(plan, pushes=(push,)), 40, physics)
    _, still = stepped(plan, 40, physics)
    change = (run.tau_ext - still.tau_ext)[:, 1]
    np.testing.assert_allclose(change[5:25], 60.0, atol=1e-6)
    np.testing.assert_allclose(np.delete(change, slice(5, 25)), 0.0, atol=1e-6)
    jacobian = plan.scenario.robot.com_jacobian
    mass = plan.scenario.robot.mass
    momentum = mass * (jacobian(run.q[25]) @ run.v[25])[1]
    ground = (run.wrench[:25, :, 1].sum() + run.tau_ext[:25, 1].sum()) * run.dt
    assert momentum == pytest.approx(ground, abs=2e-3)
    assert momentum > 0.2


def test_a_push_has_the_power_of_a_force_at_its_point(plan):
    robot, rng = plan.scenario.robot, np.random.default_rng(0)
    q, v = robot.random_configuration(4), rng.standard_normal(robot.nv)
    push = Push(link="RARM_LINK4", force=(3.0, -2.0, 7.0), start=0.0, duration=1.0, point=(0.1, -0.2, 0.3))

    def place(q):
        X = robot.frame_pose(q, "RARM_LINK4")
        return X[:3, 3] + X[:3, :3] @ push.point

    h = 1e-6
    speed = (place(robot.integrate(q, v, h)) - place(robot.integrate(q, v, -h))) / (2 * h)
    assert push_force(robot, q, push) @ v == pytest.approx(np.dot(push.force, speed), rel=1e-7)


def test_a_payload_weighs_what_it_says_where_it_hangs(plan):
    """Gravity's work in any motion grows by m g times the rise of the payload; the independent path agrees."""
    robot, load = plan.scenario.robot, Payload(link="LARM_LINK5", mass=1.7, com=(0.02, 0.03, -0.2))
    world, record = drawn(plan, payloads=(load,))
    assert world.robot.mass == pytest.approx(robot.mass + 1.7)
    q, h = robot.random_configuration(1), 1e-6
    zero = np.zeros(robot.nv)
    extra = world.robot.nonlinear_effects(q, zero) - robot.nonlinear_effects(q, zero)
    for k in range(robot.nv):
        v = np.eye(robot.nv)[k]
        ends = [robot.integrate(q, v, s) for s in (h, -h)]
        X = [robot.frame_pose(end, "LARM_LINK5") for end in ends]
        rise = np.diff([(x[:3, 3] + x[:3, :3] @ load.com)[2] for x in X[::-1]])[0] / (2 * h)
        assert extra[k] == pytest.approx(1.7 * 9.81 * rise, abs=1e-6)
    real = record_robot(robot)
    real = real.model_copy(update={"links": [record.links[link.name] for link in real.links]})
    v, vd = np.random.default_rng(2).standard_normal((2, 1, robot.nv))
    force = world.robot.inverse_dynamics(q, v[0], vd[0])
    np.testing.assert_allclose(Mechanism(real).motion(q[None], v, vd).force[0], force, atol=1e-8)


def test_a_back_end_alone_has_the_payloads_and_imperfections_of_its_scenario(plan):
    scenario = plan.scenario.replace(simulation={"payloads": [{"link": "LARM_LINK5", "mass": 1.7}]})
    masses = [make_physics(each, "mujoco").model.body_mass.sum() for each in (scenario, plan.scenario)]
    assert masses[0] - masses[1] == pytest.approx(1.7)
    errors = plan.scenario.replace(simulation={"imperfections": {"mass_error": 0.1}})
    total = [make_physics(errors, "mujoco", seed=seed).model.body_mass.sum() for seed in (1, 1, 2)]
    assert total[0] == total[1] != total[2]


def drawn(plan, seed=0, **settings):
    scenario = plan.scenario
    believed = World(scenario.robot, scenario.environment, plan.stances[0].q, (), SimulationSettings(**settings), ())
    return draw_world(believed, ["floor"], seed)


def test_without_imperfections_the_world_is_the_one_believed_in(plan):
    world, record = drawn(plan)
    assert record == type(record)()
    assert world.robot is plan.scenario.robot
    assert world.environment is plan.scenario.environment
    same = with_inertias(world.robot, {})
    np.testing.assert_array_equal(same.tree.inertia, world.robot.tree.inertia)


def test_mujoco_loses_in_its_joints_what_the_scenario_says(plan):
    robot = plan.scenario.robot
    model = Simulation(with_simulation(plan, joint_friction=0.05, joint_damping=0.3), "mujoco").physics.model
    for k, name in enumerate(robot.joint_names):
        dof, given = model.joint(f"joint:{name}").dofadr[0], robot.description.joints[name]
        assert model.dof_frictionloss[dof] == pytest.approx(given.friction + 0.05 * robot.limits.torque[k])
        assert model.dof_damping.reshape(model.nv, -1)[dof, 0] == pytest.approx(given.damping + 0.3)


def test_errors_stay_within_their_bounds_and_spread_over_them(plan):
    flaws = Imperfections(mass_error=0.2, friction_scale=0.5, friction_error=0.1, ground_height=0.02, ground_tilt=0.05)
    masses, frictions, heights, tilts = [], [], [], []
    robot = plan.scenario.robot.description.links
    for seed in range(40):
        _, record = drawn(plan, seed, imperfections=flaws)
        masses += [link.mass / robot[name].inertia.mass for name, link in record.links.items()]
        frictions += list(record.friction.values())
        heights.append(record.surfaces["mat"].p[2])
        tilts.append(np.array(record.surfaces["mat"].R)[:2, 2])
        assert "floor" not in record.surfaces
    for values, low, high in (
        (masses, 0.8, 1.2),
        (frictions, 0.45, 0.55),
        (heights, -0.02, 0.02),
        (tilts, -0.05, 0.05),
    ):
        assert low <= np.min(values) < low + 0.15 * (high - low)
        assert high - 0.15 * (high - low) < np.max(values) <= high


def test_ground_that_is_more_slippery_is_so_for_contacts_with_their_friction(plan):
    _, record = drawn(plan, imperfections=Imperfections(friction_scale=0.5, friction_error=0.1))
    settings = SimulationSettings(imperfections=Imperfections(friction_scale=0.5, friction_error=0.1))
    icy = [replace(contact, friction=0.2) for contact in plan.stances[0].contacts]
    robot = plan.scenario.robot
    believed = World(robot, plan.scenario.environment, plan.stances[0].q, list(robot.patches), settings, icy)
    world, _ = draw_world(believed, ["floor"], 0)
    assert [contact.friction for contact in world.contacts] == pytest.approx([0.2 * record.friction["floor"]] * 2)


def test_torques_come_late_and_noisy_but_within_their_limits(plan):
    robot = plan.scenario.robot
    late = Disturbance(robot, SimulationSettings(imperfections=Imperfections(torque_delay=0.003)), 0.001, 0)
    sent = np.arange(8.0)[:, None] * np.ones(robot.n)
    np.testing.assert_array_equal([late.delivered(tau)[0] for tau in sent], [0, 0, 0, 0, 1, 2, 3, 4])
    noisy = Disturbance(robot, SimulationSettings(imperfections=Imperfections(torque_noise=0.1)), 0.001, 0)
    given = np.array([noisy.delivered(np.zeros(robot.n)) for _ in range(4000)]) / robot.limits.torque
    np.testing.assert_allclose(given.std(axis=0), 0.1, rtol=0.1)
    full = np.array([noisy.delivered(robot.limits.torque) for _ in range(100)])
    assert np.all(np.abs(full) <= robot.limits.torque)
    assert np.any(full < robot.limits.torque)


def test_what_is_measured_scatters_about_what_is(plan):
    robot, q = plan.scenario.robot, plan.stances[0].q
    flaws = Imperfections(position_noise=1e-3, velocity_noise=0.01)
    sensor = Disturbance(robot, SimulationSettings(imperfections=flaws), 0.001, 0)
    seen = [sensor.measured(q, np.zeros(robot.nv)) for _ in range(3000)]
    off = np.array([robot.difference(q, each) for each, _ in seen])
    np.testing.assert_allclose(off.std(axis=0), 1e-3, rtol=0.1)
    np.testing.assert_allclose(np.std([v for _, v in seen], axis=0), 0.01, rtol=0.1)
    np.testing.assert_allclose([np.linalg.norm(each[3:7]) for each, _ in seen], 1.0, atol=1e-12)


def test_a_fixed_base_is_measured_where_it_is():
    robot = load_robot("arm7")
    flaws = Imperfections(position_noise=1e-3, velocity_noise=0.01)
    q, v = Disturbance(robot, SimulationSettings(imperfections=flaws), 0.001, 0).measured(
        robot.neutral(), np.zeros(robot.nv)
    )
    np.testing.assert_array_equal(np.append(q[:7], v[:6]), np.append(robot.neutral()[:7], np.zeros(6)))
    drawn = np.random.default_rng([0, 5]).standard_normal((2, robot.nv))[:, 6:]
    np.testing.assert_allclose([q[7:] - robot.neutral()[7:], v[6:]], drawn * [[1e-3], [0.01]], rtol=1e-9)


@pytest.mark.parametrize("physics", ["contact", "mujoco"])
def test_the_controller_may_run_less_often_than_the_physics(plan, physics):
    simulation, run = stepped(with_simulation(plan, {"rate": 250.0}), 41, physics)
    assert simulation.controller.dt == pytest.approx(0.004)
    assert np.flatnonzero(run.qp_status == 0).tolist() == list(range(0, 41, 4))
    for k in range(0, 40, 4):
        assert np.array_equal(run.tau[k], run.tau[k + 3])
    assert not np.array_equal(run.tau[4], run.tau[8])
    assert len(run.timing["control"]) == 11
    assert held(verify(run), *PHYSICAL) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("simulation.pushes", "[{link: BODY, force: [1, 0, 0], start: 0, duration: 1}]"),
        ("simulation.payloads", "[{link: BODY, mass: 1}]"),
        ("simulation.joint_damping", "1"),
        ("simulation.imperfections.torque_delay", "0.01"),
        ("simulation.imperfections.mass_scale", "1.1"),
        ("control.rate", "500"),
    ],
)
def test_physics_without_torques_rejects_unsupported_disturbances(plan, tmp_path, key, value):
    disturbed = replace(plan, scenario=load_scenario("sway", {key: value}))
    with pytest.raises(ScenarioError, match="needs physics contact or mujoco") as refusal:
        Simulation(disturbed, "qp")
    assert refusal.value.problems[0].key.startswith(key)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("control.rate", "300", "nearest is 333.333"),
        ("control.rate", "5000", "nearest is 1000"),
        ("simulation.imperfections.ground_tilt", "0.1", "stands on all surfaces"),
    ],
)
def test_what_cannot_be_is_refused(plan, key, value, message):
    disturbed = replace(plan, scenario=load_scenario("sway", {key: value}))
    with pytest.raises(ScenarioError, match=message):
        Simulation(disturbed, "contact")


UNEVEN = {
    "environment.surfaces": """
      - {name: floor, pose: {xyz: [-0.34, 0, 0]}, size: [1, 1], friction: 0.7}
      - {name: left, pose: {xyz: [0.5, 0.2, 0]}, size: [0.6, 0.39], friction: 0.7}
      - {name: right, pose: {xyz: [0.5, -0.2, 0]}, size: [0.6, 0.39], friction: 0.7}
    """,
    "start.contacts": """
      - {patch: left_sole, surface: floor, x: 0.35, y: 0.095, yaw: 0}
      - {patch: right_sole, surface: floor, x: 0.35, y: -0.095, yaw: 0}
    """,
    "stances": """
      - contacts:
        - {patch: left_sole, surface: floor, x: 0.35, y: 0.095, yaw: 0}
        - {patch: right_sole, surface: floor, x: 0.35, y: -0.095, yaw: 0}
      - {remove: right_sole}
      - {add: {patch: right_sole, surface: right, x: -0.17, y: 0.105, yaw: 0}}
      - {remove: left_sole}
      - {add: {patch: left_sole, surface: left, x: -0.17, y: -0.105, yaw: 0}}
      - {com: [0.34, 0, 0.8]}
    """,
    "simulation.imperfections": "{ground_height: 0.01, ground_tilt: 0.03}",
}
"""Of ``step``: each foot steps on a plate which is not quite where the plan has it."""


@pytest.mark.slow
def test_feet_land_on_ground_that_is_higher_and_turned():
    uneven = make_plan(load_scenario("step", UNEVEN))
    run = simulate(uneven, "contact", seed=1)
    left = run.record.world.surfaces["left"]
    assert left.p[2] > 0.008
    assert max(abs(left.R[2][0]), abs(left.R[2][1])) > 0.02
    report = verify(run)
    assert report.success, report.text()
    sole = uneven.scenario.robot.frame_pose(run.q[-1], "left_sole")[:3, 2]
    np.testing.assert_allclose(sole, -np.array(left.R)[:, 2], atol=2e-3)  # it has rolled flat


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            "pushes: [{link: BDOY, force: [1, 0, 0], start: 0, duration: 1}]",
            "unknown link or patch `BDOY`; did",
        ),
        ("payloads: [{link: left_sole, mass: 1}]", "unknown link `left_sole`"),
        ("imperfections: {torque_nose: 0.1}", "unknown key; did you mean `torque_noise`"),
        ("imperfections: {friction_error: 1.5}", "expected a number < 1, got 1.5"),
    ],
)
def test_mistakes_are_reported_with_their_line(tmp_path, section, message):
    file = tmp_path / "mine.yaml"
    text = load_scenario("sway").document.text() + f"\nsimulation:\n  {section}\n"
    file.write_text(text)
    with pytest.raises(ScenarioError, match=message) as refusal:
        load_scenario(file)
    assert refusal.value.problems[0].line == len(text.splitlines())


def test_a_heavier_link_is_as_much_harder_to_turn(plan):
    """Mass and inertia grow by one factor, about the same centre: all of the mass matrix but the rotors does."""
    scale, q = 1.3, plan.stances[0].q
    world, record = drawn(plan, imperfections=Imperfections(mass_scale=scale))
    robot = plan.scenario.robot
    rotors = np.diag(np.concatenate([np.zeros(6), robot.armature]))
    np.testing.assert_allclose(
        world.robot.mass_matrix(q) - rotors, scale * (robot.mass_matrix(q) - rotors), rtol=1e-12, atol=1e-12
    )
    for name, link in record.links.items():
        own = robot.description.links[name].inertia
        np.testing.assert_allclose(link.inertia, scale * own.matrix, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(link.com, own.com, atol=1e-15)
