"""Which stance of a plan meets which item of the goal, and how far.

Items are met in their order. An item is met by the first stance, from that of the item before on, that meets all its
fields; the last one by the last stance of the plan, where the motion ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcplan.planning.goal.item import Measure, measure, unmet
from mcplan.robot.robot import Robot
from mcplan.scenario.schema import GoalItem
from mcplan.scene.contact import Contact

State = tuple[Sequence[Contact], np.ndarray, Mapping[str, np.ndarray]]
"""Contacts, posture (nq,) and poses (7,) of the objects."""


@dataclass(frozen=True)
class ItemReached:
    """How far an item of the goal is met.

    Attributes
    ----------
    item : its index.
    stance : index of the stance that meets it; where none does, of the one that misses least.
    measures : by field.
    """

    item: int
    stance: int
    measures: tuple[Measure, ...]

    @property
    def met(self) -> bool:
        """Whether all fields are met."""
        return all(one.met for one in self.measures)

    @property
    def missing(self) -> str:
        """What is not met, in words; empty when all is."""
        return unmet(self.measures)

    def __str__(self) -> str:
        said = "; ".join(str(one) for one in self.measures)
        return f"goal {self.item}: {'met' if self.met else 'NOT MET'} in stance {self.stance}: {said}"

    def to_data(self) -> dict[str, Any]:
        """Return plain values; None where an amount is infinite."""
        return {
            "item": self.item,
            "stance": self.stance,
            "met": self.met,
            "fields": [
                {
                    "field": one.field,
                    "thing": one.thing,
                    "amount": one.amount if np.isfinite(one.amount) else None,
                    "allowed": one.allowed,
                    "unit": one.unit,
                }
                for one in self.measures
            ],
        }


def items_reached(goal: Sequence[GoalItem], robot: Robot, stances: Sequence[State]) -> tuple[ItemReached, ...]:
    """Return for each item of the goal the stance that meets it and how far."""
    found: list[ItemReached] = []
    first, last = 0, len(stances) - 1
    for number, item in enumerate(goal):
        best: ItemReached | None = None
        least = np.inf
        for k in range(last if number == len(goal) - 1 else first, last + 1):
            measures = measure(item, robot, *stances[k])
            worst = max((one.shortfall for one in measures), default=0.0)
            if worst < least:
                best, least = ItemReached(number, k, measures), worst
            if all(one.met for one in measures):
                best = ItemReached(number, k, measures)
                break
        assert best is not None
        found.append(best)
        first = best.stance
    return tuple(found)
