"""The controllers of the textbooks on an arm: each in the case that its book is about, in both physics."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mcplan as mc
from mcplan.control.textbook import end_effector_dynamics, joints_between, selections
from mcplan.control.textbook.of_scenario import textbook_controller
from mcplan.errors import InputError
from mcplan.robot.terms import Terms
from mcplan.sim.physics import StepOutcome, action_of
from tests.arm import arm, arm_at_wall, free_arm

PHYSICS = ["contact", "mujoco"]
DT = 1e-3


@pytest.fixture(scope="module")
def scenario():
    return free_arm().scenario


def driven(scenario, physics, controller, seconds, push=None, q=None):
    """Drive the arm by a controller and a generalised force on its joints; return its joints over time."""
    robot = scenario.robot
    world = mc.make_physics(scenario, physics, q)
    terms, path = Terms(robot, getattr(controller, "frames", ())), [world.q[7:].copy()]
    for k in range(round(seconds / DT)):
        terms.update(world.q, world.v)
        action = action_of(controller.torque(k * DT, terms, {}), robot.n)
        if push is not None:
            action = action._replace(external=np.concatenate([np.zeros(6), push]))
        world.step(action, DT)
        path.append(world.q[7:].copy())
    return np.array(path)


@pytest.mark.parametrize("physics", PHYSICS)
def test_gravity_compensation_holds_any_posture(scenario, physics):
    random = np.random.default_rng(0)
    q = scenario.robot.posture("ready")
    q[7:] += random.uniform(-0.3, 0.3, 7)
    path = driven(scenario, physics, mc.GravityCompensation(scenario.robot), 0.5, q=q)
    np.testing.assert_allclose(path[-1], path[0], atol=1e-6)


@pytest.mark.parametrize("physics", PHYSICS)
def test_impedance_has_the_stiffness_it_says(scenario, physics):
    robot = scenario.robot
    q = robot.posture("ready")[7:]
    kp, push = np.array([200.0, 300, 150, 200, 100, 80, 50]), np.array([5.0, -6, 3, 4, -2, 1.5, 1])
    control = mc.ImpedanceControl(robot, q, kp, 0.2 * kp)
    moved = driven(scenario, physics, control, 4.0, push)[-1] - q
    np.testing.assert_allclose(push / moved, kp, rtol=0.01)


@pytest.mark.parametrize("physics", PHYSICS)
def test_inverse_dynamics_makes_each_joint_the_oscillator_of_its_gains(scenario, physics):
    robot = scenario.robot
    goal = robot.posture("ready")[7:]
    q, kp, kd = robot.posture("ready"), 100.0, 4.0
    q[7:] += np.array([0.2, -0.2, 0.3, 0.1, -0.3, 0.2, 0.4])
    path = driven(scenario, physics, mc.InverseDynamicsControl(robot, goal, kp, kd), 1.0, q=q)
    # x'' + kd x' + kp x = 0 from rest; the step is of first order in dt
    t, w = np.arange(len(path)) * DT, np.sqrt(kp - kd**2 / 4)
    shape = np.exp(-kd / 2 * t) * (np.cos(w * t) + kd / 2 / w * np.sin(w * t))
    np.testing.assert_allclose(path - goal, shape[:, None] * (q[7:] - goal), atol=0.01)


def test_a_force_at_the_end_effector_moves_it_as_its_inertia_says():
    robot, random = arm(), np.random.default_rng(3)
    for _ in range(5):
        q, v = robot.random_configuration(random), np.concatenate([np.zeros(6), random.normal(size=7)])
        F = random.normal(size=6)
        terms = Terms(robot, ["tip"])
        terms.update(q, v)
        known, tip = end_effector_dynamics(terms, robot, "tip"), terms.frame("tip")
        vd = robot.forward_dynamics(q, v, tip.J[:, 6:].T @ F)
        np.testing.assert_allclose(known.inertia @ (tip.J @ vd + tip.bias) + known.mu + known.p, F, atol=1e-7)


def test_selection_matrices_share_all_directions_between_motion_and_force():
    axes = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    move, press = selections(axes, (0, 1, 1, 1, 0, 1))
    np.testing.assert_allclose(move + press, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(move @ press, 0.0, atol=1e-12)
    np.testing.assert_allclose(press[:3, :3], np.outer(axes[:, 0], axes[:, 0]), atol=1e-12)
    with pytest.raises(InputError, match="six of 0 and 1"):
        selections(axes, (0, 2, 1, 1, 1, 1))
    with pytest.raises(InputError, match="orthonormal"):
        selections(2.0 * axes, (1,) * 6)


def wiping(friction, physics):
    """Return the run of the arm that presses on a wall with 20 N and moves along it, and the path of its tip."""
    ends = [[0.3551242, 0.12, 0.89], [0.3551242, -0.12, 0.97]]
    textbook = {"frame": "tip", "kp": 1600.0, "over": 0.8, "press": [20.0, 0.0, 0.0],
                "path": [{"xyz": end} for end in ends]}  # fmt: skip
    plan = arm_at_wall(friction, type="operational_space", duration=2.0, textbook=textbook)
    run = mc.simulate(plan, physics=physics)
    force = -run.wrench[200:, run.patches.index("tip"), 0]
    if physics == "mujoco":
        # a point that slides leaves a wall of MuJoCo's for a step every hundredth of a second, and comes back
        force = np.convolve(force, np.full(100, 0.01), "valid")
    return run, force, plan.scenario.robot.frame_pose(run.q, "tip")[:, :3, 3], ends


@pytest.mark.parametrize("physics", PHYSICS)
def test_the_arm_presses_on_a_wall_with_20_newton_while_it_moves_along_it(physics):
    run, force, tip, ends = wiping(0.2, physics)
    report = mc.verify(run)
    assert report.success, report.failures
    # friction of 4 N along the wall turns into force across it by the inertia that couples the two
    np.testing.assert_allclose(force, 20.0, atol=2.5)
    assert abs(force.mean() - 20.0) < 1.2
    assert np.linalg.norm(np.diff(tip, axis=0), axis=1).sum() > 0.35
    np.testing.assert_allclose(tip[-1], ends[1], atol=5e-3)


@pytest.mark.parametrize("physics", PHYSICS)
def test_on_a_smooth_wall_it_presses_with_20_newton(physics):
    run, force, tip, ends = wiping(0.01, physics)
    assert mc.verify(run).success
    np.testing.assert_allclose(force, 20.0, atol=0.3)
    np.testing.assert_allclose(tip[-1], ends[1], atol=1e-3)


def test_a_hierarchy_of_one_task_is_inverse_dynamics_by_both_methods():
    plan = free_arm()
    robot, random = plan.scenario.robot, np.random.default_rng(5)
    wish = mc.PostureTask(robot.posture("upright")[7:], 1.0, 100.0)
    limb = mc.LinkPoseTask("tip", kp=100.0)
    limb.p = np.array([0.4, 0.1, 0.8])
    first = plan.stances[0].contacts
    strong = replace(robot, limits=replace(robot.limits, torque=np.full(7, 1e5)))
    for _ in range(5):
        q, v = robot.random_configuration(random), np.concatenate([np.zeros(6), random.normal(size=7)])
        terms = Terms(robot, ["tip"])
        terms.update(q, v)
        tau = mc.TaskHierarchy(robot, first, [[wish]]).torque(0.0, terms, {})
        book = mc.InverseDynamicsControl(robot, robot.posture("upright")[7:], 100.0).torque(0.0, terms, {})
        np.testing.assert_allclose(tau, book, atol=1e-7)
        controllers = [
            mc.TaskHierarchy(strong, first, [[limb], [wish]], method) for method in ("least squares", "programs")
        ]
        a, b = (controller.torque(0.0, terms, {}) for controller in controllers)
        np.testing.assert_allclose(a, b, atol=1e-8 * np.abs(a).max())


def test_the_gains_of_a_hierarchy_are_those_of_the_scenario():
    textbook = {"frame": "tip", "path": [{"xyz": [0.4, 0.1, 0.85]}], "kp": 100.0, "kd": 60.0}
    plan = free_arm(type="hierarchical", duration=1.0, textbook=textbook)
    (limb,), _ = textbook_controller(plan).levels
    np.testing.assert_allclose((limb.kp, limb.kd), np.multiply.outer((100.0, 60.0), np.ones(6)))


@pytest.mark.parametrize("kind", ["hierarchical", "inverse_dynamics", "joint_impedance", "gravity_compensation"])
def test_a_scenario_names_its_controller(kind):
    textbook = {
        "frame": "tip",
        "path": [{"xyz": [0.4, 0.1, 0.85]}],
        "over": 0.6,
        "posture": {"joints": {"joint4": 1.2}},
    }
    plan = free_arm(type=kind, duration=1.0, textbook=textbook)
    run = mc.simulate(plan)
    report = mc.verify(run)
    assert report.success, report.failures
    assert run.t[-1] == pytest.approx(1.0 - DT)
    robot = plan.scenario.robot
    if kind == "hierarchical":
        np.testing.assert_allclose(robot.frame_pose(run.q[-1], "tip")[:3, 3], [0.4, 0.1, 0.85], atol=3e-3)
    elif kind != "gravity_compensation":
        assert run.q[-1, 7 + 3] == pytest.approx(1.2, abs=0.03)


def test_a_custom_controller_drives_a_plan_and_reports_its_errors():
    plan = free_arm(type="own")
    robot = plan.scenario.robot

    class Wave:
        frames = ("tip",)

        def __init__(self):
            self.times, self.far = [], 0.0

        def torque(self, t, terms, wrenches):
            self.times.append(t)
            self.far = terms.frame("tip").p[0]
            assert set(wrenches) <= {"fixed_base"}
            return terms.h[6:] + np.eye(7)[0]

    wave = Wave()
    run = mc.simulate(plan, controller=wave, duration=0.2)
    assert run.record.controller == "Wave"
    claimed = replace(run, record=run.record.model_copy(update={"physics": "qp"}))
    assert any("integrates the solution of a program" in failure for failure in mc.verify(claimed).failures)
    solved = replace(run, qp_status=np.zeros_like(run.qp_status))
    assert any("have a solved program" in failure for failure in mc.verify(solved).failures)
    assert len(wave.times) == 201
    assert run.q[-1, 7] > 0.01
    assert wave.far > 0.3
    with pytest.raises(InputError, match="own"):
        mc.simulate(plan)
    with pytest.raises(InputError, match="torques only"):
        mc.simulate(plan, physics="qp", controller=wave)
    with pytest.raises(InputError, match="has a method torque"):
        mc.simulate(plan, controller=object())
    bad = SimpleNamespace(torque=lambda t, terms, wrenches: np.zeros(3))
    with pytest.raises(mc.SimulationFailed, match=r"shape \(3,\) at t = 0 s, expected \(7,\)"):
        mc.simulate(plan, controller=bad)
    with pytest.raises(InputError, match="floats"):
        mc.OperationalSpaceControl(mc.load_robot("hrp2"), "left_hand", lambda t: None)
    path = joints_between(np.zeros(robot.n), np.ones(robot.n), 2.0)
    np.testing.assert_allclose(path(2.5).position, 1.0)


@pytest.mark.parametrize("physics", PHYSICS)
def test_torques_of_ones_own_against_a_physics(scenario, physics):
    robot = scenario.robot
    world = mc.make_physics(scenario, physics)
    q, v = world.q.copy(), world.v.copy()
    tau = np.linspace(-5.0, 5.0, 7)
    outcome = world.step(tau)
    np.testing.assert_allclose(world.v[6:], 1e-3 * robot.forward_dynamics(q, v, tau)[6:], atol=1e-9)
    np.testing.assert_allclose(outcome.wrenches["fixed_base"][2], robot.mass * 9.81, rtol=0.2)
    with pytest.raises(InputError, match=r"expected \(7,\)"):
        world.step(np.zeros(6))
    with pytest.raises(InputError, match="torques drive contact and mujoco"):
        mc.make_physics(scenario, "qp").step(tau)


class Ideal:
    """Custom physics: forward dynamics and an Euler step; the base bears the residual."""

    name = "ideal"

    def __init__(self, world):
        self.robot, self.q, self.v = world.robot, np.array(world.q), np.zeros(world.robot.nv)
        self.object_q, self.object_v = np.zeros((0, 7)), np.zeros((0, 6))

    def step(self, action, dt=DT):
        action = action_of(action, self.robot.n)
        vd = self.robot.forward_dynamics(self.q, self.v, action.tau)
        wrench = self.robot.inverse_dynamics(self.q, self.v, vd)[:6]
        self.v = self.v + dt * vd
        self.q = self.robot.integrate(self.q, self.v, dt)
        return StepOutcome(vd, None, {"fixed_base": wrench}, {}, ("fixed_base",))


def test_a_physics_of_ones_own_carries_a_plan_out_and_is_certified_like_the_others():
    textbook = {"posture": {"joints": {"joint2": -0.3}}, "over": 0.3}
    plan = free_arm(type="inverse_dynamics", duration=0.5, textbook=textbook)
    runs = [mc.simulate(plan, physics=physics) for physics in (Ideal, "contact")]
    assert runs[0].record.physics == "ideal"
    report = mc.verify(runs[0])
    assert report.success, report.failures
    np.testing.assert_allclose(runs[0].q[-1], runs[1].q[-1], atol=1e-6)
    assert isinstance(mc.make_physics(plan.scenario, Ideal), Ideal)
    with pytest.raises(InputError, match="or a class constructed from a World"):
        mc.simulate(plan, physics=3)
