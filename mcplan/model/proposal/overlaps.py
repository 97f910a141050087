"""Links that overlap: in one posture, or so often that their shapes must be larger than the links."""

import numpy as np

from mcplan.core.distance.many import fill_distances
from mcplan.core.distance.pair import DISTANCE, PAIR_SIZE
from mcplan.core.rigid_body.tree import PARENT
from mcplan.model.link_solids import candidate_pairs, link_solids, new_scratch
from mcplan.model.robot import Robot
from mcplan.model.solid import frozen, pack

SAMPLES, OFTEN, NEAR = 200, 0.5, 2
"""Random configurations; share of them in which links no more than so many joints apart may overlap."""


def overlaps(robot: Robot, q: np.ndarray) -> dict[frozenset[str], float]:
    """Return the pairs of links that overlap at ``q`` (nq,) and how deep (m), of those that could."""
    return _many(robot, [q])[0]


def often_overlapping(robot: Robot) -> dict[frozenset[str], float]:
    """Return the pairs of links around the same few joints that overlap in more than ``OFTEN`` of random postures."""
    random = np.random.default_rng(0)
    count: dict[frozenset[str], int] = {}
    for found in _many(robot, [robot.random_configuration(random) for _ in range(SAMPLES)]):
        for pair in found:
            count[pair] = count.get(pair, 0) + 1
    share = {pair: number / SAMPLES for pair, number in count.items()}
    return {pair: s for pair, s in share.items() if s > OFTEN and _joints_between(robot, pair) <= NEAR}


def _many(robot: Robot, postures: list[np.ndarray]) -> list[dict[frozenset[str], float]]:
    links, solids, bodies = link_solids(robot)
    pairs = candidate_pairs(robot)
    if not len(pairs):
        return [{} for _ in postures]
    shapes, space = pack(solids, bodies), new_scratch(robot, len(solids), len(pairs))
    margins, found, values = np.zeros(len(pairs)), np.zeros(len(pairs), np.int64), np.zeros((len(pairs), PAIR_SIZE))
    answer = []
    for q in postures:
        count = fill_distances(robot.tree, shapes, frozen(pairs), margins, q, space, found, values)
        deep: dict[frozenset[str], float] = {}
        for p, distance in zip(found[:count].tolist(), values[:count, DISTANCE].tolist(), strict=True):
            if distance < 0:
                pair = frozenset(links[i] for i in pairs[p])
                deep[pair] = max(deep.get(pair, 0.0), -distance)
        answer.append(deep)
    return answer


def _joints_between(robot: Robot, pair: frozenset[str]) -> int:
    """Return how many joints there are between two links."""
    parent = robot.tree.topology[:, PARENT]
    paths = []
    for link in pair:
        path = [robot.frame(link)[0]]
        while path[-1] > 0:
            path.append(int(parent[path[-1]]))
        paths.append(path)
    common = set(paths[0]) & set(paths[1])
    return sum(len(set(path) - common) for path in paths)
