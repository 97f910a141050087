"""What touches has a shape: where a URDF gives a body none, a plate or a ball stands for each of its patches.

Without one neither planner nor certificate would see a foot go through the edge of a step, which physics feels: there
the patch itself touches.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mcplan.model.description import UrdfModel
from mcplan.model.geometry import Geometry, MeshShape, Shape, Sphere
from mcplan.model.patch import Patch

THICKNESS = 0.1
"""Of a plate, as part of the longest side of its patch."""


def with_patch_shapes(
    model: UrdfModel, frames: Mapping[str, tuple[int, np.ndarray]], patches: Mapping[str, Patch]
) -> UrdfModel:
    """Return a model in which links with patches collide, whose bodies have no shape that does.

    Parameters
    ----------
    frames : the body of each link.
    """
    shaped = {frames[name][0] for name, link in model.links.items() if any(g.role != "visual" for g in link.geometry)}
    links = dict(model.links)
    for patch in patches.values():
        shape = None if frames[patch.link][0] in shaped else patch_shape(patch)
        if shape is not None:
            link = links[patch.link]
            own = Geometry(shape, np.asarray(patch.R), np.asarray(patch.p), "collision")
            links[patch.link] = replace(link, geometry=(*link.geometry, own))
    return replace(model, links=links)


def patch_shape(patch: Patch) -> Shape | None:
    """Return the shape that stands for a patch, in its frame; None where it is an edge, a point or a grasp."""
    if patch.kind == "ball":
        return Sphere(patch.radius)
    if patch.kind != "surface" or len(patch.polygon) < 3:
        return None
    corners, k = np.asarray(patch.polygon), len(patch.polygon)
    depth = THICKNESS * float(np.ptp(corners, axis=0).max())
    vertices = np.vstack([np.column_stack([corners, np.full(k, z)]) for z in (0.0, -depth)])
    fan = np.array([(0, i, i + 1) for i in range(1, k - 1)])
    sides = [face for i in range(k) for j in ((i + 1) % k,) for face in ((i, i + k, j + k), (i, j + k, j))]
    faces = np.vstack([fan, fan[:, ::-1] + k, np.array(sides)])
    vertices.flags.writeable = faces.flags.writeable = False
    return MeshShape(vertices, faces)
