"""The region of an accelerating centre of mass against the support region, and against linear programs."""

import numpy as np
import pytest
from scipy.optimize import linprog

import mcplan as mc
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError
from mcplan.statics.com_region import com_polyhedron
from mcplan.statics.contact_forces import ForceUnknowns, moments_about
from mcplan.statics.support_region import CLIP_M, support_region
from tests.statics.contacts import grasp_contact, surface_contact

MASS = 50.0


@pytest.fixture(scope="module")
def contacts():
    return [
        surface_contact("a", np.zeros(3), (0.3, 0.0, 1.0)),
        surface_contact("b", np.array([0.5, 0.2, 0.3]), (-0.4, 0.1, 1.0)),
        grasp_contact("c", np.array([0.2, -0.3, 0.9]), max_force=200.0, max_moment=20.0),
    ]


def balanced(contacts, c, a):
    """Whether some forces give the centre of mass at c the acceleration a, by a program of its own."""
    forces = ForceUnknowns(contacts, 8, 1.0)
    A = moments_about(forces.map, c)
    F, upper = forces.face_rows()
    wanted = np.concatenate([MASS * (np.array([0, 0, GRAVITY]) + a), np.zeros(3)])
    return linprog(np.zeros(forces.size), F, upper, A, wanted, bounds=(None, None)).status == 0


def test_at_rest_its_sections_are_the_support_region_at_every_height(contacts):
    still, flat = com_polyhedron(contacts, MASS, 0.0), support_region(contacts, MASS)
    for height in (0.0, 0.8, 2.0):
        assert still.section(height).area == pytest.approx(flat.area, rel=1e-6)


def test_inside_every_acceleration_is_balanced_and_outside_one_is_not(contacts):
    a, random = 1.0, np.random.default_rng(0)
    region = com_polyhedron(contacts, MASS, a)
    angles = 2 * np.pi * np.arange(8) / 8
    pushes = a * np.column_stack([np.cos(angles), np.sin(angles), np.zeros(8)])
    corners = region.vertices(0.4, 1.4)
    assert len(corners) >= 6
    middle, seen = corners.mean(axis=0), 0
    for corner in corners[random.permutation(len(corners))[:8]]:
        for share, inside in ((0.98, True), (1.02, False)):
            c = middle + share * (corner - middle)
            if not inside and not 0.4 < c[2] < 1.4:
                continue
            assert (region.depth(c) > 0.0) == inside
            assert all(balanced(contacts, c, push) for push in pushes) == inside
            seen += 1
    assert seen >= 8


def test_its_sections_are_drawn(contacts):
    axes = mc.plot(com_polyhedron(contacts, MASS, 1.0), heights=[0.4, 0.8])
    assert [line.get_label() for line in axes.get_lines()] == ["0.4 m", "0.8 m"]


def test_it_shrinks_with_the_acceleration_and_ends(contacts):
    areas = [com_polyhedron(contacts, MASS, a).section(0.8).area for a in (0.0, 0.5, 1.0, 2.0)]
    assert all(np.diff(areas) < 0.0)
    none = com_polyhedron(contacts, MASS, 30.0)
    assert none.depth(np.zeros(3)) == -np.inf
    assert none.section(0.8).empty
    assert len(none.vertices(0.0, 1.0)) == 0
    with pytest.raises(InputError, match="no contacts"):
        com_polyhedron([], MASS)
    with pytest.raises(InputError, match="expected 0"):
        com_polyhedron(contacts, MASS, -1.0)
    with pytest.raises(InputError, match=r"com_polyhedron: contacts: .*put it into a list"):
        com_polyhedron(contacts[0], MASS)
    with pytest.raises(InputError, match="point: expected 3 finite numbers"):
        none.depth(np.zeros(2))


def test_it_moves_with_the_contacts_however_far_they_are(contacts):
    there = np.array([40.0, -30.0, 2.0])
    here, far = (com_polyhedron(stance, MASS, 1.0).section(0.8 + z) for stance, z in (
        (contacts, 0.0), ([contact.at(contact.R, contact.p + there) for contact in contacts], there[2]),
    ))  # fmt: skip
    assert here.area > 0.01
    assert far.area == pytest.approx(here.area, rel=1e-6)
    assert far.centre == pytest.approx(here.centre + there[:2], abs=1e-6)
    assert here.bounded
    assert far.bounded


@pytest.mark.parametrize(("kind", "acceleration"), [("surface", 0.0), ("surface", 0.5), ("point", 0.0)])
def test_between_walls_that_can_be_squeezed_it_says_that_it_was_cut(kind, acceleration):
    """Between two points it is a segment, here one that meets the sides of the cut askew."""
    way = np.array([0.6, 0.8, 0.0])
    walls = [
        surface_contact(name, np.array([30.0, 0.0, 1.0]) + side * way, -side * way, kind=kind)
        for name, side in (("a", 0.5), ("b", -0.5))
    ]
    region = com_polyhedron(walls, MASS, acceleration)
    assert region.cut.any()
    section = region.section(0.8)
    assert not section.bounded
    assert np.abs(section.vertices - [30.0, 0.0]).max() <= CLIP_M + 1e-6
    assert not support_region(walls, MASS).bounded


def test_torque_limits_take_their_part():
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    floor = mc.Surface("floor", size=(4, 4))
    soles = [mc.contact(robot, f"{side}_sole", floor, near=q) for side in ("left", "right")]
    free = com_polyhedron(soles, robot.mass, 0.2)
    weak = com_polyhedron(soles, robot.mass, 0.2, limited=(robot, q, 0.3))
    assert 0.0 < weak.section(0.8).area < free.section(0.8).area
