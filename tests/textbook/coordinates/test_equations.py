"""Three derivations of the equation of motion, and the kernels: one result."""

import numpy as np
import pytest

import mcplan as mc
from mcplan.errors import InputError
from tests.arm import arm


@pytest.mark.parametrize("name", ["hrp2", "arm7"])
def test_the_three_ways_agree_with_each_other_and_with_the_kernels(name):
    robot, random = mc.load_robot(name), np.random.default_rng(0)
    for _ in range(2):
        q, v = robot.random_configuration(random), random.normal(size=robot.nv)
        M, h = robot.mass_matrix(q), robot.nonlinear_effects(q, v)
        for method, tolerance in (("projected", 1e-10), ("newton-euler", 1e-10), ("lagrange", 1e-7)):
            found = mc.equations_of_motion(robot, q, v, method)
            np.testing.assert_allclose(found.M, M, atol=tolerance * np.abs(M).max(), err_msg=method)
            np.testing.assert_allclose(found.b + found.g, h, atol=tolerance * np.abs(h).max(), err_msg=method)
            gravity = robot.nonlinear_effects(q, np.zeros(robot.nv))
            np.testing.assert_allclose(found.g, gravity, atol=tolerance * np.abs(h).max(), err_msg=method)


def test_another_way_is_not_known_and_a_batch_is_no_state():
    with pytest.raises(InputError, match=r"q has the shape \(2, 14\); expected \(14,\)"):
        mc.equations_of_motion(arm(), np.tile(arm().neutral(), (2, 1)), np.zeros(13))
    with pytest.raises(InputError, match="'hamilton'"):
        mc.equations_of_motion(arm(), arm().neutral(), np.zeros(13), "hamilton")
