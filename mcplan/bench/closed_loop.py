"""Benchmark of closed-loop simulation, relative to real time: state machine, controller, physics, record, file.

Also a benchmark of one step of the contact physics and one of MuJoCo, with the same robot, floor and torques.
"""

import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from mcplan.bench.kernels import median
from mcplan.planning.plan import Plan
from mcplan.planning.planner import plan
from mcplan.robot.robot import Robot
from mcplan.scenario.load import load_scenario
from mcplan.scene.environment import Environment, Surface
from mcplan.sim.contact.contact_physics import ContactPhysics
from mcplan.sim.physics import Action
from mcplan.sim.simulate import Simulation

PHYSICS = ("qp", "contact")
"""Measured back ends: those that need no other package."""


@dataclass(frozen=True)
class ClosedLoop:
    """Times of one simulation.

    Parameters
    ----------
    simulated : simulated time, s.
    clock_time : clock time, s, from the creation of the controller to the written file of the run.
    steps : number of steps.
    tick_p999_us : 99.9th percentile of the control tick, µs: ticks in which motions start or contacts close.
    parts_us : median time per step by name of the part, µs, as measured by controller and physics.
    """

    simulated: float
    clock_time: float
    steps: int
    tick_p999_us: float
    parts_us: dict[str, float]

    @property
    def real_time_factor(self) -> float:
        """Simulated time divided by clock time."""
        return self.simulated / self.clock_time


def prepare(scenario: str, steps: int | None = None, seed: int = 0) -> Plan:
    """Plan a scenario and simulate it once with each back end, so that the measurement finds all kernels compiled."""
    motion_plan = plan(load_scenario(scenario), seed=seed)
    for physics in PHYSICS:
        measure(motion_plan, steps, physics)
    return motion_plan


def measure(motion_plan: Plan, steps: int | None = None, physics: str = "qp") -> ClosedLoop:
    """Simulate a plan to its end or for ``steps`` steps, write the record to a file, and return the times.

    The step is that of the scenario (default 1 ms).
    """
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        simulation = Simulation(motion_plan, physics)
        while (steps is None or simulation.index < steps) and simulation.step() is not None:
            pass
        run = simulation.finish()
        run.save(Path(directory) / "run.npz")
        clock_time = time.perf_counter() - start
    parts = {name: float(np.median(seconds)) * 1e6 for name, seconds in run.timing.items()}
    tick_p999 = float(np.percentile(run.timing["control"], 99.9)) * 1e6
    return ClosedLoop(simulation.t, clock_time, simulation.index, tick_p999, parts)


PATCHES = ("left_sole", "right_sole")
"""Patches on which the robot stands."""

STIFFNESS, DAMPING = 3000.0, 60.0
"""Gains of the servos that hold the posture, N m/rad and N m s/rad, for a joint with a torque limit of 150 N m; the
gains of other joints are proportional to their limit, up to these values."""

DT = 1e-3
"""s: step of the physics."""


def steps_us(robot: Robot, steps: int) -> dict[str, float]:
    """Return the median time of a physics step (µs) by back end, measured one step of each in turn.

    HRP-2 stands on both soles with eight contact points, held by servos. For ``contact`` the whole call counts,
    including its result; for ``mujoco``, if installed, only MuJoCo's own step, without reading its state.
    """
    floor = Surface("floor", np.eye(3), np.zeros(3), np.array([[-2.0, -2], [2, -2], [2, 2], [-2, 2]]))
    environment, q = Environment(surfaces=(floor,)), robot.posture("half_sitting")
    share = np.minimum(robot.limits.torque / 150, 1.0)

    def torque(state: np.ndarray, rate: np.ndarray) -> np.ndarray:
        return share * (STIFFNESS * (q[7:] - state[7:]) - DAMPING * rate[6:])

    ours, peer = ContactPhysics(robot, environment, q, PATCHES), None
    if find_spec("mujoco") is not None:
        from mcplan.sim.mujoco.physics import MujocoPhysics

        peer = MujocoPhysics(robot, environment, q, patches=PATCHES)
    times: dict[str, list[float]] = {name: [] for name in (("contact",) if peer is None else ("contact", "mujoco"))}
    for _ in range(steps):
        action = Action(torque(ours.q, ours.v), np.zeros(robot.nv), {}, {}, PATCHES)
        start = time.perf_counter()
        ours.step(action, DT)
        times["contact"].append(time.perf_counter() - start)
        if peer is not None:
            tau = torque(peer.q, peer.v)
            start = time.perf_counter()
            peer.advance(tau, DT)
            times["mujoco"].append(time.perf_counter() - start)
            peer.read_state()
    return {name: 1e6 * median(values[steps // 10 :]) for name, values in times.items()}
