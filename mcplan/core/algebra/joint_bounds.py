"""Bounds on joint accelerations that keep positions and velocities within their limits, and never contradict."""

import math

from mcplan.core.jit import jit

RECOVERY = 0.1
"""s: default time constant of the return from beyond a limit."""

STOP_FACTOR = 2.0
"""A joint in a state that is not viable brakes with this multiple of the least deceleration that stops it before its
limit, so that it becomes viable again earlier."""


@jit
def next_velocity(distance, speed, deceleration, dt, recovery):
    """Return the largest velocity toward a limit at ``distance`` (d) after the next step: see ``viable_acceleration``.

    ``-b dt + sqrt((b dt)^2 + 2 b d)``, with b the ``deceleration``, written so that a small distance loses no digits.
    At least the velocity to which braking reduces ``speed`` with ``STOP_FACTOR`` times the least deceleration that
    stops before the limit.
    """
    if distance < 0.0:
        return distance / recovery
    if distance > 1e12:
        distance = 1e12
    allowed = 2.0 * distance / (dt + math.sqrt(dt * dt + 2.0 * distance / deceleration))
    if speed <= allowed:
        return allowed
    step = dt * speed
    return max(allowed, speed - STOP_FACTOR * step * speed / (distance + math.sqrt(distance * distance + step * step)))


@jit
def viable_acceleration(q, v, lower, upper, velocity, dt, deceleration, max_acceleration, recovery):
    """Return the smallest and largest acceleration after which a joint can still be stopped before its limit.

    One step is ``v+ = v + dt a``, ``q+ = q + dt v+``. From ``(q+, v+)`` the joint stops with the deceleration ``b``
    within ``v+^2 / (2 b)``, so the largest allowed next velocity solves ``dt v+ + v+^2 / (2 b) = d``,
    ``d = upper - q``::

        v_max = min(velocity, -b dt + sqrt((b dt)^2 + 2 b d))      (d >= 0)
        v_max = d / recovery                                         (d < 0: beyond the limit, come back)

    and likewise below; the bounds are ``(v_min - v) / dt <= a <= (v_max - v) / dt``. Inside the limits
    ``v_min <= 0 <= v_max``, so there is always an acceleration. A viable state, from which the joint can be stopped
    with ``b``, is followed by a viable one, so the bounds never require braking harder than ``b``.

    In a state that is not viable (a foot that has slipped off, an impact) an immediate stop has no advantage, and
    contacts may contradict it. Then the bounds require ``STOP_FACTOR`` times the least constant deceleration that
    stops the joint in time, ``v^2 / (d + sqrt(d^2 + (dt v)^2))``. A velocity beyond its limit has to return within
    ``recovery``, or with ``b``. The required acceleration is at most ``max_acceleration``.

    Parameters
    ----------
    q, v : position and velocity, rad or m, per second
    lower, upper, velocity : limits, infinite where absent
    dt : control period, s
    deceleration : ``b``, rad/s² (m/s²): deceleration that the torques can always produce
    max_acceleration : largest required acceleration, not less than ``deceleration``
    recovery : time constant of the return from beyond a limit, s

    Source: the set of viable states of Del Prete 2018 (joint position and velocity bounds in discrete time).
    """
    excess = abs(v) - velocity
    if excess > 0.0:
        velocity = max(velocity, abs(v) - dt * max(deceleration, excess / recovery))
    highest = min(velocity, next_velocity(upper - q, v, deceleration, dt, recovery))
    lowest = min(max(-velocity, -next_velocity(q - lower, -v, deceleration, dt, recovery)), highest)
    low, high = (lowest - v) / dt, (highest - v) / dt
    return min(max(low, -max_acceleration), max_acceleration), min(max(high, -max_acceleration), max_acceleration)
