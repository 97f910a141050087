"""How much faster than real time a scenario is simulated: state machine, controller, physics, record, file."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mcplan.planning import Plan, plan
from mcplan.scene import load_scenario
from mcplan.sim.simulate import Simulation

PHYSICS = ("qp", "contact")
"""Back ends that are measured; they need no other package."""


@dataclass(frozen=True)
class ClosedLoop:
    """One simulation.

    Parameters
    ----------
    simulated, taken : s; ``taken`` from the making of the controller to the file of the run.
    steps : number of steps.
    tick_p999_us : 99.9th percentile of the control tick, µs: those in which motions begin and contacts close.
    parts_us : name -> median per step, µs: what the controller and the physics say about themselves.
    """

    simulated: float
    taken: float
    steps: int
    tick_p999_us: float
    parts_us: dict[str, float]

    @property
    def real_time_factor(self) -> float:
        """Simulated time over clock time."""
        return self.simulated / self.taken


def prepare(scenario: str, steps: int | None = None, seed: int = 0) -> Plan:
    """Plan the scenario and simulate it as it will be measured, so that kernels are loaded: ways have their own."""
    found = plan(load_scenario(scenario), seed=seed)
    for physics in PHYSICS:
        measure(found, steps, physics)
    return found


def measure(found: Plan, steps: int | None = None, physics: str = "qp") -> ClosedLoop:
    """Simulate a plan with 1 ms steps or what its scenario says, to its end or for ``steps`` steps; keep the record."""
    with tempfile.TemporaryDirectory() as directory:
        begin = time.perf_counter()
        simulation = Simulation(found, physics)
        while (steps is None or simulation.index < steps) and simulation.step() is not None:
            pass
        run = simulation.finish()
        run.save(Path(directory) / "run.npz")
        taken = time.perf_counter() - begin
    parts = {name: float(np.median(seconds)) * 1e6 for name, seconds in run.timing.items()}
    slow = float(np.percentile(run.timing["control"], 99.9)) * 1e6
    return ClosedLoop(simulation.t, taken, simulation.index, slow, parts)
