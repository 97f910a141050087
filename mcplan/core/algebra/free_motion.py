"""Motion of a patch in the directions that its contact leaves free."""

from mcplan.core.jit import jit
from mcplan.core.rigid_body.terms import FRAME_P, FRAME_R


@jit
def free_motion(free, R, p, R_now, p_now):
    """Return the largest entry of ``free xi``, with xi the small motion from one pose to another, in axes of the first.

    ``xi = (R' (p_now - p), vee(R' R_now))``, the vector of the skew part: linear then angular, m and rad.

    Parameters
    ----------
    free : (6, 6) projection onto the free directions
    R, p, R_now, p_now : (3, 3), (3,) the poses
    """
    largest = 0.0
    for i in range(6):
        total = 0.0
        for k in range(3):
            a, b = (k + 1) % 3, (k + 2) % 3
            along, turn = 0.0, 0.0
            for j in range(3):
                along += R[j, k] * (p_now[j] - p[j])
                turn += R[j, b] * R_now[j, a] - R[j, a] * R_now[j, b]
            total += free[i, k] * along + free[i, 3 + k] * 0.5 * turn
        largest = max(largest, abs(total))
    return largest


@jit
def largest_free_motion(free, poses, index, frames):
    """Return the largest `free_motion` from poses (k, 12) to those of frames ``index`` (k,).

    Parameters
    ----------
    free : (k, 6, 6) projections
    poses : rotation (9, row-major) and position
    frames : values of all frames as ``rigid_body.terms`` fills them
    """
    largest = 0.0
    for k in range(len(index)):
        frame, pose = frames[index[k]], poses[k]
        R, R_now = pose[:9].reshape((3, 3)), frame[FRAME_R : FRAME_R + 9].reshape((3, 3))
        motion = free_motion(free[k], R, pose[9:], R_now, frame[FRAME_P : FRAME_P + 3])
        largest = max(largest, motion)
    return largest
