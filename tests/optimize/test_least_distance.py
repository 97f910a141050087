"""Which DAQP is used by its C interface: any patch of the known version that passes the test."""

import importlib.metadata

import pytest

from mcplan.optimize.compiled import least_distance

available = least_distance.native_available.__wrapped__


@pytest.mark.parametrize("version", ["0.11.0", "0.11.1", "0.11.12"])
def test_a_patch_of_the_known_version_is_used_when_it_passes_the_test(monkeypatch, version):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    assert available()


@pytest.mark.parametrize("version", ["0.10.9", "0.12.0", "0.110.0"])
def test_another_version_takes_longer_and_that_is_said(monkeypatch, version):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    with pytest.warns(RuntimeWarning, match=rf"daqp {version}: its layout in memory is not known.*takes longer"):
        assert not available()


def test_a_library_that_fails_the_test_is_not_used(monkeypatch):
    monkeypatch.setattr(least_distance.LeastDistance, "solve", lambda self: -1)
    with pytest.warns(RuntimeWarning, match="a problem with a known solution came out otherwise"):
        assert not available()
