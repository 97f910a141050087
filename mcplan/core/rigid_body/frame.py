"""Frames fixed to bodies: pose, Jacobian, velocity, bias acceleration. World axes, at the frame's origin."""

from mcplan.core.jit import jit_algebra
from mcplan.core.rigid_body.body import write_base_motion, write_base_pose, write_body_motion, write_body_pose
from mcplan.core.rigid_body.tree import ACCELERATION, DEGREE, JOINT_SPACE, ORIGIN, PARENT, POSE, SCREW, VELOCITY, V


@jit_algebra
def write_body_poses(tree, q, work):
    """Write pose and screw of every body."""
    write_base_pose(q, work)
    for i in range(1, len(tree.topology)):
        write_body_pose(tree, q, work, i)


@jit_algebra
def write_path_poses(tree, q, work, body):
    """Write pose and screw of the bodies on the path from the base to ``body``; return their number without the base.

    Column ``JOINT_SPACE`` lists them, the last body first.
    """
    write_base_pose(q, work)
    depth = 0
    i = body
    while i > 0:
        work[depth, JOINT_SPACE] = i
        depth += 1
        i = tree.topology[i, PARENT]
    for k in range(depth - 1, -1, -1):
        write_body_pose(tree, q, work, int(work[k, JOINT_SPACE]))
    return depth


@jit_algebra
def frame_arm(work, body, offset):
    """Return the vector from the base origin to the origin of a frame, whose pose in the body is ``offset`` (12,)."""
    x, y, z = offset[ORIGIN], offset[ORIGIN + 1], offset[ORIGIN + 2]
    return (
        work[body, POSE + 9] + work[body, POSE] * x + work[body, POSE + 1] * y + work[body, POSE + 2] * z,
        work[body, POSE + 10] + work[body, POSE + 3] * x + work[body, POSE + 4] * y + work[body, POSE + 5] * z,
        work[body, POSE + 11] + work[body, POSE + 6] * x + work[body, POSE + 7] * y + work[body, POSE + 8] * z,
    )


@jit_algebra
def fill_frame_jacobian(tree, work, body, x, y, z, J):
    """Write J (6, nv) at the point (x, y, z) from the base origin: columns ``[s_lin + s_ang x r; s_ang]``."""
    J[:, :] = 0.0
    for k in range(6):
        J[k, k] = 1.0
    J[0, 4] = z
    J[0, 5] = -y
    J[1, 3] = -z
    J[1, 5] = x
    J[2, 3] = y
    J[2, 4] = -x
    i = body
    while i > 0:
        d, column = tree.topology[i, DEGREE], tree.topology[i, V]
        wx, wy, wz = work[d, SCREW + 3], work[d, SCREW + 4], work[d, SCREW + 5]
        J[0, column] += work[d, SCREW] + wy * z - wz * y
        J[1, column] += work[d, SCREW + 1] + wz * x - wx * z
        J[2, column] += work[d, SCREW + 2] + wx * y - wy * x
        J[3, column] += wx
        J[4, column] += wy
        J[5, column] += wz
        i = tree.topology[i, PARENT]


@jit_algebra
def fill_frame_motion(work, body, x, y, z, velocity, bias):
    """Write velocity (6,) and classical acceleration (6,) of the point (x, y, z) of a body from its spatial ones.

    ``v = v_O + w x r``,  ``a = a_O + alpha x r + w x v``. The acceleration is written last: both may be one array.
    """
    wx, wy, wz = work[body, VELOCITY + 3], work[body, VELOCITY + 4], work[body, VELOCITY + 5]
    bx, by, bz = work[body, ACCELERATION + 3], work[body, ACCELERATION + 4], work[body, ACCELERATION + 5]
    vx = work[body, VELOCITY] + wy * z - wz * y
    vy = work[body, VELOCITY + 1] + wz * x - wx * z
    vz = work[body, VELOCITY + 2] + wx * y - wy * x
    velocity[0] = vx
    velocity[1] = vy
    velocity[2] = vz
    velocity[3] = wx
    velocity[4] = wy
    velocity[5] = wz
    bias[0] = work[body, ACCELERATION] + by * z - bz * y + wy * vz - wz * vy
    bias[1] = work[body, ACCELERATION + 1] + bz * x - bx * z + wz * vx - wx * vz
    bias[2] = work[body, ACCELERATION + 2] + bx * y - by * x + wx * vy - wy * vx
    bias[3] = bx
    bias[4] = by
    bias[5] = bz


@jit_algebra
def frame_pose(tree, q, body, offset, work, X):
    """Write the pose X (4, 4) of a frame in the world.

    Parameters
    ----------
    body : index of the body that carries the frame
    offset : (12,) rotation (row-major) and position of the frame in the body's frame
    """
    write_path_poses(tree, q, work, body)
    x, y, z = frame_arm(work, body, offset)
    X[0, 3] = q[0] + x
    X[1, 3] = q[1] + y
    X[2, 3] = q[2] + z
    for i in range(3):
        for j in range(3):
            X[i, j] = (
                work[body, POSE + 3 * i] * offset[j]
                + work[body, POSE + 3 * i + 1] * offset[3 + j]
                + work[body, POSE + 3 * i + 2] * offset[6 + j]
            )
        X[3, i] = 0.0
    X[3, 3] = 1.0


@jit_algebra
def frame_jacobian(tree, q, body, offset, work, J):
    """Write the Jacobian J (6, nv): ``J v`` is the frame's linear and angular velocity."""
    write_path_poses(tree, q, work, body)
    x, y, z = frame_arm(work, body, offset)
    fill_frame_jacobian(tree, work, body, x, y, z, J)


@jit_algebra
def frame_bias_acceleration(tree, q, v, body, offset, work, a):
    """Write the classical acceleration ``a = Jdot v`` (6,) of a frame at zero vd."""
    write_base_motion(v, v, 0.0, 0.0, work)
    for k in range(write_path_poses(tree, q, work, body) - 1, -1, -1):
        write_body_motion(tree, v, v, 0.0, work, int(work[k, JOINT_SPACE]))
    x, y, z = frame_arm(work, body, offset)
    fill_frame_motion(work, body, x, y, z, a, a)


@jit_algebra
def frame_motion(tree, q, v, vd, body, offset, work, out):
    """Write pose, velocity and classical acceleration of a frame.

    Parameters
    ----------
    v, vd : (nv,) velocity and acceleration
    out : (24,) rotation (row-major), position, velocity and acceleration (6 each, linear then angular, world axes)
    """
    write_base_motion(v, vd, 1.0, 0.0, work)
    for k in range(write_path_poses(tree, q, work, body) - 1, -1, -1):
        write_body_motion(tree, v, vd, 1.0, work, int(work[k, JOINT_SPACE]))
    x, y, z = frame_arm(work, body, offset)
    fill_frame_motion(work, body, x, y, z, out[12:18], out[18:24])
    for i in range(3):
        for j in range(3):
            out[3 * i + j] = (
                work[body, POSE + 3 * i] * offset[j]
                + work[body, POSE + 3 * i + 1] * offset[3 + j]
                + work[body, POSE + 3 * i + 2] * offset[6 + j]
            )
    out[9] = q[0] + x
    out[10] = q[1] + y
    out[11] = q[2] + z
