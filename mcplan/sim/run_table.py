"""A run as one table: a column per number, named by joint, patch or object."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mcplan.sim.run import Run

XYZ = ("x", "y", "z")
BASE_Q = ("x", "y", "z", "qw", "qx", "qy", "qz")
BASE_V = ("vx", "vy", "vz", "wx", "wy", "wz")
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")


def table(run: "Run") -> dict[str, np.ndarray]:
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
    if run.qp_slack is not None:
        columns["qp_slack"] = run.qp_slack
    if run.object_q is not None and run.object_v is not None:
        for column, name in enumerate(run.record.objects):
            add(run.object_q[:, column], [f"object_q.{name}.{part}" for part in BASE_Q])
            add(run.object_v[:, column], [f"object_v.{name}.{part}" for part in BASE_V])
    return columns
