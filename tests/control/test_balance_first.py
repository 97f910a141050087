"""A limb that cannot go where it is led does not cost the balance."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.control.handled import HandledObjects
from mcplan.control.motion import Motion
from mcplan.control.task_set import TaskSet
from mcplan.motion.limb_path import LimbPath
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings

ROBOT = load_robot("hrp2")
SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
SCENE = Environment((Surface("floor", np.eye(3), np.zeros(3), SQUARE),), (), (), ())
SOLES = ["left_sole", "right_sole"]


@pytest.mark.parametrize("side", [-1, 1])
def test_a_foot_whose_ankle_is_at_its_limit_turns_less_than_asked_and_the_centre_of_mass_stays(side):
    q, settings = ROBOT.posture("half_sitting"), ControlSettings(avoidance={"pairs": 0}).under("mujoco")
    ankle = ROBOT.joint_names.index("RLEG_JOINT4")
    q[7 + ankle] = (ROBOT.limits.lower, ROBOT.limits.upper)[side > 0][ankle]
    terms = Terms(ROBOT, [ROBOT.link_names[0], *SOLES])
    terms.update(q, np.zeros(ROBOT.nv))
    foot, motion = terms.frame("right_sole"), Motion(ROBOT, SCENE, settings, q)
    R, p = (X := ROBOT.frame_pose(q, "left_sole"))[:3, :3], X[:3, 3]
    place = {"patch": "left_sole", "surface": "floor", "x": p[0], "y": p[1], "yaw": 0.0}
    motion.close(make_contact(ROBOT, SCENE, place), -1.0, 0.0, place=(R, p))
    beyond = Rotation.from_rotvec(0.02 * side * foot.J[3:, 6 + ankle]).as_matrix() @ foot.R, foot.p.copy()
    motion.limbs["right_sole"] = LimbPath(beyond, beyond, np.zeros(3), np.zeros(3))
    plan = SimpleNamespace(stances=(), scenario=SimpleNamespace(robot=ROBOT, environment=SCENE))
    tasks = TaskSet(ROBOT, SCENE, settings, 1e-3, q, HandledObjects(plan, settings))

    def missed():
        """By how much the program misses what foot and centre of mass are to do (m/s², rad/s²; sideways it falls)."""
        tasks.follow(0.0, terms, motion)
        solution = tasks.solve(0.0, terms, motion, steady=False)
        assert solution.ok
        asked = np.r_[np.zeros(3), settings.gains.limb_kp * 0.02 * side * foot.J[3:, 6 + ankle]]
        return np.linalg.norm(foot.J @ solution.vd - asked), np.linalg.norm((ROBOT.com_jacobian(q) @ solution.vd)[::2])

    of_foot, of_com = missed()
    assert of_foot > 2.0 * of_com  # the foot cannot do both: its task is relaxed
    tasks.com.weight = settings.weights.limb / 5
    assert missed()[1] > 4.0 * of_com
