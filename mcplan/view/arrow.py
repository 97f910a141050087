"""Force arrows: where a force acts, which way it points, and how large it is."""

import numpy as np
from meshcat import geometry as mg

from mcplan.view import palette, shapes
from mcplan.view.drawing import Drawing
from mcplan.view.environment import pose

NEWTON = 0.6 / 600.0
"""Length of a force arrow per force, m/N: the weight of a humanoid is 0.6 m."""

SMALLEST_FORCE = 1.0
"""Arrows below this are not drawn, N."""


def draw_force(drawing: Drawing, path: str, place: np.ndarray, force: np.ndarray) -> None:
    """Draw an arrow that starts where the force acts: a shaft with animated length, and a head at its end."""
    size = np.linalg.norm(force, axis=1)
    shown = size > SMALLEST_FORCE
    if not np.any(shown):
        return
    colour = shapes.material(palette.FORCE, on_top=True)
    drawing.root[path]["shaft"]["solid"].set_object(mg.Cylinder(1.0, 0.011), colour)
    drawing.root[path]["shaft"]["solid"].set_transform(pose(np.eye(3), [0, 0, 0.5]) @ shapes.CYLINDER_TO_Z)
    drawing.root[path]["head"]["solid"].set_object(mg.Cylinder(0.07, 0.0, 0.0, 0.028), colour)
    drawing.root[path]["head"]["solid"].set_transform(pose(np.eye(3), [0, 0, 0.035]) @ shapes.CYLINDER_TO_Z)
    length = np.maximum(size * NEWTON, 1e-3)
    quat = shapes.rotation_from_z(force)
    tip = place + force * NEWTON
    ones = np.ones(len(length))
    drawing.animate(
        f"{path}/shaft", position=place, quat_wxyz=quat, visible=shown, scale=np.column_stack([ones, ones, length])
    )
    drawing.animate(f"{path}/head", position=tip, quat_wxyz=quat, visible=shown)
