"""HRP-2 in the contact physics: dropped, held by servos, pushed, beside MuJoCo."""

import mujoco
import numpy as np
import pytest

from mcplan.core.contact.model import MAX_WRENCH
from mcplan.robot.description import Box
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Bar, Environment, FreeObject, Surface
from mcplan.settings.disturbance import Push
from mcplan.settings.simulation import ContactLaw, SimulationSettings
from mcplan.sim.contact.contact_physics import ContactPhysics
from mcplan.sim.disturbance import Disturbance
from mcplan.sim.physics import Action

G = 9.81
SOLES = ["left_sole", "right_sole"]
FLOOR = Surface("floor", np.eye(3), np.zeros(3), np.array([[-4.0, -4], [4, -4], [4, 4], [-4, 4]]), 0.05, 0.7)


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


class Held:
    """HRP-2 over a floor, its joints held by servos."""

    def __init__(self, robot, lift=0.0, stiffness=3000.0, environment=None, patches=SOLES, **settings):
        self.robot, self.q0 = robot, robot.posture("half_sitting")
        share = np.minimum(robot.limits.torque / 150, 1.0)
        self.kp, self.kd = stiffness * share, stiffness / 50 * share
        q = self.q0.copy()
        q[2] += lift
        environment = environment or Environment(surfaces=(FLOOR,))
        self.physics = ContactPhysics(robot, environment, q, patches, SimulationSettings(**settings))

    def external(self, t, q):
        return None

    def torques(self, q, v):
        return np.clip(
            self.kp * (self.q0[7:] - q[7:]) - self.kd * v[6:], -self.robot.limits.torque, self.robot.limits.torque
        )

    def run(self, seconds, active=(), watch=None, dt=1e-3):
        physics = self.physics
        for k in range(round(seconds / dt)):
            q, v = physics.q, physics.v
            tau = self.torques(q, v)
            outcome = physics.step(Action(tau, np.zeros(0), {}, {}, tuple(active), self.external(k * dt, q)), dt)
            if watch is not None:
                watch(q, v, tau, outcome)


def generalized(robot, q, points, chosen=slice(None)):
    """``sum J' f`` of contact points, each at its place on its link."""
    total = np.zeros(robot.nv)
    for link, xyz, force in zip(points.link[chosen], points.xyz[chosen], points.force[chosen], strict=True):
        name = robot.link_names[link]
        X, J = robot.frame_pose(q, name), robot.frame_jacobian(q, name)
        total += J[:3].T @ force + J[3:].T @ np.cross(xyz - X[:3, 3], force)
    return total


@pytest.mark.parametrize("soles", [SOLES, SOLES[:1], []])
def test_motion_forces_and_torques_satisfy_the_equation_of_motion_also_in_impacts(robot, soles):
    """What touches without a patch is among the other forces, as in the record of a run."""
    held = Held(robot, lift=0.05, joint_friction=0.01, joint_damping=0.5, patches=soles)
    worst = {"eom": 0.0, "cone": 0.0, "unilateral": 0.0, "wrench": 0.0}

    def watch(q, v, tau, outcome):
        points = outcome.forces
        load = generalized(robot, q, points, points.patch >= 0) + outcome.tau_ext
        load[6:] += tau
        left = robot.mass_matrix(q) @ outcome.vd + robot.nonlinear_effects(q, v) - load
        worst["eom"] = max(worst["eom"], np.abs(left).max())
        normal = np.einsum("ij,ij->i", points.force, points.normal)
        tangential = np.linalg.norm(points.force - normal[:, None] * points.normal, axis=1)
        worst["cone"] = max(worst["cone"], np.max(tangential - 0.7 * normal, initial=0.0))
        worst["unilateral"] = max(worst["unilateral"], np.max(-normal, initial=0.0))
        for k, name in enumerate(soles):
            mine = points.patch == k
            force = points.force[mine].sum(axis=0)
            wrench = outcome.wrenches.get(name, np.zeros(6))
            worst["wrench"] = max(worst["wrench"], np.abs(force - wrench[:3]).max())

    held.run(0.3, watch=watch)
    assert worst["eom"] < 1e-7
    assert worst["cone"] < 1e-9
    assert worst["unilateral"] == 0.0
    assert worst["wrench"] < 1e-9


def test_dropped_5_cm_it_lands_comes_to_rest_and_does_not_sink(robot):
    held = Held(robot, lift=0.05)
    seen = []

    def watch(q, v, tau, outcome):
        seen.append(sum(w[2] for w in outcome.wrenches.values()))

    held.run(3.0, watch=watch)
    touch = np.flatnonzero(seen)[0]
    # free fall of 5 cm by semi-implicit Euler
    np.testing.assert_allclose(touch * 1e-3, np.sqrt(2 * 0.05 / G), atol=2e-3)
    np.testing.assert_allclose(np.mean(seen[-200:]), robot.mass * G, rtol=5e-3)
    assert np.abs(held.physics.v).max() < 0.02
    for sole in SOLES:
        X = robot.frame_pose(held.physics.q, sole)
        corners = X[:3, 3] + robot.patches[sole].points @ X[:3, :3].T
        assert np.all(np.abs(corners[:, 2]) < 1e-5)


def test_dropped_on_a_free_body_it_stays_on_the_face_without_a_slab(robot):
    """Soles that land sink in by micrometres: their patches carry the robot all the same, not corners of the feet."""
    top = Surface("top", np.eye(3), np.zeros(3), 0.5 * FLOOR.polygon / 4, 0.0, 0.7, "crate")
    crate = FreeObject("crate", Box((1.0, 1.0, 0.2)), np.eye(3), np.array([0.0, 0.0, -0.1]), 20.0, 0.7, (top,))
    ground = Surface("floor", np.eye(3), np.array([0.0, 0.0, -0.2]), FLOOR.polygon, 0.05, 0.7)
    held = Held(robot, lift=0.01, environment=Environment(surfaces=(ground,), objects=(crate,)))
    carried = []

    def watch(q, v, tau, outcome):
        mine = outcome.forces.link < len(robot.link_names)
        assert np.all(outcome.forces.patch[mine] >= 0)
        carried.append(sum(w[2] for w in outcome.wrenches.values()))

    held.run(1.0, watch=watch)
    assert np.flatnonzero(carried)[0] > 10
    np.testing.assert_allclose(np.mean(carried[-200:]), robot.mass * G, rtol=1e-2)


def kinetic(robot, q, v):
    return 0.5 * v @ robot.mass_matrix(q) @ v


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_without_torques_it_collapses_and_never_gains_energy(robot, restitution):
    held = Held(robot, lift=0.05, contact=ContactLaw(restitution=restitution))
    held.torques = lambda q, v: np.zeros(robot.n)
    energies = []

    def watch(q, v, tau, outcome):
        energies.append(kinetic(robot, q, v) + robot.mass * G * robot.com(q)[2])

    held.run(1.0, watch=watch)
    energies = np.array(energies)
    assert energies[-1] < 0.9 * energies[0]
    assert np.max(energies - np.minimum.accumulate(energies)) < 1e-3 * energies[0]
    joints = held.physics.q[7:]
    assert np.all(joints > robot.limits.lower - 1e-3)
    assert np.all(joints < robot.limits.upper + 1e-3)


def test_it_stands_on_its_soles_for_a_minute_without_walking_off(robot):
    held = Held(robot)
    held.run(6.0)
    first = {sole: robot.frame_pose(held.physics.q, sole) for sole in SOLES}
    held.run(54.0)
    for sole in SOLES:
        X = robot.frame_pose(held.physics.q, sole)
        assert np.linalg.norm(X[:3, 3] - first[sole][:3, 3]) < 1e-5
        assert np.linalg.norm(X[:3, :3] - first[sole][:3, :3]) < 1e-4


def test_a_push_gives_its_impulse(robot):
    push = Push(link="BODY", force=(30.0, 0.0, 0.0), start=0.01, duration=0.02, point=(0, 0, 0.3))
    held = Held(robot, lift=1.0)
    held.torques = lambda q, v: np.zeros(robot.n)
    impulse = []
    disturbance = Disturbance(robot, SimulationSettings(pushes=(push,)), 1e-3, 0)
    held.external = disturbance.external
    held.run(0.05, watch=lambda q, v, tau, outcome: impulse.append(outcome.tau_ext[:3] * 1e-3))
    np.testing.assert_allclose(np.sum(impulse, axis=0), [0.6, 0.0, 0.0], atol=1e-9)
    velocity = robot.com_jacobian(held.physics.q) @ held.physics.v
    np.testing.assert_allclose(robot.mass * velocity[0], 0.6, rtol=1e-2)


def test_a_hand_holds_a_bar_until_it_opens_or_the_load_is_too_much(robot):
    q = robot.posture("half_sitting")
    q[2] += 1.0
    p = robot.frame_pose(q, "left_grip")[:3, 3]
    half = np.array([0, 0.5, 0])
    bar = Bar("bar", np.array([p - half, p + half]), 0.02)
    held = Held(robot, lift=1.0, environment=Environment(bars=(bar,)), patches=["left_grip"])
    strong = held.physics
    outcome = strong.step(Action(np.zeros(robot.n), np.zeros(0), {}, {}, ("left_grip",)), 1e-3)
    assert outcome.active == ("left_grip",)
    # bounds of the robot file: 200 N do not hold 550 N, so that it slips through
    assert np.linalg.norm(outcome.wrenches["left_grip"][:3]) <= 200.0 + 1e-9
    held.run(0.2, active=["left_grip"])
    assert strong.q[2] < q[2] - 0.01
    outcome = strong.step(Action(np.zeros(robot.n), np.zeros(0), {}, {}, ()), 1e-3)
    assert outcome.active == ()


def test_a_robot_that_swings_on_a_bar_needs_one_newton_step(robot):
    """The state of its grasp does not change, so the first step is exact."""
    q = robot.posture("half_sitting")
    q[2] += 1.0
    p = robot.frame_pose(q, "left_grip")[:3, 3]
    half = np.array([0, 0.05, 0])
    environment = Environment(bars=(Bar("bar", np.array([p - half, p + half]), 0.02),))
    held = Held(robot, lift=1.0, environment=environment, patches=["left_grip"])
    held.run(0.001, active=["left_grip"])
    held.physics.grasps[0, MAX_WRENCH : MAX_WRENCH + 2] = 1e5
    steps = []
    for _ in range(100):
        held.run(0.001, active=["left_grip"])
        steps.append(held.physics.iterations)
    assert np.linalg.norm(held.physics.v[:3]) > 0.01
    assert steps == [1] * 100


@pytest.mark.parametrize("radius", [0.01, 0.06])
@pytest.mark.parametrize(("gap", "closes"), [(-0.01, True), (0.9, True), (1.1, False)])
def test_a_hand_closes_on_a_bar_whose_round_is_within_its_reach(robot, radius, gap, closes):
    """How thick the bar is makes no difference; what counts is the distance from its surface to the hand."""
    q = robot.posture("half_sitting")
    p = robot.frame_pose(q, "left_grip")[:3, 3]
    off = radius + (gap * ContactLaw().grasp_reach if gap > 0.0 else gap)
    ends = p + np.array([[off, -0.5, 0.0], [off, 0.5, 0.0]])
    environment = Environment(bars=(Bar("bar", ends, radius),))
    physics = ContactPhysics(robot, environment, q, ["left_grip"])
    outcome = physics.step(Action(np.zeros(robot.n), np.zeros(0), {}, {}, ("left_grip",)), 1e-3)
    assert (outcome.active == ("left_grip",)) is closes


def to_mujoco(robot):
    """The same robot and floor in MuJoCo: soles as boxes, armature, stiff contacts."""
    spec = mujoco.MjSpec.from_file(str(robot.urdf_path))
    for name, value in robot.locked.items():
        spec.joint(name).range = [value - 1e-9, value + 1e-9]
    for geom in list(spec.geoms):
        spec.delete(geom)
    base = next(body for body in spec.bodies if body.name == robot.link_names[0])
    base.add_freejoint()
    floor = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[4, 4, 0.1])
    shapes = [floor]
    for sole in SOLES:
        patch = robot.patches[sole]
        low, high = patch.polygon.min(axis=0), patch.polygon.max(axis=0)
        centre = patch.p + patch.R @ np.array([*(low + high) / 2, -0.01])
        body = next(body for body in spec.bodies if body.name == patch.link)
        half = np.abs(patch.R) @ np.array([*(high - low) / 2, 0.01])
        shapes.append(body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=half, pos=centre))
    for shape in shapes:
        shape.friction = [0.7, 0.005, 0.0001]
        shape.solref, shape.solimp, shape.condim = [0.005, 1], [0.95, 0.99, 0.001, 0.5, 2], 3
    model = spec.compile()
    model.opt.timestep, model.opt.cone, model.opt.impratio = 1e-3, mujoco.mjtCone.mjCONE_ELLIPTIC, 10
    columns = np.array([model.joint(name).dofadr[0] for name in robot.joint_names])
    places = np.array([model.joint(name).qposadr[0] for name in robot.joint_names])
    model.dof_armature[columns] = robot.armature
    return model, columns, places


def test_held_by_servos_it_stands_as_in_mujoco(robot):
    """Within what MuJoCo's soft contact gives and its slow creep: 1 mm and 2e-3 rad after 2.5 s."""
    model, columns, places = to_mujoco(robot)
    held = Held(robot)
    data = mujoco.MjData(model)
    data.qpos[:7], data.qpos[places] = held.q0[:7], held.q0[7:]
    for name, value in robot.locked.items():
        data.qpos[model.joint(name).qposadr[0]] = value
    q, v = held.q0.copy(), np.zeros(robot.nv)
    for _ in range(2500):
        q[7:], v[6:] = data.qpos[places], data.qvel[columns]
        data.qfrc_applied[columns] = held.torques(q, v)
        mujoco.mj_step(model, data)
    held.run(2.5)
    ours = held.physics.q
    np.testing.assert_allclose(ours[:3], data.qpos[:3], atol=1e-3)
    np.testing.assert_allclose(ours[7:], data.qpos[places], atol=2e-3)
