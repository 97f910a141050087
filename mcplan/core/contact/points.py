"""Contact points of a physics engine, split into their two sides and summed to the wrenches of patches.

A contact with the force f along the rows of its frame E acts with ``E' f`` on its second side and with ``-E' f`` on its
first. On a patch at p the points sum to the wrench ``w = (sum f, sum (x - p) x f)``.
"""

from mcplan.core.algebra.pose import compose
from mcplan.core.bundle import Bundle, axes1, axes2
from mcplan.core.contact.model import PATCH_BODY, PATCH_LINK, PATCH_POSITION
from mcplan.core.contact.touching import NO_PATCH, Patches, touching_patch
from mcplan.core.jit import jit, jit_inline

LINK, PATCH, CONTACT, INDEX_SIZE = range(4)
"""Columns of ``index``: numbers of link or object, patch and contact of a point."""

POSITION, NORMAL, FORCE, POINT_SIZE = 0, 3, 6, 9
"""Columns of ``point``: position (3, m), normal towards the link (3) and force on the link (3, N), in the world."""


@jit
def split_contacts(rows, geoms, positions, frames, forces, link_of, patch_of, patches, active, index, point):
    """Write the points of loaded contacts, one for each side that belongs to a link or an object.

    A point gets a patch only if the robot touches something other than itself: the one of its link that touches there,
    otherwise that of its shape.

    Parameters
    ----------
    rows : (n,) int first entry of each contact's force (3) in ``forces``; negative for none
    geoms : (n, 2) int shapes of both sides
    positions, frames : (n, 3), (n, 9) positions (m), and the contacts' axes, normal first
    forces : (m,) N
    link_of, patch_of : (G,) int64 of shapes; links of the robot come before objects, negative for fixed shapes
    patches, active : see `touching_patch`
    index : (2n, 3) int64 out: LINK, PATCH, CONTACT
    point : (2n, 9) out: POSITION, NORMAL, FORCE

    Returns
    -------
    Number of points.
    """
    links, count = len(patches.on_link), 0
    for k in range(len(rows)):
        row = rows[k]
        if row < 0 or not forces[row] > 0.0:
            continue
        for side in range(2):
            link, other = link_of[geoms[k, side]], link_of[geoms[k, 1 - side]]
            if link < 0:
                continue
            is_external = link < links and (other < 0 or other >= links)
            index[count, LINK], index[count, CONTACT] = link, k
            sign = -1.0 if side == 0 else 1.0
            for c in range(3):
                point[count, POSITION + c] = positions[k, c]
                point[count, NORMAL + c] = sign * frames[k, c]
                force = frames[k, c] * forces[row]
                force += frames[k, 3 + c] * forces[row + 1] + frames[k, 6 + c] * forces[row + 2]
                point[count, FORCE + c] = sign * force
            patch = NO_PATCH
            if is_external:
                patch = touching_patch(patches, link, active, point[count, POSITION:NORMAL], point[count, NORMAL:FORCE])
                patch = patch if patch != NO_PATCH else patch_of[geoms[k, side]]
            index[count, PATCH] = patch
            count += 1
    return count


@jit
def sum_patches(index, point, patches, rotations, positions, wrench, touched, other_contacts):
    """Sum the points of each patch, assign them to its link, and list the contacts without a patch on either side.

    Parameters
    ----------
    index, point : (k, 3), (k, 9) of the points of ``split_contacts``; LINK is changed
    patches : Patches
    rotations, positions : (bodies, 9), (bodies, 3) rotations and positions (m) of bodies
    wrench : (P, 6) out: at the patches' origins, world axes
    touched : (P,) bool out: patches with points
    other_contacts : (k,) int64 out: contacts without a patch

    Returns
    -------
    Number of contacts without a patch.
    """
    wrench[:] = 0.0
    touched[:] = False
    count = 0
    for i in range(len(index)):
        patch = index[i, PATCH]
        if patch >= 0:
            index[i, LINK], touched[patch] = patches.index[patch, PATCH_LINK], True
            body, w = patches.index[patch, PATCH_BODY], wrench[patch]
            x = point[i, POSITION] - positions[body, 0]
            y = point[i, POSITION + 1] - positions[body, 1]
            z = point[i, POSITION + 2] - positions[body, 2]
            for c in range(3):
                offset = patches.shape[patch, PATCH_POSITION + c]
                x -= rotations[body, c] * offset
                y -= rotations[body, 3 + c] * offset
                z -= rotations[body, 6 + c] * offset
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


@jit_inline
def unpack_patches(packed):
    """Unpack the patches of `read_contacts`."""
    real, integer, layout = packed
    return Patches(
        axes2(integer, layout, 2),  # index
        axes2(real, layout, 3),  # shape
        axes2(real, layout, 4),  # corners
        axes2(integer, layout, 5),  # on_link
        axes2(real, layout, 6),  # frame
    )


@jit
def read_contacts(
    rows, geoms, positions, frames, forces, rotations, body_positions, active, real, integer, layout,
    index, point, wrench, touched, other_contacts,
):  # fmt: skip
    """Write the points of loaded contacts, and the wrenches of patches.

    Parameters
    ----------
    rows, geoms, positions, frames, forces, active, index, point : see `split_contacts`
    rotations, body_positions : (bodies, 9), (bodies, 3) rotations and positions (m) of bodies
    real, integer, layout : bundle of ``link_of`` and ``patch_of``, of patches, and of a pose as scratch (1, 12)
    wrench, touched, other_contacts : see `sum_patches`

    Returns
    -------
    Number of points, and number of contacts without a patch.
    """
    packed = Bundle(real, integer, layout)
    patches, pose = unpack_patches(packed), axes2(real, layout, 7)
    for p in range(len(patches.frame)):
        body = patches.index[p, PATCH_BODY]
        for c in range(9):
            pose[0, c] = rotations[body, c]
        for c in range(3):
            pose[0, 9 + c] = body_positions[body, c]
        compose(pose, 0, patches.shape, p, patches.frame, p)
    count = split_contacts(
        rows, geoms, positions, frames, forces, axes1(integer, layout, 0), axes1(integer, layout, 1), patches, active,
        index, point,
    )  # fmt: skip
    other_count = sum_patches(
        index[:count], point[:count], patches, rotations, body_positions, wrench, touched, other_contacts
    )
    return count, other_count
