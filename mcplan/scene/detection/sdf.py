"""SDF reader: worlds of Gazebo, their models, links and collision shapes.

Supported: poses (``degrees``, quaternions), boxes, spheres, cylinders, capsules, planes, meshes and included models in
the file's folder. Unsupported elements that affect poses (``relative_to``, ``placement_frame``, ``merge``, ``state``)
are reported as problems. Specification: http://sdformat.org/spec.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Shape, Sphere
from mcplan.robot.mesh_file import MeshError, MeshFiles
from mcplan.robot.pose import rotation_from_rpy, rotation_onto
from mcplan.robot.urdf import read_bytes
from mcplan.robot.xml_reader import Element, Notes, read_xml
from mcplan.scene.detection.geometry import SceneGeometry

MAX_NESTING = 4
"""Maximum depth of nested models."""

MAX_INCLUDES = 10_000
"""Maximum number of included models in total; a short file can nest very many."""

UNSUPPORTED_TAGS = ("placement_frame", "merge", "frame", "polyline", "heightmap", "image", "ellipsoid", "cone")
"""Unsupported elements that affect poses or shapes."""

UNSUPPORTED_ATTRIBUTES = ("placement_frame", "merge")
"""Unsupported attributes of models and includes that affect their pose."""

UNSUPPORTED_WORLD_TAGS = ("state", "population", "actor", "road")
"""Unsupported elements of a world that move or add models."""

Pose = tuple[np.ndarray, np.ndarray]
"""Rotation (3,3) and position (3,) in the world."""


def read_sdf(root: Element, path: Path) -> SceneGeometry:
    """Return the collision geometry of an SDF document.

    Raises
    ------
    RobotError
        All problems of the document, with their lines.
    """
    reader = _Reader(path, MeshFiles(path), _Shared(), (path.resolve(),))
    reader.add_models(root, (np.eye(3), np.zeros(3)), 0)
    for world in root.all("world"):
        reader.report_unsupported(world, world.attributes.get("name", "world"), UNSUPPORTED_WORLD_TAGS)
        reader.add_models(world, (np.eye(3), np.zeros(3)), 0)
    reader.notes.raise_problems()
    reader.world.note_moving(reader.movable_models)
    return reader.world


@dataclass
class _Shared:
    """Data common to the readers of a file and its includes; each file is parsed once.

    Attributes
    ----------
    world : collected geometry.
    parsed : root elements and meshes by file.
    includes : number of included models.
    """

    world: SceneGeometry = field(default_factory=SceneGeometry)
    parsed: dict[Path, tuple[Element, MeshFiles]] = field(default_factory=dict)
    includes: int = 0


class _Reader:
    """Reader of one file.

    Parameters
    ----------
    path : the file.
    meshes : mesh files that it may refer to.
    shared : data common to all readers.
    including_files : chain of files that include each other, which ends with this one.
    """

    def __init__(self, path: Path, meshes: MeshFiles, shared: _Shared, including_files: tuple[Path, ...]):
        self.path, self.meshes, self.shared, self.including_files = path, meshes, shared, including_files
        self.notes, self.world, self.movable_models = Notes(path.name, False), shared.world, list[str]()

    def add_models(self, element: Element, pose: Pose, depth: int) -> None:
        """Add the models in an element, also included ones."""
        for included in element.all("include"):
            self._include(included, pose, depth)
        for add_model in element.all("model"):
            self.add_model(add_model, self._placed(add_model, pose), depth)

    def add_model(self, add_model: Element, pose: Pose, depth: int) -> None:
        name = add_model.attributes.get("name", "model")
        self.report_unsupported(add_model, name)
        static = self._child_text(add_model, "static") in ("true", "1")
        links = add_model.all("link")
        if links and not static:
            self.movable_models.append(name)
        for link in links:
            link_pose = self._placed(link, pose)
            for collision in link.all("collision"):
                self._collision(collision, self._placed(collision, link_pose), name)
        if depth >= MAX_NESTING:
            self.notes.problem(add_model, name, f"models are nested more than {MAX_NESTING} deep")
            return
        self.add_models(add_model, pose, depth + 1)

    def _include(self, included: Element, pose: Pose, depth: int) -> None:
        name = self._child_text(included, "uri")
        self.report_unsupported(included, name)
        model_name = name.removeprefix("model://").strip("/")
        if model_name == "sun":  # a light
            return
        if model_name == "ground_plane" and not (self.path.parent / model_name).exists():
            self.world.add_plane(*self._placed(included, pose), 0.0, 0.0)
            return
        folder = (self.path.parent / model_name).resolve()
        file = folder if folder.suffix == ".sdf" else folder / "model.sdf"
        if not file.is_relative_to(self.path.parent.resolve()) or not file.is_file():
            self.notes.problem(included, "include", f"there is no {model_name[:60]}/model.sdf in the file's folder")
            return
        self.shared.includes += 1
        if file in self.including_files:
            self.notes.problem(included, "include", f"{model_name[:60]} includes itself")
        elif self.shared.includes > MAX_INCLUDES:
            self.notes.problem(included, "include", f"more than {MAX_INCLUDES} models are included")
        else:
            self._insert(file, included, pose, depth)
        self.notes.raise_problems()  # problems of a file are the same wherever it is included

    def _insert(self, file: Path, included: Element, pose: Pose, depth: int) -> None:
        """Add the models of another file."""
        self.world.files.add(file)
        if file not in self.shared.parsed:
            self.shared.parsed[file] = read_xml(read_bytes(file), file.name), MeshFiles(file)
        root, meshes = self.shared.parsed[file]
        inner = _Reader(file, meshes, self.shared, (*self.including_files, file))
        for add_model in root.all("model"):
            model_pose = self._placed(included, pose) if included.all("pose") else inner._placed(add_model, pose)
            inner.add_model(add_model, model_pose, depth + 1)
        self.notes.problems += inner.notes.problems
        self.movable_models += inner.movable_models

    def _collision(self, collision: Element, pose: Pose, key: str) -> None:
        self.report_unsupported(collision, key)
        geometry = self.notes.single(collision, "geometry", key, required=True)
        if geometry is None:
            return
        self.report_unsupported(geometry, key)
        for element in geometry.children:
            if element.tag == "plane":
                normal = self._numbers(element, "normal", 3, key, (0, 0, 1))
                size = self._numbers(element, "size", 2, key, (0, 0))
                if not np.any(normal):
                    self.notes.problem(element, key, "the normal of a plane has no length")
                    continue
                rotation = rotation_onto(np.array([0.0, 0.0, 1.0]), normal)
                self.world.add_plane(pose[0] @ rotation, pose[1], *(0.5 * size))
            elif (shape := self._shape(element, key)) is not None:
                self.world.add(shape, *pose)

    def _shape(self, element: Element, key: str) -> Shape | None:
        if element.tag == "empty":
            return None
        if element.tag == "box":
            x, y, z = self._positive(element, "size", 3, key)
            return Box((x, y, z))
        if element.tag == "mesh":
            return self._mesh(element, key)
        if element.tag == "sphere":
            return Sphere(*self._positive(element, "radius", 1, key))
        if element.tag in ("cylinder", "capsule"):
            radius, length = self._positive(element, "radius", 1, key)[0], self._positive(element, "length", 1, key)[0]
            return (Cylinder if element.tag == "cylinder" else Capsule)(radius, length)
        self.notes.problem(element, key, f"the shape <{element.tag[:40]}> is not known")
        return None

    def _mesh(self, element: Element, key: str) -> MeshShape | None:
        if element.all("submesh"):
            self.notes.problem(element, key, "a part of a mesh (<submesh>) cannot be taken")
            return None
        scale = self._numbers(element, "scale", 3, key, (1, 1, 1))
        name = self._child_text(element, "uri")
        try:
            vertices, faces = self.meshes.read(name)
            self.world.files.add(self.meshes.find(name))
        except MeshError as problem:
            self.notes.problem(element, key, f"mesh {name[:60]}: {problem}")
            return None
        return MeshShape(vertices * scale, faces[:, ::-1] if np.prod(scale) < 0 else faces)

    # -- values ---------------------------------------------------------------------------------------------------

    def _placed(self, element: Element, parent: Pose) -> Pose:
        """Return the pose of an element in the world from its parent's."""
        key = element.attributes.get("name", element.tag)
        pose = self.notes.single(element, "pose", key)
        if pose is None:
            return parent
        if reference := pose.attributes.get("relative_to", ""):
            self.notes.problem(pose, key, f"a pose relative to {reference[:40]!r} is not read")
        quaternion = pose.attributes.get("rotation_format", "euler_rpy") == "quat_xyzw"
        values = self._vector(pose, 7 if quaternion else 6, key)
        if values is None:
            return parent
        if quaternion and not np.any(values[3:]):
            self.notes.problem(pose, key, "the quaternion has no length")
            return parent
        rotation_values = values[3:]
        if not quaternion:
            degrees = pose.attributes.get("degrees", "false") in ("true", "1")
            R = rotation_from_rpy(np.radians(rotation_values) if degrees else rotation_values)
        else:
            R = Rotation.from_quat(rotation_values).as_matrix()
        return parent[0] @ R, parent[1] + parent[0] @ values[:3]

    def report_unsupported(self, element: Element, key: str, tags: tuple[str, ...] = UNSUPPORTED_TAGS) -> None:
        """Add a problem for each unsupported child element or attribute that affects poses or shapes."""
        for child in element.children:
            if child.tag in tags:
                self.notes.problem(child, key, f"<{child.tag}> is not read here")
        for name in UNSUPPORTED_ATTRIBUTES:
            if (value := element.attributes.get(name, "")) not in ("", "false", "0"):
                self.notes.problem(element, key, f"{name}={value[:40]!r} is not read here")

    def _child_text(self, element: Element, tag: str) -> str:
        child = self.notes.single(element, tag, element.attributes.get("name", element.tag))
        return "" if child is None else child.text.strip()

    def _numbers(self, element: Element, tag: str, size: int, key: str, default: tuple[float, ...]) -> np.ndarray:
        child = self.notes.single(element, tag, key)
        values = None if child is None else self._vector(child, size, key)
        return np.array(default, float) if values is None else values

    def _positive(self, element: Element, tag: str, size: int, key: str) -> tuple[float, ...]:
        child = self.notes.single(element, tag, key, required=True)
        values = None if child is None else self._vector(child, size, key)
        if values is not None and not (values > 0).all():
            self.notes.problem(child or element, key, f"{tag} should be positive")
        return (1.0,) * size if values is None else tuple(float(value) for value in values)

    def _vector(self, element: Element, size: int, key: str) -> np.ndarray | None:
        """Return the numbers in an element's text; None, with a problem, if their number differs."""
        inner = Element(element.tag, {element.tag: element.text.strip()}, element.line)
        return self.notes.bounded_vector(inner, element.tag, size, key)
