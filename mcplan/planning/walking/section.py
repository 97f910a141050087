"""Which stances of a plan are steps of a walk on level ground."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mcplan.planning.plan import PlannedStance
from mcplan.scene.contact import Contact

LEVEL, HEIGHT = 0.999, 0.01
"""Least part upwards of the normals of soles that walk, and by how much their heights may differ (m)."""

LEAST_STEPS = 2
"""Steps of a walk: with one, there is no step before or after without a rest."""


class Section(NamedTuple):
    """Stances between two at rest on both feet: a foot is lifted and set down, then the other one.

    Attributes
    ----------
    first, last : numbers of the stance at rest in which it begins, and of that in which the last foot comes down; the
        transition after that one leads to rest.
    """

    first: int
    last: int

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Numbers of the stances in which a foot is lifted, and is set down."""
        return [(k, k + 1) for k in range(self.first + 1, self.last, 2)]


def sections(stances: Sequence[PlannedStance]) -> Iterator[Section]:
    """Yield the walks of a plan, each as long as it can be."""
    k = 0
    while k < len(stances):
        last = k
        while last + 2 < len(stances) and _is_step(stances, last):
            last += 2
        while last > k and not _stays(stances, last):
            last -= 2
        if (last - k) // 2 >= LEAST_STEPS:
            yield Section(k, last)
            last += 1  # that leads to rest
        k = max(last, k + 1)


def _is_step(stances: Sequence[PlannedStance], k: int) -> bool:
    """Say whether a robot that stands on two feet lifts one and sets it down again, after the other one before."""
    both, lifted, down = stances[k : k + 3]
    foot = lifted.moved
    if (lifted.change, down.change) != ("remove", "add") or down.moved != foot or foot is None:
        return False
    earlier = stances[k].moved if stances[k].change == "add" else None
    return foot != earlier and _level(both.contacts) and _level(down.contacts)


def _stays(stances: Sequence[PlannedStance], k: int) -> bool:
    """Say whether after stance k a motion on both feet follows, at the end of which the robot may be at rest."""
    return k + 1 < len(stances) and stances[k + 1].change in ("shift", "remove") and not stances[k + 1].objects


def _level(contacts: Sequence[Contact]) -> bool:
    """Say whether these are two soles side by side on level ground."""
    if len(contacts) != 2 or any(c.kind == "grasp" or c.radius or len(c.points) < 3 or c.carrier for c in contacts):
        return False
    heights = [float(contact.p[2]) for contact in contacts]
    return min(float(c.normal[2]) for c in contacts) > LEVEL and np.ptp(heights) < HEIGHT
