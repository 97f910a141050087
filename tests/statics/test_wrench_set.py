import numpy as np
import pytest
from scipy.optimize import linprog

from mcplan.errors import InputError
from mcplan.statics.contact_forces import ForceUnknowns
from mcplan.statics.wrench_set import wrench_set
from tests.statics import contacts


def patch_wrench(contact, f):
    """The wrench at the patch origin in the contact's axes, by the map of the forces."""
    (wrench,) = ForceUnknowns([contact]).wrenches(f).values()
    return np.concatenate([contact.axes.T @ wrench[:3], contact.axes.T @ wrench[3:]])


def in_cone(rays, w):
    return linprog(np.zeros(len(rays)), A_eq=rays.T, b_eq=w, method="highs").status == 0


def caron(w, X, Y, mu):
    """Whether all faces of the closed form hold."""
    fx, fy, fz, mx, my, mz = w
    least = -mu * (X + Y) * fz + abs(Y * fx - mu * mx) + abs(X * fy - mu * my)
    most = mu * (X + Y) * fz - abs(Y * fx + mu * mx) - abs(X * fy + mu * my)
    return (
        fz > 0 and max(abs(fx), abs(fy)) <= mu * fz and abs(mx) <= Y * fz and abs(my) <= X * fz and least <= mz <= most
    )


def test_a_rectangle_has_the_sixteen_faces_of_the_closed_form():
    X, Y, mu = 0.11, 0.06, 0.6
    # four edges on the cone at 45 degrees: |fx|, |fy| <= mu / sqrt(2) fz
    foot = contacts.surface_contact("foot", [0.3, 0.1, 0.2], [0.2, -0.3, 0.8], half=(X, Y), yaw=0.7, friction=mu)
    found = wrench_set(foot, faces=4)
    assert len(found.A) == 16
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2000):
        # across the boundary of the cone: half of them are inside
        w = np.append(0.0, found.rays.T @ rng.dirichlet(np.full(16, 0.3)))[1:]
        w = w + 0.3 * rng.normal(size=6) * [mu, mu, 0.0, Y, X, mu * X]
        expected = caron(w, X, Y, mu / np.sqrt(2.0))
        if abs(found.depth(w)) > 1e-9:
            assert (found.depth(w) > 0.0) == expected
            inside += expected
    assert 100 < inside < 1900


@pytest.mark.parametrize("shape", ["rectangle", "edge", "point", "smooth", "smooth point", "triangle"])
def test_faces_and_rays_hold_the_same_wrenches(shape):
    friction = 0.0 if "smooth" in shape else 0.5
    corners = {
        "edge": np.array([[0.0, 0.1, 0.0], [0.0, -0.1, 0.0]]),
        "point": np.zeros((1, 3)),
        "smooth point": np.array([[0.03, -0.02, 0.0]]),
        "triangle": np.array([[0.1, 0.0, 0.0], [-0.05, 0.1, 0.0], [-0.05, -0.1, 0.0]]),
    }.get(shape, np.column_stack([contacts.SQUARE * [0.1, 0.05], np.zeros(4)]))
    R = np.diag([1.0, -1.0, -1.0])
    contact = contacts.make("patch", "surface", R, np.zeros(3), corners, np.eye(3), friction)
    found = wrench_set(contact)
    assert np.max(found.A @ found.rays.T) < 1e-12
    assert max(found.depth(-ray) for ray in found.rays) < -0.1  # it presses and does not pull
    rng = np.random.default_rng(1)
    compared = [0, 0]
    for _ in range(60):
        w = found.rays.T @ rng.dirichlet(np.full(len(found.rays), 0.2))
        assert found.depth(w) > -1e-12
        w = w + 0.05 * rng.normal(size=6)
        if abs(found.depth(w)) > 1e-6:
            inside = in_cone(found.rays, w)
            assert (found.depth(w) > 0.0) == inside
            compared[int(inside)] += 1
    assert compared[0] > 10
    # forces at the points give wrenches of the set
    for _ in range(20):
        f = np.concatenate(
            [[0.3 * friction * rng.uniform(-1, 1), 0.3 * friction * rng.uniform(-1, 1), 1.0] for _ in corners]
        )
        assert found.depth(patch_wrench(contact, f)) > -1e-12


def test_a_force_limit_is_a_face_and_a_grasp_may_pull():
    foot = contacts.surface_contact("foot", [0.0, 0.0, 0.0], max_force=300.0)
    found = wrench_set(foot)
    assert found.depth(np.array([0.0, 0.0, 299.0, 0.0, 0.0, 0.0])) == pytest.approx(1.0)
    assert found.depth(np.array([0.0, 0.0, 302.0, 0.0, 0.0, 0.0])) == pytest.approx(-2.0)
    grip = wrench_set(contacts.grasp_contact("grip", [0.0, 0.0, 1.0], max_force=200.0, max_moment=10.0))
    assert grip.depth(np.array([0.0, 0.0, -170.0, 0.0, 8.0, 0.0])) > 0.0
    assert grip.depth(np.array([0.0, 0.0, -201.0, 0.0, 0.0, 0.0])) < 0.0
    assert np.max(grip.A @ grip.vertices.T - grip.b[:, None]) < 1e-9
    assert np.linalg.norm(grip.vertices[:, :3], axis=1).max() <= 200.0 + 1e-9


def test_only_a_contact_has_a_cone():
    with pytest.raises(InputError, match="wrench_cone: contact: expected a Contact, not 'left_sole'"):
        wrench_set("left_sole")
