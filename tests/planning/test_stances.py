"""The stances that HRP-2 can take are found, collisions included; those that nobody can are refused with the reason."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.scene.environment import Environment
from tests.contact_error import contact_error

spec = importlib.util.spec_from_file_location("planning_stances", Path(__file__).with_name("stances.py"))
stances = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stances)

GROUPS = (
    "walk", "stairs", "rail", "tilted", "step_over", "lean", "table", "low_and_high_seat", "crawl", "kneel",
    "handstand", "ladder", "wedge", "push",
)  # fmt: skip

# Known to be possible and not found yet: defects of the generator, or (the seat) of the shapes that collide.
NOT_YET = {"crawl 0.1 -right_hand", "crawl -0.1 -left_hand", "sit 0.3"}


def solve(case):
    collisions = CollisionModel(stances.ROBOT, case.environment)
    generator = PostureGenerator(stances.ROBOT, case.environment, collisions=collisions)
    return generator.generate(case.contacts, case.loaded, case.guide, free=case.free), collisions


@pytest.mark.parametrize("group", GROUPS)
def test_known_stances_are_found(group):
    robot = stances.ROBOT
    missed, cases = [], list(getattr(stances, group)())
    for case in cases:
        result, collisions = solve(case)
        if not result.found:
            missed.append((case.name, result.reason))
            continue
        for contact in result.contacts:
            assert np.abs(contact_error(robot, result.q, contact)).max() < 1e-6
        nearest = collisions.smallest(result.q, contacts=result.contacts)
        assert nearest is None or nearest.pair.in_contact or nearest.distance > 0.0
        assert (np.abs(result.tau) <= 0.9 * robot.limits.torque + 1e-6).all()
        rest = robot.nonlinear_effects(result.q, np.zeros(robot.nv))
        rest[6:] -= result.tau
        for patch, wrench in result.wrenches.items():
            rest -= robot.frame_jacobian(result.q, patch).T @ wrench
        assert np.abs(rest).max() < 1e-6
        assert result.margins["friction_ratio"] <= 0.9 + 1e-6
    assert {name for name, _ in missed} == NOT_YET & {case.name for case in cases}, missed


def test_a_gap_of_three_metres_is_a_matter_of_reach():
    case = next(stances.impossible())
    result, _ = solve(case)
    assert result.stage == "reach"
    assert result.violations[0].kind == "reach"
    assert result.violations[0].amount > 0.5
    assert any(violation.kind == "joint limit" for violation in result.violations)


def test_thighs_and_soles_do_not_reach_a_high_seat_together():
    cases = [case for case in stances.impossible() if case.name == "sit 0.5"]
    assert cases
    for case in cases:
        result, _ = solve(case)
        assert result.stage == "reach"
        assert {v.thing for v in result.violations if v.kind == "reach"} & {"left_thigh", "right_thigh", "left_sole"}


def test_a_steep_plate_without_friction_is_a_matter_of_friction():
    case = next(case for case in stances.tilted() if case.loaded == ("right_sole",))
    slippery = Environment(
        tuple(replace(s, friction=0.1) if s.name == "plate" else s for s in case.environment.surfaces)
    )
    contacts = tuple(replace(c, friction=0.1) for c in case.contacts)
    result = PostureGenerator(stances.ROBOT, slippery).generate(contacts, case.loaded, case.guide)
    assert (result.stage, result.violations[0].kind) == ("region", "friction")
    assert result.violations[0].amount > 50.0
