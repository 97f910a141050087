"""Distances of bodies at the postures of a path."""

from mcplan.core.distance.many import find_smallest
from mcplan.core.jit import jit


@jit
def find_close(tree, shapes, pairs, margins, q, scratch, found, values, is_close):
    """Write for each row of ``margins`` (L, P) whether a pair is within its margin at any of the postures q (m, nq).

    Parameters
    ----------
    pairs, scratch, found, values : see `mcplan.core.distance.many.find_smallest`.
    is_close : (L,) bool out.
    """
    for row in range(len(margins)):
        is_close[row] = False
        for i in range(len(q)):
            if find_smallest(tree, shapes, pairs, margins[row], q[i], scratch, found, values) > 0:
                is_close[row] = True
                break
