"""Closest calls: the smallest margins of a run, from its certificate and its plan."""

import re
from dataclasses import dataclass

import numpy as np

from mcplan.certificate.report import Check, Report
from mcplan.record.run import Run

LABELS = {
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
"""Label of each check that is a margin of the motion. All goals together are one more closest call."""

SCALES = {"m": (1e3, "mm"), "N": (1.0, "N"), "deg": (1.0, "deg"), "rad": (1.0, "rad"), "s": (1.0, "s")}
"""Factor and display unit by unit of the certificate."""

TIME_PATTERN = re.compile(r",? ?(?:at )?\b(?P<text>t = (?P<t>[\d.]+) s)")
"""Pattern of the time in the text of a check."""

MIN_SHARE = 0.05
"""Checks that use a smaller share of their bound are not listed."""


@dataclass(frozen=True)
class ClosestCall:
    """One quantity at its smallest margin.

    Attributes
    ----------
    quantity : its name.
    value : its value, as text with unit.
    share : used share of the bound, above 1 if it is violated; None without a bound.
    where : joint, contact or pair of bodies.
    t : time, s; None if there is no single time.
    """

    quantity: str
    value: str
    share: float | None
    where: str
    t: float | None


def closest_calls(run: Run, certificate: Report) -> list[ClosestCall]:
    """Return the closest calls: largest share of a bound first, then checks with a margin only."""
    calls = [_call(run, check, LABELS[check.name]) for check in certificate.checks if check.name in LABELS]
    goals = [check for check in certificate.checks if check.name.startswith(("goal", "item ")) and share_of(check)]
    if goals:
        worst = max(goals, key=lambda check: share_of(check) or 0.0)
        calls.append(_call(run, worst, worst.name))
    found = [call for call in calls if call is not None]
    found += [] if (push := _smallest_push(run)) is None else [push]
    relevant = (call for call in found if call.share is None or call.share >= MIN_SHARE)
    return sorted(relevant, key=lambda call: call.share or -1.0, reverse=True)


def share_of(check: Check) -> float | None:
    """Return value / upper bound; None without a value or a positive upper bound."""
    bound = re.fullmatch(r"<= ([\d.e+-]+)", check.bound)
    if bound is None or check.value is None or not float(bound[1]) > 0.0:
        return None
    return check.value / float(bound[1])


def split_time(where: str) -> tuple[str, float | None]:
    """Split the text of a place and time into the place and the time (s)."""
    found = TIME_PATTERN.search(where)
    return (where, None) if found is None else (where[: found.start()] + where[found.end() :], float(found["t"]))


def _call(run: Run, check: Check, quantity: str) -> ClosestCall | None:
    if check.value is None or not np.isfinite(check.value):
        return None
    place, t = split_time(check.where)
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
    return ClosestCall(quantity, value, share, place, t)


def _range_share(run: Run, margin: float, joint: str) -> float | None:
    """Return the used share of the range from the middle of a joint to its limit; 1 at the limit."""
    robot = run.record.robot
    if joint not in run.record.joints:
        return None
    half = 0.5 * (robot.limit("upper") - robot.limit("lower"))[run.record.joints.index(joint)]
    return float(1.0 - margin / half) if np.isfinite(half) and half > 0.0 else None


def _smallest_push(run: Run) -> ClosestCall | None:
    """Return the smallest resisted horizontal push of the plan's stances."""
    pushes = [stance.margins.get("equilibrium") for stance in run.plan.stances]
    margins = [(push, k) for k, push in enumerate(pushes) if push is not None]
    if not margins:
        return None
    push, k = min(margins)
    phases = [i for i, phase in enumerate(run.record.phases) if phase.stance == k]
    samples = np.flatnonzero(np.isin(run.phase, phases))
    t = float(run.t[samples[0]]) if len(samples) else None
    return ClosestCall("push that a stance resists", f"{push:.0f} N", None, f"stance {k} of the plan, at rest", t)
