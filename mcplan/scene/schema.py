"""The scenario file, key by key."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from mcplan.scene.find_settings import FindSettings
from mcplan.scene.polygon import area, is_convex
from mcplan.scene.settings import ControlSettings, PlannerSettings, SimulationSettings
from mcplan.scene.spec import AxisName, ContactSpec, NotNegative, PoseSpec, Positive, Spec, Triple
from mcplan.scene.transition_spec import TransitionSpec

if TYPE_CHECKING:
    from mcplan.model.robot import Robot

Pair = tuple[float, float]
Name = Annotated[str, Field(min_length=1, max_length=100)]
CoM = Annotated[tuple[float, ...], Field(min_length=2, max_length=3)]


class SurfaceSpec(Spec):
    """A planar convex patch: ``size`` is centred on the pose, or ``polygon`` gives the corners."""

    name: Name
    pose: PoseSpec = PoseSpec()
    size: tuple[Positive, Positive] | None = None
    polygon: tuple[Pair, ...] | None = None
    thickness: NotNegative = 0.05
    friction: NotNegative = 0.7

    @model_validator(mode="after")
    def _one_outline(self) -> "SurfaceSpec":
        if (self.size is None) == (self.polygon is None):
            raise ValueError("give either size: [length, width] or polygon: [[x, y], ...]")
        if self.polygon is not None:
            if len(self.polygon) < 3:
                raise ValueError(f"polygon has {len(self.polygon)} corners, expected at least 3")
            if abs(area(np.array(self.polygon))) < 1e-9 or not is_convex(np.array(self.polygon)):
                raise ValueError("polygon is not convex; split it into convex surfaces")
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
    ends: tuple[Triple, Triple]
    radius: Positive
    friction: NotNegative = 0.7
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


class SphereSpec(Spec):
    """Radius, m."""

    radius: Positive


class RoundSpec(Spec):
    """A cylinder or capsule along z: radius and length (of a capsule without its half spheres), m."""

    radius: Positive
    length: Positive


class MeshSpec(Spec):
    """A mesh file, relative to the scenario; its vertices are multiplied by ``scale``."""

    file: str
    scale: Positive = 1.0


class HullSpec(Spec):
    """A convex solid by its corners, m."""

    points: Annotated[tuple[Triple, ...], Field(min_length=4, max_length=1000)]

    @model_validator(mode="after")
    def _solid(self) -> "HullSpec":
        points = np.array(self.points)
        if np.linalg.matrix_rank(points - points.mean(axis=0), tol=1e-6) < 3:
            raise ValueError("the points lie in one plane")
        return self


class SolidSpec(Spec):
    """A named solid: exactly one of the shapes, and its pose."""

    name: Name
    pose: PoseSpec = PoseSpec()
    box: BoxSpec | None = None
    sphere: SphereSpec | None = None
    capsule: RoundSpec | None = None
    cylinder: RoundSpec | None = None
    mesh: MeshSpec | None = None
    hull: HullSpec | None = None

    @model_validator(mode="after")
    def _one_shape(self) -> "SolidSpec":
        shapes = ("box", "sphere", "capsule", "cylinder", "mesh", "hull")
        given = [name for name in shapes if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of {', '.join(shapes)}; given: {', '.join(given) or 'none'}")
        return self


class ObstacleSpec(SolidSpec):
    """A solid that only collides."""


class ObjectSpec(SolidSpec):
    """A solid that can be moved; the poses of its surfaces are relative to its own."""

    mass: Positive
    friction: NotNegative = 0.7
    surfaces: tuple[SurfaceSpec, ...] = ()


class EnvironmentSpec(Spec):
    """What stands around the robot; ``friction`` here replaces that of every surface and bar."""

    surfaces: tuple[SurfaceSpec, ...] = ()
    bars: tuple[BarSpec, ...] = ()
    obstacles: tuple[ObstacleSpec, ...] = ()
    objects: tuple[ObjectSpec, ...] = ()
    friction: NotNegative | None = None
    mesh: str | None = None
    """A file whose surfaces, bars and obstacles are found (`mcplan.scene.found`) and added to those listed here."""
    scale: Positive = 1.0
    """What its lengths are multiplied by: 0.001 for mm."""
    up: AxisName = "z"
    """Which of its axes points up."""
    cell: Positive = 0.05
    height: Positive = 1.0
    """Of a height map: the distance of its points, and how high the brightest grey level is, m."""
    pose: PoseSpec = PoseSpec()
    """Where its origin is."""
    find: FindSettings | None = None

    @model_validator(mode="after")
    def _of_a_mesh(self) -> "EnvironmentSpec":
        if self.mesh is None and (given := {"scale", "up", "pose", "find", "cell", "height"} & self.model_fields_set):
            raise ValueError(f"{', '.join(sorted(given))} without mesh")
        return self


class PostureSpec(Spec):
    """A named posture, joints that differ from it, or both; a bare word is a name."""

    name: str | None = None
    joints: dict[str, float] = Field(default_factory=dict)

    def apply(self, robot: "Robot", q: np.ndarray) -> np.ndarray:
        """Return ``q`` (nq,) with the base kept and the joints of this posture.

        Joints that the posture does not name are those of ``q``.
        """
        result = np.array(q, float)
        asked = self.asked(robot)
        result[7:] = np.where(np.isnan(asked), result[7:], asked)
        return result

    def asked(self, robot: "Robot") -> np.ndarray:
        """Return the joints (n,) of this posture; nan for those that it says nothing about.

        A name says all of them; ``joints`` alone say only themselves.
        """
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
    """Where the motion begins: the posture is a guess, the contacts are exact."""

    posture: Posture | None = None
    base: PoseSpec | None = None
    contacts: tuple[ContactSpec, ...] = ()


class BaseGoalSpec(Spec):
    """A place for the base: within ``tolerance`` (m); with an orientation also within ``angle_tolerance`` (rad)."""

    xyz: Triple
    tolerance: Positive = 0.05
    rpy: Triple | None = None
    angle_tolerance: Positive | None = None

    @model_validator(mode="after")
    def _orientation_with_tolerance(self) -> "BaseGoalSpec":
        if (self.rpy is None) != (self.angle_tolerance is None):
            raise ValueError("rpy and angle_tolerance are given together or not at all")
        return self


class GoalItem(Spec):
    """One goal; everything given must hold. Without contacts it leaves them to the planner."""

    contacts: tuple[ContactSpec, ...] = ()
    base: BaseGoalSpec | None = None
    posture: Posture | None = None
    posture_tolerance: Positive = 0.2
    """How far each joint may be from the posture: rad, or m. Contacts outrank the posture and take up part of this."""
    com: CoM | None = None
    com_tolerance: Positive = 0.01
    """How far the centre of mass may be from ``com``, m."""
    objects: dict[str, PoseSpec] = Field(default_factory=dict)
    only: bool = False
    """No other contacts than those listed."""

    @model_validator(mode="after")
    def _understood(self) -> "GoalItem":
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
    """One item of a sequence; the keys after ``com`` are written by the planner."""

    contacts: tuple[ContactSpec, ...] | None = None
    add: ContactSpec | None = None
    remove: str | None = None
    posture: Posture | None = None
    com: CoM | None = None
    objects: dict[str, PoseSpec] = Field(default_factory=dict)
    """Poses that objects have at the end of this item: the contacts that stay on them push or pull them there."""
    moved: str | None = None
    change: Literal["start", "add", "remove", "shift"] | None = None
    q: tuple[float, ...] | None = None
    wrenches: dict[str, tuple[float, float, float, float, float, float]] | None = None
    tau: tuple[float, ...] | None = None
    margins: dict[str, Any] | None = None
    transition: TransitionSpec | None = None
    """The motion that leads here from the item before."""

    @model_validator(mode="after")
    def _one_change(self) -> "StanceItem":
        given = [name for name in ("contacts", "add", "remove") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} in one item: a stance differs from the one before by one contact")
        return self


class ScenarioSpec(Spec):
    """The whole file."""

    mcplan: Literal[1, 2]
    """Version of the format: plans of version 2 hold the motion between their stances."""
    name: Name
    description: str = ""
    robot: str
    environment: EnvironmentSpec = EnvironmentSpec()
    start: StartSpec = StartSpec()
    goal: Goal = ()
    planner: PlannerSettings = PlannerSettings()
    control: ControlSettings = ControlSettings()
    simulation: SimulationSettings = SimulationSettings()
    stances: tuple[StanceItem, ...] = ()
    plan: dict[str, Any] | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    variants: dict[str, Any] = Field(default_factory=dict)
    """Both are gone once the file is resolved (`mcplan.scene.parameters`); what a seed drew stands in ``variant``."""
    variant: dict[str, Any] | None = None
