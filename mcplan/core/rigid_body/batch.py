"""Batched dynamics: many configurations at once, in parallel on several cores.

Arguments are those of the kernel of the same name with a leading axis (B, ...). ``work`` (chunks, rows, columns) has
one workspace per chunk of the batch (``tree.workspaces``), as many as there are cores to use.
"""

from mcplan.core.jit import jit_parallel, prange
from mcplan.core.rigid_body import (
    com as momentum,
    com as of_mass,
    forward_dynamics as forward,
    frame,
    inverse_dynamics as inverse,
    mass_matrix as inertia,
)

_mass_matrix = inertia.mass_matrix
_nonlinear_effects = inverse.nonlinear_effects
_inverse_dynamics = inverse.inverse_dynamics
_forward_dynamics = forward.forward_dynamics
_com = of_mass.com
_com_jacobian = of_mass.com_jacobian
_momentum_matrix = momentum.centroidal_momentum_matrix
_frame_pose = frame.frame_pose
_frame_jacobian = frame.frame_jacobian
_frame_bias_acceleration = frame.frame_bias_acceleration


@jit_parallel
def mass_matrix(tree, q, work, M):
    """Mass matrices M (B, nv, nv) at q (B, nq)."""
    size, chunks = len(q), len(work)
    for c in prange(chunks):
        for b in range(c * size // chunks, (c + 1) * size // chunks):
            _mass_matrix(tree, q[b], work[c], M[b])


@jit_parallel
def nonlinear_effects(tree, q, v, work, h):
    """Coriolis and gravity forces h (B, nv)."""
    size, chunks = len(q), len(work)
    for c in prange(chunks):
        for b in range(c * size // chunks, (c + 1) * size // chunks):
            _nonlinear_effects(tree, q[b], v[b], work[c], h[b])


@jit_parallel
def inverse_dynamics(tree, q, v, vd, work, force):
    """Generalized forces (B, nv) that cause the accelerations."""
    size, chunks = len(q), len(work)
    for c in prange(chunks):
        for b in range(c * size // chunks, (c + 1) * size // chunks):
            _inverse_dynamics(tree, q[b], v[b], vd[b], work[c], force[b])


@jit_parallel
def forward_dynamics(tree, q, v, force, work, M, vd):
    """Accelerations vd (B, nv); M (chunks, nv, nv) is scratch."""
    size, chunks = len(q), len(work)
    for c in prange(chunks):
        for b in range(c * size // chunks, (c + 1) * size // chunks):
            _forward_dynamics(tree, q[b], v[b], force[b], work[c], M[c], vd[b])


@jit_parallel
def com(tree, q, work, c):
    """Centres of mass c (B, 3)."""
    size, chunks = len(q), len(work)
    for k in prange(chunks):
        for b in range(k * size // chunks, (k + 1) * size // chunks):
            _com(tree, q[b], work[k], c[b])


@jit_parallel
def com_jacobian(tree, q, work, c, J):
    """Centres of mass c (B, 3) and their Jacobians J (B, 3, nv)."""
    size, chunks = len(q), len(work)
    for k in prange(chunks):
        for b in range(k * size // chunks, (k + 1) * size // chunks):
            _com_jacobian(tree, q[b], work[k], c[b], J[b])


@jit_parallel
def centroidal_momentum_matrix(tree, q, work, A):
    """Centroidal momentum matrices A (B, 6, nv)."""
    size, chunks = len(q), len(work)
    for c in prange(chunks):
        for b in range(c * size // chunks, (c + 1) * size // chunks):
            _momentum_matrix(tree, q[b], work[c], A[b])


@jit_parallel
def frame_pose(tree, q, body, offset, work, X):
    """Poses X (B, 4, 4) of one frame."""
    size, chunks = len(q), len(work)
    for c in prange(chunks):
        for b in range(c * size // chunks, (c + 1) * size // chunks):
            _frame_pose(tree, q[b], body, offset, work[c], X[b])


@jit_parallel
def frame_jacobian(tree, q, body, offset, work, J):
    """Jacobians J (B, 6, nv) of one frame."""
    size, chunks = len(q), len(work)
    for c in prange(chunks):
        for b in range(c * size // chunks, (c + 1) * size // chunks):
            _frame_jacobian(tree, q[b], body, offset, work[c], J[b])


@jit_parallel
def frame_bias_acceleration(tree, q, v, body, offset, work, a):
    """Classical accelerations a (B, 6) of one frame at zero vd."""
    size, chunks = len(q), len(work)
    for c in prange(chunks):
        for b in range(c * size // chunks, (c + 1) * size // chunks):
            _frame_bias_acceleration(tree, q[b], v[b], body, offset, work[c], a[b])
