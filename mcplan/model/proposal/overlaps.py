"""Links that overlap so often that their shapes must be larger than the links."""

import numpy as np

from mcplan.core.rigid_body.tree import hung_on
from mcplan.model.rest_overlap import overlaps
from mcplan.model.robot import Robot

SAMPLES, OFTEN, NEAR = 200, 0.5, 2
"""Random configurations; share of them in which links no more than so many joints apart may overlap."""


def often_overlapping(robot: Robot) -> dict[frozenset[str], float]:
    """Return the pairs of links around the same few joints that overlap in more than ``OFTEN`` of random postures."""
    random = np.random.default_rng(0)
    count: dict[frozenset[str], int] = {}
    for found in overlaps(robot, [robot.random_configuration(random) for _ in range(SAMPLES)]):
        for pair in found:
            count[pair] = count.get(pair, 0) + 1
    share = {pair: number / SAMPLES for pair, number in count.items()}
    return {pair: s for pair, s in share.items() if s > OFTEN and _joints_between(robot, pair) <= NEAR}


def _joints_between(robot: Robot, pair: frozenset[str]) -> int:
    """Return how many joints there are between two links."""
    parent = hung_on(robot.tree)
    paths = []
    for link in pair:
        path = [robot.frame(link)[0]]
        while path[-1] > 0:
            path.append(int(parent[path[-1]]))
        paths.append(path)
    common = set(paths[0]) & set(paths[1])
    return sum(len(set(path) - common) for path in paths)
