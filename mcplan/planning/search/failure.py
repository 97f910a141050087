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

CONE_EDGES = 32
"""Number of edges of the pyramid circumscribed about a friction cone."""

MAX_REASONS = 6
"""Maximum number of reasons in a message."""

BALANCE_KINDS = ("friction", "load")
"""Kinds of violations that no other posture removes, since the contacts cannot balance the robot."""


def check_occupied(feasibility: Feasibility, item: GoalItem) -> str:
    """Describe the goal contact at which the link overlaps another body, or return an empty text."""
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
    goal : goal to check.
    sampled : candidate contacts by patch.
    q : (nq,) posture that determines unspecified coordinates: those nearest to the patch are checked.
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

    The distance between contacts of two limbs is at most the lengths of both limbs plus the distance of their roots.

    Parameters
    ----------
    contacts : current contacts.
    sampled : candidate contacts by patch.
    limbs : limbs by name.
    """
    positions: dict[str, list[np.ndarray]] = {}
    for contact in contacts:
        positions.setdefault(contact.support, []).append(contact.p)
    for limb in limbs.values():
        for patch in limb.patches:
            for data, position in zip(sampled[patch].specs, sampled[patch].positions, strict=True):
                positions.setdefault(data["surface"], []).append(position)
    points = {name: np.array(found) for name, found in positions.items()}
    pairs = ((a, b) for a in limbs.values() for b in limbs.values())
    span = max((a.length + b.length + float(np.linalg.norm(a.root - b.root)) for a, b in pairs), default=0.0)
    reached = {contact.support for contact in contacts}
    frontier = [points[name] for name in sorted(reached)]
    while frontier:
        frontier_points = frontier.pop()
        for name in sorted(points):
            if name not in reached and _gap(frontier_points, points[name]) <= span:
                reached.add(name)
                frontier.append(points[name])
    for patch, spec in goal.specs.items():
        if spec.surface in reached:
            continue
        nearest = min((_gap(points[name], points[spec.surface]), name) for name in sorted(reached))
        return (
            f"goal: {patch} cannot come to {spec.surface}: from {nearest[1]}, the nearest support within reach, the "
            f"places are {nearest[0]:.2f} m apart, and the robot spans {span:.2f} m at most; "
            f"{nearest[0] - span:.2f} m are missing. Move {spec.surface} closer or put a surface between"
        )
    return ""


def _gap(a: np.ndarray, b: np.ndarray) -> float:
    """Return the least distance between two sets of points (m)."""
    step = max(1, len(a) * len(b) // 1_000_000)
    a = a[::step]
    return float(np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2).min()))


def check_friction(environment: Environment, goal: Goal, sampled: Mapping[str, Candidates]) -> str:
    """Describe missing friction if the goal contacts cannot bear the weight, or return an empty text.

    This is a necessary condition on the forces f_i alone, without moments: sum of f_i = weight, |t' f_i| <= mu_i n' f_i
    for the normal n and all tangents t of each support, with its friction mu_i. It includes the supports of the goal
    and, if other contacts are allowed, the supports of all candidate contacts.
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
    min_friction = min(np.tan(np.arccos(np.clip(s.normal[2], 1e-9, 1.0))) for s in supports if isinstance(s, Surface))
    return (
        f"goal: nothing there can bear the weight without slipping: {'; '.join(slopes)}; a friction of at least "
        f"{min_friction:.2f} is needed, or a contact that holds the robot (a bar to grasp, a surface opposite)"
    )


def _cone(R: np.ndarray, friction: float) -> np.ndarray:
    """Return the edges (3, CONE_EDGES) of the pyramid about the friction cone; ``R`` (3, 3) is the surface frame."""
    angle = 2 * np.pi * np.arange(CONE_EDGES) / CONE_EDGES
    slope = friction / np.cos(np.pi / CONE_EDGES)
    return R @ np.array([slope * np.cos(angle), slope * np.sin(angle), np.ones(CONE_EDGES)])


def explain_failure(
    robot: Robot, tree: SearchTree, closest: StanceNode | None, obstruction: Obstruction | None, where: str
) -> str:
    """Return the summary of a search that found no plan.

    Parameters
    ----------
    closest : the stance with the lowest estimated cost to the goal.
    tree : record of the search.
    obstruction : obstruction of the base's path, if any.
    where : number of the goal for the message, or an empty text.
    """
    lines = [f"no plan within the budget: {len(tree.nodes)} stances, {tree.calls} postures{where}"]
    if obstruction is not None:
        x, y, z = obstruction.pose[:3]
        lines.append(
            f"no path for the base in the posture of the start: at ({x:.2f}, {y:.2f}, {z:.2f}), {obstruction.reason}"
        )
    if closest is not None:
        contacts = ", ".join(f"{c.patch} on {c.support}" for c in closest.contacts)
        lines.append(f"closest stance ({closest.h:.1f} moves from the goal): {contacts}")
        rejections = [r for r in tree.rejected if r["parent"] == closest.index]
        if rejections:
            mildest = min(rejections, key=_severity)
            lines.append(f"from there, nearest to success: {mildest['move']}: {describe_shortfall(robot, mildest)}")
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
    """Describe by how much a rejected move fails: ``step6 is 0.04 m beyond the right_leg's reach``."""
    supports = {contact["patch"]: contact["surface"] for contact in rejection["contacts"]}
    support = supports.get(rejection["thing"]) or next(iter(supports.values()), None)
    if rejection["kind"] == "reach" and support is not None:
        patch = rejection["thing"] if rejection["thing"] in supports else next(iter(supports))
        limb = robot.patches[patch].limb
        beyond = format_length(max(rejection["amount"], 0.01))
        return f"{support} is {beyond} beyond the {limb}'s reach ({rejection['reason']})"
    return str(rejection["reason"])


def suggest_remedy(tree: SearchTree, obstruction: Obstruction | None, links: Collection[str] = ()) -> str:
    """Return the change that removes the most frequent reason of rejections; empty without rejections.

    Rejections are weighted by `_evidence`. The amount is the smallest one among the rejected moves of the stance that
    is closest to the goal.
    """
    if obstruction is not None:
        x, y = obstruction.pose[:2]
        return f"{format_length(obstruction.amount)} more room or support at ({x:.2f}, {y:.2f})"
    kinds: Counter = Counter()
    for r in tree.rejected:
        kinds[r["kind"]] += _evidence(r)
    if not kinds:
        return ""
    kind = min(kinds, key=lambda name: (-kinds[name], name))
    things = Counter(r["thing"] for r in tree.rejected if r["kind"] == kind)
    thing = min(things, key=lambda name: (-things[name], name))
    rejections = [r for r in tree.rejected if r["kind"] == kind and r["thing"] == thing]
    # rejections far from the goal did not stop the search
    min_h = min(tree.nodes[r["parent"]]["h"] for r in rejections)
    least = min(r["amount"] for r in rejections if tree.nodes[r["parent"]]["h"] == min_h)
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
