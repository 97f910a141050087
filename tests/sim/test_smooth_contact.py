"""In MuJoCo weight goes from one sole to the other without chatter."""

import numpy as np

from mcplan.sim.simulate import Simulation
from tests import shared

SHIFTED, FELT = 2.6, 0.1
"""s: after the first step the weight is on the other foot by then, and nothing has been lifted; so long a touchdown is
felt."""


def test_forces_of_soles_do_not_jump_while_weight_is_shifted():
    simulation = Simulation(shared.planned("walk", control__pace="fast"), "mujoco")
    while simulation.t < SHIFTED:
        simulation.step()
    run = simulation.finish()
    assert run.wrench[-1, :, 2].min() < 0.3 * run.wrench[-1, :, 2].max()
    touched = np.flatnonzero(run.active[:-1].sum(axis=1) < run.active[1:].sum(axis=1)).max()
    changes = np.linalg.norm(np.diff(run.wrench[touched + round(FELT / run.dt) :, :, :3], axis=0), axis=2)
    assert len(changes) > 500
    assert changes.max() < 20.0
