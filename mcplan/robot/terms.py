"""Terms: dynamics, centre of mass, momentum and frames at one state, computed by one kernel call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body import terms as kernels
from mcplan.core.rigid_body.tree import Tree, workspace
from mcplan.errors import InputError
from mcplan.util.text import summary


class HasTree(Protocol):
    """Interface that `Terms` needs of a robot."""

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
    robot : a robot, or another object with ``tree`` and ``frame(name)``
    frames : names of the links and patches whose pose, velocity, Jacobian and bias are computed

    Attributes
    ----------
    q, v : (nq,), (nv,) state of the last update
    M, h : (nv, nv), (nv,) mass matrix with armature; Coriolis, centrifugal and gravity forces
    com, com_velocity, com_bias : (3,) centre of mass c, its velocity, and ``Jdot_c v``; m, m/s, m/s²
    com_jacobian : (3, nv) ``J_c``
    momentum, momentum_bias : (6,) linear and angular momentum l about the centre of mass, and ``Adot v``
    momentum_matrix : (6, nv) ``A``
    centroidal : com to momentum_bias in one array, as ``core.rigid_body.terms`` fills it
    arguments : those of the kernel ``fill_terms``
    """

    __repr__ = summary

    def __init__(self, robot: HasTree, frames: Sequence[str] = ()):
        self._tree = tree = robot.tree
        self.frame_names = tuple(dict.fromkeys(frames))
        nv, count = len(tree.armature), len(self.frame_names)
        frames_in_bodies = [robot.frame(name) for name in self.frame_names]
        self._body = np.array([body for body, _ in frames_in_bodies], dtype=np.int64)
        self._offset = np.array([offset for _, offset in frames_in_bodies], dtype=float).reshape(count, 12)
        self._work = workspace(tree)
        self._allocate(nv + 1, nv)
        self.set_state(self.q, self.v)

    def set_state(self, q: np.ndarray, v: np.ndarray) -> None:
        """Set the arrays of the state, which ``update`` writes or their owner does."""
        self.q, self.v = q, v
        self.arguments = (
            *self._tree, q, v, self._body, self._offset, self._work, self.M, self.h, self._rows, self.centroidal,
            self._J, self._values,
        )  # fmt: skip

    def _allocate(self, nq: int, nv: int) -> None:
        """Allocate the arrays of all terms for the frames in ``frame_names``, and views of them."""
        count = len(self.frame_names)
        self.q = np.full(nq, np.nan)
        self.v = np.full(nv, np.nan)
        self.M = np.zeros((nv, nv))
        self.h = np.zeros(nv)
        self._rows = np.zeros((9, nv))
        self.centroidal = np.zeros(kernels.SUMMARY_SIZE)
        self._J = np.zeros((count, 6, nv))
        self._values = np.zeros((count, kernels.FRAME_SIZE))
        self.momentum_matrix = self._rows[:6]
        self.com_jacobian = self._rows[6:]
        self.com = self.centroidal[kernels.COM_POSITION : kernels.COM_VELOCITY]
        self.com_velocity = self.centroidal[kernels.COM_VELOCITY : kernels.COM_BIAS]
        self.com_bias = self.centroidal[kernels.COM_BIAS : kernels.MOMENTUM]
        self.momentum = self.centroidal[kernels.MOMENTUM : kernels.MOMENTUM_BIAS]
        self.momentum_bias = self.centroidal[kernels.MOMENTUM_BIAS :]
        self._frames = {
            name: FrameTerms(
                R=row[kernels.FRAME_R : kernels.FRAME_P].reshape(3, 3),
                p=row[kernels.FRAME_P : kernels.FRAME_VELOCITY],
                J=J,
                bias=row[kernels.FRAME_BIAS :],
                velocity=row[kernels.FRAME_VELOCITY : kernels.FRAME_BIAS],
            )
            for name, row, J in zip(self.frame_names, self._values, self._J, strict=True)
        }

    def frame(self, name: str) -> FrameTerms:
        """Return the terms of one of the frames named at construction."""
        try:
            return self._frames[name]
        except KeyError:
            names = ", ".join(self.frame_names) or "none"
            raise InputError(f"frame {name!r} is not among those of these terms: {names}") from None

    def frame_values(self, name: str) -> np.ndarray:
        """Return pose, velocity and bias (24,) of a frame, see ``core.rigid_body.terms``."""
        return self._values[self.frame_names.index(name)]

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All arrays, as inputs of other kernels.

        They are q, v, M, h, the rows of A and J_c (9, nv), centre of mass and momentum, J (frames, 6, nv) and the other
        values of frames; see ``core.rigid_body.terms``.
        """
        return self.q, self.v, self.M, self.h, self._rows, self.centroidal, self._J, self._values

    def update(self, q: ArrayLike, v: ArrayLike) -> None:
        """Compute all terms for the state (q, v); the arrays of the last state are overwritten."""
        q, v = np.asarray(q, float), np.asarray(v, float)
        if q.shape != self.q.shape or v.shape != self.v.shape:
            name, value, target = ("v", v, self.v) if q.shape == self.q.shape else ("q", q, self.q)
            raise InputError(f"{name} has shape {value.shape}, expected {target.shape}")
        self.q[:], self.v[:] = q, v
        kernels.fill_terms(*self.arguments)
