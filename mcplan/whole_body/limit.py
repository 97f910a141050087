"""Inequalities on the accelerations that are added to the whole-body program."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mcplan.model.terms import Terms

Array = NDArray[np.float64]


class Limit(Protocol):
    """Rows ``A vd >= b``; their number never changes, so that the declared problem stays the same."""

    @property
    def dimension(self) -> int:
        """Number of rows."""

    @property
    def frames(self) -> tuple[str, ...]:
        """Frames whose terms it reads."""

    @property
    def names(self) -> Sequence[str]:
        """What each row keeps, for the explanation of a failure."""

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A (m, nv)`` and ``b (m,)``."""
