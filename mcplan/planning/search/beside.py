"""Patches beside each other on one support."""

from mcplan.model.scale import ONE, RobotScale
from mcplan.scene.contact import Contact

GAP, SAME_LEVEL = 0.012, 0.08
"""m: soles beside each other on one support keep this distance; they are beside where they are about as high."""


def overlap(one: Contact, other: Contact, scale: RobotScale = ONE) -> bool:
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
