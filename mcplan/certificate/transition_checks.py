"""Transition checks of a plan: contacts, paths, joints, balance, dynamics and clearance along its motions.

Closed contacts must stay in place and balance the robot within torque limits: statically, or dynamically if it passes
its stances in motion. Joints must keep their position and velocity limits, swing patches must follow their paths from
support to support, and bodies must keep clear of each other. In a motion with a time parameterization, contact forces
must be feasible and the margins of the pace must be kept.

The path of a patch is recomputed from its swing parameters. A patch with a path of its own lifts off along the normal
of its support, is transferred, and approaches along the normal of the next support, in three overlapping minimum-jerk
pieces with the profiles s1, s2, s3::

    p(t) = pA + l s1(t) + (pB + a - pA - l) s2(t) - a s3(t)

with positions pA and pB in contact, lift l and approach a. Lift and approach take at least ``swing_blend`` of the
duration of the transfer. The paths of other patches follow from the knots.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from mcplan.certificate.curve import minimum_jerk
from mcplan.certificate.independent import Mechanism, MechanismMotion, contact_deviation, rotation_of, rotation_vector
from mcplan.certificate.object_checks import track_clearance
from mcplan.certificate.report import Check, WorstCase
from mcplan.certificate.tolerances import (
    PLAN_FORCE,
    PLAN_PLACE,
    TRANSITION_ANGLE_DEG,
    TRANSITION_BALANCE,
    TRANSITION_COM,
    TRANSITION_DYNAMIC,
    TRANSITION_LIFT,
    TRANSITION_PACE,
    TRANSITION_PATH,
    TRANSITION_PLACE,
)
from mcplan.certificate.transition_balance import Balance, balance_times
from mcplan.certificate.transition_clearance import transition_clearance
from mcplan.certificate.transition_dynamics import dynamics, speed_violations, timed_states
from mcplan.certificate.transition_track import TransitionTrack, previous_contact, tracks_of
from mcplan.planning.plan import Plan
from mcplan.planning.transition.transition import SwingSpec
from mcplan.record.records import RobotRecord, recorded_units, unit_of_all
from mcplan.scene.contact import Contact
from mcplan.settings.control import LIMB_ANGULAR_SPEED_RAD_S, ControlSettings

PIECE_OVERLAP, MIN_PIECE_S = 0.4, 0.3
"""Overlap of lift and approach with the transfer, as a share of their duration; s: minimum duration of a piece."""


def expected_path(
    track: TransitionTrack, course: SwingSpec, settings: ControlSettings, motion: MechanismMotion, t: np.ndarray
) -> np.ndarray:
    """Return the expected positions (m, 3) of a patch at times (m,) from start to end, with its motion there."""
    R, p = motion.R[course.patch], motion.p[course.patch]
    if course.lead == "body":
        return p
    angle = float(np.linalg.norm(rotation_vector((R[-1] @ R[0].T)[None])))
    return _swing_path(p[[0, -1]], course, angle, settings, track.duration, t)


def _piece_duration(settings: ControlSettings, distance: float, angle: float = 0.0) -> float:
    """Return the duration (s) of a minimum-jerk piece; its maximum speed is 15/8 of its mean speed."""
    if distance <= 0.0 and angle <= 0.0:
        return 0.0
    return max(MIN_PIECE_S, 1.875 * distance / settings.timing.limb_speed, 1.875 * angle / LIMB_ANGULAR_SPEED_RAD_S)


def _swing_path(
    p: np.ndarray, course: SwingSpec, angle: float, settings: ControlSettings, duration: float, t: np.ndarray
) -> np.ndarray:
    """Return the positions (m, 3) at times (m,) of a patch with a path of its own.

    Parameters
    ----------
    p : (2, 3) positions at the start and at the end, m.
    angle : rotation of the patch between them, rad.
    duration : duration of the segment, s; the pieces are stretched to fill it.
    """
    offsets = np.array([course.lift, p[1] + course.approach - p[0] - course.lift, -course.approach])
    durations = np.array(
        [_piece_duration(settings, float(np.linalg.norm(d)), angle * (i == 1)) for i, d in enumerate(offsets)]
    )
    durations[::2] = np.where(
        durations[::2] > 0.0, np.maximum(durations[::2], settings.timing.swing_blend * durations[1]), 0.0
    )
    starts = np.array([0.0, (1 - PIECE_OVERLAP) * durations[0], durations[0]])
    if durations[1] > 0.0:
        starts[2] = max(starts[1] + durations[1] - PIECE_OVERLAP * durations[2], durations[0])
    else:
        starts[1] = 0.0
    total = float((starts + durations).max())
    scale = max(1.0, duration / total) if total > 0.0 else 1.0
    parts = minimum_jerk((t[:, None] - scale * starts) / np.maximum(scale * durations, 1e-9))
    return np.asarray(p[0] + parts @ offsets)


VELOCITY_SAMPLES = 4
"""Number of velocity checks per interval between two nodes of a time parameterization."""

SAMPLES_PER_PIECE = 2
"""Number of checks of contacts and swing paths per spline piece."""


def transition_checks(plan: Plan, record: RobotRecord) -> Iterator[Check]:
    """Yield the checks of a plan's transitions; none for a single stance."""
    if len(plan.stances) < 2:
        return
    tracks, contradictions = tracks_of(plan)
    count = float(len(contradictions))
    yield Check(
        "transition: stances", count, "contradictions", "<= 0", not contradictions, "", "; ".join(contradictions)
    )
    mechanism = Mechanism(record)
    lines = _TransitionLines(plan, record, mechanism)
    if tracks:
        lines.update(tracks)
    yield from (line.check() for line in lines.all)
    yield transition_clearance(plan, record, mechanism, tracks)
    object_clearance = track_clearance(plan.scenario.environment, tracks)
    if object_clearance is not None:
        yield object_clearance


def _line(name: str, unit: str, bound: float, at_least: bool = False) -> WorstCase:
    return WorstCase(f"transition: {name}", unit, bound, at_least)


class _TransitionLines:
    """Worst cases of all checks of transitions."""

    def __init__(self, plan: Plan, record: RobotRecord, mechanism: Mechanism):
        self.plan, self.record, self.mechanism = plan, record, mechanism
        self.settings: ControlSettings = plan.scenario.transition_settings
        self.balance = Balance(record, mechanism)
        self.patches = [patch.name for patch in record.patches]
        self.points = {patch.name: np.array([[*x, 0.0][:3] for x in patch.polygon]) for patch in record.patches}
        self.ends = _line("ends", "m, rad", PLAN_PLACE)
        self.com = _line("centre of mass", "m", TRANSITION_COM)
        self.place = _line("contact place", "m", TRANSITION_PLACE)
        self.angle = _line("contact angle", "deg", TRANSITION_ANGLE_DEG)
        self.path = _line("path", "m", TRANSITION_PATH)
        self.lift = _line("lift", "m", TRANSITION_LIFT, at_least=True)
        self.units = recorded_units(record)
        self.position = _line("joint position", f"{unit_of_all(self.units)} beyond the limit", PLAN_FORCE)
        self.velocity = _line("velocity", "of the limit", 1.0)
        self.balance_line = _line("balance", "N, N m missing", TRANSITION_BALANCE)
        self.torque = _line("torque", "of the limit", 1.0)
        self.dynamic = _line("dynamic balance", "N, N m missing", TRANSITION_BALANCE)
        self.effort = _line("dynamic torque", "of what may be used", 1.0 + TRANSITION_DYNAMIC)
        self.pace = _line("pace", "of its limit", 1.0 + TRANSITION_PACE)

    @property
    def all(self) -> tuple[WorstCase, ...]:
        """All checks, in the order of the report."""
        lines = (
            self.ends, self.com, self.place, self.angle, self.path, self.lift, self.position, self.velocity,
            self.balance_line, self.torque,
        )  # fmt: skip
        return lines if self.pace.value is None else (*lines, self.dynamic, self.effort, self.pace)

    def update(self, tracks: Sequence[TransitionTrack]) -> None:
        """Update all checks with segments, whose motion is computed at once, because that takes less time."""
        times = [(_sample_times(track), balance_times(track)) for track in tracks]
        q = [track.curve.sample(np.concatenate(both)) for track, both in zip(tracks, times, strict=True)]
        motions = self.mechanism.motion(np.concatenate(q), patches=self.patches).split([len(x) for x in q])
        for track, (t, checks), motion in zip(tracks, times, motions, strict=True):
            sampled, checked = motion.split([len(t), len(checks)])
            self._ends(track, sampled)
            self._contacts(track, t, sampled)
            self._swing_paths(track, t, sampled)
            self._joint_limits(track)
            self._balance(track, checks, checked)
            if track.segment.law is not None:
                self._timed_motion(track)

    def _balance(self, track: TransitionTrack, t: np.ndarray, motion: MechanismMotion) -> None:
        for time, forces in () if track.segment.passes else zip(t, self.balance.along(track, t, motion), strict=True):
            where, patches = track.label(time), ", ".join(contact.patch for contact in track.closed) or "no contact"
            self.balance_line.update(
                forces.missing, where, f"{patches} cannot hold the robot: {forces.missing:.4g} N (N m) are missing"
            )
            text = f"{forces.joint} needs at least {forces.share:.3f} of its torque limit"
            self.torque.update(forces.share, f"{forces.joint}, {where}", text)

    def _timed_motion(self, track: TransitionTrack) -> None:
        patches = ", ".join(contact.patch for contact in track.closed) or "no contact"
        for sample in dynamics(track, self.balance, self.settings):
            where = track.timed_label(sample.t)
            text = f"{patches} cannot give the motion: {sample.missing:.4g} N (N m) are missing"
            self.dynamic.update(sample.missing, where, text)
            text = f"{sample.joint} needs {sample.share:.3f} of the torque that may be used"
            self.effort.update(sample.share, f"{sample.joint}, {where}", text)
        for t, ratio, quantity in speed_violations(track, self.mechanism, self.settings):
            self.pace.update(ratio, track.timed_label(t), f"the {quantity} is {ratio:.3f} of the limit of the pace")

    def _ends(self, track: TransitionTrack, motion: MechanismMotion) -> None:
        stances, knots = self.plan.stances, track.segment.q
        before, stance = stances[track.stance - 1], stances[track.stance]
        if track.part == 0:
            previous = before.transition
            begin = before.q if previous is None else previous.segments[-1].q[-1]
            gap = configuration_distance(begin, knots[0])
            self.ends.update(gap, track.label(0.0), f"begins {gap:.4g} away from the end of the motion before")
        gap = configuration_distance(stance.q, knots[0] if track.part else knots[-1])
        where = track.label(0.0 if track.part else track.duration)
        self.ends.update(gap, where, f"is {gap:.4g} away from the posture of its stance")
        deviation = np.linalg.norm(motion.com[::SAMPLES_PER_PIECE] - track.segment.com, axis=1)
        worst = int(np.argmax(deviation))
        where = track.label(track.segment.times[worst])
        self.com.update(
            float(deviation[worst]), where, f"the recorded centre of mass is off by {deviation[worst]:.4g} m"
        )
        for course in track.segment.courses:
            old = previous_contact(stances, track.stance, track.part, course)
            for contact, k, t in ((old, 0, 0.0), (course.target, -1, track.duration)):
                if contact is not None:
                    error = _contact_error(contact, motion, course.patch, k)
                    verb = "begins" if k == 0 else "ends"
                    where = f"{course.patch}, {track.label(t)}"
                    self.ends.update(error, where, f"{verb} {error:.4g} away from its place on {contact.support}")

    def _contacts(self, track: TransitionTrack, t: np.ndarray, motion: MechanismMotion) -> None:
        for contact in track.closed:
            patch = contact.patch
            error = track.contact_error(contact, t, motion.R[patch], motion.p[patch])
            distance = np.linalg.norm(error[:, :3], axis=1)
            rotation = np.rad2deg(np.linalg.norm(error[:, 3:], axis=1))
            for line, values, unit in (
                (self.place, distance, "m away from"),
                (self.angle, rotation, "deg turned out of"),
            ):
                k = int(np.argmax(values))
                line.update(float(values[k]), f"{patch}, {track.label(t[k])}", f"is {values[k]:.4g} {unit} its place")

    def _swing_paths(self, track: TransitionTrack, t: np.ndarray, motion: MechanismMotion) -> None:
        for course in track.segment.courses:
            expected = expected_path(track, course, self.settings, motion, t)
            deviation = np.linalg.norm(motion.p[course.patch] - expected, axis=1)
            k = int(np.argmax(deviation))
            where = f"{course.patch}, {track.label(t[k])}"
            self.path.update(float(deviation[k]), where, f"its knots are {deviation[k]:.4g} m off its swing path")
            old = previous_contact(self.plan.stances, track.stance, track.part, course)
            if old is None:
                continue
            corners = np.einsum("kij,cj->kci", motion.R[course.patch], self.points[course.patch])
            heights = ((corners + motion.p[course.patch][:, None] - old.p) @ old.normal).min(axis=1)
            k = int(np.argmax(heights))
            if course.target is not None or track.part:
                text = f"lifts no more than {heights[k]:.4g} m off {old.support}"
                self.lift.update(float(heights[k]), f"{course.patch}, {track.label(t[k])}", text)

    def _joint_limits(self, track: TransitionTrack) -> None:
        names, curve = self.record.coordinates, track.curve
        if not names:
            return
        lower, upper = curve.joint_range
        excess = np.maximum(self.record.limit("lower") - lower, upper - self.record.limit("upper"))
        piece, i = np.unravel_index(np.argmax(excess), excess.shape)
        value, where = float(excess[piece, i]), f"{names[i]}, {track.label(curve.times[piece])}"
        self.position.update(value, where, f"is {value:.4g} {self.units[i]} beyond its limit")
        limit = self.record.limit("velocity")
        speed, when = curve.max_speed[:, 6:], [track.label(t) for t in curve.times]
        if track.segment.law is not None:
            times = track.segment.law.times
            t = np.interp(
                np.arange(VELOCITY_SAMPLES * (len(times) - 1) + 1) / VELOCITY_SAMPLES, np.arange(len(times)), times
            )
            speed, when = np.abs(timed_states(track, t).v[:, 6:]), [track.timed_label(time) for time in t]
        rates = speed / np.maximum(limit, np.finfo(float).tiny)
        piece, i = np.unravel_index(np.argmax(rates), rates.shape)
        value, where = float(rates[piece, i]), f"{names[i]}, {when[piece]}"
        if np.isfinite(limit).any():
            self.velocity.update(
                value, where, f"moves with {value * limit[i]:.4g} {self.units[i]}/s, limit {limit[i]:g}"
            )


def configuration_distance(q0: np.ndarray, q1: np.ndarray) -> float:
    """Return the largest difference of two configurations (7+n,): base position, base rotation, joints (m, rad)."""
    R = rotation_of(np.array([q0[3:7], q1[3:7]]).T).transpose(2, 0, 1)
    rotation = float(np.linalg.norm(rotation_vector((R[1] @ R[0].T)[None])))
    differences = np.abs(np.delete(np.asarray(q1) - q0, slice(3, 7)))
    return max(rotation, float(np.linalg.norm((q1 - q0)[:3])), float(differences.max()))


def _contact_error(contact: Contact, motion: MechanismMotion, patch: str, k: int) -> float:
    """Return the distance of a patch from a contact at sample k, in its constrained directions (m, rad)."""
    R, p = motion.R[patch][k], motion.p[patch][k]
    local = (p - contact.p) @ contact.R
    return float(np.linalg.norm(contact_deviation(contact, (contact.R.T @ R)[None], local[None])))


def _sample_times(track: TransitionTrack) -> np.ndarray:
    """Return the times of the knots, and ``SAMPLES_PER_PIECE - 1`` times between any two."""
    times = track.curve.times
    share = np.arange(SAMPLES_PER_PIECE) / SAMPLES_PER_PIECE
    return np.append((times[:-1, None] + np.outer(np.diff(times), share)).ravel(), times[-1])
