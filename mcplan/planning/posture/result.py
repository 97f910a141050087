"""What the posture generator answers: a posture with its forces, or what it misses."""

from dataclasses import dataclass, field
from html import escape
from time import perf_counter

import numpy as np

from mcplan.amounts import angle, length
from mcplan.html_table import html_of, html_table
from mcplan.planning.posture.violation import Violation
from mcplan.scene.contact import Contact, contact_of
from mcplan.statics.equilibrium import Equilibrium

STAGES = ("region", "reach", "balance", "collision", "forces", "done")
"""How far a call came, in this order; ``done``: the posture is found."""


@dataclass(frozen=True)
class Effort:
    """What a call took.

    Attributes
    ----------
    seconds : wall clock by stage (``region``, ``kinematics``, ``collision``, ``forces``) and ``total``; the only part
        of a result that differs between two runs.
    starts : how many starts were tried.
    steps : steps of the inverse kinematics, each with one quadratic program or two.
    soft_steps : those of them where the constraints contradicted each other.
    collision_checks : calls of the collision model.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    starts: int = 0
    steps: int = 0
    soft_steps: int = 0
    collision_checks: int = 0


class Clock:
    """Counts what a call takes."""

    def __init__(self) -> None:
        self._start = self._last = perf_counter()
        self._seconds: dict[str, float] = {}
        self.starts = self.steps = self.soft_steps = self.collision_checks = 0

    def lap(self, stage: str) -> None:
        """Book the time since the last lap on a stage."""
        now = perf_counter()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def effort(self) -> Effort:
        """Return the counts so far."""
        self._seconds["total"] = perf_counter() - self._start
        return Effort(self._seconds, self.starts, self.steps, self.soft_steps, self.collision_checks)


@dataclass(frozen=True, repr=False)
class PostureResult:
    """A posture and its forces, or the nearest miss.

    Attributes
    ----------
    q : (nq,) the posture; when not found, that of the best attempt.
    contacts : all contacts in the order given; free coordinates are resolved (rounded, so that a file holds them).
    loaded : names of the patches that carry load.
    forces : the equilibrium there; None when the call did not come to the forces.
    margins : ``contact`` largest error of a contact in place (m, rad), ``com_inset`` distance of the centre of mass to
        the edge of its region (m), ``position`` smallest distance to a joint limit (rad or m), ``friction`` (N),
        ``friction_ratio``, ``torque`` (largest share of a limit), ``clearance`` (m); those that were reached.
        The pushes ``equilibrium`` and ``equilibrium_torque`` cost more than the posture: `statics.margins` has them.
    violations : what is missed, the one that stopped the call first; empty when found.
    stage : how far the call came, see `STAGES`.
    effort : what it took.
    """

    q: np.ndarray
    contacts: tuple[Contact, ...]
    loaded: tuple[str, ...]
    forces: Equilibrium | None
    margins: dict[str, float]
    violations: tuple[Violation, ...]
    stage: str
    effort: Effort

    def __repr__(self) -> str:
        return f"PostureResult({'found' if self.found else f'not found: {self.reason}'})"

    def _repr_html_(self) -> str:
        """Return for notebooks what it says of itself, and its margins or what it misses."""
        if self.found:
            table = html_table(["margin", "(m, rad, N, or a share)"], self.margins.items())
        else:
            table = html_table(["what is missed"], [(str(violation),) for violation in self.violations])
        return html_of(self, f"<p>{escape(str(self))}</p>", table)

    def __str__(self) -> str:
        words = {
            "position": lambda margin: f"{angle(margin)} from a joint limit",
            "torque": lambda share: f"{share:.0%} of the torque limit",
            "clearance": lambda distance: f"{length(distance)} clearance",
        }
        if not self.found:
            return f"no posture on {', '.join(c.patch for c in self.contacts)}: {self.reason} (at {self.stage})"
        values = ", ".join(say(self.margins[name]) for name, say in words.items() if name in self.margins)
        return f"posture on {', '.join(c.patch for c in self.contacts)}: {values}"

    @property
    def found(self) -> bool:
        """Whether every requirement holds."""
        return self.stage == "done"

    @property
    def wrenches(self) -> dict[str, np.ndarray]:
        """{patch: (6,)} at the patch origins in world axes (N, N m), of every contact; zero for one without load."""
        return {} if self.forces is None else self.forces.wrenches

    @property
    def point_forces(self) -> dict[str, np.ndarray]:
        """{patch: (k, 3)} forces at the contact points in world axes (N), of loaded contacts."""
        return {} if self.forces is None else self.forces.point_forces

    @property
    def tau(self) -> np.ndarray:
        """Joint torques (n,) that hold the posture (N m)."""
        return np.zeros(0) if self.forces is None else self.forces.tau

    @property
    def reason(self) -> str:
        """What stopped the call, in words; empty when found."""
        return "; ".join(str(violation) for violation in self.violations)

    def contact(self, patch: str) -> Contact:
        """Return the resolved contact of a patch.

        Raises
        ------
        KeyError
            When it is not in contact.
        """
        return contact_of(self.contacts, patch)
