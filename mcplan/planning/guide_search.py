"""The guide found automatically: where the base ends, the way there, and what cannot be reached at all."""

from collections.abc import Mapping, Sequence

import numpy as np

from mcplan.errors import InputError
from mcplan.model.robot import Robot
from mcplan.planning.candidates import Candidates
from mcplan.planning.goal import Goal
from mcplan.planning.guide import heading
from mcplan.planning.guide_path import GuidePath
from mcplan.planning.limbs import Limb, base_yaw
from mcplan.planning.prover import Prover
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment
from mcplan.scene.place import make_contact
from mcplan.scene.settings import PlannerSettings

SPREAD = 0.1
"""m: places closer together than this tell no heading."""


def guide_between(
    robot: Robot,
    environment: Environment,
    prover: Prover,
    contacts: Sequence[Contact],
    q: np.ndarray,
    goal: Goal,
    offsets: Mapping[str, np.ndarray],
    settings: PlannerSettings,
) -> GuidePath:
    """Return the path of the base from a stance to a goal.

    Parameters
    ----------
    q : (nq,) posture at the stance.
    offsets : nominal place of each patch in the base's heading frame.
    """
    yaw = base_yaw(q)
    start = _base_over([(c.p, offsets[c.patch]) for c in contacts if c.patch in goal.specs or not goal.specs], yaw)
    start = q[:3] if start is None else start
    places, turns, exact = [], [], []
    for patch, spec in goal.specs.items():
        offset = offsets[patch]
        X = robot.frame_pose(q, patch)
        try:
            contact = make_contact(robot, environment, spec, (X[:3, :3], X[:3, 3]))
        except InputError:
            support = environment.support(spec.surface)
            middle = support.ends.mean(axis=0) if isinstance(support, Bar) else support.corners.mean(axis=0)
            places.append((middle, offset))
            continue
        if {"x", "y"} <= set(spec.given) or "along" in spec.given:
            exact.append((contact.p, offset))
        if "yaw" in spec.given and contact.kind == "surface" and len(contact.points) > 2:
            turns.append(heading(contact.R))
        places.append((contact.p, offset))
    end_yaw = yaw
    if turns:
        mean = float(np.angle(np.mean(np.exp(1j * np.array(turns)))))
        end_yaw = yaw + _wrapped(mean - yaw)
    elif (fitted := _heading_over(exact)) is not None:
        end_yaw = yaw + _wrapped(fitted - yaw)
    end = _base_over(places, end_yaw)
    if end is None:
        end = start if goal.item.base is None else np.array(goal.item.base.xyz)
    between = np.array([pose.p for pose in settings.guide]).reshape(-1, 3)
    turns_between = [yaw + _wrapped(heading(pose.R) - yaw) for pose in settings.guide]
    return GuidePath(np.vstack([start, between, end]), np.array([yaw, *turns_between, end_yaw]))


def _wrapped(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def _base_over(places: Sequence[tuple[np.ndarray, np.ndarray]], yaw: float) -> np.ndarray | None:
    """Return the base (3,) for which patches at these places are on the average in their nominal ones."""
    if not places:
        return None
    c, n = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, -n, 0.0], [n, c, 0.0], [0.0, 0.0, 1.0]])
    return np.mean([place - turn @ offset for place, offset in places], axis=0)


def _heading_over(places: Sequence[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """Return the heading (rad) that turns the nominal places into these best; None if they do not tell.

    maximise over yaw   sum (p_i - mean p) . R_z(yaw) (d_i - mean d)
    """
    if len(places) < 2:
        return None
    p, d = (np.array(side)[:, :2] - np.mean(side, axis=0)[:2] for side in zip(*places, strict=True))
    if min(np.linalg.norm(p), np.linalg.norm(d)) < SPREAD:
        return None
    return float(np.arctan2((d[:, 0] * p[:, 1] - d[:, 1] * p[:, 0]).sum(), (d * p).sum()))


def unreachable(
    robot: Robot,
    environment: Environment,
    contacts: Sequence[Contact],
    goal: Goal,
    sampled: Mapping[str, Candidates],
    limbs: Mapping[str, Limb],
) -> str:
    """Say which support of the goal cannot be reached from support to support, or return an empty text.

    Two limbs can be no farther apart than the lengths of both and the distance of their roots.
    """
    names = [limb for limb in goal.limbs(robot) if limb in limbs]
    places: dict[str, list[np.ndarray]] = {}
    for limb in limbs.values():
        for patch in limb.patches:
            for written, place in zip(sampled[patch].specs, sampled[patch].place, strict=True):
                places.setdefault(written["surface"], []).append(place)
    points = {name: np.array(found) for name, found in places.items()}
    legs = [limbs[name] for name in names]
    span = 2.0 * max((limb.length for limb in legs), default=0.0)
    span += max((float(np.linalg.norm(a.root - b.root)) for a in legs for b in legs), default=0.0)
    reached = {contact.support for contact in contacts}
    frontier = [contact.p[None] for contact in contacts] + [points[name] for name in sorted(reached) if name in points]
    while frontier:
        here = frontier.pop()
        for name in sorted(points):
            if name not in reached and _gap(here, points[name]) <= span:
                reached.add(name)
                frontier.append(points[name])
    for patch, spec in goal.specs.items():
        if spec.surface in reached:
            continue
        near = min(
            ((_gap(points[name], points[spec.surface]), name) for name in sorted(reached) if name in points),
            default=(np.inf, "the start"),
        )
        return (
            f"goal: {patch} cannot come to {spec.surface}: from {near[1]}, the nearest support within reach, the "
            f"places are {near[0]:.2f} m apart, and the robot spans {span:.2f} m at most; "
            f"{near[0] - span:.2f} m are missing. Move {spec.surface} closer or put a surface between"
        )
    return ""


def _gap(a: np.ndarray, b: np.ndarray) -> float:
    """Return the least distance of two sets of points (m)."""
    step = max(1, len(a) * len(b) // 1_000_000)
    a = a[::step]
    return float(np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2).min()))
