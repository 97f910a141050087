"""Whether two programs were given the same problem: the first tick's accelerations, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcplan.model.pose import rotation_from_quat

TOLERANCE = 1e-4
"""Largest relative difference of the accelerations."""


@dataclass(frozen=True)
class Agreement:
    """Largest difference of accelerations and of torques, relative to the largest entry of the peer's."""

    acceleration: float
    torque: float

    @property
    def holds(self) -> bool:
        """Whether the accelerations agree (a NaN does not)."""
        return bool(self.acceleration <= TOLERANCE)


def compare(
    joint_names: tuple[str, ...],
    q: NDArray[np.float64],
    v: NDArray[np.float64],
    vd: NDArray[np.float64],
    tau: NDArray[np.float64],
    peer: Mapping[str, Any],
) -> Agreement:
    """Compare with what a peer found at the same state.

    Parameters
    ----------
    joint_names : of ``vd[6:]`` and ``tau``.
    q, v : the state.
    vd, tau : accelerations and torques.
    peer : ``base_local`` (6,): derivative of the base twist in base axes; ``joints``, ``tau``: by name of the joint.
    """
    theirs = np.array([*world_acceleration(q, v, peer["base_local"]), *(peer["joints"][n] for n in joint_names)])
    torques = np.array([peer["tau"][name] for name in joint_names])
    return Agreement(_relative(vd, theirs), _relative(tau, torques))


def world_acceleration(q: NDArray[np.float64], v: NDArray[np.float64], local: Any) -> NDArray[np.float64]:
    """Return ``(R a + w x v, R alpha)``: from the derivative of the base twist in base axes to ``vd`` of the base."""
    R, local = rotation_from_quat(q[3:7]), np.asarray(local, dtype=float)
    return np.concatenate([R @ local[:3] + np.cross(v[3:6], v[:3]), R @ local[3:]])


def _relative(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
