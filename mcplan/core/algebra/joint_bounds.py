"""Bounds on joint accelerations that keep positions and velocities within their limits, and never contradict."""

import math

from mcplan.core.jit import jit

RECOVERY = 0.1
"""s: usual time constant of the return from beyond a limit."""


@jit
def next_velocity(distance, braking, dt, recovery):
    """Return the largest velocity toward a limit at ``distance`` after the next step: see ``viable_acceleration``.

    ``-b dt + sqrt((b dt)^2 + 2 b d)``, written so that a small distance loses no digits.
    """
    if distance < 0.0:
        return distance / recovery
    if distance > 1e12:
        distance = 1e12
    return 2.0 * distance / (dt + math.sqrt(dt * dt + 2.0 * distance / braking))


@jit
def viable_acceleration(q, v, lower, upper, velocity, dt, braking, ceiling, recovery):
    """Return the least and greatest acceleration after which a joint can still be stopped before its limit.

    One step is ``v+ = v + dt a``, ``q+ = q + dt v+``. From ``(q+, v+)`` the joint stops with the deceleration ``b``
    within ``v+^2 / (2 b)``, so the largest velocity that is allowed next solves ``dt v+ + v+^2 / (2 b) = d``,
    ``d = upper - q``::

        v_max = min(velocity, -b dt + sqrt((b dt)^2 + 2 b d))      (d >= 0)
        v_max = d / recovery                                         (d < 0: beyond the limit, come back)

    and likewise below; the bounds are ``(v_min - v) / dt <= a <= (v_max - v) / dt``. Inside the limits
    ``v_min <= 0 <= v_max``, so there is always an acceleration; and a state from which the joint can be stopped with
    ``b`` is followed by one again, so the bounds never ask for a harder braking than ``b``. A state that is not viable
    (a disturbance) is asked for ``ceiling`` at most.

    Parameters
    ----------
    q, v : position and velocity, rad or m, per second
    lower, upper, velocity : limits, infinite where absent
    dt : control period, s
    braking : ``b``, rad/s² (m/s²): what the torques can always do
    ceiling : largest acceleration asked for, not less than ``braking``
    recovery : time constant of the return from beyond a limit, s

    Source: the set of viable states of Del Prete 2018 (joint position and velocity bounds in discrete time).
    """
    highest = min(velocity, next_velocity(upper - q, braking, dt, recovery))
    lowest = min(max(-velocity, -next_velocity(q - lower, braking, dt, recovery)), highest)
    low, high = (lowest - v) / dt, (highest - v) / dt
    return min(max(low, -ceiling), ceiling), min(max(high, -ceiling), ceiling)
