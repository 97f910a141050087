"""Time step of rigid-body contact physics, driven by torques.

    M (v+ - v) = dt (force - h) + J' impulse,    q+ = integrate(q, v+, dt)

Viscous damping, joint limits and joint friction act on v+, as the contacts do, so that stiffness does not limit dt.
Impacts need no special case, because impulses are not bounded.

Sources: S1 sec. 3.7 (contact forces from constraints, impulse transfer, energy loss); D. Stewart & J. Trinkle, IJNME
1996.
"""

import math

from mcplan.core.algebra.tree_factor import tree_factor, tree_multiply, tree_solve
from mcplan.core.bundle import Bundle
from mcplan.core.contact.bundle import unpack_constants, unpack_variables
from mcplan.core.contact.collect import collect
from mcplan.core.contact.model import (
    APPLIED,
    AXES,
    BODY_A,
    BODY_B,
    BODY_INVERSE_MASS,
    BODY_MASS,
    BOUNCE_SPEED,
    BOUNDED_BY_BALL,
    COMPLIANCE,
    COULOMB,
    DAMPING,
    EFFORT,
    ERROR,
    FRICTION,
    FRICTION_BOUND,
    FRICTION_IMPULSE,
    GRADIENT,
    INVERSE_DIAGONAL,
    INVERSE_INERTIA,
    IS_ANGULAR,
    IS_SOFT,
    JOINT_COMPLIANCE,
    KEY,
    KIND,
    LIMIT_IMPULSE,
    LIMIT_VELOCITY,
    LINK,
    LOWER,
    MOMENTUM,
    NEAR_LIMIT,
    NEW_VELOCITY,
    OPEN,
    PATCH,
    POINT,
    RECOVERY,
    RECOVERY_SPEED,
    RESTITUTION,
    SLOTS,
    SPRING_DAMPING,
    SPRING_STIFFNESS,
    STATE,
    STICK,
    UPPER,
    VELOCITY_PRODUCT,
)
from mcplan.core.contact.pairs import update_travel
from mcplan.core.contact.rows import fill_poses, fill_rows
from mcplan.core.contact.solve import SHIFT_TOLERANCE, solve_contacts
from mcplan.core.contact.touching import NO_PATCH, Patches, touching_patch
from mcplan.core.jit import jit, jit_inline_exact
from mcplan.core.rigid_body.inverse_dynamics import gather_forces, newton_euler
from mcplan.core.rigid_body.manifold import integrate
from mcplan.core.rigid_body.mass_matrix import add_inertias, fill_mass_matrix
from mcplan.core.rigid_body.tree import GRAVITY, VELOCITY

GRADIENT_TOLERANCE, MAX_NEWTON_STEPS = 1e-9, 60
"""Gradient at convergence, relative to the momentum, and largest number of Newton steps."""

FORCE_ERROR = 5e-9
"""N, N m: largest error of the equation of motion with the reported velocities and forces."""


@jit
def bound_speeds(work, robot_bodies, object_v, radius, speed):
    """Write for each body an upper bound of the speed of all points that may touch."""
    for i in range(len(speed)):
        if i < robot_bodies:
            x, y, z = work[i, VELOCITY], work[i, VELOCITY + 1], work[i, VELOCITY + 2]
            u, v, w = work[i, VELOCITY + 3], work[i, VELOCITY + 4], work[i, VELOCITY + 5]
            # velocities are about the base origin, but the ball is given in the body's frame
            a, b, c = work[i, 9], work[i, 10], work[i, 11]
            x, y, z = x + v * c - w * b, y + w * a - u * c, z + u * b - v * a
        else:
            o = i - robot_bodies
            x, y, z = object_v[o, 0], object_v[o, 1], object_v[o, 2]
            u, v, w = object_v[o, 3], object_v[o, 4], object_v[o, 5]
        speed[i] = math.sqrt(x * x + y * y + z * z) + radius[i] * math.sqrt(u * u + v * v + w * w)


@jit_inline_exact
def fill_object_dynamics(scene, robot_bodies, nv, pose, object_v, force, dt, M, b):
    """Write mass matrix M and momentum b of the free objects: ``m v``, ``I w``, plus dt times the forces.

    The gyroscopic moment ``I w x w`` is evaluated at the middle of the step, in body axes, so that it does no work:
    tumbling bodies keep their energy.
    """
    for o in range(len(object_v)):
        i, k = robot_bodies + o, nv + 6 * o
        mass = scene.body[i, BODY_MASS]
        R = pose[i]
        for r in range(3):
            M[k + r, k + r] = mass
            b[k + r] = mass * object_v[o, r] + dt * force[k + r]
            b[k + 3 + r] = dt * force[k + 3 + r]
            for c in range(r + 1):
                value = 0.0
                for a in range(3):
                    value += R[3 * r + a] * scene.body[i, BODY_MASS + 1 + a] * R[3 * c + a]
                M[k + 3 + r, k + 3 + c] = value
        b[k + 2] -= dt * mass * GRAVITY
        # body axes: w+ = w + dt I^-1 (I w x w), with w in the middle of the step by fixed-point iteration
        wx = R[0] * object_v[o, 3] + R[3] * object_v[o, 4] + R[6] * object_v[o, 5]
        wy = R[1] * object_v[o, 3] + R[4] * object_v[o, 4] + R[7] * object_v[o, 5]
        wz = R[2] * object_v[o, 3] + R[5] * object_v[o, 4] + R[8] * object_v[o, 5]
        A, B, C = scene.body[i, BODY_MASS + 1], scene.body[i, BODY_MASS + 2], scene.body[i, BODY_MASS + 3]
        mx, my, mz = wx, wy, wz
        for _ in range(3):
            gx, gy, gz = (B - C) * my * mz, (C - A) * mz * mx, (A - B) * mx * my
            mx, my, mz = wx + 0.5 * dt * gx / A, wy + 0.5 * dt * gy / B, wz + 0.5 * dt * gz / C
        lx, ly, lz = A * wx + dt * gx, B * wy + dt * gy, C * wz + dt * gz
        for r in range(3):
            b[k + 3 + r] += R[3 * r] * lx + R[3 * r + 1] * ly + R[3 * r + 2] * lz


@jit_inline_exact
def fill_near_limits(scene, law, q, dt, n, nv, vector):
    """Write the near limit of each joint, and the target velocity there."""
    for k in range(n):
        inverse_inertia = scene.joint[k, INVERSE_INERTIA]
        vector[NEAR_LIMIT, k] = 0.0
        vector[FRICTION_BOUND, k] = dt * scene.joint[k, COULOMB]
        vector[JOINT_COMPLIANCE, k] = law[COMPLIANCE] * inverse_inertia
        if 6 <= k < nv:
            above_lower, below_upper = q[k + 1] - scene.joint[k, LOWER], scene.joint[k, UPPER] - q[k + 1]
            distance = min(above_lower, below_upper)
            if distance < 0.1:  # m, rad: farther limits cannot be reached in a step
                vector[NEAR_LIMIT, k] = 1.0 if above_lower <= below_upper else -1.0
                vector[LIMIT_VELOCITY, k] = (
                    -distance / dt if distance > 0.0 else min(-law[RECOVERY] * distance / dt, law[RECOVERY_SPEED])
                )


@jit_inline_exact
def find_memory(contacts, c, count):
    """Return the row among ``count`` contacts of the previous step that belongs to contact c, or -1."""
    key = contacts.index[c, KEY]
    if c < count and contacts.memory_index[c, 0] == key:
        return c
    for m in range(count):
        if contacts.memory_index[m, 0] == key:
            return m
    return -1


@jit_inline_exact
def prepare_contacts(scene, law, dt, count, remembered, v, contacts):
    """Write speeds, targets, compliances and initial states; the previous step had ``remembered`` contacts."""
    for c in range(count):
        a, b = contacts.index[c, BODY_A], contacts.index[c, BODY_B]
        inverse_mass = scene.body[a, BODY_INVERSE_MASS] + (scene.body[b, BODY_INVERSE_MASS] if b >= 0 else 0.0)
        aim, value, speed = contacts.target[c], contacts.value[c], contacts.speed[c]
        contacts.shift[c, APPLIED] = 0.0
        for r in range(3):
            speed[r] = 0.0
            for k in range(contacts.index[c, SLOTS]):
                speed[r] += contacts.J[c, r, k] * v[contacts.columns[c, k]]
        m = find_memory(contacts, c, remembered)
        for r in range(3):
            aim[3 + r] = law[COMPLIANCE] * inverse_mass
        if contacts.index[c, KIND] == BOUNDED_BY_BALL:
            value[FRICTION] *= dt
            for r in range(3):
                target = -law[RECOVERY] * value[ERROR + r] / dt
                aim[r] = min(max(target, -law[RECOVERY_SPEED]), law[RECOVERY_SPEED])
                if contacts.index[c, IS_ANGULAR] == 1:
                    # inverse inertia of the mass at a distance of 0.1 m
                    aim[3 + r] = law[COMPLIANCE] * inverse_mass * 100.0
            contacts.index[c, STATE] = STICK
            continue
        gap = value[ERROR + 2]
        aim[0] = 0.0
        aim[1] = 0.0
        aim[2] = -gap / dt if gap > 0.0 else min(-law[RECOVERY] * gap / dt, law[RECOVERY_SPEED])
        closes = gap + dt * speed[2] < 0.0
        if closes and speed[2] < -law[BOUNCE_SPEED]:
            aim[2] = max(aim[2], -law[RESTITUTION] * speed[2])
        if m >= 0 and contacts.memory_index[m, 1] == STICK:
            # without this the compliance would let a sticking contact creep under load
            aim[0] = -law[RECOVERY] * contacts.memory[m, 0] / dt
            aim[1] = -law[RECOVERY] * contacts.memory[m, 1] / dt
        if law[IS_SOFT] > 0.0:
            spring_rate = dt * law[SPRING_STIFFNESS] + law[SPRING_DAMPING]
            for r in range(3):
                aim[3 + r] = 1.0 / (dt * spring_rate)
            aim[2] = -law[SPRING_STIFFNESS] * gap / spring_rate if gap <= 0.0 or closes else -gap / dt
            if m >= 0:
                aim[0] = -law[SPRING_STIFFNESS] * contacts.memory[m, 0] / spring_rate
                aim[1] = -law[SPRING_STIFFNESS] * contacts.memory[m, 1] / spring_rate
        if m >= 0:
            contacts.index[c, STATE] = contacts.memory_index[m, 1]
        else:
            contacts.index[c, STATE] = STICK if gap + dt * speed[2] < 1e-5 else OPEN
        if contacts.index[c, STATE] != STICK and value[FRICTION] < math.inf:
            contacts.shift[c, APPLIED] = value[FRICTION] * math.hypot(aim[0] - speed[0], aim[1] - speed[1])


@jit_inline_exact
def remember_contacts(law, dt, count, contacts):
    """Store keys, states and spring deflections of the contacts for the next step."""
    for c in range(count):
        p, state = contacts.impulse[c], contacts.index[c, STATE]
        contacts.memory_index[c, 0] = contacts.index[c, KEY]
        contacts.memory_index[c, 1] = state
        for k in range(2):
            stretch = 0.0
            if state != OPEN and law[IS_SOFT] > 0.0:
                stretch = -(p[k] / dt + law[SPRING_DAMPING] * contacts.speed[c, k]) / law[SPRING_STIFFNESS]
            elif state == STICK:
                stretch = dt * contacts.speed[c, k] - contacts.target[c, k] * dt / law[RECOVERY]
            contacts.memory[c, k] = stretch


@jit_inline_exact
def report_contacts(dt, count, patches, active, contacts, wrench, tau_ext):
    """Write the points that carry force, and the wrenches of patches; add forces without a patch to tau_ext.

    A point of one of several patches of a link, such as a sole and its toe, belongs to the one that touches.

    Returns
    -------
    points : number of points; a contact between two bodies has one for each of them.
    is_changed : whether the link or patch of a point is not that of the last step.
    """
    wrench[:, :] = 0.0
    frame, labels = patches.frame, contacts.report_index
    points, is_changed = 0, False
    for c in range(count):
        p, value, patch = contacts.impulse[c], contacts.value[c], contacts.index[c, PATCH]
        if p[0] == 0.0 and p[1] == 0.0 and p[2] == 0.0:
            continue
        fx = (value[AXES] * p[0] + value[AXES + 3] * p[1] + value[AXES + 6] * p[2]) / dt
        fy = (value[AXES + 1] * p[0] + value[AXES + 4] * p[1] + value[AXES + 7] * p[2]) / dt
        fz = (value[AXES + 2] * p[0] + value[AXES + 5] * p[1] + value[AXES + 8] * p[2]) / dt
        if patch < 0:
            for k in range(contacts.index[c, SLOTS]):
                column = contacts.columns[c, k]
                if column < len(tau_ext):
                    effort = contacts.J[c, 0, k] * p[0] + contacts.J[c, 1, k] * p[1] + contacts.J[c, 2, k] * p[2]
                    tau_ext[column] += effort / dt
        elif contacts.index[c, IS_ANGULAR] == 1:
            wrench[patch, 3] += fx
            wrench[patch, 4] += fy
            wrench[patch, 5] += fz
            continue
        else:
            link = contacts.index[c, LINK]
            if patches.on_link[link, patch] == 1:
                touching = touching_patch(patches, link, active, value[POINT:AXES], value[AXES + 6 : AXES + 9])
                patch = touching if touching != NO_PATCH else patch
            x, y, z = (
                value[POINT] - frame[patch, 9],
                value[POINT + 1] - frame[patch, 10],
                value[POINT + 2] - frame[patch, 11],
            )
            wrench[patch, 0] += fx
            wrench[patch, 1] += fy
            wrench[patch, 2] += fz
            wrench[patch, 3] += y * fz - z * fy
            wrench[patch, 4] += z * fx - x * fz
            wrench[patch, 5] += x * fy - y * fx
        for side in range(2):
            link = contacts.index[c, LINK + side]
            if link < 0:
                continue
            of_patch = patch if side == 0 else -1
            is_changed = is_changed or labels[points, 0] != link or labels[points, 1] != of_patch
            labels[points, 0] = link
            labels[points, 1] = of_patch
            sign = 1.0 - 2.0 * side
            report = contacts.report[points]
            for k in range(3):
                report[k] = value[POINT + k]
                report[3 + k] = sign * value[AXES + 6 + k]
            report[6], report[7], report[8] = sign * fx, sign * fy, sign * fz
            points += 1
    return points, is_changed


@jit
def contact_step(fixed_real, fixed_integer, fixed_layout, real, integer, layout, dt, q, v):
    """Advance robot and objects by dt; see ``Exchange`` for the other inputs and outputs.

    Parameters
    ----------
    fixed_real, fixed_integer, fixed_layout : bundle of tree, scene and law.
    real, integer, layout : bundle of exchange, scratch space and table of contacts. Bundles are passed as arrays,
        because Python takes longer to pass a tuple.
    dt : s, float.
    q, v : (nq,), (nv,) of the robot, overwritten by the next state.
    """
    tree, scene, law = unpack_constants(Bundle(fixed_real, fixed_integer, fixed_layout))
    exchange, scratch, contacts = unpack_variables(Bundle(real, integer, layout))
    grasp, tau, force, object_q, object_v, vd, wrench, tau_ext, counts, work, active = exchange
    bodies, nv, n = len(tree.topology), len(v), len(force)
    vector, M, b = scratch.vector, scratch.M, scratch.vector[MOMENTUM]
    newton_euler(tree, q, v, v, 0.0, GRAVITY, work)
    bound_speeds(work, bodies, object_v, scratch.radius, scratch.speed)
    fill_poses(q, object_q, work, bodies, scratch.pose)
    gather_forces(tree, work, b[:nv])
    add_inertias(tree, work)
    fill_mass_matrix(tree, work, M)
    for i in range(nv):
        M[i, i] += dt * scene.joint[i, DAMPING]
        vector[NEW_VELOCITY, i] = v[i]
    fill_object_dynamics(scene, bodies, nv, scratch.pose, object_v, force, dt, M, b)
    for o in range(len(object_v)):
        for k in range(6):
            vector[NEW_VELOCITY, nv + 6 * o + k] = object_v[o, k]
    tree_multiply(M, scene.parent, n, vector[NEW_VELOCITY], vector[VELOCITY_PRODUCT])
    for i in range(nv):
        effort = force[i] - scene.joint[i, DAMPING] * v[i]
        if i >= 6:
            limit = scene.joint[i, EFFORT]
            effort += min(max(tau[i - 6], -limit), limit)
        b[i] = vector[VELOCITY_PRODUCT, i] + dt * (effort - b[i])
    for k in range(n):
        vector[INVERSE_DIAGONAL, k] = 1.0 / M[k, k]
    update_travel(q, object_q, dt, scratch)
    count = collect(scene, grasp, dt, scratch, contacts)
    coupled = fill_rows(tree, scene, work, scratch.pose, bodies, count, contacts)
    prepare_contacts(scene, law, dt, count, counts[0], vector[NEW_VELOCITY], contacts)
    fill_near_limits(scene, law, q, dt, n, nv, vector)
    counts[0], counts[4] = count, contacts.overflow[0]
    counts[1], shift_error = solve_contacts(
        M, scene.parent, coupled, n, count, contacts, scratch, GRADIENT_TOLERANCE, MAX_NEWTON_STEPS
    )
    counts[5] = 1 if shift_error <= SHIFT_TOLERANCE else 0
    max_gradient = 0.0
    for k in range(n):
        max_gradient = max(max_gradient, abs(vector[GRADIENT, k]))
    if max_gradient > FORCE_ERROR * dt:  # the velocities at which the equation of motion holds with these impulses
        tree_factor(M, scene.parent, scratch.root, n)
        tree_solve(M, scene.parent, scratch.root, n, vector[GRADIENT])
        for k in range(n):
            vector[NEW_VELOCITY, k] -= vector[GRADIENT, k]
    remember_contacts(law, dt, count, contacts)
    counts[3] = 1
    for k in range(nv):
        vd[k] = (vector[NEW_VELOCITY, k] - v[k]) / dt
        v[k] = vector[NEW_VELOCITY, k]
        if not math.isfinite(v[k]):
            counts[3] = 0
        tau_ext[k] = (
            force[k] + (vector[LIMIT_IMPULSE, k] + vector[FRICTION_IMPULSE, k]) / dt - scene.joint[k, DAMPING] * v[k]
        )
        if k >= 6:
            limit = scene.joint[k, EFFORT]
            tau_ext[k] += min(max(tau[k - 6], -limit), limit) - tau[k - 6]
    patches = Patches(scene.patch_index, scene.patch, scene.corners, scene.on_link, scratch.frame)
    points, is_changed = report_contacts(dt, count, patches, active, contacts, wrench, tau_ext)
    counts[6] = 1 if is_changed or points != counts[2] else 0
    counts[2] = points
    integrate(q, v, dt, q)
    for o in range(len(object_v)):
        for k in range(6):
            object_v[o, k] = vector[NEW_VELOCITY, nv + 6 * o + k]
        integrate(object_q[o], object_v[o], dt, object_q[o])
        for k in range(7):
            scratch.last_object_q[o, k] = object_q[o, k]
    for k in range(len(q)):
        scratch.last_q[k] = q[k]
