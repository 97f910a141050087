"""What is finite, and what is not."""

import numpy as np
import pytest

from mcplan.core.finite import all_finite


@pytest.mark.parametrize("value", [0.0, -1e308, 5e-324])
def test_numbers_are_finite_however_large_or_small(value):
    assert all_finite(np.full(39, value))


@pytest.mark.parametrize("place", [0, 20, 38])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_entry_that_is_not_makes_the_vector_not_finite(place, value):
    x = np.linspace(-1.0, 1.0, 39)
    x[place] = value
    assert not all_finite(x)
