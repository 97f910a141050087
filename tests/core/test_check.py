import numpy as np
import pytest

from mcplan.core.bundle import NOT_A_UNIT_QUATERNION, NOT_FINITE, SOUND, check

Q = np.r_[0.0, 5.0, 0.0, 0.5, 0.5, -0.5, 0.5, 3.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("is_q", [True, False])
def test_every_number_must_be_finite(bad, is_q):
    for k in range(len(Q)):
        array = Q.copy()
        array[k] = bad
        assert check(array, is_q) == NOT_FINITE


def test_only_a_configuration_needs_a_unit_quaternion():
    assert check(Q, True) == SOUND
    for scale, status in ((1 + 5e-7, SOUND), (1 + 2e-6, NOT_A_UNIT_QUATERNION), (0.0, NOT_A_UNIT_QUATERNION)):
        array = Q.copy()
        array[3:7] *= scale
        assert check(array, True) == status
        assert check(array, False) == SOUND


@pytest.mark.parametrize("value", [0.0, -1e308, 5e-324])
def test_numbers_are_finite_however_large_or_small(value):
    assert check(np.full(39, value), False) == SOUND
