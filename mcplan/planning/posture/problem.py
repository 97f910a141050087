"""What is asked of a posture, and what was found."""

from dataclasses import dataclass, field

import numpy as np

from mcplan.planning.posture.violation import Violation
from mcplan.scene.contact import Contact
from mcplan.statics.support_region import SupportRegion


@dataclass(frozen=True)
class FreeLimb:
    """A patch in the air that shall stay clear of what it could touch.

    Attributes
    ----------
    patch : its name.
    planes : (k, 4) rows ``[n, d]``: each of the patch's points keeps ``n . x >= d`` (m), the clearance included.
    R : (3, 3) orientation that it is drawn to, or None.
    """

    patch: str
    planes: np.ndarray
    R: np.ndarray | None = None


@dataclass(frozen=True)
class Weights:
    """Cost of the distance to the guide posture, per squared m or rad.

    The base finds its own place between the contacts; the trunk stays upright; the centre of mass is drawn to ``com``.
    """

    base_position: float = 2.0
    base_orientation: float = 5.0
    joints: float = 1.0
    com: float = 20.0
    limb_orientation: float = 5.0


@dataclass(frozen=True)
class PostureProblem:
    """A posture to find.

    Attributes
    ----------
    guide : (nq,) the posture that is preferred.
    contacts : all of them are in place, to the micrometre.
    region : where the centre of mass is supported, None when balance is not asked.
    com_inset : how far inside the region it shall be (m); less is accepted where the region is thin.
    com : (2,) or (3,) the centre of mass itself (m): a constraint; or None.
    com_hint : (2,) where it is drawn to; or None.
    limbs : patches in the air.
    joint_margin : distance to the joint limits (rad or m).
    """

    guide: np.ndarray
    contacts: tuple[Contact, ...]
    region: SupportRegion | None = None
    com_inset: float = 0.02
    com: np.ndarray | None = None
    com_hint: np.ndarray | None = None
    limbs: tuple[FreeLimb, ...] = ()
    joint_margin: float = 0.03
    weights: Weights = field(default_factory=Weights)


@dataclass(frozen=True)
class Posture:
    """A posture, found or not.

    Attributes
    ----------
    q : (nq,).
    violations : what is missed, worst first; empty when found.
    com_inset : distance of the centre of mass to the edge of the region (m); inf without a region.
    steps : iterations taken.
    """

    q: np.ndarray
    violations: tuple[Violation, ...]
    com_inset: float
    steps: int

    @property
    def found(self) -> bool:
        """Whether every requirement holds."""
        return not self.violations
