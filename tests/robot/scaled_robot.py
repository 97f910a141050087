"""A robot and a scene, and the same so many times as large, which moves alike under gravity.

Lengths grow with the scale s, masses with s^3, inertias with s^5, torques and moments with s^4, so that
a joint bears the same share of its limit; forces with s^3, times with the root of s, rates of joints with its inverse.
"""

import copy
from pathlib import Path
from xml.etree import ElementTree

import yaml

from mcplan.robot.robot import Robot
from mcplan.scenario.scenario import Scenario

LENGTHS = {"xyz", "size", "polygon", "thickness", "x", "y", "along", "offset", "radius", "ends", "tolerance", "step"}
"""Keys of scenarios and robot files whose values are lengths."""


def times(value, factor):
    """Return numbers, or lists of them, times a factor."""
    return [times(item, factor) for item in value] if isinstance(value, list) else value * factor


def lengths_scaled(data, s):
    """Return a document in which all lengths are ``s`` times as large."""
    if isinstance(data, dict):
        return {
            key: times(value, s) if key in LENGTHS and not isinstance(value, bool) else lengths_scaled(value, s)
            for key, value in data.items()
        }
    return [lengths_scaled(item, s) for item in data] if isinstance(data, list) else data


def scaled_robot(robot: Robot, folder: Path, s: float) -> Path:
    """Write the URDF and the robot.yaml of a robot ``s`` times as large; return the latter."""
    root = ElementTree.parse(robot.urdf_path).getroot()

    def scale(element, name, power):
        if element.get(name) is not None:
            element.set(name, " ".join(repr(float(number) * s**power) for number in element.get(name).split()))

    for element in root.iter():
        if element.tag == "origin":
            scale(element, "xyz", 1)
        elif element.tag == "mass":
            scale(element, "value", 3)
        elif element.tag == "inertia":
            for name in list(element.attrib):
                scale(element, name, 5)
        elif element.tag == "limit":
            scale(element, "effort", 4)
            scale(element, "velocity", -0.5)
        elif element.tag in ("box", "cylinder", "sphere"):
            for name in list(element.attrib):
                scale(element, name, 1)
        elif element.tag == "mesh":
            element.set("scale", " ".join(repr(float(k) * s) for k in element.get("scale", "1 1 1").split()))
    (folder / "robot.urdf").write_bytes(ElementTree.tostring(root))
    data = lengths_scaled(yaml.safe_load(robot.path.read_text()), s) | {"urdf": "robot.urdf", "name": "scaled"}
    data["armature"] = {joint: value * s**5 for joint, value in data.get("armature", {}).items()}
    for patch in data["patches"].values():
        for name, power in (("max_force", 3), ("max_moment", 4)):
            if name in patch:
                patch[name] *= s**power
    path = folder / "robot.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def scaled_scenario(scenario: Scenario, path: Path, s: float) -> dict:
    """Return the document of a scenario ``s`` times as large, for the robot at ``path``."""
    data = copy.deepcopy(scenario.data())
    for surface in data["environment"].get("surfaces", []):
        surface.setdefault("thickness", 0.05)
    return lengths_scaled(data, s) | {"robot": str(path)}
