"""One step of the contact physics, beside one of MuJoCo: the same robot, floor and torques."""

import time
from importlib.util import find_spec

import numpy as np

from mcplan.bench.clock import median
from mcplan.model.robot import Robot
from mcplan.scene.environment import Environment, Surface
from mcplan.sim.contact.contact_physics import ContactPhysics
from mcplan.sim.physics import Action

SOLES = ("left_sole", "right_sole")

STIFFNESS, DAMPING = 3000.0, 60.0
"""Of the servos that hold the posture, N m/rad and N m s/rad for a joint of 150 N m."""

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
