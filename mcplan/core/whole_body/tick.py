"""A tick in which nothing changes but the state: dynamics terms and what to look at, then references to torques."""

from mcplan.core.algebra.free_motion import largest_free_motion
from mcplan.core.algebra.impedance import add_impedance
from mcplan.core.jit import jit
from mcplan.core.motion.balance import capture_point_depth, sliding_speeds
from mcplan.core.motion.reference import write_body
from mcplan.core.rigid_body.terms import FRAME_R, fill_terms
from mcplan.core.whole_body import layout as lay
from mcplan.core.whole_body.avoidance import avoid
from mcplan.core.whole_body.solve import SOLVED, solve_tick

SLIDING, FREE_MOTION, DEPTH = range(3)
"""Entries of ``bounds`` of ``observe``: sliding speed of contacts (m/s), motion in their free directions (m, rad),
depth of the capture point in the support region (m)."""

LOOK, MOVED, CALM = range(3)
"""Results of ``observe``: a contact slides or the robot falls; a patch has moved in a free direction; neither."""

CAPTURE_ERROR, NEAR_ROWS, REPORTED = range(3)
"""Entries of ``report`` of ``respond``: capture-point error (m), number of near pairs of collision avoidance."""

COM, MOMENTUM, TRUNK, POSTURE = range(4)
"""Entries of ``places`` of ``respond``: where the numbers of these tasks begin among those of all tasks."""


@jit
def observe(
    q_measured, v_measured, free, poses, free_index, bounds, topology, joint, inertia, armature, q, v, body, offset,
    work, M, h, A, summary, J, frames, index, B, normal, turns, speed, ground, size, weight, edges,
):  # fmt: skip
    """Compute the dynamics terms; return LOOK if a contact slides or the robot falls, else MOVED or CALM.

    Parameters
    ----------
    q_measured, v_measured : (nq,), (nv,) state
    free .. free_index : see ``free_motion.largest_free_motion``
    bounds : (3,) see ``SLIDING`` ..
    topology .. frames : see ``rigid_body.terms.fill_terms``
    index .. speed : see ``balance.sliding_speeds``
    ground .. edges : see ``balance.capture_point_depth``; without edges the robot counts as balanced
    """
    for k in range(q.size):
        q[k] = q_measured[k]
    for k in range(v.size):
        v[k] = v_measured[k]
    fill_terms(topology, joint, inertia, armature, q, v, body, offset, work, M, h, A, summary, J, frames)
    return look(
        free, poses, free_index, bounds, summary, frames, index, B, normal, turns, speed, ground, size, weight, edges
    )


@jit
def look(free, poses, free_index, bounds, summary, frames, index, B, normal, turns, speed, ground, size, weight, edges):
    """Return the result of ``observe``, whose arguments these are, for dynamics terms that are up to date."""
    if not sliding_speeds(frames, index, B, normal, turns, speed) < bounds[SLIDING]:
        return LOOK
    if not capture_point_depth(summary, ground, size, weight, edges) >= bounds[DEPTH]:
        return LOOK
    return CALM if largest_free_motion(free, poses, free_index, frames) <= bounds[FREE_MOTION] else MOVED


@jit
def respond(
    tick, is_steady, last, torque, numbers, sent, shape_index, shape_size, shape_offset, vertices, graph, t_law,
    rate_law, change_law, law_times, law_pieces, law_end, com_times, com_lengths, com_coefficients, com_ends,
    momentum_times, momentum_lengths, momentum_coefficients, momentum_ends, times, lengths, linear, phi, start, end,
    end_velocity, posture_scratch, q_wanted, v_wanted, vd_wanted, clocks, ground, size, curve, com_task,
    momentum_task, trunk, posture_task, places, target, gain, constants_real, constants_integer, constants_layout,
    state_real, state_integer, state_layout, q, v, M, h, rows, summary, J, frames, inputs, layout, constants, tasks,
    contacts, values, planned, rate, limits, lower, step, theta, scratch, basis, program, work, sense, multiplier,
    tolerance, first, max_residual, residual, largest_error, rolling, axes, kp, kd, return_time, torque_limit, dt,
    expected_q, expected_v, report,
):  # fmt: skip
    """Write the references into their tasks, solve the program, and add joint impedance; return its status.

    Parameters
    ----------
    tick : number of this tick, see ``avoidance.avoid``
    is_steady : whether the rate of torques is bounded, unless the capture-point error exceeds ``largest_error``
    last, torque : (forces,), (n,) force unknowns and torques of the last solution
    numbers : out, solution, see ``solve.solve_tick``
    sent : (n,) out, torques to send; empty without joint impedance
    t_law .. posture_task : see ``reference.write_body``
    places : (4,) int64, see ``COM`` ..
    target, gain : (forces,) planned forces, which ``planned`` follows by the fraction ``gain`` per tick
    shape_index .. graph, constants_real .. state_layout : see ``avoidance.avoid``
    q .. residual : see ``solve.solve_tick``
    rolling, axes : (k,) int64, (k, 3, 3) contacts whose axes turn with their patches, and the axes in patch axes
    kp .. expected_v : see ``impedance.add_impedance``
    report : (REPORTED,) out
    """
    report[CAPTURE_ERROR] = write_body(
        t_law, rate_law, change_law, law_times, law_pieces, law_end, com_times, com_lengths, com_coefficients, com_ends,
        momentum_times, momentum_lengths, momentum_coefficients, momentum_ends, times, lengths, linear, phi, start, end,
        end_velocity, posture_scratch, q_wanted, v_wanted, vd_wanted, clocks, summary, ground, size, curve, com_task,
        momentum_task, trunk, posture_task,
    )  # fmt: skip
    _copy(com_task, values, places[COM])
    _copy(momentum_task, values, places[MOMENTUM])
    _copy(trunk, values, places[TRUNK])
    _copy(posture_task, values, places[POSTURE])
    for k in range(rolling.size):
        contact = contacts[rolling[k]]
        turn_axes(frames[contact[lay.CONTACT_FRAME]], axes[k], values[contact[lay.CONTACT_VALUES] + lay.AXES :])
    move_towards(planned, target, gain)
    report[NEAR_ROWS] = avoid(
        shape_index, shape_size, shape_offset, vertices, graph, constants_real, constants_integer, constants_layout,
        state_real, state_integer, state_layout, q, v, tick,
    )  # fmt: skip
    if not is_steady or report[CAPTURE_ERROR] > largest_error:
        torque, step = torque[:0], step[:0]
    status = solve_tick(
        q, v, M, h, rows, summary, J, frames, inputs, layout, constants, tasks, contacts, values, planned, last, rate,
        limits, lower, torque, step, theta, scratch, basis, program, work, sense, multiplier, tolerance, first,
        max_residual, numbers, residual,
    )  # fmt: skip
    if status == SOLVED and sent.size:
        nv, n = layout[lay.NV], layout[lay.ACTUATED]
        add_impedance(
            q[7 : 7 + n], v[6 : 6 + n], numbers[6 : 6 + n], numbers[nv : nv + n], kp, kd, return_time, torque_limit, dt,
            expected_q, expected_v, sent,
        )  # fmt: skip
    return status


@jit
def turn_axes(frame, axes, out):
    """Write the axes (3, 3) of a contact that are fixed in a frame, ``R axes``, to ``out`` (9,), row by row."""
    for i in range(3):
        for j in range(3):
            total = 0.0
            for k in range(3):
                total += frame[FRAME_R + 3 * i + k] * axes[k, j]
            out[3 * i + j] = total


@jit
def move_towards(values, target, gain):
    """Move values (k,) towards a target (k,) by a fraction of their distance, in place."""
    for k in range(values.size):
        values[k] += gain * (target[k] - values[k])


@jit
def _copy(source, target, first):
    """Copy an array into another one, from an entry on."""
    for k in range(source.size):
        target[first + k] = source[k]
