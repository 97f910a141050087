import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.scene.allowed_pose import MAX_DEVIATION, allowed_pose, is_outdated
from mcplan.scene.contact import Contact

AXIS, POINT = np.array([0.0, 1.0, 0.0]), np.array([0.13, 0.0, 0.02])
PLACE = Rotation.from_rotvec([0.3, -0.2, 0.5]).as_matrix(), np.array([0.4, 0.1, 0.7])


def contact(free):
    """A contact at PLACE that leaves the twists (k, 6) free, patch axes."""
    free = np.linalg.qr(np.array(free, float).T)[0].T
    selection = np.linalg.svd(free)[2][len(free) :]
    return Contact(
        "patch", "bar", "surface", *PLACE, points=np.zeros((1, 3)), axes=np.eye(3), friction=0.5,
        max_force=np.inf, max_moment=np.inf, selection=selection,
    )  # fmt: skip


def rolled(angle, place=PLACE):
    """The pose after a turn about the axis through POINT, patch axes."""
    turn = Rotation.from_rotvec(angle * AXIS).as_matrix()
    return place[0] @ turn, place[1] + place[0] @ (POINT - turn @ POINT)


EDGE = np.concatenate([np.cross(POINT, AXIS), AXIS])


@pytest.mark.parametrize("angle", [1e-6, 0.5, -2.5])
def test_a_patch_that_rolled_is_where_its_contact_allows(angle):
    R, p = rolled(angle)
    found = allowed_pose(contact([EDGE]), (R, p))
    np.testing.assert_allclose(found[0], R, atol=1e-9)
    np.testing.assert_allclose(found[1], p, atol=1e-9)


def test_what_is_constrained_is_the_contacts_own():
    """Off its circle a patch is led back to it: the line through POINT stays where it was."""
    R, p = rolled(0.6)
    off = R @ Rotation.from_rotvec([0.02, 0.0, -0.01]).as_matrix(), p + np.array([0.004, -0.003, 0.002])
    found = allowed_pose(contact([EDGE]), off)
    for along in (0.0, 0.05):
        arm = POINT + along * AXIS
        np.testing.assert_allclose(found[1] + found[0] @ arm, PLACE[1] + PLACE[0] @ arm, atol=1e-9)
    assert np.linalg.norm(Rotation.from_matrix(found[0].T @ R).as_rotvec()) < 0.03
    assert np.linalg.norm(found[1] - off[1]) < 0.01


def test_a_slide_and_a_spin_at_once():
    turn = Rotation.from_rotvec([0.0, 0.0, 0.8]).as_matrix()
    pose = PLACE[0] @ turn, PLACE[1] + PLACE[0] @ [0.05, 0.0, 0.0]
    free = contact([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
    found = allowed_pose(free, pose)
    np.testing.assert_allclose(found[0], pose[0], atol=1e-9)
    np.testing.assert_allclose(found[1], pose[1], atol=1e-9)


def test_a_full_contact_and_a_point():
    full, ball = contact(np.zeros((0, 6))), contact(np.eye(6)[3:])
    pose = rolled(0.4)
    assert allowed_pose(full, pose) == (full.R, full.p)
    assert not is_outdated(full, PLACE, pose)
    R, p = allowed_pose(ball, pose)
    np.testing.assert_array_equal(R, pose[0])
    np.testing.assert_allclose(p, PLACE[1], atol=1e-12)


def test_it_is_followed_only_when_it_has_turned():
    edge = contact([EDGE])
    for sign in (-1.0, 1.0):
        assert not is_outdated(edge, PLACE, rolled(sign * 0.5 * MAX_DEVIATION))
        assert is_outdated(edge, PLACE, rolled(sign * 2.0 * MAX_DEVIATION))
        assert not is_outdated(edge, PLACE, (PLACE[0], PLACE[1] + sign * 0.05 * PLACE[0] @ AXIS))
