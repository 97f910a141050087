"""Linear programs one after the other, each from where the one before has ended.

    minimise c' x   subject to   E x = e,   A x <= b,   x_i >= 0 but for the free ones

Solved by HiGHS through its own interface, which takes a basis to begin with: of programs that hardly differ, such as
those of postures along a motion, each takes a few steps then. `scipy.optimize.linprog` begins every one anew.
"""

import highspy
import numpy as np
from highspy import HighsBasis, HighsBasisStatus, HighsModelStatus


class LinearPrograms:
    """Solves programs."""

    def __init__(self) -> None:
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._basis: HighsBasis | None = None

    def solve(
        self, c: np.ndarray, E: np.ndarray, e: np.ndarray, A: np.ndarray, b: np.ndarray, free: np.ndarray
    ) -> np.ndarray | None:
        """Return an optimal x (n,), or None where there is none.

        Rows at the end of A that the program before did not have begin inactive.

        Parameters
        ----------
        c : (n,); E, e : (k, n), (k,); A, b : (m, n), (m,).
        free : (n,) whether each x may be negative.
        """
        rows = np.concatenate([E, A])
        used = rows != 0.0
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = rows.shape
        model.col_cost_ = c
        model.col_lower_, model.col_upper_ = np.where(free, -np.inf, 0.0), np.full(len(c), np.inf)
        model.row_lower_, model.row_upper_ = np.append(e, np.full(len(b), -np.inf)), np.append(e, b)
        matrix = model.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = np.append(0, np.cumsum(used.sum(axis=1)))
        matrix.index_, matrix.value_ = np.nonzero(used)[1], rows[used]
        known, self._basis = self._basis, None
        if known is not None and len(known.col_status) == len(c) and len(known.row_status) <= len(rows):
            known.row_status = [*known.row_status, *[HighsBasisStatus.kBasic] * (len(rows) - len(known.row_status))]
            if (x := self._solve(model, known)) is not None:
                return x
        return self._solve(model, None)  # that there is no solution is never said because of where it was begun

    def _solve(self, model: highspy.HighsLp, begin: HighsBasis | None) -> np.ndarray | None:
        self._highs.passModel(model)
        if begin is not None:
            self._highs.setBasis(begin)
        self._highs.run()
        if self._highs.getModelStatus() != HighsModelStatus.kOptimal:
            return None
        self._basis = self._highs.getBasis()
        return np.array(self._highs.getSolution().col_value)
