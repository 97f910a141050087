"""What is sent to a worker; apart from the job, whose imports take seconds."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Task:
    """A case as it is sent to a worker: plain values, no file of the sender's is needed but that of a robot of its own.

    Parameters
    ----------
    data : the scenario, resolved.
    path : of the scenario's file; the path of a robot or a mesh is relative to it.
    robot : identity that the robot must have (`mcplan.model.robot_file.robot_identity`).
    seed, steps, keep : as in the experiment.
    kept : directory of the files that are kept of the case; what a plan is read from is relative to it.
    plans : directory for plans that cases share (`mcplan.sweep.shared_plan`); none without a name.
    meshes : sha256 (hex) of each mesh around the robot, which the files there must have (`mcplan.sweep.meshes`).
    """

    data: dict[str, Any]
    path: str
    robot: str
    seed: int
    steps: str
    keep: tuple[str, ...]
    kept: str
    plans: str = ""
    meshes: tuple[str, ...] = ()
