"""Schema of ``robot.yaml``: types and ranges; the loader checks values against the URDF."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcplan.robot.patch import MOUNT_LIMIT, Kind
from mcplan.robot.rerooted import Axis

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Corner = tuple[Number, Number]
Vector = tuple[Number, Number, Number]


class FileSection(BaseModel):
    """Base class of file sections; unknown keys are errors."""

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
    """Link of the patch."""
    pose: PoseSection = PoseSection()
    """Pose of the patch in the link; its z axis points out of the link."""
    polygon: list[Corner] | None = None
    """Corners x, y in the patch's plane, m: convex; two are an edge."""
    kind: Kind = "surface"
    """``surface``, ``point``, ``ball`` or ``grasp`` (see [Patches](../robots.md#patches))."""
    radius: Annotated[float, Field(gt=0, le=1)] | None = None
    """Radius of a ball, m; ``pose`` is then that of its centre."""
    limb: str | None = None
    """Name of the limb that moves it; patches of the same limb move together."""
    max_force: Positive | None = None
    """Maximum normal force, or maximum force of a grasp, N."""
    max_moment: Positive | None = None
    """Maximum moment of a grasp, N m."""


class PostureSection(FileSection):
    """One named posture; other joints are 0."""

    base: PoseSection = PoseSection()
    """Pose of the base; the ground is z = 0."""
    joints: dict[str, Number] = {}
    """rad or m; other joints are 0."""


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
    """Load limits of a fixed base's mount, N and N m."""

    max_force: Positive = MOUNT_LIMIT
    """N."""
    max_moment: Positive = MOUNT_LIMIT
    """N m."""


class RobotSection(FileSection):
    """The whole file."""

    mcplan: Literal[1]
    """Version of the format."""
    name: str | None = None
    """Name of the robot; by default that of the URDF."""
    urdf: str
    """URDF file: relative to this file, or ``package://NAME/path`` in an installed package."""
    srdf: str | None = None
    """SRDF with disabled collision pairs, postures and rotors; by default the one beside the URDF."""
    packages: list[str] = []
    """Directories to search for ``package://`` of meshes."""
    base: str | None = None
    """Root link of the mechanism; by default that of the URDF."""
    forward: Axis = "x"
    """Axis of the root link that points forward."""
    up: Axis = "z"
    """Axis of the root link that points up."""
    fixed_base: bool | MountSection | None = None
    """Whether the base is fixed to the world, or the load limits of its mount."""
    locked: dict[str, Number] = {}
    """Locked joints with their positions, rad or m."""
    armature: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    """Reflected inertia of rotors by joint: gear ratio squared times the rotor's, kg m²."""
    limits: dict[str, LimitSection] = {}
    """Limits by joint, instead of those of the URDF."""
    collision: CollisionSection = CollisionSection()
    """Pairs of links that are never checked."""
    patches: dict[str, PatchSection] = {}
    """Contact patches by name."""
    postures: dict[str, PostureSection] = {}
    """Named postures; ``half_sitting`` is the default start posture."""
