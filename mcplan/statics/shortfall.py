"""What is missing when a stance does not hold: the closest violation, named, and by how much.

The reasons are tried in the order in which a person would remove them: the centre of mass is moved into the support
region; without any region, friction grows at one contact or at all; then the force limits grow; contacts that fail even
so press in the wrong directions. A stance that balances fails by its torques, at the joint that binds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcplan.arguments import each, instance
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.polygon import nearest
from mcplan.statics.contact_forces import ContactForces, moments_about
from mcplan.statics.equilibrium import equilibrium_margin
from mcplan.statics.feasibility import GRAVITY_ALONE, can_balance, can_hold
from mcplan.statics.static_program import StaticProgram
from mcplan.statics.support_region import has_support_region, support_region
from mcplan.statics.torque_rows import TorqueRows

MOST_FACTOR = 100.0
"""Friction or a force limit that has to grow by more than this is not what is missing."""


@dataclass(frozen=True)
class Shortfall:
    """The closest violation.

    Attributes
    ----------
    kind : ``com`` (m outside the region), ``friction`` or ``force`` (factor by which it has to grow), ``contacts``
        (N that are missing), ``torque`` (share of the limit that is needed).
    name : the contacts or the joint.
    amount : see ``kind``.
    text : a sentence with all of it.
    """

    kind: str
    name: str
    amount: float
    text: str

    def __str__(self) -> str:
        return self.text


def shortfall(
    robot: Robot, q: np.ndarray, contacts: Sequence[Contact], torque_share: float = 1.0, faces: int = 8
) -> Shortfall | None:
    """Return why the contacts cannot hold the robot at ``q``, or None when they can.

    Parameters
    ----------
    robot, q : Robot, and its posture (nq,).
    contacts : those that carry load.
    torque_share : part of the torque limits that the joints may use.
    faces : of each friction pyramid.
    """
    instance("shortfall", "robot", robot, Robot)
    contacts = each("shortfall", "contacts", contacts, Contact)
    com = robot.com(q)
    if can_balance(com, contacts, robot.mass, faces):
        if can_hold(robot, q, contacts, torque_share, faces):
            return None
        return _torque(robot, q, contacts, torque_share, faces)
    names = " and ".join(contact.patch for contact in contacts) or "no contacts"
    region = support_region(contacts, robot.mass, faces)
    place = None if region.empty else nearest(com[:2], region.A, region.b)
    if place is not None:
        outside = com[:2] - place
        distance = float(np.linalg.norm(outside))
        text = f"the centre of mass is {distance:.3f} m outside the region that {names} support, " + (
            f"by ({outside[0]:+.3f}, {outside[1]:+.3f}) m"
        )
        return Shortfall("com", names, distance, text)
    return _growth(robot.mass, com, contacts, names, faces)


def _growth(mass: float, com: np.ndarray, contacts: Sequence[Contact], names: str, faces: int) -> Shortfall:
    """Return by how much friction or force limits have to grow before there is a region."""

    def rougher(factor: float, patches: Sequence[str]) -> list[Contact]:
        return [replace(c, friction=factor * c.friction) if c.patch in patches else c for c in contacts]

    def stronger(factor: float) -> list[Contact]:
        return [replace(c, max_force=factor * c.max_force, max_moment=factor * c.max_moment) for c in contacts]

    def supports(changed: list[Contact]) -> bool:
        return has_support_region(changed, mass, faces)

    everywhere = [contact.patch for contact in contacts]
    single = [[c.patch] for c in contacts if c.kind != "grasp" and c.friction > 0.0]
    found = []
    for patches in single:

        def supports_with(factor: float, patches: list[str] = patches) -> bool:
            return supports(rougher(factor, patches))

        factor = _least_factor(supports_with)
        if factor is not None:
            found.append((factor, patches[0]))
    if not found:
        factor = _least_factor(lambda factor: supports(rougher(factor, everywhere)))
        found = [] if factor is None else [(factor, names)]
    if found:
        factor, name = min(found)
        text = f"{name} slips wherever the centre of mass is: friction has to be {factor:.2f} times as large"
        return Shortfall("friction", name, factor, text)
    factor = _least_factor(lambda factor: supports(stronger(factor)))
    if factor is not None:
        return Shortfall("force", names, factor, f"the force limits of {names} have to be {factor:.2f} times as large")
    missing = -equilibrium_margin(com, contacts, mass)
    return Shortfall("contacts", names, missing, f"{names} cannot carry the robot: {missing:.1f} N are missing")


def _least_factor(holds: Callable[[float], bool]) -> float | None:
    """Return the least factor in [1, MOST_FACTOR] for which ``holds``, to a thousandth; None without any."""
    low, high = 1.0, MOST_FACTOR
    if not holds(high):
        return None
    while high / low > 1.001:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _torque(robot: Robot, q: np.ndarray, contacts: Sequence[Contact], allowed: float, faces: int) -> Shortfall:
    """Return the least share ``s`` of all torque limits that holds the posture, and the joint that binds.

    minimise  s   subject to   |tau_j| <= s limit_j
    """
    forces = ContactForces(contacts, faces, robot.mass * GRAVITY)
    limited = TorqueRows.at(robot, q, forces, 0.0)
    k = len(limited.map)
    columns = np.zeros((6 + 2 * k, 1 + 2 * k))
    columns[6:, 0], columns[6:, 1:] = -1.0, np.eye(2 * k)
    program = StaticProgram(
        forces,
        np.vstack([moments_about(forces.map, robot.com(q)) / forces.unit, limited.map, -limited.map]),
        columns,
        np.concatenate([GRAVITY_ALONE, limited.rhs, -limited.rhs]),
        False,
        slack=np.concatenate([np.full(6, -1), 1 + np.arange(2 * k)]),
    )
    optimum = program.minimise(np.append(1.0, np.zeros(2 * k)))
    price = np.abs(optimum.y[6 : 6 + 2 * k]).reshape(2, k).sum(axis=0)
    name = robot.joint_names[limited.joints[int(price.argmax())]]
    text = f"joint {name} needs {optimum.value:.0%} of its torque limit, {allowed:.0%} are allowed"
    return Shortfall("torque", name, optimum.value, text)
