"""Places that seem unlikely to be of use, by numbers alone: what a search looks at after all others.

crossed     sign(d_y - d'_y) (p - p')_y < -CROSSING      y to the left of the guide; p, p' places of two feet, whose
                                                         nominal places d, d' lie beside each other
covered     the link, raised along the normal by half and by all of the height of a swing, is in something
"""

import numpy as np

from mcplan.planning.search.node import Move, Node
from mcplan.planning.search.space import SearchSpace

CROSSING = 0.02
"""m: a foot is on the far side of the other where it is so far beyond it; one may go before the other on a beam."""


def crossed(space: SearchSpace, node: Node, move: Move) -> bool:
    """Whether a foot would come to the far side of the one beside it: legs that cross are near their limits."""
    if not move.added or move.rolling:
        return False
    patch, i = move.added[0]
    sampled, feet, least = space.candidates[patch], space.robot.feet, space.robot.scale.leg * CROSSING
    _, yaw = space.guide.at(sampled.progress(i))
    left = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    for other in node.contacts:
        if patch not in feet or other.patch not in feet or other.patch in move.removed:
            continue
        ahead, aside, _ = space.offsets[patch] - space.offsets[other.patch]
        if abs(ahead) < abs(aside) and np.sign(aside) * float(left @ (sampled.place[i] - other.p)) < -least:
            return True
    return False


def covered(space: SearchSpace, move: Move) -> bool:
    """Whether a patch would come to where its link cannot come down along the normal: toes below the next step."""
    places = () if move.rolling else move.added
    contacts = (space.candidates[patch].contact(i) for patch, i in places)
    return any(contact is not None and space.prover.covered(contact) for contact in contacts)
