"""On hands and knees: a knee steps as the body does, and its toes come down after it."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.collision.model import ALLOWED_PENETRATION, CollisionModel
from mcplan.control.avoidance import RESPONSE_TIME_S, Avoidance
from mcplan.control.motion import Motion
from mcplan.control.phases import TOUCH_ERROR_M
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.transition.body_motion import Departure
from mcplan.planning.transition.knots import MAX_DEFICIT_M
from mcplan.robot.terms import Terms
from mcplan.scenario.load import load_scenario
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings

LEG = ("left_knee", "left_toe")


@pytest.fixture(scope="module")
def step():
    """The robot's scenario, contacts that stay, those of the left leg before and after, and the postures of both."""
    scenario = load_scenario("crawl")
    robot, scene = scenario.robot, scenario.environment
    stay = [contact for contact in scenario.start.contacts if contact.patch not in LEG]
    places = [
        [make_contact(robot, scene, {"patch": patch, "surface": "floor", "x": x + ahead, "y": y, "yaw": yaw})
         for patch, x, y, yaw in (("left_knee", -0.5, 0.116, np.pi), ("left_toe", -0.779, 0.1045, 0.0))]
        for ahead in (0.0, 0.3)
    ]  # fmt: skip
    generator, patches = PostureGenerator(robot, scene), [contact.patch for contact in stay]
    postures, q = [], scenario.start.q
    for leg in places:
        result = generator.generate([*stay, *leg], patches, q)
        assert result.found
        postures.append(q := result.q)
    return scenario, stay, places, postures


def begun(step):
    """The motion at the start of the swing of the left leg, and the path of its knee."""
    scenario, stay, (old, new), (first, last) = step
    motion = Motion(scenario.robot, scenario.environment, ControlSettings(), first)
    for contact in (*stay, *old):
        motion.close(contact, -1.0, 0.0)
    poses = {contact.patch: (contact.R, contact.p) for contact in old}
    for patch in reversed(LEG):
        motion.open(patch, 0.0)
    begin = replace(motion.departure(0.0), resting={"left_knee": old[0]})
    segment = motion.finder.swing(begin, last, new)
    motion.follow(segment, 0.0, poses.__getitem__)
    return motion, segment


def test_a_knee_below_its_hip_steps_ahead_without_dragging_the_foot_through_the_floor(step):
    scenario, stay, (_, new), _ = step
    motion, segment = begun(step)
    assert segment.missed <= MAX_DEFICIT_M
    path = motion.limbs["left_knee"]
    model = CollisionModel(scenario.robot, scenario.environment)
    for t in np.linspace(0.0, path.end_time, 60):
        near = model.distances(motion.posture.sample(t).q, 0.0, stay)
        for pair, distance in zip(near.pairs, near.distance, strict=True):
            assert distance > (-ALLOWED_PENETRATION if pair.in_contact else -1e-3), (t, pair)
    assert np.allclose(path.sample(path.end_time).p, new[0].p, atol=1e-9)


def test_toes_that_come_after_their_knee_are_kept_off_the_floor_until_it_is_their_turn(step):
    scenario, _, (_, (knee, toe)), (_, last) = step
    robot = scenario.robot
    motion, _ = begun(step)
    settings = ControlSettings(avoidance={"pairs": 64})
    terms = Terms(robot, [robot.link_names[0], "left_knee", "left_toe"])
    terms.update(last, np.zeros(robot.nv))

    def asked():
        """The goal distance of the foot, whose toes touch."""
        avoidance = Avoidance(robot, scenario.environment, settings, 1e-3)
        avoidance.update(terms, motion)
        _, b = avoidance.rows(terms)
        foot = [i for i, name in enumerate(avoidance.names) if "LLEG_LINK5" in name and "floor" in name]
        return max(b[i] for i in foot)

    assert motion.waiting_patches == {"left_toe"}
    assert asked() > 0.0
    motion.close(knee, 1.0, 0.0)
    begin = Departure(last, tuple(loaded.contact for loaded in motion.contacts.values()))
    motion.follow(motion.finder.swing(begin, last, [toe]), 1.0, lambda patch: (toe.R, toe.p))
    assert not motion.waiting_patches
    assert asked() < 0.0


def test_toes_that_wait_stop_above_the_floor_however_their_leg_comes_down(step):
    """From 2 cm above, with a reference that goes on down at 0.2 m/s, and no more than the row asks for against it."""
    scenario, _, _, (_, last) = step
    robot, dt, speed = scenario.robot, 1e-3, 0.2
    motion, _ = begun(step)
    avoidance = Avoidance(robot, scenario.environment, ControlSettings(avoidance={"pairs": 64}), dt)
    model, terms = CollisionModel(robot, scenario.environment), Terms(robot, [robot.link_names[0], *LEG])
    foot = [k for k, pair in enumerate(model.pairs) if (pair.a, pair.b) == ("LLEG_LINK5", "floor")]
    q, v, heights = last.copy(), np.zeros(robot.nv), []
    q[2], v[2] = q[2] + 0.02, -speed
    for _ in range(400):
        pairs, distance, _ = model.near_pairs(q, 0.05)
        heights.append(distance[np.isin(pairs, foot)].min())
        terms.update(q, v)
        avoidance.update(terms, motion)
        A, b = avoidance.rows(terms)
        asked = [b[k] / A[k, 2] for k, name in enumerate(avoidance.names) if "LLEG_LINK5 and floor" in name]
        v[2] += dt * max([*asked, (-speed - v[2]) / RESPONSE_TIME_S])
        q[2] += dt * v[2]
    assert min(heights) > 0.0
    assert heights[-1] < TOUCH_ERROR_M["rigid"]  # its knee is to come to its place
