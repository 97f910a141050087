"""Time taken by a function, in microseconds."""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike


def microseconds(function: Callable[[], object], calls: int, repeats: int, warm: int = 50) -> float:
    """Return the median over ``repeats`` of the mean time of ``calls`` calls, µs, after ``warm`` calls."""
    for _ in range(warm):
        function()
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        found.append((time.perf_counter() - begin) / calls * 1e6)
    return float(np.median(found))


def median(values: ArrayLike) -> float:
    """Return the median as a number."""
    return float(np.median(np.asarray(values)))
