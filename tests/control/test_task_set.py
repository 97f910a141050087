"""What the controller hands to its program: references, gains and contacts, as motion and settings say."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.control.motion import Motion
from mcplan.control.task_set import (
    AIR_ORIENTATION_WEIGHT,
    POSTURE_INERTIA_KG_M2,
    STIFFNESS_RETURN_S,
    TORQUE_RATE_FACTOR,
    TaskSet,
)
from mcplan.motion.limb_path import HeldPose, LimbPath
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.settings.control import ControlSettings
from mcplan.whole_body.settings import QPSettings
from tests.control.places import SCENE, TILT, contact_on, objects_of


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


def tasks_of(robot, settings, contacts=()):
    q = robot.posture("half_sitting")
    return TaskSet(robot, SCENE, settings, 1e-3, q, objects_of(robot, settings, contacts))


def test_tasks_follow_the_references_of_the_time(robot):
    q, rng = robot.posture("half_sitting"), np.random.default_rng(0)
    settings, end = ControlSettings(weights={"limb": 300.0}), q.copy()
    end[7:] += 0.1 * rng.normal(size=robot.n)
    end[3:7] = Rotation.from_euler("z", 0.4).as_quat(scalar_first=True)
    limb = LimbPath((np.eye(3), np.zeros(3)), (TILT, np.ones(3)), np.zeros(3), np.zeros(3), tightness=(0.0, 1.0))
    motion = SimpleNamespace(
        com=Spline.to_rest(rng.normal(size=3), rng.normal(size=3), 2.0), posture=PostureSpline.to_rest(q, end, 2.0),
        limbs={"left_hand": limb}, angular_momentum=None, closed=(),
    )  # fmt: skip
    tasks = tasks_of(robot, settings)
    terms = Terms(robot)
    terms.update(q, np.zeros(robot.nv))
    for t in (0.5, 1.3):
        tasks.follow(t, terms, motion)
        com, posture, hand = motion.com.sample(t), motion.posture.sample(t), limb.sample(t)
        assert np.array([tasks.com.position, tasks.com.velocity, tasks.com.acceleration]) == pytest.approx(
            np.array(com)
        )
        assert tasks.posture.position == pytest.approx(posture.q[7:])
        assert tasks.posture.velocity == pytest.approx(posture.v[6:])
        assert tasks.posture.acceleration == pytest.approx(posture.vd[6:])
        turn = Rotation.from_quat(posture.q[[4, 5, 6, 3]]).as_matrix()
        assert pytest.approx(turn) == tasks.trunk.R
        assert tasks.trunk.velocity[3:] == pytest.approx(posture.v[3:6])
        assert tasks.trunk.acceleration[3:] == pytest.approx(posture.vd[3:6])
        task = tasks.limbs["left_hand"]
        assert pytest.approx(hand.R) == task.R
        assert task.p == pytest.approx(hand.p)
        assert task.velocity == pytest.approx(hand.velocity)
        assert task.acceleration == pytest.approx(hand.acceleration)
        # in the air the orientation has little weight, in contact as much as the position
        assert task.weight == pytest.approx([300.0] * 3 + [300.0 * AIR_ORIENTATION_WEIGHT ** (1 - hand.tightness)] * 3)


def test_gains_of_a_state_hold_as_long_as_it_and_damping_is_critical(robot):
    settings = ControlSettings(
        weights={"com": 100.0, "posture": 0.1}, gains={"com_kp": 50.0, "trunk_kp": 90.0, "limb_kp": 200.0}
    )
    tasks = tasks_of(robot, settings)
    plain = tasks.posture.weight.copy()
    motion = Motion(robot, SCENE, settings, robot.posture("half_sitting"))
    motion.limbs["left_hand"] = HeldPose((np.eye(3), np.zeros(3)), 0.0)
    terms = Terms(robot)
    terms.update(robot.posture("half_sitting"), np.zeros(robot.nv))
    tasks.follow(0.0, terms, motion)
    tasks._apply_gains(
        {
            "weights.com": 7.0,
            "gains.com_kp": 16.0,
            "weights.trunk": 3.0,
            "weights.posture": 0.3,
            "gains.limb_kp": 25.0,
        }
    )
    assert tasks.com.weight == pytest.approx(np.full(3, 7.0))
    assert (tasks.com.kp[0], tasks.com.kd[0]) == pytest.approx((16.0, 8.0))
    assert tasks.trunk.weight[0] == 3.0
    assert tasks.posture.weight == pytest.approx(3.0 * plain)
    assert (tasks.limbs["left_hand"].kp[0], tasks.limbs["left_hand"].kd[0]) == pytest.approx((25.0, 10.0))
    tasks._apply_gains({"weights.angular_momentum": 0.7, "gains.angular_momentum_kd": 2.0})
    assert tasks.com.weight[0] == 100.0
    assert tasks.com.kp[0] == 50.0
    assert tasks.posture.weight == pytest.approx(plain)
    assert (tasks.momentum.weight[0], tasks.momentum.kd[0]) == (0.7, 2.0)


def test_gains_of_a_state_hold_for_what_is_carried_too(robot):
    """An object follows its reference as limbs do."""
    settings = ControlSettings(weights={"limb": 300.0}, gains={"limb_kp": 200.0})
    tasks = tasks_of(robot, settings, [contact_on(robot, "left_hand", "face", x=0.0, y=0.0, yaw=0.0)])
    path = LimbPath((np.eye(3), np.zeros(3)), (np.eye(3), np.zeros(3)), np.zeros(3), np.zeros(3))
    (box,) = tasks.objects.tasks(0.0, SimpleNamespace(objects={"box": path}))
    tasks._apply_gains({"weights.limb": 50.0, "gains.limb_kp": 25.0})
    assert (box.weight[0], box.kp[0], box.kd[0]) == pytest.approx((50.0, 25.0, 10.0))
    tasks._apply_gains({})
    assert (box.weight[0], box.kp[0]) == pytest.approx((300.0, 200.0))


@pytest.mark.parametrize(("unknown", "kept"), [("vd", True), ("force", False)])
def test_of_tasks_on_a_patch_in_the_air_those_on_its_force_alone_are_left_out(robot, unknown, kept):
    tasks = tasks_of(robot, ControlSettings())
    mine = SimpleNamespace(patch="left_hand", unknown=unknown)
    tasks.further = (mine,)
    assert (mine in tasks._tasks([], [])) == kept
    assert mine in tasks._tasks([], [SimpleNamespace(patch="left_hand", rolls=False)])


def test_joints_that_move_much_count_in_proportion_in_the_posture(robot):
    inertia = np.diag(robot.mass_matrix(robot.posture("half_sitting")))[6:]
    tasks = tasks_of(robot, ControlSettings(weights={"posture": 0.5}))
    assert tasks.posture.weight == pytest.approx(0.5 * np.maximum(1.0, inertia / POSTURE_INERTIA_KG_M2))
    assert np.ptp(tasks.posture.weight) > 0.0


@pytest.mark.parametrize(
    ("pace", "braking"),
    [(None, QPSettings.limit_deceleration), ({"acceleration": 25.0}, 25.0), ({"acceleration": 1e4}, 500.0)],
)
def test_joints_near_their_limits_brake_as_hard_as_the_pace_lets_them(robot, pace, braking):
    assert tasks_of(robot, ControlSettings(pace=pace)).pool.settings.limit_deceleration == braking


def test_of_a_motion_as_much_preload_is_asked_for_as_it_keeps(robot):
    settings = ControlSettings(pace="fast", contact={"model": "compliant"}, timing={"load_time": 0.1})
    (motion, terms), tasks = standing_at(robot, settings), tasks_of(robot, settings)

    def least(t):
        """What the left sole is to bear at least."""
        tasks.follow(t, terms, motion)
        tasks.solve(t, terms, motion)
        return tasks.held._closed_contacts["left_sole"].constraint.preload

    assert least(0.0) == 0.0
    motion.set_force_reserve(0.5, 0.0)
    assert least(0.2) == pytest.approx(0.5 * settings.contact.preload_force)
    motion.set_force_reserve(None, 0.2)
    assert least(0.4) == 0.0


def test_where_there_is_no_solution_contacts_go_without_their_preload(robot):
    tasks = tasks_of(robot, ControlSettings(contact={"model": "compliant"}))
    asked = SimpleNamespace(preload=5.0)
    tasks._inputs = (asked,), ()
    assert tasks._drop_preloads(2.0)
    assert asked.preload == 0.0
    assert not tasks._drop_preloads(2.0)


def leaning(robot, preload, away):
    """Solve for a robot whose centre of mass is to go back so far (m), on soles that bear a preload (N) at least."""
    settings = ControlSettings(
        pace="fast", contact={"model": "compliant", "preload_force": preload}, gains={"torque_rate": 0.0}
    )
    (motion, terms), tasks = standing_at(robot, settings), tasks_of(robot, settings)
    motion.set_force_reserve(1.0, -10.0)
    there = terms.com - [away, 0.0, 0.0]
    motion.com = Spline.to_rest(there, there, 1.0)
    tasks.follow(0.0, terms, motion)
    solution = tasks.solve(0.0, terms, motion)
    return tasks, motion, terms, solution


def test_the_price_of_preloads_is_what_the_program_would_cost_less_with_less_of_them(robot):
    costs = {}
    for share in (1.0, 0.999):
        tasks, *_, solution = leaning(robot, share * 200.0, 0.04)
        costs[share] = solution.objective
        price = tasks.problem.preload_price()
    assert price > 10.0
    assert (costs[1.0] - costs[0.999]) / 0.001 == pytest.approx(price, rel=0.01)


@pytest.mark.parametrize(("preload", "away", "first"), [
    (200.0, 0.04, True),
    (200.0, 0.001, False),  # so much these soles can give
    (5.0, 0.3, False),  # beyond their edges, whatever they bear
])  # fmt: skip
def test_balance_comes_before_preloads_that_disturb_it(robot, preload, away, first):
    tasks, motion, terms, solution = leaning(robot, preload, away)
    assert tasks.put_balance_first(0.3, terms, solution) == first
    for t, share in (
        (0.3, 0.0),
        (0.3 + STIFFNESS_RETURN_S, 0.0),
        (0.3 + 1.5 * STIFFNESS_RETURN_S, 0.5),
        (0.3 + 2 * STIFFNESS_RETURN_S, 1.0),
    ):
        tasks.follow(t, terms, motion)
        tasks.solve(t, terms, motion)
        expected = preload * (share if first else 1.0)
        assert tasks.held._closed_contacts["left_sole"].constraint.preload == pytest.approx(expected)


def standing_at(robot, settings):
    """Return a motion that stands on both soles, and the terms of its state at rest."""
    q = robot.posture("half_sitting")
    motion = Motion(robot, SCENE, settings, q)
    for patch in ("left_sole", "right_sole"):
        place = robot.frame_pose(q, patch)
        contact = contact_on(robot, patch, "floor", x=place[0, 3], y=place[1, 3], yaw=0.0)
        motion.close(replace(contact, R=place[:3, :3], p=place[:3, 3]), -1.0, 0.0)
    terms = Terms(robot, [robot.link_names[0], "left_sole", "right_sole"])
    terms.update(q, np.zeros(robot.nv))
    return motion, terms


def test_torques_jump_only_where_what_is_unsteady_or_has_no_other_solution_asks_for_it(robot):
    settings = ControlSettings(gains={"torque_rate": 300.0})
    (motion, terms), tasks = standing_at(robot, settings), tasks_of(robot, settings)

    def after(torque, steady=True):
        tasks.previous = None if torque is None else type("Last", (dict,), {"tau": torque})()  # no forces are known
        tasks.follow(0.0, terms, motion)
        answer = tasks.solve(0.0, terms, motion, steady=steady)
        assert answer.ok
        return answer.tau

    last = after(None)
    terms.update(terms.q + np.r_[0.0, 0.02, np.zeros(robot.nq - 2)], np.zeros(robot.nv))  # the robot is shifted
    jump, step = after(last, steady=False), 1e-3 * settings.gains.torque_rate
    assert np.abs(jump - last).max() > 4 * step
    assert np.abs(after(last) - last).max() == pytest.approx(step, abs=1e-5)
    assert tasks.torque_band.step == pytest.approx(np.full(robot.n, step))
    np.testing.assert_allclose(after(last + 300.0), jump, atol=1e-6)  # from there no torque within reach holds it
    assert tasks.torque_band is None
    low, high = 0.0, 300.0  # so far off torques within reach hold it, and not
    while high - low > 0.1 * step:
        middle = 0.5 * (low + high)
        after(last + middle)
        low, high = (
            (middle, high) if tasks.torque_band and tasks.torque_band.step.max() < 1.01 * step else (low, middle)
        )
    torque = last + high + 0.1 * step  # a little is wanting
    assert np.abs(after(torque) - torque).max() <= TORQUE_RATE_FACTOR * step + 1e-6
    assert tasks.torque_band.step == pytest.approx(np.full(robot.n, TORQUE_RATE_FACTOR * step))
    free = tasks_of(robot, ControlSettings(gains={"torque_rate": 0.0}))
    for _ in range(2):
        free.solve(0.0, terms, motion)
        assert free.torque_band is None
