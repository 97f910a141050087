"""Impacts that grips bear: the impulse by its definition, and the speed that follows from it."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.model.robot_file import load_robot
from mcplan.planning.transition.touchdown import IMPACT_TIME, LEAST_LEFT, LEFT, touchdown_speed
from mcplan.scene.contact import Contact

ROBOT = load_robot("hrp2")
Q = ROBOT.posture("half_sitting")


def contact(patch, kind, **more):
    X = ROBOT.frame_pose(Q, patch)
    return Contact(
        patch, "wall", kind, X[:3, :3], X[:3, 3], np.zeros((1, 3)), X[:3, :3], 0.7,
        **({"max_force": np.inf, "max_moment": np.inf, "selection": np.eye(6)} | more),
    )  # fmt: skip


SOLE, STAYS = contact("left_sole", "surface"), contact("right_sole", "surface")
GRIP = contact("left_grip", "grasp", max_force=100.0, max_moment=10.0)


def test_without_a_grip_it_is_the_speed_that_is_asked_for():
    assert touchdown_speed(ROBOT, Q, [STAYS], SOLE, 0.12) == 0.12
    assert touchdown_speed(ROBOT, Q, [STAYS, replace(GRIP, max_force=np.inf, max_moment=np.inf)], SOLE, 0.12) == 0.12


def test_the_grip_takes_its_share_of_the_impact_and_no_more():
    v = touchdown_speed(ROBOT, Q, [GRIP], SOLE, 10.0)
    J = ROBOT.frame_jacobian(Q, "left_grip")
    n = SOLE.normal @ ROBOT.frame_jacobian(Q, "left_sole")[:3]
    M, rows = ROBOT.mass_matrix(Q), np.vstack([J, n])
    kkt = np.block([[M, -rows.T], [rows, np.zeros((7, 7))]])
    solved = np.linalg.solve(kkt, np.append(np.zeros(ROBOT.nv + 6), v))
    impulse = solved[ROBOT.nv : ROBOT.nv + 6]
    shares = np.linalg.norm(impulse[:3]) / GRIP.max_force, np.linalg.norm(impulse[3:]) / GRIP.max_moment
    assert max(shares) / IMPACT_TIME == pytest.approx(LEFT, rel=1e-4)


def test_a_stronger_grip_allows_as_much_more():
    strong = replace(GRIP, max_force=200.0, max_moment=20.0)
    speeds = [touchdown_speed(ROBOT, Q, [STAYS, grip], SOLE, 10.0) for grip in (GRIP, strong)]
    assert speeds[1] == pytest.approx(2.0 * speeds[0])


def test_a_motion_that_keeps_less_of_its_reserve_leaves_less_for_impacts():
    speeds = [touchdown_speed(ROBOT, Q, [STAYS, GRIP], SOLE, 10.0, kept) for kept in (1.0, 0.5, 0.0)]
    assert speeds[1] == pytest.approx(0.5 * (speeds[0] + speeds[2]))
    assert speeds[2] == pytest.approx(speeds[0] * LEAST_LEFT / LEFT)
    assert touchdown_speed(ROBOT, Q, [STAYS], SOLE, 0.12, 0.0) == 0.12
