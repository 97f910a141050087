"""Checks of where a run leads: slip of contacts, execution of the plan to its end, goals, falls."""

from collections.abc import Iterator

import numpy as np

from mcplan.certificate.goal_checks import ANY_SUPPORT, GoalChecker, GoalStates, GoalTolerances
from mcplan.certificate.motion_checks import worst
from mcplan.certificate.recomputed_run import NONE, RecomputedRun
from mcplan.certificate.report import Check, WorstCase
from mcplan.errors import RunError
from mcplan.record.world import with_imperfections
from mcplan.robot.patch import MOUNT


def place_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the checks of slip, execution, goals and falls."""
    yield from _slip(evidence)
    yield from _execution(evidence)
    yield from _goals(evidence)
    yield _fall(evidence)


def _slip(evidence: RecomputedRun) -> Iterator[Check]:
    """Check the drift of every contact from its first and from its planned pose, in its constrained directions."""
    run, tolerances = evidence.run, evidence.tolerances
    unplanned = [
        (run.patches[column], first) for column, first, _, contact in evidence.contact_intervals if contact == NONE
    ]
    failure = "; ".join(
        f"{patch} is in contact from {evidence.time(k)} on, but has no planned contact" for patch, k in unplanned
    )
    yield Check("contacts are planned", float(len(unplanned)), "that are not", "== 0", not unplanned, "", failure)
    for name, planned in (("slip", False), ("contact place", True)):
        lines = (
            WorstCase(name, "m", tolerances.slip, value=0.0),
            WorstCase(f"{name}, angle", "deg", float(np.rad2deg(tolerances.turn)), value=0.0),
        )
        for column, first, end, contact in evidence.contact_intervals:
            if planned and contact == NONE:
                continue  # reported by the line above
            error = evidence.planned_error if planned else evidence.drift
            distance, angle = error(column, slice(first, end), contact)
            origin = "its planned place" if planned else f"where it touched at {evidence.time(first)}"
            for line, values in zip(lines, (distance, np.rad2deg(angle)), strict=True):
                (i,) = worst(values)
                begin = first + int(np.argmax(~(values <= line.bound)))
                line.update(
                    float(values[i]),
                    f"{run.patches[column]} at {evidence.time(first + i)}",
                    f"{values[i]:.4g} {line.unit} away from {origin}, allowed {line.bound:g} "
                    f"(beyond it from {evidence.time(begin)} on)",
                )
        yield from (line.check() for line in lines)


def _execution(evidence: RecomputedRun) -> Iterator[Check]:
    """Check that the plan was executed: the run was not stopped, and ends in the last stance with contacts in place."""
    run, tolerances, last = evidence.run, evidence.tolerances, len(evidence.run) - 1
    stopped = evidence.record.stopped
    failure = f"the simulation had to stop: {stopped}" if stopped else ""
    yield Check("carried out", float(bool(stopped)), "stops", "== 0", not stopped, "", failure)
    differences, distances, angles = [], [(0.0, "")], [(0.0, "")]
    planned = evidence.record.plan.stances[-1].contacts
    for contact in planned:
        column = run.patches.index(contact.patch)
        distance, angle = evidence.planned_error(column, slice(last, last + 1), evidence.contacts.index(contact))
        if not run.active[last, column]:
            differences.append(f"{contact.patch} is not in contact with {contact.support} at the end")
        text = f"{contact.patch} on {contact.support}"
        distances.append((float(distance[0]), text))
        angles.append((float(np.rad2deg(angle[0])), text))
    planned_patches = {contact.patch for contact in planned}
    extra = [p for c, p in enumerate(run.patches) if run.active[last, c] and p not in planned_patches]
    differences += [f"{patch} is in contact at the end, but not in the last stance" for patch in extra]
    yield Check(
        "last stance", float(len(differences)), "differences", "== 0", not differences, "", "; ".join(differences)
    )
    for suffix, unit, values, bound in (
        ("", "m", distances, tolerances.goal),
        (", angle", "deg", angles, float(np.rad2deg(tolerances.goal_turn))),
    ):
        value, where = max(values, key=lambda item: np.inf if np.isnan(item[0]) else item[0])
        allowed = f"allowed {bound:.4g} {unit}"
        wrong = [
            f"{text} ends {amount:.4g} {unit} away from its place" for amount, text in values if not amount <= bound
        ]
        failure = f"{'; '.join(wrong)}, {allowed}" if wrong else ""
        yield Check(f"last stance, place{suffix}", value, unit, f"<= {bound:.4g}", not failure, where, failure)


def _goals(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the checks of the goal of the scenario."""
    run, tolerances = evidence.run, evidence.tolerances
    document = evidence.record.scenario.document
    if not document or not evidence.record.plan.document:
        return
    try:
        scenario = evidence.plan.scenario
    except RunError as error:
        yield Check("goal", None, "", "met", False, "", f"the goal cannot be judged: {error}")
        return
    supports = {patch: np.where(run.active[:, column], ANY_SUPPORT, "") for column, patch in enumerate(run.patches)}
    poses = run.object_q if run.object_q is not None else np.zeros((len(run), 0, 7))
    states = GoalStates(
        run.q, evidence.motion.com, evidence.motion.R, evidence.motion.p, supports,
        {name: poses[:, i] for i, name in enumerate(evidence.record.objects)}, evidence.time,
    )  # fmt: skip
    goal_tolerances = GoalTolerances(
        tolerances.goal, tolerances.goal_turn, tolerances.com_goal, tolerances.object, tolerances.object_turn
    )
    environment = with_imperfections(scenario.environment, evidence.record.world)
    checker = GoalChecker(evidence.record.robot, scenario.robot, environment, states, goal_tolerances)
    yield from checker.checks(document)


def _fall(evidence: RecomputedRun) -> Check:
    """Check that the centre of mass does not sink below the lowest planned one by more than the tolerance."""
    allowed = evidence.tolerances.fall
    if MOUNT in evidence.run.patches:
        return Check("fall", 0.0, "m", f"<= {allowed:g}", True, "the base is fixed")
    planned = evidence.mechanism.motion(np.array([s.q for s in evidence.record.plan.stances])).com[:, 2]
    descent = planned.min() - evidence.motion.com[:, 2]
    (k,) = worst(descent)
    passed = bool(descent[k] <= allowed)
    failure = ""
    if not passed:
        first = int(np.flatnonzero(~(descent <= allowed))[0])
        failure = (
            f"fell: the centre of mass is {descent[k]:.3g} m below the lowest planned one at {evidence.time(k)}, "
            f"beyond {allowed:g} m from {evidence.time(first)} on"
        )
    return Check("fall", max(float(descent[k]), 0.0), "m", f"<= {allowed:g}", passed, evidence.time(k), failure)
