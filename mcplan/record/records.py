"""Schema of a run's record (robot, scenario, plan, phases): complete for checks and display without other files.

The records are plain numbers without references to other files; an absent limit is null. They are validated when a run
is read, so that the checks can rely on every shape.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

EFFORT_UNITS = {"rad": "N m", "m": "N"}
"""Unit of a joint's effort (torque or force) by the unit of its position."""

Vector3 = Annotated[list[float], Field(min_length=3, max_length=3)]
Matrix3 = Annotated[list[Vector3], Field(min_length=3, max_length=3)]
Vector6 = Annotated[list[float], Field(min_length=6, max_length=6)]
Vector7 = Annotated[list[float], Field(min_length=7, max_length=7)]
Limit = Annotated[float, Field(ge=0)] | None


class Record(BaseModel):
    """Base class of records; unknown keys and numbers that are not finite are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class LinkRecord(Record):
    """A rigid link.

    Parameters
    ----------
    mass : kg.
    com : centre of mass in the link's frame, m.
    inertia : at the centre of mass, in the link's axes, kg m².
    """

    name: str
    mass: float
    com: Vector3
    inertia: Matrix3


class JointRecord(Record):
    """A joint between two links; ``position = multiplier * q[6 + coordinate] + offset``.

    Parameters
    ----------
    kind : ``fixed``, ``revolute``, ``prismatic`` or ``ball``; a locked joint keeps its kind and has no coordinate. A
        ball joint is a chain of three joint records (x, y, z) at one place. Their coordinates are the rotation vector
        of the child of the last one; the children of the other two stay aligned with the joint's frame.
    parent, child : indices of the links.
    R, p : joint frame in the parent link, at position zero; m.
    axis : unit vector in the joint's frame.
    coordinate : index into the joints of the run, or -1 if the position is constant, ``offset``.
    multiplier, offset : coupling of a mimic joint, otherwise 1 and 0. A locked joint has its constant position in
        ``offset`` (rad or m).
    """

    name: str
    kind: Literal["fixed", "revolute", "prismatic", "ball"]
    parent: int = Field(ge=0)
    child: int = Field(ge=1)
    R: Matrix3
    p: Vector3
    axis: Vector3
    coordinate: int = Field(default=-1, ge=-1)
    multiplier: float = 1.0
    offset: float = 0.0

    @property
    def part(self) -> int | None:
        """Index of the part of a ball joint, 0 to 2; None for other joints."""
        return int(np.argmax(self.axis)) if self.kind == "ball" else None


class PatchRecord(Record):
    """A contact patch on a link.

    Parameters
    ----------
    kind : ``surface``, ``point``, ``ball`` or ``grasp``.
    polygon : corners in patch axes, m.
    R, p : patch frame in the link, m.
    radius : radius of a ball, otherwise 0, m.
    """

    name: str
    link: int = Field(ge=0)
    kind: str
    polygon: list[Annotated[list[float], Field(min_length=2, max_length=3)]]
    R: Matrix3
    p: Vector3
    radius: float = Field(default=0.0, ge=0)


class MeshRecord(Record):
    """Triangles: ``vertices`` in m (of a URDF mesh: unscaled), and ``faces``, three indices of vertices each."""

    vertices: list[Vector3] = Field(min_length=1)
    faces: list[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=3, max_length=3)]] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_indices(self) -> "MeshRecord":
        largest = max(map(max, self.faces))
        if largest >= len(self.vertices):
            raise ValueError(f"a face has the vertex {largest} of {len(self.vertices)}")
        return self


class RobotRecord(Record):
    """Record of a robot: all links and joints of its description, including fixed ones.

    Parameters
    ----------
    digest : SHA-256 of the robot's files.
    links : the first one is the floating base.
    joints : one for each link except the base, in an order in which parents precede children.
    coordinates : names of the joints that have a coordinate, in the order of ``q``.
    lower, upper, velocity, torque : limits per coordinate, null if there is none; rad, rad/s, N m (or m, m/s, N).
    armature : rotor inertia per coordinate that the equation of motion includes, kg m².
    files : text of the robot's files by the names ``robot.yaml``, ``robot.urdf``, ``robot.srdf``; to rebuild the robot.
    meshes : meshes by their names in the URDF, large ones as convex hulls; to rebuild the robot.
    """

    name: str
    digest: str
    links: list[LinkRecord] = Field(min_length=1)
    joints: list[JointRecord]
    coordinates: list[str]
    lower: list[float | None]
    upper: list[float | None]
    velocity: list[Limit]
    torque: list[Limit]
    armature: list[float]
    patches: list[PatchRecord]
    files: dict[str, str] = {}
    meshes: dict[str, MeshRecord] = {}

    @model_validator(mode="after")
    def _check_tree(self) -> "RobotRecord":
        n, reached = len(self.coordinates), {0}
        for name in ("lower", "upper", "velocity", "torque", "armature"):
            if len(getattr(self, name)) != n:
                raise ValueError(f"{name} has {len(getattr(self, name))} entries for {n} joints")
        for joint in self.joints:
            if joint.parent not in reached or joint.child in reached or joint.child >= len(self.links):
                raise ValueError(f"joint {joint.name} does not continue the tree of links")
            if joint.coordinate >= n:
                raise ValueError(f"joint {joint.name} has coordinate {joint.coordinate} of {n}")
            reached.add(joint.child)
        self._check_ball_joints()
        if len(reached) != len(self.links):
            raise ValueError("some links have no parent joint")
        for patch in self.patches:
            if patch.link >= len(self.links):
                raise ValueError(f"patch {patch.name} is on link {patch.link} of {len(self.links)}")
        return self

    def _check_ball_joints(self) -> None:
        """Check that every ball joint has its three parts, in order, with consecutive coordinates."""
        parts = {joint.child: joint for joint in self.joints if joint.kind == "ball"}
        for joint in parts.values():
            part = joint.part or 0
            previous, is_uncoupled = parts.get(joint.parent), (joint.multiplier, joint.offset) == (1.0, 0.0)
            continues_chain = part == 0 or (
                previous is not None
                and previous.part == part - 1
                and previous.coordinate == joint.coordinate - 1
                and not np.any(joint.p)
                and np.array_equal(joint.R, np.eye(3))
            )
            has_next_part = part == 2 or any(other.parent == joint.child for other in parts.values())
            if not (
                is_uncoupled
                and continues_chain
                and has_next_part
                and joint.coordinate >= 0
                and joint.axis == np.eye(3)[part].tolist()
            ):
                raise ValueError(f"joint {joint.name} is not a valid part of a ball joint")

    def limit(self, name: str) -> np.ndarray:
        """Return the limits ``lower``, ``upper``, ``velocity`` or ``torque`` (n,), infinite where absent."""
        default = -np.inf if name == "lower" else np.inf
        return np.array([default if value is None else value for value in getattr(self, name)], dtype=float)


class ContactRecord(Record):
    """A planned contact in the world.

    Parameters
    ----------
    kind : ``surface``, ``point``, ``ball`` or ``grasp``.
    R, p : target pose of the patch frame in the world, m.
    points : points where the contact forces act, in patch axes, m.
    axes : tangents t1, t2 and normal n of the contact as columns, in world axes; n points away from the support.
    selection : orthonormal rows, the constrained directions in patch axes (linear, angular).
    rolls : whether ``axes`` rotate with the patch, as for a flat patch on a bar.
    radius : radius of a ball, m; otherwise 0. For a ball, p is the position of its centre with the patch upright
        (R), and ``points`` and ``selection`` are in the axes R, whatever the rotation of its link.
    friction : friction coefficient; null for a grasp.
    max_force, max_moment : limits of a grasp, N, N m; null without limit.
    carrier, carrier_pose : object that carries the support, and its position and quaternion w x y z while the patch
        is at ``R, p``; null for supports in the environment.
    """

    patch: str
    support: str
    kind: Literal["surface", "point", "ball", "grasp"]
    R: Matrix3
    p: Vector3
    points: list[Vector3] = Field(min_length=1)
    axes: Matrix3
    friction: float | None = Field(default=None, ge=0)
    max_force: Limit = None
    max_moment: Limit = None
    selection: list[Vector6]
    rolls: bool = False
    radius: float = Field(default=0.0, ge=0)
    carrier: str | None = None
    carrier_pose: Vector7 | None = None

    @model_validator(mode="after")
    def _check_carrier(self) -> "ContactRecord":
        if (self.carrier is None) != (self.carrier_pose is None):
            raise ValueError(f"contact of {self.patch}: carrier and carrier_pose are given together or not at all")
        return self


class BodyRecord(Record):
    """A free object.

    Parameters
    ----------
    mass : kg.
    com : centre of mass in the object's frame, m.
    inertia : about the centre of mass, in the object's axes, kg m².
    friction : friction coefficient of the object's surface.
    up : normal of the support that it rests on at the start, in world axes; null without support.
    """

    name: str
    mass: float = Field(gt=0)
    com: Vector3
    inertia: Matrix3
    friction: float = Field(ge=0)
    up: Vector3 | None = None


class StanceRecord(Record):
    """A planned stance: the contacts, and the posture ``q`` in which the robot reaches it.

    ``wrenches`` and ``tau`` hold the posture at rest. If the robot passes the stance in motion, they produce the
    acceleration ``vd`` at the velocity ``v``.

    Parameters
    ----------
    moved : patch whose contact differs from that of the preceding stance, or null.
    change : how it differs, ``start`` for the first stance.
    """

    contacts: list[ContactRecord]
    moved: str | None = None
    change: str = "start"
    q: list[float]
    wrenches: dict[str, Vector6] = {}
    tau: list[float] = []
    v: list[float] = []
    vd: list[float] = []

    def contact(self, patch: str) -> ContactRecord | None:
        """Return the contact of a patch, or None."""
        return next((c for c in self.contacts if c.patch == patch), None)


class DocumentRecord(Record):
    """Content of a user's file, with overrides applied, and the SHA-256 of this content."""

    digest: str = ""
    document: dict[str, Any] = {}


class PlanRecord(DocumentRecord):
    """Record of a plan: content of its file, resolved stances, free objects, and meshes of objects and obstacles."""

    stances: list[StanceRecord] = Field(min_length=1)
    meshes: dict[str, MeshRecord] = {}
    bodies: list[BodyRecord] = []


class PhaseRecord(Record):
    """A phase of the state machine.

    Parameters
    ----------
    name : name of the phase, such as ``shift``.
    stance : index of the stance of the plan that the phase leads to, or null.
    ended_by : criterion that ended the phase; null for the last one.
    """

    name: str
    stance: int | None = Field(default=None, ge=0)
    ended_by: str | None = None


class NoticeRecord(Record):
    """An event that the plan did not foresee.

    Parameters
    ----------
    t : time, s.
    text : the message.
    bodies : names of the patch or of the two bodies concerned; empty if the event concerns no particular body.
    amount : size of the violation, m; null if the event has no measure.
    """

    t: float
    text: str
    bodies: list[str] = []
    amount: float | None = None


class PlaceRecord(Record):
    """Pose of a frame in the world, m."""

    R: Matrix3
    p: Vector3


class WorldRecord(Record):
    """Differences between the physics and the robot or plan; empty if there are none.

    Parameters
    ----------
    links : links with payloads and mass errors, by name.
    friction : factor on the friction coefficient of each surface, bar or object, by name.
    surfaces : actual poses of displaced surfaces, by name.
    """

    links: dict[str, LinkRecord] = {}
    friction: dict[str, Annotated[float, Field(gt=0)]] = {}
    surfaces: dict[str, PlaceRecord] = {}


class RunRecord(Record):
    """Record of a run: everything except its arrays; stored as ``meta`` in the run file.

    Parameters
    ----------
    mcplan_run : version of the file format.
    mcplan : version of the program that wrote it.
    dt : simulation step, s.
    physics : name of the physics back end.
    seed : seed of all random numbers of the run.
    controller : class name of a custom controller; empty for the whole-body program.
    joints, links, objects, patches : names to which the indices in the arrays refer.
    notices : events that the plan did not foresee, in order of time: slipping contacts, blocked paths.
    stopped : null if the simulation reached the end of the state machine, otherwise the reason of the stop.
    world : differences between the physics and the model of planner and controller.
    """

    mcplan_run: Literal[1]
    mcplan: str
    dt: float = Field(gt=0)
    physics: str
    seed: int
    controller: str = ""
    joints: list[str]
    links: list[str]
    objects: list[str] = []
    patches: list[str]
    phases: list[PhaseRecord]
    notices: list[NoticeRecord] = []
    stopped: str | None = None
    robot: RobotRecord
    scenario: DocumentRecord
    plan: PlanRecord
    world: WorldRecord = WorldRecord()

    @model_validator(mode="after")
    def _check_consistency(self) -> "RunRecord":
        n, patches = len(self.joints), {patch.name for patch in self.robot.patches}
        if self.joints != self.robot.coordinates:
            raise ValueError("joints are not those of the robot")
        if self.links != [link.name for link in self.robot.links]:
            raise ValueError("links are not those of the robot")
        if set(self.world.links) - set(self.links):
            raise ValueError(f"link {min(set(self.world.links) - set(self.links))} is not on the robot")
        if len(set(self.patches)) != len(self.patches):
            raise ValueError("a patch is listed twice")
        for k, stance in enumerate(self.plan.stances):
            if len(stance.q) != 7 + n or len(stance.tau) not in (0, n):
                raise ValueError(f"stance {k}: q or tau has the wrong length for {n} joints")
            unknown = {contact.patch for contact in stance.contacts} - set(self.patches)
            if unknown:
                raise ValueError(f"stance {k}: patch {min(unknown)} is not among the patches of the run")
        for name in self.patches:
            if name not in patches:
                raise ValueError(f"patch {name} is not on the robot")
        for phase in self.phases:
            if phase.stance is not None and phase.stance >= len(self.plan.stances):
                raise ValueError(f"phase {phase.name} leads to stance {phase.stance} of {len(self.plan.stances)}")
        return self


def recorded_units(robot: RobotRecord) -> list[str]:
    """Return the unit (rad or m) of each joint position of a recorded robot, as `Robot.joint_units`."""
    prismatic = {joint.name for joint in robot.joints if joint.kind == "prismatic"}
    return ["m" if name in prismatic else "rad" for name in robot.coordinates]


def unit_of_all(units: Iterable[str]) -> str:
    """Return the common unit of several joints: ``rad``, ``m``, or ``rad or m`` if both occur."""
    return " or ".join(sorted(set(units), reverse=True)) or "rad"
