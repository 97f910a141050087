"""Scenario file for a mesh or world file, as editable text."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.analysis.scene_start import Proposal
from mcplan.document.document import comment, inline
from mcplan.robot.pose import quat_from_rotation
from mcplan.robot.robot import Robot
from mcplan.scenario.values import environment_data, robot_name
from mcplan.scene.detection.detect import DetectedScene
from mcplan.scene.environment import Surface
from mcplan.scene.polygon import area


def scenario_text(
    found: DetectedScene, proposal: Proposal, robot: Robot, source: Path, directory: Path, name: str
) -> str:
    """Return the text of a scenario file; the path of the robot is relative to its ``directory``.

    Parameters
    ----------
    found, proposal : detected scene, and start and goal in it.
    source : mesh or world file from which the scene was detected.
    name : of the scenario.
    """
    return "\n".join(_lines(found, proposal, robot, source, directory, name)) + "\n"


def _lines(
    found: DetectedScene, proposal: Proposal, robot: Robot, source: Path, directory: Path, name: str
) -> Iterator[str]:
    path = robot_name(robot)
    if Path(path).suffix:
        path = os.path.relpath(path, directory)
    yield f"# {comment(name)}: found in {comment(source.name)} by `mcplan scene new`. SI units, radians."
    yield "# Look at it with `mcplan scene show`, run it with `mcplan run`; remove surfaces that must not be touched."
    yield "mcplan: 1"
    yield f"name: {inline(name)}"
    yield f"robot: {inline(Path(path).as_posix())}"
    yield ""
    yield "environment:"
    yield "  surfaces:                 # size or polygon in the frame of the pose, whose z axis is the normal"
    for surface in found.surfaces:
        yield f"    - {inline(_surface(surface))}  # {_size_text(surface)}"
    data = environment_data(found.environment)
    if found.bars:
        yield "  bars:                     # can be grasped, leant on, stood on"
        for bar in data["bars"]:
            yield f"    - {inline(bar)}"
    if found.obstacles:
        yield "  obstacles:                # collide only"
        for obstacle in found.obstacles:
            yield f"    - {inline(_obstacle(obstacle, data))}"
    for notice in found.notices:
        yield f"  # {comment(notice)}"
    if found.rejected:
        yield "  # Left out:"
        for part in found.rejected:
            yield f"  #   {comment(str(part))}"
    start = proposal.start
    posture = next(n for n in ("half_sitting", *robot.postures) if n in robot.postures)
    yield ""
    yield "start:"
    yield f"  posture: {inline(posture)}"
    heading = 2.0 * np.arctan2(start.q[6], start.q[3])
    base = {"xyz": _rounded(start.q[:3]), "rpy": [0, 0, round(float(heading), 5)]}
    yield f"  base: {inline(base)}"
    yield "  contacts:"
    for contact in start.contacts:
        place = {key: round(float(value), 4) for key, value in contact.coordinates.items()}
        yield f"    - {inline({'patch': contact.patch, 'surface': contact.support, **place})}"
    yield ""
    if proposal.notice:
        yield f"# {comment(proposal.notice)}"
    where = "anywhere on it" if "contacts" in proposal.goal else "a place of the base; the planner chooses the contacts"
    yield f"goal:                       # {where}"
    for key, value in proposal.goal.items():
        yield f"  {key}: {inline(value)}"
    yield ""
    yield "planner:"
    yield "  patches: [feet]           # patches that may touch; without this line, all patches of the robot"


def _surface(surface: Surface) -> dict[str, Any]:
    low, high = surface.polygon.min(axis=0), surface.polygon.max(axis=0)
    on_side = np.isclose(surface.polygon, low, atol=1e-4) | np.isclose(surface.polygon, high, atol=1e-4)
    data: dict[str, Any] = {"name": surface.name, "pose": {"xyz": _rounded(surface.p)}}
    if surface.normal[2] > 1.0 - 1e-9:
        yaw = round(float(np.arctan2(surface.R[1, 0], surface.R[0, 0])), 6)
        data["pose"] |= {"rpy": [0, 0, yaw]} if yaw else {}
    else:
        data["pose"]["quat_wxyz"] = [round(float(x), 8) for x in quat_from_rotation(surface.R)]
    if len(surface.polygon) == 4 and on_side.all() and np.abs(low + high).max() < 2e-4:
        data["size"] = _rounded(high - low)
    else:
        data["polygon"] = [_rounded(corner, 5) for corner in surface.polygon]
    return data | {"thickness": round(surface.thickness, 4), "friction": surface.friction}


def _size_text(surface: Surface) -> str:
    slope = np.degrees(np.arccos(min(surface.normal[2], 1.0)))
    tilt = f", {slope:.0f} degrees" if slope > 0.5 else ""
    return f"{area(surface.polygon):.2f} m², {round(surface.p[2], 2) + 0.0:.2f} m high{tilt}"


def _obstacle(obstacle: Any, data: dict[str, Any]) -> dict[str, Any]:
    item = dict(next(item for item in data["obstacles"] if item["name"] == obstacle.name))
    pose: dict[str, Any] = {"xyz": _rounded(obstacle.p)}
    if not np.allclose(obstacle.R, np.eye(3), atol=1e-9):
        pose["quat_wxyz"] = [round(float(x), 8) for x in item["pose"]["quat_wxyz"]]
    if "hull" in item:
        item["hull"] = {"points": [_rounded(point) for point in item["hull"]["points"]]}
    return item | {"pose": pose}


def _rounded(values: Any, digits: int = 4) -> list[float]:
    return [round(float(x), digits) + 0.0 for x in values]
