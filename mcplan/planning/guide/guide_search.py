"""The guide found automatically: where the base ends, and the way there."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mcplan.errors import InputError
from mcplan.model.robot import Robot
from mcplan.planning.goal.goal import Goal
from mcplan.planning.guide.passage import LEVEL, Hindrance, Passage, Place
from mcplan.planning.guide.path import TURN, GuidePath
from mcplan.planning.guide.route import find_route
from mcplan.planning.posture.limbs import Limb, base_yaw
from mcplan.planning.posture.reference import heading
from mcplan.planning.prover import Prover
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.place import make_contact
from mcplan.scene.spec import PoseSpec

SPREAD = 0.1
"""m: places closer together than this tell no heading."""


class Guide(NamedTuple):
    """A path of the base, and what is in its way where no better one was found."""

    path: GuidePath
    hindrance: Hindrance | None = None


def direct_path(
    robot: Robot,
    environment: Environment,
    contacts: Sequence[Contact],
    q: np.ndarray,
    goal: Goal,
    offsets: Mapping[str, np.ndarray],
    guide: Sequence[PoseSpec] = (),
) -> GuidePath:
    """Return the straight path of the base from a stance to a goal, or by way of key poses.

    At key poses without an orientation the heading is on its way, in even parts, between those that are known.

    Parameters
    ----------
    q : (nq,) posture at the stance.
    offsets : nominal place of each patch in the base's heading frame.
    guide : the key poses.
    """
    yaw = base_yaw(q)
    start = _base_over([(c.p, offsets[c.patch]) for c in contacts if c.patch in goal.specs or not goal.specs], yaw)
    start = q[:3] if start is None else start
    touching = {contact.patch for contact in contacts}
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
        if "yaw" in spec.given and contact.kind == "surface" and len(contact.points) > 2 and patch in touching:
            turns.append(heading(contact.R) - heading(X[:3, :3]))
        places.append((contact.p, offset))
    end_yaw = yaw
    if turns:
        end_yaw = yaw + float(np.angle(np.mean(np.exp(1j * np.array(turns)))))
    elif (fitted := _heading_over(exact, robot.scale.leg * SPREAD)) is not None:
        end_yaw = yaw + _wrapped(fitted - yaw)
    end = _base_over(places, end_yaw)
    if end is None:
        end = start if goal.item.base is None else np.array(goal.item.base.xyz)
    between = np.array([pose.p for pose in guide]).reshape(-1, 3)
    known = {0: yaw, len(guide) + 1: end_yaw}
    known |= {k: heading(one.R) for k, one in enumerate(guide, 1) if one.rpy is not None or one.quat_wxyz is not None}
    told = sorted(known)
    yaws = np.interp(np.arange(len(guide) + 2), told, np.unwrap([known[k] for k in told]))
    return GuidePath(np.vstack([start, between, end]), yaws, robot.scale.leg * TURN)


def way_around(
    direct: GuidePath,
    robot: Robot,
    environment: Environment,
    prover: Prover,
    contacts: Sequence[Contact],
    q: np.ndarray,
    goal: Goal,
    limbs: Mapping[str, Limb],
    offsets: Mapping[str, np.ndarray],
) -> Guide:
    """Return the direct path where it is free, else one around what is in its way, if there is one.

    Looked for where the robot goes on surfaces; on bars and walls a direct path is all there is.

    Parameters
    ----------
    q : (nq,) posture at the stance.
    limbs : those that may touch, by name.
    offsets : nominal place of each patch in the base's heading frame.
    """
    supports = [environment.support(contact.support) for contact in contacts]
    supports += [environment.support(spec.surface) for spec in goal.specs.values()]
    if not all(isinstance(support, Surface) and support.normal[2] >= LEVEL for support in supports):
        return Guide(direct)
    passage = Passage(robot, environment, prover.collisions, q, contacts, limbs, offsets)
    poses = np.column_stack([direct.points, direct.yaw]).tolist()
    route = find_route(passage, Place(*poses[0]), Place(*poses[-1]))
    if len(route.places) == 2:
        return Guide(direct, route.hindrance)
    points = np.array([place[:3] for place in route.places])
    return Guide(GuidePath(points, np.array([place.yaw for place in route.places]), direct.turn))


def _wrapped(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def _base_over(places: Sequence[tuple[np.ndarray, np.ndarray]], yaw: float) -> np.ndarray | None:
    """Return the base (3,) for which patches at these places are on the average in their nominal ones."""
    if not places:
        return None
    c, n = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, -n, 0.0], [n, c, 0.0], [0.0, 0.0, 1.0]])
    return np.mean([place - turn @ offset for place, offset in places], axis=0)


def _heading_over(places: Sequence[tuple[np.ndarray, np.ndarray]], spread: float = SPREAD) -> float | None:
    """Return the heading (rad) that turns the nominal places into these best; None if they do not tell.

    maximise over yaw   sum (p_i - mean p) . R_z(yaw) (d_i - mean d)
    """
    if len(places) < 2:
        return None
    p, d = (np.array(side)[:, :2] - np.mean(side, axis=0)[:2] for side in zip(*places, strict=True))
    if min(np.linalg.norm(p), np.linalg.norm(d)) < spread:
        return None
    return float(np.arctan2((d[:, 0] * p[:, 1] - d[:, 1] * p[:, 0]).sum(), (d * p).sum()))
