import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial.transform import Rotation

from mcplan.core.algebra.rotation import (
    matrix_to_quaternion,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalise,
    quaternion_to_matrix,
    rotation_error,
    rotation_error_rate,
    rotation_exp,
    rotation_log,
)

ANGLES = [0.0, 1e-300, 1e-160, 1e-12, 1e-9, 1e-6, 9.99e-5, 1.01e-4, 1e-3, 1.0, 3.0]
ANGLES += [np.pi - 1e-3, np.pi - 1e-7, np.pi - 1e-10, np.pi]


def axes(count=20):
    rng = np.random.default_rng(3)
    u = np.concatenate([np.eye(3), -np.eye(3), rng.standard_normal((count, 3))])
    return u / np.linalg.norm(u, axis=1)[:, None]


@pytest.mark.parametrize("angle", ANGLES)
def test_log_undoes_exp(angle):
    for u in axes():
        w, quat, back, R = angle * u, np.zeros(4), np.zeros(3), np.zeros((3, 3))
        quaternion_exp(w, quat)
        assert abs(np.linalg.norm(quat) - 1) < 4e-16
        quaternion_log(quat, back)
        # At pi the vector and its negative are the same rotation.
        error = min(np.linalg.norm(back - w), np.linalg.norm(back + w) if angle > 3.1415926 else np.inf)
        assert error <= 4e-15 * angle
        opposite = np.zeros(3)
        quaternion_log(-quat, opposite)  # the same rotation
        if angle < 3.1415926:
            np.testing.assert_allclose(opposite, back, rtol=1e-12, atol=0.0)
        rotation_exp(w, R)
        rotation_log(R, quat, back)
        error = min(np.linalg.norm(back - w), np.linalg.norm(back + w) if angle > 3.1415926 else np.inf)
        assert error <= 1e-14 * max(angle, 1e-300)


@pytest.mark.parametrize("angle", [*ANGLES, 4.0, 7.0, 40.0])
def test_exp_agrees_with_scipy(angle):
    for u in axes():
        quat, R, R_quat = np.zeros(4), np.zeros((3, 3)), np.zeros((3, 3))
        expected = Rotation.from_rotvec(angle * u).as_matrix()
        quaternion_exp(angle * u, quat)
        rotation_exp(angle * u, R)
        quaternion_to_matrix(quat, R_quat)
        np.testing.assert_allclose(R, expected, atol=2e-14)
        np.testing.assert_allclose(R_quat, expected, atol=2e-14)


def test_matrix_to_quaternion_undoes_quaternion_to_matrix():
    rng = np.random.default_rng(5)
    cases = [*np.eye(4), *rng.standard_normal((300, 4)), [1e-9, 1, 0, 0], [1e-9, 0, 1, 1e-9], [-1e-9, 0, 0, 1]]
    for quat in np.array(cases, dtype=float):
        R, back = np.zeros((3, 3)), np.zeros(4)
        quaternion_normalise(quat, quat)
        quaternion_to_matrix(quat, R)
        matrix_to_quaternion(R, back)
        assert back[0] >= 0
        np.testing.assert_allclose(back, quat if back @ quat > 0 else -quat, atol=5e-16)


numbers = st.floats(-3, 3).filter(lambda x: abs(x) > 1e-3)
quaternions = st.tuples(numbers, numbers, numbers, numbers).map(np.array)


@settings(deadline=None, max_examples=60)
@given(quaternions, quaternions, quaternions)
def test_quaternions_are_a_group(a, b, c):
    def product(x, y):
        out = np.zeros(4)
        quaternion_multiply(x, y, out)
        return out

    np.testing.assert_allclose(product(product(a, b), c), product(a, product(b, c)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(product(a, a * [1, -1, -1, -1]), [a @ a, 0, 0, 0], atol=1e-13)
    R_a, R_b, R_ab = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3))
    for quat in (a, b):
        quaternion_normalise(quat, quat)
    quaternion_to_matrix(a, R_a)
    quaternion_to_matrix(b, R_b)
    quaternion_to_matrix(product(a, b), R_ab)
    np.testing.assert_allclose(R_ab, R_a @ R_b, atol=2e-15)


def test_outputs_may_be_inputs():
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((2, 4))
    out = np.zeros(4)
    quaternion_multiply(a, b, out)
    left, right = a.copy(), b.copy()
    quaternion_multiply(left, b, left)
    quaternion_multiply(a, right, right)
    np.testing.assert_array_equal(left, out)
    np.testing.assert_array_equal(right, out)
    quat = np.array([9.0, 0.3, -0.5, 0.7])
    quaternion_exp(np.array([0.3, -0.5, 0.7]), out)
    quaternion_exp(quat[1:], quat)
    np.testing.assert_array_equal(quat, out)


@pytest.mark.parametrize("angle", [0.0, 1e-5, 1e-3, 0.5, 2.0, 3.1])
def test_the_rate_of_an_error_is_its_derivative(angle):
    """By central differences: their error is of the order of h²."""
    rng, h = np.random.default_rng(5), 1e-5
    for u in axes(10):
        R, w, rate, ends = Rotation.random(random_state=rng), rng.standard_normal(3), np.zeros(3), np.zeros((2, 3))
        target = np.ascontiguousarray((Rotation.from_rotvec(angle * u) * R).as_matrix()).reshape(9)
        error = np.zeros(3)
        rotation_error(target, np.ascontiguousarray(R.as_matrix()).reshape(9), np.zeros(13), error)
        rotation_error_rate(error, w, rate)
        for k, t in enumerate((-h, h)):
            turned = np.ascontiguousarray((Rotation.from_rotvec(t * w) * R).as_matrix()).reshape(9)
            rotation_error(target, turned, np.zeros(13), ends[k])
        np.testing.assert_allclose(rate, (ends[0] - ends[1]) / (2.0 * h), atol=1e-6)
