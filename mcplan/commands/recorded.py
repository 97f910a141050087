"""The recorded run at a path."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcplan.sim.run import Run


def recorded(path: Path) -> "Run":
    """Return a run with its clock times, where they are beside it."""
    from dataclasses import replace

    from mcplan.sim.run_file import load_run, load_timing

    return replace(load_run(path), timing=load_timing(path))
