"""Names in a scenario file that cannot be read as a whole: what stands for a patch, a support, a posture, a link.

Where a mistake keeps a file from becoming a scenario, the names in the rest of it are looked at all the same, in the
plain values, so that one call of ``mcplan check`` says all that is wrong.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mcplan.document.document import Document
from mcplan.errors import Problem
from mcplan.util.arguments import unknown

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot

Key = tuple[str | int, ...]
Named = tuple[Key, str, str]
"""Where a name stands, what it is the name of, and the name."""


def name_problems(document: Document, robot: "Robot | None") -> list[Problem]:
    """Return the names that stand for nothing; of the robot's only where there is one."""
    data = document.data if isinstance(document.data, dict) else {}
    supports, problems = [], []
    seen: set[str] = set()
    for key, kind, name in _things(data):
        if name in seen:
            problems.append(document.problem((*key, "name"), f"`{name}` is named already"))
        seen.add(name)
        supports += [name] if kind == "surface or bar" else []
    environment = data.get("environment")
    known: dict[str, Iterable[str]] = {"surface or bar": supports}
    if not isinstance(environment, dict) or "mesh" in environment:  # nobody has looked what is in it
        known = {}
    if robot is not None:
        known |= {"patch": robot.patches, "posture": robot.postures, "link": robot.link_names}
        known |= {"joint": robot.joint_names, "link or patch": robot.frames}
    for key, kind, name in _names(data):
        if kind in known and name not in known[kind]:
            problems.append(document.problem(key, unknown(kind, name, known[kind])))
    return problems


def _things(data: dict[str, Any]) -> Iterator[Named]:
    """Yield everything in the environment that has a name."""
    for group in ("surfaces", "bars", "obstacles", "objects"):
        for key, item in _items(data, "environment", group):
            name = item.get("name")
            if isinstance(name, str):
                yield key, "surface or bar" if group in ("surfaces", "bars") else group, name
            for k, owned in enumerate(_list(item.get("surfaces"))):
                if isinstance(owned, dict) and isinstance(owned.get("name"), str):
                    yield (*key, "surfaces", k), "surface or bar", owned["name"]


def _names(data: dict[str, Any]) -> Iterator[Named]:
    """Yield every name that has to be known."""
    goal = data.get("goal")
    goals: list[tuple[Key, Any]] = [(("goal", k), item) for k, item in enumerate(_list(goal))]
    goals += [(("goal",), goal)] if isinstance(goal, dict) else []
    stances: list[tuple[Key, Any]] = [(("stances", k), item) for k, item in enumerate(_list(data.get("stances")))]
    for place, part in [(("start",), data.get("start")), *goals, *stances]:
        if not isinstance(part, dict):
            continue
        contacts: list[tuple[Key, Any]] = [
            ((*place, "contacts", k), item) for k, item in enumerate(_list(part.get("contacts")))
        ]
        for key, contact in [*contacts, ((*place, "add"), part.get("add"))]:
            if isinstance(contact, dict):
                yield from _texts((*key, "patch"), "patch", contact.get("patch"))
                yield from _texts((*key, "surface"), "surface or bar", contact.get("surface"))
        yield from _texts((*place, "remove"), "patch", part.get("remove"))
        posture = part.get("posture")
        yield from _texts((*place, "posture"), "posture", posture)
        if isinstance(posture, dict):
            yield from _texts((*place, "posture", "name"), "posture", posture.get("name"))
            joints = posture.get("joints")
            for joint in joints if isinstance(joints, dict) else ():
                yield (*place, "posture", "joints", joint), "joint", joint
    planner = data.get("planner")
    for k, name in enumerate(_list(planner.get("patches")) if isinstance(planner, dict) else ()):
        yield from _texts(("planner", "patches", k), "patch", name)
    for section, kind in (("pushes", "link or patch"), ("payloads", "link")):
        for key, item in _items(data, "simulation", section):
            yield from _texts((*key, "link"), kind, item.get("link"))


def _items(data: dict[str, Any], section: str, group: str) -> Iterator[tuple[Key, dict[str, Any]]]:
    part = data.get(section)
    for k, item in enumerate(_list(part.get(group)) if isinstance(part, dict) else ()):
        if isinstance(item, dict):
            yield (section, group, k), item


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(key: Key, kind: str, value: Any) -> Iterator[Named]:
    if isinstance(value, str):
        yield key, kind, value
