"""The rotation vector between two orientations, and how quickly it changes."""

import math

from mcplan.core.algebra.rotation import rotation_log
from mcplan.core.jit import jit


@jit
def rotation_error(target, R, scratch, out):
    """Compute ``log(R* R')`` (3,): in world axes, rad, at most pi long, it turns ``R`` onto ``R*``.

    Parameters
    ----------
    target, R : (9,) row-major
    scratch : (13,)
    out : (3,)
    """
    for i in range(3):
        for j in range(3):
            scratch[3 * i + j] = (
                target[3 * i] * R[3 * j] + target[3 * i + 1] * R[3 * j + 1] + target[3 * i + 2] * R[3 * j + 2]
            )
    rotation_log(scratch[:9].reshape((3, 3)), scratch[9:13], out)


@jit
def rotation_error_rate(error, spin, out):
    """Compute ``-d/dt log(R* R')`` (3,), rad/s, of an orientation R that turns with ``spin`` (3,), world axes, rad/s.

    ::

        w + e x w / 2 + b e x (e x w),     e = log(R* R'),   b = (1 - (|e| / 2) cot(|e| / 2)) / |e|²

    Source: the inverse of the left Jacobian of SO(3), Barfoot, State Estimation for Robotics, 2017, eq. 7.77.
    """
    size = math.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
    b = 1.0 / 12.0 if size < 1e-4 else (1.0 - 0.5 * size / math.tan(0.5 * size)) / size**2
    x = error[1] * spin[2] - error[2] * spin[1]
    y = error[2] * spin[0] - error[0] * spin[2]
    z = error[0] * spin[1] - error[1] * spin[0]
    out[0] = spin[0] + 0.5 * x + b * (error[1] * z - error[2] * y)
    out[1] = spin[1] + 0.5 * y + b * (error[2] * x - error[0] * z)
    out[2] = spin[2] + 0.5 * z + b * (error[0] * y - error[1] * x)
