"""Tasks of the whole-body program, one per file."""

from mcplan.whole_body.tasks.angular_momentum import AngularMomentumTask
from mcplan.whole_body.tasks.com import ComTask
from mcplan.whole_body.tasks.contact_force import ContactForceTask
from mcplan.whole_body.tasks.link_pose import LinkPoseTask
from mcplan.whole_body.tasks.look_at import LookAtTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.tasks.relative_pose import RelativePoseTask
from mcplan.whole_body.tasks.task import Task
from mcplan.whole_body.tasks.torque import TorqueTask

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
