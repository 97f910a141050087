"""Continuous clearance check along transitions: between samples by a bound on the motion of any point of a solid.

Between two times, h apart, a point of a solid deviates from a straight line by at most ``h² A / 8``, where A bounds its
acceleration. With the distances d0, d1 at both times, and the largest displacement s of points between them, summed
over both solids of a pair::

    d(t) >= (d0 + d1 - s) / 2 - h² (A + A') / 8

If this allows an overlap, or a distance more than ``ACCURACY`` below the minimum, the interval is halved. For the chain
of joints from the base to a link, including the rotation of the base, with rates w_k, their derivatives a_k, and r_k
the largest distance of a point of the solid from joint k in any posture::

    A = |p_base''| + sum_k r_k (a_k + w_k² + 2 w_k sum_{j before k} w_j)

because the second derivative of a point by two joints is a cross product: the axis of the inner joint times the
derivative by the outer one. For two links the tighter of the bounds in the world and relative to the base counts,
because base motion moves both.

Source: Featherstone 2008, sec. 3.5 on derivatives of velocities along a chain.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.certificate.clearance_checks import clearance_line, relative_to_base
from mcplan.certificate.independent import Mechanism
from mcplan.certificate.report import Check
from mcplan.certificate.solids import ClearanceMonitor, Solids, gather_solids
from mcplan.certificate.tolerances import PLAN_CLEARANCE, TRANSITION_CLEARANCE
from mcplan.certificate.transition_track import TransitionTrack
from mcplan.planning.plan import Plan
from mcplan.record.records import RobotRecord

ACCURACY = TRANSITION_CLEARANCE
"""m: accuracy of the minimum distance, and largest overlap that may be missed between two times."""

SAMPLES_PER_PIECE = 2
"""Initial samples per spline piece."""

MAX_HALVINGS = 14
"""Maximum number of halvings of a piece."""

MAX_SLOPE, MAX_CURVATURE = 15 / 8, 10 / 3**0.5
"""Largest first and second derivatives of the minimum-jerk profile."""

BLOCK_TIMES = 600
"""Times per block."""


def transition_clearance(
    plan: Plan, record: RobotRecord, mechanism: Mechanism, tracks: Sequence[TransitionTrack]
) -> Check:
    """Return the check of clearance along transitions.

    A link may penetrate the support that its patch leaves, rests on or reaches by 2 mm.
    """
    solids = gather_solids(plan.scenario.robot, record, plan.scenario.environment)
    if not len(solids.pairs) or not tracks:
        return Check("transition: clearance", None, "m", "", True)
    monitor = _TransitionMonitor(plan, record, mechanism, solids, tracks)
    monitor.check_all()
    return clearance_line(monitor.monitor, monitor.when, PLAN_CLEARANCE, "in", "transition: clearance")


class _TransitionMonitor:
    """Distances of all pairs along all segments, at as many times as the bounds require."""

    def __init__(
        self, plan: Plan, record: RobotRecord, mechanism: Mechanism, solids: Solids, tracks: Sequence[TransitionTrack]
    ):
        self.mechanism, self.solids, self.tracks = mechanism, solids, tracks
        self.monitor = ClearanceMonitor(solids, PLAN_CLEARANCE)
        self.objects = [thing.name for thing in plan.scenario.environment.objects]
        self.allowed_overlaps = np.array(
            [self.monitor.allowed_overlap(frozenset((c.patch, c.support) for c in t.near)) for t in tracks]
        )
        self.reach = solids.reach
        bounds = [np.stack(acceleration_bounds(record, track, self.reach, self.objects)) for track in tracks]
        self.acceleration_bounds = np.concatenate(bounds, axis=1)
        self.first_piece = np.cumsum([0, *(found.shape[1] for found in bounds)])
        self.between_links = solids.between_links
        self.samples: list[tuple[int, float]] = []

    def when(self, sample: int) -> str:
        """Return a sample as text."""
        track, t = self.samples[sample]
        return self.tracks[track].when(t)

    def store(self, track: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Store samples; return their indices."""
        first = len(self.samples)
        self.samples += list(zip(track.tolist(), t.tolist(), strict=True))
        return np.arange(first, len(self.samples))

    def poses(self, track: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the poses of all owners at times (m,) of tracks (m,), the world last."""
        q = np.empty((len(t), len(self.tracks[0].curve.first)))
        links, things = len(self.solids.bodies), len(self.objects)
        R, p = np.empty((len(t), links + things + 1, 3, 3)), np.zeros((len(t), links + things + 1, 3))
        R[:, -1] = np.eye(3)
        for number in np.unique(track).tolist():
            rows = np.flatnonzero(track == number)
            q[rows] = self.tracks[number].curve.sample(t[rows])
            for i, name in enumerate(self.objects):
                R[rows, links + i], p[rows, links + i] = self.tracks[number].object_poses(name, t[rows])
        R[:, :links], p[:, :links] = self.mechanism.poses(q)
        return R, p

    def max_fall(
        self,
        track: np.ndarray,
        piece: np.ndarray,
        h: np.ndarray,
        before: tuple[np.ndarray, np.ndarray],
        after: tuple[np.ndarray, np.ndarray],
        pair: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return bounds on the fall of distances below their mean at both ends, in between: (m, P), or (m,) of pairs.

        Parameters
        ----------
        track, piece, h : (m,) index of the segment, index of the piece of its spline, and time between the ends (s).
        before, after : poses at both ends.
        """  # fmt: skip
        bounds = self.acceleration_bounds[:, self.first_piece[track] + piece]
        owner = self.solids.owner
        i, j = (owner[column] for column in (self.solids.pairs if pair is None else self.solids.pairs[pair]).T)
        between_links = self.between_links if pair is None else self.between_links[pair]
        falls = []
        for frame in (0, 1):
            ends = [(R, p) if frame == 0 else relative_to_base(R, p) for R, p in (before, after)]
            (R0, p0), (R1, p1) = ends
            rotation = np.linalg.norm(R1 - R0, axis=(2, 3)) / np.sqrt(2.0)
            travel = np.linalg.norm(p1 - p0, axis=2) + self.reach * rotation
            total = travel / 2 + h[:, None] ** 2 / 8 * bounds[frame]
            rows = np.arange(len(h)) if pair is not None else slice(None)
            falls.append(total[rows, i] + total[rows, j])
        return np.asarray(np.where(between_links, np.minimum(*falls), falls[0]))

    def check_all(self) -> None:
        """Check all tracks, first at few times, then in between if the bounds are insufficient."""
        for track, curve in enumerate(t.curve for t in self.tracks):
            first = curve.times[:: max(len(curve.times) // 4, 1)]
            indices = np.full(len(first), track)
            allowed = np.broadcast_to(self.allowed_overlaps[track], (len(first), len(self.between_links)))
            self.monitor.check_all(
                *self.poses(indices, first), allowed, np.zeros_like(allowed), self.store(indices, first)
            )
        start = 0
        while start < len(self.tracks):
            end, count = start, 0
            while end < len(self.tracks) and count < BLOCK_TIMES:
                count += SAMPLES_PER_PIECE * len(self.tracks[end].curve.times)
                end += 1
            self._block(np.arange(start, end))
            start = end

    def _block(self, tracks: np.ndarray) -> None:
        nodes = [_subdivided(self.tracks[k].curve.times) for k in tracks]
        track = np.repeat(tracks, [len(t) for t in nodes])
        t = np.concatenate(nodes)
        R, p = self.poses(track, t)
        first = np.flatnonzero(track[:-1] == track[1:])
        piece = np.concatenate([np.arange(len(node) - 1) // SAMPLES_PER_PIECE for node in nodes])
        falls = self.max_fall(
            track[first], piece, t[first + 1] - t[first], (R[first], p[first]), (R[first + 1], p[first + 1])
        )
        slack = np.zeros((len(t), len(self.between_links)))
        slack[first] = falls
        slack[first + 1] = np.maximum(slack[first + 1], falls)
        allowed = self.allowed_overlaps[track]
        needed = slack + np.where(allowed == 0.0, max(self.monitor.min_distance, 0.0), 0.0)
        lower = self.monitor.check_all(R, p, allowed, needed, self.store(track, t))
        m, pair = np.nonzero((lower[first] + lower[first + 1]) / 2 - falls < self._goal(allowed[first]))
        a = first[m]
        self._between(track[a], piece[m], t[a], t[a + 1], pair, lower[a, pair], lower[a + 1, pair])

    def _goal(self, allowed: np.ndarray) -> np.ndarray:
        """Return the distances (m) to be proven between samples."""
        return np.where(allowed == 0.0, max(self.monitor.min_distance, 0.0), -allowed) - ACCURACY

    def _between(
        self,
        track: np.ndarray,
        piece: np.ndarray,
        t0: np.ndarray,
        t1: np.ndarray,
        pair: np.ndarray,
        d0: np.ndarray,
        d1: np.ndarray,
    ) -> None:
        """Halve intervals of pairs until their distances are proven, or an overlap is found."""
        for _ in range(MAX_HALVINGS):
            goal = self._goal(self.allowed_overlaps[track, pair])
            undecided = np.minimum(d0, d1) >= goal  # otherwise the violation has been found
            track, piece, t0, t1, pair, d0, d1 = (x[undecided] for x in (track, piece, t0, t1, pair, d0, d1))
            if not len(track):
                return
            half = (t0 + t1) / 2
            times, back = np.unique(
                np.column_stack([np.tile(track, 3), np.concatenate([t0, half, t1])]), axis=0, return_inverse=True
            )
            R, p = self.poses(times[:, 0].astype(int), times[:, 1])
            before, middle, after = back.reshape(3, -1)
            allowed, h = self.allowed_overlaps[track, pair], half - t0
            falls = [
                self.max_fall(track, piece, h, (R[x], p[x]), (R[y], p[y]), pair)
                for x, y in ((before, middle), (middle, after))
            ]
            samples = np.unique(middle)
            numbers = np.empty(len(times), int)
            numbers[samples] = self.store(times[samples, 0].astype(int), times[samples, 1])
            d = self.monitor.check_pairs(R[middle], p[middle], allowed, pair, numbers[middle], np.maximum(*falls) * 2)
            goal = self._goal(allowed)
            left, right = ((x + d) / 2 - fall < goal for x, fall in zip((d0, d1), falls, strict=True))
            track, piece, pair = (np.concatenate([x[left], x[right]]) for x in (track, piece, pair))
            t0, t1 = np.concatenate([t0[left], half[right]]), np.concatenate([half[left], t1[right]])
            d0, d1 = np.concatenate([d0[left], d[right]]), np.concatenate([d[left], d1[right]])


def acceleration_bounds(
    record: RobotRecord, track: TransitionTrack, reach: np.ndarray, objects: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds (pieces, owners + 1) on accelerations of points of each owner, in the world and from the base.

    Parameters
    ----------
    reach : (owners + 1,) largest distance of a point from the origin of its owner (m); the world last.
    objects : names of the objects, which follow the links.
    """
    curve = track.curve
    speed, acceleration = curve.speed, curve.acceleration
    max_position = (
        np.maximum(*(np.abs(bound).max(axis=0) for bound in curve.range)) if len(record.coordinates) else None
    )
    base_turn_rate = np.linalg.norm(speed[:, 3:6], axis=1)
    # |w'| <= |phi''| + |phi'|² / 2, as the left Jacobian and its derivative are bounded by 1 and |phi'| / 2
    base_turn_accel = np.linalg.norm(acceleration[:, 3:6], axis=1) + base_turn_rate**2 / 2
    base_accel = np.linalg.norm(acceleration[:, :3], axis=1)
    chains: dict[int, list] = {0: []}
    for joint in record.joints:
        c = joint.coordinate
        rate, accel = np.zeros((2, len(speed)))
        if joint.part == 2:  # as for the base rotation; the other parts of a ball joint turn nothing
            rate = np.linalg.norm(speed[:, 4 + c : 7 + c], axis=1)
            accel = np.linalg.norm(acceleration[:, 4 + c : 7 + c], axis=1) + rate**2 / 2
        elif joint.part is None and c >= 0:
            rate, accel = (abs(joint.multiplier) * of[:, 6 + c] for of in (speed, acceleration))
        slide = 0.0
        if joint.kind == "prismatic":
            slide = abs(joint.offset) + (abs(joint.multiplier) * float(max_position[c]) if c >= 0 else 0.0)  # type: ignore[index]
        arm = float(np.linalg.norm(joint.p))
        chains[joint.child] = [*chains[joint.parent], (arm, slide, rate, accel, joint.kind)]
    world, from_base = np.zeros((len(speed), len(reach))), np.zeros((len(speed), len(reach)))
    for link, chain in chains.items():
        for total, base in ((world, True), (from_base, False)):
            inner_rates = base_turn_rate if base else np.zeros(len(speed))
            outward = [reach[link]]  # distances of points from the joints, from the last joint to the first
            for arm, slide, *_ in reversed(chain):
                outward.append(outward[-1] + slide + arm)
            if base:
                total[:, link] = base_accel + outward[-1] * (base_turn_accel + base_turn_rate**2)
            for k, (*_, rate, accel, kind) in enumerate(chain):
                r = 1.0 if kind == "prismatic" else outward[len(chain) - 1 - k]
                turn_rate = 0.0 if kind == "prismatic" else rate
                total[:, link] += r * (accel + rate * (turn_rate + 2 * inner_rates))
                inner_rates = inner_rates + turn_rate
    for i, name in enumerate(objects, start=len(record.links)):
        begin, end = track.objects[name], track.moved[name]
        if not np.array_equal(begin, end):
            path, T = float(np.linalg.norm(end[:3] - begin[:3])), track.duration
            angle = 2 * float(np.arccos(min(1.0, abs(float(begin[3:] @ end[3:])))))
            world[:, i] = (MAX_CURVATURE * (path + reach[i] * angle) + reach[i] * (MAX_SLOPE * angle) ** 2) / T**2
            from_base[:, i] = np.inf
    return world, from_base


def _subdivided(times: np.ndarray) -> np.ndarray:
    """Return times with ``SAMPLES_PER_PIECE - 1`` more between any two."""
    share = np.arange(SAMPLES_PER_PIECE) / SAMPLES_PER_PIECE
    return np.append((times[:-1, None] + np.outer(np.diff(times), share)).ravel(), times[-1])
