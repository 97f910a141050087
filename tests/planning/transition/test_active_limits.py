"""What active_limits laws of time: what is named is at its limit, and more of it makes the motion quicker."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.analysis.active_limits import (
    ACCELERATION,
    COM_JERK,
    CONTACT_WEIGHT,
    FORCE,
    FRICTION,
    GRIP,
    PRESSURE,
    SMOOTHNESS,
    TORQUE,
    ActiveLimit,
    active_limits,
    time_shares,
)
from mcplan.planning.timing.retiming import FORCE_RAMPS, JERK, TORQUE_RATE, TOUCHDOWN, VELOCITY, Retimer

MORE = {
    "friction": FRICTION, "torque": TORQUE, "weight": CONTACT_WEIGHT, "velocity": VELOCITY,
    "acceleration": ACCELERATION, "jerk": JERK, "com_jerk": COM_JERK, "touchdown_speed": TOUCHDOWN, "ramp": FORCE_RAMPS,
    "pressure": PRESSURE,
}  # fmt: skip
"""By what of a pace, the kind of limit."""

KINDS = {*MORE.values(), GRIP, FORCE, TORQUE_RATE, SMOOTHNESS}


def law_of(step, segment, **pace):
    """The segment with its law at another pace, and who found it; its own speed is so low that any law is quicker."""
    segment = replace(segment, times=8.0 * segment.times)
    settings = step.scenario.replace(control={"pace": pace}).transition_settings
    retimer = Retimer(step.scenario.robot, settings)
    return replace(segment, law=retimer.timing(segment)), retimer


@pytest.mark.parametrize("k", [0, 1, 2])
def test_no_limit_is_used_by_more_than_all_of_it_and_some_are_nearly(step, k):
    segment, retimer = law_of(step, step.segments[k])
    found = active_limits(retimer, segment)
    used = np.array([bound.share for bound in found])
    assert used.max() <= 1.02  # the law looks at the same places, and at the nodes between them
    assert used.max() > 0.9
    assert {bound.kind for bound in found} <= KINDS
    times = [bound.t for bound in found]
    assert times == sorted(times)
    assert 0.0 < times[0] < times[-1] < segment.time


TIGHT = [
    (0, {"torque": 0.35}), (0, {"friction": 0.1}), (1, {"velocity": 0.1}), (1, {"acceleration": 6.0}),
    (0, {"com_jerk": 3.0}), (1, {"weight": 0.02}), (1, {"touchdown_speed": 0.02}), (1, {"jerk": 10.0}),
    (0, {"ramp": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize(("k", "pace"), TIGHT)
def test_a_tight_limit_is_the_one_that_is_named(step, k, pace):
    ((name, value),) = pace.items()
    segment, retimer = law_of(step, step.segments[k], **pace)
    parts = time_shares(active_limits(retimer, segment), segment.time)
    kinds = {}
    for what, part in parts.items():
        kind = what.partition(",")[0]
        kinds[kind] = kinds.get(kind, 0.0) + part
    assert sum(parts.values()) == pytest.approx(1.0)
    assert kinds.get(MORE[name], 0.0) > 0.1, kinds
    looser = value / 1.3 if name == "ramp" else 1.3 * value
    quicker, _ = law_of(step, step.segments[k], **{name: looser})
    assert quicker.time < 0.995 * segment.time


@pytest.mark.parametrize(("pace", "kind"), [({"acceleration": 6.0}, ACCELERATION), ({"velocity": 0.1}, VELOCITY)])
def test_the_joint_that_is_named_is_the_one_nearest_to_its_limit(step, pace, kind):
    """By differences of the postures along the motion."""
    segment, retimer = law_of(step, step.segments[1], **pace)
    robot, h = retimer.robot, 1e-4
    named = [
        bound for bound in active_limits(retimer, segment) if bound.kind == kind and bound.owner in robot.joint_names
    ]
    assert named
    for bound in named:
        q = [segment.posture.sample(segment.law.at(bound.t + k * h)[0]).q[7:] for k in (-1, 0, 1)]
        speed, change = (q[2] - q[0]) / (2 * h), (q[2] - 2 * q[1] + q[0]) / h**2
        used = np.abs(change) if kind == ACCELERATION else np.abs(speed) / robot.limits.velocity
        assert used[robot.joint_names.index(bound.owner)] > 0.9 * used.max()


def test_a_motion_without_a_law_is_bound_by_none(step):
    segment, retimer = law_of(step, step.segments[0])
    assert active_limits(retimer, replace(segment, law=None)) == ()
    assert time_shares((), segment.time) == {}


def test_shares_are_of_the_time_around_each_place():
    found = [
        ActiveLimit(0.1, TORQUE, "knee", 1.0),
        ActiveLimit(0.2, SMOOTHNESS, "", 0.5),
        ActiveLimit(0.5, TORQUE, "knee", 1.0),
    ]
    assert time_shares(found, 0.6) == pytest.approx({"torque, knee": 2 / 3, "smoothness": 1 / 3})


def test_a_force_falls_while_a_fast_shift_ends_and_after_a_slow_one(step):
    away = next(transition for transition in step.transitions if len(transition.segments[0].contacts) > 1)
    assert any(contact.patch == away.patch for contact in away.segments[0].contacts)
    moving = sum(segment.time for segment in away.segments)
    assert away.duration == pytest.approx(moving)
    slow = replace(away, segments=tuple(replace(segment, law=None) for segment in away.segments))
    assert slow.duration == pytest.approx(sum(segment.time for segment in slow.segments) + slow.ramp)
    back = next(one for one in step.transitions if one.patch is not None and len(one.segments[0].contacts) == 1)
    assert back.duration == pytest.approx(sum(segment.time for segment in back.segments) + back.ramp)
