"""URDF: a file becomes a ``UrdfModel``, or one error that lists everything wrong with it, line by line."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from mcplan.errors import Problem, RobotError
from mcplan.model.description import Inertia, Joint, JointType, Link, Mimic, UrdfModel
from mcplan.model.urdf_geometry import GeometryReader
from mcplan.model.urdf_tree import check_mimics, order_tree
from mcplan.model.xml_reader import MAX_BYTES, Element, read_xml
from mcplan.model.xml_values import MAX_VALUE, Notes, brief, closest

JOINT_TYPES: dict[str, JointType] = {name: name for name in get_args(JointType)} | {"spherical": "ball"}
"""Types of a ``<joint>``; those of URDF itself have no ball, which dialects call by either name."""
UNIVERSAL = "universal"
"""Two hinges, one after the other, about ``<axis>`` and ``<axis2>`` (as SDF has it)."""
LARGEST_TURN = 5.5
"""rad: the rates of a rotation vector of 2 pi do not span all turns; up to here their map is within 1 : 7."""
PARALLEL = 0.999
"""Cosine of the angle of two axes that count as one."""
LINK_TAGS = ("inertial", "visual", "collision")
JOINT_TAGS = ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "calibration", "safety_controller")


def read_bytes(path: Path) -> bytes:
    """Read a file of bounded size; a missing or unreadable one is a RobotError."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RobotError(Problem(str(path), None, "", f"cannot be read: {error.strerror or error}")) from None
    except ValueError as error:  # a NUL in the name
        raise RobotError(Problem(repr(str(path)), None, "", f"cannot be read: {error}")) from None


def parse_urdf(
    data: bytes,
    path: Path,
    strict: bool = False,
    package_directories: Sequence[str | Path] = (),
    stacklevel: int = 2,
) -> UrdfModel:
    """Parse the bytes of a URDF file; ``path`` names it in messages and is where meshes are looked for."""
    root = read_xml(data, str(path))
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
        parts = _joints(element, notes)
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
        {name: joints[name] for name in joint_order},
        children,
        geometry.meshes.by_name,
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
        message = f"inertia is not positive definite: principal moments {_triple(moments)} kg m²"
        notes.doubt(matrix_element, key, message)
    elif moments[0] + moments[1] < moments[2] * (1 - 1e-6):
        message = f"inertia of no body: principal moments {_triple(moments)} kg m² break the triangle inequality"
        notes.doubt(matrix_element, key, message)
    return Inertia(float(mass[0]), com, R @ matrix @ R.T)


def _triple(values: np.ndarray) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def _joints(element: Element, notes: Notes) -> list[Joint]:
    """Return the joint that an element describes, or the two or three that it stands for."""
    name = notes.text(element, "name", "joint")
    if name is None:
        return []
    kind = notes.text(element, "type", name)
    notes.known(element, (*JOINT_TAGS, "axis2") if kind == UNIVERSAL else JOINT_TAGS, name)
    if kind is not None and kind not in (*JOINT_TYPES, UNIVERSAL):
        message = f"joint type {brief(kind)} is not one of {', '.join((*JOINT_TYPES, UNIVERSAL))}"
        if kind == "floating":
            message += "; the base floats by itself, without a joint to the world"
        notes.problem(element, name, message)
        kind = None
    ends = {}
    for tag in ("parent", "child"):
        end = notes.single(element, tag, name, required=True)
        ends[tag] = (None if end is None else notes.text(end, "link", name)) or ""
    if ends["parent"] and ends["parent"] == ends["child"]:
        notes.problem(element, name, f"its parent and its child are the same link {ends['child']!r}")
    R, p = notes.origin(element, name)
    # a joint with problems is kept, as far as it goes, so that later checks do not report its links as loose
    joint = Joint(name, element.line, "fixed", ends["parent"], ends["child"], R, p, np.array([1.0, 0.0, 0.0]))
    if kind in (None, "fixed"):
        return [joint]
    if kind == UNIVERSAL:
        axes = [_axis(element, name, notes, tag, required=True) for tag in ("axis", "axis2")]
        if abs(float(axes[0] @ axes[1])) > PARALLEL:
            notes.problem(element, name, "its two axes are parallel")
        return _chain(joint, "revolute", axes, _each_limit(element, name, 2, notes), ("1", "2"))
    if JOINT_TYPES[kind] == "ball":
        if element.all("axis"):
            notes.doubt(element, name, "a ball joint has no axis: it is left out")
        limits = _each_limit(element, name, 3, notes)
        most = np.linalg.norm([max(-each["lower"], each["upper"]) for each in limits])
        if most > LARGEST_TURN:
            message = f"its limits let it turn by {most:.3g} rad, more than {LARGEST_TURN:g} (|rotation vector| < 2 pi)"
            notes.problem(element, name, message)
        return _chain(joint, "ball", list(np.eye(3)), limits, ("x", "y", "z"))
    return [
        replace(joint, type=JOINT_TYPES[kind], axis=_axis(element, name, notes), **_limits(element, kind, name, notes))
    ]


def _chain(joint: Joint, kind: JointType, axes: list[np.ndarray], limits: list[dict], names: Sequence[str]) -> list:
    """Return joints in one place, one after the other, with links without mass between them."""
    parts: list[Joint] = []
    for axis, limit, name in zip(axes, limits, names, strict=True):
        place: dict[str, Any] = {"parent": parts[-1].child, "R": np.eye(3), "p": np.zeros(3)} if parts else {}
        child = joint.child if name == names[-1] else f"{joint.name}_{name}_link"
        parts.append(replace(joint, name=f"{joint.name}_{name}", type=kind, child=child, axis=axis, **place, **limit))
    return parts


def _each_limit(element: Element, key: str, count: int, notes: Notes) -> list[dict]:
    """Return the limits of each coordinate of a joint of several: ``<limit>`` has one number for all, or one for each.

    A ball joint without limits goes by half a turn either way along each axis.
    """
    limit = notes.single(element, "limit", key)
    found = {"velocity": np.inf, "effort": np.inf, "lower": -np.pi, "upper": np.pi}
    each: dict[str, np.ndarray] = {name: np.full(count, value) for name, value in found.items()}
    for name in found if limit is not None else ():
        if limit is not None and name in limit.attributes:
            one = len(limit.attributes[name].split()) == 1
            value = notes.vector(limit, name, 1 if one else count, key)
            if value is not None:
                each[name] = np.broadcast_to(value, count)
    if limit is not None and (np.minimum(each["velocity"], each["effort"]) < 0).any():
        notes.problem(limit, key, "a limit of velocity or effort is negative")
    if limit is not None and (each["lower"] > each["upper"]).any():
        notes.problem(limit, key, "a lower limit is above its upper limit")
    for tag in ("mimic", "dynamics"):
        if found_tag := element.all(tag):
            notes.problem(found_tag[0], key, f"a joint of {count} coordinates has no <{tag}>")
    return [{name: float(values[k]) for name, values in each.items()} for k in range(count)]


def _axis(element: Element, key: str, notes: Notes, tag: str = "axis", required: bool = False) -> np.ndarray:
    child = notes.single(element, tag, key, required)
    axis = np.array([1.0, 0.0, 0.0]) if child is None else notes.lengths(child, "xyz", 3, key)
    if axis is None:
        return np.array([1.0, 0.0, 0.0])
    length = np.linalg.norm(axis)
    if length < 1e-6:
        notes.problem(child or element, key, f"axis {_triple(axis)} has no direction")
        return np.array([1.0, 0.0, 0.0])
    # an axis that is unit up to the digits of the file is meant to be unit; dividing is exact for (0 0 1)
    return axis / length


def _limits(element: Element, kind: str, key: str, notes: Notes) -> dict:
    """Return lower, upper, velocity, effort, damping, friction, mimic of a moving joint."""
    result: dict = {}
    limit = notes.single(element, "limit", key, required=kind != "continuous")
    if limit is not None:
        for name in ("velocity", "effort"):
            value = notes.vector(limit, name, 1, key, None if kind != "continuous" else (np.inf,))
            if value is None:
                continue
            if value[0] < 0:
                notes.problem(limit, key, f"{name} limit {value[0]:g} is negative")
            elif value[0] == 0:
                notes.doubt(limit, key, f"{name} limit is 0: the joint cannot be used")
            result[name] = float(value[0]) if value[0] < MAX_VALUE else np.inf
        if kind != "continuous":  # the format's default is 0
            lower, upper = (notes.vector(limit, name, 1, key, (0,)) for name in ("lower", "upper"))
            if lower is not None and upper is not None:
                if lower[0] > upper[0]:
                    notes.problem(limit, key, f"lower limit {lower[0]:g} is above the upper limit {upper[0]:g}")
                elif lower[0] == upper[0]:
                    notes.doubt(limit, key, f"lower and upper limit are both {lower[0]:g}: the joint cannot move")
                result["lower"] = float(lower[0]) if lower[0] > -MAX_VALUE else -np.inf
                result["upper"] = float(upper[0]) if upper[0] < MAX_VALUE else np.inf
    dynamics = notes.single(element, "dynamics", key)
    if dynamics is not None:
        for name in ("damping", "friction"):
            value = notes.lengths(dynamics, name, 1, key, (0,))
            if value is not None and value[0] < 0:
                notes.problem(dynamics, key, f"{name} {value[0]:g} is negative")
            result[name] = 0.0 if value is None else float(value[0])
    mimic = notes.single(element, "mimic", key)
    if mimic is not None:
        master = notes.text(mimic, "joint", key)
        multiplier = notes.lengths(mimic, "multiplier", 1, key, (1,))
        offset = notes.lengths(mimic, "offset", 1, key, (0,))
        if master is not None and multiplier is not None and offset is not None:
            result["mimic"] = Mimic(master, float(multiplier[0]), float(offset[0]))
    return result
