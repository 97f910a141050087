"""URDF joints: joints of one coordinate, and ball or universal joints as chains of these."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from mcplan.robot.description import Joint, JointType, Mimic
from mcplan.robot.xml_reader import MAX_VALUE, Element, Notes, brief, triple

JOINT_TYPES: dict[str, JointType] = {name: name for name in get_args(JointType)} | {"spherical": "ball"}
"""Types of a ``<joint>``; the ball is an extension, with either name."""

UNIVERSAL = "universal"
"""Two revolute joints in series about ``<axis>`` and ``<axis2>`` (as in SDF)."""

MAX_BALL_ANGLE_RAD = 5.5
"""Largest angle (rad) of a ball joint. Its rotation vector is singular at 2 pi; up to this angle, the condition number
of the map from its rate to the angular velocity is below 7."""

MAX_PARALLEL_COSINE = 0.999
"""Cosine of the angle between two axes above which they count as parallel."""

UNLIMITED = {"velocity": np.inf, "effort": np.inf, "lower": -np.pi, "upper": np.pi}
"""Default limits of each coordinate of a ball or universal joint."""

SIDES = ("lower", "upper")
"""Names of the two position limits."""

JOINT_TAGS = ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "calibration", "safety_controller")


def read_joints(element: Element, notes: Notes) -> list[Joint]:
    """Return the joint of an element; two or three joints for a universal or ball joint."""
    name = notes.text(element, "name", "joint")
    if name is None:
        return []
    kind = notes.text(element, "type", name)
    notes.warn_unknown_tags(element, (*JOINT_TAGS, "axis2") if kind == UNIVERSAL else JOINT_TAGS, name)
    if kind is not None and kind not in (*JOINT_TYPES, UNIVERSAL):
        message = f"joint type {brief(kind)} is not one of {', '.join((*JOINT_TYPES, UNIVERSAL))}"
        if kind == "floating":
            message += "; the base floats by itself: delete the joint, and the link above it if that is empty"
        notes.problem(element, name, message)
        kind = None
    links = {}
    for tag in ("parent", "child"):
        link_element = notes.single(element, tag, name, required=True)
        links[tag] = (None if link_element is None else notes.text(link_element, "link", name)) or ""
    if links["parent"] and links["parent"] == links["child"]:
        notes.problem(element, name, f"its parent and its child are the same link {links['child']!r}")
    R, p = notes.origin(element, name)
    # keep a joint with problems, so that later checks do not report its links as disconnected
    joint = Joint(name, element.line, "fixed", links["parent"], links["child"], R, p, np.array([1.0, 0.0, 0.0]))
    if kind in (None, "fixed"):
        return [joint]
    if kind == UNIVERSAL:
        axes = [_axis(element, name, notes, tag, required=True) for tag in ("axis", "axis2")]
        if abs(float(axes[0] @ axes[1])) > MAX_PARALLEL_COSINE:
            notes.problem(element, name, "its two axes are parallel")
        return _chain(joint, "revolute", axes, _limits_of_coordinates(element, name, 2, notes), ("1", "2"))
    if JOINT_TYPES[kind] == "ball":
        if element.all("axis"):
            notes.warning(element, name, "a ball joint has no axis; <axis> is ignored")
        limits = _limits_of_coordinates(element, name, 3, notes)
        if message := ball_range_error([limit["lower"] for limit in limits], [limit["upper"] for limit in limits]):
            notes.problem(element, name, message)
        return _chain(joint, "ball", list(np.eye(3)), limits, ("x", "y", "z"))
    return [
        replace(joint, type=JOINT_TYPES[kind], axis=_axis(element, name, notes), **_limits(element, kind, name, notes))
    ]


def ball_range_error(lower: ArrayLike, upper: ArrayLike) -> str:
    """Check the limits (3,), (3,) of a ball joint's rotation vector (rad); return a message, empty if valid."""
    largest = np.linalg.norm(np.maximum(np.negative(lower), upper))
    if largest <= MAX_BALL_ANGLE_RAD:
        return ""
    return f"its limits let it turn by {largest:.3g} rad, more than {MAX_BALL_ANGLE_RAD:g} (|rotation vector| < 2 pi)"


def _chain(joint: Joint, kind: JointType, axes: list[np.ndarray], limits: list[dict], names: Sequence[str]) -> list:
    """Return joints of one coordinate in series at the same place, with massless links between them."""
    parts: list[Joint] = []
    for axis, limit, name in zip(axes, limits, names, strict=True):
        parent_and_pose: dict[str, Any] = {"parent": parts[-1].child, "R": np.eye(3), "p": np.zeros(3)} if parts else {}
        child = joint.child if name == names[-1] else f"{joint.name}_{name}_link"
        parts.append(
            replace(joint, name=f"{joint.name}_{name}", type=kind, child=child, axis=axis, **parent_and_pose, **limit)
        )
    return parts


def _limits_of_coordinates(element: Element, key: str, count: int, notes: Notes) -> list[dict]:
    """Return the limits of the coordinates of a ball or universal joint.

    Attributes of ``<limit>`` have one number for all ``count`` coordinates, or one for each. Without limits the
    coordinates range from -pi to pi.
    """
    limits = {name: np.full(count, value) for name, value in UNLIMITED.items()}
    limit = notes.single(element, "limit", key)
    if limit is not None:
        for name in limits.keys() & limit.attributes.keys():
            size = 1 if len(limit.attributes[name].split()) == 1 else count
            value = notes.vector(limit, name, size, key)
            if value is not None:
                limits[name] = np.broadcast_to(value, count)
        if (np.minimum(limits["velocity"], limits["effort"]) < 0).any():
            notes.problem(limit, key, "a limit of velocity or effort is negative")
        if (limits["lower"] > limits["upper"]).any():
            notes.problem(limit, key, "a lower limit is above its upper limit")
    for tag in ("mimic", "dynamics"):
        for unsupported in element.all(tag):
            notes.problem(unsupported, key, f"a joint of {count} coordinates has no <{tag}>")
    return [{name: float(values[k]) for name, values in limits.items()} for k in range(count)]


def _axis(element: Element, key: str, notes: Notes, tag: str = "axis", required: bool = False) -> np.ndarray:
    child = notes.single(element, tag, key, required)
    axis = np.array([1.0, 0.0, 0.0]) if child is None else notes.bounded_vector(child, "xyz", 3, key)
    if axis is None:
        return np.array([1.0, 0.0, 0.0])
    length = np.linalg.norm(axis)
    if length < 1e-6:
        notes.problem(child or element, key, f"axis {triple(axis)} has no direction")
        return np.array([1.0, 0.0, 0.0])
    # normalise, because axes in a file have few digits; (0 0 1) remains exact
    return axis / length


def _limits(element: Element, kind: str, key: str, notes: Notes) -> dict:
    """Return the fields lower, upper, velocity, effort, damping, friction, mimic of a moving `Joint`."""
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
                notes.warning(limit, key, f"{name} limit is 0: the joint cannot be used")
            result[name] = float(value[0]) if value[0] < MAX_VALUE else np.inf
        if kind != "continuous":  # the format's default is 0
            lower, upper = (notes.vector(limit, name, 1, key, (0,)) for name in ("lower", "upper"))
            if lower is not None and upper is not None:
                if lower[0] > upper[0]:
                    notes.problem(limit, key, f"lower limit {lower[0]:g} is above the upper limit {upper[0]:g}")
                elif lower[0] == upper[0]:
                    notes.warning(limit, key, f"lower and upper limit are both {lower[0]:g}: the joint cannot move")
                result["lower"] = float(lower[0]) if lower[0] > -MAX_VALUE else -np.inf
                result["upper"] = float(upper[0]) if upper[0] < MAX_VALUE else np.inf
    _warn_about_soft_limits(element, key, result, notes)
    dynamics = notes.single(element, "dynamics", key)
    if dynamics is not None:
        for name in ("damping", "friction"):
            value = notes.bounded_vector(dynamics, name, 1, key, (0,))
            if value is not None and value[0] < 0:
                notes.problem(dynamics, key, f"{name} {value[0]:g} is negative")
            result[name] = 0.0 if value is None else float(value[0])
    mimic = notes.single(element, "mimic", key)
    if mimic is not None:
        master = notes.text(mimic, "joint", key)
        multiplier = notes.bounded_vector(mimic, "multiplier", 1, key, (1,))
        offset = notes.bounded_vector(mimic, "offset", 1, key, (0,))
        if master is not None and multiplier is not None and offset is not None:
            result["mimic"] = Mimic(master, float(multiplier[0]), float(offset[0]))
    return result


def _warn_about_soft_limits(element: Element, key: str, limits: dict, notes: Notes) -> None:
    """Warn of soft limits that are narrower than ``<limit>``, because they are not used."""
    for safety in element.all("safety_controller"):
        hard_limits = limits.get("lower", -np.inf), limits.get("upper", np.inf)
        soft_limits = [
            safety.attributes.get(f"soft_{side}_limit", bound) for side, bound in zip(SIDES, hard_limits, strict=True)
        ]
        try:
            low, high = map(float, soft_limits)
        except ValueError:
            notes.warning(safety, key, "soft limits of <safety_controller> are not read: <limit> counts")
            continue
        if low > hard_limits[0] or high < hard_limits[1]:
            message = f"soft limits {low:g} to {high:g} of <safety_controller> are not read: <limit> counts"
            notes.warning(safety, key, message)
