"""The size of a robot, and that plans follow it."""

import warnings

import numpy as np
import pytest

from mcplan.planning.planner import plan
from mcplan.planning.posture.task import PostureSettings
from mcplan.robot.anatomy import HRP2_SCALE, RobotScale
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import load_scenario
from mcplan.settings.control import FROUDE_EXPONENTS, ControlSettings
from tests import shared
from tests.robot.scaled_robot import scaled_robot, scaled_scenario
from tests.sim.other_robots import quadruped

LATTICE = 0.1
"""m: of the places that the search tries first; where two are as good, rounding chooses."""


@pytest.fixture(scope="module", params=[0.5, 1.5])
def larger(request, tmp_path_factory):
    return request.param, scaled_robot(load_robot("hrp2"), tmp_path_factory.mktemp("scaled"), request.param)


def test_hrp2_is_what_figures_are_written_for():
    robot = load_robot("hrp2")
    assert robot.scale == HRP2_SCALE == RobotScale()
    assert PostureSettings().of(robot.scale) == PostureSettings()


def test_the_scale_is_that_by_which_a_robot_is_larger(larger):
    s, path = larger
    assert load_robot(path).scale == RobotScale(s, s, s, s)


def test_a_robot_without_soles_and_arms_is_measured_by_its_legs(tmp_path):
    robot = load_robot(quadruped(tmp_path))
    scale = robot.scale
    assert scale.sole == scale.arm == scale.leg
    assert scale.mass == pytest.approx((robot.mass / load_robot("hrp2").mass) ** (1 / 3), abs=1e-6)


def test_settings_follow_the_size_as_motions_under_gravity_do():
    s = 0.25
    half = ControlSettings().under("contact", RobotScale(s, s, s, s))
    whole = ControlSettings().under("contact")
    assert half.avoidance.swing_clearance == s * whole.avoidance.swing_clearance
    assert half.timing.com_speed == pytest.approx(np.sqrt(s) * whole.timing.com_speed)
    assert half.gains.com_kp == pytest.approx(whole.gains.com_kp / s)
    assert half.contact.touch_force == pytest.approx(s**3 * whole.contact.touch_force)
    groups = {"weights", "gains", "timing", "contact", "avoidance", "recovery"}
    keys = {f"{group}.{key}" for group in groups for key in type(getattr(whole, group)).model_fields}
    changed = {key for key in keys if half.value(key) != whole.value(key)}
    assert changed == set(FROUDE_EXPONENTS)
    assert half.model_dump(exclude=groups) == whole.model_dump(exclude=groups)


def test_settings_of_soles_follow_soles_and_those_of_motions_the_legs():
    whole = ControlSettings().under("contact")
    lengths = {"sole": ["contact.cop_margin", "contact.pressure_margin", "timing.com_tolerance"]}
    lengths["leg"] = ["avoidance.swing_clearance", "contact.touch_height", "timing.limb_speed", "gains.com_kp"]
    lengths["mass"] = ["contact.touch_force", "contact.preload_force"]
    for part in ("leg", "arm", "sole", "mass"):
        one = ControlSettings().under("contact", RobotScale(**{part: 0.5}))
        for other, keys in lengths.items():
            assert all((one.value(key) != whole.value(key)) == (other == part) for key in keys)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "s"), [("walk", 0.5), ("walk", 1.5), ("stairs", 1.5), ("table", 0.5)])
def test_a_robot_of_another_size_plans_the_same_stances(name, s, tmp_path):
    """Geometry, masses and torques scaled alike: the same contacts change in the same order, at places scaled.

    Places agree to two cells of the lattice: where two are equally good, or lie on the border of what is tried, it is
    the last digit that decides, for each of two feet.
    """
    one = load_scenario(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = shared.planned(name)
        there = plan(load_scenario(scaled_scenario(one, scaled_robot(one.robot, tmp_path, s), s)))
    assert [(x.change, x.moved) for x in there.stances] == [(x.change, x.moved) for x in here.stances]
    for x, y in zip(here.stances, there.stances, strict=True):
        assert [c.support for c in x.contacts] == [c.support for c in y.contacts]
        for c, d in zip(x.contacts, y.contacts, strict=True):
            np.testing.assert_allclose(d.p / s, c.p, atol=2 * LATTICE + 1e-3)
