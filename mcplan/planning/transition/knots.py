"""Knots of a motion from one posture to another, patches that are led along it, and where it misses what is asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mcplan.model.pose import Pose

BARRED = 5e-3
"""m, rad: a motion that misses its distances or contacts by more is none: its bodies would touch."""

ObjectPoses = Callable[[float], Mapping[str, Pose]]
"""Poses (R, p) of objects that move along, by the share of the way that has passed."""


class Led(NamedTuple):
    """A patch that is led: its positions (k, 3), and its rotations (3, 3) at the two ends; on the way it may turn.

    Its positions halfway between knots (k - 1, 3) are looked at where they are given.
    """

    patch: str
    places: np.ndarray
    turns: tuple[np.ndarray, np.ndarray]
    halves: np.ndarray | None = None

    def away(self, k: int) -> tuple[float, float]:
        """Return the distances of a position from both ends (m)."""
        first, last = (float(np.linalg.norm(self.places[k] - self.places[end])) for end in (0, -1))
        return first, last


class Worst(NamedTuple):
    """Where a way misses most: which part of it has passed by then, and the two bodies that come too near.

    There are no bodies where it is contacts or balance that are missed.
    """

    share: float
    bodies: tuple[str, ...]


NOWHERE = Worst(0.0, ())


@dataclass(frozen=True)
class Knots:
    """Postures along a motion, its ends included.

    Attributes
    ----------
    q : (k, nq); smoothed at last, so that contacts are kept to millimetres: references need no more, but no jerks.
    missed : by how much the worst misses its clearance (m), or ``unsmoothed`` where that is more; 0 when none does.
    unsmoothed : by how much it missed its contacts or its clearance before the smoothing (m, rad).
    worst : where that is.
    strayed : how far a led patch gets from its path (m).
    eager : whether what misses most may be two bodies that are to part more than they do at the ends.
    above : how much higher than over the lowest way the led patch is to go at least, by what lower ways miss (m).
    """

    q: np.ndarray
    missed: float
    unsmoothed: float
    worst: Worst = NOWHERE
    strayed: float = 0.0
    eager: bool = True
    above: float = 0.0
