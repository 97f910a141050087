"""What a search moves in: the robot's limbs, the places they may touch, the way there, and what is left to the goal.

The runs of one search, one after the other until one reaches the goal: coarse and greedy first.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mcplan.planning.feasibility import Prover
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.path import GuidePath
from mcplan.planning.search.candidates import Candidates
from mcplan.planning.search.potential import FREE_LIMB, Potential, Standing
from mcplan.robot.anatomy import Limb
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """The same for all nodes of one search.

    Parameters
    ----------
    prover : proves stances.
    limbs, modes : limbs by name, and the sets of patches with which each may touch.
    guide, offsets : the path of the base, nominal places of patches.
    candidates : by patch.
    potential : of the goal.
    require : sets of patches of which one must be used, in this search or before it.
    due : whether that is asked of this search; else it only notes what is used.
    """

    prover: Prover
    limbs: dict[str, Limb]
    modes: dict[str, tuple[tuple[str, ...], ...]]
    guide: GuidePath
    offsets: dict[str, np.ndarray]
    candidates: dict[str, Candidates]
    potential: Potential
    require: tuple[frozenset[str], ...]
    due: bool = True

    @property
    def robot(self) -> Robot:
        """Whose limbs they are."""
        return self.prover.robot

    @property
    def goal(self) -> Goal:
        """What the search is for."""
        return self.potential.goal

    def is_line(self, patch: str) -> bool:
        """Whether a patch is an edge."""
        return len(self.robot.patches[patch].polygon) == 2

    def stand(self, contact: Contact) -> Standing:
        """Return where a contact is on the guide."""
        s, aside = self.guide.progress(contact.p[None], self.offsets[contact.patch])
        return Standing(float(s[0]), float(aside[0]), self.goal.hit(contact), self.is_line(contact.patch))


LEAD = 1.5
"""Price of the limb farthest ahead over the last one where many limbs go, see `Potential`. At 1 a lead gains nothing; a
robot on four legs whose front feet hurry up the stairs stands stretched, and cannot lift a hind foot any more."""


class Pass(NamedTuple):
    """One run of the portfolio.

    Attributes
    ----------
    weight : of h against moves; inf is greedy.
    calls : budget of posture generator calls.
    window : how far a contact may be from the mean progress of the others (m).
    grid : distance of the candidates for contacts (m).
    free_limb : what a limb that touches nothing costs, of those the goal says nothing about; see `Potential`.
    lead : price of the limb farthest ahead over the last one; see `Potential`.
    """

    weight: float
    calls: int
    window: float
    grid: float = 0.0
    free_limb: float = 0.0
    lead: float = 0.0


def portfolio(step: float, size: float, helping: bool, many: bool = False) -> list[Pass]:
    """Return the runs.

    Limbs that the goal says nothing about are left free at first, but for those that the scenario requires: they touch
    where nothing else helps. Then to touch is progress, as where a hand has to hold before a foot can go. On
    `stairs_rail` the one takes 16 to 18 stances, the other up to 68 in which a hand moves along with each foot.

    Parameters
    ----------
    step : window of progress of the scenario (m).
    size : of the robot, 1 for HRP-2.
    helping : whether there are limbs that the goal says nothing about, and that may help.
    many : whether the goal asks for more limbs than two, which may hurry ahead of each other.
    """
    coarse, fine, free = 0.10 * size, 0.05 * size, FREE_LIMB if helping else 0.0
    alone = Pass(np.inf, 300, step, coarse)
    return [
        alone,
        *([alone._replace(free_limb=free)] if helping else []),
        Pass(4.0, 700, step, coarse, free),
        *([Pass(4.0, 700, step, coarse, free, LEAD)] if many else []),
        Pass(np.inf, 700, step + 0.1 * size, fine, free),
        Pass(2.0, 2000, step + 0.2 * size, fine, free),
    ]
