"""Surfaces that lie in one plane: parts of one floor, cut up because surfaces are convex."""

from functools import lru_cache

import numpy as np

from mcplan.scene.environment import Environment

SAME_PLANE, SAME_DIRECTION = 1e-4, 1e-6
"""m; one less the cosine between the normals: within these, surfaces are in one plane."""


@lru_cache(maxsize=64)
def coplanar(environment: Environment) -> dict[str, frozenset[str]]:
    """Return, by the name of each surface that no object carries, the names of those in its plane, its own included.

    What rests on one of them touches its plane, and so the others' as well where it reaches over the seam.
    """
    surfaces = environment.surfaces
    if not surfaces:
        return {}
    normals = np.array([surface.normal for surface in surfaces])
    alike = normals @ normals.T > 1.0 - SAME_DIRECTION
    found = {}
    for i, surface in enumerate(surfaces):
        near = [
            other.name
            for j, other in enumerate(surfaces)
            if alike[i, j] and np.abs((other.corners - surface.p) @ surface.normal).max() < SAME_PLANE
        ]
        found[surface.name] = frozenset({surface.name, *near})
    return found
