"""Degenerate programs: on all fours, with contacts that are nearly, but not quite, on one level and in line.

Column generation adds rays that nearly depend on each other there, so that bases are ill-conditioned. The margin over
the exact cones lies between those over pyramids inside and around them, which HiGHS finds.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from mcplan.statics.equilibrium import equilibrium_margin

spec = importlib.util.spec_from_file_location("contacts", Path(__file__).with_name("contacts.py"))
contacts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(contacts)

MASS = 56.0
WEIGHT = MASS * 9.81
FACES = 64
DIRECTIONS = 16


def on_all_fours(rng):
    """Hands, knees and toes at rounded places, each missing now and then, and a centre of mass over them."""
    noise = rng.choice([0.0, 1e-9, 1e-7, 1e-6, 1e-5])
    friction = rng.uniform(0.05, 0.95)
    line = np.array([[0.0, 0.05, 0.0], [0.0, -0.05, 0.0]])
    ahead = round(rng.uniform(0.2, 0.5), 2)
    found = []

    def near(x, y):
        return np.array([x, y, 0.0]) + noise * rng.normal(size=3)

    for side, y in (("left", 0.1), ("right", -0.1)):
        if rng.random() < 0.8:
            place = near(ahead + round(rng.uniform(-0.1, 0.1), 2), 2 * y)
            yaw = noise * rng.normal()
            found.append(contacts.surface_contact(f"{side}_hand", place, half=(0.04, 0.03), friction=friction, yaw=yaw))
        for name, x in (("knee", 0.0), ("toe", -0.3)):
            if rng.random() < 0.8:
                R = np.diag([1.0, -1.0, -1.0])
                found.append(contacts.make(f"{side}_{name}", "surface", R, near(x, y), line, np.eye(3), friction))
    com = [rng.choice([0.0, 0.1, rng.uniform(-0.2, 0.3)]), rng.choice([0.0, rng.uniform(-0.1, 0.1)]), 0.4]
    return found, np.array(com)


def bounds_by_highs(stance, com):
    """Return the least push (N) over directions with pyramids inside and around the cones; None if none balances."""
    bounds = []
    for stretch in (1.0, 1.0 / np.cos(np.pi / FACES)):
        columns = []
        for contact in stance:
            for place in contact.p + contact.points @ contact.R.T:
                for angle in 2 * np.pi * np.arange(FACES) / FACES:
                    mu = stretch * contact.friction
                    force = contact.axes @ [mu * np.cos(angle), mu * np.sin(angle), 1.0]
                    columns.append(np.append(force, np.cross(place - com, force)))
        least = 10.0
        for angle in 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS:
            push = np.array([np.cos(angle), np.sin(angle), 0.0, 0.0, 0.0, 0.0])
            A = np.column_stack([*columns, push])
            cost = np.append(np.zeros(len(columns)), -1.0)
            result = linprog(cost, A_eq=A, b_eq=[0, 0, 1, 0, 0, 0], bounds=[(0, None)] * len(columns) + [(0, 10.0)])
            if result.status != 0:
                return None
            least = min(least, -result.fun)
        bounds.append(least * WEIGHT)
    return bounds


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 80])
def test_margins_of_degenerate_stances_are_found_and_agree_with_highs(first):
    compared = 0
    for case in range(first, first + 80):
        stance, com = on_all_fours(np.random.default_rng([0, case]))
        if not stance:
            continue
        margin = equilibrium_margin(com, stance, MASS)
        if case % 10 in (1, 3, 5) and margin > 0.0:
            bounds = bounds_by_highs(stance, com)
            assert bounds is not None
            assert bounds[0] - 1e-3 <= margin <= bounds[1] + 1e-3
            compared += 1
    assert compared > 5
