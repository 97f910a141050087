"""A limb in the air moves around obstacles on the path of its posture."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.control.motion import Motion
from mcplan.control.phases import Lift
from mcplan.motion.limb_path import LimbPath, PosturePath
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.transition.knots import MAX_DEFICIT_M
from mcplan.robot.anatomy import limb_joints
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings

ROBOT = load_robot("hrp2")
SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
FLOOR = Surface("floor", np.eye(3), np.zeros(3), SQUARE)


def rung(height):
    return Bar(f"rung{height}", np.array([[0.45, -0.1, height], [0.45, 0.6, height]]), 0.015, 0.7)


def environment(*heights):
    return Environment((FLOOR,), tuple(rung(height) for height in heights), (), ())


LOW, BETWEEN, HIGH = 0.75, (1.0, 1.2), 1.4


def contacts(height):
    """Both feet, and the left grip on a rung."""
    scene = environment(LOW, *BETWEEN, HIGH)
    feet = [{"patch": f"{side}_sole", "surface": "floor", "x": 0.01, "y": y, "yaw": 0.0}
            for side, y in (("left", 0.095), ("right", -0.095))]  # fmt: skip
    grip = {"patch": "left_grip", "surface": f"rung{height}", "along": 0.5 if height == LOW else 0.4,
            "angle": -0.8}  # fmt: skip
    return [make_contact(ROBOT, scene, spec) for spec in (*feet, grip)]


@pytest.fixture(scope="module")
def postures():
    """The hand at the low place, and at the high one, on feet that carry all."""
    generator = PostureGenerator(ROBOT, environment())
    found = [generator.generate(contacts(z), ["left_sole", "right_sole"], ROBOT.posture("half_sitting"))
             for z in (LOW, HIGH)]  # fmt: skip
    assert all(result.found for result in found)
    return [result.q for result in found]


def pose(q, patch):
    X = ROBOT.frame_pose(q, patch)
    return X[:3, :3], X[:3, 3]


@pytest.mark.parametrize(("heights", "kind"), [((HIGH,), PosturePath), ((*BETWEEN, HIGH), LimbPath)])
def test_a_hand_in_the_plane_of_a_ladder_goes_out_of_it_where_a_rung_is_between(postures, heights, kind):
    scene, (first, last) = environment(*heights), postures
    motion = Motion(ROBOT, scene, ControlSettings(), first)
    *feet, grip = contacts(HIGH)
    for contact in feet:
        motion.close(contact, -1.0, 0.0)
    segment = motion.finder.swing(motion.departure(0.0), last, [grip])
    assert segment.missed <= MAX_DEFICIT_M
    motion.follow(segment, 0.0, lambda patch: pose(first, patch))
    path = motion.limbs["left_grip"]
    assert isinstance(path, kind)
    model = CollisionModel(ROBOT, scene)
    for t in np.linspace(0.0, path.end_time, 60):
        near = model.distances(motion.posture.sample(t).q, 0.0, [*feet, grip])
        assert near.distance.min(initial=1.0) > -2e-3, near.pairs
    assert np.allclose(path.sample(path.end_time).p, grip.p, atol=1e-3)


def test_a_hand_that_was_held_up_follows_the_replanned_collision_free_motion(postures):
    """The reference of its posture has gone on to the high place without it: the motion is replanned."""
    scene, (first, last) = environment(HIGH), postures
    *feet, grip = contacts(HIGH)
    held, arm = last.copy(), limb_joints(ROBOT, "left_arm")
    held[arm] = first[arm]
    motion = Motion(ROBOT, scene, ControlSettings(), last)
    for contact in feet:
        motion.close(contact, -1.0, 0.0)
    planned = motion.finder.swing(motion.departure(0.0), last, [grip])
    phase = Lift(2, grip, planned)
    phase.replan(motion, 0.0, SimpleNamespace(q=held, joint_rates=np.zeros(len(held) - 7)))
    np.testing.assert_allclose(motion.posture.sample(0.0).q, held, atol=1e-12)
    assert phase.segment is not planned
    phase.enter(motion, 0.0, SimpleNamespace(pose=lambda patch: pose(held, patch)))
    path = motion.limbs["left_grip"]
    for t in np.linspace(0.0, path.end_time, 20):
        of_path = ROBOT.frame_pose(motion.posture.sample(t).q, "left_grip")[:3, 3]
        # it goes ahead of the body, and comes to its place along the normal
        assert np.linalg.norm(path.sample(t).p - of_path) < 0.1


def test_a_hand_that_follows_its_reference_leaves_it_as_it_is(postures):
    motion = Motion(ROBOT, environment(HIGH), ControlSettings(), postures[0])
    posture, near = motion.posture, postures[0].copy()
    near[limb_joints(ROBOT, "left_arm")] += 0.05
    motion.advance_reference(0.0, near, np.zeros(motion.robot.n))
    assert motion.posture is posture


def test_a_hand_that_moves_to_its_reference_is_not_blocked(postures):
    joints = limb_joints(ROBOT, "left_arm")
    for speed, follows in ((1.0, True), (0.0, False)):
        motion = Motion(ROBOT, environment(HIGH), ControlSettings(), postures[0])
        posture, rates, far = motion.posture, np.zeros(ROBOT.n), postures[0].copy()
        far[joints] += 0.2
        rates[joints - 7] = speed
        motion.advance_reference(0.0, far, rates)
        assert (motion.posture is posture) == follows
