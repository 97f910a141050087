"""Observers of a simulation: progress bars, live views, logs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcplan.control.machine import PhaseEvent
from mcplan.record.world import World
from mcplan.util.text import summary


@dataclass(slots=True)
class StepSample:
    """One simulation step, for observers.

    Attributes
    ----------
    index, t : index of the step, and the time at its beginning (s).
    q, v : (7+n,), (6+n,) configuration and velocity at t.
    tau : (n,) joint torques on [t, t + dt) (N m).
    wrenches : wrench of each patch, (6,) at the patch origin in world axes (N, N m).
    forces : forces of each patch at the contact's points, (k,3), or ``PointForces`` of the back end (N).
    status : status of the control program: 0 solved, 1 slack form, 2 hold, 3 no program.
    phase, phases : number of phases begun so far, and number of all phases; ``phase / phases`` measures the progress.
    objects : (O, 7) poses of the scene's free objects at t; None: there are none.
    """

    index: int
    t: float
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    wrenches: Any
    forces: Any
    status: int
    phase: int
    phases: int
    objects: np.ndarray | None = None

    __repr__ = summary


class Observer:
    """Base class of observers: override the methods of interest. An exception in an observer ends the simulation."""

    def on_world(self, world: World) -> None:
        """Handle the world of the physics, with its payloads and model errors; called before `on_start`."""

    def on_start(self, steps_per_second: float, phases: int) -> None:
        """Handle the start; called before the first step. ``phases`` is the number of phases."""

    def on_step(self, sample: StepSample) -> None:
        """Handle one step."""

    def on_phase(self, event: PhaseEvent) -> None:
        """Handle a phase that begins (``ended_by`` is None) or has ended."""

    def on_end(self, stopped: str | None) -> None:
        """Handle the end; ``stopped`` is the reason of a failure, None if the simulation reached its end."""
