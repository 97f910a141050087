"""Stances of a plan from the nodes of a search: forces and margins of every step, and goal postures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mcplan.errors import PlanningFailed
from mcplan.planning.feasibility import Feasibility
from mcplan.planning.goal.ending import GoalPosture, GoalPostureSolver
from mcplan.planning.goal.item import Goal
from mcplan.planning.plan import PlannedStance
from mcplan.planning.posture.generator import contact_at
from mcplan.planning.search.node import ContactStep, StanceNode
from mcplan.scene.contact import Contact
from mcplan.statics.equilibrium import Equilibrium, balance, margins

FORCE_SHARES = (0.6, 0.8, 1.0, 0.97, 0.93, 0.85)
"""Of the friction and torque that may be used: the least that does, and others when forces are not within the cones."""

MAX_CONE_ERROR_N = 5e-7
"""Forces may be this far outside their cones: rounding."""


@dataclass(frozen=True, eq=False)
class GoalLeg:
    """A part of the path: the moves to a goal, and the posture at its end.

    Attributes
    ----------
    goal : where it leads.
    nodes : the first is where it begins.
    end : of the item; None where the path goes on to other places on the same supports.
    """

    goal: Goal
    nodes: list[StanceNode]
    end: GoalPosture | None = None

    @property
    def q(self) -> np.ndarray:
        """Posture (nq,) with which it ends."""
        return self.end.result.q if self.end is not None and self.end.found else self.nodes[-1].q

    @property
    def wrenches(self) -> Mapping[str, np.ndarray]:
        """What contacts bear in the posture of its end (6,), by patch."""
        forces = None if self.end is None else self.end.result.forces
        return {} if forces is None else forces.wrenches


def finish_stances(
    feasibility: Feasibility, solver: GoalPostureSolver, first: PlannedStance, legs: Sequence[GoalLeg]
) -> tuple[PlannedStance, ...]:
    """Return the stances of a plan.

    Raises
    ------
    PlanningFailed
        When the posture that the goal asks for (joints, centre of mass, base) does not exist on its contacts.
    """
    stances = [first]
    for leg in legs:
        for step in (step for node in leg.nodes[1:] for step in node.steps):
            # contacts in the order of the stance before, a new one at the end
            place = {patch: i for i, patch in enumerate(stances[-1].patches)}
            contacts = tuple(sorted(step.contacts, key=lambda contact: place.get(contact.patch, len(place))))
            stances.append(_stance(feasibility, step, contacts))
        if leg.end is not None:
            stances.append(_end(feasibility, solver, leg, stances[-1]))
    return tuple(stances)


def _stance(feasibility: Feasibility, step: ContactStep, contacts: tuple[Contact, ...]) -> PlannedStance:
    """Return the stance of a step with its forces and margins, computed again for the final posture."""
    robot, settings, q = feasibility.robot, feasibility.postures.generator.settings, step.q
    # forces act where the patches are, which may have turned about free axes and differ by the tolerance of the search
    in_place = tuple(contact_at(robot, q, contact) for contact in step.in_place)
    loaded = [contact for contact in in_place if contact.patch in step.loaded]
    least, best = np.inf, None
    for share in FORCE_SHARES:
        spared = [settings.with_margin(contact, share) for contact in in_place]
        held = balance(robot, q, spared, list(step.loaded), share * settings.torque_share)
        if held.feasible and held.torque_feasible:
            outside = _cone_error(loaded, held)
            if outside < least:
                least, best = outside, held
            if least <= MAX_CONE_ERROR_N:
                break
    if best is None:
        raise PlanningFailed(f"{step.title}: no contact forces hold the posture that the search found")
    values = margins(robot, q, loaded, best)
    near = feasibility.collisions.smallest(q, contacts=step.touching)
    values["clearance"] = None if near is None else float(near.distance)
    return PlannedStance(contacts, step.change, step.moved, q, best.wrenches, best.tau, values)


def _cone_error(loaded: Sequence[Contact], held: Equilibrium) -> float:
    """Return how far point forces are outside the true cones (N), by the rounding of the program that found them."""
    worst = 0.0
    for contact in loaded:
        if contact.kind != "grasp":
            force = held.point_forces[contact.patch] @ contact.axes
            tangent = np.hypot(force[:, 0], force[:, 1]) - contact.friction * force[:, 2]
            worst = max(worst, float(-force[:, 2].min()), float(tangent.max()))
    return worst


def _end(feasibility: Feasibility, solver: GoalPostureSolver, leg: GoalLeg, before: PlannedStance) -> PlannedStance:
    """Return the shift that ends an item: all contacts loaded, and what the item asks of the posture met."""
    contacts, item, planned = before.contacts, leg.goal.item, leg.end
    end = solver.find(item, contacts, before.q)
    if not end.found and planned is not None and planned.found:
        end = planned  # found from the posture before refinement
    if not end.found and solver.constrains(item):
        raise PlanningFailed(f"the contacts of the goal are reached, but {end.missing}")
    # the posture in which the last contact touched rests on all of them too
    q = end.result.q if end.found else before.q
    if not solver.constrains(item) and feasibility.motions.collision_message(contacts, before.q, q):
        q = before.q  # the item asks for no other posture: no limb has to find a path there
    loaded = tuple(contact.patch for contact in contacts)
    return _stance(feasibility, ContactStep(contacts, "shift", None, contacts, loaded, q, contacts), contacts)
