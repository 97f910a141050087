"""Dynamic balance, joint torques and speeds along a motion with a time parameterization, by independent dynamics.

SciPy's polynomials interpolate the time parameterization and the curve. The forces of the motion follow from Newton and
Euler for each link (`mcplan.certificate.independent`); a linear program of HiGHS checks whether contacts can provide
them (`mcplan.certificate.transition_balance`). Nothing is shared with the code of the retiming.

Margins hold at the nodes. Midway between two nodes a share `BETWEEN` of the reserve may be used.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BPoly

from mcplan.certificate.independent import Mechanism
from mcplan.certificate.transition_balance import Balance
from mcplan.certificate.transition_track import TransitionTrack
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.pace import Pace

EVERY = 3
"""Every so many nodes, one node and the midpoint after it are checked."""

BETWEEN = 0.5
"""Share of the reserve that may be used between nodes."""

CLOSE = 0.01
"""m: distance to its support below which the touchdown speed limit of a patch applies."""

FINE = 4
"""Speed checks per interval between two nodes."""


class DynamicsSample(NamedTuple):
    """Balance and torque at one time.

    Attributes
    ----------
    t : since the segment began (s).
    missing : of the wrench that the motion takes (N, N m).
    share, joint : largest torque relative to the share of its limit that may be used.
    """

    t: float
    missing: float
    share: float
    joint: str


class TimedStates(NamedTuple):
    """The states of a segment at some times: postures (m, 7+n), their velocities and accelerations (m, 6+n)."""

    q: np.ndarray
    v: np.ndarray
    vd: np.ndarray


def timed_states(track: TransitionTrack, t: np.ndarray) -> TimedStates:
    """Return the states of a segment with a time parameterization at times (m,)."""
    timing = track.segment.law
    assert timing is not None
    s_of_t = BPoly.from_derivatives(timing.times, np.stack([timing.path, timing.rate, timing.change], axis=1))
    s, rate, change = (s_of_t(t, nu)[:, None] for nu in range(3))
    q, v, vd = track.curve.states(s[:, 0])
    return TimedStates(q, rate * v, rate * rate * vd + change * v)


def dynamics(track: TransitionTrack, balance: Balance, settings: ControlSettings) -> Iterator[DynamicsSample]:
    """Yield the contact wrench and torque that a timed segment needs, with the margins that its timing declares."""
    timing, pace = track.segment.law, settings.pace
    assert timing is not None
    assert pace is not None
    nodes = np.unique([*range(0, len(timing.times), EVERY), len(timing.times) - 1])
    middles = 0.5 * (timing.times[nodes[:-1]] + timing.times[nodes[:-1] + 1])
    for t, kept in ((timing.times[nodes], timing.kept), (middles, timing.kept - BETWEEN)):
        state = timed_states(track, t)
        names = [contact.patch for contact in track.closed]
        motion = balance.mechanism.motion(state.q, state.v, state.vd, patches=names)
        contacts = [_derated(contact, pace, settings, kept) for contact in track.closed]
        places = {}
        for contact in track.closed:
            R, p = contact.turned(motion.R[contact.patch]), motion.p[contact.patch]
            places[contact.patch] = R, np.broadcast_to(contact.p, p.shape)
            if contact.selection[:, :3].any() and len(contact.selection) < 6:
                places[contact.patch] = R, p
        share = min(_usable_share(pace.torque, 1.0, kept), 1.0)
        for at, found in zip(t, balance.at(state.q, [contacts] * len(t), places, motion.force), strict=True):
            yield DynamicsSample(float(at), found.missing, found.share / share, found.joint)


def speed_violations(
    track: TransitionTrack, mechanism: Mechanism, settings: ControlSettings
) -> Iterator[tuple[float, float, str]]:
    """Yield (time, part of the pace's bound, quantity) for velocities, accelerations, and touching down."""
    timing, pace = track.segment.law, settings.pace
    assert timing is not None
    assert pace is not None
    record = mechanism.record
    t = np.interp(np.arange(FINE * (len(timing.times) - 1) + 1) / FINE, np.arange(len(timing.times)), timing.times)
    state, names = timed_states(track, t), record.coordinates
    limit = np.maximum(record.limit("velocity"), np.finfo(float).tiny)
    if len(names):
        rates = np.abs(state.v[:, 6:]) / limit / pace.velocity
        k, i = np.unravel_index(np.argmax(rates), rates.shape)
        yield float(t[k]), float(rates[k, i]), f"velocity of {names[i]}"
    nodes = np.abs(state.vd[::FINE, 3:]) / pace.acceleration
    k, i = np.unravel_index(np.argmax(nodes), nodes.shape)
    yield float(t[FINE * k]), float(nodes[k, i]), f"acceleration of {names[i - 3] if i > 2 else 'the base, turning'}"
    for course in track.segment.courses:
        contact = course.target
        if contact is None or course.hold:
            continue
        places = mechanism.motion(state.q, patches=[course.patch]).p[course.patch]
        height = (places - contact.p) @ contact.normal
        speed = np.where(height[:-1] < CLOSE, -np.diff(height) / np.diff(t), 0.0)
        worst = int(np.argmax(speed))
        part = float(max(speed[worst], 0.0)) / pace.touchdown_speed
        yield float(t[worst]), part, f"speed of {course.patch}, coming down,"


def _usable_share(paced: float, counted: float, kept: float) -> float:
    """Return the part of a limit that may be used where a part of the reserve up to ``counted`` is kept."""
    paced = min(paced, counted)
    return paced + (1.0 - kept) * (counted - paced)


def _derated(contact: Contact, pace: Pace, settings: ControlSettings, kept: float) -> Contact:
    """Return a contact as it may be loaded."""
    friction = min(_usable_share(pace.friction, settings.contact.friction_fraction, kept), 1.0)
    force = min(_usable_share(pace.force, settings.contact.force_fraction, kept), 1.0)
    inside = max(pace.pressure, settings.contact.pressure_margin)
    inside = max(inside + (1.0 - kept) * (settings.contact.pressure_margin - inside), 0.0)
    middle = 0.5 * (contact.points.min(axis=0) + contact.points.max(axis=0))
    half = 0.5 * np.ptp(contact.points, axis=0)
    scale = 1.0 - np.minimum(inside / np.where(half > 0.0, half, np.inf), 1 / 3)
    return replace(
        contact,
        friction=friction * contact.friction,
        max_force=force * contact.max_force,
        max_moment=force * contact.max_moment,
        points=middle + scale * (contact.points - middle),
    )
