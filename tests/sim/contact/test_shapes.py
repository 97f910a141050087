"""What meets beyond patches and corners: crossing edges, obstacles, objects, links of one robot."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.collision.model import CollisionModel
from mcplan.core.contact.model import CAPACITY
from mcplan.errors import SimulationFailed
from mcplan.robot.description import Box, Capsule, MeshShape, Sphere
from mcplan.robot.robot_file import load_robot
from mcplan.robot.solid import shape_inertia
from mcplan.scene.environment import Bar, Environment, Obstacle, Surface
from mcplan.scene.placement import make_contact
from mcplan.sim.contact.contact_physics import ContactPhysics
from mcplan.sim.contact.pack import shape_bumps
from mcplan.sim.physics import Action
from tests.sim.contact.test_hrp2 import FLOOR, SOLES, Held, generalized
from tests.sim.contact.worlds import G, World, plane, rotation, solid


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


def upright(world):
    """Height of the first object, and its speed."""
    return world.q[2], float(np.linalg.norm(world.v))


def test_a_beam_rests_across_the_edge_of_a_slab_where_no_corner_touches():
    """A beam lies across two narrow slabs: all contacts are edges on edges."""
    narrow = np.array([[-0.01, -1], [0.01, -1], [0.01, 1], [-0.01, 1]])
    rails = [Surface(f"rail{x:g}", np.eye(3), np.array([x, 0.0, 0.0]), narrow) for x in (-0.3, 0.3)]
    turned = rotation((1, 0, 0), np.pi / 4)
    world = World(rails, [solid(Box((1.0, 0.1, 0.1)), turned, (0, 0, 0.1 / np.sqrt(2) + 0.01))])
    world.run(1.0)
    height, _ = upright(world)
    # on its edge it may roll over to a face; it stays on top of the rails in both cases
    assert 0.05 - 1e-3 < height < 0.1 / np.sqrt(2) + 1e-3


@pytest.mark.parametrize(("edge", "stays"), [(0.06, True), (-0.03, False)])
def test_a_box_that_overhangs_stays_where_its_middle_is_over_the_slab(edge, stays):
    """Two of its corners are beyond the edge."""
    slab = Surface("slab", polygon=[[-1, -1], [1, -1], [1, edge], [-1, edge]])
    world = World([slab], [solid()])
    world.run(0.3)
    height, _ = upright(world)
    assert (abs(height - 0.1) < 1e-3) == stays


def test_a_bar_carries_the_middle_of_a_beam():
    bar = Bar("bar", np.array([[0, -0.5, 0.0], [0, 0.5, 0.0]]), 0.02, 0.7)
    world = World([], [solid(Box((1.0, 0.1, 0.1)), p=(0, 0, 0.08))])
    physics = ContactPhysics(world.physics.robot, Environment(bars=(bar,), objects=world.objects), world.physics.q)
    for _ in range(300):
        physics.step(world.still, 1e-3)
    assert abs(physics.object_q[0, 2] - 0.07) < 1e-3


@pytest.mark.parametrize("shape", [Sphere(0.1), Box((0.2, 0.2, 0.2)), Capsule(0.1, 0.1)])
def test_an_obstacle_stops_what_falls_on_it(shape):
    post = Obstacle("post", Box((0.5, 0.5, 1.0)), np.eye(3), np.array([0.0, 0, -0.5]))
    below = 0.15 if isinstance(shape, Capsule) else 0.1
    thing = solid(shape, p=(0, 0, below + 0.05))
    world = World([], [thing])
    environment = Environment(obstacles=(post,), objects=(thing,))
    physics = ContactPhysics(world.physics.robot, environment, world.physics.q)
    lowest = np.inf
    for _ in range(500):
        physics.step(world.still, 1e-3)
        lowest = min(lowest, physics.object_q[0, 2])
    assert lowest > below - 2e-3
    if isinstance(shape, Sphere):
        assert abs(physics.object_q[0, 2] - below) < 1e-5
        assert np.linalg.norm(physics.object_v[0]) < 1e-6


def test_two_balls_exchange_their_momentum():
    """Central impact of equal balls with restitution e: ``v1 = (1 - e) v / 2``, ``v2 = (1 + e) v / 2``."""
    a, b = solid(Sphere(0.1), p=(0, 0, 100)), solid(Sphere(0.1), p=(0.25, 0, 100))
    b = dataclasses.replace(b, name="other")
    world = World([], [a, b], restitution=0.5)
    physics = world.physics
    physics.centre_v[0, 0] = 1.0
    world.run(0.2)
    np.testing.assert_allclose(physics.object_v[:, 0], [0.25, 0.75], rtol=1e-3)
    np.testing.assert_allclose(physics.object_v[:, 0].sum(), 1.0, rtol=1e-12)


def test_links_do_not_pass_through_each_other_and_the_force_is_in_the_equation_of_motion(robot):
    """The hands are driven together with all their strength."""
    held = Held(robot, lift=1.0, environment=Environment())
    limit, inward = robot.limits.torque, np.zeros(robot.n)
    for side, sign in (("R", 1.0), ("L", -1.0)):
        inward[robot.joint_names.index(f"{side}ARM_JOINT1")] = sign * 1.2
        inward[robot.joint_names.index(f"{side}ARM_JOINT2")] = -sign * 1.2
    goal = held.q0[7:] + inward
    held.torques = lambda q, v: np.clip(held.kp * (goal - q[7:]) - held.kd * v[6:], -limit, limit)
    worst, forces = [], []

    def watch(q, v, tau, outcome):
        load = outcome.tau_ext.copy()
        load[6:] += tau
        left = robot.mass_matrix(q) @ outcome.vd + robot.nonlinear_effects(q, v) - load
        worst.append(np.abs(left).max())
        points = outcome.forces
        forces.append(np.abs(points.force).max(initial=0.0))
        assert np.all(points.patch == -1)
        # both sides of each contact are reported: nothing acts on the robot as a whole
        np.testing.assert_allclose(generalized(robot, q, points)[:6], 0.0, atol=1e-8)

    held.run(1.0, watch=watch)
    assert max(worst) < 1e-7
    assert max(forces) > 10.0
    assert CollisionModel(robot).smallest(held.physics.q).distance > -1e-3


def test_a_contact_may_have_its_friction(robot):
    """Both soles on ice stand on a floor that would hold them."""
    environment = Environment(surfaces=(FLOOR,))
    q = robot.posture("half_sitting")
    place = {"surface": "floor", "x": 0.0, "yaw": 0.0, "friction": 0.05}
    contacts = [
        make_contact(robot, environment, {"patch": sole, "y": y, **place})
        for sole, y in zip(SOLES, (0.095, -0.095), strict=True)
    ]
    held = Held(robot)
    held.physics = ContactPhysics(robot, environment, q, SOLES, contacts=contacts)
    ratios = []

    def watch(q, v, tau, outcome):
        f = outcome.forces.force
        ratios.append((np.linalg.norm(f[:, :2], axis=1) - 0.05 * f[:, 2]).max(initial=-np.inf))

    held.run(0.1, watch=watch)
    assert max(ratios) < 1e-9


def test_a_hinge_lets_the_hand_turn_about_the_bar_and_nothing_else(robot):
    q = robot.posture("half_sitting")
    q[2] += 1.0
    X = robot.frame_pose(q, "left_grip")
    bar = Bar("bar", np.array([X[:3, 3] - 0.5 * X[:3, 1], X[:3, 3] + 0.5 * X[:3, 1]]), 0.02)
    environment = Environment(bars=(bar,))
    spec = {"patch": "left_grip", "surface": "bar", "max_force": 2000.0, "hinge": ["y"]}
    contact = make_contact(robot, environment, spec, (X[:3, :3], X[:3, 3]))
    held = Held(robot, lift=1.0, environment=environment)
    held.physics = ContactPhysics(robot, environment, q, ["left_grip"], contacts=[contact])
    moments = []

    def watch(q, v, tau, outcome):
        w, R = outcome.wrenches["left_grip"], robot.frame_pose(q, "left_grip")[:3, :3]
        moments.append(R.T @ w[3:])

    held.run(0.3, active=["left_grip"], watch=watch)
    moments = np.array(moments)
    assert np.abs(moments[:, 1]).max() < 1e-9
    assert np.abs(moments[:, [0, 2]]).max() > 1.0
    Y = robot.frame_pose(held.physics.q, "left_grip")
    assert np.linalg.norm(Y[:3, 3] - X[:3, 3]) < 1e-3


LEG = """<robot name="leg"><link name="body"><inertial><mass value="2"/>
<inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="foot"><collision><origin xyz="0.3 0 0"/><geometry><sphere radius="0.05"/></geometry></collision></link>
<joint name="ankle" type="fixed"><parent link="body"/><child link="foot"/>
<origin xyz="0 0 -0.1" rpy="0 1.570796326794897 0"/>
</joint></robot>"""
"""Its ball is 0.3 m along the x axis of a foot that is mounted on its side: 0.4 m below the body."""


@pytest.mark.parametrize(("height", "touches"), [(0.4495, True), (0.46, False)])
def test_a_shape_of_a_link_that_is_mounted_turned_touches_where_it_is(tmp_path, height, touches):
    (tmp_path / "leg.urdf").write_text(LEG)
    leg = load_robot(tmp_path / "leg.urdf")
    q = leg.neutral()
    q[2] = height
    physics = ContactPhysics(leg, Environment(surfaces=(FLOOR,)), q)
    outcome = physics.step(np.zeros(0), 1e-3)
    assert bool(len(outcome.forces.force)) is touches
    if touches:
        np.testing.assert_allclose(outcome.forces.xyz[0, :2], 0.0, atol=1e-9)
        assert outcome.forces.force[0, 2] > 0.0


SLAB = """<robot name="slab"><link name="slab"><inertial><mass value="2"/>
<inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""

SOLE = """mcplan: 1
name: slab
urdf: slab.urdf
patches:
  sole:
    link: slab
    pose: {xyz: [0.1, 0.05, -0.1], rpy: [3.141592653589793, 0, 0]}
    polygon: [[-0.2, -0.1], [-0.2, 0.1], [0.1, 0.1], [0.1, -0.1]]
"""


def test_the_wrench_of_a_patch_is_that_of_its_points_about_its_origin(tmp_path):
    """A slab slides and spins on its sole: friction has a moment about the normal."""
    (tmp_path / "slab.urdf").write_text(SLAB)
    (tmp_path / "robot.yaml").write_text(SOLE)
    slab = load_robot(tmp_path / "robot.yaml")
    q, v = slab.neutral(), np.array([0.3, -0.2, 0.0, 0.0, 0.0, 5.0])
    q[2] = 0.1
    physics = ContactPhysics(slab, Environment(surfaces=(FLOOR,)), q, ["sole"], v=v)
    for _ in range(3):
        before = slab.frame_pose(physics.q, "sole")[:3, 3]
        outcome = physics.step(Action(np.zeros(0), np.zeros(6), {}, {}, ("sole",)), 1e-3)
        points, wrench = outcome.forces, outcome.wrenches["sole"]
        moment = np.cross(points.xyz - before, points.force).sum(axis=0)
        np.testing.assert_allclose(wrench, [*points.force.sum(axis=0), *moment], atol=1e-9)
    assert wrench[2] == pytest.approx(2 * G, rel=0.05)
    assert np.abs(wrench[3:]).min() > 0.1


def test_each_support_brakes_a_sliding_sole_by_its_own_friction(tmp_path):
    """Two bars, beside a surface that it does not touch; and that surface without bars."""
    (tmp_path / "slab.urdf").write_text(SLAB)
    (tmp_path / "robot.yaml").write_text(SOLE)
    slab = load_robot(tmp_path / "robot.yaml")
    q, v = slab.neutral(), np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    q[2] = 0.1
    frictions = {-0.05: 0.3, 0.15: 0.6}
    bars = [Bar(f"bar{x}", [[x, -0.5, -0.02], [x, 0.5, -0.02]], 0.02, friction=mu) for x, mu in frictions.items()]
    for height, supports in ((-1.0, frictions), (0.0, {0.0: 0.1})):
        floor = Surface("floor", size=(4, 4), xyz=(0, 0, height), friction=0.1)
        environment = Environment(surfaces=(floor,), bars=tuple(bars) if height < 0.0 else ())
        physics = ContactPhysics(slab, environment, q, ["sole"], v=v)
        for _ in range(3):
            points = physics.step(Action(np.zeros(0), np.zeros(6), {}, {}, ("sole",)), 1e-3).forces
        assert len(points.force) >= 2 * len(supports)
        for place, force in zip(points.xyz, points.force, strict=True):
            nearest = min(supports, key=lambda x, place=place: abs(x - place[0]))
            assert force[2] > 0.0
            assert force[0] == pytest.approx(-supports[nearest] * force[2], rel=1e-3)


def test_objects_are_reported_where_their_frames_are():
    thing = solid(p=(0, 0, 0.1))
    world = World([plane()], [thing])
    world.physics.centre_v[0, 0] = 1.0
    outcome = world.physics.step(Action(np.zeros(0), np.zeros(6), {}, {}, ()), 1e-3)
    # to the compliance of the contact
    np.testing.assert_allclose(world.physics.object_v[0, 0], 1.0 - 0.5 * G * 1e-3, rtol=1e-4)
    np.testing.assert_allclose(world.physics.object_q[0, 0], 1e-3 * world.physics.object_v[0, 0], rtol=1e-12)
    np.testing.assert_allclose(outcome.forces.force.sum(axis=0), [-0.5 * 2 * G, 0, 2 * G], rtol=1e-2, atol=1e-6)


def test_a_thrown_object_turns_about_its_centre_of_mass_and_its_frame_goes_along():
    """A wedge, whose frame is at a corner: it moves as its velocity says, and stays where the body has it."""
    corners = np.array([[0.0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.4], [0.3, 0, 0.4], [0, 0.2, 0.4]])
    faces = np.array([[0, 2, 1], [3, 4, 5], [0, 1, 4], [0, 4, 3], [0, 3, 5], [0, 5, 2], [1, 2, 5], [1, 5, 4]])
    wedge = MeshShape(corners, faces)
    com, _ = shape_inertia(wedge, 2.0)
    assert np.linalg.norm(com) > 0.2
    start = Rotation.from_rotvec([0.5, -0.3, 1.0]).as_matrix()
    world = World([plane()], [solid(wedge, start, (0, 0, 5.0))])
    np.testing.assert_allclose(world.physics.object_q[0, :3], [0, 0, 5.0], atol=1e-12)
    world.physics.centre_v[0] = [0.4, 0.1, 2.0, 3.0, -2.0, 4.0]
    rows = []
    world.run(0.2, dt=1e-4, watch=lambda world, _: rows.append(
        np.r_[world.physics.object_q[0], world.physics.object_v[0], world.physics.centre_q[0, :3]]))  # fmt: skip
    place, quat, velocity, centre = np.split(np.array(rows), [3, 7, 13], axis=1)
    turn = Rotation.from_quat(quat, scalar_first=True)
    assert turn.apply(com) + place == pytest.approx(centre, abs=1e-12)
    speed = (place[2:] - place[:-2]) / 2e-4
    # steps are those of the centre of mass: to the second difference of a turn of 5 rad/s about an arm of 0.25 m
    np.testing.assert_allclose(speed, velocity[1:-1, :3], atol=2e-3)


def test_more_contacts_than_the_table_holds_end_the_run():
    def boxes(count):
        """Each rests on the plane with four corners."""
        return [dataclasses.replace(solid(p=(0.3 * k, 0, 0.1)), name=f"box{k}") for k in range(count)]

    full = World([plane()], boxes(CAPACITY // 4))
    full.run(2e-3)
    assert full.physics.contact_count == CAPACITY
    with pytest.raises(SimulationFailed, match=f"more than {CAPACITY} simultaneous contacts at t = ") as failure:
        World([plane()], boxes(CAPACITY // 4 + 1)).run(2e-3)
    assert failure.value.cause == "too many contacts"


def test_a_flat_mesh_touches_with_its_corners():
    corners = np.array([[1.0, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0]])
    bumps = shape_bumps(MeshShape(corners, np.array([[0, 1, 2], [0, 2, 3]])), np.eye(3), np.array([0.0, 0.0, 0.5]))
    assert sorted(tuple(centre) for _, centre, _, _ in bumps) == sorted((x, y, 0.5) for x, y, _ in corners)
