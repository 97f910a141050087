"""Stances reached in vain make those on the same supports wait, and only those."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.planning.search.node import Move, Node
from mcplan.planning.search.ordering import CROWDED, NEARER, Crowds

SAMPLED = {patch: SimpleNamespace(specs=[{"surface": "floor"}, {"surface": "step"}]) for patch in ("left", "right")}


def stance(h, **supports):
    contacts = tuple(SimpleNamespace(patch=patch, support=support) for patch, support in supports.items())
    return Node(contacts, {}, np.zeros(1), None, None, (), 0.0, h, None, frozenset(), 0)


FEET = stance(5.0, left="floor", right="floor")
HERE, UP, LIFT = (
    Move("left", ("left",), (("left", 0),)),
    Move("left", ("left",), (("left", 1),)),
    Move("left", ("left",), ()),
)


def crowded(*potentials, move=HERE):
    crowds = Crowds(SAMPLED)
    for h in potentials:
        crowds.reached(stance(h, right="floor", left="floor"))
    return crowds.cost(FEET, move)


def test_stances_that_come_no_nearer_are_counted():
    assert crowded() == crowded(5.0) == 0.0
    assert crowded(5.0, 5.0, 6.0) == pytest.approx(2 * CROWDED)
    assert crowded(5.0, 5.0 - 0.9 * NEARER) == pytest.approx(CROWDED)


def test_one_that_comes_nearer_makes_room_again():
    assert crowded(5.0, 5.0, 6.0, 5.0 - 1.1 * NEARER) == 0.0


def test_moves_that_could_not_be_proven_count_where_they_would_have_led():
    crowds = Crowds(SAMPLED)
    for _ in range(3):
        crowds.failed(FEET, UP)
    assert crowds.cost(FEET, UP) == pytest.approx(3 * CROWDED)
    assert crowds.cost(FEET, HERE) == 0.0
    crowds.reached(stance(4.0, left="step", right="floor"))
    assert crowds.cost(FEET, UP) == 0.0


def test_other_supports_are_not_crowded():
    assert crowded(5.0, 5.0, 5.0, move=UP) == crowded(5.0, 5.0, 5.0, move=LIFT) == 0.0


def test_walking_ahead_costs_nothing():
    """On one floor every stance has the same supports; each step comes nearer."""
    assert crowded(*np.arange(9.0, 1.0, -0.5)) == 0.0
