"""Objects that are moved: straight, turned about one axis, with the contacts on them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.planning.transition.object_path import ObjectPath, contacts_at
from mcplan.scene.contact import Carrier
from mcplan.scene.environment import Environment, Surface
from tests.statics.contacts import surface_contact

BEGIN = Rotation.from_rotvec([0.1, -0.2, 0.3]).as_matrix(), np.array([0.4, 0.1, 0.9])
TURN = np.array([0.2, 0.5, -0.4])
END = Rotation.from_rotvec(TURN).as_matrix() @ BEGIN[0], np.array([0.6, 0.0, 1.1])
WAY = ObjectPath("box", BEGIN, END)
SCENE = Environment([Surface("table", size=(2.0, 2.0), xyz=(0.4, 0.1, 0.78))])


def contacts(rest_before, rest_after):
    """A hand on the box and a foot on the floor, at both ends."""
    rest = surface_contact("box", [0.4, 0.1, 0.78])
    before = Carrier("box", 5.0, BEGIN[1] + [0.01, 0.02, 0.03], rest if rest_before else None)
    hand = replace(surface_contact("hand", [0.4, 0.27, 0.9], (0.0, 1.0, 0.0)), carrier=before)
    higher = surface_contact("box", [0.6, 0.0, 0.98])
    after = replace(before.moved(BEGIN, END, False), rest=higher if rest_after else None)
    moved = replace(hand.moved(BEGIN, END), carrier=after)
    foot = surface_contact("foot", [0.0, 0.0, 0.0])
    return (hand, foot), (moved, foot)


def test_it_goes_straight_and_turns_about_one_axis():
    assert WAY.length == pytest.approx(np.linalg.norm(END[1] - BEGIN[1]))
    assert WAY.angle == pytest.approx(np.linalg.norm(TURN))
    for share, pose in ((0.0, BEGIN), (1.0, END)):
        for found, wanted in zip(WAY.at(share), pose, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)
    R, p = WAY.at(0.5)
    np.testing.assert_allclose(p, (BEGIN[1] + END[1]) / 2, atol=1e-12)
    np.testing.assert_allclose(Rotation.from_matrix(R @ BEGIN[0].T).as_rotvec(), TURN / 2, atol=1e-12)


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_what_is_on_it_stays_where_it_is_on_it(share):
    before, after = contacts(True, False)
    hand, foot = contacts_at(before, after, [WAY], share, SCENE)
    assert foot is before[1]
    R, p = WAY.at(share)
    for now, then in ((hand.p, before[0].p), (hand.carrier.com, before[0].carrier.com)):
        np.testing.assert_allclose(R.T @ (now - p), BEGIN[0].T @ (then - BEGIN[1]), atol=1e-12)
    for now, then in ((hand.R, before[0].R), (hand.axes, before[0].axes)):
        np.testing.assert_allclose(R.T @ now, BEGIN[0].T @ then, atol=1e-12)


@pytest.mark.parametrize(("lies", "lay"), [(True, False), (False, True), (False, False), (True, True)])
def test_the_hands_alone_bear_a_lifted_object(lies, lay):
    before, after = contacts(lies, lay)
    assert contacts_at(before, after, [WAY], 0.5, SCENE)[0].carrier.rest is None


def test_what_slides_stays_on_its_support():
    end = BEGIN[0], BEGIN[1] + [0.2, 0.0, 0.0]
    rest = surface_contact("box", [0.4, 0.1, 0.78])
    carrier = Carrier("box", 5.0, BEGIN[1], rest)
    hand = replace(surface_contact("hand", [0.4, 0.27, 0.9], (0.0, 1.0, 0.0)), carrier=carrier)
    pushed = replace(hand.moved(BEGIN, end), carrier=carrier.moved(BEGIN, end, True))
    (here,) = contacts_at([hand], [pushed], [ObjectPath("box", BEGIN, end)], 0.5, SCENE)
    np.testing.assert_allclose(here.carrier.rest.p, rest.p + np.array([0.1, 0.0, 0.0]), atol=1e-12)
