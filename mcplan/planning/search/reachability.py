"""What a goal asks that cannot be, found before any search: places too small, taken, out of reach, or slippery."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import nnls

from mcplan.errors import InputError
from mcplan.planning.feasibility import Prover
from mcplan.planning.goal.item import Goal
from mcplan.planning.search.candidates import Candidates
from mcplan.robot.anatomy import Limb
from mcplan.robot.robot import Robot
from mcplan.scenario.schema import GoalItem
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact

RAYS = 32
"""Rays around a friction cone: their cone contains it."""


def taken(prover: Prover, item: GoalItem) -> str:
    """Say which contact of a goal has no room at its place, or return an empty text."""
    for spec in item.contacts:
        try:
            contact = make_contact(prover.robot, prover.environment, spec)
        except InputError:
            continue
        if (hit := prover.blocked(contact)) is not None:
            return (
                f"goal: at its place on {spec.surface}, {spec.patch} is {hit[1]:.3f} m inside: {hit[0]} overlap; "
                "move the goal or the obstacle"
            )
    return ""


def misfit(goal: Goal, sampled: Mapping[str, Candidates], q: np.ndarray) -> str:
    """Say which contact of the goal has no place on its support, and why, or return an empty text.

    Parameters
    ----------
    q : (nq,) posture from which the nearest place is looked for.
    """
    for patch, spec in goal.specs.items():
        found = sampled[patch]
        if any(found.contact(int(i)) is not None for i in np.flatnonzero(found.goal)):
            continue
        X, reason = found.robot.frame_pose(q, patch), ""
        try:
            make_contact(found.robot, found.environment, spec, (X[:3, :3], X[:3, 3]))
        except InputError as error:
            reason = f": {error}"
        chosen = ", a contact that the planner chose" if goal.chosen else ""
        return f"goal: {patch} does not fit on {spec.surface}{chosen}{reason}"
    return ""


def unreachable(
    robot: Robot,
    contacts: Sequence[Contact],
    goal: Goal,
    sampled: Mapping[str, Candidates],
    limbs: Mapping[str, Limb],
) -> str:
    """Say which support of the goal cannot be reached from support to support, or return an empty text.

    Two limbs can be no farther apart than the lengths of both and the distance of their roots.
    """
    places: dict[str, list[np.ndarray]] = {}
    for contact in contacts:
        places.setdefault(contact.support, []).append(contact.p)
    for limb in limbs.values():
        for patch in limb.patches:
            for written, place in zip(sampled[patch].specs, sampled[patch].place, strict=True):
                places.setdefault(written["surface"], []).append(place)
    points = {name: np.array(found) for name, found in places.items()}
    pairs = ((a, b) for a in limbs.values() for b in limbs.values())
    span = max((a.length + b.length + float(np.linalg.norm(a.root - b.root)) for a, b in pairs), default=0.0)
    reached = {contact.support for contact in contacts}
    frontier = [points[name] for name in sorted(reached)]
    while frontier:
        here = frontier.pop()
        for name in sorted(points):
            if name not in reached and _gap(here, points[name]) <= span:
                reached.add(name)
                frontier.append(points[name])
    for patch, spec in goal.specs.items():
        if spec.surface in reached:
            continue
        near = min((_gap(points[name], points[spec.surface]), name) for name in sorted(reached))
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


def slippery(environment: Environment, goal: Goal, sampled: Mapping[str, Candidates]) -> str:
    """Say that the contacts of the goal cannot bear the weight for want of friction, or return an empty text.

    Only forces are looked at, not moments: sum of f_i = weight, |t' f_i| <= mu_i n' f_i, for the supports of the goal
    and, unless nothing else may touch, for whatever the other patches find.
    """
    names = {spec.surface for spec in goal.specs.values()}
    if not goal.item.only:
        names |= {spec["surface"] for found in sampled.values() for spec in found.specs}
    supports = [environment.support(name) for name in sorted(names)]
    if not supports or any(isinstance(support, Bar) for support in supports):
        return ""
    rays = [_cone(s.R, s.friction) for s in supports if isinstance(s, Surface)]
    weights = {spec.friction for spec in goal.specs.values()} - {None}
    if weights or nnls(np.hstack(rays), np.array([0.0, 0.0, 1.0]))[1] < 1e-6:
        return ""
    told = []
    for support in supports:
        if isinstance(support, Surface) and support.name in {spec.surface for spec in goal.specs.values()}:
            tilt = float(np.arccos(np.clip(support.normal[2], -1.0, 1.0)))
            told.append(
                f"{support.name} is tilted by {np.rad2deg(tilt):.1f} degrees with friction {support.friction:g}"
            )
    need = min(np.tan(np.arccos(np.clip(s.normal[2], 1e-9, 1.0))) for s in supports if isinstance(s, Surface))
    return (
        f"goal: nothing there can bear the weight without slipping: {'; '.join(told)}; a friction of at least "
        f"{need:.2f} is needed, or a contact that holds the robot (a bar to grasp, a surface opposite)"
    )


def _cone(R: np.ndarray, friction: float) -> np.ndarray:
    """Return rays (3, RAYS) of a pyramid around the friction cone of a surface with the frame ``R`` (3,3)."""
    angle = 2 * np.pi * np.arange(RAYS) / RAYS
    wide = friction / np.cos(np.pi / RAYS)
    return R @ np.array([wide * np.cos(angle), wide * np.sin(angle), np.ones(RAYS)])
