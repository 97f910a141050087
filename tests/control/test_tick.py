"""Nothing that takes long happens in a tick: no code is loaded, and no program is asked for that has no solution."""

import subprocess
import sys

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.control import stepping
from mcplan.control.avoidance import Avoidance
from mcplan.control.task_set import TORQUE_RATE_FACTOR
from mcplan.sim.simulate import Simulation
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.whole_body import WholeBodyQP
from tests import shared
from tests.pages import ROOT

FIRST_STEP = 1.9
"""s that the first step of ``walk`` takes at fast."""

LOADED = f"""
import numba.core.event as event
import mcplan as mc
from mcplan.control.controller import WholeBodyController

step, loaded = WholeBodyController.step, []

def recorded(self, t, *arguments, **options):
    with event.install_recorder("numba:llvm_lock") as recorder:
        command = step(self, t, *arguments, **options)
    if recorder.buffer:
        loaded.append(round(t, 3))
    return command

WholeBodyController.step = recorded
simulation = mc.Simulation(mc.plan(mc.load_scenario("walk", {{"control.pace": "fast"}})), "contact")
while simulation.t < {FIRST_STEP}:
    simulation.step()
print(loaded)
"""


@pytest.mark.slow
def test_compiled_code_is_loaded_before_the_first_tick():
    """A separate process: this one has loaded it."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("physics", ["contact", "mujoco"])
def test_a_foot_is_let_go_by_programs_that_have_solutions(physics, monkeypatch):
    """What a foot may bear sinks to nothing; it stays closed for a tick or two until it is felt to bear nothing.

    Support regions, which are linear programs, have been found before; so has what is near at the ends of motions and
    fixed by contacts, and the constraints of contacts have been made.
    """
    asked, without, late = [], [], []
    attempt = WholeBodyQP.conclude

    def watched(self, *inputs):
        solution = attempt(self, *inputs)
        asked.append(len(self.contacts))
        if solution is None:
            without.append(simulation.t)
        return solution

    monkeypatch.setattr(WholeBodyQP, "conclude", watched)
    simulation = Simulation(shared.planned("walk", control__pace="fast"), physics)
    for place, name in (
        (stepping, "support_region"), (Avoidance, "_ends"), (CollisionModel, "fixed_by"),
        (ContactConstraint, "__init__"),
    ):  # fmt: skip
        do = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *of, do=do, name=name, **by: (late.append(name), do(*of, **by))[1])
    while simulation.t < FIRST_STEP:
        simulation.step()
    assert set(asked) == {1, 2}
    assert asked[-1] == 2  # the foot has touched again
    assert without == []
    assert late == []


@pytest.mark.parametrize("physics", ["qp", "contact"])
def test_torques_jump_nowhere_but_where_a_patch_touches(physics):
    """Neither where they are those of the program, nor with joint impedance on top."""
    simulation = Simulation(shared.planned("walk", control__pace="fast"), physics)
    while simulation.t < FIRST_STEP + 0.6:  # while weight is shifted, too
        simulation.step()
    run = simulation.finish()
    jumps = np.abs(np.diff(run.tau, axis=0)).max(axis=1)
    touched = (np.diff(run.active.astype(int), axis=0) > 0).any(axis=1)
    assert touched.any()
    step = run.dt * run.scenario.control_in(physics).gains.torque_rate
    for k in np.flatnonzero(touched):  # the controller knows some ticks later
        touched[k : k + 10] = True
    assert (
        step - 1e-5 < jumps[~touched].max() < TORQUE_RATE_FACTOR * step + 1e-5
    )  # there are ticks that would go farther
