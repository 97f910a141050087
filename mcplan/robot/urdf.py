"""URDF parser: from a file to a ``UrdfModel``, or to one error with all problems and their lines.

It reads shapes, meshes, colours and inertias of links, and checks the tree of links and joints: one root, no cycle,
mimic joints that follow a moving joint.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mcplan.errors import Problem, RobotError
from mcplan.robot import mesh_file
from mcplan.robot.assemble import resolve_mimic
from mcplan.robot.description import (
    Box,
    Capsule,
    Cylinder,
    Geometry,
    Inertia,
    Joint,
    Link,
    MeshShape,
    Role,
    Shape,
    Sphere,
    UrdfModel,
)
from mcplan.robot.urdf_joint import read_joints
from mcplan.robot.xml_reader import MAX_BYTES, Element, Notes, brief, read_xml, triple
from mcplan.util.arrays import read_only
from mcplan.util.spelling import did_you_mean

SHAPES = ("box", "sphere", "cylinder", "capsule", "mesh")

SHAPE_ATTRIBUTES = {
    "box": [("size", 3)],
    "sphere": [("radius", 1)],
    "cylinder": [("radius", 1), ("length", 1)],
    "capsule": [("radius", 1), ("length", 1)],
}
"""Attributes of each shape with the number of their values."""

SHAPE_MAKERS: dict[str, Callable[..., Shape]] = {
    "box": lambda x, y, z: Box((x, y, z)), "sphere": Sphere, "cylinder": Cylinder, "capsule": Capsule,
}  # fmt: skip
Color = tuple[float, float, float, float]


class GeometryReader:
    """Reader of the geometry of all links of one file, which reads each mesh once."""

    def __init__(self, notes: Notes, path: Path, package_directories: Sequence[str | Path], robot: Element):
        self.notes = notes
        self.meshes = mesh_file.MeshFiles(path, package_directories, siblings=True)
        self.colors: dict[str, Color] = {}
        self._missing: dict[str, list[tuple[Element, str, str]]] = {}
        for element in self._materials(robot):
            name = element.attributes.get("name", "").strip()
            color = self._color(element, name)
            if name and color is not None:
                self.colors.setdefault(name, color)

    @staticmethod
    def _materials(robot: Element) -> list[Element]:
        """Return the materials of the robot, then those defined in visuals, which other visuals may also refer to."""
        visual_materials = [
            m for link in robot.all("link") for visual in link.all("visual") for m in visual.all("material")
        ]
        return robot.all("material") + visual_materials

    def read(self, link: Element, key: str) -> tuple[Geometry, ...]:
        """Return the shapes of a link, visual ones first."""
        geometries = []
        roles: tuple[Role, Role] = ("visual", "collision")
        for role in roles:
            for element in link.all(role):
                shape = self._shape(element, role, key)
                R, p = self.notes.origin(element, key)
                if shape is not None:
                    color = self._material(element, key) if role == "visual" else None
                    geometries.append(Geometry(shape, R, p, role, color))
        return tuple(geometries)

    def _shape(self, element: Element, role: Role, key: str) -> Shape | None:
        geometry = self.notes.single(element, "geometry", key, required=True)
        if geometry is None:
            return None
        if len(geometry.children) != 1 or geometry.children[0].tag not in SHAPES:
            tags = ", ".join(child.tag[:20] for child in geometry.children[:5]) or "nothing"
            self.notes.problem(geometry, key, f"<geometry> should hold one of {', '.join(SHAPES)}, and holds {tags}")
            return None
        shape = geometry.children[0]
        if shape.tag == "mesh":
            return self._mesh(shape, role, key)
        sizes = [self.notes.bounded_vector(shape, name, count, key) for name, count in SHAPE_ATTRIBUTES[shape.tag]]
        if any(size is None for size in sizes):
            return None
        numbers = np.concatenate([size for size in sizes if size is not None])
        if (numbers < 0.0).any():
            self.notes.problem(shape, key, f"the size of <{shape.tag}>, {triple(numbers)}, should be positive")
        elif not numbers.all():  # a placeholder
            self.notes.warning(shape, key, f"<{shape.tag}> has the size {triple(numbers)}: the shape is left out")
        else:
            return SHAPE_MAKERS[shape.tag](*numbers.tolist())
        return None

    def _mesh(self, element: Element, role: Role, key: str) -> MeshShape | None:
        name = self.notes.text(element, "filename", key)
        scale = self.notes.bounded_vector(element, "scale", 3, key, (1, 1, 1))
        if name is None or scale is None:
            return None
        if not scale.all():
            self.notes.problem(element, key, f"scale={brief(element.attributes['scale'])} flattens the mesh")
            return None
        try:
            vertices, faces = self.meshes.read(name)
        except mesh_file.MeshError as problem:
            # a missing visual mesh is a warning, a missing collision mesh an error
            if role == "visual":
                self.notes.warning(element, key, f"visual mesh {brief(name)}: {problem}")
            else:
                self._missing.setdefault(str(problem), []).append((element, key, name))
            return None
        faces = faces[:, ::-1].copy() if np.prod(scale) < 0 else faces
        return MeshShape(read_only(vertices * scale), read_only(faces))

    def report_missing(self) -> None:
        """Add one problem for each reason why collision meshes cannot be read, with the number of these meshes."""
        for reason, ((element, key, name), *others) in self._missing.items():
            names = ", ".join(brief(other) for _, _, other in others[:5])
            more = f" (and {len(others)} more: {names})" if others else ""
            self.notes.problem(element, key, f"collision mesh {brief(name)}: {reason}{more}")

    def _material(self, visual: Element, key: str) -> Color | None:
        material = self.notes.single(visual, "material", key)
        if material is None:
            return None
        if material.all("color"):
            return self._color(material, key)
        name = material.attributes.get("name", "").strip()
        if name and name not in self.colors and not material.all("texture"):
            self.notes.warning(material, key, f"material {brief(name)} is defined nowhere")
        return self.colors.get(name)

    def _color(self, material: Element, key: str) -> Color | None:
        color = self.notes.single(material, "color", key)
        rgba = None if color is None else self.notes.vector(color, "rgba", 4, key)
        if color is None or rgba is None:
            return None
        if rgba.min() < 0 or rgba.max() > 1:
            self.notes.warning(color, key, f"rgba={brief(color.attributes['rgba'])} should lie between 0 and 1")
        red, green, blue, opacity = np.clip(rgba, 0, 1).tolist()
        return red, green, blue, opacity


def order_tree(
    links: dict[str, Link], joints: dict[str, Joint], notes: Notes
) -> tuple[str, list[str], list[str], dict[str, tuple[str, ...]]]:
    """Return root, links and joints in depth-first order, and the joints below each link.

    It is assumed that the links of each joint exist, and that no link has two parent joints. There is no recursion,
    because chains may be long.
    """
    children: dict[str, tuple[str, ...]] = {name: () for name in links}
    for joint in joints.values():
        children[joint.parent] += (joint.name,)
    child_links = {joint.child for joint in joints.values()}
    roots = [name for name in links if name not in child_links]
    if len(roots) > 1:
        names = ", ".join(f"{name!r} (line {links[name].line})" for name in roots[:5])
        message = f"the robot falls apart: {len(roots)} links have no parent: {names}"
        notes.problem(links[roots[1]].line, roots[1], message)
        return "", [], [], {}
    link_order: list[str] = []
    joint_order: list[str] = []
    stack = list(roots)
    while stack:
        name = stack.pop()
        link_order.append(name)
        stack.extend(joints[child_joint].child for child_joint in reversed(children[name]))
    parent_joint = {joint.child: joint.name for joint in joints.values()}
    joint_order = [parent_joint[name] for name in link_order if name in parent_joint]
    if len(link_order) < len(links):
        reached = set(link_order)
        name = next(name for name in links if name not in reached)
        cycle = _cycle(name, joints, parent_joint)
        last = max((joints[parent_joint[link]] for link in cycle), key=lambda joint: joint.line)
        notes.problem(last.line, last.name, f"the links form a cycle: {' -> '.join([*cycle, cycle[0]][:8])}")
        return "", [], [], {}
    return roots[0], link_order, joint_order, children


def _cycle(name: str, joints: dict[str, Joint], parent_joint: dict[str, str]) -> list[str]:
    """Return the links of a cycle, parents first, that is reached from a link by going up the tree."""
    position: dict[str, int] = {}
    path: list[str] = []
    while name not in position:
        position[name] = len(path)
        path.append(name)
        name = joints[parent_joint[name]].parent
    return path[position[name] :][::-1]


def check_mimics(joints: dict[str, Joint], notes: Notes) -> None:
    """Check that every mimic joint follows, directly or through others, a joint that moves and is not a ball joint."""
    for joint in joints.values():
        if joint.mimic is None:
            continue
        master = joints.get(joint.mimic.joint)
        if master is None:
            hint = did_you_mean(joint.mimic.joint, joints)
            notes.problem(joint.line, joint.name, f"mimics joint {joint.mimic.joint!r}, which does not exist{hint}")
        elif master.type == "fixed":
            notes.problem(joint.line, joint.name, f"mimics joint {master.name!r}, which does not move")
        elif master.type == "ball":
            notes.problem(joint.line, joint.name, f"mimics {master.name!r}, which is part of a ball joint")
        else:
            visited = {joint.name}
            name: str | None = master.name
            while name in joints and name not in visited:
                visited.add(name)
                mimic = joints[name].mimic
                name = None if mimic is None else mimic.joint
            if name == joint.name:
                notes.problem(joint.line, joint.name, f"mimics itself through {', '.join(sorted(visited))[:80]}")


def add_mimic_friction(joints: Mapping[str, Joint]) -> dict[str, Joint]:
    """Move damping and dry friction of mimic joints to their master joints.

    For ``q = k q_m + c``, damping ``d`` and friction ``f``, equal power gives ``d k²`` and ``f |k|`` at the master m.
    """
    with_friction = dict(joints)
    for name, joint in joints.items():
        if joint.mimic is not None and (joint.damping or joint.friction):
            master, k, _ = resolve_mimic(joint, joints)
            master_joint = with_friction[master]
            damping, friction = (
                master_joint.damping + k**2 * joint.damping,
                master_joint.friction + abs(k) * joint.friction,
            )
            with_friction[master] = replace(master_joint, damping=damping, friction=friction)
            with_friction[name] = replace(with_friction[name], damping=0.0, friction=0.0)
    return with_friction


LINK_TAGS = ("inertial", "visual", "collision")


def read_bytes(path: Path) -> bytes:
    """Return at most ``MAX_BYTES + 1`` bytes of a file; raise RobotError if it is missing or unreadable."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RobotError(Problem(str(path), None, "", f"cannot be read: {error.strerror or error}")) from None
    except ValueError as error:  # a NUL in the name
        raise RobotError(Problem(repr(str(path)), None, "", f"cannot be read: {error}")) from None


_DECLARED = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)")
_UTF8 = (b"utf-8", b"utf8", b"ascii", b"us-ascii")


def refuse_encoding(data: bytes, file: str) -> None:
    """Raise an error for a file that is not UTF-8, because runs store the text of a robot's files.

    A file in ASCII may declare another encoding, since ASCII is the same in most of them.
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as reason:
        line = data.count(b"\n", 0, reason.start) + 1
        message = f"byte 0x{data[reason.start]:02x} is not UTF-8 text: save the file as UTF-8"
        raise RobotError(Problem(file, line, "", message)) from None
    declared = _DECLARED.match(data)
    if declared and not data.isascii() and declared[1].lower() not in _UTF8:
        message = f"the encoding {brief(declared[1].decode())} is declared, expected UTF-8"
        raise RobotError(Problem(file, 1, "", message))


def parse_urdf(
    data: bytes,
    path: Path,
    strict: bool = False,
    package_directories: Sequence[str | Path] = (),
    stacklevel: int = 2,
) -> UrdfModel:
    """Parse the bytes of a URDF file.

    Parameters
    ----------
    path : path of the file, for messages and to find meshes.
    strict : whether warnings become errors.
    package_directories : directories that are ROS packages or contain some.
    stacklevel : stack level of warnings, as for `warnings.warn`.
    """
    root = read_xml(data, str(path))
    refuse_encoding(data, str(path))
    notes = Notes(str(path), strict)
    if root.tag != "robot":
        raise RobotError(Problem(str(path), root.line, "", f"the root element is <{root.tag[:40]}>, not <robot>"))
    _check_xacro(root, notes)
    _remove_floating_joint(root, notes)
    notes.raise_problems()
    geometry = GeometryReader(notes, path, package_directories, root)
    links: dict[str, Link] = {}
    joints: dict[str, Joint] = {}
    for element in root.all("link"):
        name = notes.text(element, "name", "link")
        if name is None:
            continue
        if name in links:
            notes.problem(element, name, f"a second link of this name (the first is on line {links[name].line})")
            continue
        notes.warn_unknown_tags(element, LINK_TAGS, name)
        links[name] = Link(name, element.line, _inertia(element, name, notes), geometry.read(element, name))
    for element in root.all("joint"):
        parts = read_joints(element, notes)
        for joint in parts:
            if joint.name in joints:
                first = joints[joint.name].line
                notes.problem(element, joint.name, f"a second joint of this name (the first is on line {first})")
                break
            joints[joint.name] = joint
            if joint is not parts[-1]:
                links[joint.child] = Link(joint.child, element.line, None)
    geometry.report_missing()
    if not links and not notes.problems:
        notes.problem(root, "", "the robot has no links")
    _check_joint_links(links, joints, notes)
    check_mimics(joints, notes)
    notes.raise_problems()
    base, link_order, joint_order, children = order_tree(links, joints, notes)
    notes.raise_problems()
    notes.warn(stacklevel)
    return UrdfModel(
        root.attributes.get("name", path.stem),
        path,
        base,
        {name: links[name] for name in link_order},
        add_mimic_friction({name: joints[name] for name in joint_order}),
        children,
        geometry.meshes.by_name,
        urdf_root=base,
    )


def _check_xacro(root: Element, notes: Notes) -> None:
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag.startswith("xacro:"):
            message = f"<{element.tag[:40]}> is unexpanded xacro: run `xacro FILE.urdf.xacro > FILE.urdf` first"
            notes.problem(element, "", message)
            return
        stack.extend(reversed(element.children))


def _remove_floating_joint(root: Element, notes: Notes) -> None:
    """Remove a floating joint below an empty root link, as written for MuJoCo, because the base floats without it."""

    def links_of(joint: Element) -> list[str]:
        return [end.attributes.get("link", "") for tag in ("parent", "child") for end in joint.all(tag)]

    joints = root.all("joint")
    for joint in (joint for joint in joints if joint.attributes.get("type") == "floating" and joint.all("parent")):
        parent_link = links_of(joint)[0]
        empty_links = [
            link for link in root.all("link") if link.attributes.get("name") == parent_link and not link.children
        ]
        if len(empty_links) == 1 and not any(parent_link in links_of(other) for other in joints if other is not joint):
            message = (
                f"the floating joint from the empty link {brief(parent_link)} is left out: the base floats by itself"
            )
            notes.warning(joint, joint.attributes.get("name", "joint"), f"{message}; delete the joint and that link")
            root.children = [child for child in root.children if child is not joint and child is not empty_links[0]]


def _check_joint_links(links: dict[str, Link], joints: dict[str, Joint], notes: Notes) -> None:
    """Check that parent and child of every joint are links of the file, and that no link has two parent joints."""
    parent_of_child: dict[str, Joint] = {}
    for joint in joints.values():
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name and name not in links:
                notes.problem(
                    joint.line, joint.name, f"its {role} link {name!r} does not exist{did_you_mean(name, links)}"
                )
        if joint.child and joint.child in parent_of_child:
            first_joint = parent_of_child[joint.child]
            message = f"link {joint.child!r} already hangs on joint {first_joint.name!r} (line {first_joint.line})"
            notes.problem(joint.line, joint.name, message)
        parent_of_child.setdefault(joint.child, joint)


def _inertia(link: Element, key: str, notes: Notes) -> Inertia | None:
    element = notes.single(link, "inertial", key)
    if element is None:
        return None
    R, com = notes.origin(element, key)
    mass_element = notes.single(element, "mass", key, required=True)
    matrix_element = notes.single(element, "inertia", key, required=True)
    mass = None if mass_element is None else notes.bounded_vector(mass_element, "value", 1, key)
    if mass is not None and mass[0] < 0:
        notes.problem(mass_element or element, key, f"mass {mass[0]:g} kg is negative")
    if matrix_element is None:
        return None
    values = [notes.bounded_vector(matrix_element, name, 1, key) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")]
    if mass is None or any(value is None for value in values):
        return None
    xx, yy, zz, xy, xz, yz = (float(value[0]) for value in values if value is not None)
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if mass[0] == 0:  # the usual way to write a link that is only a frame
        if matrix.any():
            notes.warning(matrix_element, key, "inertia without mass: it is left out")
        return None
    moments = np.linalg.eigvalsh(matrix)
    if moments[0] <= 0:
        message = f"inertia is not positive definite: principal moments {triple(moments)} kg m²"
        notes.warning(matrix_element, key, message)
    elif moments[0] + moments[1] < moments[2] * (1 - 1e-6):
        message = f"inertia of no body: principal moments {triple(moments)} kg m² break the triangle inequality"
        notes.warning(matrix_element, key, message)
    return Inertia(float(mass[0]), com, R @ matrix @ R.T)
