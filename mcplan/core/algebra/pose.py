"""Poses as rows of rotation (9, row-major) and position (3), and perpendicular directions, for contact detection."""

import math

from mcplan.core.jit import jit, jit_inline


@jit
def compose(a, i, b, j, out, k):
    """Write the pose ``out[k] = a[i] b[j]``: rows of rotation (9, row-major) and position (3)."""
    for r in range(3):
        x, y, z = a[i, 3 * r], a[i, 3 * r + 1], a[i, 3 * r + 2]
        for c in range(3):
            out[k, 3 * r + c] = x * b[j, c] + y * b[j, 3 + c] + z * b[j, 6 + c]
        out[k, 9 + r] = a[i, 9 + r] + x * b[j, 9] + y * b[j, 10] + z * b[j, 11]


@jit_inline
def to_world(pose, i, x, y, z):
    """Return the world coordinates (three scalars) of a point given in frame i."""
    return (
        pose[i, 9] + pose[i, 0] * x + pose[i, 1] * y + pose[i, 2] * z,
        pose[i, 10] + pose[i, 3] * x + pose[i, 4] * y + pose[i, 5] * z,
        pose[i, 11] + pose[i, 6] * x + pose[i, 7] * y + pose[i, 8] * z,
    )


@jit_inline
def to_local(pose, i, x, y, z):
    """Return the coordinates (three scalars) in frame i of a point given in the world."""
    x, y, z = x - pose[i, 9], y - pose[i, 10], z - pose[i, 11]
    return (
        pose[i, 0] * x + pose[i, 3] * y + pose[i, 6] * z,
        pose[i, 1] * x + pose[i, 4] * y + pose[i, 7] * z,
        pose[i, 2] * x + pose[i, 5] * y + pose[i, 8] * z,
    )


@jit
def perpendicular(x, y, z):
    """Return a unit vector (three scalars) perpendicular to a unit vector."""
    if abs(x) <= abs(y) and abs(x) <= abs(z):
        u, v, w = 0.0, -z, y
    elif abs(y) <= abs(z):
        u, v, w = z, 0.0, -x
    else:
        u, v, w = -y, x, 0.0
    scale = 1.0 / math.sqrt(u * u + v * v + w * w)
    return scale * u, scale * v, scale * w
