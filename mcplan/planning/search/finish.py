"""From nodes to stances: forces and margins of every step, and the posture that the goal asks for at its end."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcplan.errors import PlanningFailed
from mcplan.planning.feasibility import Prover
from mcplan.planning.goal.ending import End, Ending
from mcplan.planning.goal.item import Goal
from mcplan.planning.plan import PlannedStance
from mcplan.planning.posture.generator import contact_at
from mcplan.planning.search.node import Node
from mcplan.scene.contact import Contact
from mcplan.statics.equilibrium import Equilibrium, balance, margins

SHARES = (0.6, 0.8, 1.0, 0.97, 0.93, 0.85)
"""Of the friction and torque that may be used: the least that does, and others when forces are not within the cones."""

ROUNDING = 5e-7
"""N: forces may be this far outside their cones."""


@dataclass(frozen=True, eq=False)
class Segment:
    """A part of the way: the moves to a goal, and the posture at its end.

    Attributes
    ----------
    goal : where it leads.
    nodes : the first is where it begins.
    end : of the item; None where the way goes on to other places on the same supports.
    """

    goal: Goal
    nodes: list[Node]
    end: End | None = None

    @property
    def q(self) -> np.ndarray:
        """Posture (nq,) with which it ends."""
        return self.end.result.q if self.end is not None and self.end.found else self.nodes[-1].q

    @property
    def wrenches(self) -> Mapping[str, np.ndarray]:
        """What contacts bear in the posture of its end (6,), by patch."""
        forces = None if self.end is None else self.end.result.forces
        return {} if forces is None else forces.wrenches


def finish(prover: Prover, ending: Ending, first: PlannedStance, segments: list[Segment]) -> tuple[PlannedStance, ...]:
    """Return the stances of a plan.

    Raises
    ------
    PlanningFailed
        When the end that the goal asks for (posture, centre of mass, base) does not exist on its contacts.
    """
    stances = [first]
    for segment in segments:
        for node in segment.nodes[1:]:
            for step in node.steps:
                contacts = _ordered(stances[-1].contacts, step.contacts)
                stances.append(
                    _stance(
                        prover, step.change, step.moved, contacts, step.in_place, step.loaded, step.q, step.touching
                    )
                )
        if segment.end is not None:
            stances.append(_end(prover, ending, segment, stances[-1]))
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
    touching: tuple[Contact, ...],
) -> PlannedStance:
    """Return a stance with its forces and margins, taken anew."""
    robot, settings = prover.robot, prover.generator.settings
    # forces act where the patches are, which may have turned about free axes and differ by the tolerance of the search
    in_place = tuple(contact_at(robot, q, contact) for contact in in_place)
    bearing = [contact for contact in in_place if contact.patch in loaded]
    least, best = np.inf, None
    for share in SHARES:
        held = balance(
            robot,
            q,
            [settings.with_margin(contact, share) for contact in in_place],
            list(loaded),
            share * settings.torque_share,
        )
        if held.feasible and held.torque_feasible:
            outside = _outside(bearing, held)
            if outside < least:
                least, best = outside, held
            if least <= ROUNDING:
                break
    if best is None:
        raise PlanningFailed(f"{change} {moved or ''}: the forces of the posture that was found cannot be found again")
    values = margins(robot, q, bearing, best)
    near = prover.collisions.smallest(q, contacts=touching)
    values["clearance"] = None if near is None else float(near.distance)
    return PlannedStance(tuple(contacts), change, moved, q, best.wrenches, best.tau, values)


def _outside(bearing: list[Contact], held: Equilibrium) -> float:
    """Return how far point forces are outside the true cones (N), by the rounding of the program that found them."""
    worst = 0.0
    for contact in bearing:
        if contact.kind != "grasp":
            force = held.point_forces[contact.patch] @ contact.axes
            tangent = np.hypot(force[:, 0], force[:, 1]) - contact.friction * force[:, 2]
            worst = max(worst, float(-force[:, 2].min()), float(tangent.max()))
    return worst


def _end(prover: Prover, ending: Ending, segment: Segment, before: PlannedStance) -> PlannedStance:
    """Return the shift that ends an item: all contacts loaded, and what the item asks of the posture met."""
    contacts, item = before.contacts, segment.goal.item
    end = ending.find(item, contacts, before.q)
    assert segment.end is not None
    if not end.found and segment.end.found:
        end = segment.end  # found from the posture before refinement
    if not end.found and ending.asks(item):
        raise PlanningFailed(f"the contacts of the goal are reached, but {end.missing}")
    # the posture in which the last contact touched rests on all of them too
    q = end.result.q if end.found else before.q
    if not ending.asks(item) and prover.in_the_way(contacts, before.q, q):
        q = before.q  # nobody asked for a better one: no limb has to find a way there
    return _stance(prover, "shift", None, contacts, contacts, tuple(c.patch for c in contacts), q, contacts)
