"""Contact margins of the controller: usable fractions of friction and force limits, and of the contact area."""

from dataclasses import replace

import numpy as np

from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings


def with_control_margins(contact: Contact, settings: ControlSettings) -> Contact:
    """Return the contact with friction, force limits and area reduced by the margins of the program."""
    return replace(
        contact,
        friction=settings.contact.friction_fraction * contact.friction,
        max_force=settings.contact.force_fraction * contact.max_force,
        max_moment=settings.contact.force_fraction * contact.max_moment,
        points=shrink_points(contact.points, settings.contact.pressure_margin),
    )


def shrink_points(points: np.ndarray, margin: float, max_share: float = 1 / 3) -> np.ndarray:
    """Return contact points (k, 3) moved inwards by ``margin`` (m) along each axis of the patch.

    A point moves by at most the fraction ``max_share`` of its distance from the centre, so that a small patch keeps an
    area.
    """
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    half = (points.max(axis=0) - points.min(axis=0)) / 2
    scale = 1.0 - np.minimum(margin / np.where(half > 0.0, half, np.inf), max_share)
    return middle + scale * (points - middle)
