"""Joint impedance: springs and dampers around the expected motion."""

from mcplan.core.jit import jit


@jit
def add_impedance(q, v, vd, tau, kp, kd, return_time, limit, dt, expected_q, expected_v, torque_sent):
    """Add joint impedance about the expected motion to torques, and advance the expected motion by one period.

        sent = tau + kp (q_d - q) + kd (v_d - v), cut to the limit
        v_d+ = v_d + dt (vd + (v - v_d) / leak),   q_d+ = q_d + dt (v_d+ + (q - q_d) / leak)

    Parameters
    ----------
    q, v, vd, tau : (n,) measured positions and velocities, desired accelerations and torques
    kp, kd, limit : (n,) gains and torque limits
    return_time, dt : s, time constant with which the expected motion returns to the measured one, and control period
    expected_q, expected_v : (n,) in and out, the expected motion q_d, v_d
    torque_sent : (n,) out, N m, torques to send to the motors
    """
    for i in range(len(q)):
        torque = tau[i] + kp[i] * (expected_q[i] - q[i]) + kd[i] * (expected_v[i] - v[i])
        expected_v[i] += dt * (vd[i] + (v[i] - expected_v[i]) / return_time)
        expected_q[i] += dt * (expected_v[i] + (q[i] - expected_q[i]) / return_time)
        if torque > limit[i]:  # NaN stays NaN
            torque = limit[i]
        elif torque < -limit[i]:
            torque = -limit[i]
        torque_sent[i] = torque
