"""Steps of even length: what a search finds first takes long and short ones, and bows deeply for the long.

    s_k = s_a + (k - a) / (b - a) (s_b - s_a)      progress of the k-th contact between two of the goal's, a and b

in the order in which they are made. Every contact stays on its support, and the path is proven once more.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.planning.prover import OutOfCalls
from mcplan.planning.search.node import Move, Node
from mcplan.planning.search.shorten import move_of, proven, shorten
from mcplan.planning.search.stance_search import StanceSearch

ALIKE = 0.3
"""rad: places that are turned by no more against each other are alike."""

WORTH = 0.04
"""m, for a robot of the size of HRP-2: places nearer to the old one than this are no change."""

CALLS = 150
"""Calls of the posture generator that it may take."""


def even(search: StanceSearch, path: list[Node]) -> list[Node]:
    """Return the path without useless moves, its steps of even length."""
    return spread(search, shorten(search, path))


def spread(search: StanceSearch, path: list[Node]) -> list[Node]:
    """Return the path with contacts at even distances along the guide, or the same one where that cannot be proven."""
    moves = [move_of(node) for node in path[1:]]
    evened = _evened(search, path)
    if evened == moves:
        return path
    prover = search.space.prover
    prover.limit = prover.calls + CALLS
    try:
        found = proven(search, path[0], evened)
    except OutOfCalls:
        found = None
    return path if found is None or len(found) != len(path) else found


def _evened(search: StanceSearch, path: list[Node]) -> list[Move]:
    """Return the moves with places of the limbs that the goal asks for as even as their supports allow."""
    space, moves = search.space, [move_of(node) for node in path[1:]]
    wanted = {space.robot.patches[patch].limb for patch in space.goal.specs}
    first = [at.s for patch, at in path[0].standing.items() if space.robot.patches[patch].limb in wanted]
    steps = [k for k, move in enumerate(moves) if len(move.added) == 1 and not move.rolling and move.limb in wanted]
    if not first or not steps:
        return moves
    patches = [moves[k].added[0][0] for k in steps]
    stands = [path[k + 1].standing[patch] for k, patch in zip(steps, patches, strict=True)]
    s = even_steps(float(np.mean(first)), [at.s for at in stands], [at.hit for at in stands])
    for k, patch, at, target in zip(steps, patches, stands, s, strict=True):
        i = moves[k].added[0][1]
        j = _nearest(search, patch, i, at.s, target)  # i where the goal has it: no place is nearer to that
        if j != i:
            moves[k] = Move(moves[k].limb, moves[k].removed, ((patch, j),))
    return moves


def even_steps(start: float, s: Sequence[float], fixed: Sequence[bool]) -> list[float]:
    """Return progress (m) that goes in even steps from one fixed contact to the next; behind the last one it stays."""
    known = [0, *(k for k, stays in enumerate(fixed, start=1) if stays)]
    all_s = np.array([start, *s])
    inside = np.arange(1, known[-1] + 1)
    all_s[inside] = np.interp(inside, known, all_s[known])
    return [float(value) for value in all_s[1:]]


def _nearest(search: StanceSearch, patch: str, i: int, s: float, target: float) -> int:
    """Return the place on the support of place i that lies nearest to a progress, as far aside, and turned alike."""
    space = search.space
    sampled = space.candidates[patch]
    support, yaw = sampled.specs[i]["surface"], sampled.specs[i].get("yaw", 0.0)
    like = [spec["surface"] == support and abs(spec.get("yaw", 0.0) - yaw) < ALIKE for spec in sampled.specs]
    progress = np.array([sampled.progress(j) for j in range(len(sampled.specs))])
    off = np.abs(progress - target) + np.abs(sampled.aside - sampled.aside[i])
    off[~np.array(like) | sampled.goal] = np.inf
    j = int(np.argmin(off))
    return j if off[j] < abs(s - target) - space.robot.scale.leg * WORTH else i
