"""Contacts, loads and timing of a plan's stances and of the motions between them."""

from collections.abc import Sequence

import numpy as np

from mcplan.errors import InputError
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.transition.transition import Segment
from mcplan.scene.contact import Contact

NO_MOTION_DURATION_S = 0.2
"""s: duration in the replay of the step between two stances without a motion."""

MIN_LOAD = 1e-6
"""Norm of a wrench (N, N m) below which a patch counts as unloaded."""


def linking_contacts(before: PlannedStance | None, stance: PlannedStance) -> tuple[Contact, ...]:
    """Return the contacts at the linking posture between two stances: those of the larger stance."""
    if before is None or len(stance.contacts) >= len(before.contacts):
        return stance.contacts
    return before.contacts


def carries_load(stance: PlannedStance, patch: str) -> bool:
    """Whether a patch carries load in the posture of a stance."""
    wrench = stance.wrenches.get(patch)
    return wrench is not None and float(np.linalg.norm(wrench)) > MIN_LOAD


def segments_to_next(plan: Plan, k: int) -> list[Segment]:
    """Return the segments that lead from the posture of stance ``k`` to that of stance ``k + 1``, in order.

    They begin with the second segment of the transition to stance ``k``, if any (the lift of a released patch).

    Raises
    ------
    InputError
        The plan has no such motion.
    """
    previous, next_transition = plan.stances[k].transition, plan.stances[k + 1].transition
    if next_transition is None:
        raise InputError(f"stance {k + 1} of the plan has no transition; mcplan.plan and load_plan find them")
    return [*(previous.segments[1:] if previous else ()), next_transition.segments[0]]


def motion_time(segments: Sequence[Segment]) -> float:
    """Return the total duration of segments (s)."""
    return sum(segment.time for segment in segments)


def stance_times(plan: Plan) -> list[float]:
    """Return the times (s) at which the motions of a plan reach its stances; the first is 0."""
    times = [0.0]
    for k in range(len(plan.stances) - 1):
        times.append(times[-1] + max(motion_time(segments_to_next(plan, k)), NO_MOTION_DURATION_S))
    return times


def segment_at(segments: Sequence[Segment], share: float) -> tuple[Segment, float]:
    """Return the segment at a share of the total duration, and its path parameter there (s)."""
    remaining = share * motion_time(segments)
    for segment in segments[:-1]:
        if remaining <= segment.time:
            return segment, path_parameter(segment, remaining)
        remaining -= segment.time
    return segments[-1], path_parameter(segments[-1], remaining)


def path_parameter(segment: Segment, t: float) -> float:
    """Return the path parameter (s) of a segment at a time (s) since its start."""
    return min(t if segment.law is None else segment.law.at(t)[0], segment.duration)
