"""Places of the centre of mass and of the base that a posture is asked for."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.planning.posture.generator import ACCEPTED_ERROR, PostureGenerator
from mcplan.planning.posture.task import BaseTarget


@pytest.fixture(scope="module")
def generator(scene):
    return PostureGenerator(scene.ROBOT, scene.ENVIRONMENT)


def turned(q):
    return Rotation.from_quat(q[[4, 5, 6, 3]])


@pytest.mark.parametrize("com", [[0.04, 0.03], [-0.02, -0.01, 0.76]])
def test_the_centre_of_mass_is_where_it_is_asked_for(scene, generator, com):
    result = generator.generate(scene.feet(), None, scene.ROBOT.posture("half_sitting"), com=np.array(com))
    assert result.found, result.reason
    assert np.abs(scene.ROBOT.com(result.q)[: len(com)] - com).max() <= ACCEPTED_ERROR


def test_a_centre_of_mass_beyond_the_region_is_refused_before_any_search(scene, generator):
    result = generator.generate(scene.feet(), None, scene.ROBOT.posture("half_sitting"), com=np.array([0.5, 0.0]))
    assert result.stage == "region"
    (violation,) = result.violations
    assert (violation.kind, violation.thing) == ("equilibrium", "com")
    # the soles end 0.13 m or so before the ankle
    assert 0.3 < violation.amount < 0.5
    assert result.effort.steps == 0


def test_a_centre_of_mass_too_high_is_a_violation_with_its_amount(scene, generator):
    amounts = []
    for height in (1.0, 1.2):
        result = generator.generate(
            scene.feet(), None, scene.ROBOT.posture("half_sitting"), com=np.array([0.02, 0.0, height])
        )
        assert result.stage == "balance"
        amounts.append({v.kind: v.amount for v in result.violations}["com"])
    assert 0.02 < amounts[0] < amounts[1]


@pytest.mark.parametrize("tolerance", [0.02, 1e-3])
def test_the_base_is_within_its_tolerance_and_the_feet_stay(scene, generator, tolerance):
    guide = scene.ROBOT.posture("half_sitting")
    target = guide[:3] + np.array([0.03, -0.03, -0.06])
    R = Rotation.from_euler("zy", [0.2, 0.1]).as_matrix()
    result = generator.generate(scene.feet(), None, guide, base=BaseTarget(target, tolerance, R, 0.05))
    assert result.found, result.reason
    assert np.linalg.norm(result.q[:3] - target) <= tolerance
    assert (turned(result.q) * Rotation.from_matrix(R).inv()).magnitude() <= 0.05
    assert result.margins["contact"] <= ACCEPTED_ERROR
    assert np.linalg.norm(guide[:3] - target) > tolerance


def test_a_base_out_of_reach_is_a_violation_with_its_amount(scene, generator):
    guide = scene.ROBOT.posture("half_sitting")
    high = guide[:3] + np.array([0.0, 0.0, 0.5])
    result = generator.generate(scene.feet(), None, guide, base=BaseTarget(high, 0.05))
    assert not result.found
    place = next(v for v in result.violations if v.kind == "base")
    assert place.thing == "place"
    beyond = np.linalg.norm(result.q[:3] - high) - 0.05
    assert place.amount == pytest.approx(beyond, abs=2e-6)
    over = turned(guide) * Rotation.from_euler("x", 2.0)
    result = generator.generate(scene.feet(), None, guide, base=BaseTarget(guide[:3], 0.2, over.as_matrix(), 0.1))
    assert any((v.kind, v.thing) == ("base", "orientation") for v in result.violations)
    assert "orientation" in result.reason
