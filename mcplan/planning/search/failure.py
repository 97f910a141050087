"""What stopped a search, told so that a person can act on it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mcplan.planning.guide.passage import Hindrance
from mcplan.planning.search.improve import Barred
from mcplan.planning.search.node import Node
from mcplan.planning.search.tree import SearchTree
from mcplan.robot.robot import Robot
from mcplan.util.text import format_angle, format_length

LINES = 6
"""How many reasons are listed."""

BALANCE = ("friction", "load")
"""Kinds of violations that no posture cures: the contacts themselves cannot hold the robot."""


def explained(robot: Robot, tree: SearchTree, closest: Node | None, hindrance: Hindrance | None, where: str) -> str:
    """Return the summary of a search that found no plan.

    Parameters
    ----------
    closest : the stance with the least potential.
    hindrance : what is in the way of the base's path.
    where : which goal of how many, or nothing.
    """
    lines = [f"no plan within the budget: {len(tree.nodes)} stances, {tree.calls} postures{where}"]
    if hindrance is not None:
        x, y, z = hindrance.place[:3]
        lines.append(
            f"no way for the base in the posture of the start: at ({x:.2f}, {y:.2f}, {z:.2f}), {hindrance.reason}"
        )
    if closest is not None:
        contacts = ", ".join(f"{c.patch} on {c.support}" for c in closest.contacts)
        lines.append(f"closest stance ({closest.h:.1f} moves from the goal): {contacts}")
        ahead = [r for r in tree.rejected if r["parent"] == closest.index]
        if ahead:
            nearest = min(ahead, key=_severity)
            lines.append(f"from there, nearest to success: {nearest['move']}: {missing(robot, nearest)}")
    lines += tree.summary()[:LINES]
    change = remedy(tree, hindrance)
    if change.startswith("more room between ") and (pair := own_pair(robot, change)):
        change += f"; if they overlap without harm: `collision: {{ignore: [[{', '.join(pair)}]]}}` in the robot's file"
    return "\n  ".join([*lines, f"what would have to change: {change}"] if change else lines)


def own_pair(robot: Robot, text: str) -> tuple[str, str] | None:
    """Return the two links of the robot that a remedy speaks of, or None where one of them is not the robot's."""
    names = text.removeprefix("more room between ").rpartition(" (")[0].split(" and ")
    return (names[0], names[1]) if len(names) == 2 and all(name in robot.link_names for name in names) else None


def barred_way(barred: Barred, where: str) -> str:
    """Return what bars the best path that was found.

    Parameters
    ----------
    where : which goal of how many, or nothing.
    """
    moves = len(barred.path) - 1
    lines = [f"a way of {moves} moves was found{where}, but none within the budget whose motions are all free"]
    for one in barred.motions:
        lines.append(f"barred: {one.motion}: {'; '.join(str(violation) for violation in one.violations)}")
    one = max(barred.motions, key=lambda one: one.violations[0].amount)
    worst = one.violations[0]
    if worst.kind != "passage":
        change = f"contacts that hold the robot on the way of {one.motion.patch}"
    elif worst.of_two:
        change = f"{format_length(worst.amount)} more room between {worst.thing}"
    else:
        change = f"another place for {worst.thing}"
    lines.append(f"what would have to change: {change}, or a larger budget")
    return "\n  ".join(lines)


def missing(robot: Robot, rejection: Mapping[str, Any]) -> str:
    """Return what a rejected move misses: ``step6 is 0.04 m beyond the right_leg's reach``."""
    supports = {contact["patch"]: contact["surface"] for contact in rejection["contacts"]}
    support = supports.get(rejection["thing"]) or next(iter(supports.values()), None)
    if rejection["kind"] == "reach" and support is not None:
        patch = rejection["thing"] if rejection["thing"] in supports else next(iter(supports))
        limb = robot.patches[patch].limb
        beyond = format_length(max(rejection["amount"], 0.01))
        return f"{support} is {beyond} beyond the {limb}'s reach ({rejection['reason']})"
    return str(rejection["reason"])


def remedy(tree: SearchTree, hindrance: Hindrance | None) -> str:
    """Return what would have to be otherwise, by what rejected most, see `_says`; empty when nothing was.

    How much of it is what was missing where the search had come nearest to its goal.
    """
    if hindrance is not None:
        place = hindrance.place
        return f"{format_length(hindrance.amount)} more room or support at ({place.x:.2f}, {place.y:.2f})"
    kinds: Counter = Counter()
    for r in tree.rejected:
        kinds[r["kind"]] += _says(r)
    if not kinds:
        return ""
    kind = min(kinds, key=lambda name: (-kinds[name], name))
    things = Counter(r["thing"] for r in tree.rejected if r["kind"] == kind)
    thing = min(things, key=lambda name: (-things[name], name))
    stopped = [r for r in tree.rejected if r["kind"] == kind and r["thing"] == thing]
    ahead = min(tree.nodes[r["parent"]]["h"] for r in stopped)  # what a search missed far from its goal did not stop it
    least = min(r["amount"] for r in stopped if tree.nodes[r["parent"]]["h"] == ahead)
    return {
        "reach": f"supports closer together or lower, so that {thing} reaches them ({format_length(least)})",
        "joint limit": f"supports where {thing} keeps within its limits ({format_angle(least)})",
        "slide limit": f"supports where {thing} keeps within its limits ({format_length(least)})",
        "equilibrium": "supports that lie around the centre of mass, or another contact to hold on to",
        "friction": f"more friction under {thing}, less tilt, or a contact to hold on to ({least:.0f} N are missing)",
        "load": f"stronger contacts than {thing}, or one more ({least:.0f} N are missing)",
        "torque": f"a posture or a contact that takes load off {thing} ({least:.1%} of its limit)",
        "collision": f"more room between {thing} ({format_length(least)})",
    }.get(kind, f"{thing}: {least:.3f}")


def _says(rejection: Mapping[str, Any]) -> int:
    """Return how much a rejection says about what stops a search.

    A place that a link cannot be at is one of many, and costs nothing to refuse: only where nothing else was in the way
    is it the reason. A limb that cannot be lifted ends all its moves at once. Balance ends a move whatever the posture.
    """
    if rejection["stage"] == "link":
        return 0
    lift = 10 if rejection["stage"].startswith("lift") else 1
    return lift * (10 if rejection["kind"] in BALANCE else 1)


def _severity(rejection: Mapping[str, Any]) -> tuple[bool, float]:
    return rejection["kind"] not in ("reach", "collision"), rejection["amount"]
