"""Tasks of the whole-body program, one per file."""

from mcplan.qp.tasks.angular_momentum import AngularMomentumTask
from mcplan.qp.tasks.com import ComTask
from mcplan.qp.tasks.link_pose import LinkPoseTask
from mcplan.qp.tasks.posture import PostureTask
from mcplan.qp.tasks.task import Task

__all__ = ["AngularMomentumTask", "ComTask", "LinkPoseTask", "PostureTask", "Task"]
