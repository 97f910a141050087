"""Support regions of a run, and the distance of the centre of mass to their edge."""

import itertools
from collections.abc import Sequence

import numpy as np

from mcplan.planning.posture.support_cache import contact_key
from mcplan.record.run import Run
from mcplan.scene.contact import Contact
from mcplan.statics.support_region import SupportRegion, support_region


class SupportRegionCache:
    """Support regions, cached by their contacts.

    Parameters
    ----------
    mass : mass of the robot, kg.
    """

    def __init__(self, mass: float):
        self._mass = mass
        self._cache: dict[tuple, SupportRegion] = {}

    def __call__(self, contacts: Sequence[Contact]) -> SupportRegion:
        """Return the support region of these contacts."""
        key = contact_set_key(contacts)
        if key not in self._cache:
            self._cache[key] = support_region(contacts, self._mass)
        return self._cache[key]


def contact_set_key(contacts: Sequence[Contact]) -> tuple:
    """Return a cache key of contacts: poses, friction and force limits."""
    return tuple(contact_key(contact) for contact in contacts)


def contact_spans(run: Run) -> list[tuple[int, int, tuple[Contact, ...]]]:
    """Return (first, last + 1, contacts) of each interval of samples with the same contacts, in order."""
    unchanged = np.all(run.active[1:] == run.active[:-1], axis=1) & (run.phase[1:] == run.phase[:-1])
    edges = np.concatenate([[0], np.flatnonzero(~unchanged) + 1, [len(run)]])
    return [(int(i), int(j), run.contacts(int(i))) for i, j in itertools.pairwise(edges)]


def com_limits(run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the static limits of the centre of mass within the support region.

    The region is ``A c <= b`` with the horizontal position c, row by row ``A_j c <= b_j``. The limits of one coordinate
    ``c_i`` hold for the current value of the other one, ``c_k``: on each side, the nearest of
    ``(b_j - A_jk c_k) / A_ji``. Mass and friction are those of the simulation.

    Returns
    -------
    low, high : (N, 2) limits, m; NaN without a region, infinite in directions in which the region is unbounded.
    depth : (N,) distance to the nearest edge of the region, m; negative outside, NaN without a region.
    """
    low, high = np.full((len(run), 2), np.nan), np.full((len(run), 2), np.nan)
    depth = np.full(len(run), np.nan)
    regions = SupportRegionCache(run.loaded_robot.mass)
    for first, end, contacts in contact_spans(run):
        region = regions(contacts) if contacts else None
        if region is None or region.empty:
            continue
        com, rows = run.com[first:end, :2], slice(first, end)
        distance = region.b - com @ region.A.T
        depth[rows] = distance.min(axis=1)
        for axis in range(2):
            coefficient, other = region.A[:, axis], 1 - axis
            slack = region.b - np.outer(com[:, other], region.A[:, other])
            with np.errstate(divide="ignore", invalid="ignore"):
                limit = slack / coefficient
            high[rows, axis] = np.where(coefficient > 1e-9, limit, np.inf).min(axis=1)
            low[rows, axis] = np.where(coefficient < -1e-9, limit, -np.inf).max(axis=1)
    return low, high, depth
