"""Joint springs and dampers around a motion that is expected."""

from mcplan.core.jit import jit


@jit
def add_impedance(q, v, vd, tau, kp, kd, leak, limit, dt, expected_q, expected_v, sent):
    """Add to torques what holds the joints to the motion expected, and let that go on for one period.

        sent = tau + kp (q_d - q) + kd (v_d - v), cut to the limit
        v_d+ = v_d + dt (vd + (v - v_d) / leak),   q_d+ = q_d + dt (v_d+ + (q - q_d) / leak)

    Parameters
    ----------
    q, v, vd, tau : (n,) measured positions and velocities, accelerations and torques that are wanted
    kp, kd, limit : (n,) gains and torque limits
    leak, dt : s
    expected_q, expected_v : (n,) in and out, the motion expected
    sent : (n,) out, N m
    """
    for i in range(len(q)):
        torque = tau[i] + kp[i] * (expected_q[i] - q[i]) + kd[i] * (expected_v[i] - v[i])
        expected_v[i] += dt * (vd[i] + (v[i] - expected_v[i]) / leak)
        expected_q[i] += dt * (expected_v[i] + (q[i] - expected_q[i]) / leak)
        if torque > limit[i]:  # NaN stays NaN
            torque = limit[i]
        elif torque < -limit[i]:
            torque = -limit[i]
        sent[i] = torque
