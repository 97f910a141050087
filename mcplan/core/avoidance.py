"""Which pairs of bodies are kept apart, and what is asked of their distances."""

import math

from mcplan.core.jit import jit
from mcplan.core.joint_bounds import next_velocity


@jit
def ask_clearance(found, distance, goal, rise, tick, flat, reach, asked, seen, room, low):
    """Fill ``room`` (k,): what each pair near by has left above the distance asked of it; return how many are ``low``.

    What is asked of a pair goes to its goal: at once where that is less, at most by ``rise`` where it is more, from the
    distance at which the pair was first seen.

    Parameters
    ----------
    found, distance : (k,) indices of the pairs that are near, and their distances, m.
    goal, asked, seen : (pairs,) goal; what was asked last; the tick in which that was.
    rise : m per tick.
    tick : number of this tick; grows by one from call to call.
    flat : (pairs,) bool, of links over surfaces; those with less room than ``reach`` (m) are low.
    low : (k,) out, places in ``found`` of those.
    """
    count = 0
    for i in range(len(found)):
        p = found[i]
        before = asked[p] if seen[p] == tick - 1 else distance[i]
        asked[p] = min(goal[p], before + rise)
        seen[p] = tick
        room[i] = distance[i] - asked[p]
        if flat[p] and room[i] < reach:
            low[count] = i
            count += 1
    return count


@jit
def fill_avoidance_rows(distance, J, bias, v, safe, influence, dt, braking, ceiling, recovery, need, chosen, A, b):
    """Fill ``A`` (m, nv) and ``b`` (m,) with the rows of the pairs that ask for most; return how many pairs were near.

    A row says ``J vd >= -(v_max + J v) / dt - bias``, with ``v_max`` the largest speed of approach from which the pair
    can still be stopped (``next_velocity``), and asks for no more than ``ceiling``. Rows without a pair are left as
    they are.

    Parameters
    ----------
    distance, bias : (k,) m, m/s².
    J : (k, nv) gradients.
    need, chosen : (m,) scratch: what the chosen pairs ask for, and which they are.
    """
    near, count = 0, 0
    slots = len(b)
    for i in range(len(distance)):
        if distance[i] >= influence:
            continue
        near += 1
        speed = 0.0
        for j in range(len(v)):
            speed += J[i, j] * v[j]
        wanted = (-next_velocity(distance[i] - safe, braking, dt, recovery) - speed) / dt - bias[i]
        # kept in order of what they ask for; of two that ask for the same, the first comes first
        place = count
        while place > 0 and need[place - 1] < wanted:
            place -= 1
        if place >= slots:
            continue
        last = min(count, slots - 1)
        for k in range(last, place, -1):
            need[k], chosen[k] = need[k - 1], chosen[k - 1]
        need[place], chosen[place] = wanted, i
        count = last + 1
    for k in range(count):
        i = chosen[k]
        for j in range(len(v)):
            A[k, j] = J[i, j]
        asks = need[k] + bias[i]
        b[k] = math.copysign(min(abs(asks), ceiling), asks) - bias[i]
    return near
