"""Knots of a motion between two postures: values, guided patches, smoothing, and joint limits between knots."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mcplan.motion.spline import Spline, minimum_jerk
from mcplan.robot.pose import Pose
from mcplan.robot.robot import Robot

MAX_DEFICIT_M = 5e-3
"""m, rad: a motion with a greater deficit of clearance or contacts is in collision."""

ObjectPoses = Callable[[float], Mapping[str, Pose]]
"""Poses (R, p) of objects that move along, by the share of the path."""


class PatchPath(NamedTuple):
    """A guided patch: its positions (k, 3), and its rotations (3, 3) at the two ends; in between it may turn.

    ``halves`` are its positions halfway between knots (k - 1, 3), checked where they are given.
    """

    patch: str
    places: np.ndarray
    turns: tuple[np.ndarray, np.ndarray]
    halves: np.ndarray | None = None

    def away(self, k: int) -> tuple[float, float]:
        """Return the distances of a position from both ends (m)."""
        first, last = (float(np.linalg.norm(self.places[k] - self.places[end])) for end in (0, -1))
        return first, last


class PathViolation(NamedTuple):
    """The greatest violation along a path: the share of the path, and the two bodies that come too near.

    There are no bodies where contacts or balance are violated.
    """

    share: float
    bodies: tuple[str, ...]


NO_VIOLATION = PathViolation(0.0, ())


@dataclass(frozen=True)
class Knots:
    """Postures along a motion, its ends included.

    Attributes
    ----------
    q : (k, nq); smoothed at last, so that contacts are kept to millimetres: references need no more, but no jerks.
    missed : greatest deficit of clearance (m), or ``unsmoothed`` where that is more; 0 where there is none.
    unsmoothed : greatest deficit of contacts or clearance before the smoothing (m, rad).
    worst : where that is.
    strayed : how far a guided patch gets from its path (m).
    check_separation : whether the worst bodies keep more than their clearance at the ends.
    above : least height of the guided patch above the lowest path, by the deficit of lower ones (m).
    """

    q: np.ndarray
    missed: float
    unsmoothed: float
    worst: PathViolation = NO_VIOLATION
    strayed: float = 0.0
    check_separation: bool = True
    above: float = 0.0


MAX_INWARD_PASSES = 5
"""Times that knots are moved away from joint limits."""

LIMIT_MARGIN_RAD = 1e-3
"""rad or m: distance from joint limits that the curve keeps."""

CHECKS_PER_PIECE = 16
"""Places of a piece between two knots at which that is looked at. A joint that turns back by 0.4 rad from knot to knot
swings by 2 mrad higher between quarters than at them, and by a sixteenth of that between sixteenths."""


def smooth_offsets(robot: Robot, guides: np.ndarray, q: np.ndarray, passes: int, ease: int) -> np.ndarray:
    """Return by what postures differ from their guides (k, nv), smoothed along the path; the ends are kept.

    ``S off + S (off - S off)``: what a filter S takes off a hill is filtered and given back, or a foot that is
    lifted high would be let down by centimetres.

    Source: Tukey, Exploratory Data Analysis, 1977 (twicing).
    """
    off = np.array([robot.difference(guide, here) for guide, here in zip(guides, q, strict=True)])
    once = filtered(off, passes)
    off = once + filtered(off - once, passes)
    part = np.clip(np.minimum(np.arange(len(off)), np.arange(len(off))[::-1]) / ease, 0.0, 1.0)[:, None]
    return off * part**3 * (10 - 15 * part + 6 * part**2)


def draw_inside(robot: Robot, q: np.ndarray) -> None:
    """Draw knots (k, nq) inwards where the curve through them would take joints beyond their limits in between.

    It swings beyond its knots where they turn sharply near a limit. The ends stay.
    """
    last, limits = len(q) - 1, robot.limits
    powers = (np.arange(CHECKS_PER_PIECE) / CHECKS_PER_PIECE)[:, None] ** np.arange(6)
    for _ in range(MAX_INWARD_PASSES):
        joints = Spline(np.arange(last + 1.0), q[:, 7:])
        values = np.einsum("sm,kmn->ksn", powers, joints.coefficients)  # all along each piece
        over = np.maximum(values - limits.upper + LIMIT_MARGIN_RAD, 0.0) - np.maximum(
            limits.lower + LIMIT_MARGIN_RAD - values, 0.0
        )
        if not over.any():
            break
        piece, share, _ = np.nonzero(over)
        change = np.zeros_like(q[:, 7:])
        for k, part in sorted(set(zip(piece.tolist(), share.tolist(), strict=True))):
            for knot in {k, k + 1 if part else k}:
                change[knot] = np.where(np.abs(over[k, part]) > np.abs(change[knot]), over[k, part], change[knot])
        q[1:-1, 7:] -= 1.2 * change[1:-1]


def filtered(values: np.ndarray, passes: int) -> np.ndarray:
    """Return values (k, n) after so many passes of the filter; beyond their ends they go on as a line does."""
    for _ in range(passes):
        mirrored = np.vstack([2 * values[0] - values[1], values, 2 * values[-1] - values[-2]])
        values = (mirrored[:-2] + 2 * values + mirrored[2:]) / 4
    return values


def straight_knots(robot: Robot, q0: np.ndarray, q1: np.ndarray, count: int) -> np.ndarray:
    """Return the knots (count + 1, nq) of the straight minimum-jerk motion from q0 to q1, evenly spaced in time."""
    step = robot.difference(q0, q1)
    return np.array([robot.integrate(q0, step, minimum_jerk(s)[0]) for s in np.linspace(0.0, 1.0, count + 1)])
