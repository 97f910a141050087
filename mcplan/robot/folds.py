"""The joints by which limbs fold: knees and elbows, and where they are straight.

A straight limb cannot give way along itself: the distance ``d`` between its ends has ``dd/dq = 0``. On two ends that
are held, the ground and a trunk that moves by millimetres, it calls for any angle of its knee, or for none that there
is. At an angle ``b`` from there a limb of length l reaches ``l b² / 8`` less, 4 mm of half a metre at 0.25 rad.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mcplan.core.rigid_body.tree import REVOLUTE, TYPE, Q
from mcplan.robot.sizes import chain_of, own_part, place_of

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot

FOLDED = 0.6
"""A joint folds its limb if it brings the ends as near as this part of what they are apart when it is straight."""

BEYOND = 0.5
"""rad: how far beyond the range of a joint the angle at which its limb would be straight is looked for."""

SAMPLES = 33
"""Angles at which the distance of the ends is taken, and once more between the neighbours of the best one."""


@dataclass(frozen=True)
class Fold:
    """A joint by which a limb folds.

    Attributes
    ----------
    joint : its index among the joints.
    straight : its angle when the limb is straight (rad), which may be beyond its range.
    """

    joint: int
    straight: float

    def keep_bent(self, limit: np.ndarray, side: float, least: float) -> None:
        """Narrow bounds (2, n) by what keeps the limb bent by ``least`` (rad) to a side, as far as they allow."""
        lower, upper = limit[:, self.joint]
        if side < 0.0:
            limit[1, self.joint] = max(min(upper, self.straight - least), lower)
        else:
            limit[0, self.joint] = min(max(lower, self.straight + least), upper)


def folds(robot: "Robot") -> dict[str, tuple[Fold, ...]]:
    """Return the joints that fold the limb of each patch, by the patch's name.

    The limb reaches from its first body to its last: from hip to ankle below a sole, to the point itself below a patch
    that is a point, to the knee above a shank that lies on the ground: this does not fold.
    """
    chains = {name: chain_of(robot, name) for name, patch in robot.patches.items() if patch.limb}
    found: dict[str, tuple[Fold, ...]] = {}
    known: dict[tuple, tuple[Fold, ...]] = {}
    for name, chain in chains.items():
        others = [c for n, c in chains.items() if robot.patches[n].limb != robot.patches[name].limb]
        own, point = own_part(chain, others), robot.patches[name].kind in ("point", "ball")
        key = (*own, name if point else "")
        if key not in known:
            known[key] = tuple(_folds(robot, own, name if point else None))
        found[name] = known[key]
    return found


def _folds(robot: "Robot", bodies: list[int], point: str | None) -> list[Fold]:
    inner = bodies[1:] if point else bodies[1:-1]
    if not inner:
        return []
    neutral, found = robot.neutral(), []
    root = place_of(robot, neutral, bodies[0])  # which no joint beyond it moves
    for body in inner:
        at = int(robot.tree.topology[body, Q])
        if robot.tree.topology[body, TYPE] != REVOLUTE:
            continue
        lower, upper = np.clip([limit[at - 7] for limit in (robot.limits.lower, robot.limits.upper)], -np.pi, np.pi)

        def apart(angle: float, at: int = at) -> float:
            q = neutral.copy()
            q[at] = angle
            end = robot.frame_pose(q, point)[:3, 3] if point else place_of(robot, q, bodies[-1])
            return float(np.linalg.norm(end - root))

        angles = np.linspace(lower - BEYOND, upper + BEYOND, SAMPLES)
        distances = [apart(angle) for angle in angles]
        best = int(np.argmax(distances))
        if 0 < best < SAMPLES - 1 and min(distances) < FOLDED * distances[best]:
            fine = np.linspace(angles[best - 1], angles[best + 1], SAMPLES)
            found.append(Fold(at - 7, float(fine[int(np.argmax([apart(angle) for angle in fine]))])))
    return found


def bent(robot: "Robot", limit: np.ndarray, patches: Iterable[str], q: np.ndarray, least: float) -> np.ndarray:
    """Return bounds of the joints (2, n) within which the limbs of patches are bent.

    Parameters
    ----------
    limit : (2, n) bounds otherwise.
    q : (n,) joints whose side of straight they are bent to; straight ones go to that on which there is more room.
    least : how far they are bent (rad), as far as the bounds allow.
    """
    within = np.array(limit, dtype=float)
    for fold in folds_of(robot, patches):
        side = q[fold.joint] - fold.straight
        if abs(side) < least:
            side = within[:, fold.joint].sum() - 2.0 * fold.straight
        fold.keep_bent(within, side, least)
    return within


def folds_of(robot: "Robot", patches: Iterable[str]) -> set[Fold]:
    """Return the joints that fold the limbs of patches."""
    return {fold for patch in patches for fold in robot.folds.get(patch, ())}
