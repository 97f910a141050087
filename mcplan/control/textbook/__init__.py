"""Textbook torque controllers: joint space, operational space, task hierarchies, virtual model control.

`mcplan.simulate` accepts each of them. Their common interface is ``torque(t, terms, wrenches)``
(`mcplan.control.torque_driven`). Equation numbers are those of S1, the robot dynamics lecture notes of ETH Zurich
(docs/sources.md).
"""

from mcplan.control.textbook.hierarchy import TaskHierarchy, hierarchical_least_squares, sequence_of_programs
from mcplan.control.textbook.joint_space import (
    GravityCompensation,
    ImpedanceControl,
    InverseDynamicsControl,
    frame_through,
    joints_at,
    joints_between,
)
from mcplan.control.textbook.operational_space import OperationalSpaceControl, end_effector_dynamics, selections
from mcplan.control.textbook.redistribution import SupportedInverseDynamics, support_torque
from mcplan.control.textbook.virtual_model import VirtualModelControl

__all__ = [
    "GravityCompensation",
    "ImpedanceControl",
    "InverseDynamicsControl",
    "OperationalSpaceControl",
    "SupportedInverseDynamics",
    "TaskHierarchy",
    "VirtualModelControl",
    "end_effector_dynamics",
    "frame_through",
    "hierarchical_least_squares",
    "joints_at",
    "joints_between",
    "selections",
    "sequence_of_programs",
    "support_torque",
]
