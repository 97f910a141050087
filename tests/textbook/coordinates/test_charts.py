"""Charts of rotations and positions: SciPy's conversions, printed maps, and rates against finite differences."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.robot.pose import cross_matrix, rotation_from_rpy
from mcplan.textbook.coordinates import (
    ANGLE_AXIS,
    CARTESIAN,
    CYLINDRICAL,
    ROLL_PITCH_YAW,
    ROTATION_MATRIX,
    ROTATION_VECTOR,
    SPHERICAL,
    UNIT_QUATERNION,
    XYZ,
    ZXZ,
    ZYX,
    ZYZ,
    EulerAngles,
)
from mcplan.textbook.coordinates.chart import angular_map

SETS = ("xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xyx", "xzx", "yxy", "yzy", "zxz", "zyz")
EULER = [EulerAngles(s) for s in SETS] + [EulerAngles(s, fixed=True) for s in SETS]
CHARTS = [*EULER, UNIT_QUATERNION, ROTATION_MATRIX, ROTATION_VECTOR, ANGLE_AXIS]
STEP = 1e-6
"""Central differences with this step are good to about 1e-9 for functions of size one."""


def rotations(count, seed=0):
    return [r.as_matrix() for r in Rotation.random(count, random_state=seed)]


def named(charts):
    return pytest.mark.parametrize("chart", charts, ids=[c.name for c in charts])


@named(EULER)
def test_euler_angles_are_those_of_scipy(chart):
    sequence = chart.sequence if chart.fixed else chart.sequence.upper()
    for R in rotations(20):
        np.testing.assert_allclose(chart.parameters(R), Rotation.from_matrix(R).as_euler(sequence), atol=1e-12)
    angles = np.array([0.3, -1.1, 2.0])
    np.testing.assert_allclose(chart.rotation(angles), Rotation.from_euler(sequence, angles).as_matrix(), atol=1e-15)


def test_roll_pitch_yaw_is_what_files_mean_by_it():
    np.testing.assert_allclose(
        ROLL_PITCH_YAW.rotation([0.3, -0.4, 1.2]), rotation_from_rpy([0.3, -0.4, 1.2]), atol=1e-15
    )


@named([UNIT_QUATERNION, ROTATION_VECTOR])
def test_quaternion_and_rotation_vector_are_those_of_scipy(chart):
    for R in rotations(20):
        r = Rotation.from_matrix(R)
        w_last = r.as_quat(canonical=True)
        expected = [w_last[3], *w_last[:3]] if chart is UNIT_QUATERNION else r.as_rotvec()
        np.testing.assert_allclose(chart.parameters(R), expected, atol=1e-14)


def test_angle_and_axis_keep_their_digits_near_no_turn_and_half_a_turn():
    n = np.array([0.6, 0.0, 0.8])
    for angle in (1e-9, 1e-4, 1.0, np.pi - 1e-7):
        theta = ANGLE_AXIS.parameters(ROTATION_VECTOR.rotation(angle * n))
        np.testing.assert_allclose(theta, [angle, *n], atol=1e-7 if angle < 1e-8 else 1e-11, rtol=1e-7)


@named(CHARTS)
def test_parameters_undo_the_rotation_and_keep_the_constraint(chart):
    for R in rotations(20):
        theta = chart.parameters(R)
        np.testing.assert_allclose(chart.rotation(theta), R, atol=1e-13)
        np.testing.assert_allclose(chart.constraint(theta), 0.0, atol=1e-14)
        assert len(chart.constraint(theta)) == chart.size - 3
        quat = chart.to_quaternion(theta)
        np.testing.assert_allclose(chart.rotation(chart.from_quaternion(quat)), R, atol=1e-13)


@named(CHARTS)
def test_numbers_near_others(chart):
    """A rotation a little beyond another has numbers a little beyond those of the other, whichever they are."""
    for R in rotations(10, seed=8):
        theta = chart.parameters(R)
        rate = chart.E_inverse(theta) @ np.array([1.0, -2.0, 0.5])
        small = 1e-3 / max(1.0, np.abs(rate).max())
        ahead = chart.nearest(theta + small * rate)
        turned = [theta + 2 * np.pi * np.array([1, 0, -1])] if chart in EULER else chart._equivalent(theta)
        for given in [theta, *turned]:
            near = chart.parameters_near(chart.rotation(ahead), given)
            np.testing.assert_allclose(chart.rotation(near), chart.rotation(ahead), atol=1e-12)
            assert np.linalg.norm(near - given) < 0.02


@named(CHARTS)
def test_the_map_gives_the_angular_velocity_of_a_moving_rotation(chart):
    """``[omega x] = R_rate R'`` (S0 eq. 3), the rotation differenced along rates that keep the constraint."""
    rng = np.random.default_rng(1)
    for R in rotations(6):
        theta, omega = chart.parameters(R), rng.normal(size=3)
        rate = chart.E_inverse(theta) @ omega
        np.testing.assert_allclose(chart.constraint_rows(theta) @ rate, 0.0, atol=1e-12)
        R_rate = (chart.rotation(theta + STEP * rate) - chart.rotation(theta - STEP * rate)) / (2 * STEP)
        scale = max(1.0, np.abs(rate).max() ** 3)
        np.testing.assert_allclose(R_rate, cross_matrix(omega) @ R, atol=1e-8 * scale)
        np.testing.assert_allclose(chart.derivatives(theta) @ rate, cross_matrix(omega) @ R, atol=1e-11 * scale)
        np.testing.assert_allclose(chart.E(theta, "base") @ rate, R.T @ omega, atol=1e-12 * scale)
        np.testing.assert_allclose(chart.E_inverse(theta, "base") @ R.T @ omega, rate, atol=1e-12 * scale)
        eq10 = angular_map(R, chart.derivatives(theta))
        np.testing.assert_allclose(eq10 @ rate, omega, atol=1e-11 * scale)


@named(CHARTS)
@pytest.mark.parametrize("axes", ["world", "base"])
def test_the_rate_of_the_map(chart, axes):
    rng = np.random.default_rng(2)
    for R in rotations(6, seed=4):
        theta = chart.parameters(R)
        rate = chart.E_inverse(theta) @ rng.normal(size=3)
        moved = [chart.E(theta + sign * STEP * rate, axes) for sign in (1, -1)]
        scale = max(1.0, np.abs(rate).max() ** 3)
        difference = (moved[0] - moved[1]) / (2 * STEP)
        given = chart.E_rate(theta, rate, axes)
        np.testing.assert_allclose(given @ rate, difference @ rate, atol=1e-8 * scale)
        if axes == "world":
            np.testing.assert_allclose(given, difference, atol=1e-8 * scale)


@named(CHARTS)
def test_constraint_rows_are_half_the_gradient(chart):
    rng = np.random.default_rng(3)
    theta, step = chart.parameters(rotations(1)[0]), rng.normal(size=chart.size)
    difference = (chart.constraint(theta + STEP * step) - chart.constraint(theta - STEP * step)) / (4 * STEP)
    np.testing.assert_allclose(chart.constraint_rows(theta) @ step, difference, atol=1e-9)
    off = theta + 1e-3 * step
    np.testing.assert_allclose(chart.constraint(chart.nearest(off)), 0.0, atol=1e-14)


def test_maps_are_those_that_s1_prints():
    """Equations 2.86 to 2.106, typed from the document."""
    a, b, c = 0.7, -0.4, 1.9
    sa, ca, sb, cb = np.sin(a), np.cos(a), np.sin(b), np.cos(b)
    printed = {
        ZYX: [[0, -sa, cb * ca], [0, ca, cb * sa], [1, 0, -sb]],
        XYZ: [[1, 0, sb], [0, ca, -cb * sa], [0, sa, ca * cb]],
        ZYZ: [[0, -sa, ca * sb], [0, ca, sa * sb], [1, 0, cb]],
        ZXZ: [[0, ca, sa * sb], [0, sa, -ca * sb], [1, 0, cb]],
    }
    for chart, E in printed.items():
        np.testing.assert_allclose(chart.E([a, b, c]), E, atol=1e-15)
    inverse = [[ca * sb / cb, sb * sa / cb, 1], [-sa, ca, 0], [ca / cb, sa / cb, 0]]  # eq. 2.87
    np.testing.assert_allclose(ZYX.E_inverse([a, b, c]), inverse, atol=1e-15)
    inverse = [[-cb * ca / sb, -cb * sa / sb, 1], [-sa, ca, 0], [ca / sb, sa / sb, 0]]  # eq. 2.91
    np.testing.assert_allclose(ZYZ.E_inverse([a, b, c]), inverse, atol=1e-15)
    phi = np.array([0.3, -1.2, 0.8])
    t, K = np.linalg.norm(phi), cross_matrix(phi)
    for scale in (1.0, 1.6, 0.4):
        phi_, t_, K_ = scale * phi, scale * t, scale * K
        E = np.eye(3) + K_ * (1 - np.cos(t_)) / t_**2 + K_ @ K_ * (t_ - np.sin(t_)) / t_**3  # eq. 2.106
        np.testing.assert_allclose(ROTATION_VECTOR.E(phi_), E, atol=1e-14)
    inverse = np.eye(3) - K / 2 + K @ K / t**2 * (1 - t / 2 * np.sin(t) / (1 - np.cos(t)))  # eq. 2.107
    np.testing.assert_allclose(ROTATION_VECTOR.E_inverse(phi), inverse, atol=1e-14)
    w, x, y, z = quat = np.array([0.5, -0.5, 0.1, 0.7]) / np.linalg.norm([0.5, -0.5, 0.1, 0.7])
    H = [[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]]  # eq. 2.97
    np.testing.assert_allclose(UNIT_QUATERNION.E(quat), 2 * np.array(H), atol=1e-15)
    np.testing.assert_allclose(UNIT_QUATERNION.E_inverse(quat), 0.5 * np.array(H).T, atol=1e-15)


def test_the_example_of_a_rotation_by_a_quaternion():
    """S1 example 2.4.1: (0, 1, 0) seen from a frame turned by 60 degrees about x."""
    R = UNIT_QUATERNION.rotation(np.array([np.sqrt(3), 1, 0, 0]) / 2)
    np.testing.assert_allclose(R.T @ [0, 1, 0], [0, 0.5, -np.sqrt(3) / 2], atol=1e-15)


@pytest.mark.parametrize(
    ("chart", "theta", "distance"),
    [
        (ROLL_PITCH_YAW, [0.1, np.pi / 2 - 0.01, 3.0], 0.01),
        (ZYZ, [0.1, 0.02, 3.0], 0.02),
        (ZXZ, [0.1, np.pi - 0.03, 3.0], 0.03),
        (ROTATION_VECTOR, [0.0, 2 * np.pi - 0.04, 0.0], 0.04),
        (ROTATION_VECTOR, [0.0, 0.0, 0.0], 2 * np.pi),
        (ANGLE_AXIS, [0.05, 1.0, 0.0, 0.0], 0.05),
        (UNIT_QUATERNION, [1.0, 0.0, 0.0, 0.0], np.inf),
        (ROTATION_MATRIX, np.eye(3).ravel(), np.inf),
    ],
)
def test_singularities_are_told_with_their_distance(chart, theta, distance):
    assert chart.distance_to_singularity(theta) == pytest.approx(distance)
    smallest = np.linalg.svd(chart.E(theta), compute_uv=False)[-1]
    if distance < 0.1:
        assert distance / 7 < smallest < 1.1 * distance  # distance / (2 pi) for the rotation vector
    else:
        assert smallest > 0.1


def test_an_inverse_at_a_singularity_is_refused():
    with pytest.raises(InputError, match=r"pitch = 1\.5708, yaw = 1 is .* rad from a singularity"):
        ROLL_PITCH_YAW.E_inverse([0.0, np.pi / 2, 1.0])
    with pytest.raises(InputError, match="'zzy': expected three of x, y, z"):
        EulerAngles("zzy")
    with pytest.raises(InputError, match=r"unit quaternion has the shape \(3,\); expected \(4,\)"):
        UNIT_QUATERNION.rotation([1.0, 0.0, 0.0])


@pytest.mark.parametrize("chart", [UNIT_QUATERNION, ROLL_PITCH_YAW])
def test_a_quaternion_that_is_no_rotation_is_refused(chart):
    with pytest.raises(InputError, match=r"quaternion w x y z has the length 2; expected 1"):
        chart.from_quaternion([2.0, 0.0, 0.0, 0.0])
    with pytest.raises(InputError, match=r"w x y z are all zero, which is no rotation"):
        UNIT_QUATERNION.nearest(np.zeros(4))


@pytest.mark.parametrize("given", ["abc", [[1.0], [1.0, 2.0]], [1j, 0, 0]])
def test_what_is_no_array_of_numbers_is_refused(given):
    with pytest.raises(InputError, match=r"^roll-pitch-yaw = .*; expected an array of numbers"):
        ROLL_PITCH_YAW.rotation(given)


@named(EULER)
@pytest.mark.parametrize("side", [-1, 1])
def test_euler_angles_at_a_singularity_still_give_the_rotation(chart, side):
    first, last = chart.sequence[0], chart.sequence[2]
    middle = side * np.pi / 2 if first != last else np.pi * (side > 0)
    R = chart.rotation([0.4, middle, 1.1])
    np.testing.assert_allclose(chart.rotation(chart.parameters(R)), R, atol=1e-12)


POSITIONS = [CARTESIAN, CYLINDRICAL, SPHERICAL]


@named(POSITIONS)
def test_positions_and_their_rates(chart):
    rng = np.random.default_rng(5)
    for _ in range(20):
        r, v = rng.normal(size=(2, 3))
        chi = chart.parameters(r)
        np.testing.assert_allclose(chart.position(chi), r, atol=1e-14)
        rate = chart.E_inverse(chi) @ v
        difference = (chart.position(chi + STEP * rate) - chart.position(chi - STEP * rate)) / (2 * STEP)
        scale = max(1.0, np.abs(rate).max() ** 3)
        np.testing.assert_allclose(difference, v, atol=1e-8 * scale)
        difference = (chart.E(chi + STEP * rate) - chart.E(chi - STEP * rate)) / (2 * STEP)
        np.testing.assert_allclose(chart.E_rate(chi, rate), difference, atol=1e-8 * scale)


def test_positions_that_s1_prints():
    rho, theta, z = 2.0, 0.3, -1.0
    inverse = [[np.cos(theta), np.sin(theta), 0], [-np.sin(theta) / rho, np.cos(theta) / rho, 0], [0, 0, 1]]  # eq. 2.14
    np.testing.assert_allclose(CYLINDRICAL.E_inverse([rho, theta, z]), inverse, atol=1e-15)
    r, theta, phi = 1.5, 0.3, 0.8
    ct, st, cp, sp = np.cos(theta), np.sin(theta), np.cos(phi), np.sin(phi)
    inverse = [[ct * sp, st * sp, cp], [-st / (r * sp), ct / (r * sp), 0], [cp * ct / r, cp * st / r, -sp / r]]  # 2.17
    np.testing.assert_allclose(SPHERICAL.E_inverse([r, theta, phi]), inverse, atol=1e-15)


def test_a_point_on_the_axis_has_no_rates():
    with pytest.raises(InputError, match=r"cylindrical coordinates: rho = 0, .* is 0 m from the axis"):
        CYLINDRICAL.E_inverse([0.0, 1.0, 2.0])
    with pytest.raises(InputError, match="spherical"):
        SPHERICAL.E_inverse([1.0, 1.0, 0.0])
