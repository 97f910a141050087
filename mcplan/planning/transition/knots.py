"""Knots (waypoints) of a motion between two postures: values, guided patches, smoothing, joint limits between knots."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mcplan.motion.spline import Spline, minimum_jerk
from mcplan.robot.pose import Pose
from mcplan.robot.robot import Robot

MAX_DEFICIT_M = 5e-3
"""A motion with a greater deficit of clearance, or error of its contacts (m, rad), counts as in collision."""

ObjectPoses = Callable[[float], Mapping[str, Pose]]
"""Function from a share of the path (0 to 1) to the poses (R, p) of moved objects by name."""


class PatchPath(NamedTuple):
    """Path of a guided patch: its positions (k, 3) at the knots, and rotations (3, 3) at both ends.

    Between the ends the rotation is free. ``midpoints`` (k - 1, 3) are positions halfway between knots, for checks.
    """

    patch: str
    positions: np.ndarray
    end_rotations: tuple[np.ndarray, np.ndarray]
    midpoints: np.ndarray | None = None

    def end_distances(self, k: int) -> tuple[float, float]:
        """Return the distances of position k from both ends (m)."""
        first, last = (float(np.linalg.norm(self.positions[k] - self.positions[end])) for end in (0, -1))
        return first, last


class PathViolation(NamedTuple):
    """The greatest violation along a path: the share of the path at which it occurs, and the two bodies that collide.

    ``bodies`` is empty if contacts or balance are violated.
    """

    share: float
    bodies: tuple[str, ...]


NO_VIOLATION = PathViolation(0.0, ())
"""Value for a path without violation."""


@dataclass(frozen=True)
class Knots:
    """Postures along a motion, its ends included.

    Attributes
    ----------
    q : (k, nq) smoothed postures. Contacts are accurate to millimetres only: as references they may deviate, but must
        have no jerks.
    missed : greatest clearance deficit (m), or ``unsmoothed`` if that is greater; 0 if there is none.
    unsmoothed : greatest contact error or clearance deficit before smoothing (m, rad).
    worst : share of the path and bodies of the greatest deficit.
    path_error : largest distance of a guided patch from its path (m).
    check_separation : whether the desired clearance of the worst pair exceeds its distance at both ends.
    min_extra_lift : lift height beyond the clearance (m); the deficits of lower paths exclude a swing below it.
    """

    q: np.ndarray
    missed: float
    unsmoothed: float
    worst: PathViolation = NO_VIOLATION
    path_error: float = 0.0
    check_separation: bool = True
    min_extra_lift: float = 0.0


MAX_INWARD_PASSES = 5
"""Maximum number of passes that move knots away from joint limits."""

LIMIT_MARGIN_RAD, ROUNDING_RAD = 1e-3, 1e-9
"""Distance (rad, or m of a sliding joint) that the curve keeps from joint limits; bound on the rounding of samples."""

CHECKS_PER_PIECE = 16
"""Samples per piece between two knots at which joint limits are checked. Where a joint reverses by 0.4 rad from knot to
knot, the curve exceeds samples at quarters of the piece by 2 mrad, and samples at sixteenths by 1/16 of that."""


def smoothed(robot: Robot, guides: np.ndarray, q: np.ndarray, passes: int, ease: int) -> np.ndarray:
    """Return postures (k, nq) with their offsets from their guides smoothed along the path; the ends are kept.

    ``S x + S (x - S x)``: the residual of the filter S, applied to the offsets x, is filtered and added. S alone would
    lower the peak of a foot that is lifted high by centimetres.

    Source: Tukey, Exploratory Data Analysis, 1977 (twicing).

    Parameters
    ----------
    guides, q : (k, nq) postures.
    passes : passes of the filter (1, 2, 1) / 4 in S.
    ease : number of knots at either end over which the offsets grow from zero, with a minimum-jerk profile.
    """
    offsets = robot.difference(guides, q)
    smooth = filtered(offsets, passes)
    offsets = smooth + filtered(offsets - smooth, passes)
    part = np.clip(np.minimum(np.arange(len(offsets)), np.arange(len(offsets))[::-1]) / ease, 0.0, 1.0)[:, None]
    return robot.integrate(guides, offsets * part**3 * (10 - 15 * part + 6 * part**2), 1.0)


def move_off_limits(robot: Robot, q: np.ndarray) -> None:
    """Move knots (k, nq), in place, away from joint limits that the curve exceeds between them; the ends are kept.

    The curve overshoots where a joint reverses sharply near a limit.
    """
    limits, clear = robot.limits, LIMIT_MARGIN_RAD + ROUNDING_RAD
    for _ in range(MAX_INWARD_PASSES):
        values = _curve_map(len(q)) @ q[:, 7:]
        if ((values > limits.lower + clear) & (values < limits.upper - clear)).all():
            break
        values = _curve_samples(q[:, 7:])
        excess = np.maximum(values - limits.upper + LIMIT_MARGIN_RAD, 0.0) - np.maximum(
            limits.lower + LIMIT_MARGIN_RAD - values, 0.0
        )
        if not excess.any():
            break
        piece, sample_index, _ = np.nonzero(excess)
        correction = np.zeros_like(q[:, 7:])
        for k, part in sorted(set(zip(piece.tolist(), sample_index.tolist(), strict=True))):
            for knot in {k, k + 1 if part else k}:
                correction[knot] = np.where(
                    np.abs(excess[k, part]) > np.abs(correction[knot]), excess[k, part], correction[knot]
                )
        q[1:-1, 7:] -= 1.2 * correction[1:-1]


def _curve_samples(values: np.ndarray) -> np.ndarray:
    """Return samples (k - 1, CHECKS_PER_PIECE, n) of each piece of the curve through values (k, n)."""
    powers = (np.arange(CHECKS_PER_PIECE) / CHECKS_PER_PIECE)[:, None] ** np.arange(6)
    return np.einsum("sm,kmn->ksn", powers, Spline(np.arange(float(len(values))), values).coefficients)


@lru_cache
def _curve_map(count: int) -> np.ndarray:
    """Return the map (samples, count) from the values of knots to the samples; they differ by rounding."""
    return _curve_samples(np.eye(count)).reshape(-1, count)


def filtered(values: np.ndarray, passes: int) -> np.ndarray:
    """Return values (k, n) after some passes of the filter (1, 2, 1) / 4, extrapolated linearly at both ends."""
    extended = np.empty((len(values) + 2, values.shape[1]))
    for _ in range(passes):
        extended[0], extended[1:-1], extended[-1] = 2 * values[0] - values[1], values, 2 * values[-1] - values[-2]
        values = (extended[:-2] + 2 * values + extended[2:]) / 4
    return values


def straight_knots(robot: Robot, q0: np.ndarray, q1: np.ndarray, count: int) -> np.ndarray:
    """Return the knots (count + 1, nq) of the straight minimum-jerk motion from q0 to q1, evenly spaced in time."""
    step = robot.difference(q0, q1)
    shares = np.array([minimum_jerk(s)[0] for s in np.linspace(0.0, 1.0, count + 1)])
    return robot.integrate(q0, shares[:, None] * step, 1.0)
