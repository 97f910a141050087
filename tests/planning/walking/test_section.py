"""Which stances are a walk."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.planning.walking.gait import WalkSection, walk_sections
from tests import shared


@pytest.fixture(scope="module")
def stances():
    """HRP-2 walks a metre: four steps, and a shift of the body at the end."""
    return shared.planned("walk", parameters__distance=1.0).stances


def test_a_walk_goes_from_rest_on_both_feet_to_the_last_foot_that_comes_down(stances):
    (section,) = walk_sections(stances)
    assert section == WalkSection(0, len(stances) - 2)
    assert stances[-1].change == "shift"
    assert [(stances[a].change, stances[b].change) for a, b in section.steps] == [("remove", "add")] * (
        (len(stances) - 2) // 2
    )


def test_what_ends_on_the_foot_that_came_down_last_is_shorter_by_a_step(stances):
    (section,) = walk_sections(stances)
    assert list(walk_sections(stances[:-1])) == [WalkSection(0, section.last - 2)]


def test_a_foot_that_steps_twice_a_hand_and_a_slope_end_a_walk(stances):
    twice = [*stances[:3], *stances[1:3], *stances[3:]]
    assert list(walk_sections(twice)) == [WalkSection(4, len(twice) - 2)]

    def tilted(contact, angle):
        c, s = np.cos(angle), np.sin(angle)
        return replace(contact, axes=np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]) @ contact.axes)

    for change in (
        lambda contact: tilted(contact, 0.1),
        lambda contact: replace(contact, kind="grasp"),
        lambda contact: replace(contact, p=contact.p + np.array([0.0, 0.0, 0.02])),
    ):
        k = 4
        contacts = (change(stances[k].contacts[0]), *stances[k].contacts[1:])
        changed = [*stances[:k], replace(stances[k], contacts=contacts), *stances[k + 1 :]]
        assert list(walk_sections(changed)) == []


def test_where_no_foot_steps_there_is_no_walk(stances):
    assert not list(walk_sections(stances[:2]))
