"""CSV tables of a run: one of the samples, and one of the contact points, whose number varies between samples.

Also the joint trajectory of a run as a ROS 2 ``trajectory_msgs/msg/JointTrajectory``, in YAML for ``ros2 topic pub``.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import yaml

from mcplan.record.run import XYZ, Run, table
from mcplan.util.files import atomic_write, write_text

POINTS = ("t", "link", "patch", *XYZ, "nx", "ny", "nz", "fx", "fy", "fz")
"""Columns of the table of contact points; ``patch`` is empty for an unplanned contact."""


def points_file(path: Path) -> Path:
    """Return the path of the table of contact points beside ``path``."""
    return path.with_name(f"{path.stem}.points{path.suffix}")


def write_csv(run: Run, path: Path, rate: float | None = None) -> list[Path]:
    """Write the table of samples to ``path`` and that of contact points to `points_file`; return both paths.

    Numbers are written with all digits of a double.

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
    with atomic_write(path) as partial, open(partial, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)


RATE = 50.0
"""Default number of trajectory points per second."""


def write_trajectory(run: Run, path: Path, rate: float | None = None) -> list[Path]:
    """Write the joint trajectory (rad or m, N m or N); return the path.

    Parameters
    ----------
    rate : trajectory points per second; `RATE` by default.
    """
    rows = run.every(RATE if rate is None else rate)
    points = []
    for k in rows:
        nanoseconds = round(float(run.t[k] - run.t[0]) * 1e9)
        points.append(
            {
                "positions": run.q[k, 7:].tolist(),
                "velocities": run.v[k, 6:].tolist(),
                "accelerations": run.vd[k, 6:].tolist(),
                "effort": run.tau[k].tolist(),
                "time_from_start": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9},
            }
        )
    header = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    message = {"header": header, "joint_names": list(run.record.joints), "points": points}
    write_text(path, yaml.safe_dump(message, sort_keys=False, default_flow_style=None, width=10**6))
    return [path]
