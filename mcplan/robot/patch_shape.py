"""Collision shapes of patches: a plate or a ball where the shapes of a URDF leave a patch open.

Without one neither planner nor certificate would see a foot go through the edge of a step, which physics feels: there
the patch itself touches. Bodies without shapes are such, soles that four balls stand for, hands of fingers with gaps.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mcplan.robot.description import Geometry, MeshShape, Shape, Sphere, UrdfModel
from mcplan.robot.link_solids import solids_of
from mcplan.robot.patch import Patch
from mcplan.robot.solid import Solid, distances_to
from mcplan.util.arrays import read_only

THICKNESS = 0.1
"""Of a plate, as part of the longest side of its patch."""

GAP = 0.1
"""Of a patch's longest side, or a ball's diameter: what is so much farther from its body's shapes is not covered."""

DOWN = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (0, 1) if x or y or z], float)
"""Where a ball may touch: below its middle."""


def with_patch_shapes(
    model: UrdfModel, frames: Mapping[str, tuple[int, np.ndarray]], patches: Mapping[str, Patch]
) -> UrdfModel:
    """Return a model in which patches collide where the shapes of their bodies leave them open.

    Parameters
    ----------
    frames : of each link its body, and where it is in it (12,).
    """
    own: dict[int, list[Solid]] = {}
    for name, link in model.links.items():
        body, offset = frames[name]
        own.setdefault(body, []).extend(solids_of(link.geometry, offset))
    links = dict(model.links)
    for patch in patches.values():
        shape = patch_shape(patch)
        if shape is not None and _open(patch, *frames[patch.link], own):
            link = links[patch.link]
            geometry = Geometry(shape, np.asarray(patch.R), np.asarray(patch.p), "collision", patch=patch.name)
            links[patch.link] = replace(link, geometry=(*link.geometry, geometry))
    return replace(model, links=links)


def _open(patch: Patch, body: int, offset: np.ndarray, own: Mapping[int, list[Solid]]) -> bool:
    """Whether a part of a patch is farther from the solids ``own`` of its body than the rest of it is."""
    if not own[body]:
        return True
    R, p = offset[:9].reshape(3, 3), offset[9:]
    points, size = patch.spread, float(np.ptp(patch.polygon, axis=0).max())
    if patch.kind == "ball":
        below = patch.radius * DOWN / np.linalg.norm(DOWN, axis=1)[:, None]
        points, size = below @ patch.R.T + patch.p, 2 * patch.radius
    off = distances_to(own[body], points @ R.T + p)
    return bool(off.max() - off.min() > GAP * size)


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
    return MeshShape(read_only(vertices), read_only(faces))
