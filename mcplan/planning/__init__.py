"""From stances to a plan: postures by inverse kinematics, the plan and its file."""

from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.plan_file import is_plan_file, plan_document, read_plan, write_plan
from mcplan.planning.planner import plan

__all__ = ["Plan", "PlannedStance", "is_plan_file", "plan", "plan_document", "read_plan", "write_plan"]
