"""Adapter for custom torque controllers, which replace the whole-body controller.

A custom controller is an object with one method::

    class Hold:
        frames = ("tip",)                              # frames whose terms it reads; optional

        def torque(self, t, terms, wrenches):          # time (s), state and dynamics, measured wrenches
            return terms.h[6:]                         # (n,) N m
"""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from mcplan.control.command import Command, Notice
from mcplan.control.machine import PhaseEvent
from mcplan.errors import InputError, SimulationFailed
from mcplan.planning.plan import Plan
from mcplan.robot.terms import Terms
from mcplan.util.qp_status import NO_QP

PHASE = "controlled"
"""Name of the only phase of a run with a custom controller."""


class TorqueController(Protocol):
    """Interface of a custom controller; ``frames`` (names of links and patches) is optional."""

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the joint torques (n,), N m.

        Parameters
        ----------
        t : s.
        terms : state ``terms.q``, ``terms.v`` and its dynamics, with the frames that ``frames`` names.
        wrenches : patch in contact -> wrench (6,) measured during the last step: N, N m, world axes.
        """
        ...


class _Phase(NamedTuple):
    """The only phase of a run with a custom controller."""

    name: str = PHASE
    stance: int = 0


class _Machine:
    """State machine with one state, which ends after ``duration``."""

    def __init__(self) -> None:
        self.phase, self.done = _Phase(), False
        self.phases = self.states = (self.phase,)
        self.events: list[PhaseEvent] = []

    def update(self, t: float, duration: float) -> None:
        if not self.events:
            self.events.append(PhaseEvent(PHASE, 0, t))
        if t >= duration - 1e-9:
            self.events[-1].end, self.events[-1].ended_by, self.done = t, "time", True


class TorqueDriven:
    """Run a custom torque controller in place of the whole-body controller, and validate its torques.

    Parameters
    ----------
    plan : Plan; its first stance defines the patches in contact.
    controller : computes the torques.
    duration : duration of the run (s).
    """

    def __init__(self, plan: Plan, controller: TorqueController, duration: float):
        if not callable(getattr(controller, "torque", None)):
            raise InputError(
                f"a controller has a method torque(t, terms, wrenches) that returns the joint torques; "
                f"{type(controller).__name__} has none"
            )
        if not duration > 0.0:
            raise InputError(f"duration = {duration}, expected a time in s")
        self.robot, self.controller, self.duration = plan.scenario.robot, controller, float(duration)
        frames: Sequence[str] = getattr(controller, "frames", ())
        self.terms = Terms(self.robot, frames)
        self.machine, self.notices = _Machine(), list[Notice]()
        self._active = plan.stances[0].patches
        self._zero_vd = np.zeros(self.robot.nv)

    @property
    def com_reference(self) -> np.ndarray:
        """The measured centre of mass (3,), m."""
        return self.terms.com

    def step(
        self,
        t: float,
        q: np.ndarray,
        v: np.ndarray,
        wrenches: Mapping[str, np.ndarray] | None = None,
        objects: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Command:
        """Return the command for a state; see `control.controller.WholeBodyController.step`.

        Raises
        ------
        SimulationFailed
            The controller's torques have another shape, or are not numbers.
        """
        clock = time.perf_counter()
        self.terms.update(q, v)
        self.machine.update(t, self.duration)
        tau = np.asarray(self.controller.torque(t, self.terms, wrenches or {}), float)
        name = type(self.controller).__name__
        if tau.shape != (self.robot.n,):
            raise SimulationFailed(
                f"{name}.torque returned an array of shape {tau.shape} at t = {t:g} s, expected ({self.robot.n},)",
                "not a torque",
            )
        if not np.isfinite(tau).all():
            joint = self.robot.joint_names[int(np.argmin(np.isfinite(tau)))]
            raise SimulationFailed(
                f"{name}.torque is {tau[~np.isfinite(tau)][0]} at {joint}, t = {t:g} s", "not a number"
            )
        timing = {"program": time.perf_counter() - clock}
        phase = self.machine.phase
        return Command(self._zero_vd, tau, {}, {}, NO_QP, (phase.name, phase.stance), self._active, timing=timing)
