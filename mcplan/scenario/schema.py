"""Schema of scenario and plan files."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, field_validator, model_validator

from mcplan.scene.contact import Contact
from mcplan.scene.detection.settings import FindSettings
from mcplan.scene.polygon import outline_error
from mcplan.scene.spec import AxisName, ContactSpec, NotNegative, PoseSpec, Positive, Spec, Triple
from mcplan.settings.control import ControlSettings
from mcplan.settings.planner import PlannerSettings
from mcplan.settings.simulation import SimulationSettings

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot


class CourseSpec(Spec):
    """Swing of a patch in a motion, see `mcplan.planning.transition.transition.SwingSpec`."""

    patch: str
    """Name of the patch."""
    leader: Literal["own", "body"]
    """``own``: the patch follows its own path; ``body``: its path follows from the knots of the whole body."""
    lift: Triple = (0.0, 0.0, 0.0)
    """Lift-off displacement along the normal of the old support, m."""
    approach: Triple = (0.0, 0.0, 0.0)
    """Approach displacement along the normal of the new support, m."""
    leaves: bool = False
    """Whether it lifts off from its old support."""
    meets: bool = False
    """Whether it reaches its new contact."""
    waits: bool = False
    """Whether that contact closes after this motion."""


class NearSpec(Spec):
    """Minimum distance between bodies."""

    distance: float | None = None
    """Distance, m."""
    between: tuple[str, ...] = ()
    """Names of the two bodies."""


class LawSpec(Spec):
    """Nodes of a `TimeParameterization` (`mcplan.motion.time_parameterization`), each a line ``t s sd sdd``."""

    kept: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Kept part of the margin of its pace."""
    nodes: Annotated[tuple[str, ...], Field(min_length=2, max_length=1000)]
    """Time t, path parameter s, its rate sd and acceleration sdd."""

    def rows(self, length: float) -> np.ndarray:
        """Return the nodes (k, 4) of the time parameterization of a path of a length (s).

        Raises
        ------
        ValueError
            The nodes are invalid.
        """
        rows = [[float(word) for word in line.split()] for line in self.nodes]
        if any(len(row) != 4 for row in rows) or not np.isfinite(rows).all():
            raise ValueError("expected four finite numbers in each line: t s sd sdd")
        law = np.array(rows)
        if law[0, 0] != 0.0 or law[0, 1] != 0.0 or (np.diff(law[:, :2], axis=0) <= 0.0).any():
            raise ValueError("expected t and s that rise from 0")
        if not abs(law[-1, 1] - length) <= 1e-9 * length:
            raise ValueError(f"s ends at {law[-1, 1]:g}, expected {length:g}, where the times of the knots end")
        if not (law[:, 2] > 0.0).all():
            raise ValueError("expected positive rates sd")
        return law


class SegmentSpec(Spec):
    """A motion of the whole body; ``knots`` are postures q, each a line of numbers.

    It begins and ends at rest, except at a stance with ``v`` and ``vd``, which is passed with this velocity and
    acceleration.
    """

    times: Annotated[tuple[NotNegative, ...], Field(min_length=6, max_length=1000)]
    """Times of the knots, s, from 0 on."""
    knots: Annotated[tuple[str, ...], Field(min_length=6, max_length=1000)]
    """Postures of the whole body."""
    courses: tuple[CourseSpec, ...] = ()
    """Swings of patches that leave or reach a support."""
    near: NearSpec = NearSpec()
    """Minimum distance between bodies."""
    missed: NotNegative = 0.0
    """Deficit of the required clearance, m."""
    held: bool = True
    """Whether its contacts balance the robot at rest in every posture of the motion."""
    law: LawSpec | None = None
    """Time parameterization; without it the knots have their nominal times."""
    unpaced: str = ""
    """Reason why it has no time parameterization although the plan has a pace."""

    @field_validator("times")
    @classmethod
    def _rising(cls, times: tuple[float, ...]) -> tuple[float, ...]:
        if times[0] != 0.0 or (np.diff(times) <= 0.0).any():
            raise ValueError("expected times that rise from 0")
        return times

    def postures(self) -> np.ndarray:
        """Return the knots (k, nq).

        Raises
        ------
        ValueError
            Values are no numbers, lines have different lengths, or their number differs from that of the times.
        """
        if len(self.knots) != len(self.times):
            raise ValueError(f"{len(self.knots)} knots and {len(self.times)} times; each knot has its time")
        rows = [[float(word) for word in line.split()] for line in self.knots]
        if len({len(row) for row in rows}) > 1:
            raise ValueError("knots have different numbers of values")
        q = np.array(rows)
        if not np.isfinite(q).all():
            raise ValueError("a knot holds a number that is not finite")
        return q


class TransitionSpec(Spec):
    """The motion from the previous stance."""

    ramp: NotNegative = 0.0
    """Duration of unloading before a contact opens, or of loading after it closes, s."""
    parts: bool = False
    """Whether a patch with an opened contact leaves its support."""
    segments: Annotated[tuple[SegmentSpec, ...], Field(min_length=1, max_length=2)]
    """One or two segments."""


Pair = tuple[float, float]
Name = Annotated[str, Field(min_length=1, max_length=100)]
CoM = Annotated[tuple[float, ...], Field(min_length=2, max_length=3)]


class SurfaceSpec(Spec):
    """A planar convex polygon: ``size`` is centred on the pose, or ``polygon`` gives the corners."""

    name: Name
    """Unique name for references."""
    pose: PoseSpec = PoseSpec()
    """Pose of its middle: x and y along its edges, z along its outward normal."""
    size: tuple[Positive, Positive] | None = None
    """Length along x and width along y, m; or ``polygon``."""
    polygon: tuple[Pair, ...] | None = None
    """Corners x, y in its frame, m: convex, at least three."""
    thickness: NotNegative = 0.05
    """Thickness of the slab below it, a collision body, m."""
    friction: NotNegative = 0.7
    """Coulomb coefficient."""

    @model_validator(mode="after")
    def _one_outline(self) -> "SurfaceSpec":
        if (self.size is None) == (self.polygon is None):
            raise ValueError("give either size: [length, width] or polygon: [[x, y], ...]")
        if self.polygon is not None:
            if len(self.polygon) < 3:
                raise ValueError(f"polygon has {len(self.polygon)} corners, expected at least 3")
            if error := outline_error(np.array(self.polygon)):
                raise ValueError(f"polygon {error}")
        return self

    @property
    def corners(self) -> np.ndarray:
        """Corners (k,2) in the surface frame."""
        if self.polygon is not None:
            return np.array(self.polygon)
        assert self.size is not None
        return np.array(self.size) / 2 * np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])


class BarSpec(Spec):
    """A round bar between two ends."""

    name: Name
    """Unique name for references."""
    ends: tuple[Triple, Triple]
    """Ends of its axis, world, m."""
    radius: Positive
    """m."""
    friction: NotNegative = 0.7
    """Coulomb coefficient, for contacts that are not grasps."""
    max_force: Positive | None = None
    """Largest force of a grasp of this bar, N, instead of that of the patch: a rough or thick bar holds better."""

    @model_validator(mode="after")
    def _has_length(self) -> "BarSpec":
        if np.linalg.norm(np.subtract(*self.ends)) < 1e-6:
            raise ValueError("the two ends are the same point")
        return self


class BoxSpec(Spec):
    """Full edge lengths, m."""

    size: tuple[Positive, Positive, Positive]
    """Along x, y and z, m."""


class SphereSpec(Spec):
    """Radius, m."""

    radius: Positive
    """m."""


class RoundSpec(Spec):
    """A cylinder or capsule along z: radius and length (of a capsule without its half spheres), m."""

    radius: Positive
    """m."""
    length: Positive
    """m."""


class MeshSpec(Spec):
    """A mesh file, relative to the scenario; its vertices are multiplied by ``scale``."""

    file: str
    """STL, OBJ, PLY, OFF or COLLADA; its convex hull is used."""
    scale: Positive = 1.0
    """Scale to m; 1 for a file in m."""


class HullSpec(Spec):
    """A convex solid by its corners, m."""

    points: Annotated[tuple[Triple, ...], Field(min_length=4, max_length=10_000)]
    """Its corners in its frame, m."""

    @model_validator(mode="after")
    def _solid(self) -> "HullSpec":
        points = np.array(self.points)
        if np.linalg.matrix_rank(points - points.mean(axis=0), tol=1e-6) < 3:
            raise ValueError("the points lie in one plane")
        return self


class SolidSpec(Spec):
    """A named solid: exactly one of the shapes, and its pose."""

    name: Name
    """Unique name for references."""
    pose: PoseSpec = PoseSpec()
    """Pose of its frame in the world."""
    box: BoxSpec | None = None
    """A box about its frame's origin."""
    sphere: SphereSpec | None = None
    """A sphere."""
    capsule: RoundSpec | None = None
    """A cylinder with half spheres at its ends, along z."""
    cylinder: RoundSpec | None = None
    """A cylinder along z."""
    mesh: MeshSpec | None = None
    """A mesh."""
    hull: HullSpec | None = None
    """A convex solid by its corners."""

    @model_validator(mode="after")
    def _one_shape(self) -> "SolidSpec":
        shapes = ("box", "sphere", "capsule", "cylinder", "mesh", "hull")
        given = [name for name in shapes if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of {', '.join(shapes)}; given: {', '.join(given) or 'none'}")
        return self


class ObstacleSpec(SolidSpec):
    """A solid to avoid, without contacts."""


class ObjectSpec(SolidSpec):
    """A movable solid; the poses of its surfaces are relative to its own.

    It lies on surfaces of the environment, and may reach beyond their edges as long as its centre of mass does not. The
    robot cannot touch stacked objects.
    """

    mass: Positive
    """kg; its inertia is that of a solid of uniform density."""
    friction: NotNegative = 0.7
    """Coulomb coefficient of its sides; its ``surfaces`` have their own."""
    surfaces: tuple[SurfaceSpec, ...] = ()
    """Surfaces for contacts; poses in its frame."""


class EnvironmentSpec(Spec):
    """Environment of the robot; ``friction`` here replaces that of every surface and bar."""

    surfaces: tuple[SurfaceSpec, ...] = ()
    """Surfaces to stand on or lean on."""
    bars: tuple[BarSpec, ...] = ()
    """Bars to grasp or stand on."""
    obstacles: tuple[ObstacleSpec, ...] = ()
    """Solids to avoid."""
    objects: tuple[ObjectSpec, ...] = ()
    """Movable solids."""
    friction: NotNegative | None = None
    """Replaces that of every surface and bar."""
    mesh: str | None = None
    """A mesh, height map or world (URDF, SDF, MJCF) whose surfaces, bars and obstacles are found
    (`mcplan.scene.detection`) and added to those listed here."""
    scale: Positive = 1.0
    """Factor on the lengths in the file: 0.001 for mm."""
    up: AxisName = "z"
    """Axis of the file that points up."""
    cell: Positive = 0.05
    """Distance between the points of a height map, m."""
    height: Positive = 1.0
    """Height of the brightest grey level of a height map, m."""
    pose: PoseSpec = PoseSpec()
    """Pose of its origin."""
    find: FindSettings | None = None
    """Settings of the detection."""

    @model_validator(mode="after")
    def _of_a_mesh(self) -> "EnvironmentSpec":
        if self.mesh is None and (given := {"scale", "up", "pose", "find", "cell", "height"} & self.model_fields_set):
            raise ValueError(f"{', '.join(sorted(given))} without mesh")
        return self


class PostureSpec(Spec):
    """A named posture, joints that differ from it, or both; a bare word is a name."""

    name: str | None = None
    """One of the robot's postures."""
    joints: dict[str, float] = Field(default_factory=dict)
    """Joints that differ from it, rad or m."""

    def apply(self, robot: "Robot", q: np.ndarray) -> np.ndarray:
        """Return ``q`` (nq,) with the joints of this posture; base and free joints are unchanged."""
        result = np.array(q, float)
        targets = self.joint_targets(robot)
        result[7:] = np.where(np.isnan(targets), result[7:], targets)
        return result

    def joint_targets(self, robot: "Robot") -> np.ndarray:
        """Return the joint positions (n,) of this posture; nan for joints that it leaves free."""
        result = np.full(robot.n, np.nan)
        if self.name is not None:
            result[:] = robot.posture(self.name)[7:]
        for joint, value in self.joints.items():
            result[list(robot.joint_names).index(joint)] = value
        return result


def _as_posture(value: str | PostureSpec) -> PostureSpec:
    return PostureSpec(name=value) if isinstance(value, str) else value


if TYPE_CHECKING:
    Posture = PostureSpec
else:
    Posture = Annotated[str | PostureSpec, AfterValidator(_as_posture)]


class StartSpec(Spec):
    """Initial state: the contacts are exact, the posture is a guess."""

    posture: Posture | None = None
    """A guess; by default the robot's ``half_sitting``."""
    base: PoseSpec | None = None
    """A guess; exact for a fixed base."""
    contacts: tuple[ContactSpec, ...] = ()
    """Contacts at the start; exact. If empty: patches that rest on supports in the posture."""


@dataclass(frozen=True, eq=False)
class Start:
    """Initial state.

    Parameters
    ----------
    q : (nq,) guess: the given posture at the given base. Contacts have priority over the base, the base over the
        joints.
    contacts : exact; coordinates that the file leaves out are those nearest to the patch at ``q``.
    posture_given, base_given : whether the file gives them; otherwise they are defaults.
    """

    q: np.ndarray
    contacts: tuple[Contact, ...]
    posture_given: bool
    base_given: bool


class BaseGoalSpec(Spec):
    """A place for the base: within ``tolerance`` (m); with an orientation also within ``angle_tolerance`` (rad)."""

    xyz: Triple
    """Position of the base's origin, world, m."""
    tolerance: Positive = 0.05
    """m."""
    rpy: Triple | None = None
    """Orientation of the base, rad."""
    angle_tolerance: Positive = 0.1
    """Maximum angle between the orientation and ``rpy``, rad."""

    @model_validator(mode="after")
    def _orientation_with_tolerance(self) -> "BaseGoalSpec":
        if self.rpy is None and "angle_tolerance" in self.model_fields_set:
            raise ValueError("angle_tolerance without rpy: give the orientation too, or leave the tolerance out")
        return self


class GoalItem(Spec):
    """One goal; all given conditions must hold. Without ``contacts`` the planner chooses them."""

    contacts: tuple[ContactSpec, ...] = ()
    """Contacts at the end."""
    base: BaseGoalSpec | None = None
    """Target of the base."""
    posture: Posture | None = None
    """A posture of the robot by name, or some joints."""
    posture_tolerance: Positive = 0.2
    """Tolerance of each joint, rad or m. Contacts have priority over the posture and use part of the tolerance."""
    com: CoM | None = None
    """Target of the centre of mass: x, y or x, y, z, world, m."""
    com_tolerance: Positive = 0.01
    """Tolerance of the centre of mass, m."""
    objects: dict[str, PoseSpec] = Field(default_factory=dict)
    """Target poses of free objects, by name."""
    only: bool = False
    """Whether contacts other than those listed are forbidden."""

    @model_validator(mode="after")
    def _complete(self) -> "GoalItem":
        if not (self.contacts or self.base or self.posture or self.com or self.objects):
            raise ValueError("asks for nothing; give one or more of contacts, base, posture, com, objects")
        if self.only and not self.contacts:
            raise ValueError("only: true says that nothing but the listed contacts may touch, and none are listed")
        if self.posture is not None and self.posture.name is None and not self.posture.joints:
            raise ValueError("posture: names neither a posture nor a joint")
        for tolerance, of in (("posture_tolerance", "posture"), ("com_tolerance", "com")):
            if tolerance in self.model_fields_set and getattr(self, of) is None:
                raise ValueError(f"{tolerance} without {of}")
        return self


def _as_items(value: GoalItem | tuple[GoalItem, ...]) -> tuple[GoalItem, ...]:
    return (value,) if isinstance(value, GoalItem) else value


if TYPE_CHECKING:
    Goal = tuple[GoalItem, ...]
else:
    Goal = Annotated[GoalItem | tuple[GoalItem, ...], AfterValidator(_as_items)]


class StanceItem(Spec):
    """One item of a contact sequence; the planner writes the keys after ``com``."""

    contacts: tuple[ContactSpec, ...] | None = None
    """All contacts of the stance, instead of ``add`` or ``remove``."""
    add: ContactSpec | None = None
    """The contact that closes."""
    remove: str | None = None
    """The patch whose contact opens."""
    posture: Posture | None = None
    """Preferred posture."""
    com: CoM | None = None
    """Target of the centre of mass: x, y or x, y, z, world, m."""
    objects: dict[str, PoseSpec] = Field(default_factory=dict)
    """Poses of objects at the end of this item: contacts that stay closed push or pull them there."""
    moved: str | None = None
    """The patch whose contact changes (written by the planner)."""
    change: Literal["start", "add", "remove", "shift"] | None = None
    """Kind of the change (written by the planner)."""
    q: tuple[float, ...] | None = None
    """The posture (written by the planner): base position in m, quaternion w x y z, joints in rad or m."""
    wrenches: dict[str, tuple[float, float, float, float, float, float]] | None = None
    """By patch, force in N and moment in N m, world axes at the patch (written by the planner)."""
    tau: tuple[float, ...] | None = None
    """Joint torques, N m (written by the planner)."""
    margins: dict[str, Any] | None = None
    """Margins of the posture to its limits (written by the planner)."""
    v: tuple[float, ...] | None = None
    """Velocity in the posture: base m/s, rad/s in world axes, joints rad/s or m/s (written by the planner); missing at
    rest."""
    vd: tuple[float, ...] | None = None
    """Acceleration in the posture (written by the planner)."""
    transition: TransitionSpec | None = None
    """The motion from the previous item to this one."""

    @model_validator(mode="after")
    def _one_change(self) -> "StanceItem":
        given = [name for name in ("contacts", "add", "remove") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} in one item: a stance differs from the one before by one contact")
        return self


class StartRangeSpec(Spec):
    """Largest displacement of the robot and its start contacts in a variant."""

    xy: NotNegative = 0.0
    """Along x and along y, m."""
    yaw: NotNegative = 0.0
    """rad."""


Percent = Annotated[str, Field(pattern=r"^[0-9.]+\s*%$")]


class ScenarioSpec(Spec):
    """The whole file."""

    mcplan: Literal[1, 2]
    """Version of the format: plans of version 2 hold the motion between their stances."""
    name: Name
    """Name of the scenario, also used for files and directories."""
    description: str = ""
    """Description in a sentence."""
    robot: str
    """A bundled robot, or the path of a URDF or a robot.yaml, relative to this file."""
    environment: EnvironmentSpec = EnvironmentSpec()
    """Environment of the robot."""
    start: StartSpec = StartSpec()
    """Initial state."""
    goal: Goal = ()
    """One item, or several to reach in order."""
    planner: PlannerSettings = PlannerSettings()
    """Settings of the planner."""
    control: ControlSettings = ControlSettings()
    """Settings of the controller and its state machine."""
    simulation: SimulationSettings = SimulationSettings()
    """Settings of the simulation."""
    stances: tuple[StanceItem, ...] = ()
    """Contact sequence, specified by the user or found by the planner."""
    plan: dict[str, Any] | None = None
    """Data of the search, in a plan file (written by the planner)."""
    parameters: dict[str, float] = Field(default_factory=dict)
    """Named numbers for ``=`` expressions."""
    variants: dict[str, float | Percent | Pair | StartRangeSpec] = Field(default_factory=dict)
    """Ranges of parameters, friction and start, drawn from a seed. ``parameters`` and ``variants`` are removed when the
    file is resolved (`mcplan.scenario.parameters`)."""
    variant: dict[str, Any] | None = None
    """Values drawn from the seed of a variant (written by the program)."""
