"""A ball that rolls: where its centre is, what of its motion a contact forbids, and the forces that it bears."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.scene.allowed_pose import allowed_pose
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.textbook.constraint import contact_rows
from mcplan.whole_body.contact import ContactConstraint
from tests.sim.other_robots import BALL, quadruped

SQUARE = np.array([[-2.0, -2], [2, -2], [2, 2], [-2, 2]])
FEET = ("fl_foot", "fr_foot", "hl_foot", "hr_foot")
TILT = Rotation.from_euler("xyz", [0.2, -0.15, 0.4]).as_matrix()


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return load_robot(quadruped(tmp_path_factory.mktemp("ball")))


@pytest.fixture(scope="module")
def ramp():
    return Environment([Surface("ramp", TILT, np.array([0.1, 0.2, 0.3]), SQUARE, friction=0.8)])


@pytest.fixture
def ball(robot, ramp):
    return make_contact(robot, ramp, {"patch": "fl_foot", "surface": "ramp", "x": 0.2, "y": -0.1, "yaw": 0.3})


def test_upright_it_touches_in_its_place(ball, ramp):
    surface = ramp.support("ramp")
    (lowest,) = ball.world_points
    np.testing.assert_allclose(lowest, surface.p + surface.R @ [0.2, -0.1, 0.0], atol=1e-15)
    np.testing.assert_allclose(ball.p - lowest, BALL * surface.normal, atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_rolling_about_one_axis_is_without_slip(ball, seed):
    """Along ``R(s) = exp(s phi) R`` the lowest point of the ball, as part of the link, is at rest at each moment."""
    rng = np.random.default_rng(seed)
    axis, h = rng.normal(size=3), 1e-6
    axis -= 0.0 if seed else (axis @ ball.normal) * ball.normal
    spin = axis - (axis @ ball.normal) * ball.normal

    def centre(s):
        return allowed_pose(ball, (Rotation.from_rotvec(s * spin).as_matrix() @ ball.R, np.zeros(3)))[1]

    for s in (0.0, 0.3, 0.7):
        v = (centre(s + h) - centre(s - h)) / (2 * h)
        np.testing.assert_allclose(v - np.cross(spin, BALL * ball.normal), 0.0, atol=1e-9)
        assert abs((centre(s) - ball.p) @ ball.normal) < 1e-15


@pytest.mark.parametrize("seed", range(5))
def test_what_has_rolled_is_found_at_the_place_from_which_it_did(robot, ramp, ball, seed):
    R = Rotation.from_rotvec(np.random.default_rng(seed).uniform(-0.6, 0.6, 3)).as_matrix() @ ball.R
    near = allowed_pose(ball, (R, np.zeros(3)))
    found = make_contact(robot, ramp, {"patch": "fl_foot", "surface": "ramp", "yaw": 0.3}, near)
    assert found.coordinates == pytest.approx(ball.coordinates)
    assert found.same_place(ball)


def test_rows_are_those_of_the_lowest_point_however_its_link_is_turned(robot, ball):
    """The program's, by definition and compiled form, and those of constraints: ``v + w x (-r n)`` and its rate."""
    rng = np.random.default_rng(1)
    q, v, vd = robot.random_configuration(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    J, bias = robot.frame_jacobian(q, "fl_foot"), robot.frame_bias_acceleration(q, v, "fl_foot")
    twist, rate = J @ v, J @ vd + bias
    point = twist[:3] + np.cross(twist[3:], -BALL * ball.normal)
    change = rate[:3] + np.cross(rate[3:], -BALL * ball.normal)  # n stays: the point is not one of the link's
    scale = np.sqrt(1 + BALL**2) ** np.array([1, 1, 0])
    rows = contact_rows(robot, q, v, [ball])
    np.testing.assert_allclose(scale * (rows.J @ v), ball.R.T @ point, atol=1e-12)
    np.testing.assert_allclose(scale * (rows.J @ vd + rows.bias), ball.R.T @ change, atol=1e-12)
    terms = Terms(robot, ["fl_foot"])
    terms.update(q, v)
    constraint = ContactConstraint(ball, kp=0.0, kd=0.0)
    A, b = constraint.rows(terms)
    np.testing.assert_allclose(scale * (A @ vd - b), ball.R.T @ change, atol=1e-12)
    f = rng.normal(size=3)
    force = ball.axes @ f
    np.testing.assert_allclose(
        constraint.wrench_map(terms) @ f, [*force, *np.cross(-BALL * ball.normal, force)], atol=1e-15
    )
    assert constraint.shape.free_rows == 0  # three forces, three directions in which it does not move


def test_a_posture_leans_over_feet_that_roll(robot):
    floor = Environment([Surface("floor", np.eye(3), np.zeros(3), SQUARE, friction=0.8)])
    q = robot.posture("stand")
    feet = []
    for name in FEET:
        X = robot.frame_pose(q, name)
        feet.append(make_contact(robot, floor, {"patch": name, "surface": "floor"}, (X[:3, :3], X[:3, 3])))
    ahead = q.copy()
    ahead[0] += 0.06
    found = PostureGenerator(robot, floor).generate(feet, None, ahead, com=robot.com(ahead)[:2])
    assert found.found, found.reason
    for contact in feet:
        X = robot.frame_pose(found.q, contact.patch)
        assert X[2, 3] == pytest.approx(BALL, abs=1e-6)
        rolled = X[0, 3] - contact.p[0]
        turned = Rotation.from_matrix(X[:3, :3] @ contact.R.T).as_rotvec()
        assert rolled == pytest.approx(BALL * turned[1], abs=1e-6)
        assert abs(rolled) > 1e-3  # a point that is fixed to its link would not do


def test_a_ball_rests_on_surfaces_alone_and_is_nothing_else(robot, ramp):
    bar = Bar("rail", np.array([[0.0, 0, 0], [1, 0, 0]]), 0.02, friction=0.5)
    with pytest.raises(InputError, match="rolls on surfaces"):
        make_contact(robot, Environment([], [bar]), {"patch": "fl_foot", "surface": "rail", "along": 0.5, "angle": 0})
    place = {"patch": "fl_foot", "surface": "ramp", "x": 0, "y": 0}
    with pytest.raises(InputError, match="is a ball, so it cannot be a contact of kind point"):
        make_contact(robot, ramp, place | {"kind": "point"})


@pytest.mark.parametrize(
    ("lines", "said"),
    [("kind: ball", "needs its radius"), ("kind: point\n    radius: 0.02", "has no radius")],
)
def test_a_ball_has_a_radius_and_nothing_else_does(tmp_path, lines, said):
    path = quadruped(tmp_path)
    path.write_text(path.read_text().replace(f"kind: ball\n    radius: {BALL}", lines, 1))
    with pytest.raises(InputError, match=said):
        load_robot(path)


def test_friction_that_is_less_than_the_support_gives_is_kept(ball):
    assert replace(ball, friction=0.2).at(np.eye(3), ball.p).friction == 0.2
