"""Further tasks of the whole-body program, as a scenario writes them beside those of its plan.

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
    """An axis of a link, through a point of it, points at a target in the world, or in another link."""

    frame: str
    """Link or patch."""
    target: Triple
    """Point, m, in the world or in ``target_frame``."""
    target_frame: str | None = None
    """Link or patch that carries the target."""
    axis: Triple = (1.0, 0.0, 0.0)
    """Of the frame, that points at the target."""
    eye: Triple = (0.0, 0.0, 0.0)
    """Point of the frame from which it does, m."""

    @model_validator(mode="after")
    def _points_somewhere(self) -> "LookAtSpec":
        if not any(self.axis):
            raise ValueError("axis [0, 0, 0] has no direction")
        return self


class LinkPoseSpec(Spec):
    """A link or patch keeps a pose in the world; where none is given, that of the first stance."""

    frame: str
    """Link or patch."""
    pose: PoseSpec | None = None
    """That it keeps."""
    position: bool = True
    """Whether its position is asked for."""
    orientation: bool = True
    """Whether its orientation is."""

    @model_validator(mode="after")
    def _asks_for_something(self) -> "LinkPoseSpec":
        if not (self.position or self.orientation):
            raise ValueError("asks for neither position nor orientation")
        return self


class RelativePoseSpec(LinkPoseSpec):
    """The same in another link or patch."""

    reference: str
    """Link or patch in which the pose is meant."""


class ContactForceSpec(Spec):
    """The force of the environment on a patch while it is in contact: as a vector, or its normal part alone, N."""

    patch: str
    """In contact."""
    force: Triple | None = None
    """(3,) N."""
    axes: Literal["world", "contact", "patch"] = "world"
    """Of ``force``."""
    normal: float | None = None
    """Normal part alone, N."""

    @model_validator(mode="after")
    def _one(self) -> "ContactForceSpec":
        if (self.force is None) == (self.normal is None):
            raise ValueError("give either `force`, a vector, or `normal`, a number")
        return self


class TorqueSpec(Spec):
    """The torques are small: each in N m, or ``by_limit`` as a share of its limit."""

    by_limit: bool = False
    """Each torque counts as a share of its limit."""


class TaskSpec(Spec):
    """One task: of which kind, how much it weighs, which level it has, and in which states."""

    look_at: LookAtSpec | None = None
    """A link looks at a point."""
    link_pose: LinkPoseSpec | None = None
    """A link keeps a pose in the world."""
    relative_pose: RelativePoseSpec | None = None
    """A link keeps a pose in another."""
    contact_force: ContactForceSpec | None = None
    """The force at a contact."""
    torque: TorqueSpec | None = None
    """Small torques."""
    weight: NotNegative | None = None
    """Against the other tasks of its priority; each kind has a default."""
    kp: NotNegative | None = None
    """1/s²; damping is critical."""
    priority: Annotated[int, Field(ge=1, le=9)] = 1
    """A lower number goes strictly before a higher one; the plan's own tasks have 1."""
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
        """The kinds that are given: one."""
        return [kind for kind in KINDS if getattr(self, kind) is not None]


KINDS = tuple(
    name
    for name, field in TaskSpec.model_fields.items()
    if any(isinstance(kind, type) and issubclass(kind, Spec) for kind in get_args(field.annotation))
)
"""Keys of the tasks, of which each item gives one."""

FORCE_KINDS = ("contact_force", "torque")
"""Tasks of forces: without feedback gains, and of the last priority."""
