"""Settings of user-defined tasks of the whole-body program: ``control.tasks`` of a scenario.

For example::

    control:
      tasks:
        - {look_at: {frame: HEAD_LINK1, target: [1.5, 0.8, 1.3]}, weight: 50}
        - {contact_force: {patch: right_hand, normal: 30}, during: [shift]}
        - {relative_pose: {frame: left_hand, reference: CHEST_LINK1}, priority: 2}
        - {torque: {}, weight: 1.0e-4}
"""

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from mcplan.scene.spec import NotNegative, PoseSpec, Spec, Triple


class LookAtSpec(Spec):
    """Point an axis of a link at a target in the world, or on another link."""

    frame: str
    """Link or patch."""
    target: Triple
    """Point, m, in the world or in ``target_frame``."""
    target_frame: str | None = None
    """Link or patch that carries the target."""
    axis: Triple = (1.0, 0.0, 0.0)
    """Axis of the frame that points at the target."""
    eye: Triple = (0.0, 0.0, 0.0)
    """Origin of the axis in the frame, m."""

    @model_validator(mode="after")
    def _points_somewhere(self) -> "LookAtSpec":
        if not any(self.axis):
            raise ValueError("axis [0, 0, 0] has no direction")
        return self


class LinkPoseSpec(Spec):
    """Hold a link or patch at a pose in the world, by default that of the first stance."""

    frame: str
    """Link or patch."""
    pose: PoseSpec | None = None
    """Pose to hold."""
    position: bool = True
    """Whether the position is controlled."""
    orientation: bool = True
    """Whether the orientation is controlled."""

    @model_validator(mode="after")
    def _asks_for_something(self) -> "LinkPoseSpec":
        if not (self.position or self.orientation):
            raise ValueError("asks for neither position nor orientation")
        return self


class RelativePoseSpec(LinkPoseSpec):
    """Hold a link or patch at a pose relative to another link or patch."""

    reference: str
    """Link or patch to which the pose is relative."""


class ContactForceSpec(Spec):
    """Force of the environment on a patch in contact: a vector, or its normal component only, N."""

    patch: str
    """Patch in contact."""
    force: Triple | None = None
    """Force vector, N."""
    axes: Literal["world", "contact", "patch"] = "world"
    """Axes of ``force``."""
    normal: float | None = None
    """Normal component, N."""

    @model_validator(mode="after")
    def _one(self) -> "ContactForceSpec":
        if (self.force is None) == (self.normal is None):
            raise ValueError("give either `force`, a vector, or `normal`, a number")
        return self


class TorqueSpec(Spec):
    """Minimise the torques: in N m, or with ``by_limit`` relative to their limits."""

    by_limit: bool = False
    """Whether each torque is divided by its limit."""


class TaskSpec(Spec):
    """One task: kind, weight, priority level, and the states in which it acts."""

    look_at: LookAtSpec | None = None
    """Point a link at a target."""
    link_pose: LinkPoseSpec | None = None
    """Hold a link at a pose in the world."""
    relative_pose: RelativePoseSpec | None = None
    """Hold a link at a pose relative to another."""
    contact_force: ContactForceSpec | None = None
    """Task of the force at a contact."""
    torque: TorqueSpec | None = None
    """Minimise the torques."""
    weight: NotNegative | None = None
    """Weight relative to the other tasks of its priority; each kind has a default."""
    kp: NotNegative | None = None
    """Stiffness, 1/s²; damping is critical."""
    priority: Annotated[int, Field(ge=1, le=9)] = 1
    """Priority level; lower numbers take strict precedence. Tasks of the plan have 1."""
    during: tuple[str, ...] = ()
    """States as ``mcplan info --fsm`` prints them (``swing left_sole``, ``swing``); empty: always."""

    @model_validator(mode="after")
    def _one(self) -> "TaskSpec":
        if len(self.kinds) != 1:
            raise ValueError(f"give one of {', '.join(KINDS)}; given: {', '.join(self.kinds) or 'none'}")
        if self.kp is not None and self.kinds[0] in FORCE_KINDS:
            raise ValueError(f"a task of kind {self.kinds[0]} has no kp")
        return self

    @property
    def kinds(self) -> list[str]:
        """Kinds that are set; a valid task has one."""
        return [kind for kind in KINDS if getattr(self, kind) is not None]


KINDS = tuple(
    name
    for name, field in TaskSpec.model_fields.items()
    if any(isinstance(kind, type) and issubclass(kind, Spec) for kind in get_args(field.annotation))
)
"""Keys of the kinds of tasks; each item gives one."""

FORCE_KINDS = ("contact_force", "torque")
"""Kinds of tasks of forces, which have no feedback gains and the last priority."""
