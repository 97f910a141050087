"""Transitions in plan files, and the control settings that they depend on."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mcplan.errors import InputError
from mcplan.motion.time_parameterization import TimeParameterization
from mcplan.planning.transition.transition import BoundaryState, ClosestApproach, Segment, SwingSpec, Transition
from mcplan.robot.robot import Robot
from mcplan.scenario.schema import CourseSpec, SegmentSpec, TransitionSpec
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings

PATH_SETTINGS = (
    "avoidance.swing_clearance", "avoidance.edge_clearance", "timing.com_speed", "timing.trunk_speed",
    "timing.joint_speed", "timing.limb_speed", "timing.swing_blend", "timing.min_shift_duration", "contact.cop_margin",
    "contact.friction_fraction", "contact.force_fraction", "contact.pressure_margin", "contact.friction_faces",
)  # fmt: skip
"""Control settings on which the paths of transitions depend."""

PRELOAD = "contact.preload_force"
"""Name of the setting of the smallest contact force during fast motions."""

TORQUE_RATE = "gains.torque_rate"
"""Name of the setting of the largest rate of torques."""

RAMP_SETTINGS = ("timing.unload_time", "timing.load_time")
"""Settings on which only the times of transitions depend."""

PACE_SETTINGS = (TORQUE_RATE, PRELOAD)
"""Further such settings if the pace is not ``slow``, in addition to the margins of the pace."""


def path_settings(settings: ControlSettings) -> dict[str, float]:
    """Return the settings on which the paths of transitions depend."""
    return {name: float(settings.value(name)) for name in PATH_SETTINGS}


def pace_settings(settings: ControlSettings) -> dict[str, float | str]:
    """Return the settings on which only the times of transitions depend, and the margins of a pace that is not slow."""
    ramps: dict[str, float | str] = {name: float(settings.value(name)) for name in RAMP_SETTINGS}
    walking: dict[str, float | str] = {} if settings.walking == "static" else {"walking": settings.walking}
    pace: dict[str, float | str] = {}
    if settings.pace is not None:
        pace = {name: settings.value(name) for name in PACE_SETTINGS} | settings.pace.model_dump()
    return ramps | walking | pace


def changed_pace_settings(before: Mapping[str, float | str], after: Mapping[str, float | str]) -> list[str]:
    """Return the names of the settings of `pace_settings` that differ, as in scenarios (``control.pace``)."""
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    if (TORQUE_RATE in before) != (TORQUE_RATE in after):  # one of the paces is slow
        changed -= {*PACE_SETTINGS}
    control_names = (*RAMP_SETTINGS, *PACE_SETTINGS, "walking")
    return sorted({f"control.{name}" if name in control_names else "control.pace" for name in changed})


def transition_data(transition: Transition) -> dict[str, Any]:
    """Return a transition as the values of a plan file."""
    segments = [_segment_data(segment) for segment in transition.segments]
    return {"ramp": transition.ramp, "parts": transition.parts, "segments": segments}


def _segment_data(segment: Segment) -> dict[str, Any]:
    timing = segment.law
    timed: dict[str, Any] = {"unpaced": segment.retiming_failure} if segment.retiming_failure else {}
    if timing is not None:
        nodes = np.stack([timing.times, timing.path, timing.rate, timing.change], axis=1).tolist()
        timed = {"law": {"kept": timing.kept, "nodes": [" ".join(map(repr, node)) for node in nodes]}}
    return timed | {
        "times": segment.times.tolist(),
        "courses": [
            {
                "patch": course.patch, "leader": course.lead, "lift": course.lift.tolist(),
                "approach": course.approach.tolist(), "leaves": course.lifts_off, "meets": course.target is not None,
                "waits": course.hold,
            }
            for course in segment.courses
        ],
        "near": {"distance": segment.near.distance, "between": list(segment.near.bodies)},
        "missed": segment.missed,
        "held": segment.held,
        "knots": [" ".join(map(repr, q)) for q in segment.q.tolist()],
    }  # fmt: skip


def transition_of(
    spec: TransitionSpec,
    robot: Robot,
    patch: str | None,
    contacts: Sequence[tuple[Contact, ...]],
    later_contacts: Sequence[Contact],
    objects: dict[str, np.ndarray] | None,
    passing: tuple[BoundaryState | None, BoundaryState | None] = (None, None),
) -> Transition:
    """Return the transition that a plan file describes.

    Parameters
    ----------
    spec : the transition in the file.
    robot : the robot.
    patch : the patch that is added or removed.
    contacts : closed contacts of each segment.
    later_contacts : contacts that this and later stances add, in order.
    objects : {name: (7,)} poses of moved objects at its end.
    passing : states at its two ends; None if the motion stops there.

    Raises
    ------
    InputError
        The transition does not fit the robot or its stances.
    """
    if len(spec.segments) > len(contacts):
        raise InputError(f"transition: {len(spec.segments)} segments, but contacts open {len(contacts) - 1} times")
    segments = []
    for k, (item, closed) in enumerate(zip(spec.segments, contacts, strict=False)):
        location = f"transition.segments[{k}]"
        try:
            q = item.postures()
        except ValueError as error:
            raise InputError(f"{location}.knots: {error}") from None
        if q.shape[1] != robot.nq:
            raise InputError(f"{location}.knots: {q.shape[1]} numbers in a line; {robot.name} has {robot.nq}")
        if (np.abs(np.linalg.norm(q[:, 3:7], axis=1) - 1.0) > 1e-6).any():
            raise InputError(f"{location}.knots: a base quaternion w x y z (numbers 4 to 7) has not the length 1")
        courses = tuple(_swing_spec(course, robot, later_contacts, location) for course in item.courses)
        near, timing = ClosestApproach(item.near.distance, item.near.between), _timing(item, location)
        begin = passing[0] if k == 0 else None
        finish = passing[1] if k == len(spec.segments) - 1 else None
        if timing is None and (begin or finish):
            raise InputError(f"{location}.law: missing; a motion that passes a stance without stopping (`v`) needs one")
        if timing is not None:
            begin = begin and begin.along(*timing.at(0.0)[1:])
            finish = finish and finish.along(*timing.at(timing.duration)[1:])
        segments.append(
            Segment(
                closed, np.array(item.times), q, robot.com(q), courses, objects, near, item.missed, held=item.held,
                law=timing, retiming_failure=item.unpaced, begin=begin, finish=finish,
            )
        )  # fmt: skip
    return Transition(patch, tuple(segments), spec.ramp, spec.parts)


def _timing(item: SegmentSpec, location: str) -> TimeParameterization | None:
    """Return the time parameterization of a segment in a file, or None."""
    if item.law is None:
        return None
    try:
        times, path, rate, change = item.law.rows(item.times[-1]).T
    except ValueError as error:
        raise InputError(f"{location}.law: {error}") from None
    return TimeParameterization(times, path, rate, change, item.law.kept)


def _swing_spec(spec: CourseSpec, robot: Robot, later_contacts: Sequence[Contact], location: str) -> SwingSpec:
    """Return the swing of a patch in a file."""
    if spec.patch not in robot.patches:
        raise InputError(f"{location}.courses: {robot.name} has no patch `{spec.patch}`")
    target = next((contact for contact in later_contacts if contact.patch == spec.patch), None)
    if spec.meets and target is None:
        raise InputError(f"{location}.courses: {spec.patch} meets a contact, but no later stance adds it")
    return SwingSpec(
        spec.patch, spec.leader, np.array(spec.lift), np.array(spec.approach), spec.leaves,
        target if spec.meets else None, spec.waits,
    )  # fmt: skip
