"""Scenario variants: the same task with other dimensions, friction and start pose, drawn from a seed.

    variants:
      riser: 15%                      # nominal value ± 15 %
      slip: 0.05                      # nominal value ± 0.05
      friction: [0.5, 0.9]            # minimum, maximum
      start: {xy: 0.03, yaw: =pi/36}  # largest displacement of robot and start contacts (m, rad)

Each name but ``start`` is a parameter of the file. Values are drawn uniformly from ``numpy.random.default_rng(seed)``,
one per name in the order of the section (``start``: x, y, yaw), so a seed always gives the same file. A dependent
parameter is drawn about the value computed from the others.

Base and start contacts move together in the horizontal plane: they rotate by ``yaw`` about the vertical axis through
the base, and are then displaced by (x, y). A contact with given coordinates stays on its support: on a surface it moves
along the surface, on a bar along the bar. A contact without coordinates is placed at the new base.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic

from mcplan.document.document import Document
from mcplan.errors import Problem
from mcplan.scenario.environment_file import expand_mesh
from mcplan.scenario.expression import Expression, ExpressionError, same_name
from mcplan.scenario.parameters import is_expression, parameter_values, resolve
from mcplan.scenario.schema import BarSpec, ScenarioSpec, SurfaceSpec
from mcplan.scene.spec import PoseSpec
from mcplan.util.spelling import did_you_mean_or_all

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot


def start_after_motion(data: dict[str, Any], motion: tuple[float, float, float]) -> dict[str, Any]:
    """Return the section ``start`` of a resolved scenario after a motion x, y (m), yaw (rad).

    Invalid parts are unchanged; the check of the result reports them.
    """
    start = dict(data["start"])
    try:
        base = PoseSpec.model_validate_json(json.dumps(start["base"]), strict=True)
    except (pydantic.ValidationError, ValueError):
        return start
    from scipy.spatial.transform import Rotation  # slow import

    rotation = Rotation.from_euler("z", motion[2])
    pivot = base.p

    def move(p: np.ndarray) -> np.ndarray:
        return pivot + np.array([motion[0], motion[1], 0.0]) + rotation.apply(p - pivot)

    start["base"] = _pose_after_motion(start["base"], move(base.p), motion[2])
    supports = _supports(data)
    contacts = start.get("contacts")
    if isinstance(contacts, list):
        start["contacts"] = [_contact_after_motion(contact, supports, move, motion[2]) for contact in contacts]
    return start


def _pose_after_motion(pose: dict[str, Any], p: np.ndarray, yaw: float) -> dict[str, Any]:
    new_pose = dict(pose) | {"xyz": p.tolist()}
    if pose.get("quat_wxyz") is not None:
        from scipy.spatial.transform import Rotation

        new_rotation = Rotation.from_euler("z", yaw) * Rotation.from_quat(pose["quat_wxyz"], scalar_first=True)
        return new_pose | {"quat_wxyz": new_rotation.as_quat(scalar_first=True).tolist()}
    roll, pitch, old_yaw = pose.get("rpy") or (0.0, 0.0, 0.0)
    return new_pose | {"rpy": [roll, pitch, old_yaw + yaw]}


def _contact_after_motion(
    contact: Any, supports: dict[str, SurfaceSpec | BarSpec], move: Callable[[np.ndarray], np.ndarray], yaw: float
) -> Any:
    name = contact.get("surface") if isinstance(contact, dict) else None
    support = supports.get(name) if isinstance(name, str) else None
    if support is None:
        return contact
    new_contact = {name: value for name, value in contact.items() if name != "pose"}
    if isinstance(support, BarSpec):
        if _is_number(contact.get("along")):
            ends = np.array(support.ends)
            direction = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
            p = ends[0] + contact["along"] * direction
            new_contact["along"] = contact["along"] + float((move(p) - p) @ direction)
        return new_contact
    R, origin = support.pose.R, support.pose.p
    if _is_number(contact.get("yaw")):
        new_contact["yaw"] = contact["yaw"] + yaw * float(R[2, 2])
    if _is_number(contact.get("x")) and _is_number(contact.get("y")):
        p = origin + R[:, :2] @ np.array([contact["x"], contact["y"]])
        new_contact["x"], new_contact["y"] = (float(value) for value in (R.T @ (move(p) - origin))[:2])
    return new_contact


def _supports(data: dict[str, Any]) -> dict[str, SurfaceSpec | BarSpec]:
    """Return the surfaces and bars of the environment by name, without surfaces of objects."""
    environment = data.get("environment")
    supports_by_name: dict[str, SurfaceSpec | BarSpec] = {}
    for group, model in (("surfaces", SurfaceSpec), ("bars", BarSpec)):
        items = environment.get(group) if isinstance(environment, dict) else None
        for item in items if isinstance(items, list) else []:
            try:
                support = model.model_validate_json(json.dumps(item), strict=True)
            except (pydantic.ValidationError, ValueError):
                continue
            assert isinstance(support, (SurfaceSpec, BarSpec))
            supports_by_name[support.name] = support
    return supports_by_name


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*%")

START = "start"
START_RANGES = ("xy", "yaw")

MAX_VALUE = 1e9
"""Maximum magnitude of values and bounds: larger than any length of a scene, and small enough that no sum overflows."""


class RangeError(ValueError):
    """A range of a variant is invalid; the message is the reason."""


@dataclass(frozen=True)
class Range:
    """Range of a parameter: ``low`` to ``high``, or its nominal value ± ``spread``, or ± ``share`` times this value."""

    low: float | None = None
    high: float | None = None
    spread: float = 0.0
    share: float = 0.0

    def bounds(self, nominal: float) -> tuple[float, float]:
        """Return minimum and maximum of the range about a nominal value.

        Raises
        ------
        RangeError
            A bound exceeds ``MAX_VALUE``.
        """
        if self.low is not None and self.high is not None:
            return self.low, self.high
        half_width = self.spread + self.share * abs(nominal)
        if not abs(nominal) + half_width <= MAX_VALUE:  # or is not a number
            raise RangeError(f"{nominal:g} ± {half_width:g} is beyond {MAX_VALUE:g}")
        return nominal - half_width, nominal + half_width


@dataclass(frozen=True)
class Draw:
    """Values drawn from a seed: ``parameters``, and the ``motion`` x, y (m), yaw (rad) of the start."""

    seed: int
    parameters: dict[str, float]
    motion: tuple[float, float, float] | None

    def to_data(self) -> dict[str, Any]:
        """Return the section ``variant`` of the resolved document."""
        data: dict[str, Any] = {"seed": self.seed, **self.parameters}
        return data if self.motion is None else data | {START: list(self.motion)}


def variant_document(document: Document, seed: int, robot: "Robot | None" = None) -> tuple[Document, list[Problem]]:
    """Return the variant of a seed as a document of plain numbers, and the problems of the file.

    ``robot`` is that of the document, if already loaded.
    """
    if not isinstance(document.data, dict):
        return document, []
    if "variants" not in document.data:
        return document, [document.problem((), "has no section `variants`, so there is no variant of it")]
    draw, problems = _draw(document, seed, robot)
    resolved, new_problems = resolve(document, draw.parameters, robot)
    if problems or new_problems:
        return resolved, [*problems, *new_problems]
    data = dict(resolved.data)
    if draw.motion is not None:
        data[START] = start_after_motion(_with_mesh(resolved).data, draw.motion)
    return resolved.with_data(data | {"variant": draw.to_data()}), []


def _with_mesh(document: Document) -> Document:
    """Return the document with the supports found in its mesh, if it can be read; contacts may refer to them."""
    environment = document.data.get("environment")
    if not isinstance(environment, dict) or "mesh" not in environment:
        return document
    spec, _ = document.examine(ScenarioSpec, salvage=True)
    return document if spec is None else expand_mesh(document, spec.environment)[0]


def check_variants(document: Document, robot: "Robot | None" = None) -> list[Problem]:
    """Return the problems of the section ``variants``; ``robot`` is as for ``variant_document``."""
    if not isinstance(document.data, dict) or "variants" not in document.data:
        return []
    values, _ = parameter_values(document, None, robot)
    return _ranges(document, values)[2]


def _draw(document: Document, seed: int, robot: "Robot | None") -> tuple[Draw, list[Problem]]:
    nominal, _ = parameter_values(document, None, robot)
    ranges, motion, problems = _ranges(document, nominal)
    rng = np.random.default_rng(seed)
    drawn: dict[str, float] = {}
    drawn_motion = None
    if problems:
        return Draw(seed, drawn, drawn_motion), problems
    for key in document.data["variants"] or {}:
        name = same_name(key)
        if name == START and motion is not None:
            xy, yaw = motion
            x, y, angle = (float(rng.uniform(-limit, limit)) for limit in (xy, xy, yaw))
            drawn_motion = (x, y, angle)
        elif name in ranges:
            values, _ = parameter_values(document, drawn, robot)
            try:
                drawn[name] = float(rng.uniform(*ranges[name].bounds(values.get(name, 1.0))))
            except RangeError as reason:  # possible if the nominal value depends on other drawn values
                problems.append(document.problem(("variants", key), str(reason)))
    return Draw(seed, drawn, drawn_motion), problems


def _ranges(
    document: Document, values: dict[str, float]
) -> tuple[dict[str, Range], tuple[float, float] | None, list[Problem]]:
    """Return the range of each parameter and of the start (xy, yaw), and the problems."""
    section = document.data["variants"] or {}
    if not isinstance(section, dict):
        return {}, None, [document.problem(("variants",), "expected a mapping {parameter: range}")]
    problems: list[Problem] = []
    ranges: dict[str, Range] = {}
    motion = None
    parameters = document.data.get("parameters")
    names = [same_name(key) for key in parameters] if isinstance(parameters, dict) else []
    for key, value in section.items():
        name = same_name(key)
        try:
            if name == START:
                motion = _motion(document, value, values)
            elif name in names:
                ranges[name] = _range(value, values)
                ranges[name].bounds(values.get(name, 1.0))
            else:
                raise RangeError(f"unknown parameter{did_you_mean_or_all(name, [*names, START])}")
        except (RangeError, ExpressionError) as reason:
            problems.append(document.problem(("variants", key), str(reason)))
    return ranges, motion, problems


def _range(text_or_value: Any, values: dict[str, float]) -> Range:
    if isinstance(text_or_value, str) and (percent := _PERCENT.fullmatch(text_or_value)):
        return Range(share=float(percent[1]) / 100)
    if isinstance(text_or_value, list) and len(text_or_value) == 2:
        low, high = (_number(value, values) for value in text_or_value)
        if low > high:
            raise RangeError(f"the range begins at {low:g} and ends at {high:g}")
        return Range(low, high)
    if not isinstance(text_or_value, list):
        spread = _number(text_or_value, values)
        if spread >= 0:
            return Range(spread=spread)
    raise RangeError("expected 15%, a distance from the value such as 0.05, or [from, to]")


def _motion(document: Document, value: Any, values: dict[str, float]) -> tuple[float, float]:
    start = document.data.get(START)
    if not isinstance(start, dict) or "base" not in start:
        raise RangeError("a start can be moved only where start.base is given")
    if not isinstance(value, dict) or not value or set(value) - set(START_RANGES):
        raise RangeError("expected {xy: metres, yaw: radians}")
    xy, yaw = (_number(value.get(name, 0.0), values) for name in START_RANGES)
    if xy < 0 or yaw < 0:
        raise RangeError("xy and yaw are the largest distances, so they are not negative")
    return xy, yaw


def _number(value: Any, values: dict[str, float]) -> float:
    number = Expression(value[1:]).value(values) if is_expression(value) else value
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        raise RangeError(f"expected a number, got {value!r}")
    if not abs(number) <= MAX_VALUE:  # or is not a number
        raise RangeError(f"expected a number between ±{MAX_VALUE:g}, got {value!s:.40}")
    return float(number)
