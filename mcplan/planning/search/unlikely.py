"""Places that seem unlikely to be of use, by numbers alone: what a search looks at after all others.

crossed     sign(d_y - d'_y) (p - p')_y < -CROSSING      y to the left of the guide; p, p' places of two feet, whose
                                                         nominal places d, d' lie beside each other
covered     the link, raised along the normal by half and by all of the height of a swing, is in something
beyond      |a| > |a'|, a a' > 0.8 |a| |a'|              a, a' from the nominal place to this one, and to one that was
                                                         out of reach from the same stance
"""

import numpy as np

from mcplan.planning.search.node import Move, Node
from mcplan.planning.search.potential import mean_of
from mcplan.planning.search.space import SearchSpace

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
    c, n = np.cos(yaw), np.sin(yaw)
    d = space.offsets[patch]
    way = space.candidates[patch].place[i] - base - np.array([c * d[0] - n * d[1], n * d[0] + c * d[1], d[2]])
    length = float(np.linalg.norm(way))
    return (way / length if length > 1e-9 else way), length


def covered(space: SearchSpace, move: Move) -> bool:
    """Whether a patch would come to where its link cannot come down along the normal: toes below the next step."""
    places = () if move.rolling else move.added
    contacts = (space.candidates[patch].contact(i) for patch, i in places)
    return any(contact is not None and space.prover.covered(contact) for contact in contacts)
