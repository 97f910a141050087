"""Import of pymanoid stances: contacts with their frames, and a centre of mass.

{"com": {"pos": [0, 0, 0.9], "mass": 62.0},
"left_foot": {"shape": [0.12, 0.065], "friction": 0.5, "pos": [0.2, 0.15, 0.1], "rpy": [0.4, 0, 0]}, ...}
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcplan.contrib.contact_frame import ContactFrame, number, numbers, pose_of, surfaces_for
from mcplan.errors import InputError, Problem
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.placement import make_contact
from mcplan.util.arguments import check_instance, describe, file_path
from mcplan.util.text import summary

PATCHES = {
    "left_foot": "left_sole", "right_foot": "right_sole", "left_hand": "left_hand", "right_hand": "right_hand",
}  # fmt: skip
"""Default patch of each limb, by pymanoid's name of the limb."""


@dataclass(frozen=True, eq=False)
class ImportedStance:
    """An imported stance for a robot of mcplan.

    Parameters
    ----------
    environment : environment with one surface for each plane of contacts.
    contacts : contacts on these surfaces.
    com : (3,) centre of mass in the file, m; None without one.
    mass : mass of the robot in the file, kg; None without one.
    """

    environment: Environment
    contacts: tuple[Contact, ...]
    com: np.ndarray | None
    mass: float | None

    __repr__ = summary


def read_pymanoid_stance(
    path: str | os.PathLike[str], robot: Robot, patches: Mapping[str, str] | None = None
) -> ImportedStance:
    """Read a stance from pymanoid's JSON.

    Parameters
    ----------
    path : the JSON file.
    robot : robot whose patches make the contacts; positions are not scaled to its size.
    patches : patch by pymanoid's name of the contact; these override `PATCHES`.

    Raises
    ------
    InputError
        The file is missing or not JSON, a contact has no frame or friction, or a name is not assigned to a patch.
    """
    file, robot = file_path("read_pymanoid_stance", path), check_instance("read_pymanoid_stance", "robot", robot, Robot)
    names = PATCHES | dict(patches or {})
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(Problem(str(file), None, "", f"cannot be read: {error.strerror}")) from None
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(str(file), getattr(error, "lineno", None), "", f"is not JSON: {error}")) from None
    if not isinstance(data, dict) or not set(data) - {"com"}:
        raise InputError(Problem(str(file), None, "", "expected contacts by name: left_foot, right_foot, ..."))
    frames: list[ContactFrame] = []
    problems: list[Problem] = []

    def add_problem(key: str, message: str) -> None:
        problems.append(Problem(str(file), None, key, message))

    for name, item in data.items():
        if name == "com":
            continue
        if not isinstance(item, dict) or not {"pos", "friction"} <= set(item):
            add_problem(name, f"expected pos, rpy and friction, not {describe(item)}")
            continue
        pose, friction = pose_of(item["pos"], item.get("rpy", (0.0, 0.0, 0.0))), number(item["friction"], 0.0)
        if pose is None:
            values = " and ".join(f"{key}: {describe(item[key])}" for key in ("pos", "rpy") if key in item)
            add_problem(name, f"expected three numbers each, pos: [x, y, z] and rpy: [roll, pitch, yaw], not {values}")
        if friction is None:
            add_problem(f"{name}.friction", f"expected a number from 0 on, not {describe(item['friction'])}")
        if name not in names:
            add_problem(name, f"is not assigned to a patch; assign one: patches={{{name!r}: ...}}")
        elif pose is not None and friction is not None:
            frames.append(ContactFrame(names[name], *pose, friction))
    com = data.get("com") or {}
    position = mass = None
    if isinstance(com, dict):
        position, mass = numbers(com.get("pos"), 3), number(com.get("mass"), 0.0)
        if position is None and "pos" in com:
            add_problem("com.pos", f"expected three numbers, not {describe(com['pos'])}")
        if mass is None and "mass" in com:
            add_problem("com.mass", f"expected a number from 0 on, in kg, not {describe(com['mass'])}")
    else:
        add_problem("com", f"expected pos and mass, not {describe(com)}")
    if problems:
        raise InputError(*problems)
    surfaces, specs = surfaces_for(frames, robot)
    environment = Environment(surfaces)
    contacts = tuple(make_contact(robot, environment, spec) for spec in specs)
    return ImportedStance(environment, contacts, position, mass)
