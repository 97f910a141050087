"""Quadratic programs: tasks and constraints, the whole-body problem in CVXPY, and the dense solver."""

from mcplan.optimize.dense import DenseSolution, solve_dense
from mcplan.whole_body.collision_avoidance import CollisionAvoidance
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.pool import ProblemPool
from mcplan.whole_body.priorities import PrioritisedQP
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.solution import Residuals, Solution
from mcplan.whole_body.tasks import (
    AngularMomentumTask,
    ComTask,
    ContactForceTask,
    LinkPoseTask,
    LookAtTask,
    PostureTask,
    RelativePoseTask,
    Task,
    TorqueTask,
)
from mcplan.whole_body.whole_body import WholeBodyQP

__all__ = [
    "AngularMomentumTask",
    "CollisionAvoidance",
    "ComTask",
    "ContactConstraint",
    "ContactForceTask",
    "DenseSolution",
    "LinkPoseTask",
    "LookAtTask",
    "PostureTask",
    "PrioritisedQP",
    "ProblemPool",
    "QPSettings",
    "RelativePoseTask",
    "Residuals",
    "Solution",
    "Task",
    "TorqueTask",
    "WholeBodyQP",
    "solve_dense",
]
