"""The rotation vector between two orientations."""

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
