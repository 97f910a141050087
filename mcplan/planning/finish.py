"""From nodes to stances: forces and margins of every step, and the posture that the goal asks for at its end."""

from dataclasses import replace

import numpy as np

from mcplan.errors import PlanningFailed
from mcplan.planning.goal import Goal
from mcplan.planning.linking import Change, Linker
from mcplan.planning.plan import PlannedStance
from mcplan.planning.prover import Prover
from mcplan.planning.search_node import Node
from mcplan.scene.contact import Contact
from mcplan.scene.scenario import Scenario
from mcplan.statics.equilibrium import balance
from mcplan.statics.margins import margins


def finish(
    scenario: Scenario, linker: Linker, prover: Prover, first: PlannedStance, segments: list[tuple[Goal, list[Node]]]
) -> tuple[PlannedStance, ...]:
    """Return the stances of a plan.

    Raises
    ------
    PlanningFailed
        When the end that the goal asks for (posture, centre of mass, base) does not exist on its contacts.
    """
    stances = [first]
    for goal, nodes in segments:
        for node in nodes[1:]:
            for step in node.steps:
                contacts = _ordered(stances[-1].contacts, step.contacts)
                stances.append(_stance(prover, step.change, step.moved, contacts, step.in_place, step.loaded, step.q))
        stances.append(_end(scenario, linker, prover, goal, stances[-1]))
    return tuple(stances)


def _ordered(before: tuple[Contact, ...], after: tuple[Contact, ...]) -> tuple[Contact, ...]:
    """Return ``after`` in the order of ``before``, what is new at the end."""
    place = {contact.patch: i for i, contact in enumerate(before)}
    return tuple(sorted(after, key=lambda contact: place.get(contact.patch, len(place))))


def _stance(
    prover: Prover,
    change: str,
    moved: str | None,
    contacts: tuple[Contact, ...],
    in_place: tuple[Contact, ...],
    loaded: tuple[str, ...],
    q: np.ndarray,
) -> PlannedStance:
    """Return a stance with its forces and margins, taken anew."""
    robot = prover.robot
    bearing = [contact for contact in in_place if contact.patch in loaded]
    share = prover.generator.settings
    held = balance(robot, q, _careful(in_place, share.friction_share), list(loaded), share.torque_share)
    if not held.feasible or not held.torque_feasible:
        raise PlanningFailed(
            f"{change} {moved or ''}: the posture found does not stand when its forces are taken again"
        )
    values = margins(robot, q, bearing, held)
    near = prover.collisions.smallest(q, contacts=in_place)
    values["clearance"] = None if near is None else float(near.distance)
    return PlannedStance(tuple(contacts), change, moved, q, held.wrenches, held.tau, values)


def _careful(contacts: tuple[Contact, ...], share: float) -> tuple[Contact, ...]:
    return tuple(replace(contact, friction=share * contact.friction) for contact in contacts)


def _end(scenario: Scenario, linker: Linker, prover: Prover, goal: Goal, before: PlannedStance) -> PlannedStance:
    """Return the shift that ends a goal: all contacts loaded, near the posture that the goal names."""
    robot, item, contacts = scenario.robot, goal.item, before.contacts
    joints = None if item.posture is None else item.posture.apply(robot, linker.reference)[7:]
    if item.com is not None:
        return linker.link(Change.shift(contacts), before.q, (), joints, np.array(item.com))
    guide = prover.guide(contacts, before.q)
    if joints is not None:
        guide = guide.copy()
        guide[7:] = joints
    result = prover.generator.generate(contacts, None, guide, [before.q])
    if not result.found:
        raise PlanningFailed(f"goal: its contacts were reached, and no posture rests on all of them: {result.reason}")
    return _stance(prover, "shift", None, contacts, contacts, tuple(c.patch for c in contacts), result.q)
