"""Collision avoidance constraint of the whole-body program: acceleration inequalities with a fixed number of rows."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcplan.core.algebra.consistent_rows import NEUTRAL
from mcplan.core.whole_body.avoidance import fill_avoidance_rows
from mcplan.errors import InputError
from mcplan.robot.terms import Terms

Array = NDArray[np.float64]


class NameSequence(Protocol):
    """Sequence of names: a list, or names that are computed on access."""

    def __getitem__(self, i: int, /) -> str:
        """Return the name with index ``i``."""


DECELERATION_M_S2 = 3.0
"""Available deceleration of a distance (m/s²)."""

RECOVERY_TIME_S = 0.1
"""Time constant with which a pair that is too close returns to its least distance (s)."""


class CollisionAvoidance:
    """Rows ``d'' >= a(d, d')`` of nearby pairs; ``d' = J v``, ``d'' = J vd + bias``, ``J = n' (J_a - J_b)``.

    ``d`` is the distance of a pair and ``n`` the unit vector between its nearest points, from b to a. The lower bound
    is that of a joint at a limit (``viable_acceleration``): the pair can always be stopped before ``safe`` with the
    deceleration ``braking``; nearer than ``safe`` it separates again. With ``g = d - safe`` and ``b = braking``::

        a = (-v_max(g) - d') / dt
        v_max = -b dt + sqrt((b dt)² + 2 b g)   (g >= 0),   g / recovery   (g < 0)

    Rows without a pair are ``0 >= -1``, so that the declared problem does not depend on the number of near pairs. The
    caller provides distances and gradients at each tick, for example from a collision model::

        near = model.constraint_rows(q, influence, contacts)
        avoidance.set_pairs(near.distance, near.rows, names=[str(pair) for pair in near.pairs])

    Parameters
    ----------
    slots : number of rows, which is the largest number of near pairs.
    safe : least distance, m.
    influence : pairs farther apart than this get no row, m. It must exceed the stopping distance ``v² / (2 braking)``.
    braking : available deceleration of the distance, m/s².
    ceiling : largest acceleration that a row demands, m/s².
    recovery : time constant with which a pair nearer than ``safe`` separates, s.
    dt : control period, s.
    """

    frames: tuple[str, ...] = ()

    def __init__(
        self,
        slots: int,
        safe: float = 0.02,
        influence: float = 0.3,
        braking: float = DECELERATION_M_S2,
        ceiling: float = 100.0,
        recovery: float = RECOVERY_TIME_S,
        dt: float = 1e-3,
    ):
        if slots < 1:
            raise InputError(f"collision avoidance with {slots} rows, expected 1 or more")
        if influence <= safe:
            raise InputError(f"collision avoidance from {influence} m on, expected more than the distance kept, {safe}")
        self.slots, self.safe, self.influence = slots, safe, influence
        self.braking, self.ceiling, self.recovery, self.dt = braking, ceiling, recovery, dt
        self.active = self.ignored = 0
        self._distance, self._bias, self._J = np.zeros(0), np.zeros(0), np.zeros((0, 0))
        self._pairs: NameSequence | None = None
        self._lower_bounds, self._selected = np.zeros(slots), np.zeros(slots, dtype=np.int64)

    @property
    def dimension(self) -> int:
        """Number of rows."""
        return self.slots

    def set_pairs(
        self, distance: ArrayLike, J: ArrayLike, bias: ArrayLike | None = None, names: NameSequence | None = None
    ) -> None:
        """Set the pairs of this tick; those within ``influence`` count.

        Parameters
        ----------
        distance : (k,) m, negative when the bodies penetrate.
        J : (k, nv) gradients of the distances with respect to ``v``, or to its first entries, those of the robot.
        bias : (k,) ``Jdot v``, m/s²; None: neglected.
        names : (k,) names of the pairs, for explanations.
        """
        d, J = np.asarray(distance, dtype=np.float64), np.asarray(J, dtype=np.float64)
        if J.ndim != 2 or len(J) != len(d):
            raise InputError(f"collision avoidance: {d.shape} distances and gradients of shape {J.shape} do not fit")
        self._distance, self._J = np.ascontiguousarray(d), np.ascontiguousarray(J)
        self._bias = np.zeros(len(d)) if bias is None else np.ascontiguousarray(bias, dtype=np.float64)
        self._pairs = names

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b`` of ``A vd >= b``; the pairs with the largest lower bounds get the rows.

        Notes
        -----
        Sets ``active``, the number of rows with a pair, ``ignored``, the number of pairs without a row, and ``names``.
        """
        A, b = np.zeros((self.slots, len(terms.v))), np.full(self.slots, NEUTRAL)
        v = terms.v[: self._J.shape[1]]
        indices = np.arange(len(self._distance))
        count = fill_avoidance_rows(
            self._distance, self._J, self._bias, v, indices, indices, self.safe, self.influence, self.dt,
            np.full(len(indices), self.braking), self.ceiling, self.recovery, self._lower_bounds, self._selected, A, b,
        )  # fmt: skip
        self.active, self.ignored = min(count, self.slots), max(0, count - self.slots)
        return A, b

    @property
    def names(self) -> list[str]:
        """Name of each row: the distance of its pair."""
        selected = self._selected[: self.active].tolist()
        return row_names([f"pair {i}" if self._pairs is None else self._pairs[i] for i in selected], self.slots)


def row_names(pairs: Sequence[object], slots: int) -> list[str]:
    """Return the names of ``slots`` rows; the first of them have the pairs ``pairs``."""
    return [f"distance of {pair}" for pair in pairs] + [f"distance, row {slot}" for slot in range(len(pairs), slots)]


class AccelerationLimit(Protocol):
    """Interface of a limit: rows ``A vd >= b``, whose number never changes, so the declared problem stays the same."""

    @property
    def dimension(self) -> int:
        """Number of rows."""

    @property
    def frames(self) -> tuple[str, ...]:
        """Frames whose terms the limit reads."""

    @property
    def names(self) -> Sequence[str]:
        """Name of each row, for the explanation of a failure."""

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A (m, nv)`` and ``b (m,)``."""
