import numpy as np
import pytest

from mcplan.statics.equilibrium import DIRECTIONS, equilibrium_margin
from mcplan.statics.support_region import support_region, zmp_area
from tests.statics import contacts

MASS = 56.0
WEIGHT = MASS * 9.81


def test_on_flat_ground_it_is_the_support_polygon_wherever_the_centre_of_mass_is():
    feet = [
        contacts.surface_contact("left", [0.0, 0.1, 0.0], yaw=0.3, friction=2.0),
        contacts.surface_contact("right", [0.1, -0.1, 0.0], friction=2.0),
    ]
    polygon = support_region(feet, MASS)
    for com in ([0.05, 0.0, 0.8], [0.1, 0.05, 0.6]):
        area = zmp_area(com, feet, MASS)
        assert area.area == pytest.approx(polygon.area, abs=1e-7)
        assert max(abs(polygon.depth(vertex)) for vertex in area.vertices) < 1e-7


def test_on_wide_ground_friction_makes_it_a_disc():
    plate = contacts.surface_contact("plate", [0.0, 0.0, 0.0], half=(2.0, 2.0), friction=0.4)
    area = zmp_area([0.1, -0.2, 0.7], [plate], MASS, exact=True, tolerance=1e-5)
    assert np.linalg.norm(area.vertices - [0.1, -0.2], axis=1) == pytest.approx(0.4 * 0.7, abs=1e-4)


def test_its_distance_along_a_push_is_the_margin():
    rng = np.random.default_rng(2)
    compared = 0
    while compared < 5:
        stance = [contacts.any_contact(rng, i) for i in range(3)]
        region = support_region(stance, MASS)
        if region.area < 1e-3:
            continue
        com = np.append(region.centre, 0.8)
        area = zmp_area(com, stance, MASS, height=-0.2, exact=True, tolerance=1e-5)
        angle = 2.0 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
        d = np.column_stack([np.cos(angle), np.sin(angle)])
        along = d @ area.A.T
        room = area.b - area.A @ com[:2]
        distance = np.where(along > 1e-12, room / np.maximum(along, 1e-12), np.inf).min(axis=1)
        assert equilibrium_margin(com, stance, MASS) == pytest.approx(WEIGHT * distance.min(), abs=1e-5 * WEIGHT + 1e-2)
        compared += 1


def test_the_plane_of_the_centre_of_mass_is_refused():
    with pytest.raises(ValueError, match="passes through the centre of mass"):
        zmp_area([0.0, 0.0, 0.5], [contacts.surface_contact("foot", [0.0, 0.0, 0.0])], MASS, height=0.5)


def test_what_is_no_place_or_contact_is_refused():
    foot = contacts.surface_contact("foot", [0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"zmp_area: com: expected 3 finite numbers"):
        zmp_area([0.0, 0.0], [foot], MASS)
    with pytest.raises(ValueError, match=r"zmp_area: contacts: .*put it into a list"):
        zmp_area([0.0, 0.0, 0.5], foot, MASS)
