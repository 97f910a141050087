"""Continuous clearance check along transitions: between samples by a bound on the motion of any point of a solid.

Between two times, h apart, a point of a solid deviates from a straight line by at most ``h² A / 8``, where A bounds its
acceleration. With the distances d0, d1 at both times, and the largest displacement s of points between them, summed
over both solids of a pair::

    d(t) >= (d0 + d1 - s) / 2 - h² (A + A') / 8

A' is the bound of the other solid of the pair. If this allows an overlap, or a distance more than ``ACCURACY`` below
the minimum, the interval is halved. Let the joints k of the chain from the base to a link (the first is the rotation of
the base) have rates w_k with derivatives a_k, and let r_k be the largest distance of a point of the solid from joint k
in any posture. Then::

    A = |p_base''| + sum_k r_k (a_k + w_k² + 2 w_k sum_{j before k} w_j)

because the mixed second derivative of a point by two joints is the cross product of the axis of the joint nearer to the
base with the derivative by the other joint. For two links the tighter one of the bounds in the world and relative to
the base counts, because motion of the base moves both.

Source: Featherstone 2008, sec. 3.5 on derivatives of velocities along a chain.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.certificate.clearance_checks import clearance_line, relative_to_base
from mcplan.certificate.independent import LAST_BALL_PART, Mechanism
from mcplan.certificate.report import Check
from mcplan.certificate.solids import ClearanceMonitor, Solids, gather_solids
from mcplan.certificate.tolerances import PLAN_CLEARANCE, TRANSITION_CLEARANCE
from mcplan.certificate.transition_track import TransitionTrack
from mcplan.planning.plan import Plan
from mcplan.record.records import RobotRecord

ACCURACY = TRANSITION_CLEARANCE
"""m: accuracy of the minimum distance, and largest overlap that may be missed between two samples."""

SAMPLES_PER_PIECE = 2
"""Number of initial samples per spline piece."""

MAX_HALVINGS = 14
"""Maximum number of halvings of an interval between two initial samples."""

MAX_SLOPE, MAX_CURVATURE = 15 / 8, 10 / 3**0.5
"""Largest first and second derivative of the minimum-jerk profile 10 s³ - 15 s⁴ + 6 s⁵."""

BLOCK_SAMPLES = 600
"""Number of samples evaluated at once, which limits the memory."""


def transition_clearance(
    plan: Plan, record: RobotRecord, mechanism: Mechanism, tracks: Sequence[TransitionTrack]
) -> Check:
    """Return the check of clearance along transitions.

    A link may penetrate a support by 2 mm if its patch leaves, rests on or reaches that support.
    """
    solids = gather_solids(plan.scenario.robot, record, plan.scenario.environment)
    if not len(solids.pairs) or not tracks:
        return Check("transition: clearance", None, "m", "", True)
    monitor = _TransitionMonitor(plan, record, mechanism, solids, tracks)
    monitor.check_all()
    return clearance_line(monitor.monitor, monitor.when, PLAN_CLEARANCE, "in", "transition: clearance")


class _TransitionMonitor:
    """Monitor of the distances of all pairs along all segments, at as many samples as the bounds require."""

    def __init__(
        self, plan: Plan, record: RobotRecord, mechanism: Mechanism, solids: Solids, tracks: Sequence[TransitionTrack]
    ):
        self.mechanism, self.solids, self.tracks = mechanism, solids, tracks
        self.monitor = ClearanceMonitor(solids, PLAN_CLEARANCE)
        self.objects = [item.name for item in plan.scenario.environment.objects]
        self.allowed_overlaps = np.array(
            [self.monitor.allowed_overlap(frozenset((c.patch, c.support) for c in t.allowed_contacts)) for t in tracks]
        )
        self.reach = solids.reach
        self.acceleration_bounds = np.stack(acceleration_bounds(record, tracks, self.reach, self.objects))
        self.first_piece = np.cumsum([0, *(len(track.curve.times) - 1 for track in tracks)])
        self.between_links = solids.between_links
        self.samples: list[tuple[int, float]] = []

    def when(self, sample: int) -> str:
        """Return a sample as text."""
        track, t = self.samples[sample]
        return self.tracks[track].label(t)

    def store(self, track: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Store samples; return their indices."""
        first = len(self.samples)
        self.samples += list(zip(track.tolist(), t.tolist(), strict=True))
        return np.arange(first, len(self.samples))

    def poses(self, track: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the poses of all links, objects and the world, in this order, at times (m,) of tracks (m,)."""
        q = np.empty((len(t), len(self.tracks[0].curve.first_knot)))
        links, objects = len(self.solids.bodies), len(self.objects)
        R, p = np.empty((len(t), links + objects + 1, 3, 3)), np.zeros((len(t), links + objects + 1, 3))
        R[:, -1] = np.eye(3)
        for number in np.unique(track).tolist():
            rows = np.flatnonzero(track == number)
            q[rows] = self.tracks[number].curve.sample(t[rows])
            for i, name in enumerate(self.objects):
                R[rows, links + i], p[rows, links + i] = self.tracks[number].object_poses(name, t[rows])
        R[:, :links], p[:, :links] = self.mechanism.poses(q)
        return R, p

    def max_decrease(
        self,
        track: np.ndarray,
        piece: np.ndarray,
        h: np.ndarray,
        before: tuple[np.ndarray, np.ndarray],
        after: tuple[np.ndarray, np.ndarray],
        pair: np.ndarray | None = None,
    ) -> np.ndarray:
        """Bound how far distances can fall below the mean of their end values within an interval (m).

        Returns (m, P) for all pairs, or (m,) for given ones.

        Parameters
        ----------
        track, piece, h : (m,) index of the segment, index of the piece of its spline, and length of the interval (s).
        before, after : poses at both ends of the interval.
        pair : (m,) index of the pair; by default all pairs.
        """  # fmt: skip
        bounds = self.acceleration_bounds[:, self.first_piece[track] + piece]
        owner = self.solids.owner
        i, j = (owner[column] for column in (self.solids.pairs if pair is None else self.solids.pairs[pair]).T)
        between_links = self.between_links if pair is None else self.between_links[pair]
        decreases = []
        for frame in (0, 1):
            ends = [(R, p) if frame == 0 else relative_to_base(R, p) for R, p in (before, after)]
            (R0, p0), (R1, p1) = ends
            rotation = np.linalg.norm(R1 - R0, axis=(2, 3)) / np.sqrt(2.0)
            travel = np.linalg.norm(p1 - p0, axis=2) + self.reach * rotation
            total = travel / 2 + h[:, None] ** 2 / 8 * bounds[frame]
            rows = np.arange(len(h)) if pair is not None else slice(None)
            decreases.append(total[rows, i] + total[rows, j])
        return np.asarray(np.where(between_links, np.minimum(*decreases), decreases[0]))

    def check_all(self) -> None:
        """Check all tracks: at a few samples, then at all initial samples, then by bisection where bounds require it.

        The first few samples give a small minimum distance, which saves work at the others.
        """
        few = [t.curve.times[:: max(len(t.curve.times) // 4, 1)] for t in self.tracks]
        track, t = np.repeat(np.arange(len(few)), [len(times) for times in few]), np.concatenate(few)
        allowed = self.allowed_overlaps[track]
        self.monitor.check_all(*self.poses(track, t), allowed, np.zeros_like(allowed), self.store(track, t))
        start = 0
        while start < len(self.tracks):
            end, count = start, 0
            while end < len(self.tracks) and count < BLOCK_SAMPLES:
                count += SAMPLES_PER_PIECE * len(self.tracks[end].curve.times)
                end += 1
            self._check_block(np.arange(start, end))
            start = end

    def _check_block(self, tracks: np.ndarray) -> None:
        """Check some tracks at all initial samples, and bisect the intervals that are not proven."""
        nodes = [_subdivided(self.tracks[k].curve.times) for k in tracks]
        track = np.repeat(tracks, [len(t) for t in nodes])
        t = np.concatenate(nodes)
        R, p = self.poses(track, t)
        first = np.flatnonzero(track[:-1] == track[1:])
        piece = np.concatenate([np.arange(len(node) - 1) // SAMPLES_PER_PIECE for node in nodes])
        decreases = self.max_decrease(
            track[first], piece, t[first + 1] - t[first], (R[first], p[first]), (R[first + 1], p[first + 1])
        )
        slack = np.zeros((len(t), len(self.between_links)))
        slack[first] = decreases
        slack[first + 1] = np.maximum(slack[first + 1], decreases)
        allowed = self.allowed_overlaps[track]
        needed = slack + np.where(allowed == 0.0, max(self.monitor.min_distance, 0.0), 0.0)
        lower = self.monitor.check_all(R, p, allowed, needed, self.store(track, t))
        m, pair = np.nonzero(
            (lower[first] + lower[first + 1]) / 2 - decreases < self._required_distance(allowed[first])
        )
        a = first[m]
        self._bisect(track[a], piece[m], t[a], t[a + 1], pair, lower[a, pair], lower[a + 1, pair])

    def _required_distance(self, allowed: np.ndarray) -> np.ndarray:
        """Return the distances (m) that must be proven between samples, for allowed overlaps of the same shape."""
        return np.where(allowed == 0.0, max(self.monitor.min_distance, 0.0), -allowed) - ACCURACY

    def _bisect(
        self,
        track: np.ndarray,
        piece: np.ndarray,
        t0: np.ndarray,
        t1: np.ndarray,
        pair: np.ndarray,
        d0: np.ndarray,
        d1: np.ndarray,
    ) -> None:
        """Halve intervals of pairs until their distances are proven, or a violation is found.

        Parameters
        ----------
        track, piece, t0, t1, pair : (m,) segment, piece of its spline, start and end (s), and pair of each interval.
        d0, d1 : (m,) distances at both ends, m.
        """
        for _ in range(MAX_HALVINGS):
            required = self._required_distance(self.allowed_overlaps[track, pair])
            undecided = np.minimum(d0, d1) >= required  # at the others a violation is known
            track, piece, t0, t1, pair, d0, d1 = (x[undecided] for x in (track, piece, t0, t1, pair, d0, d1))
            if not len(track):
                return
            half = (t0 + t1) / 2
            times, inverse = np.unique(
                np.column_stack([np.tile(track, 3), np.concatenate([t0, half, t1])]), axis=0, return_inverse=True
            )
            R, p = self.poses(times[:, 0].astype(int), times[:, 1])
            before, middle, after = inverse.reshape(3, -1)
            allowed, h = self.allowed_overlaps[track, pair], half - t0
            decreases = [
                self.max_decrease(track, piece, h, (R[x], p[x]), (R[y], p[y]), pair)
                for x, y in ((before, middle), (middle, after))
            ]
            samples = np.unique(middle)
            numbers = np.empty(len(times), int)
            numbers[samples] = self.store(times[samples, 0].astype(int), times[samples, 1])
            d = self.monitor.check_pairs(
                R[middle], p[middle], allowed, pair, numbers[middle], np.maximum(*decreases) * 2
            )
            required = self._required_distance(allowed)
            first_half, second_half = (
                (x + d) / 2 - decrease < required for x, decrease in zip((d0, d1), decreases, strict=True)
            )
            track, piece, pair = (np.concatenate([x[first_half], x[second_half]]) for x in (track, piece, pair))
            t0, t1 = (
                np.concatenate([t0[first_half], half[second_half]]),
                np.concatenate([half[first_half], t1[second_half]]),
            )
            d0, d1 = (
                np.concatenate([d0[first_half], d[second_half]]),
                np.concatenate([d[first_half], d1[second_half]]),
            )


def acceleration_bounds(
    record: RobotRecord, tracks: Sequence[TransitionTrack], reach: np.ndarray, objects: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds on the accelerations of points of links, objects and the world: in the world, and from the base.

    Both have the shape (pieces of all tracks, owners + 1); owners are the links, followed by the objects; the world is
    the last.

    Parameters
    ----------
    reach : (owners + 1,) largest distance of a point from the origin of its owner (m).
    objects : names of the objects.
    """
    curves = [track.curve for track in tracks]
    number = np.repeat(np.arange(len(curves)), [len(curve.times) - 1 for curve in curves])  # of the track of each piece
    speed = np.concatenate([curve.max_speed for curve in curves])
    acceleration = np.concatenate([curve.max_acceleration for curve in curves])
    base_turn_rate = np.linalg.norm(speed[:, 3:6], axis=1)
    # |w'| <= |phi''| + |phi'|² / 2, as the left Jacobian and its derivative are bounded by 1 and |phi'| / 2
    base_turn_accel = np.linalg.norm(acceleration[:, 3:6], axis=1) + base_turn_rate**2 / 2
    base_accel = np.linalg.norm(acceleration[:, :3], axis=1)
    chains: dict[int, list] = {0: []}
    for joint in record.joints:
        c = joint.coordinate
        rate, accel = np.zeros((2, len(speed)))
        if joint.part == LAST_BALL_PART:  # bounds as for the base rotation; its other two parts do not move the link
            columns = slice(4 + c, 7 + c)  # of its rotation vector, whose third coordinate is c (column 6 + c)
            rate = np.linalg.norm(speed[:, columns], axis=1)
            accel = np.linalg.norm(acceleration[:, columns], axis=1) + rate**2 / 2
        elif joint.part is None and c >= 0:
            rate, accel = (abs(joint.multiplier) * bound[:, 6 + c] for bound in (speed, acceleration))
        slide: np.ndarray | float = 0.0
        if joint.kind == "prismatic":
            farthest = [
                np.abs([bound[:, c] for bound in curve.joint_range]).max() if c >= 0 else 0.0 for curve in curves
            ]
            slide = abs(joint.offset) + abs(joint.multiplier) * np.array(farthest)[number]
        arm = float(np.linalg.norm(joint.p))
        chains[joint.child] = [*chains[joint.parent], (arm, slide, rate, accel, joint.kind)]
    world, from_base = np.zeros((len(speed), len(reach))), np.zeros((len(speed), len(reach)))
    for link, chain in chains.items():
        for total, with_base in ((world, True), (from_base, False)):
            inner_rates = base_turn_rate if with_base else np.zeros(len(speed))
            radii = [reach[link]]  # largest distances of points from the joints, last joint first
            for arm, slide, *_ in reversed(chain):
                radii.append(radii[-1] + slide + arm)
            if with_base:
                total[:, link] = base_accel + radii[-1] * (base_turn_accel + base_turn_rate**2)
            for k, (*_, rate, accel, kind) in enumerate(chain):
                r = 1.0 if kind == "prismatic" else radii[len(chain) - 1 - k]
                turn_rate = 0.0 if kind == "prismatic" else rate
                total[:, link] += r * (accel + rate * (turn_rate + 2 * inner_rates))
                inner_rates = inner_rates + turn_rate
    for i, name in enumerate(objects, start=len(record.links)):
        for k, track in enumerate(tracks):
            begin, end, rows = track.start_poses[name], track.end_poses[name], number == k
            if not np.array_equal(begin, end):
                path, T = float(np.linalg.norm(end[:3] - begin[:3])), track.duration
                angle = 2 * float(np.arccos(min(1.0, abs(float(begin[3:] @ end[3:])))))
                curvature = MAX_CURVATURE * (path + reach[i] * angle) + reach[i] * (MAX_SLOPE * angle) ** 2
                world[rows, i], from_base[rows, i] = curvature / T**2, np.inf
    return world, from_base


def _subdivided(times: np.ndarray) -> np.ndarray:
    """Return times (m,) with ``SAMPLES_PER_PIECE - 1`` further ones between any two."""
    share = np.arange(SAMPLES_PER_PIECE) / SAMPLES_PER_PIECE
    return np.append((times[:-1, None] + np.outer(np.diff(times), share)).ravel(), times[-1])
