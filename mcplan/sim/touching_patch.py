"""Patches of a robot as contact kernels and models of physics back ends see them."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from mcplan.core.contact.model import PATCH_SIZE
from mcplan.robot.description import Geometry, MeshShape, Sphere
from mcplan.robot.patch import Patch
from mcplan.robot.robot import Robot
from mcplan.util.arrays import read_only

MAX_PROTRUSION_M = 3e-3
"""Largest distance (m) by which a rounded foot may extend beyond the ball that represents it."""


def patch_tables(robot: Robot, patches: Sequence[str], first: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the tables ``patch_index`` (P, 5), ``patch`` (P, 13) and ``corners`` (K, 2) of `ContactScene`.

    A ball has no corners. The number of the first corner is ``first``.
    """
    chosen = [robot.patches[name] for name in patches]
    polygons = [np.zeros((0, 2)) if patch.radius else patch.polygon for patch in chosen]
    firsts = first + np.cumsum([0, *map(len, polygons)])
    index = [
        [
            robot.frame(patch.name)[0],
            robot.link_names.index(patch.link),
            firsts[k],
            len(polygons[k]),
            patch.kind == "grasp",
        ]
        for k, patch in enumerate(chosen)
    ]
    shape = [[*robot.frame(patch.name)[1], patch.radius] for patch in chosen]
    return (
        np.array(index, np.int64).reshape(-1, 5),
        np.array(shape, float).reshape(-1, PATCH_SIZE),
        np.concatenate([np.zeros((0, 2)), *polygons]),
    )


@lru_cache(maxsize=1024)
def active_mask(patches: tuple[str, ...], active: tuple[str, ...]) -> np.ndarray:
    """Return (P,) int64: 1 for the patches that are among ``active``; read-only."""
    return read_only(np.array([name in active for name in patches], np.int64))


def ball_covers_shape(patch: Patch, link: str, geometry: Geometry) -> bool:
    """Return whether a ball patch replaces a shape of its link, which reaches beyond the ball by little."""
    shape = geometry.shape
    if not patch.radius or patch.link != link or not isinstance(shape, Sphere | MeshShape):
        return False
    arm = geometry.p - patch.p
    if isinstance(shape, Sphere):
        return float(np.linalg.norm(arm)) + shape.radius < patch.radius + MAX_PROTRUSION_M
    return bool(np.linalg.norm(shape.vertices @ geometry.R.T + arm, axis=1).max() < patch.radius + MAX_PROTRUSION_M)
