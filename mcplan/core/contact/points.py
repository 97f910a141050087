"""Contact points of a physics engine, split into their two sides and summed to the wrenches of patches.

A contact with the force f along the rows of its frame E acts with ``E' f`` on its second side and with ``-E' f`` on its
first. On a patch at p the points sum to the wrench ``w = (sum f, sum (x - p) x f)``.
"""

from mcplan.core.jit import jit

LINK, PATCH, CONTACT, SHAPE, INDEX_SIZE = range(5)
"""Columns of ``index``: numbers of link or object, patch, contact and shape of a point."""

POSITION, NORMAL, FORCE, POINT_SIZE = 0, 3, 6, 9
"""Columns of ``point``: position (3, m), normal towards the link (3) and force on the link (3, N), in the world."""

NO_PATCH, SEVERAL = -1, -2
"""In place of a patch number: no patch; one of several patches, which the position of the point decides."""


@jit
def split_contacts(rows, geoms, positions, frames, forces, link_of, patch_of, links, index, point):
    """Write the points of loaded contacts, one for each side that belongs to a link or an object.

    A point gets a patch only if the robot touches something other than itself.

    Parameters
    ----------
    rows : (n,) int64 first entry of each contact's force (3) in ``forces``; negative for none
    geoms : (n, 2) int64 shapes of both sides
    positions, frames : (n, 3), (n, 9) positions (m), and the contacts' axes, normal first
    forces : (m,) N
    link_of, patch_of : (G,) int64 of shapes; links of the robot come before objects, negative for fixed shapes
    links : number of links of the robot
    index : (2n, 4) int64 out: LINK, PATCH, CONTACT, SHAPE
    point : (2n, 9) out: POSITION, NORMAL, FORCE

    Returns
    -------
    Number of points.
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
            is_external = link < links and (other < 0 or other >= links)
            index[count, LINK], index[count, CONTACT], index[count, SHAPE] = link, k, geoms[k, side]
            index[count, PATCH] = patch_of[geoms[k, side]] if is_external else NO_PATCH
            sign = -1.0 if side == 0 else 1.0
            for c in range(3):
                point[count, POSITION + c] = positions[k, c]
                point[count, NORMAL + c] = sign * frames[k, c]
                force = frames[k, c] * forces[row]
                force += frames[k, 3 + c] * forces[row + 1] + frames[k, 6 + c] * forces[row + 2]
                point[count, FORCE + c] = sign * force
            count += 1
    return count


@jit
def sum_patches(index, point, body_of, offset, rotations, positions, link_of, wrench, loaded, other_contacts):
    """Sum the points of each patch, assign them to its link, and list the contacts without a patch on either side.

    Parameters
    ----------
    index, point : (k, 4), (k, 9) of the points of ``split_contacts``; LINK is changed
    body_of, offset, link_of : (P,) int64, (P, 3), (P,) int64 of patches: body, position in the body (m), link
    rotations, positions : (bodies, 9), (bodies, 3) rotations and positions (m) of bodies
    wrench : (P, 6) out: at the patches' origins, world axes
    loaded : (P,) bool out: patches with points
    other_contacts : (k,) int64 out: contacts without a patch

    Returns
    -------
    Number of contacts without a patch.
    """
    wrench[:] = 0.0
    loaded[:] = False
    count = 0
    for i in range(len(index)):
        patch = index[i, PATCH]
        if patch >= 0:
            index[i, LINK], loaded[patch] = link_of[patch], True
            body, w = body_of[patch], wrench[patch]
            x = point[i, POSITION] - positions[body, 0]
            y = point[i, POSITION + 1] - positions[body, 1]
            z = point[i, POSITION + 2] - positions[body, 2]
            for c in range(3):
                x -= rotations[body, c] * offset[patch, c]
                y -= rotations[body, 3 + c] * offset[patch, c]
                z -= rotations[body, 6 + c] * offset[patch, c]
            fx, fy, fz = point[i, FORCE], point[i, FORCE + 1], point[i, FORCE + 2]
            w[0] += fx
            w[1] += fy
            w[2] += fz
            w[3] += y * fz - z * fy
            w[4] += z * fx - x * fz
            w[5] += x * fy - y * fx
            continue
        contact = index[i, CONTACT]
        other_side_has_patch = (i > 0 and index[i - 1, CONTACT] == contact and index[i - 1, PATCH] >= 0) or (
            i + 1 < len(index) and index[i + 1, CONTACT] == contact and index[i + 1, PATCH] >= 0
        )
        if not other_side_has_patch and (count == 0 or other_contacts[count - 1] != contact):
            other_contacts[count] = contact
            count += 1
    return count
