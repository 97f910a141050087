"""Continuous clearance check along transitions: between samples by a bound on the motion of any point of a solid.

Between two times h apart no point of a solid is farther from its straight line than ``h² A / 8``, where A bounds its
acceleration. With distances d0, d1 at the two, and how far points move from one to the other at most, s, in sum of both
solids of a pair::

    d(t) >= (d0 + d1 - s) / 2 - h² (A + A') / 8

If this allows an overlap, or a distance below the minimum by more than ``FINE``, the interval is halved. For the chain
of joints from the base to a link, the base's rotation included, with rates w_k, their derivatives a_k, and r_k the
farthest that a point of the solid can be from joint k, whatever the posture::

    A = |p_base''| + sum_k r_k (a_k + w_k² + 2 w_k sum_{j before k} w_j)

as the derivative of a point by two joints is a cross product with the axis of the inner one of its derivative by the
outer one. Two links are seen from the base, where that bounds more: what moves the whole robot moves them together.

Source: Featherstone 2008, sec. 3.5 on derivatives of velocities along a chain.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.certificate.clearance_checks import clearance_line, seen_from_base
from mcplan.certificate.independent import Mechanism
from mcplan.certificate.report import Check
from mcplan.certificate.solids import ClearanceMonitor, Solids, gather_solids
from mcplan.certificate.tolerances import PLAN_CLEARANCE, TRANSITION_CLEARANCE
from mcplan.certificate.transition_track import TransitionTrack
from mcplan.planning.plan import Plan
from mcplan.record.records import RobotRecord

FINE = TRANSITION_CLEARANCE
"""m: accuracy of the minimum distance, and the largest overlap between two times that may be missed."""

HALVES = 2
"""Initial samples per spline piece."""

DEPTH = 14
"""Maximum number of halvings of a piece."""

FASTEST, SHARPEST = 15 / 8, 10 / 3**0.5
"""Largest first and second derivatives of the minimum-jerk profile."""

BLOCK = 600
"""Times per block."""


def transition_clearance(
    plan: Plan, record: RobotRecord, mechanism: Mechanism, tracks: Sequence[TransitionTrack]
) -> Check:
    """Return the check of clearance along transitions.

    A link may penetrate by 2 mm the support that its patch leaves, rests on or reaches.
    """
    solids = gather_solids(plan.scenario.robot, record, plan.scenario.environment)
    if not len(solids.pairs) or not tracks:
        return Check("transition: clearance", None, "m", "", True)
    looker = _TransitionMonitor(plan, record, mechanism, solids, tracks)
    looker.look()
    return clearance_line(looker.watch, looker.when, PLAN_CLEARANCE, "in", "transition: clearance")


class _TransitionMonitor:
    """Distances of all pairs along all segments, at as many times as the bounds require."""

    def __init__(
        self, plan: Plan, record: RobotRecord, mechanism: Mechanism, solids: Solids, tracks: Sequence[TransitionTrack]
    ):
        self.mechanism, self.solids, self.tracks = mechanism, solids, tracks
        self.watch = ClearanceMonitor(solids, PLAN_CLEARANCE)
        self.objects = [thing.name for thing in plan.scenario.environment.objects]
        self.rooms = np.array([self.watch.room(frozenset((c.patch, c.support) for c in t.near)) for t in tracks])
        self.reach = solids.reach
        bends = [np.stack(bends_of(record, track, self.reach, self.objects)) for track in tracks]
        self.bends = np.concatenate(bends, axis=1)
        self.first_piece = np.cumsum([0, *(found.shape[1] for found in bends)])
        self.own = solids.between_links
        self.looked_at: list[tuple[int, float]] = []

    def when(self, sample: int) -> str:
        """Return a sample as text."""
        track, t = self.looked_at[sample]
        return self.tracks[track].when(t)

    def number(self, track: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return numbers for samples."""
        first = len(self.looked_at)
        self.looked_at += list(zip(track.tolist(), t.tolist(), strict=True))
        return np.arange(first, len(self.looked_at))

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

    def fall(
        self,
        track: np.ndarray,
        piece: np.ndarray,
        h: np.ndarray,
        before: tuple[np.ndarray, np.ndarray],
        after: tuple[np.ndarray, np.ndarray],
        pair: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return by how much distances may be less in between than their mean at both ends: (m, P), or (m,) of pairs.

        Parameters
        ----------
        track, piece, h : (m,) which segment, which piece of its spline, and the time between the ends (s).
        before, after : poses at both ends.
        """  # fmt: skip
        bends = self.bends[:, self.first_piece[track] + piece]
        owner = self.solids.owner
        i, j = (owner[column] for column in (self.solids.pairs if pair is None else self.solids.pairs[pair]).T)
        own = self.own if pair is None else self.own[pair]
        falls = []
        for frame in (0, 1):
            ends = [(R, p) if frame == 0 else seen_from_base(R, p) for R, p in (before, after)]
            (R0, p0), (R1, p1) = ends
            turn = np.linalg.norm(R1 - R0, axis=(2, 3)) / np.sqrt(2.0)
            travel = np.linalg.norm(p1 - p0, axis=2) + self.reach * turn
            total = travel / 2 + h[:, None] ** 2 / 8 * bends[frame]
            rows = np.arange(len(h)) if pair is not None else slice(None)
            falls.append(total[rows, i] + total[rows, j])
        return np.asarray(np.where(own, np.minimum(*falls), falls[0]))

    def look(self) -> None:
        """Check all tracks, first at few times, then in between where the bounds are insufficient."""
        for track, curve in enumerate(t.curve for t in self.tracks):
            first = curve.times[:: max(len(curve.times) // 4, 1)]
            which = np.full(len(first), track)
            room = np.broadcast_to(self.rooms[track], (len(first), len(self.own)))
            self.watch.look(*self.poses(which, first), room, np.zeros_like(room), self.number(which, first))
        start = 0
        while start < len(self.tracks):
            end, count = start, 0
            while end < len(self.tracks) and count < BLOCK:
                count += HALVES * len(self.tracks[end].curve.times)
                end += 1
            self._block(np.arange(start, end))
            start = end

    def _block(self, tracks: np.ndarray) -> None:
        nodes = [_halved(self.tracks[k].curve.times) for k in tracks]
        track = np.repeat(tracks, [len(t) for t in nodes])
        t = np.concatenate(nodes)
        R, p = self.poses(track, t)
        first = np.flatnonzero(track[:-1] == track[1:])
        piece = np.concatenate([np.arange(len(node) - 1) // HALVES for node in nodes])
        fall = self.fall(
            track[first], piece, t[first + 1] - t[first], (R[first], p[first]), (R[first + 1], p[first + 1])
        )
        slack = np.zeros((len(t), len(self.own)))
        slack[first] = fall
        slack[first + 1] = np.maximum(slack[first + 1], fall)
        room = self.rooms[track]
        wanted = slack + np.where(room == 0.0, max(self.watch.least, 0.0), 0.0)
        lower = self.watch.look(R, p, room, wanted, self.number(track, t))
        m, pair = np.nonzero((lower[first] + lower[first + 1]) / 2 - fall < self._goal(room[first]))
        a = first[m]
        self._between(track[a], piece[m], t[a], t[a + 1], pair, lower[a, pair], lower[a + 1, pair])

    def _goal(self, room: np.ndarray) -> np.ndarray:
        """Return what distances are to be proven to keep (m)."""
        return np.where(room == 0.0, max(self.watch.least, 0.0), -room) - FINE

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
        for _ in range(DEPTH):
            goal = self._goal(self.rooms[track, pair])
            going = np.minimum(d0, d1) >= goal  # else it has been found
            track, piece, t0, t1, pair, d0, d1 = (x[going] for x in (track, piece, t0, t1, pair, d0, d1))
            if not len(track):
                return
            half = (t0 + t1) / 2
            times, back = np.unique(
                np.column_stack([np.tile(track, 3), np.concatenate([t0, half, t1])]), axis=0, return_inverse=True
            )
            R, p = self.poses(times[:, 0].astype(int), times[:, 1])
            before, middle, after = back.reshape(3, -1)
            room, h = self.rooms[track, pair], half - t0
            falls = [
                self.fall(track, piece, h, (R[x], p[x]), (R[y], p[y]), pair)
                for x, y in ((before, middle), (middle, after))
            ]
            seen = np.unique(middle)
            numbers = np.empty(len(times), int)
            numbers[seen] = self.number(times[seen, 0].astype(int), times[seen, 1])
            d = self.watch.look_at(R[middle], p[middle], room, pair, numbers[middle], np.maximum(*falls) * 2)
            goal = self._goal(room)
            left, right = ((x + d) / 2 - fall < goal for x, fall in zip((d0, d1), falls, strict=True))
            track, piece, pair = (np.concatenate([x[left], x[right]]) for x in (track, piece, pair))
            t0, t1 = np.concatenate([t0[left], half[right]]), np.concatenate([half[left], t1[right]])
            d0, d1 = np.concatenate([d0[left], d[right]]), np.concatenate([d[left], d1[right]])


def bends_of(
    record: RobotRecord, track: TransitionTrack, reach: np.ndarray, objects: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds (pieces, owners + 1) of the accelerations of points of each owner, in the world and from the base.

    Parameters
    ----------
    reach : (owners + 1,) how far points are from the origin of their owner (m); the world last.
    objects : names of those that follow the links.
    """
    curve = track.curve
    speed, acceleration = curve.speed, curve.acceleration
    farthest = np.maximum(*(np.abs(bound).max(axis=0) for bound in curve.range)) if len(record.coordinates) else None
    turning = np.linalg.norm(speed[:, 3:6], axis=1)
    # |w'| <= |phi''| + |phi'|² / 2, as the left Jacobian and its derivative are bounded by 1 and |phi'| / 2
    spinning = np.linalg.norm(acceleration[:, 3:6], axis=1) + turning**2 / 2
    lifting = np.linalg.norm(acceleration[:, :3], axis=1)
    chains: dict[int, list] = {0: []}
    for joint in record.joints:
        c = joint.coordinate
        rate, change = np.zeros((2, len(speed)))
        if joint.part == 2:  # as the base, by the map of its rates; the other parts of a ball joint turn nothing
            rate = np.linalg.norm(speed[:, 4 + c : 7 + c], axis=1)
            change = np.linalg.norm(acceleration[:, 4 + c : 7 + c], axis=1) + rate**2 / 2
        elif joint.part is None and c >= 0:
            rate, change = (abs(joint.multiplier) * of[:, 6 + c] for of in (speed, acceleration))
        slide = 0.0
        if joint.kind == "prismatic":
            slide = abs(joint.offset) + (abs(joint.multiplier) * float(farthest[c]) if c >= 0 else 0.0)  # type: ignore[index]
        arm = float(np.linalg.norm(joint.p))
        chains[joint.child] = [*chains[joint.parent], (arm, slide, rate, change, joint.kind)]
    world, seen = np.zeros((len(speed), len(reach))), np.zeros((len(speed), len(reach)))
    for link, chain in chains.items():
        for total, base in ((world, True), (seen, False)):
            inner = turning if base else np.zeros(len(speed))
            outward = [reach[link]]  # of the joints from the last to the first: how far points are from them
            for arm, slide, *_ in reversed(chain):
                outward.append(outward[-1] + slide + arm)
            if base:
                total[:, link] = lifting + outward[-1] * (spinning + turning**2)
            for k, (*_, rate, change, kind) in enumerate(chain):
                r = 1.0 if kind == "prismatic" else outward[len(chain) - 1 - k]
                own = 0.0 if kind == "prismatic" else rate
                total[:, link] += r * (change + rate * (own + 2 * inner))
                inner = inner + own
    for i, name in enumerate(objects, start=len(record.links)):
        begin, end = track.objects[name], track.moved[name]
        if not np.array_equal(begin, end):
            path, T = float(np.linalg.norm(end[:3] - begin[:3])), track.duration
            angle = 2 * float(np.arccos(min(1.0, abs(float(begin[3:] @ end[3:])))))
            world[:, i] = (SHARPEST * (path + reach[i] * angle) + reach[i] * (FASTEST * angle) ** 2) / T**2
            seen[:, i] = np.inf
    return world, seen


def _halved(times: np.ndarray) -> np.ndarray:
    """Return times with ``HALVES - 1`` more between any two."""
    share = np.arange(HALVES) / HALVES
    return np.append((times[:-1, None] + np.outer(np.diff(times), share)).ravel(), times[-1])
