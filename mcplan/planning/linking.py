"""The posture that links two stances: found by inverse kinematics, balanced within the torque limits, measured."""

from dataclasses import dataclass

import numpy as np

from mcplan.errors import PlanningFailed
from mcplan.model.robot import Robot
from mcplan.planning.plan import PlannedStance
from mcplan.planning.posture.caution import cautious
from mcplan.planning.posture.clearance import free_limbs
from mcplan.planning.posture.inverse_kinematics import solve_posture
from mcplan.planning.posture.problem import Posture, PostureProblem, Weights
from mcplan.planning.posture.reference import comfortable_place, guide_posture
from mcplan.planning.posture.settings import FRICTION_SHARE, TORQUE_SHARE
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.statics.equilibrium import balance
from mcplan.statics.margins import margins
from mcplan.statics.support_region import SupportRegion, support_region

COM_INSET = 0.02
"""m: how far the centre of mass stays inside its support region, where there is room."""

JOINT_MARGIN = 0.05
"""rad or m: distance to the joint limits; the motion between two postures needs some of it."""

REGION_TOLERANCE = 5e-4
"""m: the region is found from inside, to this accuracy."""

BASE_MOVE = 0.05
"""m: the base pose of a start may be off by this much; beyond, the start contradicts itself."""

START_WEIGHTS = Weights(base_position=200.0, base_orientation=100.0)
"""At the start the contacts outrank the base pose, which outranks the posture."""


@dataclass(frozen=True)
class Change:
    """The step from one stance to the next.

    Attributes
    ----------
    name : ``start`` | ``add`` | ``remove`` | ``shift``.
    moved : the patch that is added or removed, else None.
    contacts : those of the new stance.
    in_place : those of the larger of the two stances, in place at the linking posture.
    loaded : those of both, which carry the load there.
    """

    name: str
    moved: str | None
    contacts: tuple[Contact, ...]
    in_place: tuple[Contact, ...]
    loaded: tuple[Contact, ...]

    @classmethod
    def start(cls, contacts: tuple[Contact, ...]) -> "Change":
        """Put all contacts in place at once."""
        return cls("start", None, contacts, contacts, contacts)

    @classmethod
    def add(cls, before: tuple[Contact, ...], contact: Contact) -> "Change":
        """Add a contact: it is in place and carries nothing yet."""
        return cls("add", contact.patch, (*before, contact), (*before, contact), before)

    @classmethod
    def remove(cls, before: tuple[Contact, ...], patch: str) -> "Change":
        """Remove a contact: it is still in place and carries nothing any more."""
        left = tuple(contact for contact in before if contact.patch != patch)
        return cls("remove", patch, left, before, left)

    @classmethod
    def shift(cls, before: tuple[Contact, ...]) -> "Change":
        """Keep the contacts in another posture."""
        return cls("shift", None, before, before, before)

    def __str__(self) -> str:
        return self.name if self.moved is None else f"{self.name} {self.moved}"


class Linker:
    """Finds and proves linking postures in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    reference : (nq,) the posture that others resemble; replaced by `start`.
    """

    def __init__(self, robot: Robot, environment: Environment, reference: np.ndarray):
        self.robot, self.environment = robot, environment
        self.reference = np.array(reference, dtype=float)
        self.bearing: tuple[str, ...] = ()

    def start(self, contacts: tuple[Contact, ...]) -> PlannedStance:
        """Settle the reference posture on its contacts.

        Raises
        ------
        PlanningFailed
            When no posture is found, or the base has to move over 5 cm.
        """
        change = Change.start(contacts)
        region = self._region(change)
        problem = PostureProblem(
            self.reference,
            contacts,
            region,
            COM_INSET,
            com_hint=comfortable_place(
                region, cautious(change.loaded, FRICTION_SHARE), self.robot.com(self.reference), self.robot.mass
            ),
            joint_margin=JOINT_MARGIN,
            weights=START_WEIGHTS,
        )
        posture = solve_posture(self.robot, problem)
        moved = float(np.linalg.norm(posture.q[:3] - self.reference[:3]))
        if posture.found and moved > BASE_MOVE:
            raise PlanningFailed(
                f"start: the base has to move {moved:.3f} m to put the contacts in place, {BASE_MOVE} m are allowed; "
                "correct the base pose, the posture or the contacts"
            )
        planned = self._prove(change, posture)
        self.reference, self.bearing = planned.q, planned.patches
        return planned

    def guide(self, contacts: tuple[Contact, ...], q: np.ndarray, joints: np.ndarray | None = None) -> np.ndarray:
        """Return the guide for these contacts.

        Parameters
        ----------
        q : (nq,) the posture before; the guide where no contact says where the reference should stand.
        joints : (n,) joints of a posture that is asked for, else those of the reference.
        """
        placed = guide_posture(self.robot, self.reference, self.bearing, contacts)
        guide = q.copy() if placed is None else placed
        if joints is not None:
            guide[7:] = joints
        return guide

    def link(
        self,
        change: Change,
        q: np.ndarray,
        lifted: tuple[Contact, ...] = (),
        joints: np.ndarray | None = None,
        com: np.ndarray | None = None,
    ) -> PlannedStance:
        """Find the posture of a change.

        Parameters
        ----------
        q : (nq,) the posture before.
        lifted : the last contact of each patch that hangs in the air.
        joints : (n,) joints of a posture that is asked for, or None.
        com : (2,) or (3,) centre of mass that is asked for, or None.

        Raises
        ------
        PlanningFailed
            With the requirement that is missed, and by how much.
        """
        guide = self.guide(change.in_place, q, joints)
        region = self._region(change)
        if com is not None and region.depth(com) < 0.0:
            raise PlanningFailed(
                f"{change}: the centre of mass asked for, ({com[0]:.3f}, {com[1]:.3f}), lies "
                f"{-region.depth(com):.3f} m outside the region where {_names(change.loaded)} balance it"
            )
        problem = PostureProblem(
            guide,
            change.in_place,
            None if com is not None else region,
            COM_INSET,
            com=com,
            com_hint=comfortable_place(
                region, cautious(change.loaded, FRICTION_SHARE), self.robot.com(guide), self.robot.mass
            ),
            limbs=free_limbs(self.robot, self.environment, guide, change.in_place, lifted, joints is not None),
            joint_margin=JOINT_MARGIN,
            weights=Weights(com=100.0),
        )
        return self._prove(change, solve_posture(self.robot, problem, [q]))

    def _region(self, change: Change) -> SupportRegion:
        region = support_region(cautious(change.loaded, FRICTION_SHARE), self.robot.mass, tolerance=REGION_TOLERANCE)
        if region.empty:
            raise PlanningFailed(
                f"{change}: {_names(change.loaded)} cannot carry the robot wherever its centre of mass is"
            )
        return region

    def _prove(self, change: Change, posture: Posture) -> PlannedStance:
        """Return the posture with its forces and margins, or say what is wrong with it."""
        if not posture.found:
            raise PlanningFailed(f"{change}: " + "; ".join(str(violation) for violation in posture.violations))
        robot, q = self.robot, posture.q
        loaded = change.loaded
        in_place = cautious(change.in_place, FRICTION_SHARE)
        held = balance(robot, q, in_place, [contact.patch for contact in loaded], TORQUE_SHARE)
        if not held.feasible:
            raise PlanningFailed(f"{change}: no forces of {_names(loaded)} balance the posture that was found")
        if not held.torque_feasible:
            share = np.abs(held.tau) / robot.limits.torque
            worst = int(np.argmax(share))
            raise PlanningFailed(
                f"{change}: joint {robot.joint_names[worst]} needs {share[worst]:.0%} of its torque limit, "
                f"{TORQUE_SHARE:.0%} are allowed"
            )
        values = margins(robot, q, loaded, held)
        return PlannedStance(change.contacts, change.name, change.moved, q, held.wrenches, held.tau, values)


def _names(contacts: tuple[Contact, ...]) -> str:
    return " and ".join(contact.patch for contact in contacts) or "no contacts"
