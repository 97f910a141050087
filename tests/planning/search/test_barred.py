"""Paths whose swings are barred are left for others."""

from itertools import pairwise

import numpy as np

from mcplan.planning import plan
from mcplan.planning.posture.violation import Violation
from mcplan.planning.posture.ways import Ways
from mcplan.scene.load import load_scenario

SHORT = {"parameters.distance": 0.7}


def steps(planned, patch):
    """Distances between the places of a patch, in order."""
    places = [stance.contact(patch).p for stance in planned.stances if patch in stance.patches]
    ways = [float(np.linalg.norm(after - before)) for before, after in pairwise(places)]
    return [way for way in ways if way > 0.0]


def bar(monkeypatch, longest):
    monkeypatch.setattr(
        Ways,
        "barred",
        lambda ways, swing: (Violation("passage", "a and b", 0.05),) if swing.length > longest else (),
    )


def test_a_path_is_looked_for_whose_swings_are_free(monkeypatch):
    before = plan(load_scenario("walk", SHORT))
    longest = max(steps(before, "left_sole"))
    bar(monkeypatch, longest - 0.01)
    other = plan(load_scenario("walk", SHORT))
    assert max(steps(other, "left_sole")) <= longest - 0.01


def test_where_all_are_barred_the_path_that_was_found_is_kept(monkeypatch):
    bar(monkeypatch, 0.0)
    planned = plan(load_scenario("walk", SHORT))
    assert steps(planned, "left_sole")


def test_free_paths_stay_as_they_are(monkeypatch):
    first = plan(load_scenario("walk", SHORT))
    bar(monkeypatch, np.inf)
    again = plan(load_scenario("walk", SHORT))
    for one, other in zip(first.stances, again.stances, strict=True):
        assert np.array_equal(one.q, other.q)
