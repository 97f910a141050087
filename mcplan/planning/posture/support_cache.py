"""Support regions of contact sets, cached by value."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.planning.posture.result import Violation
from mcplan.scene.contact import Contact
from mcplan.scene.polygon import nearest
from mcplan.statics.equilibrium import equilibrium_margin
from mcplan.statics.support_region import SupportRegion, has_support_region, support_region

REGION_TOLERANCE_M = 2e-3
"""Accuracy of a region: its computed border is at most this far inside the true one."""

NO_SLIP_FRICTION = 20.0
"""Friction coefficient that practically excludes slip, to test whether a region is empty for lack of friction."""


def contact_key(contact: Contact) -> tuple:
    """Return the data of a contact that determine its forces and pose, as a hashable value."""
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


@dataclass(frozen=True)
class _ContactSet:
    """Contacts, compared and hashed by their data."""

    key: tuple
    contacts: Sequence[Contact] = field(compare=False)


@lru_cache(maxsize=2048)
def _region_and_rows(
    loaded: _ContactSet, mass: float, inset: float, comfort: float
) -> tuple[SupportRegion, np.ndarray]:
    """Return ``region`` and ``rows`` of `SupportData`: different searches need those of the same contacts."""
    region = support_region(loaded.contacts, mass, tolerance=REGION_TOLERANCE_M)
    rows = np.column_stack([region.A, region.inset(inset), region.inset(comfort, share=0.8)])
    return region, np.ascontiguousarray(rows)


@dataclass(frozen=True, eq=False)
class SupportData:
    """Support region of a set of loaded contacts.

    Attributes
    ----------
    region : region of the centre of mass ``a . c <= b``.
    rows : (k, 4) ``a_x, a_y, b`` of the region shrunk by the inset, and ``b`` if shrunk by the comfort distance.
    violation : reason why the region is empty, or None.
    """

    region: SupportRegion
    rows: np.ndarray
    violation: Violation | None

    def hint(self, com: np.ndarray) -> np.ndarray:
        """Return the point (2,) nearest to ``com`` in the region shrunk by the comfort distance; else its centre."""
        position = nearest(np.asarray(com, dtype=float)[:2], self.region.A, self.rows[:, 3])
        return self.region.centre if position is None else position


class ContactRegions:
    """Cache of support regions for the mass of one robot.

    Parameters
    ----------
    mass : mass of the robot (kg).
    inset, comfort : distances from the edge of a region (m), see ``com_inset`` and ``comfort`` of `PostureSettings`.
    """

    def __init__(self, mass: float, inset: float, comfort: float):
        self.mass, self.inset, self.comfort = mass, inset, comfort
        self._cache: dict[tuple, SupportData] = {}

    def support(self, contacts: Sequence[Contact], com: np.ndarray) -> SupportData:
        """Return the region of these contacts, with their full friction.

        Parameters
        ----------
        com : (3,) centre of mass, at which the missing force is computed if the region is empty.
        """
        keys = tuple(contact_key(contact) for contact in contacts)
        key = tuple(sorted(keys))
        if key not in self._cache:
            self._cache[key] = self._compute(_ContactSet(keys, contacts), com)
        return self._cache[key]

    def _compute(self, loaded: _ContactSet, com: np.ndarray) -> SupportData:
        region, rows = _region_and_rows(loaded, self.mass, self.inset, self.comfort)
        contacts, violation = loaded.contacts, None
        if region.empty:
            names = " and ".join(contact.patch for contact in contacts) or "no contacts"
            frictional_contacts = [replace(contact, friction=NO_SLIP_FRICTION, carrier=None) for contact in contacts]
            friction_suffices = has_support_region(frictional_contacts, self.mass)
            missing_force = -equilibrium_margin(com, contacts, self.mass) if contacts else self.mass * GRAVITY
            violation = Violation("friction" if friction_suffices else "load", names, float(missing_force))
        return SupportData(region, rows, violation)
