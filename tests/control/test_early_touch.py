"""A support that is met before the path comes down to it ends the swing; one elsewhere does not."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.control.criteria import Measurement
from mcplan.control.phases import Swing
from mcplan.scene.settings import ControlSettings

SETTINGS = ControlSettings().under("contact")


def ended_by(place, force, settings=SETTINGS, elapsed=0.2):
    """Return what ends a swing of 1 s whose patch is at a place (m, from the planned one) and feels a force (N)."""
    contact = SimpleNamespace(patch="sole", p=np.zeros(3), normal=np.array([0.0, 0.0, 1.0]), kind="surface")
    motion = SimpleNamespace(
        settings=settings, targets={"sole": contact}, limbs={"sole": SimpleNamespace(approach_time=6.0)},
        feels=lambda contact: settings.touch_force > 0.0,
    )  # fmt: skip
    now = SimpleNamespace(pose=lambda patch: (np.eye(3), np.array(place)))
    criterion = Swing(1, "sole").enter(motion, 5.0, now)
    criterion.met(Measurement(elapsed - settings.touch_time, force={"sole": force}))
    return criterion.met(Measurement(elapsed, force={"sole": force}))


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
