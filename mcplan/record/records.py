"""Schema of a run's record (robot, scenario, plan, phases): complete for checks and display without other files.

The records are plain numbers, resolved: no names to look up, no defaults, null where a limit is absent. They are
validated when a run is read, so that the checks can rely on every shape.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

FORCES = {"rad": "N m", "m": "N"}
"""Unit of a joint's force or torque, by the unit of its position."""

Vector3 = Annotated[list[float], Field(min_length=3, max_length=3)]
Matrix3 = Annotated[list[Vector3], Field(min_length=3, max_length=3)]
Vector6 = Annotated[list[float], Field(min_length=6, max_length=6)]
Vector7 = Annotated[list[float], Field(min_length=7, max_length=7)]
Limit = Annotated[float, Field(ge=0)] | None


class Record(BaseModel):
    """Base class of records; it refuses unknown keys and numbers that are not finite."""

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
    multiplier, offset : coupling of a mimic joint (otherwise 1 and 0); offset of a locked joint: its value; rad or m.
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
    """A contact patch: its frame (R, p) in a link, its polygon in its own axes, the radius of a ball, m."""

    name: str
    link: int = Field(ge=0)
    kind: str
    polygon: list[Annotated[list[float], Field(min_length=2, max_length=3)]]
    R: Matrix3
    p: Vector3
    radius: float = Field(default=0.0, ge=0)


class MeshRecord(Record):
    """Triangles: ``vertices`` in m (those of a URDF before its scale), ``faces`` their indices."""

    vertices: list[Vector3] = Field(min_length=1)
    faces: list[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=3, max_length=3)]] = Field(min_length=1)

    @model_validator(mode="after")
    def _indices(self) -> "MeshRecord":
        largest = max(map(max, self.faces))
        if largest >= len(self.vertices):
            raise ValueError(f"a face has the vertex {largest} of {len(self.vertices)}")
        return self


class RobotRecord(Record):
    """The mechanism with all links and joints of the description, including links at fixed joints.

    Parameters
    ----------
    digest : SHA-256 of the robot's files.
    links : the first one is the floating base.
    joints : parents before children, one per link but the base.
    coordinates : names of the joints that have a coordinate, in the order of ``q``.
    lower, upper, velocity, torque : limits per coordinate, null if there is none; rad, rad/s, N m (or m, m/s, N).
    armature : rotor inertia per coordinate that the equation of motion includes, kg m².
    files : text of ``robot.yaml`` and of the URDF, by these names; for replay.
    meshes : of the URDF, by their names in it; large ones as convex hulls; for replay.
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
    def _tree(self) -> "RobotRecord":
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
        self._balls()
        if len(reached) != len(self.links):
            raise ValueError("some links have no parent joint")
        for patch in self.patches:
            if patch.link >= len(self.links):
                raise ValueError(f"patch {patch.name} is on link {patch.link} of {len(self.links)}")
        return self

    def _balls(self) -> None:
        """Check that every ball joint has its three parts, in order, with consecutive coordinates."""
        parts = {joint.child: joint for joint in self.joints if joint.kind == "ball"}
        for joint in parts.values():
            part = joint.part or 0
            before, plain = parts.get(joint.parent), (joint.multiplier, joint.offset) == (1.0, 0.0)
            follows = part == 0 or (
                before is not None
                and before.part == part - 1
                and before.coordinate == joint.coordinate - 1
                and not np.any(joint.p)
                and np.array_equal(joint.R, np.eye(3))
            )
            whole = part == 2 or any(other.parent == joint.child for other in parts.values())
            if not (plain and follows and whole and joint.coordinate >= 0 and joint.axis == np.eye(3)[part].tolist()):
                raise ValueError(f"joint {joint.name} is not a valid part of a ball joint")

    def limit(self, name: str) -> np.ndarray:
        """Return the limits of one kind as an array, infinite where absent."""
        absent = -np.inf if name == "lower" else np.inf
        return np.array([absent if value is None else value for value in getattr(self, name)], dtype=float)


class ContactRecord(Record):
    """A planned contact in the world.

    Parameters
    ----------
    kind : ``surface``, ``point`` or ``grasp``.
    R, p : target pose of the patch frame in the world, m.
    points : where forces act, in patch axes, m.
    axes : columns t1, t2, n in the world; n leaves the support.
    selection : orthonormal rows, the constrained directions in patch axes (linear, angular).
    rolls : whether the axes turn with the patch, as for a flat patch on a bar.
    radius : of a ball, m; otherwise 0. For a ball, p is the position of its centre with the patch upright (R), and
        ``points`` and ``selection`` are in the axes R, whatever the rotation of its link.
    carrier, carrier_pose : the object that the support is on, and its position and quaternion w x y z while the patch
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
    def _carried(self) -> "ContactRecord":
        if (self.carrier is None) != (self.carrier_pose is None):
            raise ValueError(f"contact of {self.patch}: carrier and carrier_pose are given together or not at all")
        return self


class BodyRecord(Record):
    """A free object: mass (kg), centre of mass in its frame (m), inertia about it (kg m²), friction of its hull.

    ``up`` is the normal of its support at the start, null without support.
    """

    name: str
    mass: float = Field(gt=0)
    com: Vector3
    inertia: Matrix3
    friction: float = Field(ge=0)
    up: Vector3 | None = None


class StanceRecord(Record):
    """A planned stance; ``q`` is the posture at its transition, held at rest by ``wrenches`` and ``tau``.

    If passed in motion, they produce the acceleration ``vd`` at the velocity ``v``.
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
    """A user's file with overrides applied, and its SHA-256."""

    digest: str = ""
    document: dict[str, Any] = {}


class PlanRecord(DocumentRecord):
    """The plan: document, resolved stances, objects, and meshes of objects and obstacles."""

    stances: list[StanceRecord] = Field(min_length=1)
    meshes: dict[str, MeshRecord] = {}
    bodies: list[BodyRecord] = []


class PhaseRecord(Record):
    """A phase of the state machine: target stance, and the criterion that ended it.

    Parameters
    ----------
    stance : index into the plan's stances, or null.
    ended_by : the criterion that ended the phase, or null for the last one.
    """

    name: str
    stance: int | None = Field(default=None, ge=0)
    ended_by: str | None = None


class NoticeRecord(Record):
    """An event outside the plan.

    Parameters
    ----------
    t : time, s.
    text : of the message.
    bodies : the patch or the two bodies concerned; empty if no single one is.
    amount : size of the violation, m; null if there is none to measure.
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
    links : by name, with payloads and mass errors.
    friction : by surface, bar or object, factor on its friction coefficient.
    surfaces : by name, actual poses.
    """

    links: dict[str, LinkRecord] = {}
    friction: dict[str, Annotated[float, Field(gt=0)]] = {}
    surfaces: dict[str, PlaceRecord] = {}


class RunRecord(Record):
    """The ``meta`` of a run file.

    Parameters
    ----------
    mcplan_run : version of the file format.
    mcplan : version of the program that wrote it.
    dt : step, s.
    notices : contacts that slid, paths that were blocked; in order of time.
    controller : class of a custom controller; empty for the whole-body program.
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
    def _consistent(self) -> "RunRecord":
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
    """Return the unit of the position of each joint of the robot of a run, as `Robot.joint_units`."""
    sliding = {joint.name for joint in robot.joints if joint.kind == "prismatic"}
    return ["m" if name in sliding else "rad" for name in robot.coordinates]


def unit_of_all(units: Iterable[str]) -> str:
    """Return the common unit of several joints; ``rad or m`` if both occur."""
    return " or ".join(sorted(set(units), reverse=True)) or "rad"
