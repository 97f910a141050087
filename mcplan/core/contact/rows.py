"""Contact Jacobians of a step, and poses of the bodies."""

import math

from mcplan.core.contact.model import AXES, BODY_A, BODY_B, CHAIN, IS_ANGULAR, POINT, SLOTS
from mcplan.core.jit import jit, jit_inline, jit_inline_exact
from mcplan.core.rigid_body.tree import DEGREE, PARENT, POSE, SCREW, V


@jit_inline
def _contact_row(value, c, r, sign, rx, ry, rz, is_angular):
    """Return axis r of contact c, and its moment about a point that is at minus (rx, ry, rz) from it: six scalars."""
    x, y, z = sign * value[c, AXES + 3 * r], sign * value[c, AXES + 3 * r + 1], sign * value[c, AXES + 3 * r + 2]
    if is_angular:
        return 0.0, 0.0, 0.0, x, y, z
    u, v, w = ry * z - rz * y, rz * x - rx * z, rx * y - ry * x
    return x, y, z, u, v, w


@jit_inline
def _add_base(row, base, x, y, z, u, v, w):
    """Add a row of a contact to the columns of a free body."""
    row[base] += x
    row[base + 1] += y
    row[base + 2] += z
    row[base + 3] += u
    row[base + 4] += v
    row[base + 5] += w


@jit_inline
def _add_joint(row, slot, work, d, x, y, z, u, v, w):
    """Add the inner product of a row of a contact and a joint's screw."""
    row[slot] += (
        x * work[d, SCREW]
        + y * work[d, SCREW + 1]
        + z * work[d, SCREW + 2]
        + u * work[d, SCREW + 3]
        + v * work[d, SCREW + 4]
        + w * work[d, SCREW + 5]
    )


@jit_inline
def add_motion(tree, scene, work, pose, robot_bodies, c, body, sign, contacts):
    """Add the velocity of a body's point along the axes of contact c to its rows."""
    value, where = contacts.value, contacts.columns
    origin = 0 if body < robot_bodies else body
    rx = value[c, POINT] - pose[origin, 9]
    ry = value[c, POINT + 1] - pose[origin, 10]
    rz = value[c, POINT + 2] - pose[origin, 11]
    base = 0
    while where[c, base] != scene.chain[body, 0]:
        base += 1
    is_angular = contacts.index[c, IS_ANGULAR] == 1
    J0, J1, J2 = contacts.J[c, 0], contacts.J[c, 1], contacts.J[c, 2]
    x0, y0, z0, u0, v0, w0 = _contact_row(value, c, 0, sign, rx, ry, rz, is_angular)
    x1, y1, z1, u1, v1, w1 = _contact_row(value, c, 1, sign, rx, ry, rz, is_angular)
    x2, y2, z2, u2, v2, w2 = _contact_row(value, c, 2, sign, rx, ry, rz, is_angular)
    _add_base(J0, base, x0, y0, z0, u0, v0, w0)
    _add_base(J1, base, x1, y1, z1, u1, v1, w1)
    _add_base(J2, base, x2, y2, z2, u2, v2, w2)
    if body >= robot_bodies:
        return
    last = contacts.index[c, SLOTS] - 1
    slot, i = last, body
    while i > 0:
        d, column = tree.topology[i, DEGREE], tree.topology[i, V]
        while where[c, slot] != column:
            slot = slot - 1 if slot > 0 else last  # the columns of mimic joints are not in order
        _add_joint(J0, slot, work, d, x0, y0, z0, u0, v0, w0)
        _add_joint(J1, slot, work, d, x1, y1, z1, u1, v1, w1)
        _add_joint(J2, slot, work, d, x2, y2, z2, u2, v2, w2)
        i = tree.topology[i, PARENT]


@jit_inline_exact
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
