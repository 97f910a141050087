"""The joints by which limbs fold, found in models of which one knows where knees and elbows are straight."""

import numpy as np
import pytest

from mcplan.robot.anatomy import bent_limits
from mcplan.robot.robot_file import load_robot

KNEE, ELBOW = "LLEG_JOINT3", "RARM_JOINT3"


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


def folds_by_name(robot):
    """Return joint and angle of the only fold of each limb, None where it does not fold, by patch."""
    found = {}
    for patch, folds in robot.folds.items():
        assert len(folds) <= 1
        found[patch] = (robot.joint_names[folds[0].joint], folds[0].straight) if folds else None
    return found


def test_legs_fold_at_knees_and_arms_at_elbows(robot):
    found = folds_by_name(robot)
    assert found["left_sole"] == (KNEE, pytest.approx(0.0, abs=2e-3))
    assert found["left_toe"] == found["left_sole"]
    assert found["right_hand"] == (ELBOW, pytest.approx(0.0, abs=2e-3))
    assert found["right_grip"] == found["right_hand"]
    # what lies on the knee or on the elbow does not fold
    assert found["left_knee"] is found["left_shin"] is found["right_forearm"] is None


@pytest.mark.filterwarnings("ignore::mcplan.robot.description.RobotWarning")
@pytest.mark.parametrize("name", ["hrp2", "talos", "g1", "icub", "anymal", "go2"])
def test_a_straight_limb_does_not_give_way_along_itself(name):
    """The distance of its ends has no slope there, and is at most so long at any other angle within reach."""
    robot = load_robot(name)
    for patch, (fold,) in ((patch, folds) for patch, folds in robot.folds.items() if folds):
        q = robot.neutral()
        hip = next(link for link in robot.link_names if robot.frame(link)[0] == _first_body(robot, patch))
        last = patch if robot.patches[patch].kind in ("point", "ball") else robot.patches[patch].link

        def apart(angle, robot=robot, q=q, at=7 + fold.joint, hip=hip, last=last):
            q[at] = angle
            return np.linalg.norm(robot.frame_pose(q, last)[:3, 3] - robot.frame_pose(q, hip)[:3, 3])

        longest = apart(fold.straight)
        assert abs(apart(fold.straight + 0.02) - apart(fold.straight - 0.02)) < 0.1 * 0.02 * longest
        assert apart(fold.straight + 1.0) < longest > apart(fold.straight - 1.0)


def _first_body(robot, patch):
    """Return the first body of a limb: the last one up from a patch that carries no other limb."""

    def up(name):
        body, chain = robot.frame(name)[0], []
        while body > 0:
            chain.append(body)
            body = int(robot.tree.topology[body, 0])
        return chain

    limb = robot.patches[patch].limb
    shared = {body for name, other in robot.patches.items() if other.limb and other.limb != limb for body in up(name)}
    return [body for body in up(patch) if body not in shared][-1]


def test_bounds_keep_a_limb_bent_to_the_side_it_is_on(robot):
    limit, q = np.array([robot.limits.lower, robot.limits.upper]), robot.posture("half_sitting")[7:].copy()
    knee, elbow = (robot.joint_names.index(name) for name in (KNEE, ELBOW))
    within = bent_limits(limit, robot.folds_of(["left_sole", "right_hand"]), q, 0.3)
    assert within[0, knee] == pytest.approx(0.3, abs=2e-3)
    assert within[1, elbow] == pytest.approx(-0.3, abs=2e-3)
    changed = (within != limit).any(axis=0)
    assert set(np.flatnonzero(changed)) == {knee, elbow}
    np.testing.assert_array_equal(bent_limits(limit, robot.folds_of(["left_sole"]), q, 0.0)[1], limit[1])
    q[elbow] = 0.02  # a little beyond straight: there is more room on the other side
    assert bent_limits(limit, robot.folds_of(["right_hand"]), q, 0.3)[1, elbow] == pytest.approx(-0.3, abs=2e-3)


def test_bounds_are_none_that_nothing_meets(robot):
    """As far as the bounds allow: a knee that may not bend so far is left one angle."""
    limit, knee = np.array([robot.limits.lower, robot.limits.upper]), robot.joint_names.index(KNEE)
    limit[1, knee] = 0.2
    within = bent_limits(limit, robot.folds_of(["left_sole"]), np.full(robot.n, 0.1), 0.3)
    assert within[0, knee] == within[1, knee] == 0.2
