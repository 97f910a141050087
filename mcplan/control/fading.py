"""A planned motion that begins where the references are: what they differ from its beginning fades on the way."""

from functools import lru_cache

import numpy as np

from mcplan.model.robot import Robot
from mcplan.motion.posture import PostureSample
from mcplan.motion.quintic import Sample, minimum_jerk
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.planning.transition.transition import Segment

SAME = 1e-12
"""rad, m, and their rates: references that differ by less are where a planned motion begins."""

AHEAD = 0.3
"""Part of the time between two knots within which a knot is left out where a motion begins late: through places that
are next to each other in time no curve is smooth."""


def faded(
    robot: Robot, segment: Segment, begin: PostureSample, com: Sample, t: float, late: float = 0.0
) -> tuple[PostureSpline, Spline]:
    """Return posture and centre of mass along a segment, begun as their references are at time t (s).

    They count from t on, or from 0 where a law says when they are where.

    Parameters
    ----------
    begin, com : the references at t.
    late : s, for how long the law has run by then: what lies behind is left out.
    """
    law, times, q, centre = segment.law, segment.times, segment.q, segment.com
    start = t if law is None else 0.0
    if law is not None and late > 0.0:
        here = law.at(late)[0]
        ahead = times > here + AHEAD * times[-1] / (len(times) - 1)
        ahead[-1] = True
        times = np.append(here, times[ahead])
        q = np.vstack([segment.posture.sample(here).q, q[ahead]])
        centre = np.vstack([segment.centre.sample(here).value, centre[ahead]])
    off, drift = robot.difference(q[0], begin.q), com.value - centre[0]
    v, vd, velocity, acceleration = begin.v, begin.vd, com.velocity, com.acceleration
    if np.abs(np.concatenate((v, vd, velocity, acceleration, off, drift))).max() <= SAME:
        return segment.posture.begun(start), segment.centre.begun(start)
    if law is not None:
        (v, vd), (velocity, acceleration) = law.slopes(v, vd, late), law.slopes(velocity, acceleration, late)
    left = _left(len(times))
    q = np.array([robot.integrate(knot, off, part) for knot, part in zip(q, left, strict=True)])
    end = segment.finish
    path = Spline(times + start, centre + np.outer(left, drift), (velocity, acceleration), end and end.centre)
    return PostureSpline(times + start, q, (v, vd), end and end.posture), path


@lru_cache
def _left(count: int) -> tuple[float, ...]:
    """Return which part of a difference is left at each of so many knots."""
    return tuple(1.0 - minimum_jerk(share)[0] for share in np.linspace(0.0, 1.0, count))
