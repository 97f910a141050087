"""A robot and free bodies as one system, against finite differences and rigid-body theory."""

import numpy as np
import pytest

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.robot.robot_file import load_robot
from mcplan.robot.system import FreeBody, System, SystemTerms, relative_frame


@pytest.fixture(scope="module")
def system():
    inertia = np.array([[2.0, 0.1, -0.2], [0.1, 1.5, 0.05], [-0.2, 0.05, 1.0]])
    return System(load_robot("hrp2"), (FreeBody("crate", 20.0, np.array([0.1, -0.05, 0.2]), inertia),))


@pytest.fixture
def state(system):
    rng = np.random.default_rng(3)
    quat = rng.normal(size=4)
    pose = np.concatenate([rng.normal(size=3), quat / np.linalg.norm(quat)])
    return np.concatenate([system.robot.random_configuration(1), pose]), rng.normal(size=system.nv)


def moved(system, q, v, dt):
    """Both parts of the system after dt at the velocity v."""
    robot = system.robot
    body = np.concatenate([q[robot.nq :], np.zeros(robot.n)])
    step = np.concatenate([v[robot.nv :], np.zeros(robot.n)])
    return np.concatenate([robot.integrate(q[: robot.nq], v[: robot.nv], dt), robot.integrate(body, step, dt)[:7]])


def test_a_free_body_falls_and_keeps_its_angular_momentum(system, state):
    q, v = state
    terms, body, n = SystemTerms(system), system.bodies[0], system.robot.nv
    terms.update(q, v)
    vd = -np.linalg.solve(terms.M, terms.h)[n:]
    R, w, alpha = terms.frame("crate").R, v[n + 3 :], vd[3:]
    r = R @ body.com
    fall = vd[:3] + np.cross(alpha, r) + np.cross(w, np.cross(w, r))
    assert np.allclose(fall, [0, 0, -GRAVITY], atol=1e-9)
    inertia = R @ body.inertia @ R.T
    assert np.allclose(inertia @ alpha + np.cross(w, inertia @ w), 0, atol=1e-9)
    assert np.allclose(terms.M[:n, n:], 0)
    assert np.allclose(terms.M, terms.M.T, rtol=0, atol=1e-12)


def test_a_relative_frame_moves_as_its_jacobian_and_bias_say(system, state):
    q, v = state
    terms = SystemTerms(system, [], [("left_hand", "crate")])
    name, dt = relative_frame("left_hand", "crate"), 1e-5

    def place(q):
        """Position of the hand in the crate's axes."""
        terms.update(q, v)
        return terms.frame("crate").R.T @ (terms.frame("left_hand").p - terms.frame("crate").p)

    there = (place(moved(system, q, v, dt)) - place(moved(system, q, v, -dt))) / (2 * dt)
    terms.update(q, v)
    frame, R = terms.frame(name), terms.frame("crate").R
    assert np.allclose(frame.velocity, frame.J @ v, atol=1e-12)
    assert np.allclose(R.T @ frame.velocity[:3], there, atol=1e-7)


def test_what_is_rigidly_carried_has_no_relative_acceleration(system, state):
    q, v = state
    terms = SystemTerms(system, [], [("left_hand", "crate")])
    terms.update(q, v)
    hand, crate, n = terms.frame("left_hand"), terms.frame("crate"), system.robot.nv
    r, dt = hand.p - crate.p, 1e-6
    # let the crate move as the hand does, and choose the crate's acceleration so that it goes on doing so
    v[n:] = np.concatenate([hand.velocity[:3] - np.cross(hand.velocity[3:], r), hand.velocity[3:]])
    vd = np.zeros(system.nv)
    vd[:n] = np.random.default_rng(5).normal(size=n)

    def hand_velocity(t):
        ahead = moved(system, q, v + t / 2 * vd, t)
        terms.update(ahead, v + t * vd)
        return terms.frame("left_hand").velocity.copy()

    a = (hand_velocity(dt) - hand_velocity(-dt)) / (2 * dt)
    w = v[n + 3 :]
    vd[n:] = np.concatenate([a[:3] - np.cross(a[3:], r) - np.cross(w, np.cross(w, r)), a[3:]])
    terms.update(q, v)
    frame = terms.frame(relative_frame("left_hand", "crate"))
    assert np.abs(frame.velocity).max() < 1e-12
    assert np.abs(frame.J @ vd + frame.bias).max() < 1e-4
