"""Contact detection of a step: grasps, patches and bumps on surfaces and bars, pairs of shapes.

If a patch of a link touches a surface, no other part of that link is tested against it; if a corner touches, edges are
not tested.
"""

from mcplan.core.algebra.polygon import compose, outward
from mcplan.core.contact.detect import (
    bump_on_bar,
    bump_on_surface,
    is_near_bar,
    is_over,
    patch_on_bar,
    patch_on_surface,
)
from mcplan.core.contact.model import (
    ANCHOR,
    AXES,
    BALLED,
    BAR_FRICTION,
    BODY_A,
    BODY_B,
    BOUND,
    BUMP_FIRST,
    BUMP_STOP,
    ERROR,
    FREE,
    FRICTION,
    HELD,
    KEY,
    KIND,
    LINK,
    OTHER,
    OWNER,
    PATCH,
    PATCH_BODY,
    PATCH_LINK,
    POINT,
    SLAB,
    SPACE,
    SURFACE_FRICTION,
    TURNING,
)
from mcplan.core.contact.pairs import meet_pairs, meet_support
from mcplan.core.jit import jit


@jit
def collect(scene, grasp, dt, scratch, touch):
    """Fill the table of contacts; return their number.

    Parameters
    ----------
    grasp : (P, 21) grasps
    scratch : poses and speeds of the bodies in; poses of surfaces and patches out
    """
    count = 0
    touch.lost[0] = 0
    pose, surface, frame, speed, clip = scratch.pose, scratch.surface, scratch.frame, scratch.speed, scratch.clip
    for s in range(len(scene.surface)):
        owner = scene.surface_index[s, OWNER]
        if owner >= 0:
            compose(pose, owner, scene.surface, s, surface, s)
        else:
            for c in range(12):
                surface[s, c] = scene.surface[s, c]
    for p in range(len(scene.patch)):
        body = scene.patch_index[p, PATCH_BODY]
        compose(pose, body, scene.patch, p, frame, p)
        if grasp[p, HELD] > 0.0:
            count = hold(scene, grasp, p, body, frame, touch, count)
    bars = len(scene.shape_link) - len(scene.bar)
    for body in range(len(pose)):
        x, y, z = outward(pose, body, scene.body[body, 0], scene.body[body, 1], scene.body[body, 2])
        radius = scene.body[body, 3]
        for s in range(len(surface)):
            owner = scene.surface_index[s, OWNER]
            margin = 1e-3 + 2.0 * dt * (speed[body] + (speed[owner] if owner >= 0 else 0.0))
            if owner == body or not is_over(scene, surface, s, x, y, z, radius, margin):
                continue
            before = count
            for p in range(len(frame)):
                if scene.patch_index[p, PATCH_BODY] == body and not grasp[p, HELD] > 0.0:
                    count = patch_on_surface(scene, surface, s, frame, p, margin, clip, touch, count)
            if count == before:
                for i in range(scene.body_index[body, BUMP_FIRST], scene.body_index[body, BUMP_STOP]):
                    count = bump_on_surface(scene, surface, s, pose, body, i, margin, touch, count)
            slab = scene.surface_index[s, SLAB]
            if count == before and slab >= 0:
                friction = scene.surface[s, SURFACE_FRICTION]
                count = meet_support(scene, scratch, body, slab, friction, margin, touch, count)
        margin = 1e-3 + 2.0 * dt * speed[body]
        for b in range(len(scene.bar)):
            if not is_near_bar(scene, b, x, y, z, radius + margin):
                continue
            before = count
            for p in range(len(frame)):
                if scene.patch_index[p, PATCH_BODY] == body:
                    count = patch_on_bar(scene, b, frame, p, margin, touch, count)
            if grasps_with(scene, grasp, body):
                continue
            for i in range(scene.body_index[body, BUMP_FIRST], scene.body_index[body, BUMP_STOP]):
                count = bump_on_bar(scene, b, pose, body, i, margin, touch, count)
            if count == before:
                count = meet_support(scene, scratch, body, bars + b, scene.bar[b, BAR_FRICTION], margin, touch, count)
    return meet_pairs(scene, scratch, dt, touch, count)


@jit
def grasps_with(scene, grasp, body):
    """Return whether a patch of the body holds something."""
    holds = False
    for p in range(len(grasp)):
        holds = holds or (scene.patch_index[p, PATCH_BODY] == body and grasp[p, HELD] > 0.0)
    return holds


@jit
def hold(scene, grasp, p, body, frame, touch, count):
    """Add the two contacts of a grasp, for position and for orientation, in patch axes at the patch origin.

    Displacements are relative to the pose at which the hand closed: ``R' (p - p0)``, and sine times axis of ``R0' R``.
    """
    if count + 2 > SPACE:
        touch.lost[0] += 2
        return count
    index, value = touch.index, touch.value
    for half in range(2):
        c = count + half
        index[c, KIND] = BALLED
        index[c, TURNING] = half
        index[c, BODY_A] = body
        index[c, BODY_B] = -1
        index[c, PATCH] = p
        index[c, LINK] = scene.patch_index[p, PATCH_LINK]
        index[c, OTHER] = -1
        index[c, KEY] = (1 << 50) + (p << 8) + half
        value[c, FRICTION] = grasp[p, BOUND + half]
        for r in range(3):
            value[c, POINT + r] = frame[p, 9 + r]
            for k in range(3):
                value[c, AXES + 3 * r + k] = frame[p, 3 * k + r]
    for r in range(3):
        error = 0.0
        for k in range(3):
            error += frame[p, 3 * k + r] * (frame[p, 9 + k] - grasp[p, ANCHOR + 9 + k])
        value[count, ERROR + r] = error
        # entry (j, i) - (i, j) of R0' R: the rotation from the anchor to now, the same in both frames' axes
        i, j = (r + 1) % 3, (r + 2) % 3
        sine = 0.0
        for k in range(3):
            sine += (
                grasp[p, ANCHOR + 3 * k + j] * frame[p, 3 * k + i] - grasp[p, ANCHOR + 3 * k + i] * frame[p, 3 * k + j]
            )
        value[count + 1, ERROR + r] = 0.5 * sine
    for r in range(3):
        for half in range(2):
            if grasp[p, FREE + 3 * half + r] > 0.0:
                value[count + half, ERROR + r] = 0.0
                for k in range(3):
                    value[count + half, AXES + 3 * r + k] = 0.0
    return count + 2
