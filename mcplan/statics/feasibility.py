"""Feasibility test of static equilibrium, and explanation of infeasible stances.

    exists f:   sum f_i = m g e_z,   sum (r_i - c) x f_i = 0,   f within cones and limits   (and |tau| <= share limit)

The test is the first phase of a linear program; `mcplan.statics.equilibrium.balance` computes the forces.

For an infeasible stance the smallest violation is reported. Causes are tried in the order of the usual remedies: move
the centre of mass into the support region; if there is none, raise friction at one contact or at all; then raise the
force limits. If all that fails, the contacts press in the wrong directions. A balanced stance can only violate torque
limits; the critical joint is reported, to whose limit the required fraction is most sensitive.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.polygon import nearest
from mcplan.statics.contact_forces import ForceUnknowns, TorqueRows, moments_about
from mcplan.statics.equilibrium import equilibrium_margin
from mcplan.statics.static_program import StaticProgram
from mcplan.statics.support_region import has_support_region, support_region
from mcplan.util.arguments import check_each, check_instance

MIN_WRENCH = 1e-9
"""Smaller wrenches count as zero, in weights of the robot (moments: at 1 m lever arm)."""

GRAVITY_ALONE = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
"""Total wrench of the contacts about the centre of mass when they balance gravity alone, in weights."""


def can_balance(com: np.ndarray, contacts: Sequence[Contact], mass: float, faces: int = 8, exact: bool = False) -> bool:
    """Return whether some forces balance gravity with the centre of mass at ``com`` (3,)."""
    forces = ForceUnknowns(contacts, faces, mass * GRAVITY)
    rows = moments_about(forces.map, np.asarray(com, dtype=float)) / forces.unit
    return StaticProgram(forces, rows, np.zeros((6, 0)), GRAVITY_ALONE, exact).feasible


def exertable_share(
    point: np.ndarray,
    base_wrench: np.ndarray,
    added_wrench: np.ndarray,
    contacts: Sequence[Contact],
    mass: float,
    upper: float = 1.0,
    faces: int = 8,
) -> float:
    """Return the largest share, up to ``upper``, of a wrench that contacts can exert in addition to another one.

        maximise p   subject to   sum of wrenches = base + p added,   p <= upper,   f within cones and limits

    Return 0 if they cannot exert ``base_wrench``. Both wrenches (6,) are about ``point`` (3,), N and N m.
    """
    size = float(np.abs(added_wrench).max()) / (mass * GRAVITY)
    if size < MIN_WRENCH:
        return upper
    forces = ForceUnknowns(contacts, faces, mass * GRAVITY)
    rows, scale = moments_about(forces.map, point) / forces.unit, forces.unit * size
    program = StaticProgram(
        forces, rows, -added_wrench[:, None] / scale, base_wrench / forces.unit, False, np.array([upper * size])
    )
    return float(program.minimise(np.array([-1.0])).z[0]) / size if program.feasible else 0.0


def can_hold(
    robot: Robot,
    q: np.ndarray,
    contacts: Sequence[Contact],
    torque_share: float = 1.0,
    faces: int = 8,
    exact: bool = False,
) -> bool:
    """Return whether some forces balance gravity at posture ``q`` within ``torque_share`` of the usable torques."""
    forces = ForceUnknowns(contacts, faces, robot.mass * GRAVITY)
    torque_rows = TorqueRows.at(robot, q, forces, torque_share)
    k = len(torque_rows.map)
    columns = np.zeros((6 + k, k))
    columns[6:] = np.eye(k)
    program = StaticProgram(
        forces,
        np.vstack([moments_about(forces.map, robot.com(q)) / forces.unit, torque_rows.map]),
        columns,
        np.concatenate([GRAVITY_ALONE, torque_rows.rhs]),
        exact,
        np.full(k, 2.0 * torque_share),
        np.concatenate([np.full(6, -1), np.arange(k)]),
    )
    return program.feasible


MAX_FACTOR = 100.0
"""Largest factor on friction or force limits that is tried as a remedy."""


@dataclass(frozen=True)
class Shortfall:
    """The smallest violation of an infeasible stance.

    Attributes
    ----------
    kind : ``com``, ``friction``, ``force``, ``contacts`` or ``torque``.
    name : the contacts or the joint.
    amount : distance outside the region (``com``, m), required factor on the limit (``friction``, ``force``), missing
        force (``contacts``, N), or required fraction of the limit (``torque``).
    text : message with kind, name and amount.
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
    """Return the reason why the contacts cannot hold the robot at ``q``, or None if they can.

    Parameters
    ----------
    robot, q : Robot, and its posture (nq,).
    contacts : those that carry load.
    torque_share : usable fraction of the torque limits.
    faces : faces of each friction pyramid.
    """
    check_instance("shortfall", "robot", robot, Robot)
    contacts = check_each("shortfall", "contacts", contacts, Contact)
    com = robot.com(q)
    if can_balance(com, contacts, robot.mass, faces):
        if can_hold(robot, q, contacts, torque_share, faces):
            return None
        return _torque_shortfall(robot, q, contacts, torque_share, faces)
    names = " and ".join(contact.patch for contact in contacts) or "no contacts"
    region = support_region(contacts, robot.mass, faces)
    nearest_point = None if region.empty else nearest(com[:2], region.A, region.b)
    if nearest_point is not None:
        offset = com[:2] - nearest_point
        distance = float(np.linalg.norm(offset))
        text = f"the centre of mass is {distance:.3f} m outside the region that {names} support, " + (
            f"by ({offset[0]:+.3f}, {offset[1]:+.3f}) m"
        )
        return Shortfall("com", names, distance, text)
    return _limit_shortfall(robot.mass, com, contacts, names, faces)


def _limit_shortfall(mass: float, com: np.ndarray, contacts: Sequence[Contact], names: str, faces: int) -> Shortfall:
    """Return the smallest factor on friction or force limits that gives a support region, else the missing force."""

    def with_friction_factor(factor: float, patches: Sequence[str]) -> list[Contact]:
        return [replace(c, friction=factor * c.friction) if c.patch in patches else c for c in contacts]

    def with_limit_factor(factor: float) -> list[Contact]:
        return [replace(c, max_force=factor * c.max_force, max_moment=factor * c.max_moment) for c in contacts]

    def supports(contacts_: list[Contact]) -> bool:
        return has_support_region(contacts_, mass, faces)

    all_patches = [contact.patch for contact in contacts]
    single_patches = [[c.patch] for c in contacts if c.kind != "grasp" and c.friction > 0.0]
    remedies = []
    for patches in single_patches:

        def supports_with(factor: float, patches: list[str] = patches) -> bool:
            return supports(with_friction_factor(factor, patches))

        factor = _smallest_factor(supports_with)
        if factor is not None:
            remedies.append((factor, patches[0]))
    if not remedies:
        factor = _smallest_factor(lambda factor: supports(with_friction_factor(factor, all_patches)))
        remedies = [] if factor is None else [(factor, names)]
    if remedies:
        factor, name = min(remedies)
        text = f"{name} slips wherever the centre of mass is: friction has to be {factor:.2f} times as large"
        return Shortfall("friction", name, factor, text)
    factor = _smallest_factor(lambda factor: supports(with_limit_factor(factor)))
    if factor is not None:
        return Shortfall("force", names, factor, f"the force limits of {names} have to be {factor:.2f} times as large")
    missing = -equilibrium_margin(com, contacts, mass)
    return Shortfall("contacts", names, missing, f"{names} cannot carry the robot: {missing:.1f} N are missing")


def _smallest_factor(is_feasible: Callable[[float], bool]) -> float | None:
    """Return the smallest factor in [1, MAX_FACTOR] for which ``is_feasible``, to 0.1 %; None: there is none."""
    low, high = 1.0, MAX_FACTOR
    if not is_feasible(high):
        return None
    while high / low > 1.001:
        factor = float(np.sqrt(low * high))
        low, high = (low, factor) if is_feasible(factor) else (factor, high)
    return high


def _torque_shortfall(
    robot: Robot, q: np.ndarray, contacts: Sequence[Contact], torque_share: float, faces: int
) -> Shortfall:
    """Return the smallest fraction ``s`` of all torque limits that holds the posture, and the critical joint.

        minimise  s   subject to   |tau_j| <= s limit_j

    The dual variable of a row is the sensitivity of ``s`` to the limit.
    """
    forces = ForceUnknowns(contacts, faces, robot.mass * GRAVITY)
    torque_rows = TorqueRows.at(robot, q, forces, 0.0)
    k = len(torque_rows.map)
    columns = np.zeros((6 + 2 * k, 1 + 2 * k))
    columns[6:, 0], columns[6:, 1:] = -1.0, np.eye(2 * k)
    program = StaticProgram(
        forces,
        np.vstack([moments_about(forces.map, robot.com(q)) / forces.unit, torque_rows.map, -torque_rows.map]),
        columns,
        np.concatenate([GRAVITY_ALONE, torque_rows.rhs, -torque_rows.rhs]),
        False,
        slack=np.concatenate([np.full(6, -1), 1 + np.arange(2 * k)]),
    )
    optimum = program.minimise(np.append(1.0, np.zeros(2 * k)))
    sensitivity = np.abs(optimum.y[6 : 6 + 2 * k]).reshape(2, k).sum(axis=0)
    name = robot.joint_names[torque_rows.joints[int(sensitivity.argmax())]]
    text = f"joint {name} needs {optimum.value:.0%} of its torque limit, {torque_share:.0%} are allowed"
    return Shortfall("torque", name, optimum.value, text)
