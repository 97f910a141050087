"""The shapes of a robot's links as solids in its bodies, and the pairs of them that a joint or more keeps apart."""

from collections.abc import Iterable

import numpy as np

from mcplan.core.distance.many import Scratch
from mcplan.core.distance.shape import scratch
from mcplan.core.rigid_body.tree import hung_on, workspace
from mcplan.model.geometry import Geometry
from mcplan.model.robot import Robot
from mcplan.model.solid import Solid, solid


def link_solids(robot: Robot) -> tuple[list[str], list[Solid], list[int]]:
    """Return the shapes of all links that collide: link, shape in the body's frame, body."""
    links, solids, bodies = [], [], []
    for link, geometries in robot.geometry.items():
        body, offset = robot.frame(link)
        own = solids_of(geometries, offset)
        links += [link] * len(own)
        bodies += [body] * len(own)
        solids += own
    return links, solids, bodies


def solids_of(geometries: Iterable[Geometry], offset: np.ndarray) -> list[Solid]:
    """Return those of a link's shapes that collide, in the frame of its body, where the link is at ``offset`` (12,)."""
    R, p = offset[:9].reshape(3, 3), offset[9:]
    return [solid(g.shape, R @ g.R, R @ g.p + p) for g in geometries if g.role != "visual"]


def candidate_pairs(robot: Robot) -> np.ndarray:
    """Return pairs (P,2) of the shapes of ``link_solids`` on links that a joint or more than one keeps apart.

    Left out are links of one body, links that one joint connects (fixed and locked joints do not count as joints), and
    the pairs that the robot ignores.
    """
    links, _, bodies = link_solids(robot)
    parent = hung_on(robot.tree)
    found = []
    for i in range(len(links)):
        for j in range(i + 1, len(links)):
            a, b = bodies[i], bodies[j]
            if a == b or parent[a] == b or parent[b] == a or frozenset((links[i], links[j])) in robot.collision_ignore:
                continue
            found.append((i, j))
    return np.array(found, np.int64).reshape(-1, 2)


def new_scratch(robot: Robot, shapes: int, pairs: int) -> Scratch:
    """Allocate the scratch space for a robot and numbers of shapes and pairs."""
    return Scratch(workspace(robot.tree), np.zeros((shapes, 12)), np.zeros(pairs), scratch())
