"""The controllers of the textbooks: each gives joint torques, and `mcplan.simulate` takes each.

What they share is one method, ``torque(t, terms, wrenches)`` (`mcplan.control.torque_driven`). Equation numbers are
those of S1, the robot dynamics lecture notes of ETH Zurich.
"""

from mcplan.control.classical.hierarchy import hierarchical_least_squares, sequence_of_programs
from mcplan.control.classical.joint_space import GravityCompensation, ImpedanceControl, InverseDynamicsControl
from mcplan.control.classical.operational_space import OperationalSpaceControl, end_effector_dynamics, selections
from mcplan.control.classical.redistribution import SupportedInverseDynamics, support_torque
from mcplan.control.classical.reference import frame_through, joints_at, joints_between
from mcplan.control.classical.task_hierarchy import TaskHierarchy
from mcplan.control.classical.virtual_model import VirtualModelControl

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
