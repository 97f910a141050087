import numpy as np
import pytest

from tests.sim.torque_jumps import jumps

TICKS, DT = 300, 1e-3


@pytest.fixture
def calm():
    """A run of two contacts in which nothing happens."""
    wrench, tau = np.zeros((TICKS, 2, 6)), np.zeros((TICKS, 3))
    wrench[:, :, 2] = 100.0
    return wrench, np.ones((TICKS, 2), bool), tau


def test_the_largest_change_of_a_torque_and_of_a_force_in_a_tick_is_found(calm):
    wrench, active, tau = calm
    tau[200:, 1] -= 4.0
    tau[100:, 2] += 3.0
    wrench[150:, 1, :3] += (3.0, 0.0, 4.0)
    wrench[170:, 0, 3:] += 50.0  # a moment is no force
    tau[30:, 0] += 9.0  # at the start supports take up the weight
    assert jumps(wrench, active, tau, DT) == (200, 4.0, 5.0)


@pytest.mark.parametrize("felt", [True, False])
def test_what_follows_a_touch_does_not_count(calm, felt):
    """A patch touches where its contact closes, or where it begins to bear something."""
    wrench, active, tau = calm
    if felt:
        wrench[:100, 1] = 0.0
    else:
        active[:100, 1] = False
    tau[140:, 1] += 4.0
    tau[160:, 1] += 1.0
    assert jumps(wrench, active, tau, DT) == (160, 1.0, 0.0)
    wrench[120:, 1] = 0.0  # what lets go is no touch
    tau[210:, 2] += 2.0
    assert jumps(wrench, active, tau, DT)[:2] == (210, 2.0)
