"""Import of pymanoid stances: contacts with their frames, and a centre of mass.

{"com": {"pos": [0, 0, 0.9], "mass": 62.0},
"left_foot": {"shape": [0.12, 0.065], "friction": 0.5, "pos": [0.2, 0.15, 0.1], "rpy": [0.4, 0, 0]}, ...}
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcplan.contrib.place import ContactFrame, number, numbers, pose_of, surfaces_for
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
"""Default patch by pymanoid's name of a limb."""


@dataclass(frozen=True, eq=False)
class ImportedStance:
    """An imported stance for a robot of mcplan.

    Parameters
    ----------
    environment : a surface for each plane of contacts.
    contacts : on them.
    com : (3,) centre of mass there, m, or None.
    mass : of the other robot, kg, or None.
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
    path : of the file.
    robot : its patches replace pymanoid's contacts; postures are not adapted to its size.
    patches : from pymanoid's names of contacts to patches; `PATCHES` by default.

    Raises
    ------
    InputError
        The file is missing or not JSON, a contact has no frame or friction, or a name is not assigned to a patch.
    """
    place = file_path("read_pymanoid_stance", path)
    check_instance("read_pymanoid_stance", "robot", robot, Robot)
    names = PATCHES | dict(patches or {})
    try:
        data = json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(Problem(str(place), None, "", f"cannot be read: {error.strerror}")) from None
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(str(place), getattr(error, "lineno", None), "", f"is not JSON: {error}")) from None
    if not isinstance(data, dict) or not set(data) - {"com"}:
        raise InputError(Problem(str(place), None, "", "expected contacts by name: left_foot, right_foot, ..."))
    places: list[ContactFrame] = []
    problems: list[Problem] = []

    def add_problem(key: str, message: str) -> None:
        problems.append(Problem(str(place), None, key, message))

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
            places.append(ContactFrame(names[name], *pose, friction))
    com = data.get("com") or {}
    at = mass = None
    if isinstance(com, dict):
        at, mass = numbers(com.get("pos"), 3), number(com.get("mass"), 0.0)
        if at is None and "pos" in com:
            add_problem("com.pos", f"expected three numbers, not {describe(com['pos'])}")
        if mass is None and "mass" in com:
            add_problem("com.mass", f"expected a number from 0 on, in kg, not {describe(com['mass'])}")
    else:
        add_problem("com", f"expected pos and mass, not {describe(com)}")
    if problems:
        raise InputError(*problems)
    surfaces, specs = surfaces_for(places, robot)
    environment = Environment(surfaces)
    contacts = tuple(make_contact(robot, environment, each) for each in specs)
    return ImportedStance(environment, contacts, at, mass)
