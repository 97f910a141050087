"""Distances of simple shapes in closed form.

Each function writes the signed distance of two cores, the unit normal from b to a and the nearest point of A to
``out[:7]``, in the frame of b. Row RELATIVE of the scratch has the pose of a in that frame.
"""

import math

from mcplan.core.distance.shape import HALF_SIZE, RELATIVE, posed_support
from mcplan.core.jit import jit_inline

MIN_DISTANCE = 1e-12
"""m: below this distance the direction between two points is only rounding."""


@jit_inline
def write_result(out, distance, nx, ny, nz, x, y, z):
    """Write distance, normal and point."""
    out[0] = distance
    out[1] = nx
    out[2] = ny
    out[3] = nz
    out[4] = x
    out[5] = y
    out[6] = z


@jit_inline
def point_to_segment(shapes, b, work, out):
    """Write the distance from a point to the segment of shape b, a point if its half length is 0."""
    x, y, z = work[RELATIVE, 9], work[RELATIVE, 10], work[RELATIVE, 11]
    c = shapes.size[b, HALF_SIZE + 2]
    dz = z - min(max(z, -c), c)
    distance = math.sqrt(x * x + y * y + dz * dz)
    if distance > MIN_DISTANCE:
        write_result(out, distance, x / distance, y / distance, dz / distance, x, y, z)
    else:
        write_result(out, 0.0, 1.0, 0.0, 0.0, x, y, z)


@jit_inline
def segment_to_segment(shapes, a, b, work, out):
    """Write the distance from the segment of shape a to that of b, which is along z (Ericson 2004, section 5.1.9)."""
    R = work[RELATIVE]
    ca, cb = shapes.size[a, HALF_SIZE + 2], shapes.size[b, HALF_SIZE + 2]
    ux, uy, uz = R[2], R[5], R[8]  # direction of a
    x, y, z = R[9], R[10], R[11]
    # minimise |p + s u - t z|² over |s| <= ca, |t| <= cb
    pu = x * ux + y * uy + z * uz
    sine_square = ux * ux + uy * uy
    s = 0.0
    if sine_square > 1e-14:
        s = min(max((uz * z - pu) / sine_square, -ca), ca)
    t = min(max(z + s * uz, -cb), cb)
    s = min(max(t * uz - pu, -ca), ca)
    t = min(max(z + s * uz, -cb), cb)
    px, py, pz = x + s * ux, y + s * uy, z + s * uz
    dz = pz - t
    distance = math.sqrt(px * px + py * py + dz * dz)
    if distance > MIN_DISTANCE:
        write_result(out, distance, px / distance, py / distance, dz / distance, px, py, pz)
        return
    if sine_square > 1e-14:  # the segments cross: separate them along the common normal, toward a's middle
        length = math.sqrt(sine_square)
        side = 1.0 if uy * x - ux * y >= 0.0 else -1.0
        write_result(out, 0.0, side * uy / length, -side * ux / length, 0.0, px, py, pz)
    else:
        write_result(out, 0.0, 1.0, 0.0, 0.0, px, py, pz)


@jit_inline
def point_to_box(shapes, b, work, out):
    """Write the distance from a point to the box of shape b; from inside, to its nearest face."""
    x, y, z = work[RELATIVE, 9], work[RELATIVE, 10], work[RELATIVE, 11]
    hx, hy, hz = shapes.size[b, HALF_SIZE], shapes.size[b, HALF_SIZE + 1], shapes.size[b, HALF_SIZE + 2]
    dx, dy, dz = x - min(max(x, -hx), hx), y - min(max(y, -hy), hy), z - min(max(z, -hz), hz)
    distance = math.sqrt(dx * dx + dy * dy + dz * dz)
    if distance > MIN_DISTANCE:
        write_result(out, distance, dx / distance, dy / distance, dz / distance, x, y, z)
        return
    ex, ey, ez = abs(x) - hx, abs(y) - hy, abs(z) - hz
    if ex >= ey and ex >= ez:
        write_result(out, ex, (1.0 if x >= 0.0 else -1.0), 0.0, 0.0, x, y, z)
    elif ey >= ez:
        write_result(out, ey, 0.0, (1.0 if y >= 0.0 else -1.0), 0.0, x, y, z)
    else:
        write_result(out, ez, 0.0, 0.0, (1.0 if z >= 0.0 else -1.0), x, y, z)


@jit_inline
def point_to_cylinder(shapes, b, work, out):
    """Write the distance from a point to the cylinder of shape b; from inside, to its nearest side."""
    x, y, z = work[RELATIVE, 9], work[RELATIVE, 10], work[RELATIVE, 11]
    radius, half_length = shapes.size[b, HALF_SIZE], shapes.size[b, HALF_SIZE + 2]
    radial = math.sqrt(x * x + y * y)
    ux, uy = (x / radial, y / radial) if radial > 0.0 else (1.0, 0.0)
    beyond_r, beyond_z = radial - radius, abs(z) - half_length
    sign_z = 1.0 if z >= 0.0 else -1.0
    r, h = max(beyond_r, 0.0), max(beyond_z, 0.0)
    distance = math.sqrt(r * r + h * h)
    if distance > MIN_DISTANCE:
        write_result(out, distance, ux * r / distance, uy * r / distance, sign_z * h / distance, x, y, z)
    elif beyond_r >= beyond_z:
        write_result(out, beyond_r, ux, uy, 0.0, x, y, z)
    else:
        write_result(out, beyond_z, 0.0, 0.0, sign_z, x, y, z)


@jit_inline
def core_to_plane(shapes, a, work, out):
    """Write the distance from any core to the half-space z <= 0 of shape b."""
    x, y, z = posed_support(shapes, a, work, 0.0, 0.0, -1.0)
    write_result(out, z, 0.0, 0.0, 1.0, x, y, z)
