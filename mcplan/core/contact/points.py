"""Contact points that an engine has found, as both of their sides see them, and their sums for each patch.

A contact with the force f along the rows of its frame E, from its first side to its second, acts there by ``E' f`` and
by ``-E' f`` on its first; on a patch at p all points together come to ``w = (sum f, sum (x - p) x f)``.
"""

from mcplan.core.jit import jit

LINK, PATCH, CONTACT, SHAPE, INDEX_SIZE = range(5)
PLACE, NORMAL, FORCE, POINT_SIZE = 0, 3, 6, 9

NO_PATCH, SEVERAL = -1, -2
"""Instead of the number of a patch: none, and one of several, which its place tells."""


@jit
def split_contacts(rows, geoms, places, frames, forces, link_of, patch_of, links, index, point):
    """Write the points of contacts that carry something, one for each side that belongs to a link or an object.

    A patch takes part only where the robot meets something else than itself.

    Parameters
    ----------
    rows : (n,) int64 where the force (3) of each contact begins in ``forces``; negative for none
    geoms : (n, 2) int64 the shapes of both sides
    places, frames : (n, 3), (n, 9) m, and the contacts' axes, normal first
    forces : (m,) N
    link_of, patch_of : (G,) int64 of shapes; links of the robot before those of objects, negative for what stands fast
    links : how many the robot has
    index : (2n, 4) int64 out: LINK, PATCH, CONTACT, SHAPE
    point : (2n, 9) out: PLACE, NORMAL (towards the link), FORCE, in the world

    Returns
    -------
    How many there are.
    """
    count = 0
    for k in range(len(rows)):
        row = rows[k]
        if row < 0 or not forces[row] > 0.0:
            continue
        for side in range(2):
            link, other = link_of[geoms[k, side]], link_of[geoms[k, 1 - side]]
            if link < 0:
                continue
            meets = link < links and (other < 0 or other >= links)
            index[count, LINK], index[count, CONTACT], index[count, SHAPE] = link, k, geoms[k, side]
            index[count, PATCH] = patch_of[geoms[k, side]] if meets else NO_PATCH
            sign = -1.0 if side == 0 else 1.0
            for c in range(3):
                point[count, PLACE + c] = places[k, c]
                point[count, NORMAL + c] = sign * frames[k, c]
                force = frames[k, c] * forces[row]
                force += frames[k, 3 + c] * forces[row + 1] + frames[k, 6 + c] * forces[row + 2]
                point[count, FORCE + c] = sign * force
            count += 1
    return count


@jit
def sum_patches(index, point, body_of, offset, turned, placed, link_of, wrench, touched, loose):
    """Add up the points of each patch, which get its link, and say which contacts are no patch's on either side.

    Parameters
    ----------
    index, point : (k, 4), (k, 9) of the points of ``split_contacts``; LINK is changed
    body_of, offset, link_of : (P,) int64, (P, 3), (P,) int64 of patches: what carries them, where they are on it (m),
        and their links
    turned, placed : (bodies, 9), (bodies, 3) rotations and places (m) of bodies
    wrench : (P, 6) out: at the patches' origins, world axes
    touched : (P,) bool out: which of them have points
    loose : (k,) int64 out: the contacts of no patch

    Returns
    -------
    How many contacts are no patch's.
    """
    wrench[:] = 0.0
    touched[:] = False
    free = 0
    for i in range(len(index)):
        patch = index[i, PATCH]
        if patch >= 0:
            index[i, LINK], touched[patch] = link_of[patch], True
            body, w = body_of[patch], wrench[patch]
            x = point[i, PLACE] - placed[body, 0]
            y = point[i, PLACE + 1] - placed[body, 1]
            z = point[i, PLACE + 2] - placed[body, 2]
            for c in range(3):
                x -= turned[body, c] * offset[patch, c]
                y -= turned[body, 3 + c] * offset[patch, c]
                z -= turned[body, 6 + c] * offset[patch, c]
            fx, fy, fz = point[i, FORCE], point[i, FORCE + 1], point[i, FORCE + 2]
            w[0] += fx
            w[1] += fy
            w[2] += fz
            w[3] += y * fz - z * fy
            w[4] += z * fx - x * fz
            w[5] += x * fy - y * fx
            continue
        contact = index[i, CONTACT]
        beside = (i > 0 and index[i - 1, CONTACT] == contact and index[i - 1, PATCH] >= 0) or (
            i + 1 < len(index) and index[i + 1, CONTACT] == contact and index[i + 1, PATCH] >= 0
        )
        if not beside and (free == 0 or loose[free - 1] != contact):
            loose[free] = contact
            free += 1
    return free
