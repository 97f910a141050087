"""Contacts of pairs of convex shapes: crossing edges, and collisions of links, objects and obstacles.

They add to the contacts of patches and corners (`detect`). A pair has one contact, at the nearest points or, if the
shapes overlap, at the deepest ones.
"""

import math

from mcplan.core.algebra.pose import compose
from mcplan.core.contact.detect import DETECTION_MARGIN_M, add_contact, set_axes
from mcplan.core.contact.model import BODY_A, BODY_B, BODY_OF_A, BODY_OF_B, PAIR_A, PAIR_B, SHAPE_FIRST, SHAPE_STOP
from mcplan.core.distance.pair import DISTANCE, NORMAL, POINT_B, pair_distance
from mcplan.core.distance.shape import BODY, BOUNDING_RADIUS
from mcplan.core.jit import jit, jit_inline_exact

LOOKAHEAD = 0.05
"""m: distances up to the contact margin plus this are computed, so that a pair need not be tested at each step."""


@jit
def update_shape_pose(scene, pose, i, shape):
    """Write the pose of a shape in the world, unless it is fixed in the world."""
    body = scene.shapes.index[i, BODY]
    if body >= 0:
        compose(pose, body, scene.shapes.offset, i, shape, i)


@jit
def add_nearest_contact(scene, nearest, a, b, key, friction, contacts, count):
    """Add the contact of shape a on shape b at their nearest points; return the new count."""
    c, bodies, link = count, scene.shapes.index, scene.shape_link
    count = add_contact(
        contacts, count, bodies[a, BODY], bodies[b, BODY], -1, link[a], link[b], key,
        nearest[POINT_B], nearest[POINT_B + 1], nearest[POINT_B + 2], nearest[DISTANCE], friction,
    )  # fmt: skip
    if count > c:
        set_axes(contacts, c, nearest[NORMAL], nearest[NORMAL + 1], nearest[NORMAL + 2])
    return count


@jit
def add_support_contacts(scene, scratch, body, b, friction, margin, contacts, count):
    """Add the contacts of a body's shapes with shape b of the world, a slab or a bar; return the new count."""
    shape, nearest, clearance, travel = scratch.shape, scratch.nearest, scratch.support_clearance, scratch.travel[body]
    column = b - len(scene.shape_link) + clearance.shape[1]
    for a in range(scene.body_index[body, SHAPE_FIRST], scene.body_index[body, SHAPE_STOP]):
        if clearance[a, column] - travel > margin:
            continue
        update_shape_pose(scene, scratch.pose, a, shape)
        distance = margin + LOOKAHEAD
        if pair_distance(scene.shapes, a, b, shape, margin + LOOKAHEAD, scratch.distance, nearest):
            distance = nearest[DISTANCE]
            if distance <= margin:
                count = add_nearest_contact(scene, nearest, a, b, (1 << 42) + (a << 16) + b, friction, contacts, count)
        clearance[a, column] = distance + travel
    return count


@jit
def have_contact(contacts, count, a, b):
    """Return whether bodies a and b already have a contact."""
    for c in range(count):
        i, j = contacts.index[c, BODY_A], contacts.index[c, BODY_B]
        if (i == a and j == b) or (i == b and j == a):
            return True
    return False


@jit
def update_travel(q, object_q, dt, scratch):
    """Add the motion of a step to the travel of the bodies; forget distances if the caller has changed the state."""
    for i in range(len(scratch.travel)):
        scratch.travel[i] += dt * scratch.speed[i]
    unchanged = True
    for k in range(len(q)):
        unchanged = unchanged and q[k] == scratch.last_q[k]
    for o in range(len(object_q)):
        for k in range(7):
            unchanged = unchanged and object_q[o, k] == scratch.last_object_q[o, k]
    if not unchanged:
        scratch.pair_clearance[:] = -math.inf
        scratch.support_clearance[:, :] = -math.inf
        scratch.world_clearance[:] = -math.inf
        scratch.min_clearance[0] = -math.inf


@jit_inline_exact
def add_pair_contacts(scene, scratch, dt, contacts, count):
    """Add the contacts of the pairs of shapes that may meet; return the new count.

    A pair is tested again only when its shapes may have come near since the last test. ``pair_clearance`` is its
    distance plus the travel of both bodies at that test: less their present travel it is a lower bound.
    """
    speed, travel = scratch.speed, scratch.travel
    min_clearance, clearance = scratch.min_clearance, scratch.pair_clearance
    max_speed = 0.0
    for i in range(len(speed)):
        max_speed = max(max_speed, speed[i])
    min_clearance[0] -= 2.0 * dt * max_speed
    if min_clearance[0] > DETECTION_MARGIN_M + 4.0 * dt * max_speed:
        return count
    min_clearance[0] = math.inf
    earlier = count  # contacts of patches and bumps; bodies with one of them need none of their shapes
    for k in range(len(scene.pair)):
        i, j = scene.pair[k, BODY_OF_A], scene.pair[k, BODY_OF_B]
        margin = DETECTION_MARGIN_M + 2.0 * dt * (speed[i] + (speed[j] if j >= 0 else 0.0))
        pair_travel = travel[i] + (travel[j] if j >= 0 else 0.0)
        if clearance[k] - pair_travel <= margin:
            distance, count = check_pair(scene, scratch, k, i, j, margin, earlier, contacts, count)
            clearance[k] = distance + pair_travel
        min_clearance[0] = min(min_clearance[0], clearance[k] - pair_travel)
    return count


@jit
def check_pair(scene, scratch, k, i, j, margin, earlier, contacts, count):
    """Add the contact of a pair if it has one; return a lower bound of its distance, and the new count."""
    shape, size, nearest = scratch.shape, scene.shapes.size, scratch.nearest
    a, b = scene.pair[k, PAIR_A], scene.pair[k, PAIR_B]
    update_shape_pose(scene, scratch.pose, a, shape)
    update_shape_pose(scene, scratch.pose, b, shape)
    x, y, z = shape[a, 9] - shape[b, 9], shape[a, 10] - shape[b, 10], shape[a, 11] - shape[b, 11]
    distance = math.sqrt(x * x + y * y + z * z) - size[a, BOUNDING_RADIUS] - size[b, BOUNDING_RADIUS]
    if distance > margin + LOOKAHEAD:
        return distance, count
    if not pair_distance(scene.shapes, a, b, shape, margin + LOOKAHEAD, scratch.distance, nearest):
        return margin + LOOKAHEAD, count
    distance = nearest[DISTANCE]
    if distance <= margin and not (j >= 0 and have_contact(contacts, earlier, i, j)):
        count = add_nearest_contact(scene, nearest, a, b, (1 << 44) + k, scene.pair_friction[k], contacts, count)
    return distance, count
