"""Which stances are a walk, and what friction it takes."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.planning.walking.gait import Gait, WalkSection, walk_sections
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


@pytest.mark.parametrize(("friction", "slips"), [(0.35, False), (0.23, True)])
def test_the_centre_of_mass_of_a_walk_stays_within_the_cone_in_every_direction(stances, friction, slips):
    """Also along the diagonals, ahead and aside at once; where that is too little there is no walk."""
    planned, dt = shared.planned("walk", parameters__distance=1.0), 0.024
    settings = planned.scenario.replace(control={"pace": "fast", "walking": "dynamic"}).transition_settings
    icy = [replace(s, contacts=tuple(replace(c, friction=friction) for c in s.contacts)) for s in stances]
    walk = Gait(planned.scenario.robot, settings, icy, next(walk_sections(icy))).walk(dt, 0.06)
    if walk is not None:
        bend = np.diff(walk.com, n=2, axis=0) / dt**2
        taken = np.hypot(bend[:, 0], bend[:, 1]) / (GRAVITY + bend[:, 2])
        assert 0.5 < taken.max() / (settings.pace.friction * friction) < 1.0
    assert (walk is None) == slips
