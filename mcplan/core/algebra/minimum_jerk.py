"""Samples of minimum-jerk references: quintic polynomials in R^n, in SO(3), and of whole postures."""

import math

from mcplan.core.algebra.rotation import matrix_to_quaternion
from mcplan.core.jit import jit


@jit
def minimum_jerk(s):
    """Return ``10 s³ - 15 s⁴ + 6 s⁵`` and its derivatives with respect to s; constant outside [0, 1]."""
    if s <= 0.0:
        return 0.0, 0.0, 0.0
    if s >= 1.0:
        return 1.0, 0.0, 0.0
    square = s * (1.0 - s)
    return s * s * s * (10.0 - 15.0 * s + 6.0 * s * s), 30.0 * square * square, 60.0 * square * (1.0 - 2.0 * s)


@jit
def add_pieces(pieces, t, p, v, a):
    """Add ``d_i sigma((t - t_i) / T_i)`` and its derivatives in time to p, v and a; sigma is ``minimum_jerk``.

    Parameters
    ----------
    pieces : (k, 5) rows t_i, T_i (s), d_i (3)
    t : s
    p, v, a : (3,) in and out
    """
    for i in range(len(pieces)):
        T = pieces[i, 1]
        sigma, ds_dt, d2s_dt2 = minimum_jerk((t - pieces[i, 0]) / T)
        for k in range(3):
            d = pieces[i, 2 + k]
            p[k] += sigma * d
            v[k] += ds_dt / T * d
            a[k] += d2s_dt2 / (T * T) * d


@jit
def quintic(x, s, T, out):
    """Evaluate ``sum_k x_k s^k`` and its first two derivatives in time at ``s = t / T``.

    Parameters
    ----------
    x : (6, n) coefficients
    s, T : share of the duration, and duration (s)
    out : (3, n) out
    """
    for i in range(x.shape[1]):
        x2, x3, x4, x5 = x[2, i], x[3, i], x[4, i], x[5, i]
        out[0, i] = x[0, i] + s * (x[1, i] + s * (x2 + s * (x3 + s * (x4 + s * x5))))
        out[1, i] = (x[1, i] + s * (2.0 * x2 + s * (3.0 * x3 + s * (4.0 * x4 + s * 5.0 * x5)))) / T
        out[2, i] = (2.0 * x2 + s * (6.0 * x3 + s * (12.0 * x4 + s * 20.0 * x5))) / (T * T)


@jit
def turn(phi, start, R, w, wd):
    """Compute ``R = exp(hat(phi)) start`` with its angular velocity and acceleration, in the axes in which R is given.

    With ``theta = |phi|``, ``P = hat(phi)``, ``a = sin theta / theta``, ``b = (1 - cos theta) / theta²``,
    ``c = (theta - sin theta) / theta³``::

        exp = 1 + a P + b P²,  J = 1 + b P + c P²,  w = J phid,  wd = J phidd + Jd phid

    Parameters
    ----------
    phi : (3, 3) rows phi, phid, phidd
    start : (3, 3)
    R, w, wd : (3, 3), (3,), (3,) out

    Source: Chirikjian, Stochastic Models, Information Theory and Lie Groups, vol. 2, sec. 10 (left Jacobian).
    """
    x0, x1, x2 = phi[0, 0], phi[0, 1], phi[0, 2]
    d0, d1, d2 = phi[1, 0], phi[1, 1], phi[1, 2]
    x = x0 * x0 + x1 * x1 + x2 * x2
    if x < 1e-4:  # series in theta²; the first omitted term is below 1e-16
        a = 1.0 - x / 6.0 * (1.0 - x / 20.0 * (1.0 - x / 42.0))
        b = 0.5 * (1.0 - x / 12.0 * (1.0 - x / 30.0 * (1.0 - x / 56.0)))
        c = (1.0 - x / 20.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0))) / 6.0
        slope_b = -(1.0 - x / 15.0 * (1.0 - x / (112.0 / 3.0))) / 24.0
        slope_c = -(1.0 - x / 21.0 * (1.0 - x / 48.0)) / 120.0
    else:
        theta = math.sqrt(x)
        a = math.sin(theta) / theta
        b = (1.0 - math.cos(theta)) / x
        c = (1.0 - a) / x
        slope_b = (0.5 * a - b) / x
        slope_c = (b - 3.0 * c) / (2.0 * x)
    phi_dot_rate, rate_square = x0 * d0 + x1 * d1 + x2 * d2, d0 * d0 + d1 * d1 + d2 * d2
    x_rate, phi_dot_second = 2.0 * phi_dot_rate, x0 * phi[2, 0] + x1 * phi[2, 1] + x2 * phi[2, 2]
    # P² y = phi (phi . y) - x y;  (Pd P + P Pd) y = phi (phid . y) + phid (phi . y) - 2 (phi . phid) y
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        cross_rate = phi[0, i] * phi[1, j] - phi[0, j] * phi[1, i]  # (P phid)_k
        cross_second = phi[0, i] * phi[2, j] - phi[0, j] * phi[2, i]  # (P phidd)_k
        w[k] = phi[1, k] + b * cross_rate + c * (phi[0, k] * phi_dot_rate - x * phi[1, k])
        mixed = phi[0, k] * rate_square + phi[1, k] * phi_dot_rate - 2.0 * phi_dot_rate * phi[1, k]
        wd[k] = (
            phi[2, k] + b * cross_second + c * (phi[0, k] * phi_dot_second - x * phi[2, k])
            + slope_b * x_rate * cross_rate + slope_c * x_rate * (phi[0, k] * phi_dot_rate - x * phi[1, k]) + c * mixed
        )  # fmt: skip
    for col in range(3):
        y0, y1, y2 = start[0, col], start[1, col], start[2, col]
        dot = x0 * y0 + x1 * y1 + x2 * y2
        R[0, col] = y0 + a * (x1 * y2 - x2 * y1) + b * (x0 * dot - x * y0)
        R[1, col] = y1 + a * (x2 * y0 - x0 * y2) + b * (x1 * dot - x * y1)
        R[2, col] = y2 + a * (x0 * y1 - x1 * y0) + b * (x2 * dot - x * y2)


@jit
def add_decaying_rotation(offset, s, T, scratch, motion):
    """Add a decaying rotation offset to the motion of a frame, in place: ``R = exp(hat((1 - sigma(s)) offset)) R_0``.

    With E the exponential and phi its rotation vector, whose direction is constant,

        w = phid + E w_0,   wd = phidd + E wd_0 + phid x E w_0

    Parameters
    ----------
    offset : (3,) rotation vector of the offset at s = 0
    s, T : as of ``quintic``
    scratch : (4, 3, 3)
    motion : (24,) as ``core.rigid_body.frame.frame_motion`` writes it; rotation and angular parts change
    """
    phi, E, R, vectors = scratch[0], scratch[1], scratch[2], scratch[3]
    share, slope, bend = minimum_jerk(s)
    for k in range(3):
        phi[0, k], phi[1, k], phi[2, k] = (1.0 - share) * offset[k], -slope / T * offset[k], -bend / (T * T) * offset[k]
        for j in range(3):
            R[k, j] = 1.0 if j == k else 0.0
    turn(phi, R, E, vectors[0], vectors[1])
    for i in range(3):
        for j in range(3):
            R[i, j] = E[i, 0] * motion[j] + E[i, 1] * motion[3 + j] + E[i, 2] * motion[6 + j]
        vectors[1, i] = E[i, 0] * motion[15] + E[i, 1] * motion[16] + E[i, 2] * motion[17]
        vectors[2, i] = E[i, 0] * motion[21] + E[i, 1] * motion[22] + E[i, 2] * motion[23]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        for column in range(3):
            motion[3 * i + column] = R[i, column]
        motion[15 + i] = phi[1, i] + vectors[1, i]
        motion[21 + i] = phi[2, i] + vectors[2, i] + phi[1, j] * vectors[1, k] - phi[1, k] * vectors[1, j]


@jit
def posture(translation, phi, start, s, T, scratch, q, v, vd):
    """Sample a posture: base position and joints from ``translation``, base orientation ``exp(hat(phi)) start``.

    Parameters
    ----------
    translation : (6, 3 + n) coefficients; phi : (6, 3) coefficients; start : (3, 3)
    s, T : as of ``quintic``
    scratch : (18 + 3 (3 + n),)
    q, v, vd : (7 + n,), (6 + n,), (6 + n,) out
    """
    n = translation.shape[1]
    x, rotation = scratch[: 3 * n].reshape((3, n)), scratch[3 * n : 3 * n + 9].reshape((3, 3))
    R = scratch[3 * n + 9 : 3 * n + 18].reshape((3, 3))
    quintic(translation, s, T, x)
    quintic(phi, s, T, rotation)
    turn(rotation, start, R, v[3:6], vd[3:6])
    matrix_to_quaternion(R, q[3:7])
    for k in range(3):
        q[k], v[k], vd[k] = x[0, k], x[1, k], x[2, k]
    for k in range(3, n):
        q[4 + k], v[3 + k], vd[3 + k] = x[0, k], x[1, k], x[2, k]


@jit
def quintics(x, piece, s, T, out):
    """Sample pieces ``x`` (k, 6, n) at many times: ``out`` (m, 3, n), see ``quintic``; piece (m,) int64, s, T (m,)."""
    for i in range(len(piece)):
        quintic(x[piece[i]], s[i], T[i], out[i])


@jit
def postures(translation, phi, start, piece, s, T, scratch, q, v, vd):
    """Sample postures at many times, see ``posture``: flat (k, 6, 3 + n), phi (k, 6, 3), the rest (m, ..)."""
    for i in range(len(piece)):
        posture(translation[piece[i]], phi[piece[i]], start, s[i], T[i], scratch, q[i], v[i], vd[i])
