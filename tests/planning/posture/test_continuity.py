"""Postures that can be reached on held contacts, and those that cannot."""

import numpy as np
import pytest

from mcplan.planning.posture.continuity import Continuity
from mcplan.planning.posture.generator import PostureGenerator
from tests.contact_error import contact_error


@pytest.fixture(scope="module")
def generator(scene):
    return PostureGenerator(scene.ROBOT, scene.ENVIRONMENT)


@pytest.fixture(scope="module")
def continuity(scene, generator):
    return Continuity(scene.ROBOT, scene.ENVIRONMENT, generator)


@pytest.fixture(scope="module")
def standing(scene, generator):
    q = scene.ROBOT.posture("half_sitting")
    result = generator.generate(scene.feet(), None, q, [q])
    assert result.found
    return result


def test_a_squat_is_reached(scene, generator, continuity, standing):
    guide = standing.q.copy()
    guide[2] -= 0.12
    low = generator.generate(scene.feet(), None, guide, [guide])
    assert low.found
    end = continuity.follow(scene.feet(), standing.q, low.q)
    for contact in scene.feet():
        assert np.abs(contact_error(scene.ROBOT, end, contact)).max() < 1e-4
    assert continuity.make_reachable(scene.feet(), low, standing.q) is low


def test_contacts_elsewhere_are_not_reached_while_these_hold(scene, generator, continuity, standing):
    q = standing.q.copy()
    q[0] += 0.2
    ahead = generator.generate(scene.feet(0.21), None, q, [q])
    assert ahead.found
    linked = continuity.make_reachable(scene.feet(), ahead, standing.q)
    assert not linked.found
    assert linked.violations[0].kind == "continuity"
    assert "held contacts" in linked.reason
    assert continuity.make_reachable((), ahead, standing.q) is ahead


def test_another_posture_of_the_same_stance_takes_the_place(scene, generator, continuity, standing):
    """A knee bent over backwards cannot be straightened through its limit; the stance has a posture that can be had."""
    robot = scene.ROBOT
    far = standing.q.copy()
    far[7 + robot.joint_names.index("RARM_JOINT0")] += 2 * np.pi  # as if the arm had gone around once more
    beyond = standing.__class__(**{**standing.__dict__, "q": far})
    linked = continuity.make_reachable(scene.feet(), beyond, standing.q)
    assert linked.found
    assert np.abs(robot.difference(standing.q, linked.q)).max() < 1.0
