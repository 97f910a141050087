"""Where a segment says that a patch goes, computed again from what it says of it.

A patch with a path of its own goes off along a normal, over, and down along the other one, in three minimum-jerk pieces
that overlap::

    p(t) = pA + l s1(t) + (pB + a - pA - l) s2(t) - a s3(t)

with lift l and approach a; these take no less than ``lift_share`` of the time of the swing. One that goes as the body
takes it is where the knots have it.
"""

import numpy as np

from mcplan.certificate.curve import minimum_jerk
from mcplan.certificate.independent import Mechanism, rotation_vector
from mcplan.certificate.transition_track import Track
from mcplan.planning.transition.transition import Course
from mcplan.scene.settings import ControlSettings

OVERLAP, SHORTEST = 0.4, 0.3
"""Part of lift and approach that runs while the swing does; least time of a piece (s)."""


def expected_path(
    track: Track, course: Course, settings: ControlSettings, mechanism: Mechanism, t: np.ndarray
) -> np.ndarray:
    """Return the places (m, 3) of a patch at times (m,)."""
    q = track.segment.q
    if course.leader == "body":
        q = track.curve.sample(t)
        return mechanism.motion(q, patches=[course.patch]).p[course.patch]
    ends = mechanism.motion(q[[0, -1]], patches=[course.patch])
    R, p = ends.R[course.patch], ends.p[course.patch]
    angle = float(np.linalg.norm(rotation_vector((R[1] @ R[0].T)[None])))
    return _over(p, course, angle, settings, track.duration, t)


def _time(settings: ControlSettings, distance: float, angle: float = 0.0) -> float:
    """Return how long a minimum-jerk piece takes, whose largest slope is 15/8 (s)."""
    if distance <= 0.0 and angle <= 0.0:
        return 0.0
    return max(SHORTEST, 1.875 * distance / settings.limb_speed, 1.875 * angle / settings.limb_angular_speed)


def _over(
    p: np.ndarray, course: Course, angle: float, settings: ControlSettings, duration: float, t: np.ndarray
) -> np.ndarray:
    offsets = np.array([course.lift, p[1] + course.approach - p[0] - course.lift, -course.approach])
    T = np.array([_time(settings, float(np.linalg.norm(d)), angle * (i == 1)) for i, d in enumerate(offsets)])
    T[::2] = np.where(T[::2] > 0.0, np.maximum(T[::2], settings.lift_share * T[1]), 0.0)
    begin = np.array([0.0, (1 - OVERLAP) * T[0], T[0]])
    if T[1] > 0.0:
        begin[2] = max(begin[1] + T[1] - OVERLAP * T[2], T[0])
    else:
        begin[1] = 0.0
    total = float((begin + T).max())
    scale = max(1.0, duration / total) if total > 0.0 else 1.0
    parts = minimum_jerk((t[:, None] - scale * begin) / np.maximum(scale * T, 1e-9))
    return np.asarray(p[0] + parts @ offsets)
