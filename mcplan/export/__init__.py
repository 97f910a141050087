"""Runs in the formats of other programs: CSV tables, a MuJoCo scene with keyframes, MCAP logs."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.errors import InputError
from mcplan.sim.run import Run

KINDS = {"csv": None, "mujoco": "mujoco", "mcap": "mcap"}
"""Kind of export, and the library that it takes (an extra of the same name), None for none."""


def export_run(run: Run, kind: str, path: str | Path, rate: float | None = None) -> list[Path]:
    """Write a run in another format; return the files written.

    Parameters
    ----------
    kind : of `KINDS`.
    path : the file.
    rate : samples per second; None takes all (keyframes: 20).

    Raises
    ------
    InputError
        When the rate is not positive, or the library that the kind takes is not installed.
    """
    if rate is not None and not (np.isfinite(rate) and rate > 0.0):
        raise InputError(f"rate {rate}: expected a positive number of samples per second")
    module = {"csv": "mcplan.export.csv_table", "mcap": "mcplan.export.mcap_log", "mujoco": "mcplan.sim.mujoco.export"}
    try:
        write: Callable[..., Any] = import_module(module[kind]).write
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != KINDS[kind]:
            raise
        raise InputError(f"--to {kind} takes the library {kind}: pip install 'mcplan[{kind}]'") from error
    return write(run, Path(path), rate)
