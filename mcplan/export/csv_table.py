"""A run as CSV: one table of samples, and one of contact points, because their number changes from sample to sample."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from mcplan.sim.run import Run
from mcplan.sim.run_table import XYZ, table
from mcplan.whole_file import whole_file

POINTS = ("t", "link", "patch", *XYZ, "nx", "ny", "nz", "fx", "fy", "fz")
"""Columns of the table of contact points; ``patch`` is empty for a contact that nobody planned."""


def points_file(path: Path) -> Path:
    """Return where the table of contact points of the table ``path`` is."""
    return path.with_name(f"{path.stem}.points{path.suffix}")


def write(run: Run, path: Path, rate: float | None = None) -> list[Path]:
    """Write ``path`` with the samples and ``path`` with ``.points`` before its suffix; return both.

    Numbers have the digits that give the same double back.

    Parameters
    ----------
    rate : samples per second; None writes all.
    """
    rows = run.every(rate)
    columns = table(run)
    points = points_file(path)
    _write(path, list(columns), zip(*(column[rows].tolist() for column in columns.values()), strict=True))
    _write(points, POINTS, (row for k in rows for row in _points(run, int(k))))
    return [path, points]


def _points(run: Run, k: int) -> Iterable[Sequence[object]]:
    bodies = [*run.record.links, *run.record.objects]
    for i in range(*run.points(k).indices(len(run.point_xyz))):
        patch = int(run.point_patch[i])
        numbers = np.concatenate([run.point_xyz[i], run.point_normal[i], run.point_force[i]])
        yield float(run.t[k]), bodies[run.point_link[i]], run.patches[patch] if patch >= 0 else "", *numbers.tolist()


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with whole_file(path) as partial, open(partial, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)
