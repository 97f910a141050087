"""Motion of a patch in the directions that its contact leaves free."""

from mcplan.core.jit import jit


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
