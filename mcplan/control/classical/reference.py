"""References in time for joints and frames: constant, or minimum-jerk from one place to the next."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.motion.quintic import minimum_jerk


class JointReference(NamedTuple):
    """Position, velocity and acceleration of the joints (n,): rad or m, per s, per s²."""

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


class FrameReference(NamedTuple):
    """Rotation (3,3) and position (3,) of a frame, velocity and acceleration (6,): linear, angular, world axes."""

    R: np.ndarray
    p: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


JointPath = Callable[[float], JointReference]
"""From time (s) to what the joints should do then."""

FramePath = Callable[[float], FrameReference]
"""From time (s) to what a frame should do then."""


def joints_at(position: np.ndarray) -> JointPath:
    """Return the reference of joints that stand still."""
    zero = np.zeros(len(position))
    still = JointReference(np.array(position, float), zero, zero)
    return lambda t: still


def joints_between(start: np.ndarray, end: np.ndarray, duration: float) -> JointPath:
    """Return the minimum-jerk motion of joints that begins at t = 0."""
    start, way = np.array(start, float), np.asarray(end, float) - start

    def path(t: float) -> JointReference:
        s, ds, dds = minimum_jerk(t / duration)
        return JointReference(start + s * way, ds / duration * way, dds / duration**2 * way)

    return path


def frame_through(poses: Sequence[tuple[np.ndarray, np.ndarray]], duration: float) -> FramePath:
    """Return the motion through poses (R, p), from rest to rest between each, ``duration`` s each, then at rest."""
    last = len(poses) - 1
    turns = [Rotation.from_matrix(b[0] @ a[0].T).as_rotvec() for a, b in pairwise(poses)]

    def path(t: float) -> FrameReference:
        k = min(int(max(t, 0.0) / duration), last)
        R, p = poses[k]
        if k == last:
            return FrameReference(np.asarray(R), np.asarray(p), np.zeros(6), np.zeros(6))
        s, ds, dds = minimum_jerk(t / duration - k)
        way = np.concatenate([poses[k + 1][1] - p, turns[k]])
        turned = Rotation.from_rotvec(s * turns[k]).as_matrix() @ R
        return FrameReference(turned, p + s * way[:3], ds / duration * way, dds / duration**2 * way)

    return path
