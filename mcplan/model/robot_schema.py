"""What may stand in a ``robot.yaml``: types and ranges; what needs the URDF is checked by the loader."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcplan.model.patch import MOUNT_LIMIT, Kind

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Corner = tuple[Number, Number]
Vector = tuple[Number, Number, Number]


class Section(BaseModel):
    """A part of the file; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PoseSection(Section):
    """``xyz`` in m with ``rpy`` in rad or ``quat_wxyz``."""

    xyz: Vector = (0.0, 0.0, 0.0)
    rpy: Vector | None = None
    quat_wxyz: tuple[Number, Number, Number, Number] | None = None


class PatchSection(Section):
    """One patch."""

    link: str
    pose: PoseSection = PoseSection()
    polygon: list[Corner] | None = None
    kind: Kind = "surface"
    limb: str | None = None
    max_force: Positive | None = None
    max_moment: Positive | None = None


class PostureSection(Section):
    """One named posture; joints that are not named are 0."""

    base: PoseSection = PoseSection()
    joints: dict[str, Number] = {}


class LimitSection(Section):
    """Limits that replace those of the URDF."""

    lower: Number | None = None
    upper: Number | None = None
    velocity: Positive | None = None
    torque: Positive | None = None


class CollisionSection(Section):
    """Pairs of links that are never checked against each other, besides those that one joint connects."""

    ignore: list[tuple[str, str]] = []


class MountSection(Section):
    """What holds a fixed base: the most that it bears, N and N m."""

    max_force: Positive = MOUNT_LIMIT
    max_moment: Positive = MOUNT_LIMIT


class RobotSection(Section):
    """The whole file."""

    mcplan: Literal[1]
    name: str | None = None
    urdf: str
    base: str | None = None
    fixed_base: bool | MountSection | None = None
    locked: dict[str, Number] = {}
    armature: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    limits: dict[str, LimitSection] = {}
    collision: CollisionSection = CollisionSection()
    patches: dict[str, PatchSection] = {}
    postures: dict[str, PostureSection] = {}
