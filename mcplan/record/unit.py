"""Units of joints: rad of what turns, m of what slides."""

from collections.abc import Iterable

from mcplan.record.records import RobotRecord
from mcplan.robot.description import joint_unit

FORCES = {"rad": "N m", "m": "N"}
"""Unit of what moves a joint, by that of its position."""


def recorded_units(robot: RobotRecord) -> list[str]:
    """Return the unit of the position of each joint of the robot of a run, as `Robot.joint_units`."""
    kinds = {joint.name: joint.kind for joint in robot.joints}
    return [joint_unit(kinds.get(name)) for name in robot.coordinates]


def unit_of_all(units: Iterable[str]) -> str:
    """Return the unit of an amount that is of any of several joints: ``rad or m`` where both are among them."""
    return " or ".join(sorted(set(units), reverse=True)) or "rad"
