"""Contact points of patches and bumps on surfaces and bars.

A patch that faces a surface has its contact points at the corners of the overlap of both polygons. A bump (corner, ball
or rim of a link's shape) touches the top of a slab or, if it has a radius, also its edges and sides. A flat patch on a
bar touches along a line and has a contact point at each end. Contacts are detected slightly before they close, so that
nothing passes through a surface within a step.
"""

import math

from mcplan.core.algebra.polygon import clip_polygon, is_inside, nearest_on_border
from mcplan.core.algebra.pose import perpendicular, to_local, to_world
from mcplan.core.contact.model import (
    AXES,
    BAR_END,
    BAR_FRICTION,
    BAR_RADIUS,
    BODY_A,
    BODY_B,
    BUMP_AXIS,
    BUMP_CENTRE,
    BUMP_FRICTION,
    BUMP_KIND,
    BUMP_LINK,
    BUMP_PATCH,
    BUMP_RADIUS,
    CAPACITY,
    CONE,
    COUNT,
    ERROR,
    FIRST,
    FRICTION,
    IS_ANGULAR,
    KEY,
    KIND,
    LINK,
    ONLY_GRASPS,
    OWNER,
    OWNER_LINK,
    PATCH,
    PATCH_BODY,
    PATCH_COUNT,
    PATCH_FIRST,
    PATCH_LINK,
    POINT,
    RECTANGLE_CENTRE,
    RECTANGLE_HALF,
    RIM,
    SUPPORT_LINK,
    SURFACE_FRICTION,
    THICKNESS,
)
from mcplan.core.jit import jit, jit_inline_exact

DEEPEST = 0.02
"""m: a point deeper below a surface than this, or than the thickness of the slab, is not in contact with its top.
Surfaces without thickness are sides of a solid object, for which only this depth counts."""

DETECTION_MARGIN_M = 1e-3
"""Gap (m) below which a contact enters the program of a step even at rest. Bodies in motion add twice the distance that
they travel in the step, because their velocities change within it."""

FACING = -0.7
"""Largest cosine between the normals of patch and surface at which their polygons are intersected (135 degrees)."""


@jit_inline_exact
def add_contact(contacts, count, a, b, patch, link, other, key, x, y, z, gap, friction):
    """Write a contact at (x, y, z) without its axes; return the new count, or the old one if the table is full.

    Contacts beyond the capacity are counted, because the step is wrong without them.

    Parameters
    ----------
    a, b : touching and supporting body; ``link, support_link`` : their links or objects.
    patch : -1 if none.
    key : identifies the contact in the next step. Its highest bits say what touches: 50 a grasp, 44 a pair of shapes,
        42 a shape on a support, 40 a bump, none a patch; bit 23 is set on bars.
    """
    if count >= CAPACITY:
        contacts.overflow[0] += 1
        return count
    index, value = contacts.index, contacts.value
    index[count, KIND] = CONE
    index[count, IS_ANGULAR] = 0
    index[count, BODY_A] = a
    index[count, BODY_B] = b
    index[count, PATCH] = patch
    index[count, LINK] = link
    index[count, SUPPORT_LINK] = other
    index[count, KEY] = key
    value[count, POINT] = x
    value[count, POINT + 1] = y
    value[count, POINT + 2] = z
    value[count, ERROR] = 0.0
    value[count, ERROR + 1] = 0.0
    value[count, ERROR + 2] = gap
    value[count, FRICTION] = friction
    return count + 1


@jit_inline_exact
def set_axes(contacts, c, x, y, z):
    """Write the axes of a contact with the normal (x, y, z)."""
    u, v, w = perpendicular(x, y, z)
    value = contacts.value
    value[c, AXES] = u
    value[c, AXES + 1] = v
    value[c, AXES + 2] = w
    value[c, AXES + 3] = y * w - z * v
    value[c, AXES + 4] = z * u - x * w
    value[c, AXES + 5] = x * v - y * u
    value[c, AXES + 6] = x
    value[c, AXES + 7] = y
    value[c, AXES + 8] = z


@jit
def max_depth(scene, s):
    """Return the largest depth below a surface (m) at which a point is in contact with it."""
    thickness = scene.surface[s, THICKNESS]
    return min(DEEPEST, thickness) if thickness > 0.0 else DEEPEST


@jit_inline_exact
def is_near_slab(scene, surface, s, x, y, z, radius, margin):
    """Return whether a ball is within ``margin`` (m) of the bounding box of a slab."""
    px, py, height = to_local(surface, s, x, y, z)
    reach = radius + margin
    if height > reach or height < -radius - scene.surface[s, THICKNESS]:
        return False
    dx = max(abs(px - scene.surface[s, RECTANGLE_CENTRE]) - scene.surface[s, RECTANGLE_HALF], 0.0)
    dy = max(abs(py - scene.surface[s, RECTANGLE_CENTRE + 1]) - scene.surface[s, RECTANGLE_HALF + 1], 0.0)
    dz = max(height, -height - scene.surface[s, THICKNESS], 0.0)
    return dx * dx + dy * dy + dz * dz <= reach * reach


@jit_inline_exact
def is_near_bar(scene, b, x, y, z, reach):
    """Return whether a point is within ``reach`` (m) of a bar, taken as a capsule."""
    bar = scene.bar
    dx, dy, dz = bar[b, BAR_END] - bar[b, 0], bar[b, BAR_END + 1] - bar[b, 1], bar[b, BAR_END + 2] - bar[b, 2]
    u, v, w = x - bar[b, 0], y - bar[b, 1], z - bar[b, 2]
    s = min(max((u * dx + v * dy + w * dz) / (dx * dx + dy * dy + dz * dz), 0.0), 1.0)
    u, v, w = u - s * dx, v - s * dy, w - s * dz
    return u * u + v * v + w * w <= (reach + bar[b, BAR_RADIUS]) ** 2


@jit
def distance_to_world(scene, surface, x, y, z, radius):
    """Return a lower bound (m) of the distance of a ball from the slabs that do not move, and from bars as capsules."""
    min_distance = math.inf
    for s in range(len(surface)):
        if scene.surface_index[s, OWNER] < 0:
            px, py, height = to_local(surface, s, x, y, z)
            dx = max(abs(px - scene.surface[s, RECTANGLE_CENTRE]) - scene.surface[s, RECTANGLE_HALF], 0.0)
            dy = max(abs(py - scene.surface[s, RECTANGLE_CENTRE + 1]) - scene.surface[s, RECTANGLE_HALF + 1], 0.0)
            dz = max(height, -height - scene.surface[s, THICKNESS], 0.0)
            min_distance = min(min_distance, math.sqrt(dx * dx + dy * dy + dz * dz))
    for b in range(len(scene.bar)):
        min_distance = min(min_distance, distance_to_bar(scene.bar, b, x, y, z)[0] - scene.bar[b, BAR_RADIUS])
    return min_distance - radius


@jit_inline_exact
def patch_on_surface(scene, surface, s, frame, p, margin, clip, contacts, count):
    """Add the contacts of patch p with surface s; ``surface`` and ``frame`` hold their poses in the world."""
    first, size = scene.surface_index[s, FIRST], scene.surface_index[s, COUNT]
    first_corner, points = scene.patch_index[p, PATCH_FIRST], scene.patch_index[p, PATCH_COUNT]
    min_gap = -max_depth(scene, s)
    all_inside, min_height = True, math.inf
    for k in range(points):
        x, y, z = to_world(frame, p, scene.corners[first_corner + k, 0], scene.corners[first_corner + k, 1], 0.0)
        x, y, z = to_local(surface, s, x, y, z)
        clip[0, k, 0] = x
        clip[0, k, 1] = y
        clip[0, k, 2] = z
        min_height = min(min_height, z)
        all_inside = all_inside and is_inside(scene.corners, first, size, x, y)
    if min_height > margin:
        return count
    facing = (
        frame[p, 2] * surface[s, 2] + frame[p, 5] * surface[s, 5] + frame[p, 8] * surface[s, 8]
    ) <= FACING  # fmt: skip
    if not all_inside and points > 1 and facing:
        points = clip_polygon(scene.corners, first, size, clip, points)
    for k in range(points):
        x, y, gap = clip[0, k, 0], clip[0, k, 1], clip[0, k, 2]
        if (
            gap > margin
            or gap < min_gap
            or not (all_inside or (facing and points > 1) or is_inside(scene.corners, first, size, x, y))
        ):
            continue
        x, y, z = to_world(surface, s, x, y, 0.0)
        before = count
        count = add_contact(
            contacts, count, scene.patch_index[p, PATCH_BODY], scene.surface_index[s, OWNER], p,
            scene.patch_index[p, PATCH_LINK], scene.surface_index[s, OWNER_LINK], (p << 24) + (s << 8) + k, x, y, z,
            gap, scene.friction[p, s],
        )  # fmt: skip
        if count > before:
            set_axes(contacts, before, surface[s, 2], surface[s, 5], surface[s, 8])
    return count


@jit_inline_exact
def patch_on_bar(scene, b, frame, p, margin, contacts, count):
    """Add the contacts of a flat patch with a bar: the ends of the line along which the patch touches the bar."""
    if scene.patch_index[p, ONLY_GRASPS] or scene.patch_index[p, PATCH_COUNT] < 3:
        return count
    bar, radius = scene.bar, scene.bar[b, BAR_RADIUS]
    ax, ay, az = to_local(frame, p, bar[b, 0], bar[b, 1], bar[b, 2])
    ex, ey, ez = to_local(frame, p, bar[b, BAR_END], bar[b, BAR_END + 1], bar[b, BAR_END + 2])
    dx, dy, dz = ex - ax, ey - ay, ez - az
    if dx * dx + dy * dy < 0.5 * (dx * dx + dy * dy + dz * dz):
        return count
    s_min, s_max = 0.0, 1.0
    first_corner, corners = scene.patch_index[p, PATCH_FIRST], scene.patch_index[p, PATCH_COUNT]
    for k in range(corners):
        i = first_corner + k
        j = first_corner + (k + 1 if k + 1 < corners else 0)
        x, y = scene.corners[i, 0], scene.corners[i, 1]
        u, v = scene.corners[j, 0] - x, scene.corners[j, 1] - y
        offset, slope = u * (ay - y) - v * (ax - x), u * dy - v * dx
        if slope == 0.0:
            if offset < 0.0:
                return count
        elif slope > 0.0:
            s_min = max(s_min, -offset / slope)
        else:
            s_max = min(s_max, -offset / slope)
    if s_min >= s_max:
        return count
    for k in range(2):
        s = s_min if k == 0 else s_max
        gap = az + s * dz - radius
        if gap > margin or gap < -radius:
            continue
        x, y, z = to_world(frame, p, ax + s * dx, ay + s * dy, 0.0)
        before = count
        count = add_contact(
            contacts, count, scene.patch_index[p, PATCH_BODY], -1, p, scene.patch_index[p, PATCH_LINK], -1,
            (p << 24) + (1 << 23) + (b << 8) + k, x, y, z, gap, scene.friction[p, len(scene.surface) + b],
        )  # fmt: skip
        if count > before:
            set_axes(contacts, before, -frame[p, 2], -frame[p, 5], -frame[p, 8])
    return count


@jit_inline_exact
def bump_on_surface(scene, surface, s, pose, body, i, margin, contacts, count):
    """Add the contact of bump i of a body with surface s."""
    bump, radius = scene.bump, scene.bump[i, BUMP_RADIUS]
    nx, ny, nz = surface[s, 2], surface[s, 5], surface[s, 8]
    x, y, z = to_world(pose, body, bump[i, BUMP_CENTRE], bump[i, BUMP_CENTRE + 1], bump[i, BUMP_CENTRE + 2])
    if scene.bump_index[i, BUMP_KIND] == RIM:
        # the lowest point of the circle, if it has one
        ax, ay, az = to_world(pose, body, bump[i, BUMP_AXIS], bump[i, BUMP_AXIS + 1], bump[i, BUMP_AXIS + 2])
        ax, ay, az = ax - pose[body, 9], ay - pose[body, 10], az - pose[body, 11]
        along = nx * ax + ny * ay + nz * az
        u, v, w = along * ax - nx, along * ay - ny, along * az - nz
        size = math.sqrt(u * u + v * v + w * w)
        if size < 1e-6:
            return count
        scale = radius / size
        x, y, z = x + scale * u, y + scale * v, z + scale * w
        radius = 0.0
    px, py, height = to_local(surface, s, x, y, z)
    first, size = scene.surface_index[s, FIRST], scene.surface_index[s, COUNT]
    thickness = scene.surface[s, THICKNESS]
    if is_inside(scene.corners, first, size, px, py):
        gap = height - radius
        if gap > margin or height < -max_depth(scene, s):
            return count
        qx, qy, qz = px, py, 0.0
        if height < 0.0:
            ex, ey = nearest_on_border(scene.corners, first, size, px, py)
            distance = math.hypot(ex - px, ey - py)
            if 0.0 < distance < -height:  # the side is nearer than the top: the point came through it
                u, v = (ex - px) / distance, (ey - py) / distance
                nx, ny, nz = (
                    surface[s, 0] * u + surface[s, 1] * v,
                    surface[s, 3] * u + surface[s, 4] * v,
                    surface[s, 6] * u + surface[s, 7] * v,
                )
                gap, qx, qy, qz = -distance - radius, ex, ey, height
    else:
        if radius == 0.0:
            return count
        qx, qy = nearest_on_border(scene.corners, first, size, px, py)
        qz = min(max(height, -thickness), 0.0)
        u, v, w = px - qx, py - qy, height - qz
        distance = math.sqrt(u * u + v * v + w * w)
        gap = distance - radius
        if gap > margin:
            return count
        u, v, w = u / distance, v / distance, w / distance
        nx = surface[s, 0] * u + surface[s, 1] * v + surface[s, 2] * w
        ny = surface[s, 3] * u + surface[s, 4] * v + surface[s, 5] * w
        nz = surface[s, 6] * u + surface[s, 7] * v + surface[s, 8] * w
    x, y, z = to_world(surface, s, qx, qy, qz)
    before, patch = count, scene.bump_index[i, BUMP_PATCH]
    friction = min(scene.surface[s, SURFACE_FRICTION], bump[i, BUMP_FRICTION])
    if patch >= 0:
        friction = scene.friction[patch, s]
    count = add_contact(
        contacts, count, body, scene.surface_index[s, OWNER], patch, scene.bump_index[i, BUMP_LINK],
        scene.surface_index[s, OWNER_LINK], (1 << 40) + (i << 24) + (s << 8), x, y, z, gap, friction,
    )  # fmt: skip
    if count > before:
        set_axes(contacts, before, nx, ny, nz)
    return count


@jit
def distance_to_bar(bar, b, x, y, z):
    """Return the signed distance of a point from a bar, a cylinder with flat ends, and the normal (three scalars)."""
    dx, dy, dz = bar[b, BAR_END] - bar[b, 0], bar[b, BAR_END + 1] - bar[b, 1], bar[b, BAR_END + 2] - bar[b, 2]
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    dx, dy, dz = dx / length, dy / length, dz / length
    u, v, w = x - bar[b, 0], y - bar[b, 1], z - bar[b, 2]
    along = u * dx + v * dy + w * dz
    u, v, w = u - along * dx, v - along * dy, w - along * dz
    radial = math.sqrt(u * u + v * v + w * w)
    beyond_end, beyond_side = max(along - length, -along), radial - bar[b, BAR_RADIUS]
    if beyond_end > 0.0 and beyond_side > 0.0:  # an edge of the bar is nearest
        distance = math.sqrt(beyond_end * beyond_end + beyond_side * beyond_side)
        axial, outward = beyond_end / distance, beyond_side / distance
    elif beyond_end > beyond_side:
        distance, axial, outward = beyond_end, 1.0, 0.0
    else:
        distance, axial, outward = beyond_side, 0.0, 1.0
    axial = axial if along > 0.5 * length else -axial
    outward = outward / radial if radial > 0.0 else 0.0
    return (
        distance,
        axial * dx + outward * u,
        axial * dy + outward * v,
        axial * dz + outward * w,
    )


@jit_inline_exact
def bump_on_bar(scene, b, pose, body, i, margin, contacts, count):
    """Add the contact of a ball or corner with a bar."""
    if scene.bump_index[i, BUMP_KIND] == RIM:
        return count
    bump, bar = scene.bump, scene.bar
    x, y, z = to_world(pose, body, bump[i, BUMP_CENTRE], bump[i, BUMP_CENTRE + 1], bump[i, BUMP_CENTRE + 2])
    distance, u, v, w = distance_to_bar(bar, b, x, y, z)
    gap = distance - bump[i, BUMP_RADIUS]
    if gap > margin or (u == 0.0 and v == 0.0 and w == 0.0):  # on the axis no normal is unique
        return count
    before = count
    count = add_contact(
        contacts, count, body, -1, -1, scene.bump_index[i, BUMP_LINK], -1, (1 << 40) + (i << 24) + (1 << 23) + (b << 8),
        x - distance * u, y - distance * v, z - distance * w, gap, min(bar[b, BAR_FRICTION], bump[i, BUMP_FRICTION]),
    )  # fmt: skip
    if count > before:
        set_axes(contacts, before, u, v, w)
    return count
