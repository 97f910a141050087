"""The start of a scenario moved as a whole: base and contacts together, in the horizontal plane.

The base turns by ``yaw`` about the vertical through itself and is then displaced by (x, y). Each contact whose place is
given moves with it and stays on its support: a point of a surface moves along the surface, one of a bar along the bar.
Places that the file leaves out follow the base by themselves.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pydantic
from scipy.spatial.transform import Rotation

from mcplan.scene.schema import BarSpec, SurfaceSpec
from mcplan.scene.spec import PoseSpec


def moved_start(data: dict[str, Any], motion: tuple[float, float, float]) -> dict[str, Any]:
    """Return the section ``start`` of a resolved scenario after a motion x, y (m), yaw (rad).

    Parts that are not as a scenario has them are left as they are; checking the result names them.
    """
    start = dict(data["start"])
    try:
        base = PoseSpec.model_validate_json(json.dumps(start["base"]), strict=True)
    except (pydantic.ValidationError, ValueError):
        return start
    turn = Rotation.from_euler("z", motion[2])
    pivot = base.p

    def move(p: np.ndarray) -> np.ndarray:
        return pivot + np.array([motion[0], motion[1], 0.0]) + turn.apply(p - pivot)

    start["base"] = _moved_pose(start["base"], move(base.p), motion[2])
    supports = _supports(data)
    contacts = start.get("contacts")
    if isinstance(contacts, list):
        start["contacts"] = [_moved_contact(contact, supports, move, motion[2]) for contact in contacts]
    return start


def _moved_pose(pose: dict[str, Any], p: np.ndarray, yaw: float) -> dict[str, Any]:
    moved = dict(pose) | {"xyz": p.tolist()}
    if pose.get("quat_wxyz") is not None:
        turned = Rotation.from_euler("z", yaw) * Rotation.from_quat(pose["quat_wxyz"], scalar_first=True)
        return moved | {"quat_wxyz": turned.as_quat(scalar_first=True).tolist()}
    roll, pitch, old = pose.get("rpy") or (0.0, 0.0, 0.0)
    return moved | {"rpy": [roll, pitch, old + yaw]}


def _moved_contact(
    contact: Any, supports: dict[str, SurfaceSpec | BarSpec], move: Callable[[np.ndarray], np.ndarray], yaw: float
) -> Any:
    name = contact.get("surface") if isinstance(contact, dict) else None
    support = supports.get(name) if isinstance(name, str) else None
    if support is None:
        return contact
    moved = {name: value for name, value in contact.items() if name != "pose"}
    if isinstance(support, BarSpec):
        if _is_number(contact.get("along")):
            ends = np.array(support.ends)
            direction = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
            p = ends[0] + contact["along"] * direction
            moved["along"] = contact["along"] + float((move(p) - p) @ direction)
        return moved
    R, origin = support.pose.R, support.pose.p
    if _is_number(contact.get("yaw")):
        moved["yaw"] = contact["yaw"] + yaw * float(R[2, 2])
    if _is_number(contact.get("x")) and _is_number(contact.get("y")):
        p = origin + R[:, :2] @ np.array([contact["x"], contact["y"]])
        moved["x"], moved["y"] = (float(value) for value in (R.T @ (move(p) - origin))[:2])
    return moved


def _supports(data: dict[str, Any]) -> dict[str, SurfaceSpec | BarSpec]:
    """Return the surfaces and bars that stand in the world; those of objects are left out."""
    environment = data.get("environment")
    found: dict[str, SurfaceSpec | BarSpec] = {}
    for group, model in (("surfaces", SurfaceSpec), ("bars", BarSpec)):
        items = environment.get(group) if isinstance(environment, dict) else None
        for item in items if isinstance(items, list) else []:
            try:
                support = model.model_validate_json(json.dumps(item), strict=True)
            except (pydantic.ValidationError, ValueError):
                continue
            assert isinstance(support, (SurfaceSpec, BarSpec))
            found[support.name] = support
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
