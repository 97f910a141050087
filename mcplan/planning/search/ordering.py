"""Places that seem unlikely to be of use, by numbers alone: what a search looks at after all others.

crossed     sign(d_y - d'_y) (p - p')_y < -CROSSING      y to the left of the guide; p, p' places of two feet, whose
                                                         nominal places d, d' lie beside each other
covered     the link, raised along the normal by half and by all of the height of a swing, is in something
beyond      |a| > |a'|, a a' > 0.8 |a| |a'|              a, a' from the nominal place to this one, and to one that was
                                                         out of reach from the same stance

How often the search came to the same supports in vain: what leads it out of a trap.

    cost = CROWDED * [stances reached and moves not proven on these supports, since one came nearer to the goal]

A stance that nothing leads on from has neighbours beyond number, all about as near to the goal: a hand's breadth along
the step, a toe turned. The way on leads over other supports, which look worse at first.

What a seed changes in a search: the order of candidates that are nearly as good, and where their lattices lie.

The search itself draws nothing: equal potentials are taken in the order in which they were queued. That is seed 0. Any
other seed adds a little noise to the potential of each candidate as it is queued, and shifts each patch's lattice of
places, both from a generator of its own: the same seed gives the same plan, another one may find another plan, or one
where the first found none.

Cells: places and contacts so near to each other that the search takes them for the same.

Patches beside each other on one support.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from mcplan.planning.search.candidates import Candidates
from mcplan.planning.search.node import Move, Node
from mcplan.planning.search.potential import mean_of
from mcplan.planning.search.space import SearchSpace
from mcplan.robot.anatomy import HRP2_SCALE, RobotScale
from mcplan.robot.pose import rotate_z
from mcplan.scene.contact import Contact

CROSSING = 0.02
"""m: a foot is on the far side of the other where it is so far beyond it; one may go before the other on a beam."""


def crossed(space: SearchSpace, node: Node, move: Move) -> bool:
    """Whether a foot would come to the far side of the one beside it: legs that cross are near their limits."""
    if not move.added or move.rolling:
        return False
    (patch, i), *_ = move.added
    sampled, feet, least = space.candidates[patch], space.robot.feet, space.robot.scale.leg * CROSSING
    if patch not in feet:
        return False
    _, yaw = space.guide.at(sampled.progress(i))
    left = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    for other in node.contacts:
        if other.patch not in feet or other.patch in move.removed:
            continue
        ahead, aside, _ = space.offsets[patch] - space.offsets[other.patch]
        if abs(ahead) < abs(aside) and np.sign(aside) * float(left @ (sampled.place[i] - other.p)) < -least:
            return True
    return False


def beyond_failure(space: SearchSpace, node: Node, move: Move) -> bool:
    """Whether a place lies beyond one that was out of reach."""
    failed = node.failed.get(move.limb)
    if not move.added or not failed:
        return False
    here, distance = away(space, node, move)
    return any(distance > limit + 1e-9 and here @ direction > 0.8 for direction, limit in failed)


def away(space: SearchSpace, node: Node, move: Move) -> tuple[np.ndarray, float]:
    """Return direction and distance of a place from the nominal one at the mean progress of the others."""
    patch, i = move.added[0]
    base, yaw = space.guide.at(mean_of([at.s for name, at in node.standing.items() if name not in move.removed]))
    way = space.candidates[patch].place[i] - base - rotate_z(yaw, space.offsets[patch])
    length = float(np.linalg.norm(way))
    return (way / length if length > 1e-9 else way), length


def covered(space: SearchSpace, move: Move) -> bool:
    """Whether a patch would come to where its link cannot come down along the normal: toes below the next step."""
    places = () if move.rolling else move.added
    contacts = (space.candidates[patch].contact(i) for patch, i in places)
    return any(contact is not None and space.prover.covered(contact) for contact in contacts)


NEARER = 0.05
"""Moves by which a stance has to be nearer to the goal than those before it on its supports, or it was in vain."""

CROWDED = 0.1
"""Moves that a candidate seems farther from the goal for each time that its supports were come to in vain."""

Supports = frozenset[tuple[str, str]]


class Crowds:
    """What one run of a search came to, by supports.

    Parameters
    ----------
    sampled : candidates by patch, which moves lead to.
    """

    def __init__(self, sampled: Mapping[str, Candidates]):
        self.sampled = sampled
        self._of: dict[Supports, tuple[float, int]] = {}

    def reached(self, node: Node) -> None:
        """Count a stance."""
        on = _supports(node)
        least, vain = self._of.get(on, (np.inf, 0))
        self._of[on] = (node.h, 0) if node.h < least - NEARER else (least, vain + 1)

    def failed(self, node: Node, move: Move) -> None:
        """Count a move of ``node`` to other supports that could not be proven."""
        on = self._after(node, move)
        if on != _supports(node):
            least, vain = self._of.get(on, (np.inf, 0))
            self._of[on] = (least, vain + 1)

    def cost(self, node: Node, move: Move) -> float:
        """Return by how many moves what a move of ``node`` leads to seems farther away."""
        return CROWDED * self._of.get(self._after(node, move), (np.inf, 0))[1]

    def _after(self, node: Node, move: Move) -> Supports:
        added = ((patch, str(self.sampled[patch].specs[i]["surface"])) for patch, i in move.added)
        return _supports(node, move.removed).union(added)


def _supports(node: Node, removed: Iterable[str] = ()) -> Supports:
    return frozenset((contact.patch, contact.support) for contact in node.contacts if contact.patch not in removed)


NOISE = 0.1
"""Moves: most that a candidate's potential is raised by. Less than what tells a step in the right direction from one in
place, more than what places beside each other differ by."""

SHIFT = 0.25
"""Part of its spacing by which a lattice is shifted at most, either way: places between the usual ones."""


class Reroll:
    """The draws of one planning.

    Parameters
    ----------
    seed : 0 draws nothing: no noise, no shift.
    """

    def __init__(self, seed: int = 0):
        self._rng = np.random.default_rng(seed) if seed else None

    def noise(self) -> float:
        """Return what the next candidate's potential is raised by (moves)."""
        return 0.0 if self._rng is None else NOISE * float(self._rng.random())

    def shift(self) -> np.ndarray:
        """Return by which part of its spacing (2,) the next lattice is shifted, along both axes of its support."""
        return np.zeros(2) if self._rng is None else self._rng.uniform(-SHIFT, SHIFT, 2)


CELL, TURN = 0.05, 0.1
"""m, rad: stances whose contacts round to the same are the same to the search."""


def cell_of(contact: Contact, hit: bool, size: float = 1.0) -> tuple:
    """Return the cell of a contact; ``hit``: whether it is the goal's."""
    return place_cell(contact.patch, {"surface": contact.support, **contact.coordinates}, hit, size)


def place_cell(patch: str, spec: dict, hit: bool, size: float = 1.0) -> tuple:
    """Return the cell of a place; contacts of the goal have one of their own, whatever is near."""
    width = size * CELL
    if "along" in spec:
        cell = (round(float(spec["along"]) / width), 0, 0)
    else:
        cell = (
            round(float(spec["x"]) / width), round(float(spec["y"]) / width), round(float(spec.get("yaw", 0.0)) / TURN)
        )  # fmt: skip
    return (patch, spec["surface"], hit, *cell)


GAP, SAME_LEVEL = 0.012, 0.08
"""m: soles beside each other on one support keep this distance; they are beside where they are about as high."""


def overlap(one: Contact, other: Contact, scale: RobotScale = HRP2_SCALE) -> bool:
    """Whether two flat patches on about the same level come closer than the gap; axes of both are tried."""
    if one.kind != "surface" or other.kind != "surface" or abs(one.normal @ (one.p - other.p)) > scale.leg * SAME_LEVEL:
        return False
    if one.normal @ other.normal < 0.7:
        return False
    a, b, gap = one.world_points, other.world_points, scale.sole * GAP
    for axis in (one.R[:, 0], one.R[:, 1], other.R[:, 0], other.R[:, 1]):
        u, v = a @ axis, b @ axis
        if u.min() - v.max() > gap or v.min() - u.max() > gap:
            return False
    return True
