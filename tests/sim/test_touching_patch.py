"""A point in several patches of a link belongs to the one that is meant to touch there."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.core.contact.model import PATCH_COUNT, PATCH_RADIUS
from mcplan.core.contact.touching import CONTACT_TOLERANCE_M, NO_PATCH, Patches, polygon_distance, touching_patch
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Surface
from mcplan.sim.contact.contact_physics import ContactPhysics
from mcplan.sim.mujoco.physics import MujocoPhysics
from mcplan.sim.physics import Action

PATCHES = ("left_sole", "left_toe", "right_sole", "right_toe")


@pytest.fixture(scope="module")
def standing():
    robot = load_robot("hrp2")
    square = np.array([[-2, -2], [2, -2], [2, 2], [-2, 2.0]])
    environment = Environment((Surface("floor", np.eye(3), np.zeros(3), square),), (), (), ())
    q = robot.posture("half_sitting").copy()
    q[2] -= min(robot.frame_pose(q, name)[2, 3] for name in PATCHES)
    return robot, environment, q


@pytest.mark.parametrize("physics_of", [ContactPhysics, MujocoPhysics])
@pytest.mark.parametrize("active", [PATCHES[::2], ("left_toe", "right_sole"), ()])
def test_soles_and_toes_share_what_the_feet_carry_by_what_is_meant_to_touch(standing, active, physics_of):
    robot, environment, q = standing
    physics = physics_of(robot, environment, q, patches=PATCHES)
    nothing = np.zeros(robot.n)
    for _ in range(3):
        begun = physics.q
        outcome = physics.step(Action(nothing, np.zeros(robot.nv), {}, {}, active), 1e-3)
    points = outcome.forces
    for name, wrench in outcome.wrenches.items():
        mine = points.patch == PATCHES.index(name)
        p = robot.frame_pose(begun, name)[:3, 3]
        force = points.force[mine]
        np.testing.assert_allclose(wrench[:3], force.sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(wrench[3:], np.cross(points.xyz[mine] - p, force).sum(axis=0), atol=1e-9)
    assert "right_toe" not in outcome.wrenches
    assert ("left_toe" in outcome.wrenches) == ("left_toe" in active)


SQUARE = np.array([[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]])


def distance(x, polygon):
    return polygon_distance(polygon, 0, len(polygon), *x)


@pytest.mark.parametrize("z", [-0.01, 0.01])
def test_a_point_is_as_far_from_a_patch_on_either_side_of_its_plane(z):
    assert distance([0.02, -0.01, z], SQUARE) == pytest.approx(0.01)
    assert distance([0.13, -0.09, z], SQUARE) == pytest.approx(np.sqrt(0.03**2 + 0.04**2 + 0.01**2))
    assert distance([0.0, 0.08, z], SQUARE[:2]) == pytest.approx(np.hypot(0.03, 0.01))


def test_distance_from_a_polygon_an_edge_a_point_and_the_origin():
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1.0]])
    assert distance([0.2, 0.3, 0.01], square) == pytest.approx(0.01)
    assert distance([1.3, 0.0, 0.4], square) == pytest.approx(0.5)
    assert distance([0.5, 0.2, 0.0], square[:2] + np.array([0, 1.0])) == pytest.approx(0.2)
    assert distance([1.3, 0.4, 0.0], np.array([[1.0, 0.0]])) == pytest.approx(0.5)
    assert distance([0.3, 0.4, 1.2], np.zeros((0, 2))) == pytest.approx(1.3)


def test_a_point_belongs_to_a_patch_a_few_millimetres_away_in_its_own_axes():
    """Of two patches on one link: the one in which it lies, or none; of both, the one that faces the support."""
    R, p = Rotation.from_rotvec([2.5, 0.6, 0.9]).as_matrix(), np.array([0.4, -0.3, 0.2])
    back = R @ np.diag([1.0, -1.0, -1.0])
    index, frame = np.zeros((2, 5), int), np.array([[*R.ravel(), *p], [*back.ravel(), *p]])
    index[:, PATCH_COUNT] = 4
    on_link = np.array([[1, 0], [1, 1]])
    patches = Patches(index, np.zeros((2, 13)), SQUARE, on_link, frame)
    sole, both = 0, 1  # links
    at, inactive = p + R @ [0.09, -0.04, 0.0], np.zeros(2, int)
    for off, found in (
        (0.0, 0),
        (0.9 * CONTACT_TOLERANCE_M, 0),
        (1.1 * CONTACT_TOLERANCE_M, NO_PATCH),
        (-0.9 * CONTACT_TOLERANCE_M, 0),
        (-0.05, NO_PATCH),
    ):
        assert touching_patch(patches, sole, inactive, at + off * R[:, 2], -R[:, 2]) == found
    for normal, active, found in ((-R[:, 2], [0, 0], 0), (R[:, 2], [0, 0], 1), (R[:, 2], [1, 0], 0)):
        assert touching_patch(patches, both, np.array(active), at, normal) == found
    assert CONTACT_TOLERANCE_M < 0.01


def test_a_point_belongs_to_a_ball_on_whose_surface_it_lies():
    index, shape, frame = np.zeros((1, 5), int), np.zeros((1, 13)), np.array([[*np.eye(3).ravel(), 0.1, 0.2, 0.3]])
    shape[0, PATCH_RADIUS] = 0.04
    ball = Patches(index, shape, np.zeros((0, 2)), np.ones((1, 1), int), frame)
    for at, found in (([0.1, 0.2, 0.262], 0), ([0.1, 0.2, 0.3], NO_PATCH), ([0.1, 0.2, 0.25], NO_PATCH)):
        assert touching_patch(ball, 0, np.zeros(1, int), np.array(at), np.array([0.0, 0.0, 1.0])) == found
