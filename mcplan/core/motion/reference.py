"""References of one tick: postures along splines, and poses of limbs with their derivatives in time.

A pose is (24,) as ``core.rigid_body.frame.frame_motion`` writes it: rotation (row-major), position, velocity and
acceleration, each linear then angular.
"""

import math

from mcplan.core.algebra.minimum_jerk import add_decaying_rotation, add_pieces, minimum_jerk, posture, quintic, turn
from mcplan.core.algebra.rotation import quaternion_to_matrix
from mcplan.core.jit import jit
from mcplan.core.motion.balance import capture_point_error
from mcplan.core.rigid_body.frame import frame_motion
from mcplan.core.rigid_body.manifold import integrate
from mcplan.core.rigid_body.tree import Tree

POSITION, VELOCITY, ANGULAR_VELOCITY, ACCELERATION, ANGULAR_ACCELERATION = 9, 12, 15, 18, 21
"""First entries of the parts of a pose; the rotation begins at 0."""


@jit
def sample_law(times, pieces, end, t):
    """Return s, sd and sdd of a time parameterization at time t (s); after its end s continues at the last rate.

    Parameters
    ----------
    times : (k,) ends of the pieces (s)
    pieces : (k - 1, 7) lengths (s), and coefficients for the powers 0 to 5 of the time relative to the length
    end : (2,) s and sd at the end
    """
    last = times.size - 1
    if t < 0.0:
        return 0.0, 0.0, 0.0
    if t > times[last]:
        return end[0] + end[1] * (t - times[last]), end[1], 0.0
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if times[middle] <= t else (low, middle)
    T, x0, x1, x2, x3, x4, x5 = pieces[low]
    r = (t - times[low]) / T
    return (
        x0 + r * (x1 + r * (x2 + r * (x3 + r * (x4 + r * x5)))),
        (x1 + r * (2.0 * x2 + r * (3.0 * x3 + r * (4.0 * x4 + r * 5.0 * x5)))) / T,
        (2.0 * x2 + r * (6.0 * x3 + r * (12.0 * x4 + r * 20.0 * x5))) / (T * T),
    )


@jit
def sample_curve(times, lengths, coefficients, ends, t, out):
    """Sample a spline; before its start the start is held, after its end it continues at the end velocity.

    Parameters
    ----------
    times, lengths : (k,), (k - 1,) ends of the pieces and their lengths (s)
    coefficients : (k - 1, 6, n), see ``minimum_jerk.quintic``
    ends : (2, 3, n) value, velocity and acceleration at start and end
    t : s
    out : (3, n) value, velocity, acceleration
    """
    pieces = lengths.size
    if t <= times[0] or t >= times[pieces]:
        side, late = (0, 0.0) if t <= times[0] else (1, t - times[pieces])
        for k in range(out.shape[1]):
            out[0, k] = ends[side, 0, k] + late * ends[side, 1, k]
            out[1, k], out[2, k] = ends[side, 1, k], ends[side, 2, k]
        return
    i = 0
    while i + 1 < pieces and times[i + 1] <= t:
        i += 1
    quintic(coefficients[i], min(max((t - times[i]) / lengths[i], 0.0), 1.0), lengths[i], out)


@jit
def sample_posture(times, lengths, linear, phi, start, end, end_velocity, t, scratch, q, v, vd):
    """Sample a posture spline; after its end it continues at the end velocity.

    Parameters
    ----------
    times, lengths : (k,), (k - 1,) ends of the pieces and their lengths (s)
    linear, phi : (k - 1, 6, 3 + n), (k - 1, 6, 3) coefficients, see ``minimum_jerk.posture``
    start : (3, 3) orientation of the base that phi refers to
    end, end_velocity : (7 + n,), (6 + n,)
    t : s
    scratch : as for ``minimum_jerk.posture``
    q, v, vd : (7 + n,), (6 + n,), (6 + n,) out
    """
    pieces = lengths.size
    if t >= times[pieces]:
        speed = 0.0
        for k in range(v.size):
            v[k], vd[k] = end_velocity[k], 0.0
            speed += abs(v[k])
        if speed > 0.0:
            integrate(end, v, t - times[pieces], q)
        else:
            for k in range(q.size):
                q[k] = end[k]
        return
    i = 0
    while i + 1 < pieces and times[i + 1] <= t:
        i += 1
    s = min(max((t - times[i]) / lengths[i], 0.0), 1.0)
    posture(linear[i], phi[i], start, s, lengths[i], scratch, q, v, vd)


@jit
def sample_swing(start, pieces, t, pose):
    """Sample position and linear rates of a path of displacements; return the progress of the second one, 0 to 1.

    Parameters
    ----------
    start : (3,) position before the first piece
    pieces : (3, 5), see ``minimum_jerk.add_pieces``
    t : s
    pose : (24,) out, without its angular parts
    """
    for k in range(3):
        pose[POSITION + k] = start[k]
        pose[VELOCITY + k] = pose[ACCELERATION + k] = 0.0
    add_pieces(pieces, t, pose[POSITION:VELOCITY], pose[VELOCITY:ANGULAR_VELOCITY], pose[ACCELERATION:])
    return minimum_jerk((t - pieces[1, 0]) / pieces[1, 1])[0]


@jit
def sample_rotation(phi, begin, T, start, end, t, scratch, pose):
    """Sample ``R(t) = exp(phi(t)) start`` with its angular rates; the end is held.

    Parameters
    ----------
    phi : (6, 3) coefficients
    begin, T : start time and duration (s)
    start, end : (3, 3)
    t : s
    scratch : (3, 3)
    pose : (24,) out, without its linear parts
    """
    R = pose[:9].reshape((3, 3))
    if t >= begin + T:
        for k in range(3):
            pose[ANGULAR_VELOCITY + k] = pose[ANGULAR_ACCELERATION + k] = 0.0
            for j in range(3):
                R[k, j] = end[k, j]
        return
    quintic(phi, max((t - begin) / T, 0.0), T, scratch)
    turn(scratch, start, R, pose[ANGULAR_VELOCITY:ACCELERATION], pose[ANGULAR_ACCELERATION:])


@jit
def sample_posture_rotation(
    topology, joint, inertia, armature, body, offset, work, times, lengths, linear, phi, start, end, end_velocity,
    scratch, q, v, vd, error, t, turn_scratch, motion, pose,
):  # fmt: skip
    """Sample the orientation of a frame along a posture spline, with an initial error that is blended out.

    Parameters
    ----------
    topology .. work : tree and frame, see ``frame_motion``; arrays are passed to a kernel faster than tuples
    times .. vd : see ``sample_posture``
    error : (3,) rotation vector of the error at the start
    t : s
    turn_scratch : (4, 3, 3), motion : (24,) scratch
    pose : (24,) out, without its linear parts
    """
    sample_posture(times, lengths, linear, phi, start, end, end_velocity, t, scratch, q, v, vd)
    frame_motion(Tree(topology, joint, inertia, armature), q, v, vd, body, offset, work, motion)
    begin, finish = times[0], times[lengths.size]
    if t < finish:
        add_decaying_rotation(error, (t - begin) / (finish - begin), finish - begin, turn_scratch, motion)
    for k in range(9):
        pose[k] = motion[k]
    for k in range(3):
        pose[ANGULAR_VELOCITY + k] = motion[ANGULAR_VELOCITY + k]
        pose[ANGULAR_ACCELERATION + k] = motion[ANGULAR_ACCELERATION + k]


@jit
def sample_posture_pose(
    topology, joint, inertia, armature, body, offset, work, times, lengths, linear, phi, start, end, end_velocity,
    scratch, q, v, vd, begin, span, ahead, error, pieces, t, pose,
):  # fmt: skip
    """Sample the pose of a frame that runs ahead of a posture spline; return the progress of its lead, 0 to 1.

    Parameters
    ----------
    topology .. work : tree and frame, see ``frame_motion``; arrays are passed to a kernel faster than tuples
    times .. vd : see ``sample_posture``
    begin, span : start and duration of the gain of lead (s)
    ahead : largest lead (s)
    error : (3,) offset of the position
    pieces : (k, 5) displacements, see ``minimum_jerk.add_pieces``
    t : s
    pose : (24,) out
    """
    progress, slope, bend = minimum_jerk((t - begin) / span)
    rate, change = 1.0 + ahead * slope / span, ahead * bend / (span * span)
    sample_posture(times, lengths, linear, phi, start, end, end_velocity, t + ahead * progress, scratch, q, v, vd)
    scale_rates(rate, change, v, vd)
    frame_motion(Tree(topology, joint, inertia, armature), q, v, vd, body, offset, work, pose)
    for k in range(3):
        pose[POSITION + k] += error[k]
    add_pieces(pieces, t, pose[POSITION:VELOCITY], pose[VELOCITY:ANGULAR_VELOCITY], pose[ACCELERATION:])
    return progress


@jit
def pose_distance(a, b, lever):
    """Return the distance (m) of two poses (12 or more): that of their positions, with the angle times a lever (m)."""
    square, trace, sine = 0.0, 0.0, 0.0
    for i in range(3):
        square += (a[POSITION + i] - b[POSITION + i]) ** 2
        j, k = (i + 1) % 3, (i + 2) % 3
        twist = 0.0  # 2 sin(angle) times the axis is the vector of the skew part of R_b R_a'
        for m in range(3):
            trace += a[3 * i + m] * b[3 * i + m]
            twist += b[3 * k + m] * a[3 * j + m] - b[3 * j + m] * a[3 * k + m]
        sine += twist * twist
    angle = math.atan2(0.5 * math.sqrt(sine), 0.5 * (trace - 1.0))
    return math.sqrt(square + (lever * angle) ** 2)


@jit
def scale_pose_rates(rate, change, pose):
    """Turn the rates of a pose (24,) by a parameter into those by time, in place, see ``scale_rates``."""
    scale_rates(rate, change, pose[VELOCITY:ACCELERATION], pose[ACCELERATION:])


@jit
def scale_rates(rate, change, v, a):
    """Turn derivatives by a parameter s into those by time, in place: ``sd v`` and ``sd² a + sdd v``."""
    for k in range(v.size):
        a[k] = rate * rate * a[k] + change * v[k]
        v[k] *= rate


@jit
def write_body(
    t_law, rate_law, change_law, law_times, law_pieces, law_end, com_times, com_lengths, com_coefficients, com_ends,
    momentum_times, momentum_lengths, momentum_coefficients, momentum_ends,
    times, lengths, linear, phi, start, end, end_velocity, scratch, q, v, vd,
    clocks, summary, ground, size, curve, com_task, momentum_task, trunk, posture_task,
):  # fmt: skip
    """Write the references of centre of mass, angular momentum, trunk and joints into their tasks.

    Return the distance (m) of the capture point from that of the references.

    Parameters
    ----------
    t_law, rate_law, change_law : time (s) in the time parameterization of all references, rate and change of the clock
    law_times .. law_end : see ``sample_law``; without times ``clocks`` are given
    com_times .. com_ends : of the centre of mass, see ``sample_curve``; without pieces ``com_task`` keeps its reference
    momentum_times .. momentum_ends : of the angular momentum per path rate; without pieces it is zero
    times .. vd : of the posture, see ``sample_posture``
    clocks : (3, 3) parameter s, its rate and the change of its rate, of centre of mass, angular momentum and posture
    summary, ground, size : see ``balance.capture_point_error``
    curve : (3, 3) scratch
    com_task, momentum_task, posture_task : numbers of these tasks, see ``whole_body.tasks``
    trunk : (24,) pose reference, of which the orientation is written
    """
    if law_times.size:
        s, rate, change = sample_law(law_times, law_pieces, law_end, t_law)
        for k in range(3):
            clocks[k, 0], clocks[k, 1] = s, rate_law * rate
            clocks[k, 2] = rate_law * rate_law * change + change_law * rate
    if com_lengths.size:
        sample_curve(com_times, com_lengths, com_coefficients, com_ends, clocks[0, 0], curve)
        scale_rates(clocks[0, 1], clocks[0, 2], curve[1], curve[2])
        for k in range(3):
            com_task[6 + k], com_task[9 + k], com_task[12 + k] = curve[0, k], curve[1, k], curve[2, k]
    if momentum_lengths.size:
        rate, change = clocks[1, 1], clocks[1, 2]
        sample_curve(momentum_times, momentum_lengths, momentum_coefficients, momentum_ends, clocks[1, 0], curve)
        for k in range(3):
            momentum_task[3 + k] = rate * curve[0, k]
            momentum_task[6 + k] = rate * rate * curve[1, k] + change * curve[0, k]
    else:
        for k in range(3, 9):
            momentum_task[k] = 0.0
    sample_posture(times, lengths, linear, phi, start, end, end_velocity, clocks[2, 0], scratch, q, v, vd)
    scale_rates(clocks[2, 1], clocks[2, 2], v, vd)
    quaternion_to_matrix(q[3:7], trunk[:9].reshape((3, 3)))
    for k in range(3):
        trunk[ANGULAR_VELOCITY + k], trunk[ANGULAR_ACCELERATION + k] = v[3 + k], vd[3 + k]
    n = q.size - 7
    for k in range(n):
        posture_task[2 * n + k], posture_task[3 * n + k], posture_task[4 * n + k] = q[7 + k], v[6 + k], vd[6 + k]
    return capture_point_error(summary, com_task[6:9], com_task[9:12], ground, size)
