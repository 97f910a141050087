"""Terms: dynamics, centre of mass, momentum and frames at one state, computed by one kernel call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body import terms as packed
from mcplan.core.rigid_body.tree import Tree, workspace
from mcplan.errors import InputError
from mcplan.util.text import summary


class HasTree(Protocol):
    """Interface of robots for Terms."""

    @property
    def tree(self) -> Tree:
        """The mechanism."""

    def frame(self, name: str) -> tuple[int, np.ndarray]:
        """Return the body that carries a frame, and the frame's pose in it (12,)."""
        ...


@dataclass(frozen=True)
class FrameTerms:
    """One frame at the state of its Terms; all fields are views that the next update overwrites."""

    R: np.ndarray  # (3, 3) rotation in the world
    p: np.ndarray  # (3,) m, position in the world
    J: np.ndarray  # (6, nv) Jacobian: linear then angular, world axes, at the frame's origin
    bias: np.ndarray  # (6,) Jdot v, classical acceleration
    velocity: np.ndarray  # (6,) J v


class Terms:
    """Dynamics, centre of mass, momentum and frames of a robot at one state.

    ``M vd + h = S' tau + sum J' w``,  ``c'' = J_c vd + com_bias``,  ``l' = A vd + momentum_bias``

    Parameters
    ----------
    robot : the robot, or anything with its ``tree`` and ``frame(name)``
    frames : names of links and patches; their pose, Jacobian and bias are computed

    Attributes
    ----------
    q, v : (nq,), (nv,) state of the last update
    M, h : (nv, nv), (nv,) mass matrix with armature, Coriolis and gravity forces
    com, com_velocity, com_bias : (3,) m, m/s, m/s²
    com_jacobian : (3, nv)
    momentum, momentum_bias : (6,) linear then angular about the centre of mass, and ``Adot v``
    momentum_matrix : (6, nv)
    """

    __repr__ = summary

    def __init__(self, robot: HasTree, frames: Sequence[str] = ()):
        self._tree = tree = robot.tree
        self.frame_names = tuple(dict.fromkeys(frames))
        nv, count = len(tree.armature), len(self.frame_names)
        places = [robot.frame(name) for name in self.frame_names]
        self._body = np.array([body for body, _ in places], dtype=np.int64)
        self._offset = np.array([offset for _, offset in places], dtype=float).reshape(count, 12)
        self._work = workspace(tree)
        self._allocate(nv + 1, nv)

    def _allocate(self, nq: int, nv: int) -> None:
        """Allocate the arrays for the frames in ``frame_names``, and views on them."""
        count = len(self.frame_names)
        self.q = np.full(nq, np.nan)
        self.v = np.full(nv, np.nan)
        self.M = np.zeros((nv, nv))
        self.h = np.zeros(nv)
        self._rows = np.zeros((9, nv))
        self._summary = np.zeros(packed.SUMMARY_SIZE)
        self._J = np.zeros((count, 6, nv))
        self._values = np.zeros((count, packed.FRAME_SIZE))
        self.momentum_matrix = self._rows[:6]
        self.com_jacobian = self._rows[6:]
        self.com = self._summary[packed.COM_POSITION : packed.COM_VELOCITY]
        self.com_velocity = self._summary[packed.COM_VELOCITY : packed.COM_BIAS]
        self.com_bias = self._summary[packed.COM_BIAS : packed.MOMENTUM]
        self.momentum = self._summary[packed.MOMENTUM : packed.MOMENTUM_BIAS]
        self.momentum_bias = self._summary[packed.MOMENTUM_BIAS :]
        self._frames = {
            name: FrameTerms(
                R=row[packed.FRAME_R : packed.FRAME_P].reshape(3, 3),
                p=row[packed.FRAME_P : packed.FRAME_VELOCITY],
                J=J,
                bias=row[packed.FRAME_BIAS :],
                velocity=row[packed.FRAME_VELOCITY : packed.FRAME_BIAS],
            )
            for name, row, J in zip(self.frame_names, self._values, self._J, strict=True)
        }

    def frame(self, name: str) -> FrameTerms:
        """Return the views on one of the frames named at construction."""
        try:
            return self._frames[name]
        except KeyError:
            known = ", ".join(self.frame_names) or "none"
            raise InputError(f"frame {name!r} is not among those of these terms: {known}") from None

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Inputs of other kernels: q, v, M, h, A (9, nv), summary, J (frames, 6, nv), frames; see ``core.terms``."""
        return self.q, self.v, self.M, self.h, self._rows, self._summary, self._J, self._values

    def update(self, q: ArrayLike, v: ArrayLike) -> None:
        """Compute all terms for the state (q, v); this overwrites arrays returned before."""
        for value, stored, name in ((q, self.q, "q"), (v, self.v, "v")):
            if np.shape(value) != stored.shape:
                raise InputError(f"{name} has shape {np.shape(value)}, expected {stored.shape}")
            stored[:] = value
        packed.fill_terms(
            self._tree,
            self.q,
            self.v,
            self._body,
            self._offset,
            self._work,
            self.M,
            self.h,
            self._rows,
            self._summary,
            self._J,
            self._values,
        )
