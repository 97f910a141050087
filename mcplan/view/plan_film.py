"""Replay frames of a plan (stances and the motions between them) and of a search tree (its nodes)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mcplan.analysis.plan_motion import carries_load, linking_contacts, motion_time, segment_at, segments_to_next
from mcplan.errors import InputError
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.search.tree import SearchTree
from mcplan.planning.transition.object_path import ObjectPath
from mcplan.planning.transition.transition import Segment
from mcplan.robot.pose import quat_from_rotation
from mcplan.scenario.scenario import Scenario
from mcplan.scene.contact import Contact
from mcplan.scene.placement import make_contact
from mcplan.view.film import Film, PatchForce, contact_heights

MIN_FRAMES_BETWEEN, FRAME_INTERVAL_S = 15, 0.1
"""Frames between two stances: their minimum number, and their interval (s)."""

TRAIL_POINTS = 40
"""Number of points of the path of a patch along a segment."""

TREE_GAP = 10.0
"""Distance on the time line between the last stance and the first tree node; it is not played."""


@dataclass(frozen=True)
class Frame:
    """One frame of the replay of a plan or search tree.

    Attributes
    ----------
    time : index of the stance; for nodes of the tree, numbers after the last stance.
    q : (nq,) posture.
    touching : contacts in place.
    carrying : contacts that carry load.
    moved : patches whose contact changes.
    forces : {patch: (place, force, normal, friction)} of the contacts that carry load.
    objects : {name: (7,)} poses of the objects that have been moved: position, quaternion w x y z.
    """

    time: float
    q: np.ndarray
    touching: tuple[Contact, ...]
    carrying: tuple[Contact, ...]
    moved: frozenset[str] = frozenset()
    forces: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, float]] = field(default_factory=dict)
    objects: dict[str, np.ndarray] = field(default_factory=dict)


def stance_frames(plan: Plan) -> list[Frame]:
    """Return the frames of a plan: stance k at time k."""
    frames: list[Frame] = []
    for k, stance in enumerate(plan.stances):
        before = plan.stances[k - 1] if k else None
        touching = linking_contacts(before, stance)
        carrying = tuple(c for c in touching if carries_load(stance, c.patch))
        moved = frozenset() if stance.moved is None else frozenset([stance.moved])
        frames.append(Frame(float(k), stance.q, touching, carrying, moved, _forces(stance, carrying), stance.objects))
        if k + 1 < len(plan.stances):
            end = _forces(plan.stances[k + 1], stance.contacts)
            begin = _forces(stance, stance.contacts)
            segments = segments_to_next(plan, k)
            count = max(MIN_FRAMES_BETWEEN, int(motion_time(segments) / FRAME_INTERVAL_S))
            for share in np.arange(1, count + 1) / (count + 1):
                forces = {patch: _interpolate_force(begin.get(patch), end.get(patch), share) for patch in begin | end}
                segment, t = segment_at(segments, float(share))
                objects = _object_poses_at(plan.scenario, stance, segment, t)
                contacts = stance.contacts
                frames.append(
                    Frame(
                        k + float(share), segment.posture.sample(t).q, contacts, contacts, frozenset(), forces, objects
                    )
                )
    return frames


def trails(plan: Plan) -> list[np.ndarray]:
    """Return the paths (points, 3) of the patches that the transitions of a plan move."""
    robot, paths = plan.scenario.robot, []
    for segment in (part for stance in plan.stances[1:] if stance.transition for part in stance.transition.segments):
        for course in segment.courses:
            times = np.linspace(0.0, segment.duration, TRAIL_POINTS)
            points = [robot.frame_pose(segment.posture.sample(t).q, course.patch)[:3, 3] for t in times]
            paths.append(np.array(points))
    return paths


def _object_poses_at(scenario: Scenario, stance: PlannedStance, segment: Segment, t: float) -> dict[str, np.ndarray]:
    """Return the poses of moved objects at time t of a segment, which may move them further."""
    moved = dict(stance.objects)
    for item in scenario.environment.objects:
        if segment.objects and item.name in segment.objects:
            begin = item.placed(stance.objects.get(item.name, item.pose))
            R, p = ObjectPath.of(begin, segment.objects[item.name]).at(t / segment.duration)
            moved[item.name] = np.concatenate([p, quat_from_rotation(R)])
    return moved


def node_frames(scenario: Scenario, tree: SearchTree, indices: Sequence[int], begin: float) -> list[Frame]:
    """Return one frame for each node in ``indices``, the first at the time ``begin``."""
    contact_of = ContactCache(scenario)
    frames = []
    for time, index in enumerate(indices):
        node = tree.nodes[index]
        old = [] if node["parent"] is None else tree.nodes[node["parent"]]["contacts"]
        touching = tuple(contact_of(data) for data in node["contacts"])
        new = frozenset(c["patch"] for c in node["contacts"] if node["parent"] is not None and c not in old)
        carrying = tuple(contact for contact in touching if contact.patch not in new)
        frames.append(Frame(begin + time, np.array(node["q"], dtype=float), touching, carrying, new))
    return frames


class ContactCache:
    """Contacts from their data in a search tree, cached."""

    def __init__(self, scenario: Scenario):
        self.scenario = scenario
        self._cache: dict[str, Contact] = {}

    def __call__(self, data: dict[str, Any]) -> Contact:
        """Return the contact of its data.

        Raises
        ------
        InputError
            The scenario lacks the patch or the support.
        """
        key = json.dumps(data, sort_keys=True)
        if key not in self._cache:
            self._cache[key] = make_contact(self.scenario.robot, self.scenario.environment, data)
        return self._cache[key]


def film(scenario: Scenario, frames: Sequence[Frame], paths: Sequence[np.ndarray] = ()) -> Film:
    """Return frames as a film, with paths (points, 3) of patches through the air.

    Raises
    ------
    InputError
        The length of a posture is not the robot's ``nq``.
    """
    robot = scenario.robot
    for frame in frames:
        if frame.q.shape != (robot.nq,) or not np.isfinite(frame.q).all():
            raise InputError(f"a posture has {frame.q.size} numbers; {robot.name} has {robot.nq}, all finite")
    patches = [name for name in robot.patches if any(c.patch == name for frame in frames for c in frame.touching)]
    return Film(
        robot=robot,
        environment=scenario.environment,
        times=np.array([frame.time for frame in frames]),
        q=np.array([frame.q for frame in frames]),
        com=robot.com(np.array([frame.q for frame in frames])),
        ground=contact_heights([np.vstack([c.world_points for c in f.carrying] or [np.zeros((0, 3))]) for f in frames]),
        touching={name: np.array([name in {c.patch for c in f.touching} for f in frames]) for name in patches},
        carrying=[frame.carrying for frame in frames],
        moved={name: np.array([name in frame.moved for frame in frames]) for name in patches},
        forces={name: _patch_force(frames, name) for name in patches},
        trails=paths,
        object_q=_object_poses(scenario, frames),
    )


def _object_poses(scenario: Scenario, frames: Sequence[Frame]) -> np.ndarray | None:
    """Return the poses (frames, objects, 7) of the objects; None if none has been moved."""
    if not any(frame.objects for frame in frames):
        return None
    objects = scenario.environment.objects
    return np.array([[frame.objects.get(item.name, item.pose) for item in objects] for frame in frames])


def _forces(stance: PlannedStance, contacts: Sequence[Contact]):
    """Return {patch: (point, force, normal, friction)}, with the centre of pressure on surfaces as the point.

    The force f and moment m act at the patch origin p; about p + n x m / (n . f) the moment is along the normal n.
    """
    forces = {}
    for contact in contacts:
        if not carries_load(stance, contact.patch):
            continue
        f, m = stance.wrenches[contact.patch][:3], stance.wrenches[contact.patch][3:]
        place, normal = contact.p, np.zeros(3)
        if contact.kind != "grasp":
            normal = contact.axes[:, 2]
            pressure = float(normal @ f)
            if pressure > 1.0:
                place = place + np.cross(normal, m) / pressure
        forces[contact.patch] = (place, f, normal, contact.friction)
    return forces


def _interpolate_force(begin, end, share: float):
    """Interpolate a force between two stances; if it is zero at one of them, its point of application stays."""
    begin, end = begin or (end[0], np.zeros(3), *end[2:]), end or (begin[0], np.zeros(3), *begin[2:])
    interpolated = ((1 - share) * a + share * b for a, b in zip(begin[:2], end[:2], strict=True))
    return (*interpolated, begin[2], begin[3])


def _patch_force(frames: Sequence[Frame], name: str) -> PatchForce:
    """Return the force of one patch over the frames; without force its point is that of the frame before."""
    items = [frame.forces.get(name) for frame in frames]
    place, force, normal = (np.zeros((len(frames), 3)) for _ in range(3))
    friction = np.full(len(frames), np.nan)
    for row, item in enumerate(items):
        if item is not None:
            place[row], force[row], normal[row], friction[row] = item
        elif row:
            place[row] = place[row - 1]
    return PatchForce(place, force, normal, friction)
