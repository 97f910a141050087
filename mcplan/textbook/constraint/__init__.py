"""Contact constraints of a robot: Jacobians, rank of a stance, constrained dynamics, impacts."""

from mcplan.textbook.constraint.contact_rows import (
    ContactRows,
    StanceRank,
    contact_rows,
    point_rows,
    stance_rank,
    surface_rows,
)
from mcplan.textbook.constraint.dynamics import ConstrainedDynamics, Impact
from mcplan.textbook.constraint.support_kinematics import SupportPosture, support_inverse_kinematics, support_velocity
from mcplan.textbook.coordinates.equations import EquationOfMotion, derive_equation_of_motion as equations_of_motion

__all__ = [
    "ConstrainedDynamics",
    "ContactRows",
    "EquationOfMotion",
    "Impact",
    "StanceRank",
    "SupportPosture",
    "contact_rows",
    "equations_of_motion",
    "point_rows",
    "stance_rank",
    "support_inverse_kinematics",
    "support_velocity",
    "surface_rows",
]
