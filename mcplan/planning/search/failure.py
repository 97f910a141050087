"""Explanations of planning failures: infeasible goals, checked before the search, and failed searches."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls

from mcplan.errors import InputError
from mcplan.planning.feasibility import Feasibility
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.passage import Obstruction
from mcplan.planning.posture.limbs import Limb
from mcplan.planning.search.candidates import Candidates
from mcplan.planning.search.improve import BlockedPath
from mcplan.planning.search.node import StanceNode
from mcplan.planning.search.tree import SearchTree
from mcplan.robot.robot import Robot
from mcplan.scenario.schema import GoalItem
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.util.text import format_angle, format_length

CONE_RAYS = 32
"""Rays of the pyramid circumscribed about a friction cone."""

MAX_REASONS = 6
"""Maximum number of reasons that are listed."""

BALANCE_KINDS = ("friction", "load")
"""Kinds of violations that no change of posture removes: the contacts cannot balance the robot."""


def check_occupied(feasibility: Feasibility, item: GoalItem) -> str:
    """Describe the goal contact that overlaps something at its place, or return an empty text."""
    for spec in item.contacts:
        try:
            contact = make_contact(feasibility.robot, feasibility.environment, spec)
        except InputError:
            continue
        if (hit := feasibility.occupancy.overlap(contact)) is not None:
            return (
                f"goal: at its place on {spec.surface}, {spec.patch} is {hit[1]:.3f} m inside: {hit[0]} overlap; "
                "move the goal or the obstacle"
            )
    return ""


def check_surface_size(goal: Goal, sampled: Mapping[str, Candidates], q: np.ndarray) -> str:
    """Describe the goal contact that does not fit on its support, and why, or return an empty text.

    Parameters
    ----------
    q : (nq,) posture of the search for the nearest place.
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


def check_reachable(
    robot: Robot,
    contacts: Sequence[Contact],
    goal: Goal,
    sampled: Mapping[str, Candidates],
    limbs: Mapping[str, Limb],
) -> str:
    """Describe the goal support that no sequence of supports within reach leads to, or return an empty text.

    The contacts of two limbs can be apart by the lengths of both limbs plus the distance of their roots.
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
    """Return the least distance between two sets of points (m)."""
    step = max(1, len(a) * len(b) // 1_000_000)
    a = a[::step]
    return float(np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2).min()))


def check_friction(environment: Environment, goal: Goal, sampled: Mapping[str, Candidates]) -> str:
    """Describe missing friction if the goal contacts cannot bear the weight, or return an empty text.

    Necessary condition on forces alone, without moments: sum of f_i = weight, |t' f_i| <= mu_i n' f_i. It includes the
    supports of the goal and, if other contacts are allowed, the supports of all candidate contacts.
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
    slopes = []
    for support in supports:
        if isinstance(support, Surface) and support.name in {spec.surface for spec in goal.specs.values()}:
            tilt = float(np.arccos(np.clip(support.normal[2], -1.0, 1.0)))
            slopes.append(
                f"{support.name} is tilted by {np.rad2deg(tilt):.1f} degrees with friction {support.friction:g}"
            )
    need = min(np.tan(np.arccos(np.clip(s.normal[2], 1e-9, 1.0))) for s in supports if isinstance(s, Surface))
    return (
        f"goal: nothing there can bear the weight without slipping: {'; '.join(slopes)}; a friction of at least "
        f"{need:.2f} is needed, or a contact that holds the robot (a bar to grasp, a surface opposite)"
    )


def _cone(R: np.ndarray, friction: float) -> np.ndarray:
    """Return rays (3, CONE_RAYS) of the pyramid about the friction cone of a surface with the frame ``R`` (3, 3)."""
    angle = 2 * np.pi * np.arange(CONE_RAYS) / CONE_RAYS
    wide = friction / np.cos(np.pi / CONE_RAYS)
    return R @ np.array([wide * np.cos(angle), wide * np.sin(angle), np.ones(CONE_RAYS)])


def explain_failure(
    robot: Robot, tree: SearchTree, closest: StanceNode | None, obstruction: Obstruction | None, where: str
) -> str:
    """Return the summary of a search that found no plan.

    Parameters
    ----------
    closest : the stance with the lowest estimated cost to the goal.
    obstruction : what blocks the path of the base.
    where : number of the goal for the message, or an empty text.
    """
    lines = [f"no plan within the budget: {len(tree.nodes)} stances, {tree.calls} postures{where}"]
    if obstruction is not None:
        x, y, z = obstruction.place[:3]
        lines.append(
            f"no path for the base in the posture of the start: at ({x:.2f}, {y:.2f}, {z:.2f}), {obstruction.reason}"
        )
    if closest is not None:
        contacts = ", ".join(f"{c.patch} on {c.support}" for c in closest.contacts)
        lines.append(f"closest stance ({closest.h:.1f} moves from the goal): {contacts}")
        ahead = [r for r in tree.rejected if r["parent"] == closest.index]
        if ahead:
            nearest = min(ahead, key=_severity)
            lines.append(f"from there, nearest to success: {nearest['move']}: {describe_shortfall(robot, nearest)}")
    lines += tree.summary()[:MAX_REASONS]
    change = suggest_remedy(tree, obstruction, robot.link_names)
    return "\n  ".join([*lines, f"what would have to change: {change}"] if change else lines)


def explain_blocked_path(blocked: BlockedPath, where: str) -> str:
    """Return the summary of a search whose best path has motions in collision.

    Parameters
    ----------
    where : number of the goal for the message, or an empty text.
    """
    moves = len(blocked.path) - 1
    lines = [f"path of {moves} moves found{where}, but none within the budget with all motions collision-free"]
    for one in blocked.motions:
        lines.append(f"blocked: {one.motion}: {'; '.join(str(violation) for violation in one.violations)}")
    one = max(blocked.motions, key=lambda one: one.violations[0].amount)
    worst = one.violations[0]
    if worst.kind != "passage":
        change = f"contacts that hold the robot while {one.motion.patch} moves"
    elif worst.of_two:
        change = f"{format_length(worst.amount)} more room between {worst.thing}"
    else:
        change = f"another place for {worst.thing}"
    lines.append(f"what would have to change: {change}, or a larger budget")
    return "\n  ".join(lines)


def describe_shortfall(robot: Robot, rejection: Mapping[str, Any]) -> str:
    """Return by how much a rejected move fails: ``step6 is 0.04 m beyond the right_leg's reach``."""
    supports = {contact["patch"]: contact["surface"] for contact in rejection["contacts"]}
    support = supports.get(rejection["thing"]) or next(iter(supports.values()), None)
    if rejection["kind"] == "reach" and support is not None:
        patch = rejection["thing"] if rejection["thing"] in supports else next(iter(supports))
        limb = robot.patches[patch].limb
        beyond = format_length(max(rejection["amount"], 0.01))
        return f"{support} is {beyond} beyond the {limb}'s reach ({rejection['reason']})"
    return str(rejection["reason"])


def suggest_remedy(tree: SearchTree, obstruction: Obstruction | None, links: Collection[str] = ()) -> str:
    """Return the change that removes the most frequent reason of rejections, see `_evidence`; empty without any.

    The missing amount is the smallest one at the rejected stance closest to the goal.
    """
    if obstruction is not None:
        x, y = obstruction.place[:2]
        return f"{format_length(obstruction.amount)} more room or support at ({x:.2f}, {y:.2f})"
    kinds: Counter = Counter()
    for r in tree.rejected:
        kinds[r["kind"]] += _evidence(r)
    if not kinds:
        return ""
    kind = min(kinds, key=lambda name: (-kinds[name], name))
    things = Counter(r["thing"] for r in tree.rejected if r["kind"] == kind)
    thing = min(things, key=lambda name: (-things[name], name))
    stopped = [r for r in tree.rejected if r["kind"] == kind and r["thing"] == thing]
    ahead = min(tree.nodes[r["parent"]]["h"] for r in stopped)  # rejections far from the goal did not stop the search
    least = min(r["amount"] for r in stopped if tree.nodes[r["parent"]]["h"] == ahead)
    pair = thing.split(" and ")
    harmless = f"; if they overlap without harm: `collision: {{ignore: [[{', '.join(pair)}]]}}` in the robot's file"
    return {
        "reach": f"supports closer together or lower, so that {thing} reaches them ({format_length(least)})",
        "joint limit": f"supports where {thing} keeps within its limits ({format_angle(least)})",
        "slide limit": f"supports where {thing} keeps within its limits ({format_length(least)})",
        "equilibrium": "supports that lie around the centre of mass, or another contact to hold on to",
        "friction": f"more friction under {thing}, less tilt, or a contact to hold on to ({least:.0f} N are missing)",
        "load": f"stronger contacts than {thing}, or one more ({least:.0f} N are missing)",
        "torque": f"a posture or a contact that takes load off {thing} ({least:.1%} of its limit)",
        "collision": f"more room between {thing} ({format_length(least)}){harmless if set(pair) <= set(links) else ''}",
    }.get(kind, f"{thing}: {least:.3f}")


def _evidence(rejection: Mapping[str, Any]) -> int:
    """Return the weight of a rejection as evidence for the cause of a failure.

    Link collisions at a candidate contact have weight 0: there are many candidates, so they count only if nothing else
    failed. A limb that cannot be lifted counts more, since that rules out all of its moves. So does a violation of
    balance, since no change of posture removes it.
    """
    if rejection["stage"] == "link":
        return 0
    lift = 10 if rejection["stage"].startswith("lift") else 1
    return lift * (10 if rejection["kind"] in BALANCE_KINDS else 1)


def _severity(rejection: Mapping[str, Any]) -> tuple[bool, float]:
    return rejection["kind"] not in ("reach", "collision"), rejection["amount"]
