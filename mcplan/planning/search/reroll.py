"""What a seed changes in a search: the order of candidates that are nearly as good, and where their lattices lie.

The search itself draws nothing: equal potentials are taken in the order in which they were queued. That is seed 0. Any
other seed adds a little noise to the potential of each candidate as it is queued, and shifts each patch's lattice of
places, both from a generator of its own: the same seed gives the same plan, another one may find another plan, or one
where the first found none.
"""

import numpy as np

NOISE = 0.1
"""Moves: most that a candidate's potential is raised by. Less than what tells a step in the right direction from one in
place, more than what places beside each other differ by."""

SHIFT = 0.25
"""Part of its spacing by which a lattice is shifted at most, either way: places between the usual ones."""


class Reroll:
    """The draws of one planning.

    Parameters
    ----------
    seed : 0 draws nothing: no noise, no shift.
    """

    def __init__(self, seed: int = 0):
        self._rng = np.random.default_rng(seed) if seed else None

    def noise(self) -> float:
        """Return what the next candidate's potential is raised by (moves)."""
        return 0.0 if self._rng is None else NOISE * float(self._rng.random())

    def shift(self) -> np.ndarray:
        """Return by which part of its spacing (2,) the next lattice is shifted, along both axes of its support."""
        return np.zeros(2) if self._rng is None else self._rng.uniform(-SHIFT, SHIFT, 2)
