"""The places of the zero-tilting-moment point that contacts of any orientation allow.

While the centre of mass stays at its height and the angular momentum constant (the pendulum mode), the contact forces
have a resultant ``(fx, fy, m g)`` through the centre of mass ``c``, which meets the plane ``z = height`` at

    p = c_xy + (height - c_z) (fx, fy) / (m g),     c_xy'' = g (c_xy - p) / (c_z - height)

On flat ground with enough friction this is the hull of the contact points, wherever ``c`` is.

Source: Caron, Pham & Nakamura, ZMP support areas for multi-contact mobility under frictional constraints, IEEE T-RO
33(1), 2017.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.arguments import each, vector
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError
from mcplan.scene.contact import Contact
from mcplan.statics.contact_forces import ContactForces, moments_about
from mcplan.statics.support_region import SAME_POINT, SupportRegion, project, region_of

MOST_PUSH = 10.0
"""Weights: horizontal force at which the area is cut (facing walls can squeeze without limit)."""


def zmp_area(
    com: np.ndarray,
    contacts: Sequence[Contact],
    mass: float,
    height: float = 0.0,
    faces: int = 8,
    exact: bool = False,
    tolerance: float | None = None,
) -> SupportRegion:
    """Return where the zero-moment point may be: the area of the module's docstring.

    Parameters
    ----------
    com : (3,) centre of mass, m.
    contacts, mass : those that carry load; kg.
    height : of the horizontal plane in which the area lies, m; not that of the centre of mass.
    faces, exact, tolerance : as for `support_region`; m.

    Raises
    ------
    InputError
        The plane passes through the centre of mass.
    """
    c = vector("zmp_area", "com", com, 3)
    contacts = each("zmp_area", "contacts", contacts, Contact)
    lever = height - c[2]
    if abs(lever) < 1e-6:
        raise InputError(f"height {height} m: the plane passes through the centre of mass, where every push meets it")
    if not contacts:
        return region_of(np.zeros((0, 2)), True)
    forces = ContactForces(contacts, faces, mass * GRAVITY)
    columns = np.zeros((6, 2))
    columns[0, 0] = columns[1, 1] = -1.0
    rhs = np.array([-MOST_PUSH, -MOST_PUSH, 1.0, 0.0, 0.0, 0.0])
    tolerance = (1e-3 if exact else SAME_POINT) if tolerance is None else tolerance
    rows = moments_about(forces.map, c) / forces.unit
    u = project(forces, rows, columns, rhs, MOST_PUSH, exact, tolerance / abs(lever))
    return region_of(c[:2] + lever * u, len(u) == 0 or bool(np.abs(u).max() < MOST_PUSH - 1e-6))
