"""Rasterisation of triangles with a depth buffer: each pixel shows the nearest triangle (Catmull 1974)."""

import math

from mcplan.core.jit import jit


@jit
def paint(corners, colours, inverse_depth, picture):
    """Draw triangles. Transparent ones do not write depth, and must come last, from far to near.

    A pixel belongs to the triangles that contain its centre. 1 / depth is linear in row and column.

    Parameters
    ----------
    corners : (k, 3, 3) column and row in pixels, from the upper left corner, and 1 / depth
    colours : (k, 4) red, green, blue and opacity, 0..1
    inverse_depth : (h, w) in and out: largest 1 / depth of the opaque triangles drawn so far
    picture : (h, w, 3) in and out: red, green, blue
    """
    height, width = inverse_depth.shape
    for k in range(len(corners)):
        ax, ay, aw = corners[k, 0, 0], corners[k, 0, 1], corners[k, 0, 2]
        bx, by = corners[k, 1, 0] - ax, corners[k, 1, 1] - ay
        cx, cy = corners[k, 2, 0] - ax, corners[k, 2, 1] - ay
        area = bx * cy - cx * by
        if area == 0.0:
            continue
        # barycentric coordinates s, t of the second and third corner, and 1 / depth, are linear in x and y
        sx, sy = cy / area, -cx / area
        tx, ty = -by / area, bx / area
        bw, cw = corners[k, 1, 2] - aw, corners[k, 2, 2] - aw
        wx, wy = sx * bw + tx * cw, sy * bw + ty * cw
        top, bottom = ay + min(0.0, by, cy), ay + max(0.0, by, cy)
        left, right = ax + min(0.0, bx, cx), ax + max(0.0, bx, cx)
        first, last = max(0, math.ceil(left - 0.5)), min(width - 1, math.floor(right - 0.5))
        opacity = colours[k, 3]
        for row in range(max(0, math.ceil(top - 0.5)), min(height - 1, math.floor(bottom - 0.5)) + 1):
            y = row + 0.5 - ay
            for column in range(first, last + 1):
                x = column + 0.5 - ax
                s, t = sx * x + sy * y, tx * x + ty * y
                if s < 0.0 or t < 0.0 or s + t > 1.0:
                    continue
                pixel_inverse_depth = aw + wx * x + wy * y
                if pixel_inverse_depth <= inverse_depth[row, column]:
                    continue
                if opacity >= 1.0:
                    inverse_depth[row, column] = pixel_inverse_depth
                for c in range(3):
                    picture[row, column, c] += opacity * (colours[k, c] - picture[row, column, c])
