"""Support regions are kept by all that they depend on."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.planning.posture.support_cache import ContactRegions
from mcplan.scene.contact import Carrier
from tests.statics.contacts import surface_contact

COM, MASS = np.array([0.0, 0.0, 0.8]), 60.0
FEET = tuple(surface_contact(f"foot{y}", (0.0, y, 0.0), friction=0.6, max_force=900.0) for y in (0.1, -0.1))
BOX = Carrier("box", 20.0, np.array([0.5, 0.0, 0.3]), surface_contact("box", (0.5, 0.0, 0.0), half=(0.2, 0.2)))
HAND = replace(surface_contact("hand", (0.3, 0.1, 0.5), (-1.0, 0.0, 0.0), half=(0.03, 0.03)), carrier=BOX)

CHANGES = {
    "place": lambda hand: replace(hand, p=hand.p + 0.05 * np.eye(3)[1]),
    "friction": lambda hand: replace(hand, friction=0.2),
    "largest force": lambda hand: replace(hand, max_force=10.0),
    "size": lambda hand: replace(hand, points=3.0 * hand.points),
    "no object": lambda hand: replace(hand, carrier=None),
    "mass of the object": lambda hand: replace(hand, carrier=replace(BOX, mass=80.0)),
    "place of the object": lambda hand: replace(hand, carrier=replace(BOX, com=BOX.com + 0.1 * np.eye(3)[0])),
    "nothing below the object": lambda hand: replace(hand, carrier=replace(BOX, rest=None)),
    "friction below the object": lambda hand: replace(hand, carrier=replace(BOX, rest=replace(BOX.rest, friction=0.1))),
}


def areas(regions, hand):
    """What a region spans along many directions, or why there is none."""
    found = regions.support((*FEET, hand), COM)
    if found.violation is not None:
        return found.violation
    return tuple(np.round(np.concatenate([found.region.A.ravel(), found.rows.ravel()]), 9))


@pytest.mark.parametrize("name", CHANGES)
def test_a_region_is_that_of_the_contacts_asked_about_whatever_was_asked_before(name):
    regions, changed = ContactRegions(MASS, 0.01, 0.03), CHANGES[name](HAND)
    before = areas(regions, HAND)
    after = areas(regions, changed)
    assert after == areas(ContactRegions(MASS, 0.01, 0.03), changed)
    assert after != before
    assert areas(regions, HAND) == before
