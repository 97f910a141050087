"""Is an array of numbers fit for the kernels? In one crossing, because NumPy takes as long as the dynamics."""

import math

from mcplan.core.jit import jit

SOUND, NOT_FINITE, NOT_A_UNIT_QUATERNION = range(3)

QUATERNION_TOLERANCE = 1e-6
"""How far from 1 the length of a given base quaternion may be."""


@jit
def check(array, is_configuration):
    """Return SOUND, NOT_FINITE or, for a configuration (nq,), NOT_A_UNIT_QUATERNION."""
    for k in range(len(array)):
        if not math.isfinite(array[k]):
            return NOT_FINITE
    if is_configuration:
        length = math.sqrt(array[3] ** 2 + array[4] ** 2 + array[5] ** 2 + array[6] ** 2)
        if abs(length - 1.0) > QUATERNION_TOLERANCE:
            return NOT_A_UNIT_QUATERNION
    return SOUND
