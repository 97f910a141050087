"""Postures that give way to a torque limit."""

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.posture.task import PostureSettings, Weights
from mcplan.planning.posture.torque_gradient import torque_excess
from mcplan.statics.equilibrium import balance


@pytest.fixture(scope="module")
def collisions(scene):
    return CollisionModel(scene.ROBOT, scene.ENVIRONMENT)


def stand(scene, collisions, share, rounds):
    """Stand on the left foot with a share of the torque limits."""
    settings = PostureSettings(torque_share=share, torque_rounds=rounds)
    generator = PostureGenerator(scene.ROBOT, scene.ENVIRONMENT, settings, collisions)
    return generator.generate(scene.feet(), ["left_sole"], scene.ROBOT.posture("half_sitting"))


@pytest.mark.parametrize("hand", [False, True])
def test_the_derivative_of_the_excess_is_that_of_differences(scene, hand):
    robot, rng = scene.ROBOT, np.random.default_rng(0)
    contacts = scene.feet()
    if hand:
        contacts = (*contacts, scene.contact("right_hand", "table", x=-0.25, y=-0.28, yaw=0.0))
    generator, loaded = PostureGenerator(robot, scene.ENVIRONMENT), [contact.patch for contact in contacts[1:]]
    result = generator.generate(contacts, loaded, robot.posture("half_sitting"))
    assert result.found
    bearing = [contact.with_margin(0.9) for contact in contacts[1:]]
    _, gradient = torque_excess(robot, result.q, bearing, 0.3)
    for _ in range(4):
        v = rng.normal(size=robot.nv)
        ahead, behind = (torque_excess(robot, robot.integrate(result.q, v, s), bearing, 0.3)[0] for s in (1e-4, -1e-4))
        # the size of the forces has a price: up to 1e-3 of the size of the derivative belongs to it
        assert gradient @ v == pytest.approx((ahead - behind) / 2e-4, abs=0.02 * np.linalg.norm(gradient))


def test_the_excess_is_the_least_share_at_which_forces_are_found(scene):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    contacts = [contact.with_margin(0.9) for contact in scene.feet()]
    excess, _ = torque_excess(robot, q, contacts, 0.05)
    assert excess > 0.0
    for more, holds in ((1.05, True), (0.95, False)):
        held = balance(robot, q, contacts, None, 0.05 + more * excess)
        assert held.feasible
        assert held.torque_feasible == holds


def test_contacts_that_balance_nothing_have_no_excess(scene):
    q = scene.ROBOT.posture("half_sitting")
    assert torque_excess(scene.ROBOT, q, [scene.contact("left_sole", x=0.5, y=0.095, yaw=0.0)], 0.9) is None


@pytest.mark.parametrize("less", [0.02, 0.06])
def test_an_excess_torque_moves_the_posture(scene, collisions, less):
    robot = scene.ROBOT
    needed = stand(scene, collisions, 0.9, 0).margins["torque"]
    rigid, moved = (stand(scene, collisions, needed - less, rounds) for rounds in (0, 5))
    assert rigid.stage == "forces"
    assert [v.kind for v in rigid.violations] == ["torque"]
    assert rigid.violations[0].amount == pytest.approx(less, abs=1e-3)
    assert moved.found, moved.reason
    assert moved.margins["torque"] <= needed - less + 1e-6
    assert moved.margins["contact"] < 1e-6
    assert moved.margins["com_inset"] >= 0.02 - 1e-6
    assert collisions.smallest(moved.q, contacts=moved.contacts).distance > 0.0025
    # it stays near: the knee and the hip straighten a little
    assert np.abs(robot.difference(rigid.q, moved.q)).max() < 0.5


def test_two_joints_do_not_pass_the_load_to_and_fro(scene, collisions):
    """On a long step the ankle needs most; where it is relieved alone the knee does, and again the ankle.

    (A comfortable place of the centre of mass would spare the ankle from the start.)
    """
    feet = (scene.contact("left_sole", x=0.0, y=0.095, yaw=0.0), scene.contact("right_sole", x=0.35, y=-0.095, yaw=0.0))
    guide, found = scene.ROBOT.posture("half_sitting"), []
    for share, rounds in ((0.9, 0), (0.33, 0), (0.33, 5)):
        settings = PostureSettings(torque_share=share, torque_rounds=rounds, weights=Weights(comfort=0.0))
        generator = PostureGenerator(scene.ROBOT, scene.ENVIRONMENT, settings, collisions)
        found.append(generator.generate(feet, ["left_sole"], guide))
    free, rigid, moved = found
    assert free.margins["torque"] > 0.43
    assert [v.kind for v in rigid.violations] == ["torque"]
    assert moved.found, moved.reason
    assert moved.margins["torque"] <= 0.33 + 1e-6


def test_an_excess_torque_that_no_posture_nearby_avoids_is_a_violation(scene, collisions):
    rigid, moved = (stand(scene, collisions, 0.05, rounds) for rounds in (0, 5))
    assert not moved.found
    assert moved.violations == rigid.violations
    assert moved.q.tobytes() == rigid.q.tobytes()
