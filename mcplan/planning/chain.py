"""Transitions of a plan, stance by stance: each begins where the previous one ends."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from mcplan.errors import PlanningFailed
from mcplan.planning.plan import Change, PlannedStance
from mcplan.planning.timing.retiming import Retimer
from mcplan.planning.transition.body_motion import Departure
from mcplan.planning.transition.knots import MAX_DEFICIT_M
from mcplan.planning.transition.segments import Retraction, SegmentCache
from mcplan.planning.transition.transition import Segment, Transition
from mcplan.robot.pose import same_pose
from mcplan.robot.robot import Robot
from mcplan.scenario.scenario import Scenario
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.util.progress import report_progress


def transitions(segments: SegmentCache, stances: Sequence[PlannedStance]) -> Iterator[Transition]:
    """Yield the transitions that lead to all stances but the first.

    Moved objects follow straight paths, and the contacts on them move along.
    """
    finder = segments.finder
    robot, scene, settings = finder.robot, finder.environment, finder.settings
    resting_contacts: dict[str, Contact] = {}
    q = stances[0].q
    for k, (before, stance) in enumerate(pairwise(stances), start=1):
        report_progress("finding motion", k, len(stances) - 1)
        departure, moved = Departure(q, before.contacts, resting_contacts), stance.moved
        resting_contacts, separates_at_end = {}, False
        if displaced := displaced_objects(scene, before, stance):
            motions = [finder.transport(departure, stance.q, stance.contacts, displaced)]
            segments = SegmentCache(robot, scene.placed(stance.objects), settings)
            finder = segments.finder
        elif moved is None:
            motions = [segments.shift(departure, stance.q)]
        elif stance.change == "add":
            motions = [
                segments.swing(departure, stance.q, (stance.contact(moved), *following_contacts(robot, stances, k)))
            ]
        else:
            motions, separates_at_end = [segments.shift(departure, stance.q)], separates_at_once(robot, stances, k)
            if is_retracted(robot, stances, k):
                motions.append(Retraction(stance.contacts, before.contact(moved), stance.q).segment(segments))
            elif _only_contact_of_limb(robot, stance, moved):
                resting_contacts = {moved: before.contact(moved)}
        yield Transition(moved, tuple(motions), 0.0, separates_at_end)
        q = motions[-1].q[-1]


def with_transitions(
    scenario: Scenario, stances: Sequence[PlannedStance], segments: SegmentCache | None = None
) -> tuple[PlannedStance, ...]:
    """Return stances with the transitions that lead to them.

    Parameters
    ----------
    segments : cache of motions in the scene.
    """
    segments = segments or SegmentCache(scenario.robot, scenario.environment, scenario.transition_settings)
    found = transitions(segments, stances)
    return with_timing(scenario, (stances[0], *(replace(stance, transition=next(found)) for stance in stances[1:])))


def with_timing(scenario: Scenario, stances: Sequence[PlannedStance]) -> tuple[PlannedStance, ...]:
    """Return stances whose transitions have the time parameterization of the scenario's pace."""
    settings = scenario.transition_settings
    retimer = None if settings.pace is None else Retimer(scenario.robot, settings)
    ramps = {"add": settings.timing.load_time, "remove": settings.timing.unload_time}

    def timed(k: int, stance: PlannedStance) -> PlannedStance:
        assert stance.transition is not None
        report_progress("timing motion", k, len(stances) - 1)
        if retimer is None:
            parts = [replace(segment, law=None, retiming_failure="") for segment in stance.transition.segments]
        else:
            parts = [retimer.time_parameterized(segment) for segment in stance.transition.segments]
        ramp = ramps.get(stance.change, 0.0)
        return replace(stance, transition=replace(stance.transition, segments=tuple(parts), ramp=ramp))

    return (stances[0], *(timed(k, stance) for k, stance in enumerate(stances[1:], start=1)))


def raise_if_blocked(stances: Sequence[PlannedStance]) -> None:
    """Raise an error if there is no collision-free motion to one of the stances.

    Raises
    ------
    PlanningFailed
        With the stance, the bodies in collision, and the deficit.
    """
    for k, stance in enumerate(stances[1:], start=1):
        if (worst := blocked_segment(stance)) is not None:
            raise PlanningFailed(
                f"stances[{k}]: no collision-free motion found from the stance before to `{stance.title}`: "
                f"{worst.shortfall}. What would have to change: the places of the contacts, or a posture in between "
                "that leads around it"
            )


def blocked_segment(stance: PlannedStance) -> Segment | None:
    """Return the segment with the largest deficit in the transition to a stance, or None if all are collision-free."""
    assert stance.transition is not None
    worst = max(stance.transition.segments, key=lambda segment: segment.missed)
    return worst if worst.missed > MAX_DEFICIT_M else None


def following_contacts(robot: Robot, stances: Sequence[PlannedStance], k: int) -> tuple[Contact, ...]:
    """Return the contacts that the limb of stance ``k`` adds right after this stance, such as a toe after its knee."""
    found = []
    for before, stance in pairwise(stances[k:]):
        if stance.change != "add" or before.change != "add" or stance.moved is None or before.moved is None:
            break
        if robot.patches[stance.moved].limb != robot.patches[before.moved].limb:
            break
        found.append(stance.contact(stance.moved))
    return tuple(found)


def separates_at_once(robot: Robot, stances: Sequence[Change], k: int) -> bool:
    """Whether the patch that stance ``k`` removes leaves its support before the next transition.

    It stays there if the next transition moves this patch or shifts the body. If another patch of its limb is in
    contact, it cannot be lifted; then collision avoidance separates it from its support.
    """
    moved, following_stance = stances[k].moved, stances[k + 1] if k + 1 < len(stances) else None
    if moved is None or stances[k].change != "remove":
        return False
    if following_stance is None or not _only_contact_of_limb(robot, stances[k], moved):
        return True
    return following_stance.change != "shift" and following_stance.moved != moved


def is_retracted(robot: Robot, stances: Sequence[Change], k: int) -> bool:
    """Whether the patch that stance ``k`` removes is lifted clear of its support before the next transition."""
    moved = stances[k].moved
    return (
        moved is not None and separates_at_once(robot, stances, k) and _only_contact_of_limb(robot, stances[k], moved)
    )


def displaced_objects(scene: Environment, before: PlannedStance, stance: PlannedStance) -> dict[str, np.ndarray]:
    """Return the poses (7,) of the objects that were moved between two consecutive stances, by name."""
    at_start = {thing.name: thing.pose for thing in scene.objects}
    old, new = at_start | before.objects, at_start | stance.objects
    return {name: pose for name, pose in new.items() if not same_pose(pose, old[name], 1e-9)}


def _only_contact_of_limb(robot: Robot, stance: Change, patch: str) -> bool:
    """Whether no other patch of the same limb is in contact."""
    limb = robot.patches[patch].limb
    return all(robot.patches[name].limb != limb for name in stance.patches)
