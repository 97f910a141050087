"""Inverse kinematics: joint rates for desired velocities, configurations for target poses, trajectory tracking."""

from mcplan.textbook.kinematics.differential import (
    VelocityTask,
    damped_inverse,
    null_space,
    prioritised,
    pseudo_inverse,
    stacked,
    weighted_inverse,
    with_null_space,
)
from mcplan.textbook.kinematics.frame_error import rotation_error
from mcplan.textbook.kinematics.inverse_kinematics import InverseKinematics, inverse_kinematics
from mcplan.textbook.kinematics.tracking import Tracked, track, tracking_velocity

__all__ = [
    "InverseKinematics",
    "Tracked",
    "VelocityTask",
    "damped_inverse",
    "inverse_kinematics",
    "null_space",
    "prioritised",
    "pseudo_inverse",
    "rotation_error",
    "stacked",
    "track",
    "tracking_velocity",
    "weighted_inverse",
    "with_null_space",
]
