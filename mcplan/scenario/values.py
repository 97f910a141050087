"""Scenario writer: from Python objects to the plain values of a file, which give the same scene when read."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel

from mcplan.errors import InputError
from mcplan.robot.pose import quat_from_rotation
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface
from mcplan.util.arguments import check_vector, describe

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot
    from mcplan.scenario.schema import Start


MAX_WRITTEN_CORNERS = 64
"""Maximum number of corners of a mesh that is written as a list of corners; collisions use its convex hull."""

MAX_HULL_CORNERS = 10_000
"""Maximum number of corners of a hull in a file; of more corners, the extreme ones in as many directions are kept."""

MIN_HULL_THICKNESS_M = 1e-4
"""Minimum thickness (m) of a hull in a file; that of a flat mesh is enlarged to it."""


def robot_name(robot: "Robot") -> str:
    """Return the reference to a robot in a file: the name of a bundled one, or the path of its file."""
    from mcplan.util.bundled import ROBOTS

    path = robot.path or robot.urdf_path
    if path.parent.parent.resolve() == ROBOTS.resolve():
        return path.parent.name
    return os.path.relpath(path)


def environment_data(environment: Environment) -> dict[str, Any]:
    """Return the section ``environment`` of a file."""
    data: dict[str, Any] = {}
    if environment.surfaces:
        data["surfaces"] = [_surface(surface) for surface in environment.surfaces]
    if environment.bars:
        data["bars"] = [
            {"name": bar.name, "ends": bar.ends.tolist(), "radius": bar.radius, "friction": bar.friction}
            | ({} if bar.max_force is None else {"max_force": bar.max_force})
            for bar in environment.bars
        ]
    if environment.obstacles:
        data["obstacles"] = [
            {"name": thing.name, "pose": _pose(thing.R, thing.p)} | _shape(thing.name, thing.shape)
            for thing in environment.obstacles
        ]
    if environment.objects:
        data["objects"] = [
            {"name": thing.name, "pose": _pose(thing.R, thing.p), "mass": thing.mass, "friction": thing.friction}
            | _shape(thing.name, thing.shape)
            | {"surfaces": [_surface(surface, thing.R, thing.p) for surface in thing.surfaces]}
            for thing in environment.objects
        ]
    return data


def contacts_data(contacts: Sequence[Contact | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a list of contacts in the form of files."""
    if isinstance(contacts, Contact | Mapping | str) or not isinstance(contacts, Iterable):
        raise InputError(f"expected a list of contacts, not {describe(contacts)}")
    return [_contact(contact) for contact in contacts]


def start_data(robot: "Robot", start: "Sequence[Contact | Mapping[str, Any]] | Start", posture: Any) -> dict[str, Any]:
    """Return the section ``start``; a posture given as ``q`` (nq,) becomes base and joints."""
    data: dict[str, Any] = {"contacts": contacts_data(start)}  # type: ignore[arg-type]
    if isinstance(posture, str):
        data["posture"] = posture
    elif posture is not None:
        q = check_vector(f"start of {robot.name}", "posture", posture, robot.nq)
        data["posture"] = {"joints": dict(zip(robot.joint_names, q[7:].tolist(), strict=True))}
        data["base"] = {"xyz": q[:3].tolist(), "quat_wxyz": q[3:7].tolist()}
    return data


def goal_data(goal: Any) -> Any:
    """Return the section ``goal`` of contacts, of an item, or of a list of items."""
    if isinstance(goal, Mapping):
        return _goal_item(goal)
    if isinstance(goal, Contact | str) or not isinstance(goal, Iterable):
        expected = "a list of contacts, a goal such as {'base': {'xyz': [1, 0, 0.65]}}, or a list of those"
        raise InputError(f"goal: expected {expected}, not {describe(goal)}")
    items = list(goal)
    if all(isinstance(item, Contact) or (isinstance(item, Mapping) and "patch" in item) for item in items):
        return {"contacts": contacts_data(items)}
    return [goal_data(item) for item in items]


def settings_data(key: str, value: Any) -> dict[str, Any]:
    """Return a section of settings: the explicitly set values of a settings object, or a mapping."""
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=True)
    if not isinstance(value, Mapping):
        raise InputError(f"{key}: expected {key.capitalize()}Settings or a dictionary, not {describe(value)}")
    return dict(value)


def moved_paths(data: Mapping[str, Any], home: Path, directory: Path) -> dict[str, Any]:
    """Return a scenario's values with its paths relative to ``directory`` instead of ``home``.

    A scenario may read meshes only from its own directory and below, and from packages; other meshes are written as
    hulls.
    """
    relocated = dict(data)
    relocated["robot"] = _relocated(data["robot"], home, directory)
    environment = dict(data.get("environment", {}))
    for group in ("obstacles", "objects"):
        if group in environment:
            environment[group] = [_relocated_mesh(item, home, directory) for item in environment[group]]
    if "mesh" in environment:
        environment["mesh"] = _relocated(environment["mesh"], home, directory)
    return relocated | ({"environment": environment} if environment else {})


def _relocated(name: str, home: Path, directory: Path) -> str:
    """Return a path relative to ``directory`` instead of ``home``; names of bundled robots and URLs stay."""
    if "://" in name or (len(Path(name).parts) == 1 and not Path(name).suffix):
        return name
    path = home / name
    return Path(os.path.relpath(path, directory)).as_posix()


def _relocated_mesh(item: dict[str, Any], home: Path, directory: Path) -> dict[str, Any]:
    if "mesh" not in item:
        return item
    from mcplan.robot.mesh_file import MeshError, MeshFiles

    new_path = _relocated(item["mesh"]["file"], home, directory)
    try:
        MeshFiles(directory / "scenario.yaml").find(new_path)
    except MeshError:
        hull = _hull(item["mesh"], home)
        if hull is not None:
            return {key: value for key, value in item.items() if key != "mesh"} | {"hull": {"points": hull}}
    return item | {"mesh": item["mesh"] | {"file": new_path}}


def _hull(mesh: Mapping[str, Any], home: Path) -> list[list[float]] | None:
    """Return the corners of the convex hull of a mesh file; None if the file cannot be read."""
    from scipy.spatial import QhullError  # slow import

    from mcplan.robot.mesh_file import MeshError, MeshFiles

    try:
        vertices = MeshFiles(home / "scenario.yaml").read(mesh["file"])[0] * mesh.get("scale", 1.0)
        return _corners(vertices).tolist()
    except (MeshError, QhullError):
        return None


def _corners(vertices: np.ndarray) -> np.ndarray:
    """Return at most ``MAX_HULL_CORNERS`` corners (k,3) of a hull, at least ``MIN_HULL_THICKNESS`` thick."""
    from scipy.spatial import ConvexHull

    from mcplan.scene.detection.obstacles import directions

    centroid = vertices.mean(axis=0)
    axes = np.linalg.svd(vertices - centroid, full_matrices=False)[2]
    for axis in axes[np.ptp((vertices - centroid) @ axes.T, axis=0) < MIN_HULL_THICKNESS_M]:
        vertices = np.concatenate(
            [vertices - 0.5 * MIN_HULL_THICKNESS_M * axis, vertices + 0.5 * MIN_HULL_THICKNESS_M * axis]
        )
    corners = vertices[ConvexHull(vertices).vertices]
    if len(corners) <= MAX_HULL_CORNERS:
        return corners
    extreme_corners = [
        np.argmax((corners - centroid) @ batch.T, axis=0) for batch in np.array_split(directions(MAX_HULL_CORNERS), 100)
    ]
    return corners[np.unique(np.concatenate(extreme_corners))]


def _goal_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return dict(item) | ({"contacts": contacts_data(item["contacts"])} if "contacts" in item else {})


def _contact(contact: Contact | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(contact, Contact):
        return contact.to_data()
    if isinstance(contact, Mapping):
        return dict(contact)
    raise InputError(f"expected a contact (mcplan.contact) or a dictionary, not {contact!r:.80}")


def _surface(surface: Surface, R: np.ndarray | None = None, p: np.ndarray | None = None) -> dict[str, Any]:
    """Return a surface in the form of files, relative to the pose ``R``, ``p`` of its object if it is on one."""
    R_S, p_S = surface.R, surface.p
    if R is not None and p is not None:
        R_S, p_S = R.T @ R_S, R.T @ (p_S - p)
    data = {"name": surface.name, "pose": _pose(R_S, p_S), "polygon": surface.polygon.tolist()}
    return data | {"thickness": surface.thickness, "friction": surface.friction}


def _pose(R: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    return {"xyz": p.tolist(), "quat_wxyz": quat_from_rotation(R).tolist()}


def _shape(name: str, shape: Any) -> dict[str, Any]:
    from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere

    if isinstance(shape, Box):
        return {"box": {"size": [float(x) for x in shape.size]}}
    if isinstance(shape, Sphere):
        return {"sphere": {"radius": shape.radius}}
    if isinstance(shape, Capsule):
        return {"capsule": {"radius": shape.radius, "length": shape.length}}
    if isinstance(shape, Cylinder):
        return {"cylinder": {"radius": shape.radius, "length": shape.length}}
    if isinstance(shape, MeshShape) and len(shape.vertices) <= MAX_WRITTEN_CORNERS:
        return {"hull": {"points": shape.vertices.tolist()}}
    raise InputError(f"`{name}` has a {type(shape).__name__}: a mesh comes into a scenario by its file, "
                     "environment: {obstacles: [{mesh: {file: ...}}]}")  # fmt: skip
