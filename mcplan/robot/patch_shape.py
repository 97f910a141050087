"""Collision shapes of patches: a plate or a ball where the shapes of a URDF do not cover a patch.

Without it, planner and certificate would miss a foot that penetrates the edge of a step; the physics detects it by the
patch. Examples: bodies without shapes, soles modelled by four balls, hands with gaps between fingers.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mcplan.robot.description import Geometry, MeshShape, Shape, Sphere, UrdfModel
from mcplan.robot.link_solids import solids_of
from mcplan.robot.patch import Patch
from mcplan.robot.solid import Solid, distances_to
from mcplan.util.arrays import read_only

THICKNESS_RATIO = 0.1
"""Thickness of a plate / longest side of its patch."""

MAX_GAP_RATIO = 0.1
"""Maximum gap between covered parts of a patch and the shapes of its body / longest side of the patch, or diameter of a
ball."""

DOWN = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (0, 1) if x or y or z], float)
"""Directions of contact points of a ball: its lower half."""


def with_patch_shapes(
    model: UrdfModel, frames: Mapping[str, tuple[int, np.ndarray]], patches: Mapping[str, Patch]
) -> UrdfModel:
    """Add collision shapes for patches that the shapes of their bodies do not cover.

    Parameters
    ----------
    frames : body and pose in it (12,) by link.
    """
    solids: dict[int, list[Solid]] = {}
    for name, link in model.links.items():
        body, offset = frames[name]
        solids.setdefault(body, []).extend(solids_of(link.geometry, offset))
    links = dict(model.links)
    for patch in patches.values():
        shape = patch_shape(patch)
        if shape is not None and _is_uncovered(patch, *frames[patch.link], solids):
            link = links[patch.link]
            geometry = Geometry(shape, np.asarray(patch.R), np.asarray(patch.p), "collision", patch=patch.name)
            links[patch.link] = replace(link, geometry=(*link.geometry, geometry))
    return replace(model, links=links)


def _is_uncovered(patch: Patch, body: int, offset: np.ndarray, solids: Mapping[int, list[Solid]]) -> bool:
    """Whether the ``solids`` of the body leave a part of the patch uncovered."""
    if not solids[body]:
        return True
    R, p = offset[:9].reshape(3, 3), offset[9:]
    points, size = patch.sample_points, float(np.ptp(patch.polygon, axis=0).max())
    if patch.kind == "ball":
        below = patch.radius * DOWN / np.linalg.norm(DOWN, axis=1)[:, None]
        points, size = below @ patch.R.T + patch.p, 2 * patch.radius
    distances = distances_to(solids[body], points @ R.T + p)
    return bool(distances.max() - distances.min() > MAX_GAP_RATIO * size)


def patch_shape(patch: Patch) -> Shape | None:
    """Return the collision shape of a patch, in its frame; None for an edge, a point or a grasp."""
    if patch.kind == "ball":
        return Sphere(patch.radius)
    if patch.kind != "surface" or len(patch.polygon) < 3:
        return None
    corners, k = np.asarray(patch.polygon), len(patch.polygon)
    depth = THICKNESS_RATIO * float(np.ptp(corners, axis=0).max())
    vertices = np.vstack([np.column_stack([corners, np.full(k, z)]) for z in (0.0, -depth)])
    fan = np.array([(0, i, i + 1) for i in range(1, k - 1)])
    sides = [face for i in range(k) for j in ((i + 1) % k,) for face in ((i, i + k, j + k), (i, j + k, j))]
    faces = np.vstack([fan, fan[:, ::-1] + k, np.array(sides)])
    return MeshShape(read_only(vertices), read_only(faces))
