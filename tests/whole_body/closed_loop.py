"""Closed loops: of one task on a robot whose accelerations are free, and of the whole-body program."""

from types import SimpleNamespace

import numpy as np

from mcplan.robot.terms import Terms
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import FRAMES


def follow(robot, task, q, v, seconds, dt=1e-3, before=lambda t: None):
    """Apply the smallest acceleration that the task asks for; return times and errors."""
    terms = Terms(robot, task.frames)
    times, errors = [], []
    for k in range(round(seconds / dt)):
        before(k * dt)
        terms.update(q, v)
        times.append(k * dt)
        errors.append(task.error(terms))
        A, b = task.rows(terms)
        v = v + dt * (np.linalg.pinv(A) @ b)
        q = robot.integrate(q, v, dt)
    return np.array(times), np.array(errors), q, v


def critically_damped(times, kp):
    """Return the decay from 1 at rest of ``e'' = -kp e - 2 sqrt(kp) e'``."""
    pole = np.sqrt(kp)
    return (1 + pole * times) * np.exp(-pole * times)


def rate(robot, terms, q, v, value, dt=1e-5):
    """Return the central difference of ``value(terms)`` along the motion with constant ``v``."""
    out = []
    for sign in (1, -1):
        terms.update(robot.integrate(q, v, sign * dt), v)
        out.append(np.array(value(terms)))
    terms.update(q, v)
    return (out[0] - out[1]) / (2 * dt)


def ticks(state, contacts, tasks, count, limits=(), before=lambda terms: None, dt=1e-3):
    """Solve the compiled program tick by tick and integrate; yield what each tick found, at its state."""
    q, v, terms = state.q.copy(), state.v.copy(), Terms(state.robot, FRAMES)
    terms.update(q, v)
    qp = WholeBodyQP(state.robot, contacts, tasks, QPSettings(dt=dt), limits=limits)
    for _ in range(count):
        terms.update(q, v)
        before(terms)
        qp.update(terms, contacts, tasks, limits=limits)
        s = qp.solve()
        assert s.ok, s.message
        yield SimpleNamespace(
            q=q, v=v, terms=terms, unknowns=s.unknowns, wrenches=s.wrenches, fallbacks=qp.fast.compiled.fallbacks
        )
        v = v + dt * s.vd
        q = state.robot.integrate(q, v, dt)
