"""What one call of the posture generator asks for, and how far an attempt at it came."""

from dataclasses import dataclass

import numpy as np

from mcplan.model.robot import Robot
from mcplan.planning.posture.contact_region import REGION_TOLERANCE, Support
from mcplan.planning.posture.freedom import ContactRows, Freedom
from mcplan.planning.posture.result import STAGES, Clock, PostureResult
from mcplan.planning.posture.violation import Violation
from mcplan.scene.contact import Contact
from mcplan.statics.equilibrium import Equilibrium
from mcplan.statics.margins import friction_margin


@dataclass(frozen=True, eq=False)
class Wanted:
    """What one call asks for (`PostureGenerator.generate`).

    ``further`` : rows of the base and of patches in the air; ``limit`` : (2, n) bounds of the joints.
    """

    contacts: tuple[Contact, ...]
    bearing: tuple[str, ...]
    free: dict[str, Freedom]
    passing: tuple[str, ...]
    guide: np.ndarray
    com: np.ndarray | None
    hint: np.ndarray | None
    further: dict[str, ContactRows]
    limit: np.ndarray

    @property
    def centre(self) -> np.ndarray:
        """Rows (k, 4) of the centre of mass that is asked for."""
        return np.zeros((0, 4)) if self.com is None else np.column_stack([np.eye(3)[: len(self.com)], self.com])

    def touching(self, contacts: tuple[Contact, ...]) -> tuple[Contact, ...]:
        """Return those of the contacts, which may have been settled, that touch: not what is only passing."""
        return tuple(contact for contact in contacts if contact.patch not in self.passing)


@dataclass
class Attempt:
    """The best that one start led to."""

    q: np.ndarray
    contacts: tuple[Contact, ...]
    stage: str
    violations: tuple[Violation, ...]
    forces: Equilibrium | None = None
    support: Support | None = None
    clearance: float | None = None
    error: float = np.inf

    @property
    def rank(self) -> tuple[int, float]:
        """How far it came, and then how little it missed."""
        amount = self.violations[0].amount if self.violations else 0.0
        return STAGES.index(self.stage), -amount

    def result(self, robot: Robot, bearing: tuple[str, ...], clock: Clock) -> PostureResult:
        """Return it as the answer of a call, with its margins."""
        limits, q, held = robot.limits, self.q, self.forces
        margins = {"position": float(np.minimum(q[7:] - limits.lower, limits.upper - q[7:]).min(initial=np.inf))}
        if np.isfinite(self.error):
            margins["contact"] = self.error
        if self.support is not None and not self.support.region.empty:
            margins["com_inset"] = self.support.region.depth(robot.com(q))
        if self.clearance is not None:
            margins["clearance"] = self.clearance
        if held is not None:
            loaded = [contact for contact in self.contacts if contact.patch in bearing]
            margins["friction"], margins["friction_ratio"] = friction_margin(loaded, held.point_forces)
            margins["torque"] = float((np.abs(held.tau) / limits.torque).max(initial=0.0))
        return PostureResult(q, self.contacts, bearing, held, margins, self.violations, self.stage, clock.effort())


def where_it_is(robot: Robot, q: np.ndarray, contact: Contact) -> Contact:
    """Return the contact at the pose that its patch has: it may have turned about free axes."""
    X = robot.frame_pose(q, contact.patch)
    return contact.at(X[:3, :3], X[:3, 3])


def outside(support: Support, com: np.ndarray | None) -> Violation | None:
    """Say how far a centre of mass lies outside the region where contacts balance it; the region's accuracy is free."""
    depth = np.inf if com is None else support.region.depth(com)
    return Violation("equilibrium", "com", float(-depth)) if depth < -REGION_TOLERANCE else None
