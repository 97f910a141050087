"""Results of the posture generator: posture, forces and margins, or constraint violations."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from time import perf_counter

import numpy as np

from mcplan.core.posture.rows import ANGLE, DISTANCE, KIND, POINT_HEIGHT
from mcplan.planning.posture.freedom import FrameRows
from mcplan.planning.posture.task import SearchResult
from mcplan.scene.contact import Contact, contact_of
from mcplan.statics.equilibrium import Equilibrium
from mcplan.util.html_table import html_of, html_table
from mcplan.util.text import format_angle, format_length, format_length_or_angle


@dataclass(frozen=True)
class Violation:
    """Constraint violation.

    Attributes
    ----------
    kind : kind of the constraint, see the table.
    thing : name of the patch, joint or pair of links, or ``com``.
    amount : size of the violation, in the unit of the table.

    ===========  =========================  ============================================================
    kind         thing                      amount
    ===========  =========================  ============================================================
    reach        patch                      m, rad: largest distance from its contact
    joint limit  revolute joint             rad: excess of its limit that the contacts would need
    slide limit  prismatic joint            m: excess of its limit that the contacts would need
    equilibrium  ``com``                    m: distance of the centre of mass outside its support region
    friction     patches that carry load    N: force missing for equilibrium; more friction would supply it
    load         patches that carry load    N: force missing for equilibrium, which no friction would supply
    torque       joint                      torque above the allowed one, as a share of the torque limit
    collision    ``link and link``          m: distance missing to the smallest allowed one
    com          ``com``                    m: distance of the centre of mass from the requested one
    base         ``place`` or               m or rad: distance of the base outside the tolerance
                 ``orientation``
    clearance    patch                      m: distance missing between a lifted patch and a surface or its neighbour
    continuity   joint or ``the base``      rad or m: deviation from the posture at the end of the path on held contacts
    passage      ``link and link``          m: distance missing to the smallest allowed one along the best path
    passage      patch                      m, rad: error of contacts or excess of joint limits along the best path
    ===========  =========================  ============================================================
    """

    kind: str
    thing: str
    amount: float

    @property
    def of_two(self) -> bool:
        """Whether the violation concerns two bodies."""
        return " and " in self.thing

    def __str__(self) -> str:
        texts = {
            "reach": f"{self.thing} stays {format_length_or_angle(self.amount)} away from its contact",
            "joint limit": f"{self.thing} would have to go {format_angle(self.amount)} beyond its limit",
            "slide limit": f"{self.thing} would have to slide {format_length(self.amount)} beyond its limit",
            "equilibrium": f"the centre of mass stays {format_length(self.amount)} outside its support region",
            "friction": f"{self.thing} slip: {self.amount:.0f} N are missing for balance",
            "load": f"{self.thing} cannot carry the robot: {self.amount:.0f} N are missing for balance",
            "torque": f"{self.thing} needs {self.amount:.0%} of its torque limit more than allowed",
            "collision": f"{self.thing} come {format_length(self.amount)} too close",
            "com": f"the centre of mass stays {format_length(self.amount)} away from its target",
            "base": f"the base stays {(format_length if self.thing == 'place' else format_angle)(self.amount)} "
            f"outside the tolerance of its {self.thing}",
            "clearance": f"{self.thing}, in the air, comes {format_length(self.amount)} too close to a surface or its "
            "neighbour",
            "passage": f"along the path {self.thing} come {format_length(self.amount)} too close"
            if self.of_two
            else f"along the path of {self.thing} contacts or limits are exceeded by {format_length(self.amount)}",
            "continuity": f"on the held contacts {self.thing} stays "
            f"{format_length_or_angle(self.amount)} from the posture",
        }
        return texts[self.kind]


STAGES = ("region", "reach", "balance", "collision", "forces", "done")
"""Stages of a call of the posture generator, in order; ``done`` means that the posture is found."""


@dataclass(frozen=True)
class Effort:
    """Computational effort of a call of the posture generator.

    Attributes
    ----------
    seconds : wall clock by stage (``region``, ``kinematics``, ``collision``, ``forces``) and ``total``; the only part
        of a result that differs between two runs.
    starts : number of starts tried.
    steps : steps of the inverse kinematics, each with one or two quadratic programs.
    soft_steps : number of these steps in which the constraints conflicted.
    collision_checks : calls of the collision model.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    starts: int = 0
    steps: int = 0
    soft_steps: int = 0
    collision_checks: int = 0


class EffortCounter:
    """Counter of the computational effort of one call."""

    def __init__(self) -> None:
        self._start = self._last = perf_counter()
        self._seconds: dict[str, float] = {}
        self.starts = self.steps = self.soft_steps = self.collision_checks = 0

    def lap(self, stage: str) -> None:
        """Add the time since the last lap to a stage."""
        now = perf_counter()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def effort(self) -> Effort:
        """Return the counts so far."""
        self._seconds["total"] = perf_counter() - self._start
        return Effort(self._seconds, self.starts, self.steps, self.soft_steps, self.collision_checks)


@dataclass(frozen=True, repr=False)
class PostureResult:
    """A posture and its forces, or the best infeasible attempt.

    Attributes
    ----------
    q : (nq,) the posture; if none is found, that of the best attempt.
    contacts : all contacts in the given order, with resolved free coordinates (rounded to the digits of a file).
    loaded : names of the patches that carry load.
    forces : the equilibrium at ``q``; None if the call ended before the forces.
    margins : ``contact`` largest error of a contact in place (m, rad), ``com_inset`` distance of the centre of mass to
        the edge of its region (m), ``position`` smallest distance to a joint limit (rad or m), ``friction`` (N),
        ``friction_ratio``, ``torque`` (largest share of a limit), ``clearance`` (m). Margins of stages that were not
        reached are missing. The pushes ``equilibrium`` and ``equilibrium_torque`` of `statics.margins` are never
        included, since they take longer than the posture.
    violations : constraint violations, the decisive one first; empty if the posture is found.
    stage : last stage of the call, see `STAGES`.
    effort : computational effort of the call.
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
        """Return HTML for notebooks: the summary, and the margins or the violations."""
        if self.found:
            table = html_table(["margin", "(m, rad, N, or a share)"], self.margins.items())
        else:
            table = html_table(["violation"], [(str(violation),) for violation in self.violations])
        return html_of(self, f"<p>{escape(str(self))}</p>", table)

    def __str__(self) -> str:
        formats = {
            "position": lambda margin: f"{format_angle(margin)} from a joint limit",
            "torque": lambda share: f"{share:.0%} of the torque limit",
            "clearance": lambda distance: f"{format_length(distance)} clearance",
        }
        if not self.found:
            return f"no posture on {', '.join(c.patch for c in self.contacts)}: {self.reason} (at {self.stage})"
        values = ", ".join(
            format_margin(self.margins[name]) for name, format_margin in formats.items() if name in self.margins
        )
        return f"posture on {', '.join(c.patch for c in self.contacts)}: {values}"

    @property
    def found(self) -> bool:
        """Whether the posture meets every constraint."""
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
        """The violations as text; empty if the posture is found."""
        return "; ".join(str(violation) for violation in self.violations)

    def contact(self, patch: str) -> Contact:
        """Return the resolved contact of a patch.

        Raises
        ------
        KeyError
            When the patch is not in contact.
        """
        return contact_of(self.contacts, patch)


BASE_ROWS = {DISTANCE: "place", ANGLE: "orientation"}
"""Things of base violations, by the kind of the row."""


def violations_of(
    search: SearchResult, rows: Sequence[FrameRows], patches: Sequence[str], further: Sequence[str], least: float
) -> list[Violation]:
    """Return the constraint violations of a search, the worst first.

    Parameters
    ----------
    rows : rows of the contacts, then of the further constraints.
    patches : patches of the contacts.
    further : ``base``, or the patch in the air, for each of the further constraints.
    least : amounts up to this (m, rad) are not violations.
    """
    missed, row = search.missed, search.first_cell
    amounts: dict[tuple[str, str], float] = {}

    def note(kind: str, thing: str, amount: float) -> None:
        amounts[kind, thing] = max(amounts.get((kind, thing), 0.0), float(amount))

    for owner, amount in zip(search.row_contact, missed, strict=False):
        note("reach", patches[owner], amount)
    note("com", "com", missed[len(search.row_contact) : row].max(initial=0.0))
    for name, frame_rows in zip((*patches, *further), rows, strict=True):
        for kind in frame_rows.cell[:, KIND]:
            if name in patches:
                note("reach", name, missed[row])
            elif kind == POINT_HEIGHT:
                note("clearance", name, missed[row])
            elif kind in BASE_ROWS:
                note("base", BASE_ROWS[kind], missed[row])
            row += 1
    note("equilibrium", "com", missed[row:].max(initial=0.0))
    found = [Violation(kind, thing, amount) for (kind, thing), amount in amounts.items() if amount > least]
    return sorted(found, key=lambda violation: -violation.amount)
