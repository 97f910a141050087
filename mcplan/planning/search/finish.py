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

LIMIT_SHARES = (0.6, 0.8, 1.0, 0.97, 0.93, 0.85)
"""Shares of the usable friction and torque, tried in turn until the forces are within their cones.

The smallest feasible share is preferred; the shares below 1 at the end are for solutions with rounding errors.
"""

MAX_CONE_ERROR_N = 5e-7
"""Largest accepted distance of a point force from its friction cone, for rounding."""


@dataclass(frozen=True, eq=False)
class GoalLeg:
    """A part of the path: the moves to a goal, and the posture at its end.

    Attributes
    ----------
    goal : goal of this part.
    nodes : nodes of the path; the first one is where it begins.
    end : final posture of the goal item; None if the path continues to other contacts on the same supports.
    """

    goal: Goal
    nodes: list[StanceNode]
    end: GoalPosture | None = None

    @property
    def q(self) -> np.ndarray:
        """Posture (nq,) at the end of this part."""
        return self.end.result.q if self.end is not None and self.end.found else self.nodes[-1].q

    @property
    def wrenches(self) -> Mapping[str, np.ndarray]:
        """Contact wrenches (6,) in the final posture, by patch; empty without one."""
        forces = None if self.end is None else self.end.result.forces
        return {} if forces is None else forces.wrenches


def finish_stances(
    feasibility: Feasibility, solver: GoalPostureSolver, first: PlannedStance, legs: Sequence[GoalLeg]
) -> tuple[PlannedStance, ...]:
    """Return the stances of a plan.

    Raises
    ------
    PlanningFailed
        When no posture on the contacts of the goal has the joints, centre of mass and base that the goal specifies.
    """
    stances = [first]
    for leg in legs:
        for step in (step for node in leg.nodes[1:] for step in node.steps):
            # contacts in the order of the previous stance, a new one at the end
            order = {patch: i for i, patch in enumerate(stances[-1].patches)}
            contacts = tuple(sorted(step.contacts, key=lambda contact: order.get(contact.patch, len(order))))
            stances.append(_stance(feasibility, step, contacts))
        if leg.end is not None:
            stances.append(_final_stance(feasibility, solver, leg, stances[-1]))
    return tuple(stances)


def _stance(feasibility: Feasibility, step: ContactStep, contacts: tuple[Contact, ...]) -> PlannedStance:
    """Return the stance of a step, with forces and margins of its final posture."""
    robot, settings, q = feasibility.robot, feasibility.postures.generator.settings, step.q
    # contacts at the actual poses of the patches, which may have turned about free axes and have search errors
    in_place = tuple(contact_at(robot, q, contact) for contact in step.in_place)
    loaded = [contact for contact in in_place if contact.patch in step.loaded]
    least_error, best = np.inf, None
    for share in LIMIT_SHARES:
        reduced = [settings.with_margin(contact, share) for contact in in_place]
        equilibrium = balance(robot, q, reduced, list(step.loaded), share * settings.torque_share)
        if equilibrium.feasible and equilibrium.torque_feasible:
            cone_error = _cone_error(loaded, equilibrium)
            if cone_error < least_error:
                least_error, best = cone_error, equilibrium
            if least_error <= MAX_CONE_ERROR_N:
                break
    if best is None:
        raise PlanningFailed(f"{step.title}: no contact forces hold the posture that the search found")
    values = margins(robot, q, loaded, best)
    closest = feasibility.collisions.smallest(q, contacts=step.touching)
    values["clearance"] = None if closest is None else float(closest.distance)
    return PlannedStance(contacts, step.change, step.moved, q, best.wrenches, best.tau, values)


def _cone_error(loaded: Sequence[Contact], equilibrium: Equilibrium) -> float:
    """Return the largest distance of point forces from their friction cones (N), due to rounding of the solver."""
    max_error = 0.0
    for contact in loaded:
        if contact.kind != "grasp":
            force = equilibrium.point_forces[contact.patch] @ contact.axes
            tangent = np.hypot(force[:, 0], force[:, 1]) - contact.friction * force[:, 2]
            max_error = max(max_error, float(-force[:, 2].min()), float(tangent.max()))
    return max_error


def _final_stance(
    feasibility: Feasibility, solver: GoalPostureSolver, leg: GoalLeg, before: PlannedStance
) -> PlannedStance:
    """Return the stance that ends an item by a shift: all contacts carry load, and its posture fields are met."""
    contacts, item, planned = before.contacts, leg.goal.item, leg.end
    end = solver.find(item, contacts, before.q)
    if not end.found and planned is not None and planned.found:
        end = planned  # the goal posture found before the refinement
    if not end.found and solver.constrains(item):
        raise PlanningFailed(f"the contacts of the goal are reached, but {end.missing}")
    # without a goal posture the last one remains: all contacts can carry load there, too
    q = end.result.q if end.found else before.q
    if not solver.constrains(item) and feasibility.motions.collision_message(contacts, before.q, q):
        q = before.q  # the item specifies no posture, so the motion is not needed
    loaded = tuple(contact.patch for contact in contacts)
    return _stance(feasibility, ContactStep(contacts, "shift", None, contacts, loaded, q, contacts), contacts)
