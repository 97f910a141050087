"""Export of runs: CSV tables, keyframes, MCAP logs, reference motions, ROS joint trajectories."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mcplan.errors import InputError
from mcplan.record.run import Run
from mcplan.util.arguments import check_instance, describe, file_path
from mcplan.util.back_ends import load_object
from mcplan.util.exports import EXPORTS
from mcplan.util.files import check_writable
from mcplan.util.spelling import did_you_mean_or_all

FOLDERS = ("motion",)
"""Kinds of export that write a folder of files."""

LIBRARIES = ("mujoco", "mcap")
"""Optional libraries that some kinds need; the extra of mcplan has the same name."""


def export_run(run: Run, kind: str, path: str | Path, rate: float | None = None) -> list[Path]:
    """Write a run in another format; return the files written.

    Parameters
    ----------
    kind : a key of `mcplan.util.exports.EXPORTS`.
    path : the file or folder to write.
    rate : samples per second; by default all samples (keyframes: 20; reference motions and joint trajectories: 50).

    Raises
    ------
    InputError
        The rate is not positive, the library of the kind is not installed, the path is a folder instead of a file (or a
        file instead of a folder), or it cannot be written.
    """
    write, target = export_writer(kind, rate), file_path("export_run", path)
    run = check_instance("export_run", "run", run, Run)
    check_writable(target, force=True, folder=kind in FOLDERS)
    return write(run, target, rate)


def export_writer(kind: str, rate: float | None = None) -> Callable[..., list[Path]]:
    """Check kind, library and rate, and return the function that writes this kind of export."""
    if rate is not None and not (isinstance(rate, int | float | np.number) and np.isfinite(rate) and rate > 0.0):
        raise InputError(f"rate {describe(rate)}: expected a positive number of samples per second")
    if kind not in EXPORTS:
        raise InputError(f"there is no export `{kind}`{did_you_mean_or_all(str(kind), EXPORTS)}")
    try:
        return load_object(EXPORTS[kind].written_by)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in LIBRARIES:
            raise
        raise InputError(f"--to {kind} needs the package {library}: pip install {library}") from error
