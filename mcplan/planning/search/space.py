"""What a search moves in: the robot's limbs, the places they may touch, the way there, and what is left to the goal."""

from dataclasses import dataclass

import numpy as np

from mcplan.model.robot import Robot
from mcplan.planning.goal.goal import Goal
from mcplan.planning.guide.path import GuidePath
from mcplan.planning.posture.limbs import Limb
from mcplan.planning.prover import Prover
from mcplan.planning.search.candidates import Candidates
from mcplan.planning.search.potential import Potential, Standing
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
