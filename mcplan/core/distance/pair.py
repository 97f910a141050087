"""Signed distance of two convex shapes, with witness points and normal: the cheapest method for each pair of kinds."""

import math

from mcplan.core.distance.closed_form import (
    core_to_plane,
    point_to_box,
    point_to_cylinder,
    point_to_segment,
    segment_to_segment,
)
from mcplan.core.distance.epa import penetrate
from mcplan.core.distance.gjk import BEYOND, TOUCHING, separate
from mcplan.core.distance.shape import (
    BOX,
    CAPSULE,
    CYLINDER,
    KIND,
    PLANE,
    RADIUS,
    RELATIVE,
    SPHERE,
    posed_support,
    write_relative_pose,
)
from mcplan.core.jit import jit_algebra

DISTANCE, NORMAL, POINT_A, POINT_B, PAIR_SIZE = 0, 1, 4, 7, 10
"""Columns of a pair's result: signed distance (m), unit normal from b to a (3), nearest (or deepest) point of a (3) and
of b (3), so that ``distance = normal' (point_a - point_b)``."""


@jit_algebra
def pair_distance(shapes, a, b, pose, margin, work, out):
    """Write the signed distance of shapes a and b with its normal and points to ``out``.

    The distance is ``max over unit n of min over x in A, y in B of n' (x - y)``: the usual distance of separate shapes,
    and minus the shortest separating translation of overlapping ones.

    Parameters
    ----------
    shapes : packed shapes
    pose : (S, 12) rotation and position of every shape in common axes
    margin : (m) larger distances are not computed
    work : scratch
    out : (10,) columns DISTANCE .. POINT_B, in the axes of ``pose``

    Returns
    -------
    Whether the distance is at most the margin; only then is ``out`` complete.
    """
    swap = shapes.index[a, KIND] > shapes.index[b, KIND]
    if swap:
        a, b = b, a
    first, second = shapes.index[a, KIND], shapes.index[b, KIND]
    ra, rb = shapes.size[a, RADIUS], shapes.size[b, RADIUS]
    write_relative_pose(pose, a, b, work)
    if second == PLANE:
        core_to_plane(shapes, a, work, out)
    elif second == CAPSULE and first == CAPSULE:
        segment_to_segment(shapes, a, b, work, out)
    elif first == SPHERE and second <= CAPSULE:
        point_to_segment(shapes, b, work, out)
    elif first == SPHERE and second == BOX:
        point_to_box(shapes, b, work, out)
    elif first == SPHERE and second == CYLINDER:
        point_to_cylinder(shapes, b, work, out)
    else:
        found = separate(shapes, a, b, margin + ra + rb, work, out)
        if found == BEYOND:
            return False
        if found == TOUCHING:
            penetrate(shapes, a, b, work, out)
    core = out[DISTANCE]
    distance = core - ra - rb
    if not distance <= margin:
        return False
    u, v, w = out[NORMAL], out[NORMAL + 1], out[NORMAL + 2]
    x, y, z = out[POINT_A] - ra * u, out[POINT_A + 1] - ra * v, out[POINT_A + 2] - ra * w
    out[DISTANCE] = distance
    mine, other = (POINT_B, POINT_A) if swap else (POINT_A, POINT_B)
    for r in range(3):
        i, j, k = pose[b, 3 * r], pose[b, 3 * r + 1], pose[b, 3 * r + 2]
        normal = i * u + j * v + k * w
        point = i * x + j * y + k * z + pose[b, 9 + r]
        out[NORMAL + r] = -normal if swap else normal
        out[mine + r] = point
        out[other + r] = point - distance * normal
    return True


@jit_algebra
def fast_pair_distance(shapes, a, b, pose, margin, work, out):
    """Write the same result as `pair_distance`, up to rounding, in less time for a shape over a face of a box.

    Let x be the lowest point of the core over the face, at the height h, and r the distance of its foot from the edges
    of the face. The distance is h if h and r are positive. So it is if ``-2 h`` is less than r and the thickness of the
    box: x is at least as deep in any other direction, because the box contains half a ball of that radius below the
    foot.
    """
    swap = shapes.index[b, KIND] != BOX
    box, other = (a, b) if swap else (b, a)
    if shapes.index[box, KIND] == BOX and shapes.index[other, KIND] != PLANE:
        write_relative_pose(pose, other, box, work)
        p, half = work[RELATIVE, 9:], shapes.size[box]
        ex, ey, ez = abs(p[0]) - half[0], abs(p[1]) - half[1], abs(p[2]) - half[2]
        k = (0 if ex >= ez else 2) if ex >= ey else (1 if ey >= ez else 2)
        side = math.copysign(1.0, p[k])
        x, y, z = posed_support(
            shapes, other, work, -side if k == 0 else 0.0, -side if k == 1 else 0.0, -side if k == 2 else 0.0
        )
        height = side * (x if k == 0 else (y if k == 1 else z)) - half[k]
        reach = min(
            half[0] - abs(x) if k != 0 else math.inf,
            half[1] - abs(y) if k != 1 else math.inf,
            half[2] - abs(z) if k != 2 else math.inf,
        )
        if reach >= 0.0 and (height >= 0.0 or min(reach, 2.0 * half[k]) >= -2.0 * height):
            distance = height - shapes.size[other, RADIUS] - shapes.size[box, RADIUS]
            out[DISTANCE] = distance
            near, far, sign = (POINT_B, POINT_A, -1.0) if swap else (POINT_A, POINT_B, 1.0)
            for r in range(3):
                i, normal = 3 * r, side * pose[box, 3 * r + k]
                point = pose[box, i] * x + pose[box, i + 1] * y + pose[box, i + 2] * z + pose[box, 9 + r]
                point -= shapes.size[other, RADIUS] * normal
                out[NORMAL + r] = sign * normal
                out[near + r], out[far + r] = point, point - distance * normal
            return distance <= margin
    return pair_distance(shapes, a, b, pose, margin, work, out)
