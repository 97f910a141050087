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
    """Return the bounds of one joint's acceleration; ``qp.joint_bounds`` has the mathematics."""
    highest = min(velocity, next_velocity(upper - q, braking, dt, recovery))
    lowest = min(max(-velocity, -next_velocity(q - lower, braking, dt, recovery)), highest)
    low, high = (lowest - v) / dt, (highest - v) / dt
    return min(max(low, -ceiling), ceiling), min(max(high, -ceiling), ceiling)


@jit
def viable_accelerations(q, v, lower, upper, velocity, dt, braking, ceiling, recovery, low, high):
    """Fill the bounds of many joints, (n,) each, with ``braking`` and ``ceiling`` per joint."""
    for i in range(len(q)):
        low[i], high[i] = viable_acceleration(
            q[i], v[i], lower[i], upper[i], velocity[i], dt, braking[i], ceiling[i], recovery
        )
