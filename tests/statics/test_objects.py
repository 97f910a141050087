"""A robot that leans on a free box: the box gives way where it slides or tips, whatever the hand could bear."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.scene.contact import Carrier
from mcplan.statics.contact_forces import ForceUnknowns, moments_about
from mcplan.statics.equilibrium import equilibrium_margin
from mcplan.statics.feasibility import can_balance
from mcplan.statics.static_program import StaticProgram
from mcplan.statics.support_region import support_region
from tests.statics.contacts import grasp_contact, surface_contact

GRAVITY = 9.81
MASS, BOX = 50.0, 20.0
COM = np.array([0.0, 0.0, 0.8])


def box(depth, friction, face=0.5):
    """A box on the floor, from ``face`` on ahead of the robot."""
    middle = np.array([face + depth / 2, 0.0, 0.0])
    rest = surface_contact("box", middle, half=(depth / 2, 0.3), friction=friction)
    return Carrier("box", BOX, middle + np.array([0.0, 0.0, 0.5]), rest)


def stance(carrier, height, hand_friction=0.0):
    """Feet on a floor without friction, and a hand on the box's near face."""
    feet = surface_contact("feet", [0.0, 0.0, 0.0], half=(2.0, 2.0), friction=0.0)
    hand = surface_contact("hand", [0.5, 0.0, height], (-1.0, 0.0, 0.0), friction=hand_friction, kind="point")
    return [feet, replace(hand, carrier=carrier)]


def largest_push(contacts):
    """Largest push (N) forwards at the centre of mass that is balanced."""
    weight = MASS * GRAVITY
    forces = ForceUnknowns(contacts, unit=weight)
    push = np.array([[-1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]).T
    rhs = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    program = StaticProgram(forces, moments_about(forces.map, COM) / weight, -push, rhs, True)
    return -program.minimise(np.array([-1.0])).value * weight


@pytest.mark.parametrize(
    ("depth", "friction", "height", "most"),
    [
        (1.0, 0.4, 0.8, 0.4 * BOX * GRAVITY),  # slides
        (0.4, 0.7, 0.9, BOX * GRAVITY * 0.2 / 0.9),  # tips about its far edge
        (0.4, 0.0, 0.9, 0.0),
    ],
)
def test_the_box_holds_a_push_until_it_slides_or_tips(depth, friction, height, most):
    assert largest_push(stance(box(depth, friction), height)) == pytest.approx(most, rel=1e-6, abs=1e-6)


def test_two_hands_share_what_the_box_holds():
    carrier = box(1.0, 0.4)
    feet, hand = stance(carrier, 0.8)
    left, right = (
        replace(hand, patch=name, p=hand.p + np.array([0.0, y, 0.0])) for name, y in (("left", 0.2), ("right", -0.2))
    )
    assert largest_push([feet, left, right]) == pytest.approx(0.4 * BOX * GRAVITY, rel=1e-6)


def test_caution_covers_what_the_box_stands_on():
    assert largest_push([c.with_margin(0.5) for c in stance(box(1.0, 0.4), 0.8)]) == pytest.approx(
        0.2 * BOX * GRAVITY, rel=1e-6
    )


def test_a_box_carries_less_of_a_leaning_robot_than_a_wall():
    feet = surface_contact("feet", [0.0, 0.0, 0.0], half=(0.1, 0.1), friction=0.7)
    hand = surface_contact("hand", [0.5, 0.0, 0.8], (-1.0, 0.0, 0.0), friction=0.0, kind="point")
    on_box = replace(hand, carrier=box(1.0, 0.4))
    wall, light = (support_region([feet, c], MASS, exact=True) for c in (hand, on_box))
    lean = 0.1 + 0.4 * BOX * 0.8 / MASS  # from the toes, by the moment of what the box holds at 0.8 m
    assert light.vertices[:, 0].max() == pytest.approx(lean, abs=2e-3)
    assert wall.vertices[:, 0].max() > lean + 0.1
    place = np.array([lean + 0.1, 0.0, 0.8])
    assert can_balance(place, [feet, hand], MASS)
    assert not can_balance(place, [feet, on_box], MASS)


@pytest.mark.parametrize("sole", ["surface", "grasp"])
def test_who_stands_on_a_box_adds_his_weight_to_what_is_below_it(sole):
    """The floor under the box bears box and robot: with a little less than that there is no equilibrium."""
    both = (MASS + BOX) * GRAVITY
    place = np.array([1.0, 0.0, 1.0])
    if sole == "surface":
        on_top = surface_contact("feet", place)
    else:
        on_top = grasp_contact("grip", place, max_force=2.0 * both, max_moment=50.0)
    for strength, holds in ((0.99, False), (1.01, True)):
        carrier = box(1.0, 0.5)
        carrier = replace(carrier, rest=replace(carrier.rest, max_force=strength * both))
        assert can_balance(np.array([1.0, 0.0, 1.8]), [replace(on_top, carrier=carrier)], MASS) == holds


HELD, AHEAD = 5.0, 0.4
"""kg; m: a box in the air, and how far ahead of the feet it is."""


def holding(friction=0.7):
    """Feet, and two hands that press on the sides of a box in the air."""
    carrier = Carrier("box", HELD, np.array([AHEAD, 0.0, 0.9]), None)
    hands = [
        replace(
            surface_contact(name, [AHEAD, y, 0.9], (0.0, np.sign(y), 0.0), half=(0.02, 0.02), friction=friction),
            carrier=carrier,
        )
        for name, y in (("left", 0.17), ("right", -0.17))
    ]
    return [surface_contact("feet", [0.0, 0.0, 0.0], half=(0.1, 0.1)), *hands]


def test_who_holds_a_box_in_the_air_stands_where_the_two_together_balance():
    """``M x + m a`` over ``M + m`` lies between heels and toes."""
    region = support_region(holding(), MASS, exact=True)
    total = MASS + HELD
    ends = [(edge * total - HELD * AHEAD) / MASS for edge in (-0.1, 0.1)]
    assert [region.vertices[:, 0].min(), region.vertices[:, 0].max()] == pytest.approx(ends, abs=2e-3)


def test_a_box_in_the_air_is_held_by_two_hands_and_not_by_one():
    feet, left, right = holding()
    com = np.array([0.0, 0.0, 0.8])
    assert can_balance(com, [feet, left, right], MASS)
    assert not can_balance(com, [feet, left], MASS)
    bounded = [replace(hand, max_force=0.5 * HELD * GRAVITY / 0.7) for hand in (left, right)]
    for share, holds in ((1.01, True), (0.99, False)):  # half the weight each, by friction on what presses
        hands = [replace(hand, max_force=share * hand.max_force) for hand in bounded]
        assert can_balance(com, [feet, *hands], MASS, exact=True) == holds


@pytest.mark.parametrize("mass", [5.0, BOX])
def test_an_object_in_the_air_that_nothing_holds_lacks_its_weight(mass):
    """One hand cannot squeeze it, two can."""
    carrier = Carrier("box", mass, np.array([0.6, 0.0, 0.8]), None)
    feet = surface_contact("feet", [0.0, 0.0, 0.0], half=(0.5, 0.5), friction=0.8)
    near, far = (
        replace(surface_contact(f"hand{x}", [x, 0.0, 0.8], (normal, 0.0, 0.0), friction=0.8), carrier=carrier)
        for x, normal in ((0.5, -1.0), (0.7, 1.0))
    )
    assert equilibrium_margin(COM, [feet, near], MASS) == pytest.approx(-mass * GRAVITY)
    assert equilibrium_margin(COM, [feet, far], MASS) == pytest.approx(-mass * GRAVITY)
    assert equilibrium_margin(COM, [feet, near, far], MASS) > 0.0
