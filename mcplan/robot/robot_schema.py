"""Schema of ``robot.yaml``: types and ranges; what needs the URDF is checked by the loader."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcplan.robot.patch import MOUNT_LIMIT, Kind
from mcplan.robot.rerooted import Axis

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Corner = tuple[Number, Number]
Vector = tuple[Number, Number, Number]


class FileSection(BaseModel):
    """A part of the file; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PoseSection(FileSection):
    """``xyz`` in m with ``rpy`` in rad or ``quat_wxyz``."""

    xyz: Vector = (0.0, 0.0, 0.0)
    """m."""
    rpy: Vector | None = None
    """``Rz(yaw) Ry(pitch) Rx(roll)``, rad."""
    quat_wxyz: tuple[Number, Number, Number, Number] | None = None
    """Unit quaternion, instead of ``rpy``."""


class PatchSection(FileSection):
    """One patch."""

    link: str
    """That touches."""
    pose: PoseSection = PoseSection()
    """Of the patch in the link: z points out of it."""
    polygon: list[Corner] | None = None
    """Corners x, y in the patch's plane, m: convex; two are an edge."""
    kind: Kind = "surface"
    """``surface``, ``point``, ``ball`` or ``grasp`` (see [Patches](../robots.md#patches))."""
    radius: Annotated[float, Field(gt=0, le=1)] | None = None
    """Of a ball, m; its ``pose`` is then that of its centre."""
    limb: str | None = None
    """What moves it, by a name of your own; patches of one limb move together."""
    max_force: Positive | None = None
    """Normal force, or force of a grasp, at most, N."""
    max_moment: Positive | None = None
    """Of a grasp, N m."""


class PostureSection(FileSection):
    """One named posture; joints that are not named are 0."""

    base: PoseSection = PoseSection()
    """Of the base; the ground is z = 0."""
    joints: dict[str, Number] = {}
    """rad or m; those that are not named are 0."""


class LimitSection(FileSection):
    """Limits that replace those of the URDF."""

    lower: Number | None = None
    """Position, rad or m."""
    upper: Number | None = None
    """Position, rad or m."""
    velocity: Positive | None = None
    """rad/s or m/s."""
    torque: Positive | None = None
    """N m or N."""


class CollisionSection(FileSection):
    """Pairs of links that are never checked against each other, beyond those that one joint connects."""

    ignore: list[tuple[str, str]] = []
    """Pairs of links."""


class MountSection(FileSection):
    """What holds a fixed base: the most that it bears, N and N m."""

    max_force: Positive = MOUNT_LIMIT
    """N."""
    max_moment: Positive = MOUNT_LIMIT
    """N m."""


class RobotSection(FileSection):
    """The whole file."""

    mcplan: Literal[1]
    """Version of the format."""
    name: str | None = None
    """By default that of the URDF."""
    urdf: str
    """Relative to this file, or ``package://NAME/path`` in an installed package."""
    srdf: str | None = None
    """Its pairs that never collide, postures and rotors are read; by default the one that lies beside the URDF."""
    packages: list[str] = []
    """Directories in which ``package://`` of meshes is looked for."""
    base: str | None = None
    """The root link, from which the mechanism grows: by default that of the URDF."""
    forward: Axis = "x"
    """Axis of the root link that points ahead."""
    up: Axis = "z"
    """Axis of the root link that points up."""
    fixed_base: bool | MountSection | None = None
    """The base is held where it stands; with the most that its mount bears."""
    locked: dict[str, Number] = {}
    """Joints that do not move, and where they are, rad or m."""
    armature: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    """Reflected inertia of rotors by joint: gear ratio squared times the rotor's, kg m²."""
    limits: dict[str, LimitSection] = {}
    """In place of those of the URDF, by joint."""
    collision: CollisionSection = CollisionSection()
    """Pairs of links that are never checked."""
    patches: dict[str, PatchSection] = {}
    """Where the robot may touch, by name."""
    postures: dict[str, PostureSection] = {}
    """Named postures; ``half_sitting`` is the one to start in."""
