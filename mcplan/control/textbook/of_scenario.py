"""Factory of textbook controllers from the settings of a scenario (``control.type``)."""

from collections.abc import Callable

import numpy as np

from mcplan.control.textbook.hierarchy import TaskHierarchy
from mcplan.control.textbook.joint_space import (
    FramePath,
    GravityCompensation,
    ImpedanceControl,
    InverseDynamicsControl,
    JointPath,
    frame_through,
    joints_between,
)
from mcplan.control.textbook.operational_space import OperationalSpaceControl
from mcplan.control.textbook.virtual_model import VirtualModelControl
from mcplan.control.torque_driven import TorqueController
from mcplan.errors import InputError
from mcplan.planning.plan import Plan
from mcplan.settings.textbook import TextbookSpec
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask


def textbook_controller(plan: Plan) -> TorqueController | None:
    """Return the textbook controller of a plan's scenario; None: the whole-body controller.

    Raises
    ------
    InputError
        The type is ``own`` (a custom controller), which only `mcplan.simulate` accepts; or a setting is missing.
    """
    name = plan.scenario.control.type
    if name == "whole_body":
        return None
    if name == "own":
        raise InputError("control.type is own: pass your controller to simulate(..., controller=...)")
    return _FACTORIES[name](plan, plan.scenario.control.textbook)


def _gravity(plan: Plan, spec: TextbookSpec) -> TorqueController:
    return GravityCompensation(plan.scenario.robot, spec.kd or 0.0)


def _impedance(plan: Plan, spec: TextbookSpec) -> TorqueController:
    kp, kd = 200.0 if spec.kp is None else spec.kp, 30.0 if spec.kd is None else spec.kd
    return ImpedanceControl(plan.scenario.robot, _joints(plan, spec), kp, kd)


def _inverse_dynamics(plan: Plan, spec: TextbookSpec) -> TorqueController:
    kp = 100.0 if spec.kp is None else spec.kp
    return InverseDynamicsControl(plan.scenario.robot, _joints(plan, spec), kp, spec.kd)


def _operational_space(plan: Plan, spec: TextbookSpec) -> TorqueController:
    robot, kp = plan.scenario.robot, 100.0 if spec.kp is None else spec.kp
    frame, path = _frame(plan, spec)
    posture = plan.stances[0].q[7:]
    if spec.press is None:
        return OperationalSpaceControl(robot, frame, path, kp=kp, kd=spec.kd, posture=posture)
    force = np.array(spec.press, float)
    magnitude = float(np.linalg.norm(force))
    if not magnitude > 0.0:
        raise InputError("control.textbook.press: a force of zero has no direction")
    axes = np.linalg.svd(force[None] / magnitude)[2].T
    motion = (0, 1, 1, 1, 1, 1)
    wrench = np.concatenate([force, np.zeros(3)])
    return OperationalSpaceControl(robot, frame, path, wrench, axes, motion, kp, spec.kd, posture)


def _hierarchical(plan: Plan, spec: TextbookSpec) -> TorqueController:
    robot, kp = plan.scenario.robot, 100.0 if spec.kp is None else spec.kp
    frame, path = _frame(plan, spec)
    limb, posture = _FollowedPose(frame, path, kp, spec.kd), PostureTask(plan.stances[0].q[7:], 1.0, 0.25 * kp)
    return TaskHierarchy(robot, plan.stances[0].contacts, [[limb], [posture]], "programs")


def _virtual_model(plan: Plan, spec: TextbookSpec) -> TorqueController:
    first, kp = plan.stances[0], 40.0 if spec.kp is None else spec.kp
    return VirtualModelControl(plan.scenario.robot, first.contacts, first.q, spec.com, spec.over, kp, spec.kd)


_FACTORIES: dict[str, Callable[[Plan, TextbookSpec], TorqueController]] = {
    "gravity_compensation": _gravity,
    "joint_impedance": _impedance,
    "inverse_dynamics": _inverse_dynamics,
    "operational_space": _operational_space,
    "hierarchical": _hierarchical,
    "virtual_model": _virtual_model,
}


class _FollowedPose(LinkPoseTask):
    """Pose task of a link that follows a trajectory."""

    def __init__(self, frame: str, path: FramePath, kp: float, kd: float | None):
        super().__init__(frame, kp=kp, kd=kd)
        self._path = path

    def follow(self, t: float) -> None:
        self.R, self.p, self.velocity, self.acceleration = self._path(t)


def _joints(plan: Plan, spec: TextbookSpec) -> JointPath:
    """Return the joint reference from the first stance to the posture of the scenario."""
    robot, start = plan.scenario.robot, plan.stances[0].q[7:]
    end = start.copy()
    if isinstance(spec.posture, str):
        end = robot.posture(spec.posture)[7:]
    elif spec.posture is not None:
        for name, value in spec.posture.joints.items():
            end[robot.joint_names.index(name)] = value
    return joints_between(start, end, spec.over)


def _frame(plan: Plan, spec: TextbookSpec) -> tuple[str, FramePath]:
    """Return the controlled frame, and its reference from the first stance on."""
    if spec.frame is None:
        name = plan.scenario.control.type
        raise InputError(f"control.textbook.frame is missing: name the link or patch that {name} controls")
    X = plan.scenario.robot.frame_pose(plan.stances[0].q, spec.frame)
    poses = [(X[:3, :3], X[:3, 3])]
    poses += [(X[:3, :3] if pose.rpy is None and pose.quat_wxyz is None else pose.R, pose.p) for pose in spec.path]
    return spec.frame, frame_through(poses, spec.over)
