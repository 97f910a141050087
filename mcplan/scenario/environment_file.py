"""The environment that a file describes."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mcplan.document.document import Document
from mcplan.errors import InputError, Problem
from mcplan.scenario.schema import BarSpec, EnvironmentSpec, ObjectSpec, ObstacleSpec, SolidSpec, SurfaceSpec
from mcplan.scene.environment import Bar, Environment, FreeObject, Obstacle, Surface, Thing

if TYPE_CHECKING:
    from mcplan.robot.description import Shape

Key = tuple[str | int, ...]


def build_environment(spec: EnvironmentSpec, document: Document) -> tuple[Environment, list[Problem]]:
    """Return the environment, and what is wrong with it: names given twice, meshes that cannot be read."""
    problems: list[Problem] = []
    things: list[Thing] = []

    def add(key: Key, make: Callable[[], Thing | None]) -> None:
        try:
            thing = make()
        except InputError as error:
            problems.extend(document.problem(key, p.message) for p in error.problems)
        else:
            things.extend([] if thing is None else [thing])

    def solid(item: ObstacleSpec | ObjectSpec, key: Key) -> Thing | None:
        shape, R, p = _shape(item, document, key, problems), item.pose.R, item.pose.p
        if shape is None:
            return None
        if isinstance(item, ObstacleSpec):
            return Obstacle(item.name, shape, R, p)
        owned = [_surface(surface, spec.friction, R, p, item.name) for surface in item.surfaces]
        return FreeObject(item.name, shape, R, p, item.mass, item.friction, owned)

    def bar(item: BarSpec) -> Bar:
        return Bar(item.name, item.ends, item.radius, _either(spec.friction, item.friction), item.max_force)

    for k, surface in enumerate(spec.surfaces):
        add(("environment", "surfaces", k), partial(_surface, surface, spec.friction))
    for k, item in enumerate(spec.bars):
        add(("environment", "bars", k), partial(bar, item))
    for group in ("obstacles", "objects"):
        for k, thing in enumerate(getattr(spec, group)):
            add(("environment", group, k), partial(solid, thing, ("environment", group, k)))
    environment = Environment(things)
    seen: dict[str, int | None] = {}
    for key, name in _names(spec):
        line = document.line((*key, "name"))
        if name in seen:
            where = "" if seen[name] is None else f" in line {seen[name]}"
            problems.append(document.problem((*key, "name"), f"`{name}` is named{where} already"))
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
    return Surface(spec.name, R_S, p_S, spec.corners, spec.thickness, _either(friction, spec.friction), owner)


def _either(common: float | None, own: float) -> float:
    return own if common is None else common


def _shape(spec: SolidSpec, document: Document, key: Key, problems: list[Problem]) -> "Shape | None":
    from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere

    if spec.box is not None:
        return Box(spec.box.size)
    if spec.sphere is not None:
        return Sphere(spec.sphere.radius)
    if spec.capsule is not None:
        return Capsule(spec.capsule.radius, spec.capsule.length)
    if spec.cylinder is not None:
        return Cylinder(spec.cylinder.radius, spec.cylinder.length)
    if spec.hull is not None:
        from mcplan.scene.found.obstacles import hull_shape

        return hull_shape(np.array(spec.hull.points))
    assert spec.mesh is not None
    from mcplan.robot.mesh_file import MeshFiles, MeshProblem

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
