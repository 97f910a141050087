"""Where a segment says that a patch goes, computed again from what it says of it.

A patch with a path of its own goes off along a normal, over, and down along the other one, in three minimum-jerk pieces
that overlap::

    p(t) = pA + l s1(t) + (pB + a - pA - l) s2(t) - a s3(t)

with lift l and approach a. One that is led along the straight motion of the joints is where that has it, ahead of it by
up to ``A`` s in time, with lift and approach added in pieces. One that goes as the body takes it is where the knots
have it.
"""

import numpy as np

from mcplan.certificate.curve import minimum_jerk
from mcplan.certificate.independent import Mechanism, quaternion_step, rotation_of, rotation_vector
from mcplan.certificate.transition_track import Track
from mcplan.planning.transition.transition import Course
from mcplan.scene.settings import ControlSettings

OVERLAP, SHORTEST = 0.4, 0.3
"""Part of lift and approach that runs while the swing does; least time of a piece (s)."""

LONGEST = 0.5
"""Most of the motion of the body that an approach takes."""


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
    if course.leader == "own":
        angle = float(np.linalg.norm(rotation_vector((R[1] @ R[0].T)[None])))
        return _over(p, course, angle, settings, track.duration, t)
    return _along(track, course, settings, mechanism, t)


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
    begin = np.array([0.0, (1 - OVERLAP) * T[0], T[0]])
    if T[1] > 0.0:
        begin[2] = max(begin[1] + T[1] - OVERLAP * T[2], T[0])
    else:
        begin[1] = 0.0
    total = float((begin + T).max())
    scale = max(1.0, duration / total) if total > 0.0 else 1.0
    parts = minimum_jerk((t[:, None] - scale * begin) / np.maximum(scale * T, 1e-9))
    return np.asarray(p[0] + parts @ offsets)


def _along(track: Track, course: Course, settings: ControlSettings, mechanism: Mechanism, t: np.ndarray) -> np.ndarray:
    wait, finish = float(track.segment.times[0]), track.duration
    T_lift, T_approach = (_time(settings, float(np.linalg.norm(d))) for d in (course.lift, course.approach))
    T_approach = min(T_approach, LONGEST * (finish - wait))
    above = finish - (1 - OVERLAP) * T_approach
    half = 0.5 * (above - wait)
    u = t + (finish - above) * minimum_jerk((t - wait) / max(above - wait, 1e-9))
    q = straight(track.segment.q[0], track.segment.q[-1], minimum_jerk((u - wait) / (finish - wait)))
    places = mechanism.motion(q, patches=[course.patch]).p[course.patch].copy()
    for offset, begin, T in (
        (course.lift, 0.0, T_lift),
        (-course.lift, wait + half, half),
        (course.approach, wait, half),
        (-course.approach, finish - T_approach, T_approach),
    ):
        if T > 0.0:
            places += np.outer(minimum_jerk((t - begin) / T), offset)
    return places


def straight(q0: np.ndarray, q1: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return configurations (m, 7+n) at shares (m,) of the straight way from one (7+n,) to another."""
    R = rotation_of(np.array([q0[3:7], q1[3:7]]).T).transpose(2, 0, 1)
    turn = share[:, None] * rotation_vector((R[1] @ R[0].T)[None])
    base = np.broadcast_to(q0[3:7, None], (4, len(share)))
    flat = q0 + share[:, None] * (q1 - q0)
    return np.concatenate([flat[:, :3], quaternion_step(base, turn.T).T, flat[:, 7:]], axis=1)
