"""What the things around a robot are to the kernels of distances."""

import numpy as np

from mcplan.model.geometry import Box, Cylinder
from mcplan.model.solid import Solid, hull, solid
from mcplan.scene.environment import Bar, Surface


def slab(surface: Surface) -> Solid:
    """Return the solid below a surface: a box where the polygon is a rectangle along its axes, else a prism."""
    low, high = surface.polygon.min(axis=0), surface.polygon.max(axis=0)
    thickness = surface.thickness
    on_side = np.isclose(surface.polygon, low, atol=1e-12) | np.isclose(surface.polygon, high, atol=1e-12)
    if len(surface.polygon) == 4 and on_side.all():
        middle = np.array([*(low + high) / 2, -thickness / 2])
        size = (high[0] - low[0], high[1] - low[1], thickness)
        return solid(Box(size), surface.R, surface.p + surface.R @ middle)
    top = np.column_stack([surface.polygon, np.zeros(len(surface.polygon))])
    return hull(np.concatenate([top, top - [0, 0, thickness]]), surface.R, surface.p)


def bar_solid(bar: Bar) -> Solid:
    """Return the cylinder of a bar."""
    z = bar.direction
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(z, x), z])
    return solid(Cylinder(bar.radius, bar.length), R, bar.ends.mean(axis=0))
