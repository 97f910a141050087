"""A URDF as its format has it: ball and universal joints written as the hinges that they are where all are at zero.

URDF knows neither, and no other reader would take the file. Where all joints are at zero a ball joint is three hinges
about x, y and z, with links without mass between them, in mass, places, axes and limits alike.
"""

import copy
from xml.etree import ElementTree

PARTS = {"ball": ("x", "y", "z"), "spherical": ("x", "y", "z"), "universal": ("1", "2")}
AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}


def with_hinges(urdf: str) -> str:
    """Return the text with every joint of several coordinates as so many hinges; another text as it is.

    Raises
    ------
    ValueError
        The text is no XML.
    """
    if not any(f'"{kind}"' in urdf for kind in PARTS):
        return urdf
    try:
        robot = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None
    for joint in robot.findall("joint"):
        names = PARTS.get(joint.get("type", ""))
        if names is not None:
            robot.remove(joint)
            _split(robot, joint, names)
    return ElementTree.tostring(robot, encoding="unicode")


def _split(robot: ElementTree.Element, joint: ElementTree.Element, names: tuple[str, ...]) -> None:
    """Append the hinges of a joint, and the links between them."""
    name = joint.get("name", "")
    parent, child = (element.get("link", "") for tag in ("parent", "child") for element in joint.findall(tag)[:1])
    limit = joint.find("limit")
    limits = {"lower": "-3.141592653589793", "upper": "3.141592653589793", "velocity": "1e300", "effort": "1e300"}
    if limit is not None:
        limits.update(limit.attrib)
    axes = [AXES.get(part) or _axis(joint, "axis" if part == "1" else "axis2") for part in names]
    for k, (part, axis) in enumerate(zip(names, axes, strict=True)):
        hinge = ElementTree.SubElement(robot, "joint", name=f"{name}_{part}", type="revolute")
        if k == 0:
            hinge.extend(copy.copy(origin) for origin in joint.findall("origin"))
        below = child if k == len(names) - 1 else f"{name}_{part}_link"
        if below != child:
            ElementTree.SubElement(robot, "link", name=below)
        ElementTree.SubElement(hinge, "parent", link=parent)
        ElementTree.SubElement(hinge, "child", link=below)
        ElementTree.SubElement(hinge, "axis", xyz=axis)
        each = {key: (value.split() * len(names))[k] for key, value in limits.items()}
        ElementTree.SubElement(hinge, "limit", each)
        parent = below


def _axis(joint: ElementTree.Element, tag: str) -> str:
    element = joint.find(tag)
    return "1 0 0" if element is None else element.get("xyz", "1 0 0")
