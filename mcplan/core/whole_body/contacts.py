"""Contacts of the whole-body program: rows that constrain accelerations, maps and bounds of the forces.

A contact at a patch with pose (R, p), set-point (R*, p*), Jacobian J, velocity V and gains kp, kd constrains the
directions of the selection S: ``S R' (J vd + Jdot v) = S (kp e - kd R'V)`` with ``e = (R'(p* - p), R' log(R* R'))``.
The force unknowns f have the wrench ``G f`` at the patch origin, in world axes. For a ball R* replaces R, except in e,
which measures the rolled angle; if its rotation is controlled (kp > 0), the angular part of V is the rate of e.
"""

from mcplan.core.algebra.rotation import rotation_error, rotation_error_rate
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.rigid_body.terms import FRAME_BIAS, FRAME_P, FRAME_R, FRAME_SIZE, FRAME_VELOCITY
from mcplan.core.whole_body import layout as lay

MIN_FRICTION = 0.1
"""Smallest friction coefficient in the weights of tangential forces, for the conditioning of the program."""


@jit
def fill_contact(index, contacts, values, J, frames, planned, last, rate, layout, constants, theta, G, scratch):
    """Fill the parameters that belong to one contact, and its columns of ``G``.

    Parameters
    ----------
    index, contacts : row and table of contacts
    values : numbers of all tasks and contacts
    J, frames : as ``rigid_body.terms`` fills them
    planned, last, rate : (forces,) references of the force unknowns, see ``fill.fill``
    layout, constants, theta : see ``whole_body.layout``
    G : (6, forces) out
    scratch : (80,)
    """
    contact = contacts[index]
    x = values[contact[lay.CONTACT_VALUES] :]
    frame, Jf = frames[contact[lay.CONTACT_FRAME]], J[contact[lay.CONTACT_FRAME]]
    first, count = contact[lay.FIRST_FORCE], force_count(contact)
    contact_frame = scratch[28 : 28 + FRAME_SIZE]
    for i in range(FRAME_SIZE):
        contact_frame[i] = frame[i]
    if contact[lay.ROLLS]:
        for i in range(9):
            contact_frame[FRAME_R + i] = x[lay.SETPOINT_R + i]
    _wrench_map(contact, x, contact_frame, G)
    _force_map(Jf, G, first, count, layout, theta)
    _motion_rows(contact, x, frame, contact_frame, Jf, layout, theta, scratch)
    _force_free_rows(contact, x, contact_frame, G, layout, theta)
    for k in range(count):
        cost, f = _force_cost(contact, x, k), first + k
        theta[layout[lay.FORCE_WEIGHT] + f] = cost * (constants[lay.FORCE_COST] + rate[f])
        theta[layout[lay.FORCE_PULL] + f] = cost * (rate[f] * last[f] + constants[lay.FORCE_COST] * planned[f])
    if layout[lay.WRENCH_MATRIX] >= 0:
        wrench_frame = frames[contact[lay.WRENCH_FRAME]]
        _wrench_rows(index, len(contacts), frame, wrench_frame, G, first, count, layout, constants, theta)
    _force_bounds(contact, x, layout, constants, theta)


@jit
def force_count(contact):
    """Return the number of force unknowns of a contact."""
    return contact[lay.ROWS] if contact[lay.IS_GRASP] else 3 * contact[lay.POINTS]


@jit
def _force_cost(contact, x, k):
    """Return the cost of a force unknown relative to that of a normal force.

    A tangential force costs as much as the normal force that it requires by friction; a moment of a grasp is divided by
    the lever.
    """
    if not contact[lay.IS_GRASP]:
        return 1.0 if k % 3 == 2 else 1.0 / max(x[lay.MU], MIN_FRICTION) ** 2
    s = lay.SELECTION + 6 * k
    cost = 0.0
    for i in range(3):
        cost += x[s + i] ** 2 + (x[s + 3 + i] / x[lay.LEVER]) ** 2
    return cost


@jit
def _wrench_map(contact, x, frame, G):
    """Write the columns of ``G``: one per point and axis, or one per selected direction of a grasp's wrench."""
    first = contact[lay.FIRST_FORCE]
    if contact[lay.IS_GRASP]:
        for a in range(contact[lay.ROWS]):
            s = lay.SELECTION + 6 * a
            for i in range(3):
                Ri = FRAME_R + 3 * i
                G[i, first + a] = frame[Ri] * x[s] + frame[Ri + 1] * x[s + 1] + frame[Ri + 2] * x[s + 2]
                G[3 + i, first + a] = frame[Ri] * x[s + 3] + frame[Ri + 1] * x[s + 4] + frame[Ri + 2] * x[s + 5]
        return
    points = lay.SELECTION + 6 * contact[lay.ROWS]
    for k in range(contact[lay.POINTS]):
        point = points + 3 * k
        px = frame[FRAME_R] * x[point] + frame[FRAME_R + 1] * x[point + 1] + frame[FRAME_R + 2] * x[point + 2]
        py = frame[FRAME_R + 3] * x[point] + frame[FRAME_R + 4] * x[point + 1] + frame[FRAME_R + 5] * x[point + 2]
        pz = frame[FRAME_R + 6] * x[point] + frame[FRAME_R + 7] * x[point + 1] + frame[FRAME_R + 8] * x[point + 2]
        for t in range(3):
            fx, fy, fz = x[lay.AXES + t], x[lay.AXES + 3 + t], x[lay.AXES + 6 + t]
            column = first + 3 * k + t
            G[0, column], G[1, column], G[2, column] = fx, fy, fz
            G[3, column] = py * fz - pz * fy
            G[4, column] = pz * fx - px * fz
            G[5, column] = px * fy - py * fx


@jit_algebra
def _force_map(J, G, first, count, layout, theta):
    """Write the generalised forces ``J' G``."""
    nv = layout[lay.NV]
    for k in range(first, first + count):
        g0, g1, g2, g3, g4, g5 = G[0, k], G[1, k], G[2, k], G[3, k], G[4, k], G[5, k]
        start = layout[lay.FORCE_MAP] + nv * k
        for j in range(nv):
            theta[start + j] = (g0 * J[0, j] + g1 * J[1, j] + g2 * J[2, j]) + (
                g3 * J[3, j] + g4 * J[4, j] + g5 * J[5, j]
            )


@jit_algebra
def _motion_rows(contact, x, patch_frame, frame, J, layout, theta, scratch):
    """Write the rows ``S R' J`` and their right-hand sides; ``frame`` has the axes of the contact."""
    acceleration, error, angular_velocity = scratch[:6], scratch[6:9], scratch[77:80]
    rotation_error(x[lay.SETPOINT_R : lay.SETPOINT_P], patch_frame[FRAME_R:FRAME_P], scratch[9:22], error)
    for i in range(3):
        angular_velocity[i] = patch_frame[FRAME_VELOCITY + 3 + i]
    if contact[lay.ROLLS] and x[lay.KP + 3] > 0.0:
        rotation_error_rate(error, patch_frame[FRAME_VELOCITY + 3 : FRAME_VELOCITY + 6], angular_velocity)
    for c in range(3):
        position_error, rotation_error_c, linear_rate, angular_rate = 0.0, 0.0, 0.0, 0.0
        for i in range(3):
            r = frame[FRAME_R + 3 * i + c]
            position_error += r * (x[lay.SETPOINT_P + i] - frame[FRAME_P + i])
            rotation_error_c += r * error[i]
            linear_rate += r * frame[FRAME_VELOCITY + i]
            angular_rate += r * angular_velocity[i]
        acceleration[c] = x[lay.KP + c] * position_error - x[lay.KD + c] * linear_rate
        acceleration[3 + c] = x[lay.KP + 3 + c] * rotation_error_c - x[lay.KD + 3 + c] * angular_rate
    nv, total = layout[lay.NV], layout[lay.CONTACT_ROWS]
    for a in range(contact[lay.ROWS]):
        s = x[lay.SELECTION + 6 * a : lay.SELECTION + 6 * a + 6]
        row = contact[lay.FIRST_ROW] + a
        r = scratch[22:28]
        b = 0.0
        for i in range(3):
            Ri = FRAME_R + 3 * i
            r[i] = s[0] * frame[Ri] + s[1] * frame[Ri + 1] + s[2] * frame[Ri + 2]
            r[3 + i] = s[3] * frame[Ri] + s[4] * frame[Ri + 1] + s[5] * frame[Ri + 2]
        for c in range(6):
            b += s[c] * acceleration[c] - r[c] * frame[FRAME_BIAS + c]
        theta[layout[lay.CONTACT_ACCELERATION] + row] = b
        r0, r1, r2, r3, r4, r5 = r[0], r[1], r[2], r[3], r[4], r[5]
        start = layout[lay.CONTACT_JACOBIAN] + row
        for j in range(nv):
            theta[start + total * j] = (r0 * J[0, j] + r1 * J[1, j] + r2 * J[2, j]) + (
                r3 * J[3, j] + r4 * J[4, j] + r5 * J[5, j]
            )


@jit
def _force_free_rows(contact, x, frame, G, layout, theta):
    """Write the rows of ``R' G`` for the directions without force: the total force along them vanishes."""
    first = contact[lay.FIRST_FORCE]
    directions = lay.SELECTION + 6 * contact[lay.ROWS] + 3 * contact[lay.POINTS]
    for a in range(contact[lay.RELEASED]):
        d = x[directions + 6 * a : directions + 6 * a + 6]
        for k in range(first, first + force_count(contact)):
            total = 0.0
            for i in range(3):
                Ri = FRAME_R + 3 * i
                total += (d[0] * frame[Ri] + d[1] * frame[Ri + 1] + d[2] * frame[Ri + 2]) * G[i, k]
                total += (d[3] * frame[Ri] + d[4] * frame[Ri + 1] + d[5] * frame[Ri + 2]) * G[3 + i, k]
            theta[layout[lay.RELEASE] + contact[lay.FIRST_RELEASE] + a + layout[lay.RELEASE_ROWS] * k] = total


@jit
def _wrench_rows(index, contacts, frame, reference, G, first, count, layout, constants, theta):
    """Write the weighted wrench at the origin and in the axes of another frame, the reference."""
    x = frame[FRAME_P] - reference[FRAME_P]
    y = frame[FRAME_P + 1] - reference[FRAME_P + 1]
    z = frame[FRAME_P + 2] - reference[FRAME_P + 2]
    for k in range(first, first + count):
        fx, fy, fz = G[0, k], G[1, k], G[2, k]
        mx, my, mz = G[3, k] + y * fz - z * fy, G[4, k] + z * fx - x * fz, G[5, k] + x * fy - y * fx
        start = layout[lay.WRENCH_MATRIX] + 6 * index + 6 * contacts * k
        for c in range(3):
            R0, R1, R2 = reference[FRAME_R + c], reference[FRAME_R + 3 + c], reference[FRAME_R + 6 + c]
            theta[start + c] = constants[lay.WRENCH_ROOT + c] * (R0 * fx + R1 * fy + R2 * fz)
            theta[start + 3 + c] = constants[lay.WRENCH_ROOT + 3 + c] * (R0 * mx + R1 * my + R2 * mz)


@jit
def _force_bounds(contact, x, layout, constants, theta):
    """Write friction and bounds of the normal force, or the radii of a grasp's balls."""
    margin, infinite, cone = constants[lay.MARGIN], constants[lay.LARGE], contact[lay.CONE]
    limit = min(x[lay.MAX_FORCE], x[lay.OWN_MAX_FORCE])
    if contact[lay.IS_GRASP]:
        theta[layout[lay.GRASP_FORCE] + cone] = min(max(limit - margin, 0.0), infinite)
        theta[layout[lay.GRASP_MOMENT] + cone] = min(max(x[lay.MAX_MOMENT] - margin, 0.0), infinite)
        return
    friction = x[lay.MU]
    friction_margin = margin + friction * x[lay.PRELOAD] / contact[lay.POINTS]
    for k in range(contact[lay.POINTS]):
        theta[layout[lay.FRICTION] + contact[lay.FIRST_POINT] + k] = friction
        theta[layout[lay.FRICTION_MARGIN] + contact[lay.FIRST_POINT] + k] = friction_margin
    # the margin of the friction rows needs a small normal force at each point, even when the limit has ramped to zero
    max_normal = max(limit - margin, 4.0 * contact[lay.POINTS] * margin / friction)
    theta[layout[lay.NORMAL_MAX] + cone] = min(max_normal, infinite)
    theta[layout[lay.NORMAL_MIN] + cone] = min(x[lay.MIN_FORCE] + margin, max_normal)
