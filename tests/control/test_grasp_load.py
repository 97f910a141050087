"""A grip that is let go of keeps the moment that it bears at first: its limits sink from there."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.control.command import LoadedContact, Ramp
from mcplan.control.controller import WholeBodyController


def controller(kind, wrench, commanded=None):
    contact = SimpleNamespace(kind=kind, max_moment=20.0, max_force=200.0, normal=np.array([0.0, 0.0, 1.0]))
    made = WholeBodyController.__new__(WholeBodyController)
    hand = LoadedContact(contact, Ramp(0, 100.0, 0, 0), 100.0)
    half = {3.0: 0.5}
    made.motion = SimpleNamespace(contacts={"hand": hand}, targets={}, object_supports={}, grip_share=half.__getitem__)
    made._t = 3.0
    made._wrenches = {"hand": np.array(wrench)}
    made._commanded = made._wrenches if commanded is None else {"hand": np.array(commanded)}
    return made


@pytest.mark.parametrize(
    ("wrench", "load"),
    [([30.0, 0, 40.0, 0, 0, 0], 50.0), ([3.0, 0, 4.0, 0, 8.0, 0], 80.0), ([3.0, 0, 4.0, 0, 30.0, 0], 100.0)],
)
def test_a_moment_counts_as_the_force_at_which_it_is_allowed(wrench, load):
    # half of 20 N m is used; 8 N m of these 10 at 80 N of 100
    assert controller("grasp", wrench).load("hand") == pytest.approx(load)


def test_a_surface_counts_by_its_normal_force():
    assert controller("surface", [9.0, 0, 4.0, 0, 8.0, 0]).load("hand") == pytest.approx(4.0)


@pytest.mark.parametrize(("measured", "load"), [(0.0, 9.0), (12.0, 12.0)])
def test_what_lets_go_for_a_moment_still_counts_by_what_is_asked_of_it(measured, load):
    found = controller("surface", [0.0, 0.0, measured, 0.0, 0.0, 0.0], [0.0, 0.0, 9.0, 0.0, 0.0, 0.0])
    assert found.load("hand") == pytest.approx(load)
