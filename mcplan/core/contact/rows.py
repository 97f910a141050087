"""Contact Jacobians of a step, and poses of the bodies."""

import math

from mcplan.core.contact.model import AXES, BODY_A, BODY_B, CHAIN, IS_ANGULAR, POINT, SLOTS
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.rigid_body.tree import DEGREE, PARENT, POSE, SCREW, V


@jit_algebra
def add_motion(tree, scene, work, pose, robot_bodies, c, body, sign, contacts):
    """Add the velocity of a body's point along the axes of contact c to its rows."""
    value, J, where = contacts.value, contacts.J, contacts.columns
    origin = 0 if body < robot_bodies else body
    rx = value[c, POINT] - pose[origin, 9]
    ry = value[c, POINT + 1] - pose[origin, 10]
    rz = value[c, POINT + 2] - pose[origin, 11]
    base = 0
    while where[c, base] != scene.chain[body, 0]:
        base += 1
    turning = contacts.index[c, IS_ANGULAR] == 1
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
        slot = contacts.index[c, SLOTS] - 1
        i = body
        while i > 0:
            d, column = tree.topology[i, DEGREE], tree.topology[i, V]
            while where[c, slot] != column:
                slot -= 1
                if slot < 0:  # the columns of mimic joints are not in order
                    slot = contacts.index[c, SLOTS] - 1
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
def fill_rows(tree, scene, work, pose, robot_bodies, count, contacts):
    """Write the sparse Jacobian of each contact; return whether some contact couples two bodies."""
    coupled = False
    for c in range(count):
        a, b = contacts.index[c, BODY_A], contacts.index[c, BODY_B]
        n = scene.body_index[a, CHAIN]
        if b < 0:
            for k in range(n):
                contacts.columns[c, k] = scene.chain[a, k]
            slots = n
        else:
            coupled = True
            m, i, j, slots = scene.body_index[b, CHAIN], 0, 0, 0
            while i < n or j < m:
                first = scene.chain[a, i] if i < n else math.inf
                second = scene.chain[b, j] if j < m else math.inf
                contacts.columns[c, slots] = int(min(first, second))
                i += 1 if first <= second else 0
                j += 1 if second <= first else 0
                slots += 1
        contacts.index[c, SLOTS] = slots
        for r in range(3):
            for k in range(slots):
                contacts.J[c, r, k] = 0.0
        add_motion(tree, scene, work, pose, robot_bodies, c, a, 1.0, contacts)
        if b >= 0:
            add_motion(tree, scene, work, pose, robot_bodies, c, b, -1.0, contacts)
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
