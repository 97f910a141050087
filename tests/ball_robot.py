"""HRP-2 with ball joints at hips and shoulders, in the place of three hinges that meet in a point."""

from pathlib import Path
from xml.etree import ElementTree

import yaml
from scipy.spatial.transform import Rotation

import mcplan as mc

HINGES = {"LEG": "ZXY", "ARM": "YXZ"}
"""Axes of the hinges of a limb, from the trunk outwards."""


def write_ball_robot(directory: Path) -> Path:
    """Write URDF and robot.yaml; return the latter. The links between the hinges move with the one beyond them."""
    robot = mc.load_robot("hrp2")
    data = yaml.safe_load(robot.path.read_text())
    tree = ElementTree.parse(robot.urdf_path)
    joints = {joint.get("name"): joint for joint in tree.getroot().findall("joint")}
    for limb in (side + kind for side in "RL" for kind in HINGES):
        names, axes = [f"{limb}_JOINT{k}" for k in range(3)], HINGES[limb[1:]]
        of_axis = [robot.description.joints[names[axes.index(axis)]] for axis in "XYZ"]
        for name in names:
            for tag in ("axis", "limit", "dynamics"):
                for element in joints[name].findall(tag):
                    joints[name].remove(element)
            joints[name].set("type", "fixed")
            data["armature"].pop(name)
        joints[names[0]].set("type", "ball")
        kinds = {"lower": "lower", "upper": "upper", "velocity": "velocity", "effort": "effort"}
        limits = {key: " ".join(str(getattr(joint, value)) for joint in of_axis) for key, value in kinds.items()}
        ElementTree.SubElement(joints[names[0]], "limit", limits)
        for posture in data["postures"].values():
            angles = [posture["joints"].pop(name, 0.0) for name in names]
            turn = Rotation.from_euler(axes, angles).as_rotvec()
            posture["joints"] |= {f"{names[0]}_{axis}": float(x) for axis, x in zip("xyz", turn, strict=True)}
    tree.write(directory / "balls.urdf")
    data |= {"name": "hrp2_balls", "urdf": "balls.urdf"}
    path = directory / "robot.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path
