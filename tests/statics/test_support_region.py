import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.statics.contact_forces import ForceUnknowns
from mcplan.statics.support_region import has_support_region, support_region, torque_support_region

spec = importlib.util.spec_from_file_location("contacts", Path(__file__).with_name("contacts.py"))
contacts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(contacts)

MASS = 56.0
WEIGHT = MASS * 9.81


def brute_force(stance, a, mass=MASS):
    """Farthest balanced CoM along ``a`` by HiGHS over the faces of the pyramids; None when nothing balances."""
    forces = ForceUnknowns(stance)
    F, upper = forces.face_rows()
    A = np.zeros((6, forces.size + 2))
    A[:, : forces.size] = forces.map / WEIGHT
    A[3, -1], A[4, -2] = -1.0, 1.0
    limit = np.hstack([F, np.zeros((len(F), 2))])
    cost = np.append(np.zeros(forces.size), -np.asarray(a))
    bounds = [(None, None)] * forces.size + [(-4.0, 4.0)] * 2
    result = linprog(cost, A_ub=limit, b_ub=upper, A_eq=A, b_eq=[0, 0, 1, 0, 0, 0], bounds=bounds, method="highs")
    return -result.fun if result.status == 0 else None


def test_one_foot_supports_its_polygon():
    foot = contacts.surface_contact("foot", [0.3, -0.2, 0.1], yaw=0.4)
    region = support_region([foot], MASS)
    expected = contacts.corners(foot)[:, :2]
    assert len(region.vertices) == 4
    for corner in expected:
        assert np.linalg.norm(region.vertices - corner, axis=1).min() < 1e-9
    assert region.area == pytest.approx(0.2 * 0.1)
    assert np.allclose(region.centre, foot.p[:2])
    assert region.depth(foot.p) == pytest.approx(0.05)


def test_coplanar_feet_support_their_hull():
    rng = np.random.default_rng(0)
    for _ in range(10):
        feet = [
            contacts.surface_contact(f"f{i}", [*rng.uniform(-0.4, 0.4, 2), 0.2], yaw=rng.uniform(0, 6))
            for i in range(3)
        ]
        hull = ConvexHull(np.vstack([contacts.corners(foot)[:, :2] for foot in feet]))
        region = support_region(feet, MASS)
        assert region.area == pytest.approx(hull.volume, abs=1e-9)
        assert len(region.vertices) == len(hull.vertices)


def test_a_foot_on_a_slope_supports_its_shadow_until_friction_ends():
    # tan 26.565 deg = 0.5; the pyramid of 8 faces would give up at 24.8 deg
    for angle, friction, stands in ((20, 0.5, True), (25.5, 0.5, True), (26.4, 0.5, True), (26.7, 0.5, False)):
        slope = np.deg2rad(angle)
        foot = contacts.surface_contact(
            "foot", [0.0, 0.0, 0.0], [-np.sin(slope), 0.0, np.cos(slope)], friction=friction
        )
        region = support_region([foot], MASS, exact=True)
        assert region.empty != stands
        if stands:
            assert region.area == pytest.approx(0.2 * 0.1 * np.cos(slope), rel=1e-6)


def test_an_edge_supports_a_segment_and_its_inset_stays_inside():
    edge = contacts.surface_contact("toe", [0.2, 0.0, 0.0], half=(0.0, 0.06))
    region = support_region([edge], MASS)
    assert region.area == pytest.approx(0.0, abs=1e-9)
    assert np.ptp(region.vertices[:, 1]) == pytest.approx(0.12)
    b = region.inset(0.02)
    assert (region.A @ [0.2, 0.0] - b).max() <= 1e-9
    assert (region.A @ [0.2, 0.05] - b).max() > 1e-3


def test_inset_of_a_foot_is_the_margin():
    foot = contacts.surface_contact("foot", [0.0, 0.0, 0.0])
    region = support_region([foot], MASS)
    assert np.allclose(region.b - region.inset(0.02), 0.02)
    assert np.allclose(np.sort(region.b - region.inset(0.2)), [0.025, 0.025, 0.05, 0.05])


def test_facing_walls_support_what_lies_between_when_friction_is_high():
    walls = [
        contacts.surface_contact("left", [0.0, 0.3, 0.5], [0.0, -1.0, 0.0], half=(0.05, 0.05), friction=0.8),
        contacts.surface_contact("right", [0.0, -0.3, 0.5], [0.0, 1.0, 0.0], half=(0.05, 0.05), friction=0.8),
    ]
    region = support_region(walls, MASS)
    assert not region.empty
    assert region.depth([0.0, 0.0]) > 0.0
    assert not region.bounded


@pytest.mark.parametrize(("friction", "d", "limit"), [(0.8, 0.3, 800.0), (0.5, 0.45, 600.0), (0.6, 0.2, 2000.0)])
def test_facing_walls_support_what_friction_width_and_strength_allow(friction, d, limit):
    # Edges of half-length a along x at y = +-d press with N <= limit and hold |v| <= mu N each; v1 + v2 = W.
    # Along y, W y = d (v1 - v2) with v1 = mu limit; across, W x = a (v1 - v2) and |v1| + |v2| = 2 mu limit.
    a = 0.05
    edge = np.array([[a, 0.0, 0.0], [-a, 0.0, 0.0]])
    walls = []
    for name, side in (("left", 1.0), ("right", -1.0)):
        axes = np.column_stack([[1.0, 0.0, 0.0], [0.0, 0.0, side], [0.0, -side, 0.0]])
        R = axes @ np.diag([1.0, -1.0, -1.0])
        walls.append(contacts.make(name, "surface", R, [0.0, side * d, 0.5], edge, axes, friction, limit))
    region = support_region(walls, MASS, exact=True, tolerance=1e-6)
    grip = 2.0 * friction * limit / WEIGHT
    assert grip > 1.0
    assert np.abs(region.vertices[:, 1]).max() == pytest.approx(d * (grip - 1.0), abs=1e-5)
    assert np.abs(region.vertices[:, 0]).max() == pytest.approx(a * grip, abs=1e-5)
    weak = [replace(wall, max_force=0.99 * WEIGHT / (2.0 * friction)) for wall in walls]
    assert support_region(weak, MASS, exact=True).empty


@pytest.mark.parametrize("offset", [1e-5, 1e-6, 1e-7, 1e-8])
def test_edges_nearly_on_one_line_press_each_other_with_forces_beyond_measure(offset):
    # Two tilted edges on one rung, not quite on one line, wedge each other: to reach 5 m takes 1e7 weights.
    edge = np.array([[0.0, -0.065, 0.0], [0.0, 0.065, 0.0]])
    stance = [contacts.grasp_contact("grip", [0.73, 0.29, 1.88], 180.0, 18.0)]
    for name, place, tilt in (("left", [0.4, 0.1, 0.7], 0.72), ("right", [0.4 + offset, -0.2, 0.7 + offset], 0.98)):
        axes = Rotation.from_euler("y", -tilt).as_matrix()
        R = axes @ np.diag([1.0, -1.0, -1.0])
        stance.append(contacts.make(name, "surface", R, np.array(place), edge, axes, 20.0))
    region = support_region(stance, MASS, tolerance=0.05)
    assert not region.bounded
    assert region.depth([0.4, 0.0]) > 0.1
    assert region.vertices[:, 0].max() == pytest.approx(brute_force(stance, (1.0, 0.0)), abs=1e-3)


def test_there_is_a_region_exactly_where_one_is_found():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(60):
        stance = [contacts.any_contact(rng, i) for i in range(int(rng.integers(1, 4)))]
        found.append(has_support_region(stance, MASS))
        assert found[-1] == (not support_region(stance, MASS).empty)
    assert 10 < sum(found) < 50
    assert not has_support_region([], MASS)


def test_regions_agree_with_a_brute_force_linear_program():
    rng = np.random.default_rng(3)
    compared = 0
    for _ in range(40):
        stance = contacts.random_contacts(rng, int(rng.integers(1, 5)))
        region = support_region(stance, MASS)
        for angle in rng.uniform(0, 2 * np.pi, 3):
            a = np.array([np.cos(angle), np.sin(angle)])
            expected = brute_force(stance, a)
            if expected is None:
                assert region.empty
                continue
            if not region.bounded:
                continue
            compared += 1
            assert (region.vertices @ a).max() == pytest.approx(expected, abs=2e-7)
    assert compared > 40


def test_exact_cones_reach_farther_than_pyramids_and_fine_pyramids_come_close():
    rng = np.random.default_rng(4)
    compared = 0
    while compared < 4:
        stance = contacts.random_contacts(rng, 2)
        areas = [support_region(stance, MASS, faces=n, tolerance=1e-4).area for n in (8, 32)]
        if not 0.0 < areas[0] < 1.0 or any(c.kind == "grasp" for c in stance):
            continue
        compared += 1
        exact = support_region(stance, MASS, exact=True).area
        assert areas[0] <= areas[1] + 1e-4
        assert areas[1] <= exact + 2e-3
        assert exact == pytest.approx(areas[1], rel=0.02, abs=3e-3)


def test_what_is_no_robot_or_contact_is_refused():
    foot = contacts.surface_contact("foot", [0.0, 0.0, 0.0])
    with pytest.raises(InputError, match=r"support_region: contacts: .*put it into a list"):
        support_region(foot)
    with pytest.raises(InputError, match="torque_support_region: robot: expected a Robot, not 'hrp2'"):
        torque_support_region("hrp2", np.zeros(35), [foot])
