"""Pairs of bodies keep their distance: an inequality on the accelerations, with a fixed number of rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcplan.errors import InputError
from mcplan.model.terms import Terms
from mcplan.qp.joint_bounds import viable_acceleration

Array = NDArray[np.float64]

NEUTRAL = -1.0
"""Right-hand side of a row without a pair: ``0 >= -1``."""


class CollisionAvoidance:
    """``ddot >= ddot_min(d, ddot)`` for the pairs that are near, where ``ddot = J vd + bias``, ``J = n' (J_a - J_b)``.

    ``d`` is the distance of a pair and ``n`` the unit vector between its nearest points, from b to a. The lower bound
    is that of a joint at a limit (``viable_acceleration``): the pair can always be stopped before ``safe`` with the
    deceleration ``braking``, and then needs no more than that; nearer than ``safe`` it parts again. Written out, with
    ``g = d - safe`` and ``b = braking``::

        ddot_min = (-v_max(g) - ddot) / dt
        v_max = -b dt + sqrt((b dt)² + 2 b g)   (g >= 0),   g / recovery   (g < 0)

    Rows without a pair say ``0 >= -1``, so that the declared problem is the same whatever is near.

    Parameters
    ----------
    slots : number of rows: as many pairs as may be near at a time.
    safe : m, distance that is kept.
    influence : m, pairs farther apart than this get no row. It must leave room to stop: ``v² / (2 braking)``.
    braking : m/s², deceleration of the distance that can be counted on.
    ceiling : m/s², the most that a row asks for.
    recovery : s, time constant of the return from nearer than ``safe``.
    dt : s, control period.
    """

    frames: tuple[str, ...] = ()

    def __init__(
        self,
        slots: int,
        safe: float = 0.02,
        influence: float = 0.3,
        braking: float = 3.0,
        ceiling: float = 100.0,
        recovery: float = 0.1,
        dt: float = 1e-3,
    ):
        if slots < 1:
            raise InputError(f"collision avoidance with {slots} rows, expected 1 or more")
        if influence <= safe:
            raise InputError(f"collision avoidance from {influence} m on, expected more than the distance kept, {safe}")
        self.slots, self.safe, self.influence = slots, safe, influence
        self.braking, self.ceiling, self.recovery, self.dt = braking, ceiling, recovery, dt
        self.names: list[str] = [f"distance {slot}" for slot in range(slots)]
        self.active = 0
        self.ignored = 0
        self._distance, self._bias = np.zeros(slots), np.zeros(slots)
        self._J: Array | None = None

    @property
    def dimension(self) -> int:
        """Number of rows."""
        return self.slots

    def set_pairs(
        self, distance: ArrayLike, J: ArrayLike, bias: ArrayLike | None = None, names: Sequence[str] | None = None
    ) -> None:
        """Give the pairs of this tick; the nearest within ``influence`` get the rows.

        Parameters
        ----------
        distance : (k,) m, negative when the bodies penetrate.
        J : (k, nv) gradients of the distances with respect to ``v``.
        bias : (k,) ``Jdot v``, m/s²; None: neglected.
        names : (k) of the pairs, for explanations.

        Notes
        -----
        ``active`` then says how many rows have a pair, ``ignored`` how many near pairs found no row.
        """
        d, rows = np.asarray(distance, dtype=np.float64), np.asarray(J, dtype=np.float64)
        if rows.ndim != 2 or len(rows) != len(d):
            raise InputError(f"collision avoidance: {d.shape} distances and gradients of shape {rows.shape} do not fit")
        near = np.argsort(d, kind="stable")
        near = near[d[near] < self.influence]
        self.ignored, near = max(0, len(near) - self.slots), near[: self.slots]
        self.active = k = len(near)
        if self._J is None or self._J.shape[1] != rows.shape[1]:
            self._J = np.zeros((self.slots, rows.shape[1]))
        self._J[k:] = 0.0
        self._J[:k], self._distance[:k] = rows[near], d[near]
        self._bias[:k] = 0.0 if bias is None else np.asarray(bias, dtype=np.float64)[near]
        self.names = [f"distance of {names[i]}" if names else f"distance {i}" for i in near.tolist()]
        self.names += [f"distance, row {slot}" for slot in range(k, self.slots)]

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b`` of ``A vd >= b``."""
        k, lower = self.active, np.full(self.slots, NEUTRAL)
        if self._J is None:
            return np.zeros((self.slots, len(terms.v))), lower
        if k:
            unlimited = np.full(k, np.inf)
            wanted, _ = viable_acceleration(
                self._distance[:k],
                self._J[:k] @ terms.v,
                np.full(k, self.safe),
                unlimited,
                unlimited,
                self.dt,
                self.braking,
                self.ceiling,
                self.recovery,
            )
            lower[:k] = wanted - self._bias[:k]
        return self._J, lower
