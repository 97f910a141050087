"""Collect the contacts of a step, and how the velocities move them."""

import math

from mcplan.core.contact_detect import bump_on_bar, bump_on_surface, is_over, patch_on_bar, patch_on_surface
from mcplan.core.contact_geometry import compose, outward
from mcplan.core.contact_model import (
    ANCHOR,
    AXES,
    BALLED,
    BODY_A,
    BODY_B,
    BOUND,
    ERROR,
    FREE,
    FRICTION,
    HELD,
    KEY,
    KIND,
    LINK,
    OWNER,
    PATCH,
    PATCH_BODY,
    PATCH_LINK,
    POINT,
    SLOTS,
    SPACE,
    TURNING,
)
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.tree import DEGREE, PARENT, POSE, SCREW, V


@jit
def collect(scene, robot_bodies, grasp, speed, dt, pose, surface, frame, clip, touch):
    """Fill the table of contacts; returns their number.

    Parameters
    ----------
    robot_bodies : bodies of the robot; the others are free objects
    grasp : (P, 21) holds
    speed : (bodies,) how fast any point of a body may move, m/s
    pose : (bodies, 12) of the bodies in the world
    surface : (S, 12), frame : (P, 12) out: poses of surfaces and patches in the world
    clip : (2, ?, 3) scratch
    """
    count = 0
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
    for body in range(len(pose)):
        x, y, z = outward(pose, body, scene.body[body, 0], scene.body[body, 1], scene.body[body, 2])
        radius, margin = scene.body[body, 3], 1e-3 + 2.0 * dt * speed[body]
        for s in range(len(surface)):
            if scene.surface_index[s, OWNER] == body or not is_over(scene, surface, s, x, y, z, radius, margin):
                continue
            before = count
            for p in range(len(frame)):
                if scene.patch_index[p, PATCH_BODY] == body and not grasp[p, HELD] > 0.0:
                    count = patch_on_surface(scene, surface, s, frame, p, margin, clip, touch, count)
            if count > before:
                continue  # the link whose patch rests on a surface touches it with that patch only
            for i in range(scene.body_index[body, 0], scene.body_index[body, 1]):
                count = bump_on_surface(scene, surface, s, pose, body, i, margin, touch, count)
        for b in range(len(scene.bar)):
            for p in range(len(frame)):
                if scene.patch_index[p, PATCH_BODY] == body:
                    count = patch_on_bar(scene, b, frame, p, margin, touch, count)
            if not grasps_with(scene, grasp, body):
                for i in range(scene.body_index[body, 0], scene.body_index[body, 1]):
                    count = bump_on_bar(scene, b, pose, body, i, margin, touch, count)
    return count


@jit
def grasps_with(scene, grasp, body):
    """Whether a patch of the body holds something."""
    holds = False
    for p in range(len(grasp)):
        holds = holds or (scene.patch_index[p, PATCH_BODY] == body and grasp[p, HELD] > 0.0)
    return holds


@jit
def hold(scene, grasp, p, body, frame, touch, count):
    """Add the two contacts of a hold, of position and of orientation, in patch axes at the patch origin.

    Displacements are from the pose at which the hand closed: ``R' (p - p0)`` and the vector of ``R0' R`` (its sine).
    """
    if count + 2 > SPACE:
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


@jit_algebra
def add_motion(tree, scene, work, pose, robot_bodies, c, body, sign, touch):
    """Add the velocity of a body's point along the axes of contact c to its rows."""
    value, J, where = touch.value, touch.J, touch.where
    origin = 0 if body < robot_bodies else body
    rx = value[c, POINT] - pose[origin, 9]
    ry = value[c, POINT + 1] - pose[origin, 10]
    rz = value[c, POINT + 2] - pose[origin, 11]
    base = 0
    while where[c, base] != scene.chain[body, 0]:
        base += 1
    turning = touch.index[c, TURNING] == 1
    for r in range(3):
        x, y, z = sign * value[c, AXES + 3 * r], sign * value[c, AXES + 3 * r + 1], sign * value[c, AXES + 3 * r + 2]
        if turning:
            u, v, w = x, y, z
            x, y, z = 0.0, 0.0, 0.0
        else:
            u, v, w = ry * z - rz * y, rz * x - rx * z, rx * y - ry * x
        J[c, r, base] += x
        J[c, r, base + 1] += y
        J[c, r, base + 2] += z
        J[c, r, base + 3] += u
        J[c, r, base + 4] += v
        J[c, r, base + 5] += w
        if body >= robot_bodies:
            continue
        slot = touch.index[c, SLOTS] - 1
        i = body
        while i > 0:
            d, column = tree.topology[i, DEGREE], tree.topology[i, V]
            while where[c, slot] != column:
                slot -= 1
                if slot < 0:  # joints that mimic others come in no order
                    slot = touch.index[c, SLOTS] - 1
            J[c, r, slot] += (
                x * work[d, SCREW]
                + y * work[d, SCREW + 1]
                + z * work[d, SCREW + 2]
                + u * work[d, SCREW + 3]
                + v * work[d, SCREW + 4]
                + w * work[d, SCREW + 5]
            )
            i = tree.topology[i, PARENT]


@jit
def fill_rows(tree, scene, work, pose, robot_bodies, count, touch):
    """Write which velocities move each contact, and how; returns whether some contact couples two bodies."""
    coupled = False
    for c in range(count):
        a, b = touch.index[c, BODY_A], touch.index[c, BODY_B]
        n = scene.body_index[a, 2]
        if b < 0:
            for k in range(n):
                touch.where[c, k] = scene.chain[a, k]
            slots = n
        else:
            coupled = True
            m, i, j, slots = scene.body_index[b, 2], 0, 0, 0
            while i < n or j < m:
                first = scene.chain[a, i] if i < n else math.inf
                second = scene.chain[b, j] if j < m else math.inf
                touch.where[c, slots] = int(min(first, second))
                i += 1 if first <= second else 0
                j += 1 if second <= first else 0
                slots += 1
        touch.index[c, SLOTS] = slots
        for r in range(3):
            for k in range(slots):
                touch.J[c, r, k] = 0.0
        add_motion(tree, scene, work, pose, robot_bodies, c, a, 1.0, touch)
        if b >= 0:
            add_motion(tree, scene, work, pose, robot_bodies, c, b, -1.0, touch)
    return coupled


@jit
def fill_poses(q, object_q, work, robot_bodies, pose):
    """Write the pose of every body in the world."""
    for i in range(robot_bodies):
        for c in range(9):
            pose[i, c] = work[i, POSE + c]
        for c in range(3):
            pose[i, 9 + c] = q[c] + work[i, POSE + 9 + c]
    for o in range(len(object_q)):
        w, x, y, z = object_q[o, 3], object_q[o, 4], object_q[o, 5], object_q[o, 6]
        i = robot_bodies + o
        pose[i, 0] = 1.0 - 2.0 * (y * y + z * z)
        pose[i, 1] = 2.0 * (x * y - w * z)
        pose[i, 2] = 2.0 * (x * z + w * y)
        pose[i, 3] = 2.0 * (x * y + w * z)
        pose[i, 4] = 1.0 - 2.0 * (x * x + z * z)
        pose[i, 5] = 2.0 * (y * z - w * x)
        pose[i, 6] = 2.0 * (x * z - w * y)
        pose[i, 7] = 2.0 * (y * z + w * x)
        pose[i, 8] = 1.0 - 2.0 * (x * x + y * y)
        for c in range(3):
            pose[i, 9 + c] = object_q[o, c]
