"""Where feet stand on a walk: on the way that they take anyway, in even steps of another length."""

from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np

from mcplan.errors import InputError
from mcplan.model.robot import Robot
from mcplan.planning.plan import PlannedStance
from mcplan.planning.walking.section import Section
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.place import make_contact

COORDINATES = ("x", "y", "yaw")


def evenly(
    robot: Robot, environment: Environment, stances: Sequence[PlannedStance], section: Section, stride: float
) -> list[PlannedStance] | None:
    """Return the stances of a walk in even steps, or None where its feet stand on several supports.

    Each foot goes along the places that it has in the plan, which it reaches in the same parts of the whole; one foot
    is ahead of the other by ``stride`` (m) at most. The first is the stance in which the walk begins, the last that in
    which the robot comes to rest. Postures, forces and motions are not those of the new places yet.
    """
    steps, here = section.steps, stances[section.first]
    goal = {contact.patch: contact for contact in stances[section.last].contacts}
    feet = {contact.patch: [(0.0, contact)] for contact in here.contacts}
    for number, (_, down) in enumerate(steps):
        foot = stances[down].moved
        assert foot is not None
        feet[foot].append((min((number + 1) / (len(steps) - 1), 1.0), stances[down].contact(foot)))
    if len({contact.support for places in feet.values() for _, contact in places}) > 1:
        return None
    far = max(float(np.linalg.norm(goal[foot].p - places[0][1].p)) for foot, places in feet.items())
    count = max(int(np.ceil(far / stride - 1e-9)), 1)
    first = stances[steps[0][0]].moved
    order = sorted(feet, key=lambda foot: foot != first)
    found = [here]
    for number, foot in enumerate(islice(cycle(order), count + 1)):
        part = min((number + 1) / count, 1.0)
        try:
            contact = goal[foot] if part == 1.0 else _place(robot, environment, feet[foot], part)
        except InputError:  # beyond the edge of its support
            return None
        both = found[-1].contacts
        alone = tuple(other for other in both if other.patch != foot)
        again = tuple(contact if other.patch == foot else other for other in both)
        found.append(PlannedStance(alone, "remove", foot, here.q, {}, here.tau, {}))
        found.append(PlannedStance(again, "add", foot, here.q, {}, here.tau, {}))
    return [*found, stances[section.last + 1]]


def _place(robot: Robot, environment: Environment, places: Sequence[tuple[float, Contact]], part: float) -> Contact:
    """Return the contact of a foot after a part of its way."""
    parts = [at for at, _ in places]
    x, y, yaw = np.array([[float(contact.coordinates[name]) for name in COORDINATES] for _, contact in places]).T
    here = (float(np.interp(part, parts, values)) for values in (x, y, np.unwrap(yaw)))
    return make_contact(robot, environment, places[0][1].to_data() | dict(zip(COORDINATES, here, strict=True)))
