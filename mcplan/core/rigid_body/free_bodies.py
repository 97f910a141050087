"""Dynamics terms of a robot with free bodies: the robot's, a block for each body, and relative frames.

With the frame origin at p, the centre of mass at r from it, the angular velocity w, and the inertia I_c about this
centre, in world axes (S1 sec. 3.4):

    m (a + wd x r + w x (w x r)) = f + m g,   I wd + w x I w + m r x (a - g) = n,   I = I_c + m (r'r 1 - r r')
"""

import math

from mcplan.core.jit import jit
from mcplan.core.rigid_body.terms import FRAME_BIAS, FRAME_P, FRAME_R, FRAME_SIZE, FRAME_VELOCITY
from mcplan.core.rigid_body.tree import GRAVITY


@jit
def fill_free_bodies(
    q, v, masses, coms, inertias, pairs, robot_M, robot_h, robot_rows, robot_summary, robot_J, robot_frames,
    M, h, rows, summary, J, frames,
):  # fmt: skip
    """Write the terms of a robot and free bodies.

    Parameters
    ----------
    q, v : coordinates and velocities of the robot, then of each body (7 and 6)
    masses, coms, inertias : (bodies,), (bodies, 3), (bodies, 3, 3), in the frames of the bodies
    pairs : (k, 2) int64, frame of the robot and body of each relative frame
    robot_M .. robot_frames : terms of the robot, see ``terms.fill_terms``
    M .. frames : out, the same of the system; frames are those of the robot, of the bodies, and the relative ones
    """
    nv, count = robot_h.size, robot_J.shape[0]
    for i in range(nv):
        h[i] = robot_h[i]
        for j in range(nv):
            M[i, j] = robot_M[i, j]
        for k in range(9):
            rows[k, i] = robot_rows[k, i]
    for k in range(summary.size):
        summary[k] = robot_summary[k]
    for k in range(count):
        for i in range(FRAME_SIZE):
            frames[k, i] = robot_frames[k, i]
        for i in range(6):
            for j in range(nv):
                J[k, i, j] = robot_J[k, i, j]
    nq = q.size - 7 * masses.size
    for i in range(masses.size):
        first = nv + 6 * i
        _fill_body(q[nq + 7 * i :], v[first:], masses[i], coms[i], inertias[i], first, M, h, frames[count + i])
    for k in range(len(pairs)):
        a, b = pairs[k, 0], count + pairs[k, 1]
        own = count + masses.size + k
        _fill_relative(J[a], frames[a], frames[b], nv + 6 * pairs[k, 1], J[own], frames[own])


@jit
def _write_rotation(q, R):
    """Write the rotation (3, 3) of a pose (7,), whose quaternion may have any length."""
    length = math.sqrt(q[3] ** 2 + q[4] ** 2 + q[5] ** 2 + q[6] ** 2)
    w, x, y, z = q[3] / length, q[4] / length, q[5] / length, q[6] / length
    R[0, 0], R[0, 1], R[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    R[1, 0], R[1, 1], R[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    R[2, 0], R[2, 1], R[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)


@jit
def move_to_frames(coms, q, v, R):
    """Turn states of bodies about their centres of mass into those of their frames, in place.

    Parameters
    ----------
    coms : (bodies, 3) centres of mass in the frames
    q, v : (bodies, 7), (bodies, 6) poses, and velocities in world axes, linear then angular
    R : (3, 3) scratch
    """
    for i in range(len(coms)):
        _write_rotation(q[i], R)
        c = coms[i]
        r0 = R[0, 0] * c[0] + R[0, 1] * c[1] + R[0, 2] * c[2]
        r1 = R[1, 0] * c[0] + R[1, 1] * c[1] + R[1, 2] * c[2]
        r2 = R[2, 0] * c[0] + R[2, 1] * c[1] + R[2, 2] * c[2]
        w0, w1, w2 = v[i, 3], v[i, 4], v[i, 5]
        q[i, 0], q[i, 1], q[i, 2] = q[i, 0] - r0, q[i, 1] - r1, q[i, 2] - r2
        v[i, 0], v[i, 1], v[i, 2] = (
            v[i, 0] - (w1 * r2 - w2 * r1),
            v[i, 1] - (w2 * r0 - w0 * r2),
            v[i, 2] - (w0 * r1 - w1 * r0),
        )


@jit
def _fill_body(q, v, m, com, inertia, first, M, h, frame):
    """Write block and frame of a body, whose velocities begin at ``first``."""
    R = frame[FRAME_R:FRAME_P].reshape((3, 3))
    _write_rotation(q, R)
    for k in range(3):
        frame[FRAME_P + k] = q[k]
    for k in range(6):
        frame[FRAME_VELOCITY + k] = v[k]
    r0, r1, r2 = (
        R[0, 0] * com[0] + R[0, 1] * com[1] + R[0, 2] * com[2],
        R[1, 0] * com[0] + R[1, 1] * com[1] + R[1, 2] * com[2],
        R[2, 0] * com[0] + R[2, 1] * com[1] + R[2, 2] * com[2],
    )
    block = M[first : first + 6, first : first + 6]
    for i in range(3):
        for j in range(3):
            total = 0.0
            for a in range(3):
                for b in range(3):
                    total += R[i, a] * inertia[a, b] * R[j, b]
            block[3 + i, 3 + j] = total
        block[i, i] = m
    square = r0 * r0 + r1 * r1 + r2 * r2
    block[3, 3] += m * (square - r0 * r0)
    block[4, 4] += m * (square - r1 * r1)
    block[5, 5] += m * (square - r2 * r2)
    for i, j, product in ((3, 4, r0 * r1), (3, 5, r0 * r2), (4, 5, r1 * r2)):
        block[i, j] -= m * product
        block[j, i] -= m * product
    for i, j, entry in ((0, 1, r2), (1, 2, r0), (2, 0, r1)):  # -m [r] above, m [r] below
        block[i, 3 + j], block[j, 3 + i] = m * entry, -m * entry
        block[3 + j, i], block[3 + i, j] = m * entry, -m * entry
    w0, w1, w2 = v[3], v[4], v[5]
    along, speed = w0 * r0 + w1 * r1 + w2 * r2, w0 * w0 + w1 * w1 + w2 * w2
    h[first] = m * (w0 * along - r0 * speed)  # w x (w x r) = w (w . r) - r (w . w)
    h[first + 1] = m * (w1 * along - r1 * speed)
    h[first + 2] = m * (w2 * along - r2 * speed) + m * GRAVITY
    L0 = block[3, 3] * w0 + block[3, 4] * w1 + block[3, 5] * w2
    L1 = block[4, 3] * w0 + block[4, 4] * w1 + block[4, 5] * w2
    L2 = block[5, 3] * w0 + block[5, 4] * w1 + block[5, 5] * w2
    h[first + 3] = w1 * L2 - w2 * L1 + m * GRAVITY * r1
    h[first + 4] = w2 * L0 - w0 * L2 - m * GRAVITY * r0
    h[first + 5] = w0 * L1 - w1 * L0


@jit
def _fill_relative(J_frame, frame, body, first, J, out):
    """Write the motion of a frame relative to the coincident point of a body, whose velocities begin at ``first``."""
    for i in range(FRAME_SIZE):
        out[i] = frame[i]
    for i in range(6):
        for j in range(J.shape[1]):
            J[i, j] = J_frame[i, j]
        for j in range(6):
            J[i, first + j] = -1.0 if i == j else 0.0
    V = FRAME_VELOCITY
    w0, w1, w2 = body[V + 3], body[V + 4], body[V + 5]
    r0, r1 = frame[FRAME_P] - body[FRAME_P], frame[FRAME_P + 1] - body[FRAME_P + 1]
    r2 = frame[FRAME_P + 2] - body[FRAME_P + 2]
    for i, j, entry in ((0, 1, r2), (1, 2, r0), (2, 0, r1)):  # [r]: the point moves with v + w x r
        J[i, first + 3 + j], J[j, first + 3 + i] = -entry, entry
    c0, c1, c2 = w1 * r2 - w2 * r1, w2 * r0 - w0 * r2, w0 * r1 - w1 * r0
    out[V] -= body[V] + c0
    out[V + 1] -= body[V + 1] + c1
    out[V + 2] -= body[V + 2] + c2
    for k in range(3, 6):
        out[V + k] -= body[V + k]
    out[FRAME_BIAS] -= w1 * c2 - w2 * c1
    out[FRAME_BIAS + 1] -= w2 * c0 - w0 * c2
    out[FRAME_BIAS + 2] -= w0 * c1 - w1 * c0
