"""Bounds on joint accelerations that keep positions and velocities within their limits, and never contradict."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcplan.core import joint_bounds as core


def viable_acceleration(
    q: NDArray[np.float64],
    v: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    velocity: NDArray[np.float64],
    dt: float,
    braking: ArrayLike,
    ceiling: ArrayLike,
    recovery: float = core.RECOVERY,
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
    braking : ``b``, rad/s² (m/s²): what the torques can always do; one number or (n,).
    ceiling : largest acceleration asked for, not less than ``braking``; one number or (n,).
    recovery : time constant of the return from beyond a limit, s.

    Returns
    -------
    lower and upper bound of the acceleration, (n,) each, rad/s².

    Source: the set of viable states of Del Prete 2018 (joint position and velocity bounds in discrete time).
    """
    given = (q, v, lower, upper, velocity, braking, ceiling)
    shape = np.shape(q)
    arrays = [np.array(np.broadcast_to(array, shape), dtype=np.float64) for array in given]
    low, high = np.empty(shape), np.empty(shape)
    core.viable_accelerations(*arrays[:5], float(dt), *arrays[5:], float(recovery), low, high)
    return low, high
