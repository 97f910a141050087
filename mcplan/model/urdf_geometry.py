"""``<visual>`` and ``<collision>``: shapes, meshes, colours."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mcplan.model import mesh_file
from mcplan.model.geometry import Box, Capsule, Cylinder, Geometry, MeshShape, Role, Shape, Sphere
from mcplan.model.xml_reader import Element
from mcplan.model.xml_values import Notes, brief

SHAPES = ("box", "sphere", "cylinder", "capsule", "mesh")
Color = tuple[float, float, float, float]


class GeometryReader:
    """Reads the geometry of all links of one file; meshes used twice are read once."""

    def __init__(self, notes: Notes, path: Path, package_directories: Sequence[str | Path], robot: Element):
        self.notes = notes
        self.meshes = mesh_file.MeshFiles(path, package_directories)
        self.colors: dict[str, Color] = {}
        for element in self._materials(robot):
            name = element.attributes.get("name", "").strip()
            color = self._color(element, name)
            if name and color is not None:
                self.colors.setdefault(name, color)

    @staticmethod
    def _materials(robot: Element) -> list[Element]:
        """Return the materials of the robot, then those first defined inside a visual: both may be referred to."""
        inner = [m for link in robot.all("link") for visual in link.all("visual") for m in visual.all("material")]
        return robot.all("material") + inner

    def read(self, link: Element, key: str) -> tuple[Geometry, ...]:
        """Return the shapes of a link, visual ones first."""
        found = []
        roles: tuple[Role, Role] = ("visual", "collision")
        for role in roles:
            for element in link.all(role):
                shape = self._shape(element, role, key)
                R, p = self.notes.origin(element, key)
                if shape is not None:
                    color = self._material(element, key) if role == "visual" else None
                    found.append(Geometry(shape, R, p, role, color))
        return tuple(found)

    def _shape(self, element: Element, role: Role, key: str) -> Shape | None:
        geometry = self.notes.single(element, "geometry", key, required=True)
        if geometry is None:
            return None
        if len(geometry.children) != 1 or geometry.children[0].tag not in SHAPES:
            tags = ", ".join(child.tag[:20] for child in geometry.children[:5]) or "nothing"
            self.notes.problem(geometry, key, f"<geometry> should hold one of {', '.join(SHAPES)}, and holds {tags}")
            return None
        shape = geometry.children[0]
        if shape.tag == "box":
            size = self.notes.positive(shape, "size", 3, key)
            return None if size is None else Box((float(size[0]), float(size[1]), float(size[2])))
        if shape.tag == "mesh":
            return self._mesh(shape, role, key)
        radius = self.notes.positive(shape, "radius", 1, key)
        if shape.tag == "sphere":
            return None if radius is None else Sphere(float(radius[0]))
        length = self.notes.positive(shape, "length", 1, key)
        if radius is None or length is None:
            return None
        return (Cylinder if shape.tag == "cylinder" else Capsule)(float(radius[0]), float(length[0]))

    def _mesh(self, element: Element, role: Role, key: str) -> MeshShape | None:
        name = self.notes.text(element, "filename", key)
        scale = self.notes.lengths(element, "scale", 3, key, (1, 1, 1))
        if name is None or scale is None:
            return None
        if not scale.all():
            self.notes.problem(element, key, f"scale={brief(element.attributes['scale'])} flattens the mesh")
            return None
        try:
            vertices, faces = self.meshes.read(name)
        except mesh_file.MeshProblem as problem:
            # a picture can be missing; a collision that is silently missing cannot
            note = self.notes.doubt if role == "visual" else self.notes.problem
            note(element, key, f"{role} mesh {brief(name)}: {problem}")
            return None
        vertices = vertices * scale
        faces = faces[:, ::-1].copy() if np.prod(scale) < 0 else faces
        vertices.flags.writeable = faces.flags.writeable = False
        return MeshShape(vertices, faces)

    def _material(self, visual: Element, key: str) -> Color | None:
        material = self.notes.single(visual, "material", key)
        if material is None:
            return None
        if material.all("color"):
            return self._color(material, key)
        name = material.attributes.get("name", "").strip()
        if name and name not in self.colors and not material.all("texture"):
            self.notes.doubt(material, key, f"material {brief(name)} is defined nowhere")
        return self.colors.get(name)

    def _color(self, material: Element, key: str) -> Color | None:
        color = self.notes.single(material, "color", key)
        rgba = None if color is None else self.notes.vector(color, "rgba", 4, key)
        if color is None or rgba is None:
            return None
        if rgba.min() < 0 or rgba.max() > 1:
            self.notes.doubt(color, key, f"rgba={brief(color.attributes['rgba'])} should lie between 0 and 1")
        red, green, blue, opacity = np.clip(rgba, 0, 1).tolist()
        return red, green, blue, opacity
