"""Time step of rigid-body contact physics, driven by torques.

    M (v+ - v) = dt (force - h) + J' impulse,    q+ = integrate(q, v+, dt)

Viscous damping, joint limits and joint friction act on v+, as the contacts do, so that stiffness does not limit dt.
Impacts need no special case, because impulses are not bounded.

Sources: S1 sec. 3.7 (contact forces from constraints, impulse transfer, energy loss); D. Stewart & J. Trinkle, IJNME
1996.
"""

import math

from mcplan.core.algebra.tree_factor import tree_factor, tree_solve
from mcplan.core.bundle import Bundle
from mcplan.core.contact.bundle import open_fixed, open_moving
from mcplan.core.contact.collect import collect
from mcplan.core.contact.model import (
    APPLIED,
    AXES,
    BALLED,
    BODY_A,
    BODY_B,
    BODY_INVERSE_MASS,
    BODY_MASS,
    BOUNCE_SPEED,
    COMPLIANCE,
    COULOMB,
    DAMP,
    DAMPING,
    EFFORT,
    ERROR,
    FRICTION,
    FRICTION_BOUND,
    FRICTION_IMPULSE,
    INVERSE_INERTIA,
    JOINT_COMPLIANCE,
    KEY,
    KIND,
    LIMIT_IMPULSE,
    LIMIT_VELOCITY,
    LINK,
    LOWER,
    MOMENTUM,
    NEAR_LIMIT,
    OPEN,
    PATCH,
    POINT,
    RECOVERY,
    RECOVERY_SPEED,
    RESTITUTION,
    SLOTS,
    SOFT,
    STATE,
    STATE_NOW,
    STICK,
    STIFF,
    TURNING,
    UPPER,
)
from mcplan.core.contact.pairs import update_travel
from mcplan.core.contact.rows import fill_poses, fill_rows
from mcplan.core.contact.solve import SHIFT_TOLERANCE, solve_contacts
from mcplan.core.jit import jit
from mcplan.core.rigid_body.inverse_dynamics import gather_forces, newton_euler
from mcplan.core.rigid_body.manifold import integrate
from mcplan.core.rigid_body.mass_matrix import add_inertias, fill_mass_matrix
from mcplan.core.rigid_body.tree import GRAVITY, VELOCITY

TOLERANCE, ITERATIONS = 1e-9, 60
"""Gradient at convergence, relative to the momentum, and largest number of Newton steps."""


@jit
def bound_speeds(scene, work, robot_bodies, object_v, speed):
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
        far = scene.body[i, 3] + math.sqrt(scene.body[i, 0] ** 2 + scene.body[i, 1] ** 2 + scene.body[i, 2] ** 2)
        speed[i] = math.sqrt(x * x + y * y + z * z) + far * math.sqrt(u * u + v * v + w * w)


@jit
def object_dynamics(scene, robot_bodies, nv, pose, object_v, force, dt, M, b):
    """Write mass matrix and momentum of the free objects: ``m v``, ``I w``.

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


@jit
def near_limits(scene, law, q, dt, n, nv, vector):
    """Write the near limit of each joint, and the target velocity there."""
    for k in range(n):
        ease = scene.joint[k, INVERSE_INERTIA]
        vector[NEAR_LIMIT, k] = 0.0
        vector[FRICTION_BOUND, k] = dt * scene.joint[k, COULOMB]
        vector[JOINT_COMPLIANCE, k] = law[COMPLIANCE] * ease
        if 6 <= k < nv:
            below, above = q[k + 1] - scene.joint[k, LOWER], scene.joint[k, UPPER] - q[k + 1]
            room = min(below, above)
            if room < 0.1:
                vector[NEAR_LIMIT, k] = 1.0 if below <= above else -1.0
                vector[LIMIT_VELOCITY, k] = (
                    -room / dt if room > 0.0 else min(-law[RECOVERY] * room / dt, law[RECOVERY_SPEED])
                )


@jit
def remember(touch, c, fresh):
    """Return the row of the previous step's memory that belongs to contact c, or -1."""
    key = touch.index[c, KEY]
    if touch.memory_index[c, 0] == key:
        return c
    for m in range(fresh):
        if touch.memory_index[m, 0] == key:
            return m
    return -1


@jit
def prepare_contacts(scene, law, dt, count, v, touch):
    """Write target velocities, compliances and initial states of the contacts."""
    kept = len(touch.memory_index)
    while kept > 0 and touch.memory_index[kept - 1, 0] < 0:
        kept -= 1
    for c in range(count):
        a, b = touch.index[c, BODY_A], touch.index[c, BODY_B]
        ease = scene.body[a, BODY_INVERSE_MASS] + (scene.body[b, BODY_INVERSE_MASS] if b >= 0 else 0.0)
        aim, value = touch.aim[c], touch.value[c]
        touch.shift[c, APPLIED] = 0.0
        m = remember(touch, c, kept)
        for r in range(3):
            aim[3 + r] = law[COMPLIANCE] * ease
        if touch.index[c, KIND] == BALLED:
            value[FRICTION] *= dt
            for r in range(3):
                target = -law[RECOVERY] * value[ERROR + r] / dt
                aim[r] = min(max(target, -law[RECOVERY_SPEED]), law[RECOVERY_SPEED])
                if touch.index[c, TURNING] == 1:
                    aim[3 + r] = law[COMPLIANCE] * ease * 100.0  # inverse inertia of a mass at a tenth of a metre
            touch.index[c, STATE] = STICK
            continue
        gap = value[ERROR + 2]
        aim[0] = 0.0
        aim[1] = 0.0
        aim[2] = -gap / dt if gap > 0.0 else min(-law[RECOVERY] * gap / dt, law[RECOVERY_SPEED])
        speed = touch.speed[c]
        for r in range(3):
            speed[r] = 0.0
            for k in range(touch.index[c, SLOTS]):
                speed[r] += touch.J[c, r, k] * v[touch.where[c, k]]
        hits = gap + dt * speed[2] < 0.0
        if hits and speed[2] < -law[BOUNCE_SPEED]:
            aim[2] = max(aim[2], -law[RESTITUTION] * speed[2])
        if m >= 0 and touch.memory_index[m, 1] == STICK:
            # without this the compliance would let a sticking contact creep under load
            aim[0] = -law[RECOVERY] * touch.memory[m, 0] / dt
            aim[1] = -law[RECOVERY] * touch.memory[m, 1] / dt
        if law[SOFT] > 0.0:
            give = dt * law[STIFF] + law[DAMP]
            for r in range(3):
                aim[3 + r] = 1.0 / (dt * give)
            aim[2] = -law[STIFF] * gap / give if gap <= 0.0 or hits else -gap / dt
            if m >= 0:
                aim[0] = -law[STIFF] * touch.memory[m, 0] / give
                aim[1] = -law[STIFF] * touch.memory[m, 1] / give
        if m >= 0:
            touch.index[c, STATE] = touch.memory_index[m, 1]
        else:
            touch.index[c, STATE] = STICK if gap + dt * speed[2] < 1e-5 else OPEN
        if touch.index[c, STATE] != STICK and value[FRICTION] < math.inf:
            touch.shift[c, APPLIED] = value[FRICTION] * math.hypot(aim[0] - speed[0], aim[1] - speed[1])


@jit
def remember_contacts(law, dt, count, touch):
    """Store keys, states and spring deflections of the contacts for the next step."""
    for c in range(count):
        p, state = touch.impulse[c], touch.index[c, STATE]
        touch.memory_index[c, 0] = touch.index[c, KEY]
        touch.memory_index[c, 1] = state
        for k in range(2):
            stretch = 0.0
            if state != OPEN and law[SOFT] > 0.0:
                stretch = -(p[k] / dt + law[DAMP] * touch.speed[c, k]) / law[STIFF]
            elif state == STICK:
                stretch = dt * touch.speed[c, k] - touch.aim[c, k] * dt / law[RECOVERY]
            touch.memory[c, k] = stretch
    for c in range(count, len(touch.memory_index)):
        touch.memory_index[c, 0] = -1


@jit
def report_contacts(dt, count, frame, touch, wrench, tau_ext):
    """Write the points that carry force, and the wrenches of patches; add forces without a patch to tau_ext.

    Returns
    -------
    Number of points; a contact between two bodies has one for each of them.
    """
    wrench[:, :] = 0.0
    points = 0
    for c in range(count):
        p, value, patch = touch.impulse[c], touch.value[c], touch.index[c, PATCH]
        if p[0] == 0.0 and p[1] == 0.0 and p[2] == 0.0:
            continue
        fx = (value[AXES] * p[0] + value[AXES + 3] * p[1] + value[AXES + 6] * p[2]) / dt
        fy = (value[AXES + 1] * p[0] + value[AXES + 4] * p[1] + value[AXES + 7] * p[2]) / dt
        fz = (value[AXES + 2] * p[0] + value[AXES + 5] * p[1] + value[AXES + 8] * p[2]) / dt
        if patch < 0:
            for k in range(touch.index[c, SLOTS]):
                column = touch.where[c, k]
                if column < len(tau_ext):
                    push = touch.J[c, 0, k] * p[0] + touch.J[c, 1, k] * p[1] + touch.J[c, 2, k] * p[2]
                    tau_ext[column] += push / dt
        elif touch.index[c, TURNING] == 1:
            wrench[patch, 3] += fx
            wrench[patch, 4] += fy
            wrench[patch, 5] += fz
            continue
        else:
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
            link = touch.index[c, LINK + side]
            if link < 0:
                continue
            touch.report_index[points, 0] = link
            touch.report_index[points, 1] = patch if side == 0 else -1
            sign = 1.0 - 2.0 * side
            row = touch.report[points]
            for k in range(3):
                row[k] = value[POINT + k]
                row[3 + k] = sign * value[AXES + 6 + k]
            row[6], row[7], row[8] = sign * fx, sign * fy, sign * fz
            points += 1
    return points


@jit
def contact_step(fixed_real, fixed_whole, fixed_layout, real, whole, layout, dt, q, v):
    """Advance robot and objects by dt; see ``Exchange`` for the other inputs and outputs.

    Parameters
    ----------
    fixed_real, fixed_whole, fixed_layout : bundle of tree, scene and law
    real, whole, layout : bundle of exchange, scratch space and table of contacts, passed as single arrays, because
        Python takes longer to pass a tuple
    dt : s, float
    q, v : (nq,), (nv,) of the robot, overwritten by the next state
    """
    tree, scene, law = open_fixed(Bundle(fixed_real, fixed_whole, fixed_layout))
    exchange, scratch, touch = open_moving(Bundle(real, whole, layout))
    grasp, tau, force, object_q, object_v, wrench, tau_ext, counts, work = exchange
    bodies, nv, n = len(tree.topology), len(v), len(force)
    vector, M, b = scratch.vector, scratch.M, scratch.vector[MOMENTUM]
    newton_euler(tree, q, v, v, 0.0, GRAVITY, work)
    bound_speeds(scene, work, bodies, object_v, scratch.speed)
    fill_poses(q, object_q, work, bodies, scratch.pose)
    gather_forces(tree, work, b[:nv])
    add_inertias(tree, work)
    fill_mass_matrix(tree, work, scratch.robot_M)
    for i in range(nv):
        given = force[i]
        if i >= 6:
            limit = scene.joint[i, EFFORT]
            given += min(max(tau[i - 6], -limit), limit)
        value = dt * (given - b[i])
        for j in range(nv):
            value += scratch.robot_M[i, j] * v[j]
        b[i] = value
        for j in range(i + 1):
            M[i, j] = scratch.robot_M[i, j]
        M[i, i] += dt * scene.joint[i, DAMPING]
        vector[STATE_NOW, i] = v[i]
    object_dynamics(scene, bodies, nv, scratch.pose, object_v, force, dt, M, b)
    for o in range(len(object_v)):
        for k in range(6):
            vector[STATE_NOW, nv + 6 * o + k] = object_v[o, k]
    update_travel(q, object_q, dt, scratch)
    count = collect(scene, grasp, dt, scratch, touch)
    coupled = fill_rows(tree, scene, work, scratch.pose, bodies, count, touch)
    prepare_contacts(scene, law, dt, count, vector[STATE_NOW], touch)
    near_limits(scene, law, q, dt, n, nv, vector)
    parent = scratch.dense if coupled else scene.parent
    counts[0], counts[4] = count, touch.lost[0]
    counts[1], left = solve_contacts(M, parent, n, count, touch, scratch, TOLERANCE, ITERATIONS)
    counts[5] = 1 if left <= SHIFT_TOLERANCE else 0
    # recompute the velocities from the impulses, so that the recorded equation of motion holds to rounding
    for k in range(n):
        vector[STATE_NOW, k] = b[k] + vector[LIMIT_IMPULSE, k] + vector[FRICTION_IMPULSE, k]
    for c in range(count):
        p = touch.impulse[c]
        for k in range(touch.index[c, SLOTS]):
            vector[STATE_NOW, touch.where[c, k]] += (
                touch.J[c, 0, k] * p[0] + touch.J[c, 1, k] * p[1] + touch.J[c, 2, k] * p[2]
            )  # fmt: skip
    tree_factor(M, scene.parent, n)
    tree_solve(M, scene.parent, n, vector[STATE_NOW])
    remember_contacts(law, dt, count, touch)
    counts[3] = 1
    for k in range(nv):
        v[k] = vector[STATE_NOW, k]
        if not math.isfinite(v[k]):
            counts[3] = 0
        tau_ext[k] = (
            force[k] + (vector[LIMIT_IMPULSE, k] + vector[FRICTION_IMPULSE, k]) / dt - scene.joint[k, DAMPING] * v[k]
        )
        if k >= 6:
            limit = scene.joint[k, EFFORT]
            tau_ext[k] += min(max(tau[k - 6], -limit), limit) - tau[k - 6]
    counts[2] = report_contacts(dt, count, scratch.frame, touch, wrench, tau_ext)
    integrate(q, v, dt, q)
    for o in range(len(object_v)):
        for k in range(6):
            object_v[o, k] = vector[STATE_NOW, nv + 6 * o + k]
        integrate(object_q[o], object_v[o], dt, object_q[o])
        for k in range(7):
            scratch.left_object_q[o, k] = object_q[o, k]
    for k in range(len(q)):
        scratch.left_q[k] = q[k]
