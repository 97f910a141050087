"""Contact stiffness is dropped before the program becomes infeasible."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.control.handled import HandledObjects
from mcplan.control.motion import Motion
from mcplan.control.task_set import STIFFNESS_RETURN_S, TaskSet
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings

ROBOT = load_robot("hrp2")
SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
SCENE = Environment((Surface("floor", np.eye(3), np.zeros(3), SQUARE),), (), (), ())
SOLES = ["left_sole", "right_sole"]
DT = 1e-3


@pytest.fixture
def standing():
    """Tasks, terms, and a function that says where the soles are to be: by so much (m) more apart than they are."""
    q, settings = ROBOT.posture("half_sitting"), ControlSettings().under("mujoco")
    motion, terms = Motion(ROBOT, SCENE, settings, q), Terms(ROBOT, [ROBOT.link_names[0], *SOLES])
    terms.update(q, np.zeros(ROBOT.nv))
    plan = SimpleNamespace(stances=(), scenario=SimpleNamespace(robot=ROBOT, environment=SCENE))
    tasks = TaskSet(ROBOT, SCENE, settings, DT, q, HandledObjects(plan, settings))

    def apart(distance):
        for patch, side in zip(SOLES, (0.5, -0.5), strict=True):
            X = ROBOT.frame_pose(q, patch)
            place = {"patch": patch, "surface": "floor", "x": X[0, 3], "y": X[1, 3], "yaw": 0.0}
            contact = make_contact(ROBOT, SCENE, place)
            motion.close(contact, -1.0, 0.0, place=(X[:3, :3], X[:3, 3] + [0.0, side * distance, 0.0]))

    def spreading():
        """How fast the program accelerates the soles apart (m/s²)."""
        tasks.follow(0.0, terms, motion)
        solution = tasks.solve(0.0, terms, motion)
        assert solution.ok, solution.message
        return float((terms.frame("left_sole").J[1] - terms.frame("right_sole").J[1]) @ solution.vd)

    return settings, apart, spreading


def test_contacts_that_have_drifted_are_drawn_back(standing):
    settings, apart, spreading = standing
    apart(1e-3)
    assert spreading() == pytest.approx(1e-3 * settings.gains.contact_kp, rel=1e-3)


def test_a_drift_that_no_motion_undoes_leaves_the_program_with_a_solution_and_comes_back_gradually(standing):
    settings, apart, spreading = standing
    apart(50.0)  # 5000 m/s²: no torque accelerates a sole like that
    assert spreading() == pytest.approx(0.0, abs=1e-6)
    apart(1e-3)
    full = 1e-3 * settings.gains.contact_kp
    first, *_, last = [spreading() for _ in range(round(0.5 * STIFFNESS_RETURN_S / DT))]
    assert 0.0 <= first < 0.02 * full
    assert last == pytest.approx(0.5 * full, rel=0.05)
    after = [spreading() for _ in range(round(0.6 * STIFFNESS_RETURN_S / DT))]
    assert after[-1] == pytest.approx(full, rel=1e-3)
