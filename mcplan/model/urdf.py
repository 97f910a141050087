"""URDF: a file becomes a ``UrdfModel``, or one error that lists everything wrong with it, line by line."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mcplan.errors import Problem, RobotError
from mcplan.model.description import Inertia, Joint, Link, UrdfModel
from mcplan.model.urdf_geometry import GeometryReader
from mcplan.model.urdf_joint import read_joints
from mcplan.model.urdf_tree import check_mimics, order_tree, with_followers
from mcplan.model.xml_reader import MAX_BYTES, Element, read_xml
from mcplan.model.xml_values import Notes, brief, closest, triple

LINK_TAGS = ("inertial", "visual", "collision")


def read_bytes(path: Path) -> bytes:
    """Read a file of bounded size; a missing or unreadable one is a RobotError."""
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
    """Refuse a file that is not UTF-8: runs keep the text of a robot's files. ASCII is the same in most encodings."""
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
    """Parse the bytes of a URDF file; ``path`` names it in messages and is where meshes are looked for."""
    root = read_xml(data, str(path))
    refuse_encoding(data, str(path))
    notes = Notes(str(path), strict)
    if root.tag != "robot":
        raise RobotError(Problem(str(path), root.line, "", f"the root element is <{root.tag[:40]}>, not <robot>"))
    _refuse_xacro(root, notes)
    notes.settle()
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
        notes.known(element, LINK_TAGS, name)
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
    if not links and not notes.problems:
        notes.problem(root, "", "the robot has no links")
    _check_ends(links, joints, notes)
    check_mimics(joints, notes)
    notes.settle()
    base, link_order, joint_order, children = order_tree(links, joints, notes)
    notes.settle()
    notes.warn(stacklevel)
    return UrdfModel(
        root.attributes.get("name", path.stem),
        path,
        base,
        {name: links[name] for name in link_order},
        with_followers({name: joints[name] for name in joint_order}),
        children,
        geometry.meshes.by_name,
        urdf_root=base,
    )


def _refuse_xacro(root: Element, notes: Notes) -> None:
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag.startswith("xacro:"):
            message = f"<{element.tag[:40]}> is unexpanded xacro: run `xacro FILE.urdf.xacro > FILE.urdf` first"
            notes.problem(element, "", message)
            return
        stack.extend(reversed(element.children))


def _check_ends(links: dict[str, Link], joints: dict[str, Joint], notes: Notes) -> None:
    """Every joint's parent and child are links of the file, and no link hangs on two joints."""
    above: dict[str, Joint] = {}
    for joint in joints.values():
        for end, name in (("parent", joint.parent), ("child", joint.child)):
            if name and name not in links:
                notes.problem(joint.line, joint.name, f"its {end} link {name!r} does not exist{closest(name, links)}")
        if joint.child and joint.child in above:
            other = above[joint.child]
            message = f"link {joint.child!r} already hangs on joint {other.name!r} (line {other.line})"
            notes.problem(joint.line, joint.name, message)
        above.setdefault(joint.child, joint)


def _inertia(link: Element, key: str, notes: Notes) -> Inertia | None:
    element = notes.single(link, "inertial", key)
    if element is None:
        return None
    R, com = notes.origin(element, key)
    mass_element = notes.single(element, "mass", key, required=True)
    matrix_element = notes.single(element, "inertia", key, required=True)
    mass = None if mass_element is None else notes.lengths(mass_element, "value", 1, key)
    if mass is not None and mass[0] < 0:
        notes.problem(mass_element or element, key, f"mass {mass[0]:g} kg is negative")
    if matrix_element is None:
        return None
    values = [notes.lengths(matrix_element, name, 1, key) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")]
    if mass is None or any(value is None for value in values):
        return None
    xx, yy, zz, xy, xz, yz = (float(value[0]) for value in values if value is not None)
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if mass[0] == 0:  # how many files say that a link is no more than a frame
        if matrix.any():
            notes.doubt(matrix_element, key, "inertia without mass: it is left out")
        return None
    moments = np.linalg.eigvalsh(matrix)
    if moments[0] <= 0:
        message = f"inertia is not positive definite: principal moments {triple(moments)} kg m²"
        notes.doubt(matrix_element, key, message)
    elif moments[0] + moments[1] < moments[2] * (1 - 1e-6):
        message = f"inertia of no body: principal moments {triple(moments)} kg m² break the triangle inequality"
        notes.doubt(matrix_element, key, message)
    return Inertia(float(mass[0]), com, R @ matrix @ R.T)
