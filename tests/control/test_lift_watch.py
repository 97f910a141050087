"""A contact that lifts off is set down again."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.control.contact_detectors import LIFT_OFF_HEIGHT_M, TOUCH_FRACTION, LiftOffDetector
from mcplan.control.handled import HandledObjects
from mcplan.control.motion import Motion
from mcplan.control.task_set import TaskSet
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings

ROBOT = load_robot("hrp2")
SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
SCENE = Environment((Surface("floor", np.eye(3), np.zeros(3), SQUARE),), (), (), ())
SOLES = ["left_sole", "right_sole"]
SETTINGS = ControlSettings().under("mujoco")
DT = 1e-3


class Standing:
    """A robot on two soles, of which the left one is ``height`` (m) above its place and moves at ``velocity``."""

    def __init__(self, height=0.0, velocity=0.0, settings=SETTINGS):
        q = ROBOT.posture("half_sitting")
        self.motion, self.watch, self.t = Motion(ROBOT, SCENE, settings, q), LiftOffDetector(settings), 0.0
        self.terms = Terms(ROBOT, [ROBOT.link_names[0], *SOLES])
        self.terms.update(q, np.zeros(ROBOT.nv))
        for patch in SOLES:
            X = ROBOT.frame_pose(q, patch)
            contact = make_contact(
                ROBOT, SCENE, {"patch": patch, "surface": "floor", "x": X[0, 3], "y": X[1, 3], "yaw": 0.0}
            )
            self.motion.close(contact, -1.0, 0.0, place=(X[:3, :3], X[:3, 3] - [0.0, 0.0, height]))
        plan = SimpleNamespace(stances=(), scenario=SimpleNamespace(robot=ROBOT, environment=SCENE))
        self.tasks = TaskSet(ROBOT, SCENE, settings, DT, q, HandledObjects(plan, settings))
        if velocity:
            J = np.vstack([self.terms.frame(patch).J for patch in SOLES])
            wanted = np.array([0.0, 0.0, velocity, *np.zeros(9)])
            self.terms.update(q, np.linalg.lstsq(J, wanted, rcond=None)[0])

    def look(self, seconds, asked, felt):
        """Let the left sole be asked for a force (N), and feel one."""
        for _ in range(round(seconds / DT)):
            by_patch = [{"left_sole": np.array([0, 0, f, 0, 0, 0.0])} for f in (asked, felt)]
            self.watch.update(self.t, self.terms, self.motion, *by_patch)
            self.t += DT
        return self.motion.contacts["left_sole"]

    def acceleration(self):
        """Of the left sole along the normal, as the program has it (m/s²)."""
        self.tasks.follow(self.t, self.terms, self.motion)
        solution, frame = self.tasks.solve(self.t, self.terms, self.motion), self.terms.frame("left_sole")
        assert solution.ok
        return float(frame.J[2] @ solution.vd + frame.bias[2])


def test_a_load_that_is_asked_for_and_not_felt_for_some_time_sets_the_contact_down_until_it_is_felt():
    standing = Standing()
    assert not standing.look(SETTINGS.recovery.lift_time - 2 * DT, 10.0, 0.0).is_lifted
    assert standing.look(5 * DT, 10.0, 0.0).is_lifted
    (notice,) = standing.motion.notices
    assert "left_sole carries no load" in notice.text
    assert standing.look(0.1, 10.0, 0.0).is_lifted
    loaded = standing.look(2 * DT, 10.0, TOUCH_FRACTION * SETTINGS.contact.touch_force + 1.0)
    assert not loaded.is_lifted
    np.testing.assert_allclose(loaded.place[1], standing.terms.frame("left_sole").p)


@pytest.mark.parametrize("contact_kp", [SETTINGS.gains.contact_kp, 0.0])
def test_along_its_support_it_comes_back_to_where_it_was_and_flat(contact_kp):
    """Each time that it is lifted it may be off by a little: it must not wander, with drift fed back or not."""
    standing = Standing(settings=SETTINGS.updated({"gains.contact_kp": contact_kp}))
    frame, before = standing.terms.frame("left_sole"), standing.motion.contacts["left_sole"]
    turned = Rotation.from_rotvec([0.02, -0.01, 0.03]).as_matrix() @ frame.R
    place = turned, frame.p - [0.004, -0.002, 0.003]
    standing.motion.contacts["left_sole"] = replace(before, place=place)
    lifted = standing.look(SETTINGS.recovery.lift_time + 3 * DT, 10.0, 0.0)
    constraint = standing.tasks.held.fill(standing.t, lifted, standing.terms, 1.0)
    assert (constraint.kp > 0.0).all()
    np.testing.assert_allclose(constraint.R[:, 2], [0.0, 0.0, -1.0], atol=1e-12)
    turn = Rotation.from_matrix(constraint.R @ turned.T).as_rotvec()
    assert np.linalg.norm(turn) == pytest.approx(np.hypot(0.02, 0.01), rel=0.02)  # to lie flat, and no more
    loaded = standing.look(2 * DT, 10.0, TOUCH_FRACTION * SETTINGS.contact.touch_force + 1.0)
    assert not loaded.is_lifted
    np.testing.assert_allclose(loaded.place[0], turned)
    np.testing.assert_allclose(loaded.place[1], place[1] + [0.0, 0.0, 0.003])


@pytest.mark.parametrize(("asked", "felt"), [(10.0, 9.0), (3.0, 0.0), (0.0, 0.0)])
def test_a_contact_that_bears_something_or_is_asked_for_little_is_left_alone(asked, felt):
    standing = Standing()
    before = standing.motion.contacts["left_sole"]
    assert standing.look(10 * SETTINGS.recovery.lift_time, asked, felt) is before


def test_a_short_loss_of_touch_is_left_alone():
    standing = Standing()
    before = standing.motion.contacts["left_sole"]
    for _ in range(10):
        standing.look(SETTINGS.recovery.lift_time / 2, 10.0, 0.0)
        assert standing.look(2 * DT, 10.0, 5.0) is before


def test_the_time_without_touch_restarts_when_a_contact_has_been_open():
    standing = Standing()
    before = standing.motion.contacts["left_sole"]
    standing.look(SETTINGS.recovery.lift_time / 2, 10.0, 0.0)
    del standing.motion.contacts["left_sole"]
    standing.motion._list_closed()
    standing.watch.update(standing.t, standing.terms, standing.motion, {}, {})
    standing.t += SETTINGS.recovery.lift_time
    standing.motion.contacts["left_sole"] = before
    standing.motion._list_closed()
    assert standing.look(2 * DT, 10.0, 0.0) is before


def test_what_has_lifted_stays_there_by_itself_and_comes_down_at_the_speed_of_a_descent_once_that_is_noticed():
    standing = Standing(height=0.01)
    assert standing.acceleration() == pytest.approx(0.0, abs=1e-3)  # nothing along the normal draws it back
    standing.look(2 * SETTINGS.recovery.lift_time, 10.0, 0.0)
    assert standing.acceleration() < -0.1
    steady = Standing(height=0.01, velocity=-SETTINGS.timing.descent_speed)
    steady.look(2 * SETTINGS.recovery.lift_time, 10.0, 0.0)
    assert steady.acceleration() == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize(("height", "lifted"), [(LIFT_OFF_HEIGHT_M - 5e-4, False), (LIFT_OFF_HEIGHT_M + 5e-4, True)])
def test_what_has_risen_without_load_is_set_down_though_nothing_is_asked_of_it(height, lifted):
    standing = Standing(height=height)
    assert standing.look(2 * SETTINGS.recovery.lift_time, 0.0, 0.0).is_lifted == lifted
    assert not Standing(height=height).look(2 * SETTINGS.recovery.lift_time, 0.0, 5.0).is_lifted  # it bears something
