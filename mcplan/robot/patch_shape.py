"""Collision shapes of patches: a plate or a ball for a patch that the shapes of a URDF do not cover.

Without such a shape, planner and certificate would miss a foot that penetrates the edge of a step, while the physics
detects it by the patch. Examples: links without shapes, soles modelled by four balls, hands with gaps between fingers.
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
"""Thickness of a plate, divided by the longest side of its patch."""

MAX_GAP_RATIO = 0.1
"""Maximum difference of the distances of points of a covered patch from the shapes of its body, divided by the longest
side of the patch, or by the diameter of a ball."""

LOWER_DIRECTIONS = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (0, 1) if x or y or z], float)
"""Directions (k,3) from the centre of a ball to contact points on its lower half; z points down."""


def with_patch_shapes(
    model: UrdfModel, frames: Mapping[str, tuple[int, np.ndarray]], patches: Mapping[str, Patch]
) -> UrdfModel:
    """Return the model with collision shapes added for patches that the shapes of their bodies do not cover.

    Parameters
    ----------
    frames : by link, index of its body and its pose in the body (12,).
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
    """Return whether the solids of a body leave a part of a patch uncovered; ``offset`` (12,) is the link's pose."""
    if not solids[body]:
        return True
    R, p = offset[:9].reshape(3, 3), offset[9:]
    points, patch_size = patch.sample_points, float(np.ptp(patch.polygon, axis=0).max())
    if patch.kind == "ball":
        lower_points = patch.radius * LOWER_DIRECTIONS / np.linalg.norm(LOWER_DIRECTIONS, axis=1)[:, None]
        points, patch_size = lower_points @ patch.R.T + patch.p, 2 * patch.radius
    distances = distances_to(solids[body], points @ R.T + p)
    return bool(distances.max() - distances.min() > MAX_GAP_RATIO * patch_size)


def patch_shape(patch: Patch) -> Shape | None:
    """Return the collision shape of a patch in its own frame; None for an edge, a point or a grasp."""
    if patch.kind == "ball":
        return Sphere(patch.radius)
    if patch.kind != "surface" or len(patch.polygon) < 3:
        return None
    corners, k = np.asarray(patch.polygon), len(patch.polygon)
    depth = THICKNESS_RATIO * float(np.ptp(corners, axis=0).max())
    vertices = np.vstack([np.column_stack([corners, np.full(k, z)]) for z in (0.0, -depth)])
    top_faces = np.array([(0, i, i + 1) for i in range(1, k - 1)])
    sides = [face for i in range(k) for j in ((i + 1) % k,) for face in ((i, i + k, j + k), (i, j + k, j))]
    faces = np.vstack([top_faces, top_faces[:, ::-1] + k, np.array(sides)])
    return MeshShape(read_only(vertices), read_only(faces))
