"""Checks of places: contacts stay where they are, the last ones are where the goal has them, nobody falls."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mcplan.sim.certificate import Check
from mcplan.sim.evidence import NONE, Evidence
from mcplan.sim.motion_checks import worst


def place_checks(evidence: Evidence) -> Iterator[Check]:
    """Yield the lines of the certificate that concern places."""
    yield from _slip(evidence)
    yield _goal(evidence)
    yield _fall(evidence)


def _slip(evidence: Evidence) -> Iterator[Check]:
    """Drift of every contact, from where it began and from its planned place, in the directions that it constrains."""
    run, tolerances = evidence.run, evidence.tolerances
    for name, planned in (("slip", False), ("contact place", True)):
        biggest: dict[str, tuple[float, str]] = {"m": (0.0, ""), "deg": (0.0, "")}
        failures: dict[str, list[str]] = {"m": [], "deg": []}
        for column, first, end, contact in evidence.intervals:
            rows, patch = slice(first, end), run.patches[column]
            if planned:
                if contact == NONE:
                    failures["m"].append(
                        f"{patch} is in contact from {evidence.time(first)} on, but has no planned contact"
                    )
                    continue
                distance, angle = evidence.planned_error(column, rows, contact)
            else:
                distance, angle = evidence.drift(column, rows, contact)
            for unit, values, bound in (
                ("m", distance, tolerances.slip),
                ("deg", np.rad2deg(angle), np.rad2deg(tolerances.turn)),
            ):
                (i,) = worst(values)
                value, where = float(values[i]), f"{patch} at {evidence.time(first + i)}"
                if not value <= biggest[unit][0]:
                    biggest[unit] = (value, where)
                if not value <= bound:
                    begin = first + int(np.flatnonzero(~(values <= bound))[0])
                    origin = "its planned place" if planned else f"where it touched at {evidence.time(first)}"
                    failures[unit].append(
                        f"{patch} is {value:.4g} {unit} away from {origin} at {evidence.time(first + i)}, "
                        f"allowed {bound:g} (beyond it from {evidence.time(begin)} on)"
                    )
        for unit, suffix, bound in (("m", "", tolerances.slip), ("deg", ", angle", np.rad2deg(tolerances.turn))):
            value, where = biggest[unit]
            wrong = "; ".join(failures[unit])
            yield Check(name + suffix, value, unit, f"<= {bound:.3g}", not wrong, where, wrong)


def _goal(evidence: Evidence) -> Check:
    """Judge that the last stance holds at the end, contacts in their places, and the base where the goal gives one."""
    run, tolerances, last = evidence.run, evidence.tolerances, len(evidence.run) - 1
    failures, largest, where = [], 0.0, ""
    if evidence.record.stopped:
        failures.append(f"the simulation had to stop: {evidence.record.stopped}")
    for contact in evidence.record.plan.stances[-1].contacts:
        column = run.patches.index(contact.patch)
        distance, angle = evidence.planned_error(column, slice(last, last + 1), evidence.contacts.index(contact))
        if not run.active[last, column]:
            failures.append(f"{contact.patch} is not in contact with {contact.support} at the end")
        if not (distance[0] <= tolerances.goal and angle[0] <= tolerances.goal_turn):
            failures.append(
                f"{contact.patch} ends {distance[0]:.4g} m and {np.rad2deg(angle[0]):.3g} deg away from its place on "
                f"{contact.support}, allowed {tolerances.goal:g} m and {np.rad2deg(tolerances.goal_turn):.3g} deg"
            )
        if not distance[0] <= largest:
            largest, where = float(distance[0]), contact.patch
    base = _goal_item(evidence).get("base") or {}
    if isinstance(base, dict) and len(base.get("xyz") or ()) == 3:
        off = float(np.linalg.norm(run.q[last, :3] - np.array(base["xyz"], dtype=float)))
        allowed = float(base.get("tolerance") or 0.05)
        if not off <= allowed:
            failures.append(f"the base ends {off:.4g} m away from its goal, allowed {allowed:g}")
    failures += list(_misplaced_objects(evidence))
    failure = "goal not reached: " + "; ".join(failures) if failures else ""
    return Check("goal reached", largest, "m", f"<= {tolerances.goal:g}", not failures, where, failure)


def _misplaced_objects(evidence: Evidence) -> Iterator[str]:
    """Yield a text for each object that is not where the goal asks for it."""
    run, objects, allowed = evidence.run, evidence.record.objects, evidence.tolerances.object
    wanted = _goal_item(evidence).get("objects")
    for name, pose in wanted.items() if isinstance(wanted, dict) else ():
        if run.object_q is None or name not in objects or not isinstance(pose, dict):
            yield f"the goal has an object {name}, the run has not"
            continue
        off = float(np.linalg.norm(run.object_q[-1, objects.index(name), :3] - np.array(pose.get("xyz"), dtype=float)))
        if not off <= allowed:
            yield f"{name} ends {off:.4g} m away from its goal, allowed {allowed:g}"


def _goal_item(evidence: Evidence) -> dict[str, Any]:
    goal = evidence.record.scenario.document.get("goal")
    item = goal[-1] if isinstance(goal, list) and goal else goal
    return item if isinstance(item, dict) else {}


def _fall(evidence: Evidence) -> Check:
    """Judge that the centre of mass stays above the lowest planned one, less an allowance."""
    allowed = evidence.tolerances.fall
    planned = evidence.mechanism.motion(np.array([s.q for s in evidence.record.plan.stances])).com[:, 2]
    sunk = planned.min() - evidence.motion.com[:, 2]
    (k,) = worst(sunk)
    passed = bool(sunk[k] <= allowed)
    failure = ""
    if not passed:
        first = int(np.flatnonzero(~(sunk <= allowed))[0])
        failure = (
            f"fell: the centre of mass is {sunk[k]:.3g} m below the lowest planned one at {evidence.time(k)}, "
            f"beyond {allowed:g} m from {evidence.time(first)} on"
        )
    return Check("fall", max(float(sunk[k]), 0.0), "m", f"<= {allowed:g}", passed, evidence.time(k), failure)
