"""Support regions of contact sets, cached by value."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.planning.posture.result import Violation
from mcplan.scene.contact import Contact
from mcplan.scene.polygon import nearest
from mcplan.statics.equilibrium import equilibrium_margin
from mcplan.statics.support_region import SupportRegion, has_support_region, support_region

REGION_TOLERANCE_M = 2e-3
"""m: a region is found from inside, to this accuracy."""

NO_SLIP_FRICTION = 20.0
"""Friction coefficient without slip: tells whether friction, or an object that yields, makes a region empty."""


def contact_key(contact: Contact) -> tuple:
    """Return everything about a contact that its forces and its place depend on, as a value."""
    options = contact.options
    return (
        contact.patch, contact.support, contact.kind, contact.R.tobytes(), contact.p.tobytes(),
        contact.points.tobytes(), contact.axes.tobytes(), contact.friction, contact.max_force, contact.max_moment,
        contact.selection.tobytes(), str(options.get("slide")), str(options.get("hinge")), _carrier_key(contact),
    )  # fmt: skip


def _carrier_key(contact: Contact) -> tuple:
    carrier = contact.carrier
    if carrier is None:
        return ()
    rest = () if carrier.rest is None else contact_key(carrier.rest)
    return (carrier.name, carrier.mass, carrier.com.tobytes(), *rest)


@dataclass(frozen=True, eq=False)
class SupportData:
    """What a set of loaded contacts offers.

    Attributes
    ----------
    region : where the centre of mass may be.
    rows : (k, 4) ``a_x, a_y, b`` of the region shrunk by the inset, and ``b`` shrunk by the comfort distance.
    violation : why there is no region, or None.
    """

    region: SupportRegion
    rows: np.ndarray
    violation: Violation | None

    def hint(self, com: np.ndarray) -> np.ndarray:
        """Return the place (2,) nearest to ``com`` that lies comfortably inside."""
        place = nearest(np.asarray(com, dtype=float)[:2], self.region.A, self.rows[:, 3])
        return self.region.centre if place is None else place


class ContactRegions:
    """Support regions for a robot's mass.

    Parameters
    ----------
    mass : kg.
    inset, comfort : m, see `PostureSettings`.
    """

    def __init__(self, mass: float, inset: float, comfort: float):
        self.mass, self.inset, self.comfort = mass, inset, comfort
        self._known: dict[tuple, SupportData] = {}

    def support(self, contacts: Sequence[Contact], com: np.ndarray) -> SupportData:
        """Return the region of these contacts (their friction is taken as it is).

        Parameters
        ----------
        com : (3,) where the missing force is computed when the region is empty.
        """
        key = tuple(sorted(contact_key(contact) for contact in contacts))
        if key not in self._known:
            self._known[key] = self._find(contacts, com)
        return self._known[key]

    def _find(self, contacts: Sequence[Contact], com: np.ndarray) -> SupportData:
        region = support_region(contacts, self.mass, tolerance=REGION_TOLERANCE_M)
        if region.empty:
            names = " and ".join(contact.patch for contact in contacts) or "no contacts"
            sticky = [replace(contact, friction=NO_SLIP_FRICTION, carrier=None) for contact in contacts]
            slips = has_support_region(sticky, self.mass)
            missing = -equilibrium_margin(com, contacts, self.mass) if contacts else self.mass * GRAVITY
            violation = Violation("friction" if slips else "load", names, float(missing))
            return SupportData(region, np.zeros((0, 4)), violation)
        rows = np.column_stack([region.A, region.inset(self.inset), region.inset(self.comfort, share=0.8)])
        return SupportData(region, np.ascontiguousarray(rows), None)
