"""Bounds on joint accelerations that keep positions and velocities within their limits, and never contradict."""

import numpy as np
from numpy.typing import NDArray


def viable_acceleration(
    q: NDArray[np.float64],
    v: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    velocity: NDArray[np.float64],
    dt: float,
    braking: NDArray[np.float64] | float,
    ceiling: NDArray[np.float64] | float,
    recovery: float = 0.1,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the accelerations after which a joint can still be stopped before its limit.

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
    q, v : (n,) positions and velocities, rad or m, per second.
    lower, upper, velocity : (n,) limits, infinite where absent.
    dt : control period, s.
    braking : ``b``, rad/s² (m/s²): what the torques can always do.
    ceiling : largest acceleration asked for, not less than ``braking``.
    recovery : time constant of the return from beyond a limit, s.

    Returns
    -------
    lower and upper bound of the acceleration, (n,) each, rad/s².

    Source: the set of viable states of Del Prete 2018 (joint position and velocity bounds in discrete time).
    """
    b = np.broadcast_to(np.asarray(braking, dtype=np.float64), q.shape)
    highest = np.minimum(velocity, _next_velocity(upper - q, b, dt, recovery))
    lowest = np.maximum(-velocity, -_next_velocity(q - lower, b, dt, recovery))
    lowest = np.minimum(lowest, highest)
    return np.clip((lowest - v) / dt, -ceiling, ceiling), np.clip((highest - v) / dt, -ceiling, ceiling)


def _next_velocity(distance, braking, dt: float, recovery: float):
    """Largest velocity toward a limit at ``distance`` after the next step."""
    inside = np.clip(distance, 0.0, 1e12)
    # the same root as in the docstring, written so that a small distance loses no digits
    root = 2 * inside / (dt + np.sqrt(dt * dt + 2 * inside / braking))
    return np.where(distance < 0, distance / recovery, root)
