"""The environment that a file describes."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mcplan.document import Document
from mcplan.errors import Problem
from mcplan.scene.environment import Bar, Environment, Obstacle, SceneObject, Surface
from mcplan.scene.polygon import counter_clockwise
from mcplan.scene.schema import EnvironmentSpec, SolidSpec, SurfaceSpec

if TYPE_CHECKING:
    from mcplan.model.geometry import Shape

Key = tuple[str | int, ...]


def build_environment(spec: EnvironmentSpec, document: Document) -> tuple[Environment, list[Problem]]:
    """Return the environment, and what is wrong with it: names given twice, meshes that cannot be read."""
    problems: list[Problem] = []
    obstacles, objects = [], []
    for k, obstacle in enumerate(spec.obstacles):
        shape = _shape(obstacle, document, ("environment", "obstacles", k), problems)
        if shape is not None:
            obstacles.append(Obstacle(obstacle.name, shape, obstacle.pose.R, obstacle.pose.p))
    for k, thing in enumerate(spec.objects):
        shape = _shape(thing, document, ("environment", "objects", k), problems)
        R, p = thing.pose.R, thing.pose.p
        owned = tuple(_surface(surface, spec.friction, R, p, thing.name) for surface in thing.surfaces)
        if shape is not None:
            objects.append(SceneObject(thing.name, shape, R, p, thing.mass, thing.friction, owned))
    environment = Environment(
        surfaces=tuple(_surface(surface, spec.friction) for surface in spec.surfaces),
        bars=tuple(
            Bar(bar.name, np.array(bar.ends), bar.radius, _either(spec.friction, bar.friction), bar.max_force)
            for bar in spec.bars
        ),
        obstacles=tuple(obstacles),
        objects=tuple(objects),
    )
    seen: dict[str, int | None] = {}
    for key, name in _names(spec):
        line = document.line((*key, "name"))
        if name in seen:
            problems.append(document.problem((*key, "name"), f"`{name}` is named in line {seen[name]} already"))
        seen.setdefault(name, line)
    return environment, problems


def _surface(
    spec: SurfaceSpec,
    friction: float | None,
    R: np.ndarray | None = None,
    p: np.ndarray | None = None,
    owner: str | None = None,
) -> Surface:
    R_S, p_S = spec.pose.R, spec.pose.p
    if R is not None and p is not None:
        R_S, p_S = R @ R_S, p + R @ p_S
    polygon = counter_clockwise(spec.corners)
    return Surface(spec.name, R_S, p_S, polygon, spec.thickness, _either(friction, spec.friction), owner)


def _either(common: float | None, own: float) -> float:
    return own if common is None else common


def _shape(spec: SolidSpec, document: Document, key: Key, problems: list[Problem]) -> "Shape | None":
    from mcplan.model.geometry import Box, Capsule, Cylinder, MeshShape, Sphere

    if spec.box is not None:
        return Box(spec.box.size)
    if spec.sphere is not None:
        return Sphere(spec.sphere.radius)
    if spec.capsule is not None:
        return Capsule(spec.capsule.radius, spec.capsule.length)
    if spec.cylinder is not None:
        return Cylinder(spec.cylinder.radius, spec.cylinder.length)
    assert spec.mesh is not None
    from mcplan.model.mesh_file import MeshFiles, MeshProblem

    try:
        vertices, faces = MeshFiles(Path(document.path)).read(spec.mesh.file)
    except MeshProblem as reason:
        problems.append(document.problem((*key, "mesh", "file"), f"{spec.mesh.file}: {reason}"))
        return None
    return MeshShape(vertices * spec.mesh.scale, faces)


def _names(spec: EnvironmentSpec) -> Iterator[tuple[Key, str]]:
    for group in ("surfaces", "bars", "obstacles", "objects"):
        for k, item in enumerate(getattr(spec, group)):
            yield ("environment", group, k), item.name
            for j, surface in enumerate(getattr(item, "surfaces", ())):
                yield ("environment", group, k, "surfaces", j), surface.name
