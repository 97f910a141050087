"""Quadratic programs: tasks and constraints, the whole-body problem in CVXPY, and the dense solver."""

from mcplan.qp.collision_avoidance import CollisionAvoidance
from mcplan.qp.contact import ContactConstraint
from mcplan.qp.dense import DenseSolution, solve_dense
from mcplan.qp.pool import ProblemPool
from mcplan.qp.priorities import PrioritisedQP
from mcplan.qp.settings import QPSettings
from mcplan.qp.solution import Residuals, Solution
from mcplan.qp.tasks import (
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
from mcplan.qp.whole_body import WholeBodyQP

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
