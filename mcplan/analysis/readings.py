"""Loads and shares of limits of a run over time: forces, torques, velocities, friction cones, margin of the CoM."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mcplan.analysis.pace import PaceOfRun
from mcplan.analysis.regions import com_limits
from mcplan.record.run import Run

MAX_INTERVALS = 600
"""Maximum number of time intervals: more points than pixels of a chart would only enlarge the page."""

LOADED_N = 1.0
"""N: minimum normal force for evaluating friction (as in the certificate)."""


@dataclass(frozen=True, eq=False)
class Readings:
    """Values of a run over equal time intervals: forces at the middle, the worst shares and margins.

    Parameters
    ----------
    run : the run.
    """

    run: Run

    @cached_property
    def pace(self) -> PaceOfRun:
        """The pace of the run; its active limits need a linear program at every evaluated point."""
        return PaceOfRun(self.run)

    @cached_property
    def edges(self) -> np.ndarray:
        """First sample of each interval, (intervals + 1,); the last is the number of samples."""
        return np.unique(np.linspace(0, len(self.run), min(MAX_INTERVALS, len(self.run)) + 1).astype(int))

    @property
    def middle(self) -> np.ndarray:
        """Sample in the middle of each interval."""
        return (self.edges[:-1] + self.edges[1:] - 1) // 2

    @cached_property
    def forces(self) -> np.ndarray:
        """Magnitude of the force on each patch, (N, P), N."""
        return np.linalg.norm(self.run.wrench[:, :, :3], axis=2)

    @cached_property
    def total(self) -> np.ndarray:
        """Magnitude of the total contact force, (N,), N."""
        return np.linalg.norm(self.run.wrench[:, :, :3].sum(axis=1), axis=1)

    @cached_property
    def cone_used(self) -> np.ndarray:
        """Used share of the friction cone, or of a grasp's maximum force, of each patch, (N, P); NaN without load."""
        columns = [cone_used(self.run, column) for column in range(len(self.run.patches))]
        return np.column_stack(columns) if columns else np.full((len(self.run), 1), np.nan)

    @cached_property
    def depth(self) -> np.ndarray:
        """Smallest distance (m) of the centre of mass to the edge of its support region; NaN in the air."""
        return self.worst(com_limits(self.run)[2], np.nanmin)

    def worst(self, values: np.ndarray, which: Callable[..., float] = np.nanmax) -> np.ndarray:
        """Return the worst of the values (N,) in each interval; NaN where there is none."""
        return np.array([np.nan if np.isnan(part).all() else which(part) for part in self._parts(values)])

    def shares(self, name: str) -> tuple[np.ndarray, list[str]]:
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


def cone_used(run: Run, column: int) -> np.ndarray:
    """Return the used share of a patch's capacity per sample, (N,); NaN without load.

    ``|f_t| / (mu f_n)`` at the worst point (1 = sliding); of a grasp, which has no cone, ``|f|`` by its largest force.
    A patch may rest on a surface and grasp a bar later: the contact is that of `Run.planned`.
    """
    grip = largest_grip(run, run.patches[column])
    force = np.linalg.norm(run.wrench[:, column, :3], axis=1)
    grip_share = np.where(run.active[:, column], force / grip, np.nan)
    return np.where(np.isnan(grip), friction_used(run, column), grip_share)


def largest_grip(run: Run, patch: str) -> np.ndarray:
    """Return the maximum force of a patch's grasp per sample, (N,), N; NaN without a grasp."""
    grasps = (contact if contact is not None and contact.kind == "grasp" else None for contact in run.planned(patch))
    limits = [None if grasp is None else grasp.max_force for grasp in grasps]
    return np.array(limits, float)[run.phase]


def friction_used(run: Run, column: int) -> np.ndarray:
    """Return |f_t| / (mu f_n) per sample at the worst loaded point of a patch; NaN if none is loaded.

    mu is that of the planned contact of the patch nearest to the phase of the sample.
    """
    used = np.full(len(run.t), np.nan)
    mu = run.patch_friction(run.patches[column])
    sample = run.point_sample()
    normal = np.einsum("ij,ij->i", run.point_force, run.point_normal)
    loaded = (run.point_patch == column) & (normal > LOADED_N) & ~np.isnan(mu[sample])
    tangential = np.linalg.norm(run.point_force - normal[:, None] * run.point_normal, axis=1)
    ratio = tangential[loaded] / (mu[sample[loaded]] * normal[loaded])
    used[sample[loaded]] = 0.0
    np.maximum.at(used, sample[loaded], ratio)
    return used
