"""Whether all numbers of a vector are finite, cheap enough to ask at every step."""

import math

from mcplan.core.jit import jit


@jit
def all_finite(x):
    """Say whether no entry of x (n,) is infinite or not a number."""
    bad = 0
    for i in range(len(x)):
        if not math.isfinite(x[i]):
            bad += 1
    return bad == 0
