"""What a robot looks like: its own meshes, where a run keeps only their convex hulls."""

from dataclasses import dataclass
from typing import Any

from mcplan.errors import McplanError
from mcplan.model.geometry import Geometry
from mcplan.model.robot_file import load_robot
from mcplan.sim.run import Run


@dataclass(frozen=True)
class Look:
    """A robot with the shapes of another: what it does is asked of the one, how it looks of the other."""

    robot: Any
    geometry: dict[str, tuple[Geometry, ...]]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.robot, name)


def seen_robot(run: Run) -> Any:
    """Return the robot of a run as it looks, with the masses that the physics had.

    A run in memory has its robot; a file keeps large meshes as their convex hulls, and the robot that is installed, or
    at the path which the scenario names, is drawn instead where it is the same one, by its digest.
    """
    if run.live_plan is not None or not run.record.robot.meshes:
        return run.loaded_robot
    name = run.record.scenario.document.get("robot")
    if not isinstance(name, str):
        return run.loaded_robot
    try:
        found = load_robot(name)
    except (McplanError, OSError):
        return run.loaded_robot
    same = found.digest == run.record.robot.digest
    return Look(run.loaded_robot, found.geometry) if same else run.loaded_robot
