"""Contacts of pairs of convex shapes: crossing edges, and collisions of links, objects and obstacles.

They add to the contacts of patches and corners (`detect`). A pair has one contact, at the nearest points or, if the
shapes overlap, at the deepest ones.
"""

import math

from mcplan.core.algebra.polygon import compose
from mcplan.core.contact.detect import add_contact, set_axes
from mcplan.core.contact.model import BODY_A, BODY_B, BODY_OF_A, BODY_OF_B, PAIR_A, PAIR_B, SHAPE_FIRST, SHAPE_STOP
from mcplan.core.distance.pair import DISTANCE, NORMAL, POINT_B, pair_distance
from mcplan.core.distance.shape import BALL, BODY
from mcplan.core.jit import jit

LOOKAHEAD = 0.05
"""m: distances are computed up to this far beyond the contact margin, so that a pair need not be tested at each
step."""


@jit
def place_shape(scene, pose, i, shape):
    """Write the pose of a shape in the world, unless it belongs to the world and is fixed."""
    body = scene.shapes.index[i, BODY]
    if body >= 0:
        compose(pose, body, scene.shapes.offset, i, shape, i)


@jit
def add_meeting(scene, near, a, b, key, friction, touch, count):
    """Add the contact of shape a on shape b at their nearest points; return the new count."""
    before, bodies, link = count, scene.shapes.index, scene.shape_link
    count = add_contact(
        touch, count, bodies[a, BODY], bodies[b, BODY], -1, link[a], link[b], key, near[POINT_B], near[POINT_B + 1],
        near[POINT_B + 2], near[DISTANCE], friction,
    )  # fmt: skip
    if count > before:
        set_axes(touch, before, near[NORMAL], near[NORMAL + 1], near[NORMAL + 2])
    return count


@jit
def meet_support(scene, scratch, body, b, friction, margin, touch, count):
    """Add the contacts of a body's shapes with shape b of the world, a slab or a bar; return the new count."""
    shape, near, clear, gone = scratch.shape, scratch.nearest, scratch.clear, scratch.travel[body]
    column = b - len(scene.shape_link) + clear.shape[1]
    for a in range(scene.body_index[body, SHAPE_FIRST], scene.body_index[body, SHAPE_STOP]):
        if clear[a, column] - gone > margin:
            continue
        place_shape(scene, scratch.pose, a, shape)
        distance = margin + LOOKAHEAD
        if pair_distance(scene.shapes, a, b, shape, margin + LOOKAHEAD, scratch.distance, near):
            distance = near[DISTANCE]
            if distance <= margin:
                count = add_meeting(scene, near, a, b, (1 << 42) + (a << 16) + b, friction, touch, count)
        clear[a, column] = distance + gone
    return count


@jit
def touching(touch, count, a, b):
    """Return whether bodies a and b already have a contact."""
    for c in range(count):
        i, j = touch.index[c, BODY_A], touch.index[c, BODY_B]
        if (i == a and j == b) or (i == b and j == a):
            return True
    return False


@jit
def update_travel(q, object_q, dt, scratch):
    """Add to the travel of the bodies; reset known distances if the state is not that after the last step."""
    for i in range(len(scratch.travel)):
        scratch.travel[i] += dt * scratch.speed[i]
    same = True
    for k in range(len(q)):
        same = same and q[k] == scratch.left_q[k]
    for o in range(len(object_q)):
        for k in range(7):
            same = same and object_q[o, k] == scratch.left_object_q[o, k]
    if not same:
        scratch.apart[:] = -math.inf
        scratch.clear[:, :] = -math.inf
        scratch.quiet[0] = -math.inf


@jit
def meet_pairs(scene, scratch, dt, touch, count):
    """Add the contacts of the pairs of shapes that may meet; return the new count.

    A pair is tested again only when its shapes may have come near since the last test: in a step no point moves farther
    than its speed allows. ``apart`` has a pair's distance plus the travel of both bodies at the last test.
    """
    speed, travel, quiet, apart = scratch.speed, scratch.travel, scratch.quiet, scratch.apart
    fastest = 0.0
    for i in range(len(speed)):
        fastest = max(fastest, speed[i])
    quiet[0] -= 2.0 * dt * fastest
    if quiet[0] > 1e-3 + 4.0 * dt * fastest:
        return count
    quiet[0] = math.inf
    found = count
    for k in range(len(scene.pair)):
        i, j = scene.pair[k, BODY_OF_A], scene.pair[k, BODY_OF_B]
        margin = 1e-3 + 2.0 * dt * (speed[i] + (speed[j] if j >= 0 else 0.0))
        gone = travel[i] + (travel[j] if j >= 0 else 0.0)
        if apart[k] - gone <= margin:
            distance, count = test_pair(scene, scratch, k, i, j, margin, found, touch, count)
            apart[k] = distance + gone
        quiet[0] = min(quiet[0], apart[k] - gone)
    return count


@jit
def test_pair(scene, scratch, k, i, j, margin, found, touch, count):
    """Add the contact of a pair if it has one; return a lower bound of its distance, and the new count."""
    shape, size, near = scratch.shape, scene.shapes.size, scratch.nearest
    a, b = scene.pair[k, PAIR_A], scene.pair[k, PAIR_B]
    place_shape(scene, scratch.pose, a, shape)
    place_shape(scene, scratch.pose, b, shape)
    x, y, z = shape[a, 9] - shape[b, 9], shape[a, 10] - shape[b, 10], shape[a, 11] - shape[b, 11]
    distance = math.sqrt(x * x + y * y + z * z) - size[a, BALL] - size[b, BALL]
    if distance > margin + LOOKAHEAD:
        return distance, count
    if not pair_distance(scene.shapes, a, b, shape, margin + LOOKAHEAD, scratch.distance, near):
        return margin + LOOKAHEAD, count
    distance = near[DISTANCE]
    if distance <= margin and not (j >= 0 and touching(touch, found, i, j)):
        count = add_meeting(scene, near, a, b, (1 << 44) + k, scene.pair_friction[k], touch, count)
    return distance, count
