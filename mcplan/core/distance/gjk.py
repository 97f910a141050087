"""Distance between two separate cores: algorithm of Gilbert, Johnson and Keerthi 1988, on the difference ``A - B``.

The nearest point v of a simplex inside ``A - B`` is improved by the support point w in the direction ``-v``. As
``v'w / |v|`` is a lower bound of the distance, the search ends when both bounds meet, or as soon as the lower bound
exceeds the caller's margin.
"""

import math

from mcplan.core.distance.nearest_simplex import ORIGIN_INSIDE, nearest_of_simplex
from mcplan.core.distance.shape import SIMPLEX, difference_support
from mcplan.core.jit import jit_inline

SEPARATED, BEYOND, TOUCHING = range(3)
"""Result: the distance; that it exceeds the margin; that the cores touch or overlap."""

MAX_ITERATIONS = 100

RELATIVE_ERROR = 1e-10
"""Relative accuracy of the squared distance."""

TOUCHING_DISTANCE = 1e-9
"""m: cores nearer than this count as touching."""


@jit_inline
def separate(shapes, a, b, margin, work, out):
    """Write the distance of two cores, the unit normal from b to a and A's nearest point to ``out[:7]``, b's frame.

    Parameters
    ----------
    shapes : Shapes.
    a, b : shapes, neither a half-space.
    margin : m, larger distances are not computed.
    work : scratch; row RELATIVE holds the pose of a in b's frame.
    out : (10,) written if the result is SEPARATED.

    Returns
    -------
    SEPARATED, BEYOND or TOUCHING.
    """
    x, y, z = work[0, 9], work[0, 10], work[0, 11]
    if x * x + y * y + z * z == 0.0:
        x = 1.0
    difference_support(shapes, a, b, work, SIMPLEX, -x, -y, -z)
    work[SIMPLEX, 6] = 1.0
    count = 1
    x, y, z = work[SIMPLEX, 0], work[SIMPLEX, 1], work[SIMPLEX, 2]
    px, py, pz = work[SIMPLEX, 3], work[SIMPLEX, 4], work[SIMPLEX, 5]
    square = x * x + y * y + z * z
    for _ in range(MAX_ITERATIONS):
        if square <= TOUCHING_DISTANCE * TOUCHING_DISTANCE:
            return TOUCHING
        row = SIMPLEX + count
        difference_support(shapes, a, b, work, row, -x, -y, -z)
        bound = x * work[row, 0] + y * work[row, 1] + z * work[row, 2]
        if bound > 0.0 and margin >= 0.0 and bound * bound > margin * margin * square:
            return BEYOND
        if bound > 0.0 and margin < 0.0:
            return BEYOND
        if square - bound <= RELATIVE_ERROR * square:
            break
        count = nearest_of_simplex(work, count + 1)
        if count == ORIGIN_INSIDE:
            return TOUCHING
        u, v, w, fx, fy, fz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(SIMPLEX, SIMPLEX + count):
            weight = work[i, 6]
            u += weight * work[i, 0]
            v += weight * work[i, 1]
            w += weight * work[i, 2]
            fx += weight * work[i, 3]
            fy += weight * work[i, 4]
            fz += weight * work[i, 5]
        new_square = u * u + v * v + w * w
        if new_square >= square:  # rounding prevents further progress
            break
        x, y, z, px, py, pz, square = u, v, w, fx, fy, fz, new_square
        if count == 4:
            return TOUCHING
    distance = math.sqrt(square)
    out[0] = distance
    out[1] = x / distance
    out[2] = y / distance
    out[3] = z / distance
    out[4] = px
    out[5] = py
    out[6] = pz
    return SEPARATED
