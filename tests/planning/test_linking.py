from dataclasses import replace

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.errors import PlanningFailed
from mcplan.planning.linking import Linker, describe_changes
from mcplan.planning.plan import Change
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.posture.reference import comfortable_com, guide_posture
from mcplan.planning.posture.task import FRICTION_SHARE, TORQUE_SHARE
from mcplan.robot.description import Box
from mcplan.scene.environment import Environment, Obstacle
from mcplan.scene.placement import make_contact
from mcplan.statics.support_region import support_region
from tests.contact_error import contact_error
from tests.planning.scene import plane


@pytest.fixture
def linker(scene):
    return Linker(scene.ROBOT, scene.ENVIRONMENT, scene.ROBOT.posture("half_sitting"))


def balanced(robot, stance):
    """Largest entry of h - S' tau - sum J' w."""
    rest = robot.nonlinear_effects(stance.q, np.zeros(robot.nv))
    rest[6:] -= stance.tau
    for patch, wrench in stance.wrenches.items():
        rest -= robot.frame_jacobian(stance.q, patch).T @ wrench
    return np.abs(rest).max()


def test_forces_and_torques_satisfy_the_equation_of_motion_at_rest(scene, linker):
    robot = scene.ROBOT
    start = linker.start(scene.feet())
    hand = scene.contact("right_hand", "table", x=-0.25, y=-0.28, yaw=0.0)
    added = linker.link(Change.add(start.contacts, hand), start)
    lifted = linker.link(Change.remove(added.contacts, "left_sole"), added)
    for stance in (start, added, lifted):
        assert balanced(robot, stance) < 1e-6
        assert stance.margins["torque"] <= TORQUE_SHARE + 1e-6
        assert stance.margins["friction_ratio"] <= FRICTION_SHARE + 1e-6
        assert stance.margins["equilibrium"] > 5.0
        assert 0.0 < stance.margins["equilibrium_torque"] <= stance.margins["equilibrium"] + 1e-6
    assert not added.wrenches["right_hand"].any()
    assert not lifted.wrenches["left_sole"].any()
    assert lifted.wrenches["right_hand"][2] > 5.0
    assert "left_sole" not in lifted.patches


def posts(*boxes):
    """The floor alone, and boxes: (centre, size) each."""
    obstacles = (Obstacle(f"post{k}", Box(size), np.eye(3), np.array(p)) for k, (p, size) in enumerate(boxes))
    return Environment(surfaces=(plane("floor", [0, 0, 0], [4, 2]),), obstacles=tuple(obstacles))


def least(robot, environment, stance):
    """Smallest distance of a posture's bodies (m), and of which."""
    near = CollisionModel(robot, environment).smallest(stance.q, contacts=stance.contacts)
    return near.distance, near.pair


def test_a_start_that_fits_is_left_alone_and_nothing_is_said(scene, linker):
    robot, wanted = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    assert np.abs(robot.difference(wanted, linker.start(scene.feet()).q)).max() < 0.01
    assert linker.notices == ()


def test_the_start_may_move_the_base_by_five_centimetres_and_says_so(scene, linker):
    wanted = scene.ROBOT.posture("half_sitting")[:3]
    moved = np.linalg.norm(linker.start(scene.feet(0.20)).q[:3] - wanted)
    assert moved == pytest.approx(0.05, abs=2e-6)
    assert moved <= 0.05
    assert "the base moved 0.050 m" in linker.notices[0]


def test_a_start_whose_base_had_to_move_farther_is_refused_with_the_distance(scene):
    robot, wanted = scene.ROBOT, scene.ROBOT.posture("half_sitting").copy()
    wanted[1] += 0.2
    soft = replace(scene.ENVIRONMENT, surfaces=tuple(replace(s, friction=0.25) for s in scene.ENVIRONMENT.surfaces))
    left = make_contact(robot, soft, {"patch": "left_sole", "surface": "floor", "x": 0.01, "y": -0.3, "yaw": 0.0})
    right = make_contact(robot, soft, {"patch": "right_sole", "surface": "floor", "x": 0.01, "y": -0.5, "yaw": 0.0})
    with pytest.raises(PlanningFailed, match=r"base has to move 0\.[3-9]\d* m.* 0\.05 m are allowed"):
        Linker(robot, soft, wanted).start((left, right))


def test_bodies_that_overlap_at_the_start_are_put_apart_and_it_is_said_which_joints_moved(scene):
    robot, wanted = scene.ROBOT, scene.ROBOT.posture("half_sitting").copy()
    wanted[7 + robot.joint_names.index("LARM_JOINT1")] = -0.05
    near = CollisionModel(robot, scene.ENVIRONMENT).smallest(wanted, contacts=scene.feet())
    assert near.pair[:2] == ("LLEG_LINK2", "LARM_LINK5")
    assert near.distance < -0.01
    linker = Linker(robot, scene.ENVIRONMENT, wanted)
    started = linker.start(scene.feet())
    assert started.margins["clearance"] > 0.0025
    assert least(robot, scene.ENVIRONMENT, started)[0] == pytest.approx(started.margins["clearance"])
    assert "LARM_JOINT1 by +0.0" in linker.notices[0]


def test_a_slide_that_moved_at_the_start_did_so_by_metres(telescopic):
    wanted = telescopic.posture("ready")
    q = wanted.copy()
    q[7 + telescopic.joint_names.index("port_h_yaw")] += 0.05
    q[7 + telescopic.joint_names.index("port_knee")] -= 0.03
    assert describe_changes(telescopic, wanted, q) == "joints moved: port_h_yaw by +0.050 m, port_knee by -0.030 rad"


def test_a_shank_that_is_in_a_platform_is_drawn_out_of_it(scene):
    robot, wanted = scene.ROBOT, scene.ROBOT.posture("half_sitting")

    def beside(front):
        return posts(([front + 0.2, 0.0, 0.3], (0.4, 1.0, 0.05)))

    def deep(front):
        near = CollisionModel(robot, beside(front)).smallest(wanted, contacts=scene.feet())
        return near.distance if near.pair[1] == "post0" else 0.1

    front = min(np.arange(0.0, 0.3, 0.002), key=lambda x: abs(deep(x) + 0.012))
    assert deep(front) == pytest.approx(-0.012, abs=0.002)
    linker = Linker(robot, beside(front), wanted)
    assert least(robot, beside(front), linker.start(scene.feet()))[0] > 0.0025
    assert "LEG_JOINT3" in linker.notices[0]


def test_a_start_that_nothing_frees_is_refused_with_the_bodies_and_the_amount(scene):
    robot = scene.ROBOT
    environment = posts(([0.03, 0.1, 0.05], (0.1, 0.1, 0.1)))
    with pytest.raises(PlanningFailed, match=r"start: LLEG_LINK5 and post0 come 7\d[.\d]* mm too close"):
        Linker(robot, environment, robot.posture("half_sitting")).start(scene.feet())


def test_contacts_that_contradict_each_other_by_less_than_a_micrometre_are_a_start(scene, linker):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    stood = Linker(robot, scene.ENVIRONMENT, q).start(scene.feet())
    X = robot.frame_pose(stood.q, "left_toe")
    place = make_contact(robot, scene.ENVIRONMENT, {"patch": "left_toe", "surface": "floor"}, (X[:3, :3], X[:3, 3]))
    for off, fits in ((3e-7, True), (1e-4, False)):
        x = float(place.coordinates["x"]) + off
        toe = make_contact(robot, scene.ENVIRONMENT, place.to_data() | {"x": x})
        linker = Linker(robot, scene.ENVIRONMENT, q)
        if fits:
            started = linker.start((*scene.feet(), toe))
            assert balanced(robot, started) < 1e-6
            assert 1e-7 < max(np.abs(contact_error(robot, started.q, c)).max() for c in started.contacts) < 1e-6
        else:
            with pytest.raises(PlanningFailed, match=r"left_(toe|sole) stays"):
                linker.start((*scene.feet(), toe))


def test_a_shift_of_the_centre_of_mass_beside_a_wall_keeps_clear_of_it_or_is_refused(scene):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    environment = posts(([0.28, 0.0, 1.0], (0.1, 2.0, 2.0)))
    linker = Linker(robot, environment, q)
    start, com = linker.start(scene.feet()), np.array([0.05, 0.0])
    blind = PostureGenerator(robot, environment).generate(start.contacts, None, start.q, com=com)
    assert CollisionModel(robot, environment).smallest(blind.q, contacts=start.contacts).distance < -0.005
    shifted = linker.link(Change.shift(start.contacts), start, com=com)
    assert np.allclose(robot.com(shifted.q)[:2], com, atol=1e-6)
    assert least(robot, environment, shifted)[0] > 0.0025
    with pytest.raises(PlanningFailed, match=r"shift: .*LINK\d and post0 come [\d.]+ mm too close"):
        linker.link(Change.shift(start.contacts), start, com=np.array([0.07, 0.0, 0.78]))


def test_a_centre_of_mass_that_nothing_balances_is_refused(scene, linker):
    start = linker.start(scene.feet())
    with pytest.raises(PlanningFailed, match=r"lies 0\.\d+ m outside the region where left_sole"):
        linker.link(Change.remove(start.contacts, "right_sole"), start, com=np.array([0.0, -0.05, 0.8]))


def test_the_guide_follows_the_contacts_rigidly(scene, linker):
    robot = scene.ROBOT
    start = linker.start(scene.feet())
    turned = tuple(
        scene.contact(patch, x=0.5 - side * np.sin(0.4), y=0.1 + side * np.cos(0.4), yaw=0.4)
        for patch, side in (("left_sole", 0.095), ("right_sole", -0.095))
    )
    guide = guide_posture(robot, start.q, start.patches, turned)
    assert np.array_equal(guide[7:], start.q[7:])
    for contact in turned:
        X = robot.frame_pose(guide, contact.patch)
        assert np.allclose(X[:3, :3], contact.R, atol=1e-9)
        assert np.allclose(X[:3, 3], contact.p, atol=1e-6)
    assert guide_posture(robot, start.q, (), turned) is None


def test_joints_that_are_asked_for_are_those_of_the_guide_and_not_of_the_posture_before(scene, linker):
    start = linker.start(scene.feet())
    before, reference = start.q.copy(), linker.reference.copy()
    for contacts in ((), start.contacts):
        joints = before[7:] + 0.1
        assert np.array_equal(linker.guide(contacts, start.q, joints)[7:], joints)
        assert np.array_equal(start.q, before)
        assert np.array_equal(linker.reference, reference)


def test_the_comfortable_place_lies_inside_and_leans_on_the_soles(scene):
    left, right = scene.feet()
    hand = scene.contact("right_hand", "table", x=-0.25, y=-0.28, yaw=0.0)
    region = support_region((right, hand), 56.0)
    place = comfortable_com(region, (right, hand), np.array([0.0, 0.2]), 58.0)
    assert region.depth(place) > 0.02
    assert np.linalg.norm(place - right.p[:2]) < np.linalg.norm(place - hand.p[:2])
    both = support_region((left, right), 56.0)
    assert np.allclose(comfortable_com(both, (left, right), both.centre, 58.0), both.centre, atol=0.01)
