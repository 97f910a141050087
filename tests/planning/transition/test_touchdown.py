"""Impacts that balance and grips bear: impulses by their definition, and the speed that follows from them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.planning.timing.path_dynamics import joint_speeds
from mcplan.planning.timing.touchdown import (
    CAPTURE_POINT_SWAY_M,
    GRIP_IMPACT_SHARE,
    IMPACT_TIME_S,
    MAX_SPIN_RAD_S,
    MIN_CAPTURE_POINT_SWAY_M,
    MIN_GRIP_IMPACT_SHARE,
    touchdown_speed,
)
from mcplan.robot.robot_file import load_robot
from mcplan.scene.contact import Contact
from mcplan.settings.pace import Pace

ROBOT = load_robot("hrp2")
Q = ROBOT.posture("half_sitting")
PACE = Pace(velocity=1.0)


def contact(patch, kind, points=((0.0, 0.0, 0.0),), **more):
    X = ROBOT.frame_pose(Q, patch)
    return Contact(
        patch, "wall", kind, X[:3, :3], X[:3, 3], np.array(points), X[:3, :3], 0.7,
        **({"max_force": np.inf, "max_moment": np.inf, "selection": np.eye(6)} | more),
    )  # fmt: skip


SOLE, STAYS = contact("left_sole", "surface"), contact("right_sole", "surface")
GRIP = contact("left_grip", "grasp", max_force=20.0, max_moment=2.0)


def speed(closed, arriving=SOLE, most=0.12, kept=1.0, robot=ROBOT):
    return touchdown_speed(robot, Q, closed, arriving, PACE, most, kept)


def impact(closed, push):
    """Change of the velocities, and impulses of closed patches (k, 6), when a unit impulse along push (nv,) acts."""
    J = np.vstack([ROBOT.frame_jacobian(Q, other.patch) for other in closed])
    kkt = np.block([[ROBOT.mass_matrix(Q), -J.T], [J, np.zeros((len(J), len(J)))]])
    solved = np.linalg.solve(kkt, np.append(push, np.zeros(len(J))))
    return solved[: ROBOT.nv], solved[ROBOT.nv :].reshape(-1, 6)


def stopped(closed, arriving):
    """As `impact`, of what stops a patch that comes down with 1 m/s, and whether it slides.

    It sticks where friction is enough.
    """
    Jo, n = ROBOT.frame_jacobian(Q, arriving.patch)[:3], arriving.normal
    J = np.vstack([Jo, *(ROBOT.frame_jacobian(Q, other.patch) for other in closed)])
    kkt = np.block([[ROBOT.mass_matrix(Q), -J.T], [J, np.zeros((len(J), len(J)))]])
    p = np.linalg.solve(kkt, np.concatenate([np.zeros(ROBOT.nv), n, np.zeros(len(J) - 3)]))[ROBOT.nv : ROBOT.nv + 3]
    along = p - (p @ n) * n
    slides = np.linalg.norm(along) > arriving.friction * (p @ n)
    if slides:
        p = n + arriving.friction * along / np.linalg.norm(along)
    dv, impulses = impact(closed, p @ Jo)
    scale = n @ Jo @ dv
    return dv / scale, impulses / scale, slides


def test_a_sole_that_comes_down_beside_the_other_one_may_do_so_at_the_speed_that_is_asked_for():
    assert speed([STAYS], most=0.05) == 0.05
    assert speed([STAYS], most=0.05, kept=0.0) == 0.05


def test_an_impact_moves_the_capture_point_no_farther_than_it_may():
    wall = contact("right_hand", "surface")
    wall = replace(wall, R=np.eye(3), axes=np.eye(3)[:, [1, 2, 0]])  # pushes along x
    dv, *_ = stopped([STAYS], wall)
    sway = np.linalg.norm((ROBOT.com_jacobian(Q) @ dv)[:2])
    w = np.sqrt(GRAVITY / (ROBOT.com(Q)[2] - STAYS.p[2]))
    for kept, most in ((1.0, CAPTURE_POINT_SWAY_M), (0.0, MIN_CAPTURE_POINT_SWAY_M)):
        v = speed([STAYS], wall, 10.0, kept)
        assert v * sway / w <= most * 1.001
    assert v * sway / w == pytest.approx(MIN_CAPTURE_POINT_SWAY_M, rel=1e-3)


def test_a_patch_that_touches_with_a_corner_turns_no_faster_than_it_may():
    corner = np.array([0.13, -0.075, 0.0])
    sole = contact("left_sole", "surface", [corner])
    J = ROBOT.frame_jacobian(Q, "left_sole")
    push = sole.normal @ (J[:3] + np.cross(J[3:].T, sole.R @ corner).T)
    dv, _ = impact([STAYS], push)
    spin = np.linalg.norm(J[3:] @ dv) / (push @ dv)
    v = speed([STAYS], sole, 10.0)
    assert v * spin == pytest.approx(MAX_SPIN_RAD_S, rel=1e-3)


def test_joints_move_the_patch_no_faster_than_they_may():
    speeds = joint_speeds(ROBOT, PACE.velocity)
    slow = touchdown_speed(ROBOT, Q, [STAYS], SOLE, Pace(velocity=1e-3), 10.0)
    slower = touchdown_speed(ROBOT, Q, [STAYS], SOLE, Pace(velocity=5e-4), 10.0)
    assert slower == pytest.approx(0.5 * slow, rel=1e-6)
    J = np.vstack([ROBOT.frame_jacobian(Q, "right_sole"), ROBOT.frame_jacobian(Q, "left_sole")])
    still = np.linalg.pinv(J) @ np.concatenate([np.zeros(6), slow * SOLE.normal, np.zeros(3)])
    # some velocity that does so takes no more than a few times what joints may: it is of the size of that bound
    assert 0.2 < np.max(np.abs(still[6:]) / (1e-3 * speeds)) < 5.0


@pytest.mark.parametrize(("friction", "slides"), [(0.05, True), (0.7, False)])
def test_the_grip_takes_its_share_of_the_impact_and_no_more(friction, slides):
    sole = replace(SOLE, friction=friction)
    v = speed([GRIP], sole, most=10.0)
    _, impulses, slid = stopped([GRIP], sole)
    assert slid == slides
    impulse = v * impulses[0]
    shares = np.linalg.norm(impulse[:3]) / GRIP.max_force, np.linalg.norm(impulse[3:]) / GRIP.max_moment
    assert max(shares) / IMPACT_TIME_S == pytest.approx(GRIP_IMPACT_SHARE, rel=1e-4)


def test_a_stronger_grip_allows_as_much_more():
    strong = replace(GRIP, max_force=40.0, max_moment=4.0)
    speeds = [speed([STAYS, grip], most=10.0) for grip in (GRIP, strong)]
    assert speeds[1] == pytest.approx(2.0 * speeds[0])


def test_a_motion_that_keeps_less_of_its_reserve_leaves_less_for_impacts():
    speeds = [speed([STAYS, GRIP], most=10.0, kept=kept) for kept in (1.0, 0.5, 0.0)]
    assert speeds[1] == pytest.approx(0.5 * (speeds[0] + speeds[2]))
    assert speeds[2] == pytest.approx(speeds[0] * MIN_GRIP_IMPACT_SHARE / GRIP_IMPACT_SHARE)


def test_a_ball_touches_below_its_centre_however_its_link_is_turned():
    """The link of a ball is turned from upright; a point of it that is where that touches has the same impact."""
    turn, below = Rotation.from_rotvec([0.0, 1.2, 0.0]).as_matrix(), np.array([[0.05, 0.0, -0.02]])
    point = contact("left_sole", "point", below @ turn.T)
    ball = replace(point, kind="ball", points=below, R=point.R @ turn, radius=0.02)
    assert speed([STAYS], ball, most=10.0) == pytest.approx(speed([STAYS], point, most=10.0))
    assert speed([STAYS], replace(point, points=below), most=10.0) != pytest.approx(speed([STAYS], point, most=10.0))
