"""Benchmark of closed-loop simulation, relative to real time: state machine, controller, physics, record, file.

One step of the contact physics, beside one of MuJoCo: the same robot, floor and torques.
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
"""Measured back ends; they need no other package."""


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
    """Plan and simulate the scenario as in the measurement, so that its kernels are loaded."""
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


SOLES = ("left_sole", "right_sole")

STIFFNESS, DAMPING = 3000.0, 60.0
"""Gains of the servos that hold the posture, N m/rad and N m s/rad for a joint of 150 N m."""

DT = 1e-3
"""s."""


def steps_us(robot: Robot, steps: int) -> dict[str, float]:
    """Return the median time of a step (µs) by back end; one step of each in turn.

    HRP-2 stands on both soles, eight contact points, held by servos. ``contact`` is the whole call with its answer;
    ``mujoco``, where it is installed, its own step alone, without reading anything back.
    """
    floor = Surface("floor", np.eye(3), np.zeros(3), np.array([[-2.0, -2], [2, -2], [2, 2], [-2, 2]]))
    environment, q = Environment(surfaces=(floor,)), robot.posture("half_sitting")
    share = np.minimum(robot.limits.torque / 150, 1.0)

    def torque(state: np.ndarray, rate: np.ndarray) -> np.ndarray:
        return share * (STIFFNESS * (q[7:] - state[7:]) - DAMPING * rate[6:])

    ours, peer = ContactPhysics(robot, environment, q, SOLES), None
    if find_spec("mujoco") is not None:
        from mcplan.sim.mujoco.physics import MujocoPhysics

        peer = MujocoPhysics(robot, environment, q, patches=SOLES)
    times: dict[str, list[float]] = {name: [] for name in (("contact",) if peer is None else ("contact", "mujoco"))}
    for _ in range(steps):
        action = Action(torque(ours.q, ours.v), np.zeros(robot.nv), {}, {}, SOLES)
        begin = time.perf_counter()
        ours.step(action, DT)
        times["contact"].append(time.perf_counter() - begin)
        if peer is not None:
            tau = torque(peer.q, peer.v)
            begin = time.perf_counter()
            peer.advance(tau, DT)
            times["mujoco"].append(time.perf_counter() - begin)
            peer.read_state()
    return {name: 1e6 * median(found[steps // 10 :]) for name, found in times.items()}
