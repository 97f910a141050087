"""Dynamic balance, joint torques and speeds along a motion with a time parameterization, by independent dynamics.

SciPy's polynomials interpolate the time parameterization and the curve. The forces of the motion follow from the
equations of Newton and Euler of each link (`mcplan.certificate.independent`); a linear program, solved by HiGHS, checks
whether contacts can provide them (`mcplan.certificate.transition_balance`). No code is shared with the retiming.

The margins of the pace must be kept at the nodes. At the midpoints between nodes, a share `MIDPOINT_RESERVE` of these
margins may be used.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mcplan.certificate.independent import Mechanism
from mcplan.certificate.transition_balance import Balance
from mcplan.certificate.transition_track import TransitionTrack
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.pace import Pace

NODE_STRIDE = 3
"""Every third node is checked, and the midpoint after it."""

MIDPOINT_RESERVE = 0.5
"""Share of the margins that may be used at midpoints between nodes."""

TOUCHDOWN_HEIGHT = 0.01
"""m: the limit of the touchdown speed applies to a patch that is less than this above its support."""

SPEED_SAMPLES = 4
"""Number of speed checks per interval between two nodes."""


class DynamicsSample(NamedTuple):
    """Wrench balance and joint torque at one time.

    Attributes
    ----------
    t : time since the start of the segment (s).
    missing : largest component of the required wrench that contacts cannot provide (N, N m).
    share, joint : largest torque relative to the usable part of its limit, and its joint.
    """

    t: float
    missing: float
    share: float
    joint: str


class TimedStates(NamedTuple):
    """States of a segment at m times: postures (m, 7+n), and their velocities and accelerations (m, 6+n)."""

    q: np.ndarray
    v: np.ndarray
    vd: np.ndarray


def timed_states(track: TransitionTrack, t: np.ndarray) -> TimedStates:
    """Return the states of a segment with a time parameterization at times (m,)."""
    s, rate, change = (track.path_of_time(t, nu)[:, None] for nu in range(3))
    q, v, vd = track.curve.states(s[:, 0])
    return TimedStates(q, rate * v, rate * rate * vd + change * v)


def dynamics(track: TransitionTrack, balance: Balance, settings: ControlSettings) -> Iterator[DynamicsSample]:
    """Yield the balance and torques of a segment with a time parameterization, within the margins of its pace."""
    timing, pace = track.segment.law, settings.pace
    assert timing is not None
    assert pace is not None
    nodes = np.unique([*range(0, len(timing.times), NODE_STRIDE), len(timing.times) - 1])
    midpoints = 0.5 * (timing.times[nodes[:-1]] + timing.times[nodes[:-1] + 1])
    for t, reserved in ((timing.times[nodes], timing.kept), (midpoints, timing.kept - MIDPOINT_RESERVE)):
        state = timed_states(track, t)
        names = [contact.patch for contact in track.closed]
        motion = balance.mechanism.motion(state.q, state.v, state.vd, patches=names)
        contacts = [_contact_with_margin(contact, pace, settings, reserved) for contact in track.closed]
        poses = {}
        for contact in track.closed:
            R, p = contact.turned(motion.R[contact.patch]), motion.p[contact.patch]
            poses[contact.patch] = R, np.broadcast_to(contact.p, p.shape)
            if contact.selection[:, :3].any() and len(contact.selection) < 6:
                poses[contact.patch] = R, p
        share = min(_usable_share(pace.torque, 1.0, reserved), 1.0)
        for time, forces in zip(t, balance.at(state.q, [contacts] * len(t), poses, motion.force), strict=True):
            yield DynamicsSample(float(time), forces.missing, forces.share / share, forces.joint)


def speed_violations(
    track: TransitionTrack, mechanism: Mechanism, settings: ControlSettings
) -> Iterator[tuple[float, float, str]]:
    """Yield (time, value / limit of the pace, quantity): the largest velocity, acceleration, and touchdown speeds."""
    timing, pace = track.segment.law, settings.pace
    assert timing is not None
    assert pace is not None
    record = mechanism.record
    t = np.interp(
        np.arange(SPEED_SAMPLES * (len(timing.times) - 1) + 1) / SPEED_SAMPLES,
        np.arange(len(timing.times)),
        timing.times,
    )
    state, names = timed_states(track, t), record.coordinates
    limit = np.maximum(record.limit("velocity"), np.finfo(float).tiny)
    if len(names):
        rates = np.abs(state.v[:, 6:]) / limit / pace.velocity
        k, i = np.unravel_index(np.argmax(rates), rates.shape)
        yield float(t[k]), float(rates[k, i]), f"velocity of {names[i]}"
    accelerations = np.abs(state.vd[::SPEED_SAMPLES, 3:]) / pace.acceleration
    k, i = np.unravel_index(np.argmax(accelerations), accelerations.shape)
    yield (
        float(t[SPEED_SAMPLES * k]),
        float(accelerations[k, i]),
        f"acceleration of {names[i - 3] if i > 2 else 'the base, turning'}",
    )
    for course in track.segment.courses:
        contact = course.target
        if contact is None or course.hold:
            continue
        positions = mechanism.motion(state.q, patches=[course.patch]).p[course.patch]
        height = (positions - contact.p) @ contact.normal
        speed = np.where(height[:-1] < TOUCHDOWN_HEIGHT, -np.diff(height) / np.diff(t), 0.0)
        worst = int(np.argmax(speed))
        ratio = float(max(speed[worst], 0.0)) / pace.touchdown_speed
        yield float(t[worst]), ratio, f"speed of {course.patch}, coming down,"


def _usable_share(with_margin: float, without_margin: float, reserved: float) -> float:
    """Return the usable share of a limit, between the shares ``with_margin`` and ``without_margin``.

    ``reserved`` is the part of the margin between both that must be kept.
    """
    with_margin = min(with_margin, without_margin)
    return with_margin + (1.0 - reserved) * (without_margin - with_margin)


def _contact_with_margin(contact: Contact, pace: Pace, settings: ControlSettings, reserved: float) -> Contact:
    """Return a contact with usable friction, force limits and points; a part ``reserved`` of the margins is kept."""
    friction = min(_usable_share(pace.friction, settings.contact.friction_fraction, reserved), 1.0)
    force = min(_usable_share(pace.force, settings.contact.force_fraction, reserved), 1.0)
    edge_margin = max(pace.pressure, settings.contact.pressure_margin)
    edge_margin = max(edge_margin + (1.0 - reserved) * (settings.contact.pressure_margin - edge_margin), 0.0)
    centre = 0.5 * (contact.points.min(axis=0) + contact.points.max(axis=0))
    half_size = 0.5 * np.ptp(contact.points, axis=0)
    scale = 1.0 - np.minimum(edge_margin / np.where(half_size > 0.0, half_size, np.inf), 1 / 3)
    return replace(
        contact,
        friction=friction * contact.friction,
        max_force=force * contact.max_force,
        max_moment=force * contact.max_moment,
        points=centre + scale * (contact.points - centre),
    )
