import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.core.rigid_body.manifold import difference, integrate, nearest_configuration
from tests.core.random_trees import random_state


@pytest.mark.parametrize("turn", [0.0, 1e-12, 1e-6, 0.5, 3.1])
def test_difference_undoes_integrate(turn):
    rng = np.random.default_rng(1)
    for _ in range(50):
        q, v, _ = random_state(rng, 12)
        v[3:6] *= turn / np.linalg.norm(v[3:6])
        q1, back = np.zeros(13), np.zeros(12)
        integrate(q, v, 1.0, q1)
        difference(q, q1, back)
        np.testing.assert_allclose(back, v, atol=2e-14)
        difference(q, q1 * np.r_[1, 1, 1, -np.ones(4), np.ones(6)], back)
        np.testing.assert_allclose(back, v, atol=2e-14)


def test_integrate_undoes_difference():
    rng = np.random.default_rng(2)
    for _ in range(200):
        q0, q1, v, q = random_state(rng, 9)[0], random_state(rng, 9)[0], np.zeros(9), np.zeros(10)
        difference(q0, q1, v)
        assert np.linalg.norm(v[3:6]) <= np.pi + 1e-12
        integrate(q0, v, 1.0, q)
        q[3:7] *= np.sign(q[3:7] @ q1[3:7])
        np.testing.assert_allclose(q, q1, atol=1e-14)


def test_the_base_turns_about_world_axes():
    rng = np.random.default_rng(3)
    q, v, _ = random_state(rng, 8)
    out, dt = np.zeros(9), 0.3
    integrate(q, v, dt, out)
    before = Rotation.from_quat(q[3:7], scalar_first=True)
    after = Rotation.from_rotvec(dt * v[3:6]) * before
    np.testing.assert_allclose(
        Rotation.from_quat(out[3:7], scalar_first=True).as_matrix(), after.as_matrix(), atol=1e-15
    )
    np.testing.assert_allclose(out[:3], q[:3] + dt * v[:3])
    np.testing.assert_allclose(out[7:], q[7:] + dt * v[6:])


def test_integrating_in_place_and_in_pieces():
    rng = np.random.default_rng(4)
    q, v, _ = random_state(rng, 8)
    whole = np.zeros(9)
    integrate(q, v, 1.0, whole)
    for _ in range(1000):
        integrate(q, v, 0.001, q)
    np.testing.assert_allclose(q, whole, atol=1e-12)
    assert abs(np.linalg.norm(q[3:7]) - 1) < 1e-15


def test_the_nearest_is_the_one_of_the_shortest_weighted_way():
    rng = np.random.default_rng(4)
    weight = np.r_[3.0 * np.ones(3), 0.2 * np.ones(3), np.ones(6)]
    for count in (1, 2, 40):
        known, q = np.array([random_state(rng, 12)[0] for _ in range(count)]), random_state(rng, 12)[0]
        known[0, 3:7] = -q[3:7]  # the same attitude
        way, scratch = np.zeros(12), np.zeros(12)
        lengths = []
        for each in known:
            difference(each, q, way)
            lengths.append(np.linalg.norm(weight * way))
        assert nearest_configuration(known, q, weight, scratch) == np.argmin(lengths)
