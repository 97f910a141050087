"""Rotations: unit quaternions (w, x, y, z), matrices, rotation vectors, orientation errors and their rates.

An output may be one of the inputs. A quaternion and its negative are the same rotation; the logarithm returns the
shorter one.
"""

import math

from mcplan.core.jit import jit


@jit
def quaternion_normalise(quat, out):
    """Scale to unit length; a quaternion of length zero becomes NaN."""
    scale = 1.0 / math.sqrt(quat[0] ** 2 + quat[1] ** 2 + quat[2] ** 2 + quat[3] ** 2)
    for k in range(4):
        out[k] = scale * quat[k]


@jit
def quaternion_multiply(a, b, out):
    """Hamilton product a b: first the rotation b, then a."""
    w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]
    x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2]
    y = a[0] * b[2] + a[2] * b[0] + a[3] * b[1] - a[1] * b[3]
    z = a[0] * b[3] + a[3] * b[0] + a[1] * b[2] - a[2] * b[1]
    out[0] = w
    out[1] = x
    out[2] = y
    out[3] = z


@jit
def quaternion_exp(w, out):
    """Quaternion of the rotation vector w (3,) in rad: ``(cos |w|/2, sin(|w|/2) w / |w|)``."""
    square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if square < 1e-8:  # the series is exact to rounding here, and the quotient below would be 0/0 at 0
        scale = 0.5 - square * (1.0 / 48.0 - square / 3840.0)
        real = 1.0 - square * (0.125 - square / 384.0)
    else:
        angle = math.sqrt(square)
        scale = math.sin(0.5 * angle) / angle
        real = math.cos(0.5 * angle)
    out[3] = scale * w[2]
    x, y = scale * w[0], scale * w[1]
    out[0] = real
    out[1] = x
    out[2] = y


@jit
def quaternion_log(quat, out):
    """Rotation vector (3,), of length at most pi, of a unit quaternion; the arctangent keeps it exact near 0 and pi."""
    sign = 1.0 if quat[0] >= 0.0 else -1.0
    sine = math.sqrt(quat[1] ** 2 + quat[2] ** 2 + quat[3] ** 2)
    scale = 2.0 / quat[0] if sine < 1e-12 else sign * 2.0 * math.atan2(sine, sign * quat[0]) / sine
    for k in range(3):
        out[k] = scale * quat[k + 1]


@jit
def quaternion_to_matrix(quat, R):
    """Rotation matrix R (3, 3) of a unit quaternion (S0 eq. 11)."""
    w, x, y, z = quat[0], quat[1], quat[2], quat[3]
    R[0, 0] = 1.0 - 2.0 * (y * y + z * z)
    R[0, 1] = 2.0 * (x * y - w * z)
    R[0, 2] = 2.0 * (x * z + w * y)
    R[1, 0] = 2.0 * (x * y + w * z)
    R[1, 1] = 1.0 - 2.0 * (x * x + z * z)
    R[1, 2] = 2.0 * (y * z - w * x)
    R[2, 0] = 2.0 * (x * z - w * y)
    R[2, 1] = 2.0 * (y * z + w * x)
    R[2, 2] = 1.0 - 2.0 * (x * x + y * y)


@jit
def matrix_to_quaternion(R, quat):
    """Write the unit quaternion with w >= 0 of a rotation matrix, by its largest component (Shepperd 1978)."""
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    if trace > 0.0:
        quat[0] = 1.0 + trace
        quat[1] = R[2, 1] - R[1, 2]
        quat[2] = R[0, 2] - R[2, 0]
        quat[3] = R[1, 0] - R[0, 1]
    else:
        i = 0
        if R[1, 1] > R[0, 0]:
            i = 1
        if R[2, 2] > R[i, i]:
            i = 2
        j, k = (i + 1) % 3, (i + 2) % 3
        quat[0] = R[k, j] - R[j, k]
        quat[1 + i] = 1.0 + R[i, i] - R[j, j] - R[k, k]
        quat[1 + j] = R[j, i] + R[i, j]
        quat[1 + k] = R[k, i] + R[i, k]
        if quat[0] < 0.0:
            for m in range(4):
                quat[m] = -quat[m]
    quaternion_normalise(quat, quat)


@jit
def rotation_exp(w, R):
    """Rotation matrix of the rotation vector w (3,) in rad: ``1 + sin t [u] + (1 - cos t) [u]^2`` (Rodrigues)."""
    square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if square < 1e-8:
        sine = 1.0 - square * (1.0 / 6.0 - square / 120.0)
        versine = 0.5 - square * (1.0 / 24.0 - square / 720.0)
    else:
        angle = math.sqrt(square)
        sine = math.sin(angle) / angle
        half = math.sin(0.5 * angle)
        versine = 2.0 * half * half / square
    for i in range(3):
        for j in range(3):
            R[i, j] = versine * w[i] * w[j]
        R[i, i] += 1.0 - versine * square
    R[0, 1] -= sine * w[2]
    R[1, 0] += sine * w[2]
    R[0, 2] += sine * w[1]
    R[2, 0] -= sine * w[1]
    R[1, 2] -= sine * w[0]
    R[2, 1] += sine * w[0]


@jit
def rotation_log(R, quat, out):
    """Rotation vector (3,) of a rotation matrix; ``quat`` (4,) is scratch and holds its quaternion afterwards."""
    matrix_to_quaternion(R, quat)
    quaternion_log(quat, out)


@jit
def rotation_error(target, R, scratch, out):
    """Compute ``log(R* R')`` (3,): the rotation vector, rad, at most pi long, world axes, that turns ``R`` into ``R*``.

    Parameters
    ----------
    target, R : (9,) row-major
    scratch : (13,)
    out : (3,)
    """
    for i in range(3):
        for j in range(3):
            scratch[3 * i + j] = (
                target[3 * i] * R[3 * j] + target[3 * i + 1] * R[3 * j + 1] + target[3 * i + 2] * R[3 * j + 2]
            )
    rotation_log(scratch[:9].reshape((3, 3)), scratch[9:13], out)


@jit
def rotation_error_rate(error, spin, out):
    """Compute ``-d/dt log(R* R')`` (3,), rad/s, of an orientation R that turns with ``spin`` (3,), world axes, rad/s.

    ::

        w + e x w / 2 + b e x (e x w),     e = log(R* R'),   b = (1 - (|e| / 2) cot(|e| / 2)) / |e|²

    Source: the inverse of the left Jacobian of SO(3), Barfoot, State Estimation for Robotics, 2017, eq. 7.77.
    """
    size = math.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
    b = 1.0 / 12.0 if size < 1e-4 else (1.0 - 0.5 * size / math.tan(0.5 * size)) / size**2
    x = error[1] * spin[2] - error[2] * spin[1]
    y = error[2] * spin[0] - error[0] * spin[2]
    z = error[0] * spin[1] - error[1] * spin[0]
    out[0] = spin[0] + 0.5 * x + b * (error[1] * z - error[2] * y)
    out[1] = spin[1] + 0.5 * y + b * (error[2] * x - error[0] * z)
    out[2] = spin[2] + 0.5 * z + b * (error[0] * y - error[1] * x)
