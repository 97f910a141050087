"""Limb detection in a URDF: base axes, finger joints, branches of the tree, left and right by name."""

import re
from dataclasses import dataclass

import numpy as np

from mcplan.core.rigid_body.tree import MASS, PARENT
from mcplan.robot.anatomy import joint_of_body, links_of_bodies
from mcplan.robot.rerooted import Axis, direction
from mcplan.robot.robot import Robot

LIGHT_SHARE = 0.004
"""Share of the robot's mass; joints that move less mass (fingers, grippers, eyes) are locked."""


def _with_parts(side: str) -> list[str]:
    return [name for part in ("leg", "arm", "foot", "hand") for name in (side + part, part + side)]


LEFT_WORDS = frozenset(["l", "left", "lf", "lh", "fl", "rl", "hl", "bl", *_with_parts("l")])
RIGHT_WORDS = frozenset(["r", "right", "rf", "rh", "fr", "rr", "hr", "br", *_with_parts("r")])
FOOT_PATTERN = re.compile(r"foot|feet|sole|ankle|toe|shank|calf|shin")
HEAD_PATTERN = re.compile(r"head|neck|camera|gaze|eye|lidar|antenna|tail")
AXES: tuple[Axis, ...] = ("x", "-x", "y", "-y", "z", "-z")


@dataclass(frozen=True)
class Branch:
    """A chain of joints attached to the trunk.

    Parameters
    ----------
    bodies : bodies of the tree from the first that belongs to this chain only to its end.
    joints : indices of the joints that move these bodies.
    names : names of the links of these bodies, in lower case.
    """

    bodies: tuple[int, ...]
    joints: tuple[int, ...]
    names: str

    @property
    def end(self) -> int:
        """The last body."""
        return self.bodies[-1]


def light_joints(robot: Robot) -> list[str]:
    """Return joints, without parts of ball joints, that move less than ``LIGHT_SHARE`` of the robot's mass."""
    parent, mass = robot.tree.topology[:, PARENT], robot.tree.inertia[:, MASS].copy()
    for body in range(len(parent) - 1, 0, -1):
        mass[parent[body]] += mass[body]
    moved_mass: dict[int, float] = {}
    for body, joint in joint_of_body(robot).items():  # mimic joints are moved by their master
        moved_mass[joint] = max(moved_mass.get(joint, 0.0), mass[body])
    light = [
        robot.joint_names[joint] for joint, mass_above in moved_mass.items() if mass_above < LIGHT_SHARE * robot.mass
    ]
    return [joint for joint in light if robot.description.joints[joint].type != "ball"]


def branches(robot: Robot) -> list[Branch]:
    """Return the limbs: each end of the tree with its chain up to the last branching."""
    parent = robot.tree.topology[:, PARENT].tolist()
    ends = [body for body in range(len(parent)) if body not in parent]
    ends_below = np.zeros(len(parent), int)
    paths = []
    for end in ends:
        path = [end]
        while parent[path[-1]] >= 0:
            path.append(parent[path[-1]])
        paths.append(path[::-1])
        ends_below[path] += 1
    links, joints, limbs = links_of_bodies(robot), joint_of_body(robot), []
    for path in paths:
        limb_bodies = tuple(body for body in path if ends_below[body] == 1 and body > 0)
        if limb_bodies:
            names = " ".join(link.lower() for body in limb_bodies for link in links[body])
            limbs.append(Branch(limb_bodies, tuple(dict.fromkeys(joints[body] for body in limb_bodies)), names))
    return limbs


def side(names: str) -> int:
    """Return 1 for names of the left side, -1 for the right, 0 for neither."""
    words = re.split(r"[^a-z]+", names)
    left_count = sum(word in LEFT_WORDS or word.startswith("left") for word in words)
    right_count = sum(word in RIGHT_WORDS or word.startswith("right") for word in words)
    return int(np.sign(left_count - right_count))


def base_axes(robot: Robot) -> tuple[Axis, Axis]:
    """Return the axes of the root link that point forward and up, from the positions of feet and the names of sides."""
    q, limbs = robot.neutral(), branches(robot)
    position = {limb: robot.body_pose(q, limb.end)[:3, 3] for limb in limbs}
    feet = [limb for limb in limbs if FOOT_PATTERN.search(limb.names)]
    up: Axis = _nearest_axis(-np.mean([position[limb] for limb in feet], axis=0)) if feet else "z"
    left_ends = [position[limb] for limb in limbs if side(limb.names) > 0]
    right_ends = [position[limb] for limb in limbs if side(limb.names) < 0]
    if not left_ends or not right_ends:
        if len(feet) == 2 and up[-1] == "z":  # two equal legs along x: the robot faces along y
            x, y, _ = np.abs(position[feet[0]] - position[feet[1]])
            return ("y" if x > 2 * y else "x"), up
        return ("x" if up[-1] != "x" else "z"), up
    z = direction(up)
    y = np.mean(left_ends, axis=0) - np.mean(right_ends, axis=0)
    return _nearest_axis(np.cross(y - (y @ z) * z, z)), up


def _nearest_axis(vector: np.ndarray) -> Axis:
    return max(AXES, key=lambda axis: float(direction(axis) @ vector))
