"""Layout of a compiled QP: its structure in one integer array ``program``, its numbers in one float array ``work``.

Each array that Python passes to a kernel costs time. So the structure is one int64 array that starts with the offsets
of its sections, and the workspace is one float64 array, with its offsets in section ``OFFSETS``.

Equalities determine the *eliminated* variables from the *free* ones (`condense`). A *reference* to a variable is
``k >= 0`` for the k-th free variable ``z_k``, and ``-e - 1`` for the e-th eliminated one.
"""

from mcplan.core.jit import jit_view

(
    SIZES,  # SIZE .. UPPER below
    OFFSETS,  # first entry of each part of the workspace, and its length at the end
    SINGLE_ROWS,  # data that are a multiple of one parameter
    SINGLE_COLUMNS,
    GATHER_ROWS,  # other data that depend on parameters
    GATHER_POINTER,  # CSR pattern of S for these
    GATHER_COLUMNS,
    ELIMINATED_PIVOT,  # of each eliminated variable: position of its pivot
    ELIMINATED_RHS,  # position of b of its equality
    ELIMINATED_POINTER,  # CSR: the other entries of that equality, those of free variables first
    ELIMINATED_SPLIT,  # its first entry that belongs to an eliminated variable
    ELIMINATED_POSITION,
    ELIMINATED_REFERENCE,
    SUPPORT_POINTER,  # CSR: columns of T that can be non-zero
    SUPPORT,
    WIDE_SUPPORT,  # eliminated variables with wide support whose only entry in P is on the diagonal
    WIDE_POSITION,  # position of that entry
    COST_REFERENCE,  # the other variables with entries in P
    COST_POINTER,  # CSR: their rows of P
    COST_POSITION,
    COST_OTHER,  # reference of the column
    REFERENCE,  # of each x: its reference
    ROW_POINTER,  # CSR: left-hand sides of the rows
    ROW_POSITION,  # position of the coefficient, -1 for the coefficient 1
    ROW_REFERENCE,
    LIMIT_POINTER,  # CSR, two segments per row: lower limits, then upper limits
    LIMIT_POSITION,  # position of the limit; its factor is in the workspace part FACTORS
    LIMIT_DUAL,  # index of its multiplier in [rows of A, lower bounds, upper bounds]
    PREFIX,  # PREFIX[k]: number of leading rows whose first non-zero column is at most k
    ELIMINATED_ROW,  # equality of each eliminated variable
    ELIMINATED_VARIABLE,  # its index in x
    A_POINTER,  # runs of each column of A: consecutive entries, all of equalities or all of inequalities
    A_START,  # position of a run's first entry, and the number of entries at the end
    A_ROW,  # row of that entry
    P_POINTER,  # CSC pattern of P
    P_ROWS,
    SECTIONS,
) = range(37)
"""Sections of the program."""

SIZE, FREE, ELIMINATED, ROWS, EQUALITIES, INEQUALITIES, B, P, Q, D, LOWER, UPPER = range(12)
"""Entries of section SIZES: variables, free and eliminated ones, two-sided rows, rows of A; first entries in VALUES."""

(
    SINGLE_COEFFICIENTS,  # in the order of SINGLE_ROWS
    COEFFICIENTS,  # of S, in the order of GATHER_COLUMNS
    FACTORS,  # of the limits, in the order of LIMIT_POSITION
    VALUES,  # the data of the QP
    T,  # (eliminated, free) substitution x_e = T z + t
    T0,  # (eliminated,) t
    H,  # (free, free) upper triangle, then its factor U, H = U'U
    G,  # (free,) gradient
    SCRATCH,  # (free,)
    COLUMNS,  # (free, rows) G', then U^-T G'
    M,  # (rows, free) unit rows of G U^-1
    LENGTH,  # (rows,) lengths of those rows before scaling
    SHIFT,  # (rows,) scratch
    ROW_LOWER,  # (rows,) bounds of G z
    ROW_UPPER,
    LDP_LOWER,  # (rows,) bounds of M u
    LDP_UPPER,
    V,  # (free,) U^-T g
    Z,  # (free,)
    X,  # (size,)
    DUAL,  # (equalities + inequalities + 2 size,)
    GRADIENT,  # (2, size) of the Lagrangian, and the sum of the magnitudes of its terms
    ACTIVITY,  # (2, rows of A) A x + b, and the sum of the magnitudes of its terms
    RESIDUAL,  # (8,) see recover.EQUALITY ..
    PROXIMAL,  # (free,) weights of the proximal term
    KKT,  # optimality conditions with the active rows, and their factor; see warm_start.py
    KKT_SOLUTION,  # [z; y]
    PARTS,
) = range(28)
"""Parts of the workspace."""

BIG = 1e30
"""Bounds of this magnitude or more are infinite."""


@jit_view(axes=1)
def section(program, which):
    """Return one section of the program."""
    return program[which], program[which + 1] - program[which]


@jit_view(axes=1, buffer=1)
def part(program, work, which):
    """Return one part of the workspace."""
    start = program[OFFSETS] + which
    return program[start], program[start + 1] - program[start]
