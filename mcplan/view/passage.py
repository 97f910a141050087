"""Postures between two stances of a plan, so that a look at the plan is smooth.

The joints go from one linking posture to the next in a straight line; inverse kinematics puts the contacts that both
have back in place, and a patch that changes its place onto an arc above it. It is a picture of the plan and no proof:
how the motion really goes is what the simulation tells.
"""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from mcplan.planning import Plan, PlannedStance
from mcplan.planning.posture.freedom import contact_rows
from mcplan.planning.posture.settings import Weights
from mcplan.planning.posture.task import PostureSearch, prices
from mcplan.scene import Contact

LIFT = 0.08
"""m: height of the arc of a patch that moves over."""

STEPS, TOLERANCE = 20, 1e-4
"""Steps of the search for each posture; how far it may miss its contacts (m, rad): nobody sees more."""


def in_place(before: PlannedStance | None, stance: PlannedStance) -> tuple[Contact, ...]:
    """Return the contacts that are in place at the linking posture: those of the larger of the two stances."""
    if before is None or len(stance.contacts) >= len(before.contacts):
        return stance.contacts
    return before.contacts


def passage(plan: Plan, number: int, shares: np.ndarray) -> np.ndarray:
    """Return the postures (k, nq) between stance ``number`` and the next, at ``shares`` (k,) of the way in (0, 1)."""
    robot, environment, stances = plan.scenario.robot, plan.scenario.environment, plan.stances
    here, there = stances[number], stances[number + 1]
    before = in_place(stances[number - 1] if number else None, here)
    after = {contact.patch: contact for contact in in_place(here, there)}
    kept, moving = [], []
    for contact in before:
        other = after.get(contact.patch)
        if other is not None and contact.same_place(other, 1e-5):
            kept.append(contact)
        elif other is not None:
            moving.append((contact, other))
    search = PostureSearch(robot, prices(robot, Weights()), 0.0)
    step = robot.difference(here.q, there.q)
    postures = []
    for share in shares:
        q = robot.integrate(here.q, step, float(share))
        contacts = (*kept, *(_on_the_way(a, b, float(share)) for a, b in moving))
        rows = [contact_rows(robot, environment, contact, None) for contact in contacts]
        found = search.run(search.task(rows, q), q, STEPS, TOLERANCE, np.inf)
        postures.append(found.q if found.found else q)
    return np.array(postures)


def _on_the_way(a: Contact, b: Contact, share: float) -> Contact:
    """Return a contact on the arc from one place to another, along the mean of the two normals."""
    up = a.normal + b.normal
    length = float(np.linalg.norm(up))
    up = up / length if length > 0.5 else np.array([0.0, 0.0, 1.0])
    p = (1 - share) * a.p + share * b.p + 4 * share * (1 - share) * LIFT * up
    R = Slerp([0.0, 1.0], Rotation.from_matrix([a.R, b.R]))(share).as_matrix()
    return replace(b, R=R, p=p)
