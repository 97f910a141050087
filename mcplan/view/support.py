"""The region of the centre of mass in a drawing: one plate per set of contacts, seen while they carry the robot."""

from collections.abc import Sequence

import numpy as np

from mcplan.scene import Contact
from mcplan.scene.polygon import clip
from mcplan.statics.support_region import support_region
from mcplan.view import palette, shapes
from mcplan.view.drawing import Drawing
from mcplan.view.environment import pose

SHOWN = 0.25
"""m: how far from the contacts a region without bounds is drawn (between facing walls any place can be balanced)."""


def draw_support(drawing: Drawing, carrying: Sequence[tuple[Contact, ...]], ground: np.ndarray, mass: float) -> None:
    """Draw the support region of each set of contacts, visible in the frames in which it carries the robot.

    Parameters
    ----------
    carrying : per frame the contacts that carry load.
    ground : (frames,) height of the drawing, m.
    mass : kg.
    """
    shown: dict[str, np.ndarray] = {}
    for row, contacts in enumerate(carrying):
        if not contacts:
            continue
        key = "|".join(f"{c.patch}@{np.round(c.p, 4).tolist()}" for c in contacts)
        if key not in shown:
            shown[key] = np.zeros(len(carrying), dtype=bool)
            polygon = support_polygon(contacts, mass)
            if len(polygon) >= 3:
                node = drawing.root[f"support/{len(shown)}"]
                node.set_object(
                    shapes.mesh(*shapes.prism(polygon, 0.003, 0.0)), shapes.material(palette.SUPPORT, flat=True)
                )
                node.set_transform(pose(np.eye(3), [0, 0, float(ground[row]) + 0.002]))
        shown[key][row] = True
    for index, visible in enumerate(shown.values(), start=1):
        drawing.animate(f"support/{index}", visible=visible)


def support_polygon(contacts: Sequence[Contact], mass: float) -> np.ndarray:
    """Return the corners (k, 2) of the support region, cut at `SHOWN` from the contacts where it has no bounds."""
    region = support_region(contacts, mass)
    if region.bounded:
        return region.vertices
    places = np.array([contact.p[:2] for contact in contacts])
    A = np.vstack([np.eye(2), -np.eye(2)])
    b = np.concatenate([places.max(axis=0), -places.min(axis=0)]) + SHOWN
    return clip(region.vertices, A, b)
