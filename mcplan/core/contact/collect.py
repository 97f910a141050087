"""Contact detection of a step: grasps, patches and bumps on surfaces and bars, pairs of shapes.

A bump is a corner, ball or rim of a link's shape that can touch a plane first (`model`).

If a patch of a link touches a surface, no other part of that link is tested against it; if a corner touches, edges are
not tested.
"""

from mcplan.core.algebra.pose import compose, to_world
from mcplan.core.contact.detect import (
    DETECTION_MARGIN_M,
    bump_on_bar,
    bump_on_surface,
    distance_to_world,
    is_near_bar,
    is_near_slab,
    patch_on_bar,
    patch_on_surface,
)
from mcplan.core.contact.model import (
    ANCHOR,
    AXES,
    BAR_FRICTION,
    BODY_A,
    BODY_B,
    BOUNDED_BY_BALL,
    BUMP_FIRST,
    BUMP_STOP,
    CAPACITY,
    ERROR,
    FRICTION,
    IS_ANGULAR,
    IS_FREE,
    IS_HELD,
    KEY,
    KIND,
    LINK,
    MAX_WRENCH,
    OWNER,
    PATCH,
    PATCH_BODY,
    PATCH_LINK,
    POINT,
    SLAB,
    SUPPORT_LINK,
    SURFACE_FRICTION,
)
from mcplan.core.contact.pairs import add_pair_contacts, add_support_contacts
from mcplan.core.jit import jit, jit_inline_exact


@jit_inline_exact
def collect(scene, grasp, dt, scratch, contacts):
    """Fill the table of contacts; return their number.

    Parameters
    ----------
    scene : ContactScene.
    grasp : (P, 21) grasps.
    dt : s.
    scratch : ContactScratch; poses and speeds of the bodies in, poses of surfaces and patches out.
    contacts : ContactPoints out.
    """
    count = 0
    contacts.overflow[0] = 0
    pose, surface, frame, speed, clip = scratch.pose, scratch.surface, scratch.frame, scratch.speed, scratch.clip
    travel, clearance = scratch.travel, scratch.world_clearance
    surfaces_move = False
    for s in range(len(scene.surface)):
        owner = scene.surface_index[s, OWNER]
        if owner >= 0:
            surfaces_move = True
            compose(pose, owner, scene.surface, s, surface, s)
        else:
            for c in range(12):
                surface[s, c] = scene.surface[s, c]
    for p in range(len(scene.patch)):
        body = scene.patch_index[p, PATCH_BODY]
        compose(pose, body, scene.patch, p, frame, p)
        if grasp[p, IS_HELD] > 0.0:
            count = add_grasp_rows(scene, grasp, p, body, frame, contacts, count)
    bars = len(scene.shape_link) - len(scene.bar)
    for body in range(len(pose)):
        is_far = clearance[body] - travel[body] > DETECTION_MARGIN_M + 2.0 * dt * speed[body]
        if is_far and not surfaces_move:
            continue
        x, y, z = to_world(pose, body, scene.body[body, 0], scene.body[body, 1], scene.body[body, 2])
        radius = scene.body[body, 3]
        is_near = False
        for s in range(len(surface)):
            owner = scene.surface_index[s, OWNER]
            margin = DETECTION_MARGIN_M + 2.0 * dt * (speed[body] + (speed[owner] if owner >= 0 else 0.0))
            if (is_far and owner < 0) or owner == body:
                continue
            if not is_near_slab(scene, surface, s, x, y, z, radius, margin):
                continue
            is_near = True
            before = count
            for p in range(len(frame)):
                if scene.patch_index[p, PATCH_BODY] == body and not grasp[p, IS_HELD] > 0.0:
                    count = patch_on_surface(scene, surface, s, frame, p, margin, clip, contacts, count)
            if count == before:
                for i in range(scene.body_index[body, BUMP_FIRST], scene.body_index[body, BUMP_STOP]):
                    count = bump_on_surface(scene, surface, s, pose, body, i, margin, contacts, count)
            slab = scene.surface_index[s, SLAB]
            if count == before and slab >= 0:
                friction = scene.surface[s, SURFACE_FRICTION]
                count = add_support_contacts(scene, scratch, body, slab, friction, margin, contacts, count)
        if is_far:
            continue
        margin = DETECTION_MARGIN_M + 2.0 * dt * speed[body]
        for b in range(len(scene.bar)):
            if not is_near_bar(scene, b, x, y, z, radius + margin):
                continue
            is_near = True
            before = count
            for p in range(len(frame)):
                if scene.patch_index[p, PATCH_BODY] == body:
                    count = patch_on_bar(scene, b, frame, p, margin, contacts, count)
            if has_grasp(scene, grasp, body):
                continue
            for i in range(scene.body_index[body, BUMP_FIRST], scene.body_index[body, BUMP_STOP]):
                count = bump_on_bar(scene, b, pose, body, i, margin, contacts, count)
            if count == before:
                count = add_support_contacts(
                    scene, scratch, body, bars + b, scene.bar[b, BAR_FRICTION], margin, contacts, count
                )
        if not is_near:
            clearance[body] = distance_to_world(scene, surface, x, y, z, radius) + travel[body]
    return add_pair_contacts(scene, scratch, dt, contacts, count)


@jit
def has_grasp(scene, grasp, body):
    """Return whether a patch of the body holds a bar."""
    holds = False
    for p in range(len(grasp)):
        holds = holds or (scene.patch_index[p, PATCH_BODY] == body and grasp[p, IS_HELD] > 0.0)
    return holds


@jit
def add_grasp_rows(scene, grasp, p, body, frame, contacts, count):
    """Add the two contacts of a grasp, for position and for orientation, in patch axes at the patch origin.

    Displacements are relative to the pose (R0, p0) at which the hand closed: ``R' (p - p0)``, and sine times axis of
    the rotation ``R0' R``.
    """
    if count + 2 > CAPACITY:
        contacts.overflow[0] += 2
        return count
    index, value = contacts.index, contacts.value
    for angular in range(2):
        c = count + angular
        index[c, KIND] = BOUNDED_BY_BALL
        index[c, IS_ANGULAR] = angular
        index[c, BODY_A] = body
        index[c, BODY_B] = -1
        index[c, PATCH] = p
        index[c, LINK] = scene.patch_index[p, PATCH_LINK]
        index[c, SUPPORT_LINK] = -1
        index[c, KEY] = (1 << 50) + (p << 8) + angular
        value[c, FRICTION] = grasp[p, MAX_WRENCH + angular]
        for r in range(3):
            value[c, POINT + r] = frame[p, 9 + r]
            for k in range(3):
                value[c, AXES + 3 * r + k] = frame[p, 3 * k + r]
    for r in range(3):
        error = 0.0
        for k in range(3):
            error += frame[p, 3 * k + r] * (frame[p, 9 + k] - grasp[p, ANCHOR + 9 + k])
        value[count, ERROR + r] = error
        # sine times axis of R0' R is angular of its entries (j, i) - (i, j); its components are the same in both frames
        i, j = (r + 1) % 3, (r + 2) % 3
        sine = 0.0
        for k in range(3):
            sine += (
                grasp[p, ANCHOR + 3 * k + j] * frame[p, 3 * k + i] - grasp[p, ANCHOR + 3 * k + i] * frame[p, 3 * k + j]
            )
        value[count + 1, ERROR + r] = 0.5 * sine
    for r in range(3):  # directions that the grasp leaves free have no row
        for angular in range(2):
            if grasp[p, IS_FREE + 3 * angular + r] > 0.0:
                value[count + angular, ERROR + r] = 0.0
                for k in range(3):
                    value[count + angular, AXES + 3 * r + k] = 0.0
    return count + 2
