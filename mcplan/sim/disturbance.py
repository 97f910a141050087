"""Disturbances of a simulation and their validation: pushes, torque delay and noise, sensor noise."""

from collections import deque

import numpy as np

from mcplan.errors import InputError, Problem, ScenarioError
from mcplan.robot.robot import Robot
from mcplan.scenario.check import unsupported_freedoms
from mcplan.scenario.scenario import Scenario
from mcplan.scene.spec import ContactSpec
from mcplan.settings.disturbance import Imperfections, Push
from mcplan.settings.simulation import SimulationSettings
from mcplan.whole_body.settings import solver_options


class Disturbance:
    """Pushes, actuator errors and sensor noise of one run.

    Parameters
    ----------
    robot : its torque limits bound the noisy torques.
    settings : settings of the simulation.
    dt : physics step, s.
    seed : seed of all noise; torques and measurements have separate generators.
    """

    def __init__(self, robot: Robot, settings: SimulationSettings, dt: float, seed: int):
        self.robot, self.pushes, self._imperfections = robot, settings.pushes, settings.imperfections
        self._torque_rng, self._sensor_rng = (np.random.default_rng([seed, k]) for k in (4, 5))
        self._torque_limit = robot.limits.torque
        self._max_torque = self._torque_limit if settings.torque_limits else np.full(robot.n, np.inf)
        self._delay_line: deque[np.ndarray] = deque(maxlen=1 + round(self._imperfections.torque_delay / dt))

    def measured(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the measured state (7+n,), (6+n,); the pose of a fixed base is exact."""
        if self._imperfections.position_noise:
            q = self.robot.integrate(q, self._noise(self._imperfections.position_noise), 1.0)
        if self._imperfections.velocity_noise:
            v = v + self._noise(self._imperfections.velocity_noise)
        return q, v

    def _noise(self, deviation: float) -> np.ndarray:
        """Return sensor errors (6+n,); the number of draws does not depend on whether the base is fixed."""
        noise = deviation * self._sensor_rng.standard_normal(self.robot.nv)
        if self.robot.fixed:
            noise[:6] = 0.0
        return noise

    def delivered(self, tau: np.ndarray) -> np.ndarray:
        """Return the torques (n,) that act in a step with the command ``tau`` (n,), N m.

        Until the delay has passed, the first command acts.
        """
        if self._delay_line.maxlen != 1:
            self._delay_line.append(tau)
            tau = self._delay_line[0]
        if not self._imperfections.torque_noise:
            return tau
        noise = self._imperfections.torque_noise * self._torque_limit * self._torque_rng.standard_normal(len(tau))
        return np.clip(tau + noise, -self._max_torque, self._max_torque)

    def external(self, t: float, q: np.ndarray) -> np.ndarray | None:
        """Return the generalised force (6+n,) of all pushes at time t (s), or None if there is no push then."""
        if not self.pushes:
            return None
        forces = [push_force(self.robot, q, p) for p in self.pushes if p.start <= t + 1e-9 < p.start + p.duration]
        return np.sum(forces, axis=0) if forces else None


def push_force(robot: Robot, q: np.ndarray, push: Push) -> np.ndarray:
    """Return the generalised force (6+n,) of a push: ``J' f``, with the Jacobian ``J`` of its point of application."""
    X, J = robot.frame_pose(q, push.link), robot.frame_jacobian(q, push.link)
    force = np.array(push.force, float)
    arm = X[:3, :3] @ np.array(push.point, float)
    return J[:3].T @ force + J[3:].T @ np.cross(arm, force)


def steps_per_tick(scenario: Scenario) -> int:
    """Return the number of physics steps per control step.

    Raises
    ------
    ScenarioError
        ``control.rate`` is not the rate of the physics divided by an integer.
    """
    rate, dt = scenario.control.rate, scenario.simulation.dt
    steps = 1 if rate is None else round(1 / (rate * dt))
    if rate is not None and (steps < 1 or abs(steps * rate * dt - 1) > 1e-6):
        nearest = 1 / (max(steps, 1) * dt)
        message = (
            f"{rate:g} Hz is not {1 / dt:g} Hz (simulation.dt) divided by a whole number; the nearest is {nearest:g}"
        )
        raise ScenarioError(scenario.document.problem(("control", "rate"), message))
    return steps


def validate_disturbances(scenario: Scenario, physics: str, custom_controller: bool = False) -> None:
    """Reject disturbances and free contact directions that are impossible or not supported by a back end.

    Parameters
    ----------
    physics : name of the back end.
    custom_controller : whether a custom controller computes the torques; then free contact directions are allowed.

    Raises
    ------
    ScenarioError
        A disturbance or contact is not possible; the error lists all problems with their lines.
    """
    settings, document = scenario.simulation, scenario.document
    problems: list[Problem] = []
    try:
        solver_options(scenario.control.solver)
    except InputError as error:
        problems.append(document.problem(("control", "solver"), str(error)))
    if physics != "qp" and not custom_controller and scenario.control.type == "whole_body":
        start = tuple(ContactSpec.model_validate(contact.to_data()) for contact in scenario.start.contacts)
        is_single_goal = not isinstance(document.data.get("goal"), list)
        for key, message in unsupported_freedoms(
            scenario.robot, start, scenario.goal, scenario.stances, is_single_goal, physics
        ):
            problems.append(document.problem(key, message))
    if physics == "qp":
        reason = "needs physics contact or mujoco; in qp the program's accelerations are exact"
        names = [name for name in ("joint_friction", "joint_damping", "pushes", "payloads") if getattr(settings, name)]
        unsupported_keys: list[tuple[str, ...]] = [("simulation", name) for name in names]
        for name, value in settings.imperfections:
            if value != Imperfections.model_fields[name].default:
                unsupported_keys.append(("simulation", "imperfections", name))
        if steps_per_tick(scenario) > 1:
            unsupported_keys.append(("control", "rate"))
        problems += [document.problem(key, reason) for key in unsupported_keys]
    if settings.imperfections.torque_noise and not np.isfinite(scenario.robot.limits.torque).all():
        k = int(np.flatnonzero(~np.isfinite(scenario.robot.limits.torque))[0])
        message = f"is a fraction of the torque limit, which joint {scenario.robot.joint_names[k]} does not have"
        problems.append(document.problem(("simulation", "imperfections", "torque_noise"), message))
    start_supports = {contact.support for contact in scenario.start.contacts}
    for name in ("ground_height", "ground_tilt"):
        if getattr(settings.imperfections, name) and start_supports >= {s.name for s in scenario.environment.surfaces}:
            message = "the robot stands on all surfaces at the start, and those are not displaced"
            problems.append(document.problem(("simulation", "imperfections", name), message))
    if problems:
        raise ScenarioError(*problems)
