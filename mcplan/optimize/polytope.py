"""Polyhedral approximations of friction cones and balls: dimensionless matrices of face normals."""

from functools import cache
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

PYRAMIDS = ("inscribed", "circumscribed")
"""Kinds of friction pyramid."""


@cache
def friction_pyramid(faces: int = 8, pyramid: str = "inscribed") -> NDArray[np.float64]:
    """Return ``D`` such that ``D f_t <= mu f_n`` is a pyramid with ``faces`` faces along the cone ``|f_t| <= mu f_n``.

    ``D_j = (cos a_j, sin a_j) / c`` with ``a_j = 2 pi j / faces``; ``c = cos(pi / faces)`` puts the edges of the
    pyramid on the cone (inscribed: a force inside the faces is inside the cone), ``c = 1`` its faces
    (circumscribed; with four faces ``|f_x|, |f_y| <= mu f_n``).

    Parameters
    ----------
    faces : 4 or more, even.
    pyramid : ``inscribed`` or ``circumscribed``.

    Returns
    -------
    (faces, 2), rows in opposite pairs ``j`` and ``j + faces / 2``.
    """
    if faces < 4 or faces % 2:
        raise ValueError(f"a friction pyramid has an even number of faces, 4 or more, not {faces}")
    if pyramid not in PYRAMIDS:
        raise ValueError(f"friction pyramid {pyramid!r}: one of {', '.join(PYRAMIDS)}")
    angle = 2 * np.pi * np.arange(faces) / faces
    D = np.column_stack([np.cos(angle), np.sin(angle)])
    D[np.abs(D) < 1e-15] = 0.0
    if pyramid == "inscribed":
        D /= np.cos(np.pi / faces)
    D.setflags(write=False)
    return D


@cache
def ball_polytope(dimension: int = 3) -> NDArray[np.float64]:
    """Return ``D`` such that ``D x <= r`` lies inside the ball ``|x| <= r``.

    In three dimensions the normals are the 26 directions of a cube's faces, edges and corners, in opposite pairs ``j``
    and ``j + 13``, divided by the ratio of the inner to the outer radius, found at the vertices (0.887).
    """
    directions = [d for d in product((-1, 0, 1), repeat=dimension) if any(d)]
    half = [d for d in directions if next(x for x in d if x) > 0]
    normals = np.array(half + [tuple(-x for x in d) for d in half], dtype=np.float64)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    N = normals[list(combinations(range(len(normals)), dimension))]
    N = N[np.abs(np.linalg.det(N)) >= 1e-9]
    points = np.linalg.solve(N, np.ones((dimension, 1)))[:, :, 0]
    vertices = points[np.max(points @ normals.T, axis=1) < 1 + 1e-9]
    normals *= np.max(np.linalg.norm(vertices, axis=1))
    normals.setflags(write=False)
    return normals
