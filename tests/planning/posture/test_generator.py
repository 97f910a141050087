import re
from dataclasses import replace

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.planning.posture import generator as posture_generator
from mcplan.planning.posture.freedom import Freedom
from mcplan.planning.posture.generator import EXTRA_CLEARANCE_M, PostureGenerator
from mcplan.planning.posture.task import BaseTarget, PostureSearch, PostureSettings, Weights
from mcplan.robot.description import Box
from mcplan.scene.environment import Bar, Environment, Obstacle, Surface
from mcplan.scene.placement import contact as contact_on, make_contact
from mcplan.statics.support_region import support_region
from tests.contact_error import contact_error
from tests.planning.obstacle_step import step_past


@pytest.fixture(scope="module")
def generator(scene):
    return PostureGenerator(scene.ROBOT, scene.ENVIRONMENT)


def unbalanced(robot, result):
    """Largest entry of h - S' tau - sum J' w."""
    rest = robot.nonlinear_effects(result.q, np.zeros(robot.nv))
    rest[6:] -= result.tau
    for patch, wrench in result.wrenches.items():
        rest -= robot.frame_jacobian(result.q, patch).T @ wrench
    return np.abs(rest).max()


def check(robot, generator, result):
    """Hold a found posture to all that was asked for, by other code than the generator's."""
    assert result.found, result.reason
    settings = generator.settings
    for contact in result.contacts:
        assert np.abs(contact_error(robot, result.q, contact)).max() < 1e-6
    assert result.margins["contact"] < 1e-6
    lower, upper = result.q[7:] - robot.limits.lower, robot.limits.upper - result.q[7:]
    assert result.margins["position"] == pytest.approx(min(lower.min(), upper.min()))
    assert result.margins["position"] >= settings.joint_margin - 1e-9
    assert unbalanced(robot, result) < 1e-6
    assert (np.abs(result.tau) <= settings.torque_share * robot.limits.torque + 1e-6).all()
    loaded = [contact for contact in result.contacts if contact.patch in result.loaded]
    assert support_region(loaded, robot.mass).depth(robot.com(result.q)) > 0.0
    for contact in result.contacts:
        if contact.patch not in result.loaded:
            assert not result.wrenches[contact.patch].any()


def test_single_support_in_a_step(scene, generator):
    left, _ = scene.feet(0.0)
    right = scene.contact("right_sole", x=0.35, y=-0.095, yaw=0.0)
    for loaded in (["left_sole"], ["right_sole"], None):
        result = generator.generate((left, right), loaded, scene.ROBOT.posture("half_sitting"))
        check(scene.ROBOT, generator, result)


def test_a_guide_that_leans_over_the_toes_is_followed_no_farther_than_is_comfortable(scene):
    """Beyond, the contacts behind would bear nothing."""
    robot, feet = scene.ROBOT, scene.feet(0.0)
    turn = np.zeros(robot.nv)
    turn[0], turn[4] = 0.12, 0.4
    leaning = robot.integrate(robot.posture("half_sitting"), turn, 1.0)
    for price, least, most in ((0.0, -0.031, -0.02), (PostureSettings().weights.comfort, -0.005, 0.01)):
        settings = replace(PostureSettings(), weights=replace(Weights(), comfort=price))
        generator = PostureGenerator(robot, scene.ENVIRONMENT, settings)
        result = generator.generate(feet, None, leaning)
        check(robot, generator, result)
        rows = generator.support(feet, [foot.patch for foot in feet], robot.com(result.q)).rows
        inside = (rows[:, 3] - rows[:, :2] @ robot.com(result.q)[:2]).min()
        assert least < inside < most, (price, inside)


@pytest.mark.parametrize("pitch", [-0.5, 0.5])
def test_a_sole_on_a_bar_does_not_roll(scene, pitch):
    """The foot of the guide is turned half a radian from the place of its contact."""
    robot = scene.ROBOT
    rung = Bar("rung", np.array([[0.2, -0.3, 0.1], [0.2, 0.0, 0.1]]), 0.015, 0.7)
    environment = replace(scene.ENVIRONMENT, bars=(rung,))
    place = {"patch": "right_sole", "surface": "rung", "along": 0.2, "offset": 0.02, "angle": 0.0, "flip": True}
    contacts = scene.feet()[0], make_contact(robot, environment, place)
    guide = robot.posture("half_sitting").copy()
    guide[7 + robot.joint_names.index("RLEG_JOINT4")] += pitch
    result = PostureGenerator(robot, environment).generate(contacts, ["left_sole"], guide)
    assert result.found, result.reason
    turn = contacts[1].R.T @ robot.frame_pose(result.q, "right_sole")[:3, :3]
    assert abs(np.arctan2(turn[0, 2], turn[0, 0])) <= 1e-6


def test_free_coordinates_stay_in_their_cell_and_are_resolved(scene, generator):
    robot = scene.ROBOT
    left, right = scene.feet(0.0)
    guide = robot.posture("half_sitting")
    hand = scene.contact("right_hand", "table", x=-0.25, y=-0.28, yaw=0.0)
    fixed = generator.generate((left, right, hand), ["left_sole", "right_sole"], guide)
    free = {"right_hand": Freedom(x=0.05, yaw=np.inf)}
    result = generator.generate((left, right, hand), ["left_sole", "right_sole"], guide, free=free)
    check(robot, generator, result)
    place = result.contact("right_hand").coordinates
    assert abs(place["x"] + 0.25) <= 0.05 + 1e-4
    assert place["y"] == -0.28
    assert abs(place["yaw"]) > 0.05
    assert not fixed.found or fixed.margins["position"] <= result.margins["position"] + 0.1


def test_a_contact_out_of_reach_is_a_violation_with_the_joints_at_their_limits(scene, generator):
    left, _ = scene.feet(0.0)
    far = scene.contact("right_sole", x=1.5, y=-0.095, yaw=0.0)
    result = generator.generate((left, far), ["left_sole"], scene.ROBOT.posture("half_sitting"))
    assert result.stage == "reach"
    assert result.violations[0].kind == "reach"
    assert result.violations[0].amount > 0.05
    assert any(v.kind == "joint limit" and "LEG" in v.thing for v in result.violations)
    assert "away from its contact" in result.reason


def test_the_same_call_gives_the_same_bits_whatever_came_between(scene, generator):
    robot = scene.ROBOT
    left, _ = scene.feet(0.0)
    near = scene.contact("right_sole", x=0.3, y=-0.1, yaw=-0.1)
    guide = robot.posture("half_sitting")
    first = generator.generate((left, near), ["left_sole"], guide)
    generator.generate((left, scene.contact("right_sole", x=1.2, y=-0.1, yaw=0.0)), None, guide)
    again = generator.generate((left, near), ["left_sole"], guide)
    fresh = PostureGenerator(robot, scene.ENVIRONMENT).generate((left, near), ["left_sole"], guide)
    for other in (again, fresh):
        assert other.q.tobytes() == first.q.tobytes()
        assert other.tau.tobytes() == first.tau.tobytes()


def test_a_link_that_its_contact_fixes_may_be_as_near_to_a_post_as_it_is(scene):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")

    def around(x):
        post = Obstacle("post", Box((0.1, 0.1, 0.02)), np.eye(3), np.array([x, 0.095, 0.02]))
        return replace(scene.ENVIRONMENT, obstacles=(post,))

    def nearest(environment):
        near = CollisionModel(robot, environment).distances(stand.q, 0.5, scene.feet())
        return min(d for d, pair in zip(near.distance, near.pairs, strict=True) if pair[:2] == ("LLEG_LINK5", "post"))

    stand = PostureGenerator(robot, scene.ENVIRONMENT).generate(scene.feet(), None, q)
    for gap, found in ((1e-3, True), (-1e-3, False)):
        x = 0.3
        for _ in range(8):
            x -= nearest(around(x)) - gap
        environment = around(x)
        assert nearest(environment) == pytest.approx(gap, abs=1e-4)
        generator = PostureGenerator(robot, environment, None, CollisionModel(robot, environment))
        assert generator.settings.clearance > gap
        assert generator.generate(scene.feet(), None, q).found == found


def test_torques_follow_from_forces_that_keep_inside_the_edges_of_patches(scene, monkeypatch):
    """The controller counts on no force at the rim: a wrist that is strong enough only there is not."""
    settings = PostureSettings(pressure_inset=0.012, friction_share=0.8)
    generator, seen = PostureGenerator(scene.ROBOT, scene.ENVIRONMENT, settings), []
    balanced = posture_generator.balance

    def balance(robot, q, contacts, *given):
        seen.extend(contacts)
        return balanced(robot, q, contacts, *given)

    monkeypatch.setattr(posture_generator, "balance", balance)
    feet = scene.feet(0.0)
    assert generator.generate(feet, None, scene.ROBOT.posture("half_sitting")).found
    points = {contact.patch: contact.points for contact in feet}
    assert {contact.patch for contact in seen} == set(points)
    for contact in seen:
        np.testing.assert_allclose(np.abs(points[contact.patch] - contact.points)[:, :2], 0.012, atol=1e-12)
        assert contact.friction == pytest.approx(0.8 * next(c.friction for c in feet if c.patch == contact.patch))


def test_bodies_are_pushed_apart_by_what_was_nearest_before_too(monkeypatch):
    """The row of the round before stays, with the distance that it foresees where the posture is now."""
    pushes, run = [], PostureGenerator._run

    def spied(generator, task, *rest, **options):
        if len(task.linear):
            pushes.append((generator, task))
        return run(generator, task, *rest, **options)

    monkeypatch.setattr(PostureGenerator, "_run", spied)
    robot, *_ = step_past((0.02, 0.3, 0.02), [0.22, 0.2, 0.48])
    (generator, first), (_, second) = pushes[:2]
    near = generator.collisions.constraint_rows(first.linear_q, 0.1, (), generator.settings.clearance)
    foreseen = near.distance + near.rows @ robot.difference(first.linear_q, second.linear_q)
    old = [(row, k) for row in second.linear for k, rates in enumerate(near.rows) if np.array_equal(row[:-1], rates)]
    assert 0 < len(old) < len(second.linear)
    for row, k in old:
        assert row[-1] == pytest.approx(min(EXTRA_CLEARANCE_M - foreseen[k], generator._max_separation_step), abs=1e-12)


def test_limbs_that_touch_are_bent_as_far_as_the_settings_ask(scene):
    """Drawn to a posture with straight knees; a leg that is lifted next may be straight."""
    robot = scene.ROBOT
    guide, knees = robot.posture("half_sitting").copy(), [robot.joint_names.index(f"{s}LEG_JOINT3") for s in "LR"]
    for name in (f"{s}LEG_JOINT{j}" for s in "LR" for j in (2, 3, 4)):
        guide[7 + robot.joint_names.index(name)] = 0.0
    guide[2] += 0.06

    def bend(amount, **options):
        generator = PostureGenerator(robot, scene.ENVIRONMENT, PostureSettings(bent=amount))
        result = generator.generate(scene.feet(0.0), ["left_sole"], guide, **options)
        check(robot, generator, result)
        return result.q[7:][knees]

    assert (bend(0.0) < 0.2).all()
    assert (bend(0.3) >= 0.3 - 2e-3).all()
    left, right = bend(0.3, leaving=["right_sole"])
    assert left >= 0.3 - 2e-3
    assert right < 0.2


def test_joints_with_less_room_than_the_margin_stay_in_the_middle_of_it(telescopic):
    """The hips go aside by 15 mm to either side."""
    low, high = PostureSearch(telescopic, np.ones(telescopic.nv), 0.02).limit
    hips = [telescopic.joint_names.index(f"{side}_h_roll") for side in ("port", "starboard")]
    assert low[hips] == pytest.approx([0.0, 0.0])
    assert (low <= high).all()
    wide = telescopic.limits.upper - telescopic.limits.lower > 0.04
    np.testing.assert_array_equal(low[wide], telescopic.limits.lower[wide] + 0.02)
    np.testing.assert_array_equal(high[wide], telescopic.limits.upper[wide] - 0.02)


def test_the_excess_of_a_slide_is_in_metres(telescopic):
    """The base is to be higher than the leg that stands is long."""
    floor = Surface("floor", size=(4.0, 4.0))
    foot = contact_on(telescopic, "port_plate", floor, x=0.0, y=0.08)
    high = BaseTarget(np.array([0.0, 0.0, 1.1]), 0.01, np.eye(3), 0.01)
    generator = PostureGenerator(telescopic, Environment([floor]))
    result = generator.generate([foot], None, telescopic.posture("ready"), base=high)
    (said,) = (str(violation) for violation in result.violations if violation.thing == "port_h_yaw")
    assert re.fullmatch(r"port_h_yaw would have to slide \d+(\.\d+)? mm beyond its limit", said)
