"""Objects that the robot handles, as its program sees them: states, contacts that go along, what each bears, feels."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.control.command import LoadedContact, Ramp
from mcplan.control.handled import HandledObjects
from mcplan.motion.limb_path import LimbPath
from mcplan.robot.robot_file import load_robot
from mcplan.scene.resting import resting_contact
from mcplan.settings.control import ControlSettings
from mcplan.whole_body.solution import ByPatch
from tests.control.places import BOX, SCENE, contact_on


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


@pytest.fixture(scope="module")
def handled(robot):
    hand = contact_on(robot, "left_hand", "face", x=0.0, y=0.0, yaw=0.0)
    plan = SimpleNamespace(
        stances=(SimpleNamespace(contacts=(hand,), objects={}),),
        scenario=SimpleNamespace(robot=robot, environment=SCENE),
    )
    return hand, HandledObjects(plan, ControlSettings())


def test_states_and_accelerations_go_into_the_system_and_back(robot, handled):
    _, objects = handled
    assert bool(objects)
    assert [thing.name for thing in objects.things] == ["box"]
    q, v = robot.posture("half_sitting"), np.arange(float(robot.nv))
    poses, speeds = np.arange(7.0)[None], np.arange(6.0)[None]
    whole, moving = objects.state(q, v, poses, speeds)
    assert whole == pytest.approx(np.concatenate([q, np.arange(7.0)]))
    assert moving == pytest.approx(np.concatenate([v, np.arange(6.0)]))
    assert objects.accelerations(moving) == pytest.approx(speeds)
    wrenches = ByPatch(np.arange(12.0), {"left_hand": slice(0, 6), "box": slice(6, 12)}, (6,))
    (name, wrench), *others = objects.without_objects(wrenches).items()
    assert name == "left_hand"
    assert wrench.tolist() == list(range(6))
    assert not others


def frame(R, p):
    return SimpleNamespace(R=np.array(R, float), p=np.array(p, float))


@pytest.mark.parametrize("first", [0.0, 0.4])
def test_a_contact_on_an_object_goes_along_with_it_from_where_it_was_closed(handled, first):
    """However the object stands by then."""
    hand, objects = handled
    loaded = SimpleNamespace(contact=hand)
    constraint = SimpleNamespace(R=hand.R, p=hand.p)
    begin = Rotation.from_rotvec([0, 0, first]).as_matrix()
    at_rest = SimpleNamespace(frame=lambda name: frame(begin, BOX.p))
    objects.move_with_object(constraint, loaded, at_rest)
    assert constraint.p == pytest.approx(hand.p)
    turn = Rotation.from_rotvec([0, 0, 0.7]).as_matrix()
    moved = SimpleNamespace(frame=lambda name: frame(turn @ begin, [2.0, 1.0, 0.4]))
    objects.move_with_object(constraint, loaded, moved)
    assert pytest.approx(turn @ hand.R) == constraint.R
    assert constraint.axes == pytest.approx(turn @ begin @ hand.axes)  # the cone of its forces, too
    assert constraint.p == pytest.approx([2.0, 1.0, 0.4] + turn @ (hand.p - BOX.p))


def at_speed(velocity):
    return SimpleNamespace(frame=lambda name: SimpleNamespace(velocity=np.array([*velocity, 0.0, 0.0, 0.0])))


RESTING = LoadedContact(resting_contact(BOX, SCENE), Ramp(80.0, 80.0, 0.0, 0.0), np.inf)


def test_what_bears_an_object_bears_no_more_than_it_may(handled):
    _, objects = handled
    taken = replace(RESTING, limit=Ramp(60.0, 0.0, 1.0, 0.5))
    motion = SimpleNamespace(objects={}, object_supports={"box": taken})
    limits = [objects.supports(t, motion, at_speed(np.zeros(3)))[0].max_force for t in (0.0, 1.25, 1.5)]
    assert limits == pytest.approx([60.0, 30.0, 0.0])
    assert objects.supports(2.0, SimpleNamespace(objects={}, object_supports={}), at_speed(np.zeros(3))) == []


def test_an_object_feels_its_support_and_the_opposite_of_what_the_robot_feels(handled):
    hand, objects = handled
    frames = {"box": frame(np.eye(3), BOX.p), "left_hand": frame(hand.R, hand.p)}
    terms = SimpleNamespace(frame=lambda name: frames[name])
    felt = {"box": np.tile([1.0, 2.0, 30.0], (4, 1)), "left_hand": np.tile([-5.0, 1.0, 0.5], (len(hand.points), 1))}
    motion = SimpleNamespace(contacts={"left_hand": SimpleNamespace(contact=hand)}, object_supports={"box": RESTING})
    loads = objects.forces(terms, motion, felt)["box"]
    assert loads.force[:4] == pytest.approx(felt["box"])
    assert loads.force[4:] == pytest.approx(-felt["left_hand"])
    assert loads.normal[:4] == pytest.approx(np.tile([0.0, 0.0, 1.0], (4, 1)))
    assert loads.normal[4:] == pytest.approx(np.tile(-hand.normal, (len(hand.points), 1)))
    assert np.unique(np.round(loads.xyz[:4, 2], 9)) == pytest.approx([0.0])
    assert loads.xyz[4:] == pytest.approx(hand.world_points)
    objects.last_forces = felt
    assert objects.support_force("box")[2] == 120.0
    motion.object_supports.clear()
    held = objects.forces(terms, motion, felt)["box"]
    assert held.force == pytest.approx(-felt["left_hand"])
    objects.last_forces = {"left_hand": felt["left_hand"]}
    assert not objects.support_force("box").any()


def test_an_object_that_slides_meets_friction_against_its_motion(handled):
    """The force of its support leans back: its normal axis is n - mu d, d the direction of its motion or reference."""
    _, objects = handled
    objects.last_forces = {}
    still = objects.supports(
        0.0, SimpleNamespace(objects={}, object_supports={"box": RESTING}), at_speed([0.0, 0.5, 0.0])
    )[0]
    assert still.axes == pytest.approx(np.eye(3))
    path = LimbPath(
        (np.eye(3), BOX.p), (np.eye(3), BOX.p + np.array([0.3, -0.4, 0.0])), np.zeros(3), np.zeros(3), start_time=2.0
    )
    motion = SimpleNamespace(objects={"box": path}, object_supports={"box": RESTING})

    def normal_axis(velocity, t=2.0 + objects.settings.timing.load_time):
        return objects.supports(t, motion, at_speed(velocity))[0].axes[:, 2]

    def against(direction):
        return np.array([0.0, 0.0, 1.0]) - BOX.friction * np.array([*direction, 0.0])

    # nothing has held it at rest: it is held back more and more
    assert normal_axis([0.0, 0.0, 0.0], 2.0) == pytest.approx([0.0, 0.0, 1.0])
    halfway = normal_axis([0.0, 0.0, 0.0], 2.0 + 0.5 * objects.settings.timing.load_time)
    assert halfway == pytest.approx(against([0.3, -0.4]))
    assert normal_axis([0.0, 0.0, 0.0]) == pytest.approx(against([0.6, -0.8]))
    assert normal_axis([0.06, 0.08, 0.3]) == pytest.approx(against([0.6, 0.8]), abs=0.02)
    assert normal_axis([-0.06, 0.08, 0.0]) == pytest.approx(against([-0.6, 0.8]), abs=0.02)
    # very low speeds do not count: a hundredth of the speed that friction removes within a tick
    tiny = 0.01 * BOX.friction * 9.81e-3
    assert normal_axis([-tiny * 0.6, -tiny * 0.8, 0.0]) == pytest.approx(against([0.6, -0.8]), abs=0.04)
    sliding = objects.supports(3.0, motion, at_speed(np.zeros(3)))[0]
    # it keeps its height and does not tip, but may go along and turn
    twists = np.eye(6)
    assert sliding.selection @ twists[[0, 1, 5]].T == pytest.approx(np.zeros((3, 3)))
    assert np.linalg.matrix_rank(sliding.selection @ twists[[2, 3, 4]].T) == 3


def test_a_slide_begins_with_the_friction_that_has_held_the_object(handled):
    """If a third of the friction opposed the motion at rest, friction starts from a third."""
    _, objects = handled
    path = LimbPath((np.eye(3), BOX.p), (np.eye(3), BOX.p + np.array([0.3, 0.0, 0.0])), np.zeros(3), np.zeros(3))
    motion = SimpleNamespace(objects={"box": path}, object_supports={"box": RESTING})
    objects.last_forces = {"box": np.array([[-BOX.friction * 20.0, BOX.friction * 10.0, 60.0]])}
    leaning = objects.supports(0.0, motion, at_speed(np.zeros(3)))[0].axes[:, 2]
    assert leaning == pytest.approx([-BOX.friction / 3.0, 0.0, 1.0])
