"""DAQP through its C interface, for least-distance problems ``minimise 1/2 |u|^2, lower <= M u <= upper``.

DAQP's Python functions spend more time on conversion and factorization than on solving. Without Hessian and gradient
the C interface solves the least-distance problem directly, in a persistent workspace. The memory layout is that of the
versions that begin with ``SUPPORTED_VERSIONS``; a library is used only if it passes the test of ``native_available``:
defaults, workspace, and a problem with a known solution.
"""

import ctypes
import functools
import importlib.metadata
import warnings

import daqp
import numpy as np

from mcplan.core.optimize.warm_start import PRIMAL_TOLERANCE

SUPPORTED_VERSIONS = "0.11."
"""Beginning of the versions of DAQP with this memory layout; a later minor version may have another one."""

EQUALITY = 5
"""DAQP's ``sense`` of a row that is always active."""

SOLVED, NO_POINT = 1, -1
"""DAQP's exit flags: solved, infeasible; -2 is cycling, -3 unbounded, -4 iterations, -6 inconsistent equalities."""

_UPDATE_D, _UPDATE_SENSE = 8, 16
"""DAQP's bits of an update: bounds; active rows."""

_WORD_OF_M = 3
"""Index of the pointer to the rows in DAQP's workspace: after that of the problem and three sizes."""

_NO_REDUCTION = -1
"""Value of DAQP's setting ``eq_reduction`` that switches the reduction off."""

_WORKSPACE_BYTES = 4096
"""Size of the buffer for DAQP's workspace structure."""

_double_pointer, _int_pointer = ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_int)


class _Problem(ctypes.Structure):
    _fields_ = (
        ("n", ctypes.c_int), ("m", ctypes.c_int), ("ms", ctypes.c_int), ("H", ctypes.c_void_p),
        ("f", ctypes.c_void_p), ("A", ctypes.c_void_p), ("bupper", ctypes.c_void_p), ("blower", ctypes.c_void_p),
        ("sense", ctypes.c_void_p), ("break_points", ctypes.c_void_p), ("nh", ctypes.c_int),
        ("problem_type", ctypes.c_int),
    )  # fmt: skip


class _Result(ctypes.Structure):
    _fields_ = (
        ("x", ctypes.c_void_p), ("lam", ctypes.c_void_p), ("fval", ctypes.c_double), ("soft_slack", ctypes.c_double),
        ("exitflag", ctypes.c_int), ("iter", ctypes.c_int), ("nodes", ctypes.c_int), ("solve_time", ctypes.c_double),
        ("setup_time", ctypes.c_double), ("spare", ctypes.c_double * 8),
    )  # fmt: skip


class _Settings(ctypes.Structure):
    _fields_ = (
        ("primal_tol", ctypes.c_double), ("dual_tol", ctypes.c_double), ("zero_tol", ctypes.c_double),
        ("pivot_tol", ctypes.c_double), ("progress_tol", ctypes.c_double), ("cycle_tol", ctypes.c_int),
        ("iter_limit", ctypes.c_int), ("fval_bound", ctypes.c_double), ("eps_prox", ctypes.c_double),
        ("eta_prox", ctypes.c_double), ("rho_soft", ctypes.c_double), ("rel_subopt", ctypes.c_double),
        ("abs_subopt", ctypes.c_double), ("sing_tol", ctypes.c_double), ("refactor_tol", ctypes.c_double),
        ("time_limit", ctypes.c_double), ("w_soft", ctypes.c_double), ("eq_reduction", ctypes.c_int),
        ("presolve", ctypes.c_int), ("spare", ctypes.c_double * 8),
    )  # fmt: skip


class LeastDistance:
    """DAQP workspace of one size; the arrays belong to the caller and are read at every ``solve``.

    DAQP would copy and normalise ``M`` at each update, which costs more than a solve; so its pointer is set to ``M``.

    Parameters
    ----------
    M : (rows, n) C-contiguous, rows of unit length.
    lower, upper : (rows,); 1e30 is infinite.
    equality : (rows,) bool.

    Attributes
    ----------
    u, multiplier : (n,), (rows,) the solution; positive multipliers at the upper side.
    sense : (rows,) int32, DAQP's bits: the active rows that ``solve`` starts from. ``start_cold`` clears them.
    """

    def __init__(self, M: np.ndarray, lower: np.ndarray, upper: np.ndarray, equality: np.ndarray):
        rows, n = M.shape
        self.u, self.multiplier = np.zeros(n), np.zeros(rows)
        self.iterations = 0
        self._library = _library()
        self._arrays = (M, lower, upper)
        self._cold = np.where(equality, EQUALITY, 0).astype(np.int32)
        self.sense = self._cold.copy()
        self._workspace = ctypes.create_string_buffer(_WORKSPACE_BYTES)
        pointers = (a.ctypes.data for a in (M, upper, lower, self.sense))
        self._problem = _Problem(n, rows, 0, None, None, *pointers, None, 0, 0)
        self._result = _Result(self.u.ctypes.data, self.multiplier.ctypes.data)
        self._settings = _Settings()
        self._library.daqp_default_settings(ctypes.byref(self._settings))
        self._settings.primal_tol = PRIMAL_TOLERANCE
        self._settings.eq_reduction = _NO_REDUCTION
        self._arguments = (
            ctypes.c_int(_UPDATE_D | _UPDATE_SENSE),
            ctypes.byref(self._workspace),
            ctypes.byref(self._problem),
            ctypes.byref(self._result),
        )
        self._allocate(n, rows)

    def _allocate(self, n: int, rows: int) -> None:
        """Let DAQP allocate its workspace, for data that are always feasible."""
        library, workspace = self._library, self._arguments[1]
        # the settings pointer is where DAQP's own allocator puts it in an empty workspace
        library.allocate_daqp_settings(workspace)
        words = (ctypes.c_void_p * (_WORKSPACE_BYTES // ctypes.sizeof(ctypes.c_void_p))).from_buffer(self._workspace)
        used_words = [k for k, word in enumerate(words) if word]
        if len(used_words) != 1:
            raise RuntimeError("DAQP's workspace has an unexpected layout")
        ctypes.memmove(int(words[used_words[0]] or 0), ctypes.byref(self._settings), _Settings.spare.offset)
        M, lower, upper = self._arrays
        M[:], lower[:], upper[:], self.sense[:] = 0.0, -1.0, 1.0, 0
        flag = library.setup_daqp(self._arguments[2], workspace, None)
        self.start_cold()
        if flag < 0:
            raise RuntimeError(f"DAQP's set-up failed with {flag}")
        self._words, head = words, (ctypes.c_int * 3).from_buffer(self._workspace, 8)
        if list(head) != [n, rows, 0] or not words[_WORD_OF_M]:
            raise RuntimeError("DAQP's workspace has an unexpected layout")
        self._own_M, words[_WORD_OF_M] = words[_WORD_OF_M], M.ctypes.data

    def start_cold(self) -> None:
        """Make the next ``solve`` a cold start, from the equalities only."""
        self.sense[:] = self._cold

    def solve(self) -> int:
        """Solve with the present contents of the arrays; return DAQP's exit flag, ``u`` and ``multiplier`` are set."""
        update, workspace, problem, result = self._arguments
        flag = self._library.daqp_update_ldp(update, workspace, problem)
        if flag < 0:
            return flag
        self._library.daqp_solve(result, workspace)
        return self._result.exitflag

    def __del__(self):
        library = getattr(self, "_library", None)
        if library is not None and hasattr(self, "_arguments"):
            if hasattr(self, "_own_M"):
                self._words[_WORD_OF_M] = self._own_M
            library.free_daqp_ldp(self._arguments[1])
            library.free_daqp_workspace(self._arguments[1])


@functools.cache
def _library():
    """Load the shared library of the installed daqp package and declare the functions that are used."""
    library = ctypes.PyDLL(daqp.__file__)
    pointer = ctypes.c_void_p
    for name, arguments, result in (
        ("daqp_default_settings", (pointer,), None),
        ("allocate_daqp_settings", (pointer,), None),
        ("setup_daqp", (pointer, pointer, pointer), ctypes.c_int),
        ("daqp_update_ldp", (ctypes.c_int, pointer, pointer), ctypes.c_int),
        ("daqp_solve", (pointer, pointer), None),
        ("free_daqp_ldp", (pointer,), None),
        ("free_daqp_workspace", (pointer,), None),
    ):
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library


@functools.cache
def native_available() -> bool:
    """Return whether the C interface can be used; otherwise warn once that programs take longer."""
    version = importlib.metadata.version("daqp")
    reason = _unsupported_reason(version)
    if reason:
        message = f"daqp {version}: {reason}; programs are solved through its Python interface, which takes longer"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return not reason


def _unsupported_reason(version: str) -> str:
    """Return why the C interface of a version cannot be used, or an empty text."""
    if not version.startswith(SUPPORTED_VERSIONS):
        return f"its layout in memory is not known, only that of {SUPPORTED_VERSIONS}x"
    try:
        settings = _Settings()
        _library().daqp_default_settings(ctypes.byref(settings))
        defaults = (settings.primal_tol, settings.dual_tol, settings.cycle_tol, settings.iter_limit)
        if defaults != (1e-6, 1e-12, 10, 10000):
            return f"its default settings are {defaults}"
        M, lower, upper = np.zeros((2, 2)), np.zeros(2), np.zeros(2)
        solver = LeastDistance(M, lower, upper, np.array([True, False]))
        M[:], lower[:], upper[:] = [[0.6, 0.8], [1.0, 0.0]], [1.0, 0.9], [1.0, 1e30]
        right = solver.solve() == SOLVED and bool(np.allclose(solver.u, [0.9, 0.575], atol=1e-12))
        return "" if right else "a problem with a known solution came out otherwise"
    except (AttributeError, OSError, RuntimeError) as error:
        return str(error)
