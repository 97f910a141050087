"""Plan values: contact changes, stances with postures and forces, and the plan itself."""

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from mcplan.planning.goal.item import ItemReached, items_reached
from mcplan.planning.transition.transition import BoundaryState, Segment, Transition
from mcplan.scene.contact import Contact, contact_of
from mcplan.util.html_table import html_of, html_table

if TYPE_CHECKING:
    from mcplan.planning.search.tree import SearchTree
    from mcplan.scenario.scenario import Scenario


@dataclass(frozen=True, repr=False)
class Change:
    """A change of contacts from one stance to the next, which adds or removes at most one contact.

    Attributes
    ----------
    contacts : all contacts after the change.
    change : ``start`` | ``add`` | ``remove`` | ``shift`` (the same contacts, another posture).
    moved : the patch that is added or removed, else None.
    """

    contacts: tuple[Contact, ...]
    change: str
    moved: str | None

    @classmethod
    def start(cls, contacts: tuple[Contact, ...]) -> "Change":
        """Return the change that makes all contacts of the start."""
        return Change(contacts, "start", None)

    @classmethod
    def add(cls, before: tuple[Contact, ...], contact: Contact) -> "Change":
        """Return the change that adds a contact."""
        return Change((*before, contact), "add", contact.patch)

    @classmethod
    def remove(cls, before: tuple[Contact, ...], patch: str) -> "Change":
        """Return the change that removes the contact of a patch."""
        return Change(tuple(contact for contact in before if contact.patch != patch), "remove", patch)

    @classmethod
    def shift(cls, before: tuple[Contact, ...]) -> "Change":
        """Return the change of the posture alone."""
        return Change(before, "shift", None)

    @property
    def title(self) -> str:
        """Kind of the change, and its patch: ``add left_sole``."""
        return self.change if self.moved is None else f"{self.change} {self.moved}"

    @property
    def patches(self) -> tuple[str, ...]:
        """Names of the patches in contact after the change."""
        return tuple(contact.patch for contact in self.contacts)

    def linking_contacts(self, before: tuple[Contact, ...]) -> tuple[tuple[Contact, ...], tuple[Contact, ...]]:
        """Return the contacts in place at the posture that links two stances, and those that carry load there.

        The contacts of the larger stance are in place; only those of both stances carry load.
        """
        in_place = before if self.change == "remove" else self.contacts
        return in_place, before if self.change == "add" else self.contacts

    def contact(self, patch: str) -> Contact:
        """Return the contact of a patch.

        Raises
        ------
        KeyError
            When the patch is not in contact.
        """
        return contact_of(self.contacts, patch)


@dataclass(frozen=True, repr=False)
class PlannedStance(Change):
    """One stance of a plan, and the change that leads to it.

    Attributes
    ----------
    q : (nq,) the posture that links this stance to the one before: the contacts of the larger of the two stances are in
        place, and only those that both share carry load.
    wrenches : {patch: (6,)} at the patch origins in world axes (N, N m), of every contact in place at ``q``; zero for
        contacts without load.
    tau : (n,) joint torques at ``q`` (N m): at rest, or for the motion of ``passing``.
    margins : by name, in the units of the margins of a stance (`statics.margins`); None if a margin does not apply.
    objects : {name: (7,)} position and quaternion w x y z of moved objects, in this stance.
    transition : the motion from the previous stance; None at the first stance, and until it is planned.
    passing : state of motion, if the robot does not come to rest here; forces and torques belong to this motion.
    """

    q: np.ndarray
    wrenches: dict[str, np.ndarray]
    tau: np.ndarray
    margins: dict[str, float | None]
    objects: dict[str, np.ndarray] = field(default_factory=dict)
    transition: Transition | None = None
    passing: BoundaryState | None = None

    def __repr__(self) -> str:
        return f"PlannedStance({self.title}, on {', '.join(self.patches)})"

    def _repr_html_(self) -> str:
        """Return the contacts with their loads, and the margins, as tables for notebooks."""
        rows = ((c.patch, c.support, c.kind, self._load(c.patch)) for c in self.contacts)
        margins = {name: value for name, value in self.margins.items() if value is not None}
        return html_of(
            self,
            html_table(["patch", "on", "kind", "load (N)"], rows),
            html_table(["margin", "(N, m, rad, or a share)"], margins.items()),
        )

    def _load(self, patch: str) -> float:
        """Return the magnitude of the contact force of a patch (N)."""
        return float(np.linalg.norm(self.wrenches[patch][:3])) if patch in self.wrenches else 0.0


@dataclass(frozen=True, repr=False)
class Plan:
    """A scenario and the stances from its start to its goal.

    Attributes
    ----------
    scenario : the planned scenario.
    stances : stances in order, the first one is the start.
    tree : record of the search; None without a search.
    notices : differences between plan and request as text, such as changes of the start.
    """

    scenario: "Scenario"
    stances: tuple[PlannedStance, ...]
    tree: "SearchTree | None" = field(default=None, compare=False)
    notices: tuple[str, ...] = ()

    @cached_property
    def goals(self) -> tuple[ItemReached, ...]:
        """For each goal item the stance that meets it, and the deviations, measured on the stances."""
        scenario = self.scenario
        at_start = {thing.name: thing.pose for thing in scenario.environment.objects}
        states = [(stance.contacts, stance.q, at_start | stance.objects) for stance in self.stances]
        return items_reached(scenario.goal, scenario.robot, states)

    @property
    def goal_reached(self) -> bool:
        """Whether every item of the goal is met, in order, the last one by the last stance.

        `mcplan.verify` checks this again, with the rest of the plan.
        """
        return all(item.met for item in self.goals)

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """The motions between consecutive stances."""
        return tuple(stance.transition for stance in self.stances if stance.transition is not None)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of all transitions, in order."""
        return tuple(segment for transition in self.transitions for segment in transition.segments)

    def _repr_html_(self) -> str:
        """Return the stances as a table for notebooks."""
        return html_of(self, f"<pre>{escape(self.summary())}</pre>")

    def __repr__(self) -> str:
        return f"Plan({self.scenario.name!r}, {self.scenario.robot.name}, {len(self.stances)} stances)"

    def summary(self) -> str:
        """Return one line per stance: change, margins, duration and clearance of its transition; then the goal."""
        lines = []
        for k, stance in enumerate(self.stances):
            title = stance.title
            push, torque = stance.margins.get("equilibrium"), stance.margins.get("torque")
            margins = [
                f"push {push:.0f} N" if push is not None else "",
                f"torque {torque:.0%}" if torque is not None else "",
            ]
            motion = "" if stance.transition is None else stance.transition.summary()
            margin = ", ".join(m for m in margins if m)
            lines.append(f"{k:3d}  {title:24s} {margin:24s} {motion:14s} on {', '.join(stance.patches)}")
        return "\n".join([*lines, *(str(item) for item in self.goals)])
