"""The pace of motions as scenarios write it."""

import numpy as np
import pytest

from mcplan.errors import ScenarioError
from mcplan.scenario.load import load_scenario
from mcplan.settings.control import ControlSettings
from mcplan.settings.pace import Pace, used_fraction


def test_slow_is_none_and_fast_is_the_default():
    assert ControlSettings(pace="slow").pace is None
    assert ControlSettings(pace="fast").pace == ControlSettings().pace == Pace()
    assert ControlSettings(pace={"friction": 0.5}).pace == Pace(friction=0.5)


def test_the_fastest_pace_leaves_less_of_each_limit_than_the_fast_one():
    fast, fastest = (ControlSettings(pace=name).pace for name in ("fast", "fastest"))
    assert fastest.pressure < fast.pressure
    for name in ("friction", "force", "torque", "velocity"):
        assert getattr(fast, name) < getattr(fastest, name) < 1.0


def test_the_times_of_ramps_and_the_search_for_supports_follow_from_it_unless_a_file_gives_them():
    fast = ControlSettings(pace={"ramp": 0.08, "touchdown_speed": 0.1}).under("mujoco")
    assert (fast.timing.unload_time, fast.timing.load_time, fast.timing.descent_speed) == (0.08, 0.04, 0.1)
    own = ControlSettings(pace="fast", timing={"unload_time": 0.2, "descent_speed": 0.03}).under("mujoco")
    assert (own.timing.unload_time, own.timing.descent_speed) == (0.2, 0.03)
    slow = ControlSettings(pace="slow")
    assert slow.under("mujoco").timing.unload_time == slow.timing.unload_time == 0.3
    assert ControlSettings(pace="fast").under("qp").timing.unload_time == Pace().ramp


def test_contacts_are_stiffer_at_a_quick_pace_only_where_they_do_not_give():
    for pace, stiffness in (("slow", 100.0), ("fast", 400.0)):
        settings = ControlSettings(pace=pace)
        assert settings.under("qp").gains.contact_kp == settings.under("qp").gains.contact_normal_kp == stiffness
        for physics in ("contact", "mujoco"):
            gives = settings.under(physics)
            assert (gives.gains.contact_kp, gives.gains.contact_normal_kp) == (100.0, 0.0)


@pytest.mark.parametrize(
    ("pace", "message"),
    [
        ("quick", "control.pace: expected `slow`, `fast`, `fastest`, or a mapping of friction"),
        (3, "control.pace: expected `slow`, `fast`, `fastest`, or a mapping"),
        ({"frction": 0.5}, "control.pace.frction: unknown key; did you mean `friction`"),
        ({"torque": 1.5}, "control.pace.torque: expected a number <= 1, got 1.5"),
        ({"touchdown_speed": 0}, "control.pace.touchdown_speed: expected"),
    ],
)
def test_what_is_no_pace_is_told_with_its_key_and_what_was_expected(pace, message):
    with pytest.raises(ScenarioError) as refusal:
        load_scenario("step", {"control.pace": pace})
    assert message in str(refusal.value)


@pytest.mark.parametrize(("paced", "counted"), [(0.5, 0.9), (0.9, 0.5), (0.8, 1.2)])
def test_the_more_of_its_reserve_a_motion_keeps_the_less_of_a_limit_it_uses(paced, counted):
    """With all of it what the pace uses, with none what the controller counts on; in between in proportion."""
    assert used_fraction(paced, counted, 1.0) == pytest.approx(min(paced, counted))
    assert used_fraction(paced, counted, 0.0) == pytest.approx(min(counted, 1.0))
    parts = [used_fraction(paced, counted, kept) for kept in np.linspace(0.0, 1.0, 11)]
    assert np.all(np.diff(parts) <= 1e-12)
    assert used_fraction(0.4, 0.8, 0.25) == pytest.approx(0.7)
