"""Conversion of Robot, Contact and Plan to records: plain numbers, texts and meshes for the run file."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mcplan.errors import RunError
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.record.records import (
    BodyRecord,
    ContactRecord,
    DocumentRecord,
    JointRecord,
    LinkRecord,
    MeshRecord,
    PatchRecord,
    PlanRecord,
    RobotRecord,
    StanceRecord,
)
from mcplan.robot.description import Box, Inertia, MeshShape
from mcplan.robot.robot import Robot
from mcplan.robot.solid import shape_inertia
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, FreeObject, Obstacle
from mcplan.scene.resting import resting_contact

MAX_TRIANGLES = 60_000
"""Maximum number of triangles of all meshes in a run; meshes that exceed it are stored as convex hulls."""


def record_robot(robot: Robot) -> RobotRecord:
    """Return the record of a robot with its locked and mimic joints resolved; links at fixed joints are not merged."""
    description = robot.description
    link_index = {
        name: i for i, name in enumerate([description.root, *(n for n in description.links if n != description.root)])
    }
    couplings = _couplings(robot)
    joints = []
    for joint in description.joints.values():
        coordinate, multiplier, offset = couplings[joint.name]
        joints.append(
            JointRecord(
                name=joint.name,
                kind="revolute" if joint.type == "continuous" else joint.type,
                parent=link_index[joint.parent],
                child=link_index[joint.child],
                R=np.asarray(joint.R).tolist(),
                p=np.asarray(joint.p).tolist(),
                axis=np.asarray(joint.axis).tolist(),
                coordinate=coordinate,
                multiplier=multiplier,
                offset=offset,
            )
        )
    limits = robot.limits
    return RobotRecord(
        name=robot.name,
        digest=robot.digest,
        links=[record_link(name, description.links[name].inertia) for name in link_index],
        joints=joints,
        coordinates=list(robot.joint_names),
        lower=_finite(limits.lower),
        upper=_finite(limits.upper),
        velocity=_finite(limits.velocity),
        torque=_finite(limits.torque),
        armature=np.asarray(robot.armature, dtype=float).tolist(),
        patches=[
            PatchRecord(
                name=patch.name,
                link=link_index[patch.link],
                kind=patch.kind,
                polygon=np.asarray(patch.polygon, dtype=float).tolist(),
                R=np.asarray(patch.R).tolist(),
                p=np.asarray(patch.p).tolist(),
                radius=float(patch.radius),
            )
            for patch in robot.patches.values()
        ],
        files=_read_files(robot),
        meshes=record_meshes(description.meshes),
    )


def record_contact(contact: Contact, carrier: FreeObject | None = None) -> ContactRecord:
    """Return the record of a contact; ``carrier`` is the object that carries its support, None in the environment."""
    return ContactRecord(
        patch=contact.patch,
        support=contact.support,
        kind=contact.kind,  # type: ignore[arg-type]
        R=np.asarray(contact.R).tolist(),
        p=np.asarray(contact.p).tolist(),
        points=np.asarray(contact.points, dtype=float).reshape(-1, 3).tolist(),
        axes=np.asarray(contact.axes).tolist(),
        friction=_finite_or_none(contact.friction),
        max_force=_finite_or_none(contact.max_force),
        max_moment=_finite_or_none(contact.max_moment),
        selection=np.asarray(contact.selection, dtype=float).reshape(-1, 6).tolist(),
        rolls=contact.rolls,
        radius=float(contact.radius),
        carrier=None if carrier is None else carrier.name,
        carrier_pose=None if carrier is None else carrier.pose.tolist(),
    )


def _record_body(thing: FreeObject, environment: Environment) -> BodyRecord:
    com, inertia = shape_inertia(thing.shape, thing.mass)
    has_corners = isinstance(thing.shape, Box | MeshShape)
    support = resting_contact(thing, environment) if has_corners else None
    return BodyRecord(
        name=thing.name,
        mass=thing.mass,
        com=com.tolist(),
        inertia=np.diag(inertia).tolist(),
        friction=thing.friction,
        up=None if support is None else support.normal.tolist(),
    )


def record_plan(plan: Plan, document: dict[str, Any] | None = None) -> PlanRecord:
    """Return the record of a plan; ``document`` is the content of its file, from which the plan can be rebuilt."""
    document = _to_json(document or {})
    environment = plan.scenario.environment
    objects = {thing.name: thing for thing in environment.objects}

    def carrier(contact: Contact, stance: PlannedStance) -> FreeObject | None:
        name = environment.owners.get(contact.support)
        return None if name is None else objects[name].placed(stance.objects.get(name, objects[name].pose))

    stances = [
        StanceRecord(
            contacts=[record_contact(contact, carrier(contact, stance)) for contact in stance.contacts],
            moved=stance.moved,
            change=stance.change,
            q=np.asarray(stance.q, dtype=float).tolist(),
            wrenches={name: np.asarray(w, dtype=float).tolist() for name, w in (stance.wrenches or {}).items()},
            tau=[] if stance.tau is None else np.asarray(stance.tau, dtype=float).tolist(),
            v=[] if stance.passing is None else stance.passing.v.tolist(),
            vd=[] if stance.passing is None else stance.passing.vd.tolist(),
        )
        for stance in plan.stances
    ]
    meshes = record_meshes(scene_meshes(environment))
    bodies = [_record_body(thing, environment) for thing in objects.values()]
    return PlanRecord(digest=digest(document), document=document, stances=stances, meshes=meshes, bodies=bodies)


def record_document(document: dict[str, Any]) -> DocumentRecord:
    """Return the record of a document: plain JSON data, and their hash."""
    document = _to_json(document)
    return DocumentRecord(digest=digest(document), document=document)


def digest(document: dict[str, Any]) -> str:
    """Return the SHA-256 of a document's content, independent of the order of keys."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def record_meshes(meshes: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, MeshRecord]:
    """Return the records of meshes (vertices (k,3), faces (m,3)) by name, the smallest ones complete, others as hulls.

    Collision checks use the convex hull of a mesh in any case.
    """
    recorded, remaining_triangles = {}, MAX_TRIANGLES
    for name, (vertices, faces) in sorted(meshes.items(), key=lambda item: (len(item[1][1]), item[0])):
        if len(faces) > remaining_triangles:
            vertices, faces = _hull(vertices, faces)
        else:
            remaining_triangles -= len(faces)
        recorded[name] = MeshRecord(vertices=np.asarray(vertices).tolist(), faces=np.asarray(faces).tolist())
    return recorded


def scene_meshes(environment: Environment) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the scaled meshes (vertices (k,3), faces (m,3)) of obstacles and objects by name."""
    bodies: tuple[Obstacle | FreeObject, ...] = (*environment.obstacles, *environment.objects)
    return {
        thing.name: (thing.shape.vertices, thing.shape.faces) for thing in bodies if isinstance(thing.shape, MeshShape)
    }


def _hull(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the convex hull of a mesh with outward faces; for a flat mesh, its bounding box."""
    try:
        hull = ConvexHull(vertices)
    except QhullError:
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        extent = np.maximum(high - low, 1e-4)
        corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
        return _hull(low + corners * extent, faces)
    new_index = np.full(len(vertices), -1)
    new_index[hull.vertices] = np.arange(len(hull.vertices))
    corners = vertices[hull.simplices]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    is_inward = np.einsum("ij,ij->i", normal, hull.equations[:, :3]) < 0.0
    triangles = np.where(is_inward[:, None], hull.simplices[:, ::-1], hull.simplices)
    return vertices[hull.vertices], new_index[triangles]


def _couplings(robot: Robot) -> dict[str, tuple[int, float, float]]:
    """Return coordinate index (-1: none), multiplier and offset of every joint of the description."""
    joints = robot.description.joints
    coordinate = {name: i for i, name in enumerate(robot.joint_names)}
    locked = dict(robot.locked)

    def resolve(name: str) -> tuple[int, float, float]:
        if name in locked:
            return -1, 1.0, float(locked[name])
        joint = joints[name]
        if joint.mimic is not None:
            master, multiplier, offset = resolve(joint.mimic.joint)
            scale = joint.mimic.multiplier
            return master, (scale * multiplier if master >= 0 else 1.0), scale * offset + joint.mimic.offset
        return coordinate.get(name, -1), 1.0, 0.0

    return {name: resolve(name) for name in joints}


def record_link(name: str, inertia: Inertia | None) -> LinkRecord:
    """Return the record of a link; ``inertia`` is None for a link without mass."""
    if inertia is None:
        return LinkRecord(name=name, mass=0.0, com=[0.0] * 3, inertia=[[0.0] * 3] * 3)
    com, matrix = np.asarray(inertia.com, dtype=float), np.asarray(inertia.matrix, dtype=float)
    return LinkRecord(name=name, mass=float(inertia.mass), com=com.tolist(), inertia=matrix.tolist())


def _read_files(robot: Robot) -> dict[str, str]:
    """Return the texts of the robot's files; raise an error if a file has changed since the robot was loaded."""
    paths = {"robot.urdf": robot.urdf_path, "robot.yaml": robot.path, "robot.srdf": robot.srdf_path}
    contents = {name: path.read_bytes() for name, path in paths.items() if path is not None}
    if hashlib.sha256(b"".join(contents.values())).hexdigest() != robot.digest:
        raise RunError(f"the files of robot {robot.name} have changed since it was loaded; load it again")
    return {name: content.decode() for name, content in contents.items()}


def _finite(values: Any) -> list[float | None]:
    return [_finite_or_none(value) for value in values]


def _finite_or_none(value: float | None) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None


def _to_json(value: Any) -> Any:
    """Convert to JSON types: NumPy values to lists and numbers, tuples to lists, infinite numbers to null."""
    if isinstance(value, dict):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _to_json(value.tolist())
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, np.generic):
        return _to_json(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
