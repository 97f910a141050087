"""Smoothing of motions that are given by knots, and joints drawn inside their limits between them."""

import numpy as np

from mcplan.model.robot import Robot
from mcplan.motion.quintic import minimum_jerk
from mcplan.motion.spline import Spline

INWARDS, INSIDE = 5, 1e-3
"""Times that knots are drawn away from joint limits, and how far inside them the curve is to stay (rad or m)."""

LOOKED = 16
"""Places of a piece between two knots at which that is looked at. A joint that turns back by 0.4 rad from knot to knot
swings by 2 mrad higher between quarters than at them, and by a sixteenth of that between sixteenths."""


def smooth_offsets(robot: Robot, guides: np.ndarray, q: np.ndarray, passes: int, ease: int) -> np.ndarray:
    """Return by what postures differ from their guides (k, nv), smoothed along the way; the ends are kept.

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
    powers = (np.arange(LOOKED) / LOOKED)[:, None] ** np.arange(6)
    for _ in range(INWARDS):
        joints = Spline(np.arange(last + 1.0), q[:, 7:])
        values = np.einsum("sm,kmn->ksn", powers, joints.coefficients)  # all along each piece
        over = np.maximum(values - limits.upper + INSIDE, 0.0) - np.maximum(limits.lower + INSIDE - values, 0.0)
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
