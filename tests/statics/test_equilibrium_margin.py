import importlib.util
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

from mcplan.statics.contact_forces import ForceUnknowns, moments_about
from mcplan.statics.equilibrium import equilibrium_margin
from mcplan.statics.support_region import support_region

spec = importlib.util.spec_from_file_location("contacts", Path(__file__).with_name("contacts.py"))
contacts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(contacts)

MASS = 56.0
WEIGHT = MASS * 9.81


def cone_program(stance, com):
    """Variables (f in weights, push in weights) and constraints of equilibrium with second-order cones."""
    forces = ForceUnknowns(stance)
    f, push = cp.Variable(forces.size), cp.Variable(3)
    total = moments_about(forces.map, com) @ f
    constraints = [total[:3] + push == [0, 0, 1], total[3:] == 0]
    for block in forces.blocks:
        contact, part = block.contact, f[block.entries]
        if block.is_grasp:
            constraints += [
                cp.norm(part[:3]) <= contact.max_force / WEIGHT,
                cp.norm(part[3:]) <= contact.max_moment / WEIGHT,
            ]
            continue
        normals = [part[i + 2] for i in range(0, part.size, 3)]
        constraints += [cp.norm(part[i : i + 2]) <= contact.friction * part[i + 2] for i in range(0, part.size, 3)]
        if np.isfinite(contact.max_force):
            constraints.append(cp.sum(cp.hstack(normals)) <= contact.max_force / WEIGHT)
    return push, constraints


def test_margin_agrees_with_a_second_order_cone_program():
    rng = np.random.default_rng(5)
    compared = 0
    while compared < 8:
        stance = contacts.random_contacts(rng, int(rng.integers(1, 4)))
        region = support_region(stance, MASS, tolerance=1e-3)
        if region.area < 1e-3:
            continue
        com = np.append(region.centre, 0.8)
        margin = equilibrium_margin(com, stance, MASS)
        worst = np.inf
        push, constraints = cone_program(stance, com)
        direction = cp.Parameter(2)
        size = cp.Variable()
        problem = cp.Problem(cp.Maximize(size), [*constraints, push[:2] == size * direction, push[2] == 0])
        for angle in 2 * np.pi * np.arange(16) / 16:
            direction.value = np.array([np.cos(angle), np.sin(angle)])
            problem.solve(cp.CLARABEL)
            worst = min(worst, problem.value * WEIGHT)
        assert margin == pytest.approx(worst, abs=1e-3 + 1e-4 * abs(worst))
        compared += 1


def test_push_on_flat_ground_is_weight_times_distance_over_height():
    foot = contacts.surface_contact("foot", [0.0, 0.0, 0.0], half=(0.1, 0.05))
    assert equilibrium_margin([0.0, 0.0, 0.8], [foot], MASS) == pytest.approx(WEIGHT * 0.05 / 0.8)
    assert equilibrium_margin([0.0, 0.03, 0.8], [foot], MASS) == pytest.approx(WEIGHT * 0.02 / 0.8)


def test_push_on_a_wide_stance_is_bounded_by_friction():
    foot = contacts.surface_contact("plate", [0.0, 0.0, 0.0], half=(1.0, 1.0), friction=0.3)
    assert equilibrium_margin([0.0, 0.0, 0.2], [foot], MASS) == pytest.approx(0.3 * WEIGHT)


def test_without_equilibrium_the_margin_is_minus_the_residual():
    foot = contacts.surface_contact("foot", [0.0, 0.0, 0.0], half=(0.1, 0.05))
    inside = equilibrium_margin([0.0, 0.0499, 0.8], [foot], MASS)
    outside = [equilibrium_margin([0.0, y, 0.8], [foot], MASS) for y in (0.06, 0.08)]
    assert inside > 0.0 > outside[0] > outside[1]
    # A horizontal force at the CoM alone would do with W d / h.
    assert -outside[0] <= WEIGHT * 0.01 / 0.8 + 1e-6
    assert equilibrium_margin([0.0, 0.0, 0.8], [], MASS) == pytest.approx(-WEIGHT)


def test_a_force_limit_bounds_the_margin():
    strong = contacts.surface_contact("foot", [0.0, 0.0, 0.0])
    weak = contacts.surface_contact("foot", [0.0, 0.0, 0.0], max_force=500.0)
    assert equilibrium_margin([0.0, 0.0, 0.8], [strong], MASS) > 0.0
    assert equilibrium_margin([0.0, 0.0, 0.8], [weak], MASS) == pytest.approx(500.0 - WEIGHT)


def test_a_contact_that_slides_gives_no_force_along_its_free_direction():
    plate = contacts.surface_contact("plate", [0.0, 0.0, 0.0], half=(1.0, 1.0), friction=0.3, slide=["x"])
    assert equilibrium_margin([0.0, 0.0, 0.2], [plate], MASS) == pytest.approx(0.0, abs=1e-6)


def test_walls_without_limit_withstand_any_push_and_say_ten_weights():
    walls = [
        contacts.surface_contact("left", [0.0, 0.3, 0.8], [0.0, -1.0, 0.0], half=(0.1, 0.1), friction=0.8),
        contacts.surface_contact("right", [0.0, -0.3, 0.8], [0.0, 1.0, 0.0], half=(0.1, 0.1), friction=0.8),
    ]
    assert equilibrium_margin([0.0, 0.0, 0.8], walls, MASS) == pytest.approx(10.0 * WEIGHT)


def test_a_slope_between_pyramid_and_cone_has_a_margin():
    # friction 0.5 holds 26.57 degrees on the cone; the inscribed pyramid gives up at 24.8 where its faces are
    slope = np.deg2rad(26.0)
    plate = contacts.surface_contact(
        "plate", [0.0, 0.0, 0.0], [-np.sin(slope), 0.0, np.cos(slope)], half=(1.0, 1.0), friction=0.5
    )
    # a push up the slope and one down it; down it, tan(slope + atan(push / weight)) = friction
    margin = equilibrium_margin([0.0, 0.0, 0.3], [plate], MASS)
    assert margin == pytest.approx(WEIGHT * np.tan(np.arctan(0.5) - slope), rel=1e-5)
