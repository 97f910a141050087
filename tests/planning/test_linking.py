import numpy as np
import pytest

from mcplan.errors import PlanningFailed
from mcplan.planning.linking import Change, Linker
from mcplan.planning.posture.reference import comfortable_place, guide_posture
from mcplan.planning.posture.settings import FRICTION_SHARE, TORQUE_SHARE
from mcplan.statics.support_region import support_region


@pytest.fixture
def linker(scene):
    return Linker(scene.ROBOT, scene.ENVIRONMENT, scene.ROBOT.posture("half_sitting"))


def balanced(robot, stance):
    """Largest entry of h - S' tau - sum J' w."""
    rest = robot.nonlinear_effects(stance.q, np.zeros(robot.nv))
    rest[6:] -= stance.tau
    for patch, wrench in stance.wrenches.items():
        rest -= robot.frame_jacobian(stance.q, patch).T @ wrench
    return np.abs(rest).max()


def test_forces_and_torques_satisfy_the_equation_of_motion_at_rest(scene, linker):
    robot = scene.ROBOT
    start = linker.start(scene.feet())
    hand = scene.contact("right_hand", "table", x=-0.25, y=-0.28, yaw=0.0)
    added = linker.link(Change.add(start.contacts, hand), start.q)
    lifted = linker.link(Change.remove(added.contacts, "left_sole"), added.q)
    for stance in (start, added, lifted):
        assert balanced(robot, stance) < 1e-6
        assert stance.margins["torque"] <= TORQUE_SHARE + 1e-6
        assert stance.margins["friction_ratio"] <= FRICTION_SHARE + 1e-6
        assert stance.margins["equilibrium"] > 5.0
        assert 0.0 < stance.margins["equilibrium_torque"] <= stance.margins["equilibrium"] + 1e-6
    assert not added.wrenches["right_hand"].any()
    assert not lifted.wrenches["left_sole"].any()
    assert lifted.wrenches["right_hand"][2] > 5.0
    assert "left_sole" not in lifted.patches


def test_the_start_may_move_the_base_by_five_centimetres_only(scene, linker):
    assert np.linalg.norm(linker.start(scene.feet(0.03)).q[:3] - scene.ROBOT.posture("half_sitting")[:3]) < 0.05
    with pytest.raises(PlanningFailed, match=r"the base has to move 0\.\d+ m"):
        linker.start(scene.feet(0.20))


def test_a_centre_of_mass_that_nothing_balances_is_refused(scene, linker):
    start = linker.start(scene.feet())
    with pytest.raises(PlanningFailed, match=r"lies 0\.\d+ m outside the region where left_sole"):
        linker.link(Change.remove(start.contacts, "right_sole"), start.q, com=np.array([0.0, -0.05, 0.8]))


def test_the_guide_follows_the_contacts_rigidly(scene, linker):
    robot = scene.ROBOT
    start = linker.start(scene.feet())
    turned = tuple(
        scene.contact(patch, x=0.5 - side * np.sin(0.4), y=0.1 + side * np.cos(0.4), yaw=0.4)
        for patch, side in (("left_sole", 0.095), ("right_sole", -0.095))
    )
    guide = guide_posture(robot, start.q, start.patches, turned)
    assert np.array_equal(guide[7:], start.q[7:])
    for contact in turned:
        X = robot.frame_pose(guide, contact.patch)
        assert np.allclose(X[:3, :3], contact.R, atol=1e-9)
        assert np.allclose(X[:3, 3], contact.p, atol=1e-6)
    assert guide_posture(robot, start.q, (), turned) is None


def test_the_comfortable_place_lies_inside_and_leans_on_the_soles(scene):
    left, right = scene.feet()
    hand = scene.contact("right_hand", "table", x=-0.25, y=-0.28, yaw=0.0)
    region = support_region((right, hand), 56.0)
    place = comfortable_place(region, (right, hand), np.array([0.0, 0.2]), 58.0)
    assert region.depth(place) > 0.02
    assert np.linalg.norm(place - right.p[:2]) < np.linalg.norm(place - hand.p[:2])
    both = support_region((left, right), 56.0)
    assert np.allclose(comfortable_place(both, (left, right), both.centre, 58.0), both.centre, atol=0.01)
