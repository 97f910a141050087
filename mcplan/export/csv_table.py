"""A run as CSV: one table of samples, and one of contact points, because their number changes from sample to sample."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from mcplan.sim.run import Run
from mcplan.whole_file import whole_file

XYZ = ("x", "y", "z")
BASE_Q = ("x", "y", "z", "qw", "qx", "qy", "qz")
BASE_V = ("vx", "vy", "vz", "wx", "wy", "wz")
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")

POINTS = ("t", "link", "patch", *XYZ, "nx", "ny", "nz", "fx", "fy", "fz")
"""Columns of the table of contact points; ``patch`` is empty for a contact that nobody planned."""


def write(run: Run, path: Path, rate: float | None = None) -> list[Path]:
    """Write ``path`` with the samples and ``path`` with ``.points`` before its suffix; return both.

    Numbers have the digits that give the same double back.

    Parameters
    ----------
    rate : samples per second; None writes all.
    """
    rows = run.every(rate)
    columns = table(run)
    points = path.with_name(f"{path.stem}.points{path.suffix}")
    _write(path, list(columns), zip(*(column[rows].tolist() for column in columns.values()), strict=True))
    _write(points, POINTS, (row for k in rows for row in _points(run, int(k))))
    return [path, points]


def table(run: Run) -> dict[str, np.ndarray]:
    """Return the columns of the table of samples by name: ``q.RLEG_JOINT0``, ``wrench.left_sole.fz``, ..."""
    joints = run.record.joints
    columns = {"t": run.t}

    def add(array: np.ndarray, names: Iterable[str]) -> None:
        columns.update({name: column for name, column in zip(names, array.T, strict=True)})

    add(run.q, [f"q.{name}" for name in (*(f"base.{part}" for part in BASE_Q), *joints)])
    for key in ("v", "vd", "tau_ext"):
        base = WRENCH if key == "tau_ext" else BASE_V
        add(getattr(run, key), [f"{key}.{name}" for name in (*(f"base.{part}" for part in base), *joints)])
    add(run.tau, [f"tau.{name}" for name in joints])
    for column, patch in enumerate(run.patches):
        add(run.wrench[:, column], [f"wrench.{patch}.{part}" for part in WRENCH])
    add(run.active.astype(int), [f"active.{patch}" for patch in run.patches])
    columns["phase"] = np.array(run.phases)[run.phase]
    add(run.com, [f"com.{axis}" for axis in XYZ])
    columns["qp_status"] = run.qp_status
    if run.object_q is not None and run.object_v is not None:
        for column, name in enumerate(run.record.objects):
            add(run.object_q[:, column], [f"object_q.{name}.{part}" for part in BASE_Q])
            add(run.object_v[:, column], [f"object_v.{name}.{part}" for part in BASE_V])
    return columns


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
