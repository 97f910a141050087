"""The bare tests against regions and HiGHS, and what is said when they fail."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from mcplan.bench.kernels import PATCHES, POSTURE, contact_at
from mcplan.robot.robot_file import load_robot
from mcplan.statics.contact_forces import ForceUnknowns, moments_about
from mcplan.statics.equilibrium import balance, equilibrium_torque_margin
from mcplan.statics.feasibility import can_balance, can_hold, exertable_share, shortfall
from mcplan.statics.support_region import support_region, torque_support_region
from tests.statics import contacts

MASS = 56.0
WEIGHT = MASS * 9.81


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


@pytest.fixture(scope="module")
def crawl(robot):
    q = robot.posture(POSTURE)
    return q, [contact_at(robot, q, patch) for patch in PATCHES]


def torque_oracle(robot, q, stance, share, a):
    """Farthest place along ``a`` by HiGHS, torques from the Jacobian of each contact point; None when infeasible."""
    forces = ForceUnknowns(stance)
    F, upper = forces.face_rows()
    hold = robot.inverse_dynamics(q, np.zeros(robot.nv), np.zeros(robot.nv))[6:]
    parts = []
    for contact in stance:
        J = robot.frame_jacobian(q, contact.patch)
        for point in contact.points @ contact.R.T:
            parts.append((J[:3] - np.cross(point, J[3:], axisa=0, axisb=0, axisc=0)).T[6:] @ contact.axes)
    torque = np.hstack(parts)
    size, limit = forces.size, share * robot.limits.torque
    unit = robot.mass * 9.81
    A = np.zeros((6, size + 2))
    A[:, :size] = forces.map
    A[3, -1], A[4, -2] = -1.0, 1.0
    rows = np.vstack([F, -torque, torque])
    bounds = [(None, None)] * size + [(-4.0, 4.0)] * 2
    result = linprog(
        np.append(np.zeros(size), -a), A_ub=np.hstack([rows, np.zeros((len(rows), 2))]),
        b_ub=np.concatenate([upper, limit - hold, limit + hold]) / unit, A_eq=A, b_eq=[0, 0, 1, 0, 0, 0],
        bounds=bounds, method="highs-ds",
    )  # fmt: skip
    return -result.fun if result.status == 0 else None


def test_the_bare_test_tells_inside_from_outside_of_the_region():
    rng = np.random.default_rng(0)
    told = [0, 0]
    for _ in range(150):
        stance = [contacts.any_contact(rng, i) for i in range(int(rng.integers(1, 5)))]
        region = support_region(stance, MASS)
        com = rng.uniform([-0.5, -0.5, 0.3], [0.5, 0.5, 1.0])
        if abs(region.depth(com)) > 1e-6:
            assert can_balance(com, stance, MASS) == (region.depth(com) > 0.0)
            told[int(region.depth(com) > 0.0)] += 1
    assert min(told) > 15
    assert not can_balance([0.0, 0.0, 0.8], [], MASS)


@pytest.mark.parametrize("share", [1.0, 0.4, 0.15])
def test_regions_within_torque_limits_agree_with_highs(robot, crawl, share):
    q, stance = crawl
    region = torque_support_region(robot, q, stance, share)
    for angle in np.arange(8) * np.pi / 4 + 0.1:
        a = np.array([np.cos(angle), np.sin(angle)])
        assert (region.vertices @ a).max() == pytest.approx(torque_oracle(robot, q, stance, share, a), abs=1e-6)
    inside = region.depth(robot.com(q)) > 0.0
    assert can_hold(robot, q, stance, share) == inside
    assert balance(robot, q, stance, torque_share=share).torque_feasible == inside
    if share == 1.0:
        assert (equilibrium_torque_margin(robot, q, stance) > 0.0) == inside


def test_the_centre_of_mass_is_named_with_its_distance(robot):
    q = robot.posture("half_sitting")
    foot = contact_at(robot, q, "left_sole")
    found = shortfall(robot, q, [foot])
    assert found.kind == "com"
    assert found.amount == pytest.approx(-support_region([foot], robot.mass).depth(robot.com(q)))
    assert "outside the region that left_sole support" in str(found)
    assert shortfall(robot, q, [foot, contact_at(robot, q, "right_sole")]) is None


def test_friction_is_named_with_the_contact_and_the_factor(robot):
    q = robot.posture("half_sitting")
    slope = np.deg2rad(30.0)
    # at t1 = x the slope falls along the middle of a face: the pyramid offers mu cos(pi / 8)
    tilted = contacts.surface_contact("plate", [0, 0, 0], [np.sin(slope), 0, np.cos(slope)], half=(2, 2), friction=0.4)
    found = shortfall(robot, q, [tilted])
    assert (found.kind, found.name) == ("friction", "plate")
    direction = tilted.axes.T @ [0.0, 0.0, 1.0]
    bearing = np.arctan2(direction[1], direction[0])
    off = (bearing + np.pi / 8) % (np.pi / 4) - np.pi / 8  # from the middle of a face, where the pyramid is thinnest
    least = np.tan(slope) * np.cos(off) / np.cos(np.pi / 8)
    assert found.amount == pytest.approx(least / 0.4, rel=2e-3)


def test_of_contacts_that_slip_the_one_is_named_whose_friction_is_nearest_to_enough(robot):
    """Whatever the order and the names: what is alike but for its friction needs the same in the end."""
    q, normal = robot.posture("half_sitting"), [np.sin(0.5), 0, np.cos(0.5)]
    for low, high in (("a", "b"), ("b", "a")):
        smooth, rough = (
            contacts.surface_contact(name, [0, 0, 0], normal, half=(2, 2), friction=friction)
            for name, friction in ((low, 0.1), (high, 0.3))
        )
        for stance in ([smooth, rough], [rough, smooth]):
            found = shortfall(robot, q, stance)
            assert (found.kind, found.name) == ("friction", high)
            assert 1.0 < found.amount <= shortfall(robot, q, [rough]).amount


def test_force_limits_and_contacts_that_press_the_wrong_way_are_named(robot):
    q = robot.posture("half_sitting")
    weak = contacts.surface_contact("plate", [0, 0, 0], half=(2, 2), max_force=100.0)
    found = shortfall(robot, q, [weak])
    assert found.kind == "force"
    assert found.amount == pytest.approx(robot.mass * 9.81 / 100.0, rel=2e-3)
    ceiling = replace(weak, axes=np.diag([1.0, -1.0, -1.0]), friction=0.0, max_force=np.inf)
    assert shortfall(robot, q, [ceiling]).kind == "contacts"


def test_the_torque_that_is_named_is_the_least_that_holds(robot, crawl):
    q, stance = crawl
    found = shortfall(robot, q, stance, 0.02)
    assert found.kind == "torque"
    assert found.name in robot.joint_names
    assert can_hold(robot, q, stance, found.amount + 1e-6)
    assert not can_hold(robot, q, stance, found.amount - 1e-6)
    held = balance(robot, q, stance, torque_share=found.amount + 1e-6)
    assert np.abs(held.tau / robot.limits.torque).max() == pytest.approx(found.amount, abs=1e-5)
    for allowed in (0.02, 0.03):
        text = str(shortfall(robot, q, stance, allowed))
        assert f"{found.name} needs {found.amount:.0%} of its torque limit, {allowed:.0%} are allowed" in text


def test_the_centre_of_mass_is_said_to_be_off_to_the_side_on_which_it_is(robot):
    """What is said, taken back, leads to the border of the region; both feet, one after the other."""
    q = robot.posture("half_sitting")
    for patch in ("left_sole", "right_sole"):
        foot = contact_at(robot, q, patch)
        said = re.search(r"by \(([-+.0-9]+), ([-+.0-9]+)\) m", str(shortfall(robot, q, [foot])))
        outside = np.array([float(each) for each in said.groups()])
        region, com = support_region([foot], robot.mass), robot.com(q)
        assert region.depth(com) < -0.01
        assert region.depth(com - np.append(outside, 0.0)) == pytest.approx(0.0, abs=2e-3)


def test_the_joint_that_is_named_is_one_that_would_have_to_be_stronger(robot, crawl):
    """With twice its torque the posture takes a smaller share of the limits; with twice that of others it may not."""
    q, stance = crawl
    found = shortfall(robot, q, stance, 0.02)
    limits = robot.limits.torque.copy()
    limits[robot.joint_names.index(found.name)] *= 2.0
    stronger = replace(robot, limits=replace(robot.limits, torque=limits))
    assert shortfall(stronger, q, stance, 0.02).amount < found.amount - 1e-3


@pytest.mark.parametrize("most", [0.1, 0.4])
def test_the_largest_part_of_a_wrench_that_is_exerted_besides_another_one_is_that_of_highs(most):
    rng = np.random.default_rng(3)
    weight, told = WEIGHT * np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), [0, 0, 0]
    for _ in range(200):
        stance = [contacts.any_contact(rng, i) for i in range(int(rng.integers(2, 5)))]
        point = rng.uniform([-0.3, -0.3, 0.3], [0.3, 0.3, 1.0])
        further = WEIGHT * np.append(rng.normal(size=3), 0.1 * rng.normal(size=3))
        part = exertable_share(point, weight, further, stance, MASS, most)
        forces = ForceUnknowns(stance)
        F, upper = forces.face_rows()
        A = np.column_stack([moments_about(forces.map, point), -further]) / WEIGHT
        A = np.vstack([A, np.column_stack([forces.equal, np.zeros(len(forces.equal))]) / WEIGHT])
        asked = np.append(weight, forces.equal_to) / WEIGHT
        result = linprog(
            np.append(np.zeros(forces.size), -1.0), np.column_stack([F, np.zeros(len(F))]), upper, A, asked,
            [(None, None)] * forces.size + [(0.0, most)], method="highs-ds",
        )  # fmt: skip
        expected = -result.fun if result.status == 0 else 0.0
        assert part == pytest.approx(expected, abs=1e-6)
        told[0 if part == 0.0 else 1 if part < most else 2] += 1
    assert min(told) > 2
    assert exertable_share(np.zeros(3), weight, np.zeros(6), [], MASS, most) == most
