"""From the record of a run back to its Plan, Scenario and Robot, without any other file."""

from typing import Any

from mcplan.errors import RunError
from mcplan.sim.records import RunRecord


def rebuild_plan(record: RunRecord) -> Any:
    """Rebuild the Plan that was simulated; its scenario holds the robot and the environment.

    Raises
    ------
    RunError
        The record holds no documents (it was not made by a simulation).
    """
    raise RunError("this run keeps no plan document")
