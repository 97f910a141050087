"""What a run's pages tell beside its picture: loads and shares of limits over time, few enough values for a page."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mcplan.analysis.pace import PaceOfRun
from mcplan.analysis.regions import com_limits
from mcplan.record.run import Run
from mcplan.view.palette import LIMITS, PATCHES

MOST = 600
"""Intervals of time of which a page has a value."""

LOADED = 1.0
"""Friction is judged at points with more normal force than this, N (the rule of the certificate)."""


@dataclass(frozen=True, eq=False)
class Readings:
    """Values of a run over equal intervals of time: forces at their middle, of shares and margins the worst.

    Parameters
    ----------
    run : the run.
    """

    run: Run

    @cached_property
    def pace(self) -> PaceOfRun:
        """The pace of the run; what bounds it is a linear program per place of every motion."""
        return PaceOfRun(self.run)

    @cached_property
    def edges(self) -> np.ndarray:
        """First sample of each interval, (intervals + 1,); the last is the number of samples."""
        return np.unique(np.linspace(0, len(self.run), min(MOST, len(self.run)) + 1).astype(int))

    @property
    def middle(self) -> np.ndarray:
        """Sample in the middle of each interval."""
        return (self.edges[:-1] + self.edges[1:] - 1) // 2

    def to_data(self) -> dict[str, Any]:
        """Return strips for the page: time (s), and charts with their curves, unit and limit."""
        run, middle = self.run, self.middle
        t = run.t[middle] - run.t[0]
        shown = [i for i in range(len(run.patches)) if np.any(self.forces[:, i] > LOADED)]
        carried = [
            {
                "name": run.patches[i],
                "colour": PATCHES[i % len(PATCHES)],
                "values": numbers(self.forces[middle, i], 1),
                "of": np.where(np.isnan(largest_grip(run, run.patches[i])[middle]), "cone", "grip").tolist(),
                "used": numbers(self._largest(self.cone_used[:, i]), 3),
            }
            for i in shown
        ]
        total = {"name": "all", "colour": "total", "values": numbers(self.total[middle], 1)}
        torque, velocity = (self._shares(name) for name in ("torque", "velocity"))
        cone = self._largest(np.fmax.reduce(self.cone_used, axis=1))
        return {
            "t": numbers(t, 4),
            "charts": [
                {"name": "contact forces", "unit": "N", "curves": [*carried, total], "low": 0},
                {
                    "name": "limits used",
                    "unit": "%",
                    "low": 0,
                    "limit": 100,
                    "curves": [
                        {"name": "torque", "colour": "#c2410c", **torque},
                        {"name": "velocity", "colour": "#7c3aed", **velocity},
                        {"name": "friction cone", "colour": "#2e8b57", "values": numbers(100 * cone, 1)},
                    ],
                },
                {
                    "name": "centre of mass to the region's edge",
                    "unit": "cm",
                    "limit": 0,
                    "curves": [{"name": "margin", "colour": "#1f6fd0", "values": numbers(100 * self.depth, 2)}],
                },
                *self._pace(),
            ],
            "patches": carried,
        }

    def _pace(self) -> Iterator[dict[str, Any]]:
        """Yield a chart of what of its margin each limit uses where it bounds the motion; none at the pace ``slow``."""
        pace = self.pace
        if not pace.bounded:
            return
        at = pace.bound_at(self.middle)
        curves = []
        for kind in [kind for kind in LIMITS if any(bound is not None and bound.kind == kind for bound in at)]:
            mine = [bound if bound is not None and bound.kind == kind else None for bound in at]
            used = np.array([np.nan if bound is None else 100.0 * bound.used for bound in mine])
            whose = ["" if bound is None else bound.whose for bound in mine]
            curves.append({"name": kind, "colour": LIMITS[kind], "values": numbers(used, 0), "whose": whose})
        name = f"what bounds the pace {pace.name}, of its margin"
        yield {"name": name, "unit": "%", "low": 0, "limit": 100, "curves": curves}

    @cached_property
    def forces(self) -> np.ndarray:
        """Size of the force on each patch, (N, P), N."""
        return np.linalg.norm(self.run.wrench[:, :, :3], axis=2)

    @cached_property
    def total(self) -> np.ndarray:
        """Size of the sum of the forces on all patches, (N,), N."""
        return np.linalg.norm(self.run.wrench[:, :, :3].sum(axis=1), axis=1)

    @cached_property
    def cone_used(self) -> np.ndarray:
        """Share of the friction cone, or of a grasp's largest force, that each patch uses, (N, P); NaN: none."""
        columns = [cone_used(self.run, column) for column in range(len(self.run.patches))]
        return np.column_stack(columns) if columns else np.full((len(self.run), 1), np.nan)

    @cached_property
    def depth(self) -> np.ndarray:
        """Least distance (m) from the centre of mass to its region's edge in each interval; NaN in the air."""
        depth = com_limits(self.run)[2]
        return np.array([np.nan if np.isnan(part).all() else np.nanmin(part) for part in self._parts(depth)])

    def _shares(self, name: str) -> dict[str, Any]:
        """Return the largest share of a limit in each interval (%), and whose it is."""
        run = self.run
        values = run.tau if name == "torque" else run.v[:, 6:]
        limit = run.record.robot.limit(name)
        share = np.divide(np.abs(values), limit, out=np.zeros_like(values), where=(limit > 0) & np.isfinite(limit))
        if not share.shape[1]:
            return {"values": [], "whose": []}
        peaks = np.array([part.max(axis=0) for part in self._parts(share)])
        joints = run.record.joints
        return {
            "values": numbers(100 * peaks.max(axis=1), 1),
            "whose": [joints[i] for i in peaks.argmax(axis=1)],
        }

    def _largest(self, values: np.ndarray) -> np.ndarray:
        return np.array([np.nan if np.isnan(part).all() else np.nanmax(part) for part in self._parts(values)])

    def _parts(self, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, self.edges[1:-1])


def numbers(values: np.ndarray, digits: int) -> list[float | None]:
    """Return values for a page; what is no number, or infinite, is None."""
    return [round(float(value), digits) if np.isfinite(value) else None for value in values]


def cone_used(run: Run, column: int) -> np.ndarray:
    """Return per sample how much of what a patch may carry it uses, (N,); NaN where it carries nothing.

    ``|f_t| / (mu f_n)`` at the worst point (1 = sliding); of a grasp, which has no cone, ``|f|`` by its largest force.
    A patch may rest on one thing and grasp another later: what counts is the contact that `Run.planned` says.
    """
    grip = largest_grip(run, run.patches[column])
    size = np.linalg.norm(run.wrench[:, column, :3], axis=1)
    held = np.where(run.active[:, column], size / grip, np.nan)
    return np.where(np.isnan(grip), friction_used(run, column), held)


def largest_grip(run: Run, patch: str) -> np.ndarray:
    """Return per sample the largest force that the grasp of a patch may carry, (N,), N; NaN where it grasps nothing."""
    grasps = (contact if contact is not None and contact.kind == "grasp" else None for contact in run.planned(patch))
    limits = [None if grasp is None else grasp.max_force for grasp in grasps]
    return np.array(limits, float)[run.phase]


def friction_used(run: Run, column: int) -> np.ndarray:
    """Return per sample |f_t| / (mu f_n) at the worst loaded point of a patch; NaN where none is loaded.

    mu is that of the planned contact which the sample's phase leads to, or comes from.
    """
    used = np.full(len(run.t), np.nan)
    mu = run.patch_friction(run.patches[column])
    sample = run.point_sample()
    normal = np.einsum("ij,ij->i", run.point_force, run.point_normal)
    mine = (run.point_patch == column) & (normal > LOADED) & ~np.isnan(mu[sample])
    tangential = np.linalg.norm(run.point_force - normal[:, None] * run.point_normal, axis=1)
    ratio = tangential[mine] / (mu[sample[mine]] * normal[mine])
    used[sample[mine]] = 0.0
    np.maximum.at(used, sample[mine], ratio)
    return used
