"""Segments of the transitions of a plan, and contradictions between them and its stances."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.interpolate import BPoly

from mcplan.certificate.curve import SegmentCurve, minimum_jerk
from mcplan.certificate.goal_checks import distance_beyond
from mcplan.certificate.independent import contact_deviation, quaternion_step, rotation_of, rotation_vector
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.transition.transition import Segment, SwingSpec
from mcplan.scene.contact import Carrier, Contact
from mcplan.scene.environment import Environment

POSE_EPS = 1e-6
"""m, rad: poses in a plan file that differ by less count as equal, because numbers in the file are rounded."""

SUPPORT_TOLERANCE, CORNER_SPACING = 2e-3, 5e-3
"""m: tolerance of corners above or beside the surface that supports them; spacing of tested positions on a slide."""

MIN_NODES = 8
"""Minimum number of nodes of a time parameterization; with fewer, checks would be too far from each other."""

MIN_KNOTS = 6
"""Minimum number of knots of a spline of degree five."""


@dataclass(frozen=True, eq=False)
class TransitionTrack:
    """A segment of a transition with its environment.

    Attributes
    ----------
    stance, part : index of the stance at the end of the transition, and index of the segment in it.
    title : title of that stance: its change of contacts.
    segment, curve : the segment in the plan, and the curve of the whole body through its knots.
    closed : contacts that stay closed, at their poses at the start of the segment.
    allowed_contacts : contacts of the stances before and after the segment; their links may touch their supports.
    start_poses, end_poses : {name: (7,)} poses of all objects at the start and at the end of the segment.
    environment : environment of the scenario.
    """

    stance: int
    part: int
    title: str
    segment: Segment
    curve: SegmentCurve
    closed: tuple[Contact, ...]
    allowed_contacts: tuple[Contact, ...]
    start_poses: dict[str, np.ndarray]
    end_poses: dict[str, np.ndarray]
    environment: Environment

    @property
    def duration(self) -> float:
        """Duration of the path, before time parameterization (s)."""
        return float(self.curve.times[-1])

    def label(self, t: float) -> str:
        """Return stance, segment and a time on the path as text."""
        part = f", segment {self.part}" if self.part else ""
        return f"stance {self.stance} ({self.title}){part}, t = {t:.2f} of {self.duration:.2f} s"

    def timed_label(self, t: float) -> str:
        """Return stance, segment and a time of the time-parameterized motion as text."""
        part, timing = f", segment {self.part}" if self.part else "", self.segment.law
        end = self.duration if timing is None else timing.duration
        return f"stance {self.stance} ({self.title}){part}, t = {t:.2f} of {end:.2f} s"

    def contact_error(self, contact: Contact, t: np.ndarray, R: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return the deviation (m, 6) of a patch at poses R (m, 3, 3), p (m, 3) from a closed contact at times (m,).

        Only constrained directions count; axes of the contact, m and rad.
        """
        R0, p0 = self.contact_pose(contact, t)
        to_contact = np.swapaxes(R0, 1, 2)
        return contact_deviation(contact, to_contact @ R, np.einsum("kij,kj->ki", to_contact, p - p0))

    def object_poses(self, name: str, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rotations (m, 3, 3) and positions (m, 3) of an object at times (m,), on a minimum-jerk path."""
        begin, end = self.start_poses[name], self.end_poses[name]
        share = minimum_jerk(t / self.duration)[:, None]
        R0, R1 = (rotation_of(pose[3:, None])[..., 0] for pose in (begin, end))
        rotation = share * rotation_vector((R1 @ R0.T)[None])
        base = np.broadcast_to(begin[3:, None], (4, len(t)))
        R = rotation_of(quaternion_step(base, rotation.T)).transpose(2, 0, 1)
        return R, begin[:3] + share * (end[:3] - begin[:3])

    def closed_at(self, t: float) -> list[Contact]:
        """Return the closed contacts and the objects that carry them, at their poses at a time (s).

        An object that does not slide from its first support to its last is in the air between the ends.
        """
        found = []
        for contact in self.closed:
            carrier = contact.carrier
            if carrier is not None and not np.array_equal(self.start_poses[carrier.name], self.end_poses[carrier.name]):
                R, p = (x[0] for x in self.object_poses(carrier.name, np.array([t])))
                R0, p0 = (
                    rotation_of(self.start_poses[carrier.name][3:, None])[..., 0],
                    self.start_poses[carrier.name][:3],
                )
                (end,) = (c.carrier for c in self.segment.contacts if c.patch == contact.patch)
                rotation, rest = R @ R0.T, self._support_contact(t, carrier, end)
                if rest is not None and rest is carrier.rest:
                    rest = replace(rest, p=p, R=R)
                contact = replace(
                    contact,
                    axes=rotation @ contact.axes,
                    R=rotation @ contact.R,
                    p=p + rotation @ (contact.p - p0),
                    carrier=replace(carrier, com=p + rotation @ (carrier.com - p0), rest=rest),
                )
            found.append(contact)
        return found

    def _support_contact(self, t: float, begin: Carrier, end: Carrier | None) -> Contact | None:
        """Return the contact of a moving object with its support at a time (s); None if it is in the air.

        Parameters
        ----------
        begin, end : the object as carrier of a contact, at the start and at the end of the segment.
        """
        end_rest = None if end is None else end.rest
        if begin.rest is not None and end_rest is not None and begin.name in self.sliding_objects:
            return begin.rest
        at_begin, at_end = t <= self.curve.times[0], t >= self.duration
        return begin.rest if at_begin else end_rest if at_end else None

    @cached_property
    def path_of_time(self) -> BPoly:
        """Time on the path (s) as a function of the time of the time-parameterized motion (s)."""
        timing = self.segment.law
        assert timing is not None
        return BPoly.from_derivatives(timing.times, np.stack([timing.path, timing.rate, timing.change], axis=1))

    @cached_property
    def sliding_objects(self) -> frozenset[str]:
        """Names of the objects that slide in the plane of their support, always above surfaces in that plane."""
        carriers = [contact.carrier for contact in self.closed if contact.carrier is not None]
        return frozenset(c.name for c in carriers if c.rest is not None and self._stays_supported(c.name, c.rest))

    def _stays_supported(self, name: str, rest: Contact) -> bool:
        """Whether an object slides: it translates in the plane of its first support, and surfaces are below it."""
        begin, end = self.start_poses[name], self.end_poses[name]
        R0, R1 = (rotation_of(pose[3:, None])[..., 0] for pose in (begin, end))
        shift = end[:3] - begin[:3]
        if abs(rest.normal @ shift) > POSE_EPS or np.abs(R1 - R0).max() > POSE_EPS:
            return False
        share = np.linspace(0.0, 1.0, 2 + int(np.linalg.norm(shift) / CORNER_SPACING))
        corners = (rest.world_points + share[:, None, None] * shift).reshape(-1, 3)
        is_supported = np.zeros(len(corners), bool)
        for surface in self.environment.surfaces:
            if rest.normal @ surface.normal > 0.0:
                local = (corners - surface.p) @ surface.R
                outside = distance_beyond(local[:, None, :2], surface.polygon, False)
                is_supported |= (np.abs(local[:, 2]) < SUPPORT_TOLERANCE) & (outside < SUPPORT_TOLERANCE)
        return bool(is_supported.all())

    def contact_pose(self, contact: Contact, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the poses (m, 3, 3), (m, 3) of a closed contact at times (m,); it moves with an object it is on."""
        name = None if contact.carrier is None else contact.carrier.name
        if name is None or np.array_equal(self.start_poses[name], self.end_poses[name]):
            return np.broadcast_to(contact.R, (len(t), 3, 3)), np.broadcast_to(contact.p, (len(t), 3))
        R, p = self.object_poses(name, t)
        R0, p0 = rotation_of(self.start_poses[name][3:, None])[..., 0], self.start_poses[name][:3]
        return R @ R0.T @ contact.R, p + R @ R0.T @ (contact.p - p0)


def tracks_of(plan: Plan) -> tuple[list[TransitionTrack], list[str]]:
    """Return the tracks of the segments of a plan that can be checked, and the contradictions of the plan as text."""
    tracks, contradictions, environment = [], [], plan.scenario.environment
    for k in (0, len(plan.stances) - 1):
        if plan.stances[k].passing is not None:
            contradictions.append(f"stance {k}: the plan {'ends' if k else 'begins'} in motion")
    poses = {item.name: np.asarray(item.pose, float) for item in environment.objects}
    for name, pose in plan.stances[0].objects.items():
        if name not in poses or np.abs(pose - poses[name]).max() > POSE_EPS:
            contradictions.append(f"stance 0: the plan begins with {name} elsewhere than the scenario")
    for k, (before, stance) in enumerate(pairwise(plan.stances), start=1):
        title, transition = stance.title, stance.transition
        if transition is None:
            contradictions.append(f"stance {k}: no transition leads there")
            continue
        start, end = poses | before.objects, poses | stance.objects
        moving = {name for name in poses if np.abs(start[name] - end[name]).max() > 1e-9}
        allowed_contacts = (*plan.stances[max(k - 2, 0)].contacts, *before.contacts, *stance.contacts)
        problems = list(_transition_problems(plan, k, moving))
        for part, segment in enumerate(transition.segments):
            problems += _shape_problems(segment, part, plan.scenario.robot.nq, plan.scenario.robot.patches)
            if segment.law is not None and plan.scenario.control.pace is None:
                problems.append(f"segment {part} has a time parameterization, but `control.pace` is slow")
            if problems:
                continue
            closed = stance.contacts if part else before.contacts
            problems += _segment_problems(plan, k, part, moving)
            targets = tuple(swing.target for swing in segment.courses if swing.target is not None)
            start_poses, end_poses = (end, end) if part else (start, end)
            rates = _boundary_derivatives(plan, k, part)
            problems += _boundary_problems(segment, part, rates)
            curve = SegmentCurve(segment.times, segment.q, *rates)
            allowed = (*allowed_contacts, *targets)
            track = TransitionTrack(
                stance=k, part=part, title=title, segment=segment, curve=curve, closed=closed, allowed_contacts=allowed,
                start_poses=start_poses, end_poses=end_poses, environment=environment,
            )  # fmt: skip
            tracks.append(track)
        contradictions += [f"stance {k} ({title}): {problem}" for problem in problems]
    return tracks, contradictions


def _boundary_derivatives(plan: Plan, k: int, part: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the derivatives (q', q''), (2, 6+n), by the path parameter at each end of a segment; None at rest.

    They follow from ``v = q' sd`` and ``vd = q'' sd² + q' sdd``.
    """
    transition = plan.stances[k].transition
    assert transition is not None
    timing, last = transition.segments[part].law, len(transition.segments) - 1
    found: list[np.ndarray | None] = []
    for stance, at_end, node in ((k - 1, part == 0, 0), (k, part == last, -1)):
        state = plan.stances[stance].passing  # in which the robot passes the stance without coming to rest
        if state is None or not at_end or timing is None:
            found.append(None)
            continue
        sd, sdd = timing.rate[node], timing.change[node]
        slope = state.v / sd
        found.append(np.array([slope, (state.vd - sdd * slope) / sd**2]))
    return found[0], found[1]


def _boundary_problems(segment: Segment, part: int, rates: Sequence[np.ndarray | None]) -> Iterator[str]:
    """Yield the ends at which velocity or acceleration of a segment differ from those in which its stance is passed."""
    for verb, state, expected in (("begins", segment.begin, rates[0]), ("ends", segment.finish, rates[1])):
        found = np.zeros(1) if state is None else np.array([state.v, state.vd])
        if not np.abs(found - (0.0 if expected is None else expected)).max() <= POSE_EPS * max(
            1.0, float(np.abs(found).max())
        ):
            yield f"segment {part} {verb} at a velocity or acceleration that differs from that of its stance"


def _transition_problems(plan: Plan, k: int, moving: set[str]) -> Iterator[str]:
    """Yield the contradictions of a transition and its stance: patch, number of segments, load ramp, moving objects."""
    stance, transition = plan.stances[k], plan.stances[k].transition
    assert transition is not None
    if transition.patch != stance.moved:
        yield f"its transition moves {transition.patch or 'no patch'}, expected {stance.moved or 'none'}"
    max_segments = 2 if stance.change == "remove" else 1
    if not 1 <= len(transition.segments) <= max_segments:
        yield f"{len(transition.segments)} segments, expected 1{' or 2' if max_segments == 2 else ''}"
    if stance.change in ("add", "remove") and not transition.ramp > 0.0:
        yield f"the force of {stance.moved} changes within {transition.ramp:g} s, expected a ramp"
    if moving and stance.change != "shift":
        yield f"{', '.join(sorted(moving))} moves while contacts change"
    staying = [contact for contact in stance.contacts if contact.patch in plan.stances[k - 1].patches]
    carried = {contact.carrier.name for contact in staying if contact.carrier is not None}
    if uncarried := sorted(moving - carried):
        yield f"{', '.join(uncarried)} moves, but no closed contact carries it"


def _shape_problems(segment: Segment, part: int, nq: int, patches: Collection[str]) -> Iterator[str]:
    """Yield the invalid values of a segment, with which it cannot be checked."""
    where, times, q = f"segment {part}", segment.times, segment.q
    names = [swing.patch for swing in segment.courses]
    if len(set(names)) < len(names) or not set(names) <= set(patches):
        yield f"{where} has swing paths of {', '.join(names)}, expected patches of the robot, each once"
    if len(times) < MIN_KNOTS or q.shape != (len(times), nq) or segment.com.shape != (len(times), 3):
        yield f"{where} has {len(times)} times and knots {q.shape}, expected {MIN_KNOTS} or more of {nq} numbers"
    elif not (np.isfinite(times).all() and np.isfinite(q).all() and np.isfinite(segment.com).all()):
        yield f"{where} has numbers that are not finite"
    elif times[0] < 0.0 or not (np.diff(times) > 0.0).all():
        yield f"the times of {where} do not increase from 0"
    elif np.abs(np.linalg.norm(q[:, 3:7], axis=1) - 1.0).max() > POSE_EPS:
        yield f"a base quaternion of {where} does not have length 1"
    elif segment.law is not None:
        yield from _timing_problems(segment, where)


def _timing_problems(segment: Segment, where: str) -> Iterator[str]:
    """Yield the invalid values of a time parameterization."""
    timing = segment.law
    assert timing is not None
    t, s, sd, _ = nodes = (timing.times, timing.path, timing.rate, timing.change)
    if len({len(values) for values in nodes}) > 1 or len(t) < MIN_NODES:
        yield f"the timing of {where} has {len(t)} nodes, expected {MIN_NODES} or more, each with four numbers"
    elif not all(np.isfinite(values).all() for values in nodes):
        yield f"the timing of {where} has numbers that are not finite"
    elif t[0] != 0.0 or s[0] != 0.0 or min(np.diff(t).min(), np.diff(s).min()) <= 0.0:
        yield f"time or path of the timing of {where} do not increase from 0"
    elif abs(s[-1] - segment.times[-1]) > POSE_EPS or not (sd > 0.0).all():
        yield f"the timing of {where} does not lead to the end of its path"
    elif not 0.0 <= timing.kept <= 1.0:
        yield f"the timing of {where} keeps the share {timing.kept:g} of its margins, expected 0 to 1"


def _segment_problems(plan: Plan, k: int, part: int, moving: set[str]) -> Iterator[str]:
    """Yield the contradictions between a segment and its stances: contacts, objects, swing paths."""
    before, stance, transition = plan.stances[k - 1], plan.stances[k], plan.stances[k].transition
    assert transition is not None
    segment = transition.segments[part]
    closed = stance.contacts if part or moving else before.contacts
    expected = {contact.patch: contact for contact in closed}
    found = {contact.patch: contact for contact in segment.contacts}
    if found.keys() != expected.keys() or len(segment.contacts) != len(closed):
        yield f"segment {part} has contacts {', '.join(found) or 'none'}, expected {', '.join(expected)}"
    for patch in found.keys() & expected.keys():
        if not found[patch].same_place(expected[patch], POSE_EPS):
            yield f"segment {part} has {patch} elsewhere than its stance"
    objects = segment.objects or {}
    if objects.keys() != moving or any(np.abs(objects[n] - stance.objects[n]).max() > POSE_EPS for n in moving):
        yield f"segment {part} moves {', '.join(objects) or 'no object'}, unlike its stance"
    yield from _swing_problems(plan, k, part, expected)


def _swing_problems(plan: Plan, k: int, part: int, closed: dict[str, Contact]) -> Iterator[str]:
    """Yield the contradictions of the swing paths of a segment: lift-off, directions, touchdown."""
    stance = plan.stances[k]
    assert stance.transition is not None
    swings = stance.transition.segments[part].courses
    for swing in swings:
        old = previous_contact(plan.stances, k, part, swing)
        if swing.patch in closed:
            yield f"{swing.patch} has a swing path, but is in contact"
        if swing.lifts_off and old is None:
            yield f"{swing.patch} leaves a support, but no earlier stance has it on one"
        yield from _offset_problems(swing, old)
    yield from _arrival_problems(stance, part, swings)
    yield from _waiting_problems(plan.stances[k + 1 :], swings)
    only_lifts = len(swings) == 1 and swings[0].lifts_off and swings[0].target is None
    if part and not (only_lifts and swings[0].patch == stance.moved):
        yield f"segment 1 does not lift {stance.moved} off its support"


def _offset_problems(swing: SwingSpec, old: Contact | None) -> Iterator[str]:
    """Yield a lift or approach that is not along the normal of the support that the patch leaves or reaches."""
    if not (np.isfinite(swing.lift).all() and np.isfinite(swing.approach).all()):
        yield f"lift or approach of {swing.patch} is not finite"
        return
    normal = None if swing.target is None else swing.target.normal
    lift_normal = normal if old is None else old.normal
    for direction, offset, name in ((lift_normal, swing.lift, "lift"), (normal, swing.approach, "approach")):
        if direction is None:
            if np.abs(offset).max() > POSE_EPS:
                yield f"the {name} of {swing.patch} belongs to no support"
        elif offset @ direction < -POSE_EPS or np.abs(offset - (offset @ direction) * direction).max() > POSE_EPS:
            yield f"the {name} of {swing.patch} is not along the normal of its support"


def _arrival_problems(stance: PlannedStance, part: int, swings: Sequence[SwingSpec]) -> Iterator[str]:
    """Yield a difference between the patches that touch down and the contact that the stance adds."""
    arriving = [swing for swing in swings if swing.target is not None and not swing.hold]
    expected = [stance.contact(stance.moved)] if stance.change == "add" and stance.moved in stance.patches else []
    if [swing.patch for swing in arriving] != [contact.patch for contact in expected]:
        names = ", ".join(swing.patch for swing in arriving) or "no patch"
        yield f"segment {part} brings {names} to a support, expected {', '.join(c.patch for c in expected) or 'none'}"
    elif expected and not (arriving[0].target and arriving[0].target.same_place(expected[0], POSE_EPS)):
        yield f"segment {part} brings {expected[0].patch} to another place than its stance"


def _waiting_problems(later: Sequence[PlannedStance], swings: Sequence[SwingSpec]) -> Iterator[str]:
    """Yield the patches that wait above a position at which no later stance has a contact."""
    contacts = [contact for stance in later for contact in stance.contacts]
    for swing in swings:
        if swing.hold and not any(swing.target and swing.target.same_place(c, POSE_EPS) for c in contacts):
            yield f"{swing.patch} waits above a place that no later stance has"


def previous_contact(stances: Sequence[PlannedStance], k: int, part: int, swing: SwingSpec) -> Contact | None:
    """Return the contact that a patch leaves as segment ``part`` of the transition to stance k starts, or None."""
    if not swing.lifts_off:
        return None
    candidates = stances[k - 1] if part else stances[max(k - 2, 0)]
    return next((contact for contact in candidates.contacts if contact.patch == swing.patch), None)
