"""Sums of products over contiguous entries, the loops that compilers vectorise."""

from mcplan.core.jit import jit_algebra, jit_view


@jit_view(axes=1)
def segment(array, first, length):
    """Return ``length`` entries of an array from ``first`` on."""
    return first, length


@jit_algebra
def add_products(x, first, step, count, Y, start, stride, out):
    """Add ``sum_k x_k Y_kj`` to ``out_j``; entries of x begin at ``first``, rows of Y at ``start``."""
    k = 0
    while k + 4 <= count:
        a, b, c, d = x[first], x[first + step], x[first + 2 * step], x[first + 3 * step]
        if not a == b == c == d == 0.0:
            p, q = segment(Y, start, out.size), segment(Y, start + stride, out.size)
            r, s = segment(Y, start + 2 * stride, out.size), segment(Y, start + 3 * stride, out.size)
            for j in range(out.size):
                out[j] += a * p[j] + b * q[j] + c * r[j] + d * s[j]
        first, start, k = first + 4 * step, start + 4 * stride, k + 4
    while k < count:
        a, p = x[first], segment(Y, start, out.size)
        if a != 0.0:
            for j in range(out.size):
                out[j] += a * p[j]
        first, start, k = first + step, start + stride, k + 1


@jit_algebra
def dot(a, b):
    """Return the inner product of two arrays."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total
