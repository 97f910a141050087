"""The two beams that rungs hang between: drawn where bars form a ladder, so that they do not float; never modelled."""

from collections.abc import Sequence

import numpy as np

from mcplan.scene.environment import Bar

LEAST = 3
"""Bars that make a ladder."""

OFF = 0.005
"""m: how far the ends of a ladder's rungs may be from one line, and their lengths from each other."""

BEYOND = 0.12
"""m: how far a stile goes on after its last rung."""


def stiles(bars: Sequence[Bar]) -> list[np.ndarray]:
    """Return the stiles (2, 3) of all ladders: the lines through the ends of at least three parallel, equal bars.

    Rails, which follow each other along their own direction, are no ladder.
    """
    found: list[np.ndarray] = []
    left = [np.asarray(bar.ends, dtype=float) for bar in bars]
    while len(left) >= LEAST:
        first = left.pop(0)
        along = first[1] - first[0]
        alike = [first, *(ends for ends in left if np.abs(ends[1] - ends[0] - along).max() < OFF)]
        if len(alike) < LEAST:
            continue
        sides = [_line(np.array([ends[k] for ends in alike])) for k in range(2)]
        up = sides[0] is not None and sides[0][1] - sides[0][0]
        if sides[0] is None or sides[1] is None or abs(up @ along) > 0.3 * np.linalg.norm(up) * np.linalg.norm(along):
            continue
        found += [side for side in sides if side is not None]
        left = [ends for ends in left if not any(ends is other for other in alike)]
    return found


def _line(points: np.ndarray) -> np.ndarray | None:
    """Return the ends (2, 3) of the line through points (k, 3), gone on by `BEYOND`; None where they are on none."""
    middle = points.mean(axis=0)
    direction = np.linalg.svd(points - middle)[2][0]
    along = (points - middle) @ direction
    if np.abs(points - middle - np.outer(along, direction)).max() > OFF or np.ptp(along) < OFF:
        return None
    return middle + np.outer([along.min() - BEYOND, along.max() + BEYOND], direction)
