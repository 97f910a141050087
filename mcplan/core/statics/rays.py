"""Rays of friction cones and force balls: unknown contact forces in triples, each within a cone or a ball.

    cone    |(f1, f2)| <= mu f3         rays (mu cos b, mu sin b, 1),    inscribed pyramid: b = (2 k + 1) pi / faces
    ball    |f| <= radius               rays radius d,                   inscribed polytope: d of a list

Each triple is a force at a point, or a moment, in its own axes. A cap bounds the sum over several triples, such as the
total normal force of a contact: ``sum share x <= 1``, where ``x`` are the multiples of their rays.
"""

from typing import NamedTuple

import numpy as np

from mcplan.core.jit import jit

CONE, BALL = 0, 1
"""Kinds of triple."""


class Triples(NamedTuple):
    """Bounds of the unknown contact forces, in triples.

    Parameters
    ----------
    kind : (k,): CONE or BALL.
    bound : (k,): friction coefficient or radius.
    length : (k,): normal force of a cone's ray (N); 1 for a ball.
    cap, share : (k,): row of the cap or -1, and the share of the cap that one unit of a ray uses.
    """

    kind: np.ndarray
    bound: np.ndarray
    length: np.ndarray
    cap: np.ndarray
    share: np.ndarray


@jit
def wrench_map(position, axes, is_moment, out):
    """Write the wrench about the world's origin, force then moment, per unit of each unknown.

    Parameters
    ----------
    position, axes : (k, 3), (k, 3, 3): point where the triple acts, and its axes as columns.
    is_moment : (k,).
    out : (6, 3 k): written.
    """
    for k in range(len(position)):
        x, y, z = position[k]
        for i in range(3):
            a, b, c = axes[k, 0, i], axes[k, 1, i], axes[k, 2, i]
            column = out[:, 3 * k + i]
            if is_moment[k]:
                column[0], column[1], column[2], column[3], column[4], column[5] = 0.0, 0.0, 0.0, a, b, c
            else:
                column[0], column[1], column[2] = a, b, c
                column[3], column[4], column[5] = y * c - z * b, z * a - x * c, x * b - y * a


@jit
def inner_rays(triples, faces, directions, owner, ray):
    """Write the rays of the inscribed polytopes; return their number.

    Parameters
    ----------
    faces : number of faces of a pyramid; a cone without friction has one ray.
    directions : (j, 3): vertices of the polytope in the unit ball.
    owner, ray : (n,), (n, 3): written; the triple of each ray, and the ray.
    """
    count = 0
    for k in range(len(triples.kind)):
        if triples.kind[k] == BALL:
            for d in directions:
                owner[count] = k
                for i in range(3):
                    ray[count, i] = triples.bound[k] * d[i]
                count += 1
            continue
        for face in range(faces if triples.bound[k] > 0.0 else 1):
            angle = (2.0 * face + 1.0) * np.pi / faces
            owner[count] = k
            ray[count, 0] = triples.length[k] * triples.bound[k] * np.cos(angle)
            ray[count, 1] = triples.length[k] * triples.bound[k] * np.sin(angle)
            ray[count, 2] = triples.length[k]
            count += 1
    return count


@jit
def inner_faces(triples, caps, pyramid, ball, F, upper):
    """Write the faces ``F f <= upper`` of the inscribed polytopes, and those of the caps; return their number.

    Parameters
    ----------
    pyramid : (faces, 2): ``pyramid f_t <= mu f_n``.
    ball : (j, 3): ``ball f <= radius``.
    F, upper : (n, 3 k), (n,): of zeros, written.
    """
    count = 0
    for k in range(len(triples.kind)):
        if triples.kind[k] == BALL:
            for d in ball:
                for i in range(3):
                    F[count, 3 * k + i] = d[i]
                upper[count] = triples.bound[k]
                count += 1
            continue
        for d in pyramid:
            F[count, 3 * k], F[count, 3 * k + 1], F[count, 3 * k + 2] = d[0], d[1], -triples.bound[k]
            count += 1
        F[count, 3 * k + 2] = -1.0
        count += 1
    for cap in range(caps):
        is_used = False
        for k in range(len(triples.kind)):
            if triples.cap[k] == cap and triples.kind[k] == CONE:
                F[count, 3 * k + 2] = 1.0
                upper[count] = triples.length[k] / triples.share[k]
                is_used = True
        count += is_used
    return count


@jit
def most_valuable_ray(triples, k, value, ray):
    """Write the most valuable ray of the exact cone or ball ``k``; ``value`` (3,) is the value per unknown."""
    if triples.kind[k] == BALL:
        size = np.sqrt(value[0] ** 2 + value[1] ** 2 + value[2] ** 2)
        for i in range(3):
            ray[i] = triples.bound[k] * value[i] / size if size > 0.0 else 0.0
        return
    size = np.sqrt(value[0] ** 2 + value[1] ** 2)
    for i in range(2):
        ray[i] = triples.length[k] * triples.bound[k] * value[i] / size if size > 0.0 else 0.0
    ray[2] = triples.length[k]
