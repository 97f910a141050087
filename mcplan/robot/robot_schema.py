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
    """A pose: position, and orientation as ``rpy`` or ``quat_wxyz``."""

    xyz: Vector = (0.0, 0.0, 0.0)
    """Position, m."""
    rpy: Vector | None = None
    """Roll, pitch, yaw, rad: the rotation is ``Rz(yaw) Ry(pitch) Rx(roll)``."""
    quat_wxyz: tuple[Number, Number, Number, Number] | None = None
    """Unit quaternion w, x, y, z, instead of ``rpy``."""


class PatchSection(FileSection):
    """A contact patch."""

    link: str
    """Link that carries the patch."""
    pose: PoseSection = PoseSection()
    """Pose of the patch in the link; its z axis points out of the link."""
    polygon: list[Corner] | None = None
    """Corners x, y of a convex polygon in the patch's plane, m; two corners are an edge."""
    kind: Kind = "surface"
    """``surface``, ``point``, ``ball`` or ``grasp`` (see [Patches](../robots.md#patches))."""
    radius: Annotated[float, Field(gt=0, le=1)] | None = None
    """Radius of a ball, m; ``pose`` is then the pose of its centre."""
    limb: str | None = None
    """Name of the limb that moves the patch; patches of the same limb move together."""
    max_force: Positive | None = None
    """Maximum normal force, or maximum force of a grasp, N."""
    max_moment: Positive | None = None
    """Maximum moment of a grasp, N m."""


class PostureSection(FileSection):
    """A named posture."""

    base: PoseSection = PoseSection()
    """Pose of the base; the ground is z = 0."""
    joints: dict[str, Number] = {}
    """Joint positions, rad or m; joints that are not listed are at 0."""


class LimitSection(FileSection):
    """Limits that replace those of the URDF."""

    lower: Number | None = None
    """Lower limit of the position, rad or m."""
    upper: Number | None = None
    """Upper limit of the position, rad or m."""
    velocity: Positive | None = None
    """Limit of the speed, rad/s or m/s."""
    torque: Positive | None = None
    """Limit of the torque or force, N m or N."""


class CollisionSection(FileSection):
    """Exceptions of the check for self-collision; links connected by a joint are never checked."""

    ignore: list[tuple[str, str]] = []
    """Pairs of links that are never checked against each other."""


class MountSection(FileSection):
    """Load limits of the mount of a fixed base."""

    max_force: Positive = MOUNT_LIMIT
    """Maximum force, N."""
    max_moment: Positive = MOUNT_LIMIT
    """Maximum moment, N m."""


class RobotSection(FileSection):
    """A ``robot.yaml`` file."""

    mcplan: Literal[1]
    """Version of the format."""
    name: str | None = None
    """Name of the robot; by default that of the URDF."""
    urdf: str
    """URDF file: relative to this file, or ``package://NAME/path`` in an installed package."""
    srdf: str | None = None
    """SRDF with disabled collision pairs, postures and rotors; by default the one beside the URDF."""
    packages: list[str] = []
    """Directories to search for the packages of ``package://`` paths."""
    base: str | None = None
    """Root link of the mechanism; by default that of the URDF."""
    forward: Axis = "x"
    """Axis of the root link that points forward."""
    up: Axis = "z"
    """Axis of the root link that points up."""
    fixed_base: bool | MountSection | None = None
    """Whether the base is fixed to the world, or the load limits of its mount."""
    locked: dict[str, Number] = {}
    """Positions of locked joints by name, rad or m."""
    armature: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    """Reflected rotor inertia by joint, kg m²: rotor inertia times the squared gear ratio."""
    limits: dict[str, LimitSection] = {}
    """Limits by joint, which replace those of the URDF."""
    collision: CollisionSection = CollisionSection()
    """Exceptions of the check for self-collision."""
    patches: dict[str, PatchSection] = {}
    """Contact patches by name."""
    postures: dict[str, PostureSection] = {}
    """Named postures; ``half_sitting`` is the default start posture."""
