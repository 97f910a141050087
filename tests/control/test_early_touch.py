"""A support that is met before the path comes down to it ends the swing; one elsewhere does not."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.control.criteria import Measurement, criterion_of
from mcplan.control.phases import TOUCH_TIME_S, Swing, height_over
from mcplan.settings.control import ControlSettings

SETTINGS = ControlSettings().under("contact")


def ended_by(place, force, settings=SETTINGS, elapsed=0.2):
    """Return what ends a swing of 1 s whose patch is at a place (m, from the planned one) and feels a force (N)."""
    contact = SimpleNamespace(patch="sole", p=np.zeros(3), normal=np.array([0.0, 0.0, 1.0]), kind="surface")
    motion = SimpleNamespace(limbs={"sole": SimpleNamespace(approach_time=6.0)})
    swing = Swing(1, contact)
    criterion = criterion_of(swing.until(settings), swing.enter(motion, 5.0, None))
    seen = {"force": {"sole": force}, "height": {"sole": height_over(contact, np.array(place))}}
    criterion.evaluate(Measurement(elapsed - TOUCH_TIME_S, **seen))
    return criterion.evaluate(Measurement(elapsed, **seen))


def test_a_support_that_is_met_early_ends_the_swing():
    assert ended_by((0.005, 0.0, 0.03), 50.0) == "force sole and above sole"


@pytest.mark.parametrize(
    ("place", "force"),
    [((0.05, 0.0, 0.03), 50.0), ((0.0, 0.0, 0.2), 50.0), ((0.0, 0.0, 0.01), 5.0)],
)
def test_a_touch_elsewhere_or_too_light_does_not(place, force):
    assert ended_by(place, force) == ""
    assert ended_by(place, force, elapsed=1.0) == "time"


def test_where_forces_are_not_measured_the_path_is_gone_to_its_end():
    assert ended_by((0.0, 0.0, 0.01), 50.0, ControlSettings()) == ""
