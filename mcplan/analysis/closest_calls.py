"""Closest calls: smallest margins of a run, from its certificate and its plan."""

import re
from dataclasses import dataclass

import numpy as np

from mcplan.certificate.report import Check, Report
from mcplan.record.run import Run

WORDS = {
    "torque": "joint torque",
    "velocity": "joint velocity",
    "position": "joint position",
    "friction ratio": "friction cone",
    "normal force": "force on a contact",
    "grasp force": "force on a grasp",
    "grasp moment": "moment on a grasp",
    "slip": "slip of a contact",
    "slip, angle": "turning slip of a contact",
    "contact place": "contact beside its place",
    "contact place, angle": "contact turned from its place",
    "clearance": "clearance",
    "unplanned contact": "unplanned contact",
    "fall": "sinking of the centre of mass",
}
"""Labels of the checks that are margins of the motion; all goals together are one call."""

SCALES = {"m": (1e3, "mm"), "N": (1.0, "N"), "deg": (1.0, "deg"), "rad": (1.0, "rad"), "s": (1.0, "s")}
"""Display unit of a value, with its factor."""

TIME = re.compile(r",? ?(?:at )?\b(?P<text>t = (?P<t>[\d.]+) s)")
"""Time in the text of a check."""

MIN_SHARE = 0.05
"""Minimum used share of a bound for a closest call."""


@dataclass(frozen=True)
class Call:
    """One quantity at its smallest margin.

    Attributes
    ----------
    what : name of the quantity.
    value : as text with unit.
    share : used share of the bound, above 1 if it is violated; None without a bound.
    where : place, without the time.
    t : time, s; None if there is no single time.
    """

    what: str
    value: str
    share: float | None
    where: str
    t: float | None


def closest_calls(run: Run, certificate: Report) -> list[Call]:
    """Return the closest calls: largest share of a bound first, then checks with a margin only."""
    calls = [_call(run, check, WORDS[check.name]) for check in certificate.checks if check.name in WORDS]
    goals = [check for check in certificate.checks if check.name.startswith(("goal", "item ")) and share_of(check)]
    if goals:
        worst = max(goals, key=lambda check: share_of(check) or 0.0)
        calls.append(_call(run, worst, worst.name))
    found = [call for call in calls if call is not None]
    found += [] if (push := _smallest_push(run)) is None else [push]
    relevant = (call for call in found if call.share is None or call.share >= MIN_SHARE)
    return sorted(relevant, key=lambda call: call.share or -1.0, reverse=True)


def share_of(check: Check) -> float | None:
    """Return value / upper bound, if the bound is not zero."""
    bound = re.fullmatch(r"<= ([\d.e+-]+)", check.bound)
    if bound is None or check.value is None or not float(bound[1]) > 0.0:
        return None
    return check.value / float(bound[1])


def time_of(where: str) -> tuple[str, float | None]:
    """Return a place without its time, and the time (s)."""
    found = TIME.search(where)
    return (where, None) if found is None else (where[: found.start()] + where[found.end() :], float(found["t"]))


def _call(run: Run, check: Check, what: str) -> Call | None:
    if check.value is None or not np.isfinite(check.value):
        return None
    place, t = time_of(check.where)
    share = share_of(check)
    if check.name == "friction ratio":
        share = check.value
    if check.name == "position":
        share = _range_share(run, check.value, place)
    if share is not None and check.passed:
        share = min(share, 1.0)  # a value within the tolerance of the check is no violation
    if share is None and check.value == 0.0 and not check.bound.startswith(">="):
        return None  # no such event; of a margin, however, zero is the smallest value
    if check.unit.startswith("of "):
        value = f"{check.value:.0%} {check.unit}"
    else:
        unit, _, rest = check.unit.partition(" ")
        factor, display_unit = SCALES.get(unit, (1.0, unit))
        value = f"{factor * check.value:.3g} {display_unit} {rest}".rstrip()
    return Call(what, value, share, place, t)


def _range_share(run: Run, margin: float, joint: str) -> float | None:
    """Return the used share of the range from the middle of a joint to its limit; 1 at the limit."""
    robot = run.record.robot
    if joint not in run.record.joints:
        return None
    half = 0.5 * (robot.limit("upper") - robot.limit("lower"))[run.record.joints.index(joint)]
    return float(1.0 - margin / half) if np.isfinite(half) and half > 0.0 else None


def _smallest_push(run: Run) -> Call | None:
    """Return the smallest resisted horizontal push of the plan's stances."""
    pushes = [stance.margins.get("equilibrium") for stance in run.plan.stances]
    margins = [(push, k) for k, push in enumerate(pushes) if push is not None]
    if not margins:
        return None
    push, k = min(margins)
    phases = [i for i, phase in enumerate(run.record.phases) if phase.stance == k]
    samples = np.flatnonzero(np.isin(run.phase, phases))
    t = float(run.t[samples[0]]) if len(samples) else None
    return Call("push that a stance resists", f"{push:.0f} N", None, f"stance {k} of the plan, at rest", t)
