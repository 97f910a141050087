"""The centre of mass of a walk: contacts bear it in every sample, and it is where it is to be at the ends."""

import numpy as np
import pytest

from mcplan.optimize.preview import Preview, centre_of_mass

GRAVITY = 9.81
SOLE = np.array([[0.1, 0.05, 0.0], [0.1, -0.05, 0.0], [-0.1, -0.05, 0.0], [-0.1, 0.05, 0.0]])


def steps(dt=0.05, ahead=0.2, aside=0.1):
    """Both feet, then one after the other 0.2 m ahead, then both: 12, 14, 4, 14, 12 samples."""
    edges = np.cumsum([12, 14, 4, 14, 12])
    n = edges[-1] + 1
    place = np.zeros((n, 2, 3))
    place[:, 0, 1], place[:, 1, 1] = aside, -aside
    cap = np.full((n, 2), 3.0 * GRAVITY)
    place[edges[0] + 1 :, 0, 0], place[edges[2] + 1 :, 1, 0] = ahead, ahead
    cap[edges[0] : edges[1] + 1, 0], cap[edges[2] : edges[3] + 1, 1] = 0.0, 0.0
    middle = np.full((n, 2), np.nan)
    middle[edges[0] : edges[1] + 1], middle[edges[2] : edges[3] + 1] = [0.0, -aside], [ahead, aside]
    t = dt * np.arange(n)
    z = 0.8 - 0.02 * np.sin(np.pi * t / t[-1]) ** 2
    zdd = -0.02 * 2.0 * (np.pi / t[-1]) ** 2 * np.cos(2.0 * np.pi * t / t[-1])
    corners = place[:, :, None, :] + SOLE
    ends = np.array([[0.0, 0.0], [ahead, 0.0]])
    return Preview(dt, ends, z, zdd, np.zeros((n, 2)), corners, cap, 0.4, middle)


def pressure(known, com):
    """The point of pressure (n, 2) and the horizontal acceleration of places of the centre of mass."""
    a = np.gradient(np.gradient(com[:, :2], known.dt, axis=0), known.dt, axis=0)
    lift = (known.zdd + GRAVITY)[:, None]
    return com[:, :2] - known.z[:, None] * a / lift + known.spin[:, ::-1] * [-1.0, 1.0] / lift, a


def test_the_pressure_is_within_the_soles_that_are_down_and_the_ends_are_at_rest():
    known = steps()
    com = centre_of_mass(known)
    np.testing.assert_allclose(com[[0, -1], :2], known.ends, atol=1e-6)
    np.testing.assert_array_equal(com[:, 2], known.z)
    point, a = pressure(known, com)
    alone = np.flatnonzero(np.isfinite(known.cop_reference[:, 0]))
    off = np.abs(point[alone] - known.cop_reference[alone])
    assert np.all(off.max(axis=0) <= [0.105, 0.055])
    assert np.linalg.norm(a, axis=1).max() < 0.4 * 2**0.5 * GRAVITY
    aside = com[alone, 1] * np.sign(known.cop_reference[alone, 1])
    assert aside.max() < 0.09  # it does not come over the foot that stands alone


@pytest.mark.parametrize(("ahead", "aside"), [(0.25, 0.1), (-0.25, -0.1)])
def test_friction_is_used_up_and_not_exceeded_on_ice_ahead_and_back_left_and_right(ahead, aside):
    known = steps(ahead=ahead, aside=aside)._replace(friction=0.05)
    _, a = pressure(known, centre_of_mass(known))
    used = a / (known.friction * (known.zdd + GRAVITY))[:, None]
    np.testing.assert_allclose([used.min(axis=0), used.max(axis=0)], [[-1.0, -1.0], [1.0, 1.0]], atol=0.02)


def test_a_walk_backwards_in_time_is_that_of_its_steps_backwards():
    """It begins and ends alike: at rest, with no step of the path larger than the first ones of a jerk."""
    known = steps()
    known = known._replace(spin=np.outer(np.sin(np.linspace(0.0, 2.0, len(known.z))), [0.1, 0.3]))
    backwards = {
        name: getattr(known, name)[::-1] for name in ("ends", "z", "zdd", "spin", "corners", "cap", "cop_reference")
    }
    com = centre_of_mass(known)
    np.testing.assert_allclose(centre_of_mass(known._replace(**backwards)), com[::-1], atol=2e-5)
    moved = np.linalg.norm(np.diff(com[:, :2], axis=0), axis=1)
    assert moved[[0, -1]].max() < 0.02 * moved.max()


def test_a_spin_of_the_legs_moves_the_pressure():
    known = steps()
    spin = known.spin.copy()
    spin[:, 1] = 0.3 * np.sin(np.linspace(0.0, 6.0, len(spin)))
    still, turning = centre_of_mass(known), centre_of_mass(known._replace(spin=spin))
    assert np.abs(still - turning)[:, 0].max() > 1e-3
    assert np.abs(still - turning)[:, 1].max() < 1e-3


def test_with_a_spin_the_pressure_is_within_small_soles_all_the_same():
    known = steps()
    wave = 0.3 * np.sin(np.linspace(0.0, 6.0, len(known.z)))
    middles = known.corners.mean(axis=2, keepdims=True)
    small = middles + 0.2 * (known.corners - middles)
    known = known._replace(spin=np.stack([wave, 0.5 * wave], axis=1), corners=small)
    point, _ = pressure(known, centre_of_mass(known))
    alone = np.isfinite(known.cop_reference[:, 0])
    alone = np.flatnonzero(alone & np.roll(alone, 2) & np.roll(alone, -2))  # differences reach beyond its ends
    assert np.all(np.abs(point[alone] - known.cop_reference[alone]).max(axis=0) <= [0.021, 0.011])


@pytest.mark.parametrize("change", [{"friction": 0.001}, {"cap": np.full((57, 2), 1.0)}])
def test_where_contacts_bear_no_walk_there_is_none(change):
    assert centre_of_mass(steps()._replace(**change)) is None


def test_a_walk_aside_is_a_walk_ahead_turned_by_a_quarter():
    """So are the spin of the legs and all that bears it."""
    known = steps()
    spin = np.outer(np.sin(np.linspace(0.0, 6.0, len(known.z))), [0.3, 0.15])
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    level = quarter[:2, :2].T
    turned = known._replace(
        ends=known.ends @ level,
        spin=spin @ level,
        corners=known.corners @ quarter.T,
        cop_reference=known.cop_reference @ level,
    )
    com = centre_of_mass(known._replace(spin=spin))
    np.testing.assert_allclose(centre_of_mass(turned), com @ quarter.T, atol=2e-5)
