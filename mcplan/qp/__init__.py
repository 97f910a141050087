"""Quadratic programs: tasks and constraints, the whole-body problem in CVXPY, and the dense solver."""

from mcplan.qp.contact import ContactConstraint
from mcplan.qp.dense import DenseSolution, solve_dense
from mcplan.qp.pool import ProblemPool
from mcplan.qp.settings import QPSettings
from mcplan.qp.solution import Residuals, Solution
from mcplan.qp.tasks import AngularMomentumTask, ComTask, LinkPoseTask, PostureTask, Task
from mcplan.qp.whole_body import WholeBodyQP

__all__ = [
    "AngularMomentumTask",
    "ComTask",
    "ContactConstraint",
    "DenseSolution",
    "LinkPoseTask",
    "PostureTask",
    "ProblemPool",
    "QPSettings",
    "Residuals",
    "Solution",
    "Task",
    "WholeBodyQP",
    "solve_dense",
]
