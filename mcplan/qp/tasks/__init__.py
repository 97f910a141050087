"""Tasks of the whole-body program, one per file."""

from mcplan.qp.tasks.angular_momentum import AngularMomentumTask
from mcplan.qp.tasks.com import ComTask
from mcplan.qp.tasks.contact_force import ContactForceTask
from mcplan.qp.tasks.link_pose import LinkPoseTask
from mcplan.qp.tasks.look_at import LookAtTask
from mcplan.qp.tasks.posture import PostureTask
from mcplan.qp.tasks.relative_pose import RelativePoseTask
from mcplan.qp.tasks.task import Task
from mcplan.qp.tasks.torque import TorqueTask

__all__ = [
    "AngularMomentumTask",
    "ComTask",
    "ContactForceTask",
    "LinkPoseTask",
    "LookAtTask",
    "PostureTask",
    "RelativePoseTask",
    "Task",
    "TorqueTask",
]
