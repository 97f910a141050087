"""Loads of a run over time, and used shares of its limits: forces, torques, velocities, friction cones, CoM margin."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mcplan.analysis.pace import PaceOfRun
from mcplan.analysis.regions import com_limits
from mcplan.record.run import Run

MAX_INTERVALS = 600
"""Maximum number of time intervals: more points than a chart has pixels would only enlarge the page."""

LOADED_N = 1.0
"""N: minimum normal force for evaluating friction (as in the certificate)."""


@dataclass(frozen=True, eq=False)
class Readings:
    """Values of a run over equal time intervals: forces in the middle, and the worst shares and margins.

    Parameters
    ----------
    run : the run.
    """

    run: Run

    @cached_property
    def pace(self) -> PaceOfRun:
        """Pace of the run, cached: its active limits need a linear program for every evaluated point."""
        return PaceOfRun(self.run)

    @cached_property
    def edges(self) -> np.ndarray:
        """First sample of each interval, (intervals + 1,); the last is the number of samples."""
        return np.unique(np.linspace(0, len(self.run), min(MAX_INTERVALS, len(self.run)) + 1).astype(int))

    @property
    def sample_indices(self) -> np.ndarray:
        """Index of the middle sample of each interval."""
        return (self.edges[:-1] + self.edges[1:] - 1) // 2

    @cached_property
    def forces(self) -> np.ndarray:
        """Magnitude of the force on each patch, (N, P), N."""
        return np.linalg.norm(self.run.wrench[:, :, :3], axis=2)

    @cached_property
    def total_force(self) -> np.ndarray:
        """Magnitude of the total contact force, (N,), N."""
        return np.linalg.norm(self.run.wrench[:, :, :3].sum(axis=1), axis=1)

    @cached_property
    def cone_share(self) -> np.ndarray:
        """Share of its friction cone (grasp: of its maximum force) that each patch uses, (N, P); NaN without load."""
        columns = [cone_share(self.run, column) for column in range(len(self.run.patches))]
        return np.column_stack(columns) if columns else np.full((len(self.run), 1), np.nan)

    @cached_property
    def com_depth(self) -> np.ndarray:
        """Smallest distance (m) of the centre of mass to the edge of its support region; NaN in the air."""
        return self.worst_in_interval(com_limits(self.run)[2], np.nanmin)

    def worst_in_interval(self, values: np.ndarray, which: Callable[..., float] = np.nanmax) -> np.ndarray:
        """Return the worst of the values (N,) in each interval; NaN where there is none."""
        return np.array([np.nan if np.isnan(part).all() else which(part) for part in self._parts(values)])

    def limit_shares(self, name: str) -> tuple[np.ndarray, list[str]]:
        """Return the largest share of ``torque`` or ``velocity`` limits in each interval, and its joint."""
        run = self.run
        values = run.tau if name == "torque" else run.v[:, 6:]
        limit = run.record.robot.limit(name)
        share = np.divide(np.abs(values), limit, out=np.zeros_like(values), where=(limit > 0) & np.isfinite(limit))
        if not share.shape[1]:
            return np.zeros(0), []
        peaks = np.array([part.max(axis=0) for part in self._parts(share)])
        return peaks.max(axis=1), [run.record.joints[i] for i in peaks.argmax(axis=1)]

    def _parts(self, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, self.edges[1:-1])


def cone_share(run: Run, column: int) -> np.ndarray:
    """Return the share of its friction cone that a patch uses, per sample, (N,); NaN without load.

    This is ``|f_t| / (mu f_n)`` at the worst point; at 1 the contact slides. A grasp has no cone: there it is the force
    divided by the maximum force. A patch may rest on a surface first and grasp a bar later, as in `Run.planned`.
    """
    grip = max_grip_force(run, run.patches[column])
    force = np.linalg.norm(run.wrench[:, column, :3], axis=1)
    grip_share = np.where(run.active[:, column], force / grip, np.nan)
    return np.where(np.isnan(grip), friction_share(run, column), grip_share)


def max_grip_force(run: Run, patch: str) -> np.ndarray:
    """Return the maximum force of a patch's grasp per sample, (N,), N; NaN without a grasp."""
    grasps = (contact if contact is not None and contact.kind == "grasp" else None for contact in run.planned(patch))
    limits = [None if grasp is None else grasp.max_force for grasp in grasps]
    return np.array(limits, float)[run.phase]


def friction_share(run: Run, column: int) -> np.ndarray:
    """Return ``|f_t| / (mu f_n)`` per sample at the worst loaded point of a patch; NaN if none is loaded.

    mu is the friction coefficient of the planned contact of the patch that is nearest to the phase of the sample.
    """
    share = np.full(len(run.t), np.nan)
    mu = run.patch_friction(run.patches[column])
    sample = run.point_sample()
    normal = np.einsum("ij,ij->i", run.point_force, run.point_normal)
    loaded = (run.point_patch == column) & (normal > LOADED_N) & ~np.isnan(mu[sample])
    tangential = np.linalg.norm(run.point_force - normal[:, None] * run.point_normal, axis=1)
    ratio = tangential[loaded] / (mu[sample[loaded]] * normal[loaded])
    share[sample[loaded]] = 0.0
    np.maximum.at(share, sample[loaded], ratio)
    return share
