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
    """Swing of a patch in a motion (`mcplan.planning.transition.transition.SwingSpec`)."""

    patch: str
    """Name of the patch."""
    leader: Literal["own", "body"]
    """``own``: the patch follows its own path; ``body``: its path follows from the knots of the whole body."""
    lift: Triple = (0.0, 0.0, 0.0)
    """Lift-off displacement along the normal of the old support, m."""
    approach: Triple = (0.0, 0.0, 0.0)
    """Approach displacement along the normal of the new support, m."""
    leaves: bool = False
    """Whether the patch lifts off from its old support."""
    meets: bool = False
    """Whether the patch reaches its new contact."""
    waits: bool = False
    """Whether the new contact closes only after this motion."""


class NearSpec(Spec):
    """Minimum distance between bodies."""

    distance: float | None = None
    """Distance, m."""
    between: tuple[str, ...] = ()
    """Names of the two bodies."""


class LawSpec(Spec):
    """Time parameterization of a segment (`mcplan.motion.time_parameterization`)."""

    kept: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the margin of its pace that the motion keeps."""
    nodes: Annotated[tuple[str, ...], Field(min_length=2, max_length=1000)]
    """Lines ``t s sd sdd``: time t, path parameter s, its rate sd and acceleration sdd."""

    def rows(self, length: float) -> np.ndarray:
        """Return the nodes (k, 4) of the time parameterization of a path whose knots end at the time ``length`` (s).

        Raises
        ------
        ValueError
            The nodes are invalid.
        """
        rows = [[float(word) for word in line.split()] for line in self.nodes]
        if any(len(row) != 4 for row in rows) or not np.isfinite(rows).all():
            raise ValueError("expected four finite numbers in each line: t s sd sdd")
        nodes = np.array(rows)
        if nodes[0, 0] != 0.0 or nodes[0, 1] != 0.0 or (np.diff(nodes[:, :2], axis=0) <= 0.0).any():
            raise ValueError("expected t and s that rise from 0")
        if not abs(nodes[-1, 1] - length) <= 1e-9 * length:
            raise ValueError(f"s ends at {nodes[-1, 1]:g}, expected {length:g}, where the times of the knots end")
        if not (nodes[:, 2] > 0.0).all():
            raise ValueError("expected positive rates sd")
        return nodes


class SegmentSpec(Spec):
    """A motion of the whole body.

    It begins and ends at rest, except at a stance with ``v`` and ``vd``, which the robot passes with this velocity and
    acceleration.
    """

    times: Annotated[tuple[NotNegative, ...], Field(min_length=6, max_length=1000)]
    """Times of the knots, beginning with 0, s."""
    knots: Annotated[tuple[str, ...], Field(min_length=6, max_length=1000)]
    """Postures q of the whole body, each a line of numbers."""
    courses: tuple[CourseSpec, ...] = ()
    """Swings of patches that leave or reach a support."""
    near: NearSpec = NearSpec()
    """Minimum distance between bodies."""
    missed: NotNegative = 0.0
    """Deficit of the required clearance, m."""
    held: bool = True
    """Whether the closed contacts balance the robot at rest in every posture of the motion."""
    law: LawSpec | None = None
    """Time parameterization; without it the motion has the nominal times of its knots."""
    unpaced: str = ""
    """Reason why the motion has no time parameterization although the plan has a pace."""

    @field_validator("times")
    @classmethod
    def _check_times(cls, times: tuple[float, ...]) -> tuple[float, ...]:
        if times[0] != 0.0 or (np.diff(times) <= 0.0).any():
            raise ValueError("expected times that rise from 0")
        return times

    def postures(self) -> np.ndarray:
        """Return the knots (k, nq).

        Raises
        ------
        ValueError
            Values are not numbers, lines have different lengths, or the number of lines is not that of the times.
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
    """Whether the patch whose contact opens leaves its support."""
    segments: Annotated[tuple[SegmentSpec, ...], Field(min_length=1, max_length=2)]
    """One or two segments of the motion."""


Pair = tuple[float, float]
Name = Annotated[str, Field(min_length=1, max_length=100)]
CoM = Annotated[tuple[float, ...], Field(min_length=2, max_length=3)]


class SurfaceSpec(Spec):
    """A planar convex polygon: a rectangle of ``size`` centred on its pose, or a ``polygon`` by its corners."""

    name: Name
    """Unique name for references."""
    pose: PoseSpec = PoseSpec()
    """Pose of its frame: z is its outward normal; for ``size`` the origin is its middle, x and y along its edges."""
    size: tuple[Positive, Positive] | None = None
    """Length along x and width along y, m; instead of ``polygon``."""
    polygon: tuple[Pair, ...] | None = None
    """Corners x, y in its frame, m: convex, at least three."""
    thickness: NotNegative = 0.05
    """Thickness of the slab below it, which is a collision body, m."""
    friction: NotNegative = 0.7
    """Coulomb coefficient."""

    @model_validator(mode="after")
    def _check_outline(self) -> "SurfaceSpec":
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
    """Ends of its axis in the world, m."""
    radius: Positive
    """Radius, m."""
    friction: NotNegative = 0.7
    """Coulomb coefficient, for contacts that are not grasps."""
    max_force: Positive | None = None
    """Maximum force of a grasp of this bar, N, instead of that of the patch: a rough or thick bar is held better."""

    @model_validator(mode="after")
    def _check_length(self) -> "BarSpec":
        if np.linalg.norm(np.subtract(*self.ends)) < 1e-6:
            raise ValueError("the two ends are the same point")
        return self


class BoxSpec(Spec):
    """A box centred on its frame."""

    size: tuple[Positive, Positive, Positive]
    """Edge lengths along x, y and z, m."""


class SphereSpec(Spec):
    """A sphere centred on its frame."""

    radius: Positive
    """Radius, m."""


class RoundSpec(Spec):
    """A cylinder or capsule along z, centred on its frame."""

    radius: Positive
    """Radius, m."""
    length: Positive
    """Length, m; of a capsule without its half spheres."""


class MeshSpec(Spec):
    """A mesh file, relative to the scenario; its vertices are multiplied by ``scale``."""

    file: str
    """Path of an STL, OBJ, PLY, OFF or COLLADA file; its convex hull is used."""
    scale: Positive = 1.0
    """Factor that converts its lengths to m; 1 for a file in m."""


class HullSpec(Spec):
    """A convex solid, given by its corners."""

    points: Annotated[tuple[Triple, ...], Field(min_length=4, max_length=10_000)]
    """Corners in its frame, m."""

    @model_validator(mode="after")
    def _check_volume(self) -> "HullSpec":
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
    """A box."""
    sphere: SphereSpec | None = None
    """A sphere."""
    capsule: RoundSpec | None = None
    """A cylinder with half spheres at its ends, along z."""
    cylinder: RoundSpec | None = None
    """A cylinder along z."""
    mesh: MeshSpec | None = None
    """A mesh."""
    hull: HullSpec | None = None
    """A convex solid, given by its corners."""

    @model_validator(mode="after")
    def _check_shape(self) -> "SolidSpec":
        shapes = ("box", "sphere", "capsule", "cylinder", "mesh", "hull")
        given = [name for name in shapes if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of {', '.join(shapes)}; given: {', '.join(given) or 'none'}")
        return self


class ObstacleSpec(SolidSpec):
    """A solid that the robot must not touch."""


class ObjectSpec(SolidSpec):
    """A movable solid; the poses of its surfaces are relative to its own.

    It lies on surfaces of the environment, and may reach beyond their edges as long as its centre of mass does not. The
    robot cannot touch stacked objects.
    """

    mass: Positive
    """Mass, kg; the inertia is that of a solid of uniform density."""
    friction: NotNegative = 0.7
    """Coulomb coefficient of its sides; its ``surfaces`` have their own."""
    surfaces: tuple[SurfaceSpec, ...] = ()
    """Surfaces for contacts, with poses in the object's frame."""


class EnvironmentSpec(Spec):
    """Environment of the robot; ``friction`` here replaces that of every surface and bar."""

    surfaces: tuple[SurfaceSpec, ...] = ()
    """Surfaces to stand on or lean on."""
    bars: tuple[BarSpec, ...] = ()
    """Bars to grasp or stand on."""
    obstacles: tuple[ObstacleSpec, ...] = ()
    """Solids that the robot must not touch."""
    objects: tuple[ObjectSpec, ...] = ()
    """Movable solids."""
    friction: NotNegative | None = None
    """Friction coefficient that replaces that of every surface and bar."""
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
    """Pose of the origin of ``mesh`` in the world."""
    find: FindSettings | None = None
    """Settings of the detection of surfaces, bars and obstacles."""

    @model_validator(mode="after")
    def _check_mesh_keys(self) -> "EnvironmentSpec":
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
        """Return ``q`` (nq,) with the joints of this posture; base and other joints are unchanged."""
        result = np.array(q, float)
        targets = self.joint_targets(robot)
        result[7:] = np.where(np.isnan(targets), result[7:], targets)
        return result

    def joint_targets(self, robot: "Robot") -> np.ndarray:
        """Return the joint positions (n,) of this posture; NaN for joints that it does not specify."""
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
    """Guess of the posture; by default the robot's ``half_sitting``."""
    base: PoseSpec | None = None
    """Guess of the pose of the base; exact for a fixed base."""
    contacts: tuple[ContactSpec, ...] = ()
    """Exact contacts at the start; if empty, the patches that rest on supports in the posture."""


@dataclass(frozen=True, eq=False)
class Start:
    """Initial state.

    Parameters
    ----------
    q : (nq,) guess of the configuration, from the given posture and base. Contacts have priority over the base, the
        base over the joints.
    contacts : exact contacts; coordinates that the file omits are those nearest to the patch at ``q``.
    posture_given, base_given : whether the file has a posture and a base; otherwise these are defaults.
    """

    q: np.ndarray
    contacts: tuple[Contact, ...]
    posture_given: bool
    base_given: bool


class BaseGoalSpec(Spec):
    """Target of the base."""

    xyz: Triple
    """Position of the base's origin in the world, m."""
    tolerance: Positive = 0.05
    """Maximum distance of the origin from ``xyz``, m."""
    rpy: Triple | None = None
    """Orientation of the base, rad; by default any."""
    angle_tolerance: Positive = 0.1
    """Maximum angle between the base's orientation and ``rpy``, rad."""

    @model_validator(mode="after")
    def _check_tolerance(self) -> "BaseGoalSpec":
        if self.rpy is None and "angle_tolerance" in self.model_fields_set:
            raise ValueError("angle_tolerance without rpy: give the orientation too, or leave the tolerance out")
        return self


class GoalItem(Spec):
    """One goal, whose conditions must all hold at the same time. Without ``contacts`` the planner chooses them."""

    contacts: tuple[ContactSpec, ...] = ()
    """Contacts to reach."""
    base: BaseGoalSpec | None = None
    """Target of the base."""
    posture: Posture | None = None
    """Target posture: a posture of the robot by name, or some joints."""
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
    def _check_conditions(self) -> "GoalItem":
        if not (self.contacts or self.base or self.posture or self.com or self.objects):
            raise ValueError("asks for nothing; give one or more of contacts, base, posture, com, objects")
        if self.only and not self.contacts:
            raise ValueError("only: true says that nothing but the listed contacts may touch, and none are listed")
        if self.posture is not None and self.posture.name is None and not self.posture.joints:
            raise ValueError("posture: names neither a posture nor a joint")
        for tolerance, field_name in (("posture_tolerance", "posture"), ("com_tolerance", "com")):
            if tolerance in self.model_fields_set and getattr(self, field_name) is None:
                raise ValueError(f"{tolerance} without {field_name}")
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
    """Poses of objects at the end of this item; contacts that stay closed push or pull the objects there."""
    moved: str | None = None
    """The patch whose contact changes (written by the planner)."""
    change: Literal["start", "add", "remove", "shift"] | None = None
    """Kind of the change (written by the planner)."""
    q: tuple[float, ...] | None = None
    """The posture (written by the planner): base position in m, quaternion w x y z, joints in rad or m."""
    wrenches: dict[str, tuple[float, float, float, float, float, float]] | None = None
    """Force (N) and moment (N m) on each patch at its origin, world axes (written by the planner)."""
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
    def _check_change(self) -> "StanceItem":
        given = [name for name in ("contacts", "add", "remove") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} in one item: a stance differs from the one before by one contact")
        return self


class StartRangeSpec(Spec):
    """Largest displacement of the robot and its start contacts in a variant."""

    xy: NotNegative = 0.0
    """Maximum displacement along x and along y, m."""
    yaw: NotNegative = 0.0
    """Maximum rotation about the vertical axis, rad."""


Percent = Annotated[str, Field(pattern=r"^[0-9.]+\s*%$")]


class ScenarioSpec(Spec):
    """A scenario or plan file."""

    mcplan: Literal[1, 2]
    """Version of the format; plans of version 2 contain the motions between their stances."""
    name: Name
    """Name of the scenario, also used for files and directories."""
    description: str = ""
    """Description of the scenario in one sentence."""
    robot: str
    """A bundled robot, or the path of a URDF or a robot.yaml, relative to this file."""
    environment: EnvironmentSpec = EnvironmentSpec()
    """Environment of the robot."""
    start: StartSpec = StartSpec()
    """Initial state."""
    goal: Goal = ()
    """One goal, or several goals to reach in order."""
    planner: PlannerSettings = PlannerSettings()
    """Settings of the planner."""
    control: ControlSettings = ControlSettings()
    """Settings of the controller and its state machine."""
    simulation: SimulationSettings = SimulationSettings()
    """Settings of the simulation."""
    stances: tuple[StanceItem, ...] = ()
    """Contact sequence, specified by the user or found by the planner."""
    plan: dict[str, Any] | None = None
    """Data of the search, in plan files (written by the planner)."""
    parameters: dict[str, float] = Field(default_factory=dict)
    """Named numbers for ``=`` expressions."""
    variants: dict[str, float | Percent | Pair | StartRangeSpec] = Field(default_factory=dict)
    """Ranges of parameters, friction and start, drawn from a seed. ``parameters`` and ``variants`` are removed when the
    file is resolved (`mcplan.scenario.parameters`)."""
    variant: dict[str, Any] | None = None
    """Values drawn from the seed of a variant (written by the program)."""
