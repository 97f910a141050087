"""Force arrows and friction cones of contacts."""

import numpy as np
from meshcat import geometry as mg

from mcplan.view import palette, shapes
from mcplan.view.drawing import Drawing
from mcplan.view.environment import pose

METRES_PER_NEWTON = 0.6 / 600.0
"""Length of a force arrow per force, m/N: the weight of a humanoid (600 N) is 0.6 m long."""

MIN_DRAWN_FORCE_N = 1.0
"""Forces below this are not drawn, N."""

MAX_CONE_HEIGHT_M = 0.25
"""Maximum height of a friction cone, m: a higher one would hide the robot."""


def draw_force(drawing: Drawing, path: str, place: np.ndarray, force: np.ndarray) -> None:
    """Draw an arrow from the point of application: a shaft with animated length, and a head at its end.

    Parameters
    ----------
    place, force : (frames, 3) point of application, m, and force, N.
    """
    size = np.linalg.norm(force, axis=1)
    shown = size > MIN_DRAWN_FORCE_N
    if not np.any(shown):
        return
    draw_arrow(drawing, path)
    length = np.maximum(size * METRES_PER_NEWTON, 1e-3)
    quat = shapes.rotation_from_z(force)
    tip = place + force * METRES_PER_NEWTON
    ones = np.ones(len(length))
    drawing.animate(
        f"{path}/shaft", position=place, quat_wxyz=quat, visible=shown, scale=np.column_stack([ones, ones, length])
    )
    drawing.animate(f"{path}/head", position=tip, quat_wxyz=quat, visible=shown)


def draw_arrow(drawing: Drawing, path: str) -> None:
    """Draw an arrow at the origin along z: a shaft of unit length, scaled later, and a head, moved later."""
    colour = shapes.material(palette.FORCE, on_top=True)
    drawing.root[path]["shaft"]["solid"].set_object(mg.Cylinder(1.0, 0.011), colour)
    drawing.root[path]["shaft"]["solid"].set_transform(pose(np.eye(3), [0, 0, 0.5]) @ shapes.CYLINDER_TO_Z)
    drawing.root[path]["head"]["solid"].set_object(mg.Cylinder(0.07, 0.0, 0.0, 0.028), colour)
    drawing.root[path]["head"]["solid"].set_transform(pose(np.eye(3), [0, 0, 0.035]) @ shapes.CYLINDER_TO_Z)


def draw_cone(
    drawing: Drawing, path: str, place: np.ndarray, force: np.ndarray, normal: np.ndarray, friction: np.ndarray
) -> None:
    """Draw the friction cone, as high as the normal force; at slip the force arrow leaves it sideways.

    Parameters
    ----------
    place, force : (frames, 3) point of application, m, and force, N.
    normal : (frames, 3) unit normals of the support; zero where there is no cone.
    friction : (frames,) friction coefficient.
    """
    height = METRES_PER_NEWTON * np.einsum("ij,ij->i", force, normal)
    shown = (height > METRES_PER_NEWTON * MIN_DRAWN_FORCE_N) & np.isfinite(friction)
    if not np.any(shown):
        return
    node = drawing.root[path]["solid"]
    node.set_object(shapes.mesh(*shapes.cone()), shapes.material(palette.CONE, flat=True))
    height = np.where(shown, np.minimum(height, MAX_CONE_HEIGHT_M), 1e-3)
    width = np.where(shown, height * np.nan_to_num(friction), 1e-3)
    drawing.animate(
        path,
        position=place,
        quat_wxyz=shapes.rotation_from_z(np.where(shown[:, None], normal, [0.0, 0.0, 1.0])),
        scale=np.column_stack([width, width, height]),
        visible=shown,
    )
