"""In MuJoCo weight goes from one sole to the other without chatter."""

from mcplan.planning import plan
from mcplan.scene import load_scenario
from mcplan.sim.simulate import Simulation
from tests.sim.torque_jumps import jumps

SHIFTED = 2.6
"""s: after the first step the weight is on the other foot by then, and nothing has been lifted."""


def test_forces_of_soles_do_not_jump_while_weight_is_shifted():
    simulation = Simulation(plan(load_scenario("walk", {"control.pace": "swift"})), "mujoco")
    while simulation.t < SHIFTED:
        simulation.step()
    run = simulation.finish()
    assert run.wrench[-1, :, 2].min() < 0.3 * run.wrench[-1, :, 2].max()
    _, torque, force = jumps(run.wrench, run.active, run.tau, run.dt)
    assert force < 20.0
    assert torque < 2.0
