"""Random mechanisms as ``Robot``: branching chains of hinges and slides, with and without armature."""

from types import MappingProxyType
from typing import Any

import numpy as np

from mcplan.robot.assemble import JointLimits
from mcplan.robot.robot import Robot
from tests.core.random_trees import build_tree, random_bodies, random_rotation


class Description:
    """What ``Robot`` reads of its file: the links."""

    def __init__(self, names):
        self.links = dict.fromkeys(names)


def random_robot(rng, joints: int, hinges_only: bool = False) -> Robot:
    """A robot whose links are link0 (the base), link1, ... and which has a frame off the last link, tool."""
    bodies = random_bodies(rng, joints)
    if hinges_only:
        for body in bodies[1:]:
            body.kind = "revolute"
    description: Any = Description([f"link{i}" for i in range(joints + 1)])
    frames = {f"link{i}": (i, _frame(np.eye(3), np.zeros(3))) for i in range(joints + 1)}
    frames["tool"] = (joints, _frame(random_rotation(rng), rng.normal(size=3)))
    limit = np.full(joints, 3.0)
    return Robot(
        name="random",
        tree=build_tree(bodies),
        description=description,
        joint_names=tuple(f"joint{i}" for i in range(1, joints + 1)),
        limits=JointLimits(-limit, limit, limit, limit),
        frames=MappingProxyType(frames),
    )


def _frame(R, p):
    offset = np.concatenate([R.ravel(), p])
    offset.flags.writeable = False
    return offset
