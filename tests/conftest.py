"""Fixtures of all tests; `tests.shared` makes what they give."""

import pytest

import mcplan as mc
from tests import shared


@pytest.fixture(scope="session")
def hrp2():
    """HRP-2."""
    return shared.robot()


@pytest.fixture(scope="session")
def floor():
    """A level floor, 4 m by 4 m."""
    return mc.Surface("floor", size=(4, 4))


@pytest.fixture(scope="session")
def soles():
    """Both soles of HRP-2 on the floor, below half-sitting."""
    return shared.soles()


@pytest.fixture(scope="session")
def short_run():
    """20 ticks of `sway` in `qp`."""
    return shared.short_run()
