"""Sizes of a robot, measured in its model: where it stands, how long legs and arms are, how high a knee lifts it.

How large a robot is, against the one that the figures of planner and controller are written for.

Lengths of the planner and of the controller are multiples of one of these ratios, so that a robot twice as large plans
steps twice as long:

    leg    lengths of the way: steps, lattices, clearances, heights of a swing        l / l_0
    sole   room of the centre of mass and of pressure, gaps between feet              sqrt(A / A_0), of the soles
    arm    reach of hands, what they hold                                              l / l_0
    mass   forces: to the third power                                                  (m / m_0)^(1/3)

Motions under gravity are alike where speeds grow with the root of the length and stiffnesses with its inverse (Froude;
Alexander 1989). Tolerances do not scale: how exactly contacts are in place, and what a solver works to, is a matter of
accuracy, not of size.
"""


from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot


STEP = 0.005
"""m: to which the places of feet are rounded, so that a scenario has plain numbers."""

STRONG, DEEP, HIGH = 0.5, np.pi / 3, 0.15
"""Share of a knee's torque: the rest is for a weight that is not quite over the foot, and for a knee that bends more
than it has to; half of its deepest bend (rad); share of a leg's length, where its knee says nothing."""

LEVEL, UPRIGHT = 0.01, 0.9
"""m: how far from the ground, and how near to facing it, a patch is that the robot stands on in its posture."""


def stands_in(robot: "Robot") -> np.ndarray | None:
    """Return the posture (nq,) in which the robot stands: ``half_sitting``, else its first one, else None."""
    names = [name for name in ("half_sitting", *robot.postures) if name in robot.postures]
    return robot.posture(names[0]) if names else None


def feet(robot: "Robot") -> dict[str, np.ndarray]:
    """Return the patches that the robot stands on, and where (2,) their origins are from below the base's."""
    q = stands_in(robot)
    found: dict[str, np.ndarray] = {}
    if q is None:
        return found
    for name, patch in robot.patches.items():
        X = robot.frame_pose(q, name)
        faces_down = patch.kind in ("point", "ball") or (len(patch.polygon) > 2 and X[2, 2] < -UPRIGHT)
        if patch.kind != "grasp" and faces_down and abs(X[2, 3] - patch.radius) < LEVEL:
            found[name] = np.array(np.round(STEP * np.round((X[:2, 3] - q[:2]) / STEP), 3), float)
    return found


def hands(robot: "Robot") -> tuple[str, ...]:
    """Return the patches at the ends of the limbs that the robot does not stand on: palms, then grips; no forearms."""
    standing = {robot.patches[name].limb for name in feet(robot)}
    free = [patch for patch in robot.patches.values() if standing and patch.limb and patch.limb not in standing]
    chains = {patch.name: chain_of(robot, patch.name) for patch in free}
    ends = {limb: max(len(chains[p.name]) for p in free if p.limb == limb) for limb in {p.limb for p in free}}
    at_end = [patch for patch in free if len(chains[patch.name]) == ends[patch.limb]]
    return tuple(patch.name for patch in sorted(at_end, key=lambda patch: patch.kind == "grasp"))


def measured(robot: "Robot") -> dict[str, float]:
    """Return the sizes by name (m, see `mcplan.scenario.robot_sizes`) that the robot has."""
    q, standing = stands_in(robot), feet(robot)
    if q is None or not standing:
        return {}
    legs = [chain_of(robot, name) for name in standing]
    lengths = [_length(robot, q, name, own_part(chain, legs)) for name, chain in zip(standing, legs, strict=True)]
    found = {"height": q[2], "leg": max(lengths)}
    found["foot"] = max(float(np.ptp(robot.patches[name].polygon[:, 0])) for name in standing)
    aside = [place[1] for place in standing.values()]
    found["width"] = max(aside) - min(aside)
    corners = [robot.frame_pose(q, name)[0] @ [*x, 1.0] for name in standing for x in robot.patches[name].points]
    found["front"] = max(corners) - q[0]
    lifts = [_step(robot, q, name, own_part(chain, legs)) for name, chain in zip(standing, legs, strict=True)]
    found["step"] = min(lifts)
    limbs = {robot.patches[name].limb for name in standing}
    others = [p for p in robot.patches.values() if p.limb not in limbs and p.kind != "grasp"]
    chains = {patch.name: chain_of(robot, patch.name) for patch in others}
    arms = []
    for name, chain in chains.items():
        # a forearm and a hand share their chain: what keeps arms apart is their limb
        limb = robot.patches[name].limb
        own = own_part(chain, [*legs, *(c for n, c in chains.items() if robot.patches[n].limb != limb)])
        if len(own) > 2:
            _, y, z = place_of(robot, q, own[0])
            arms.append((_length(robot, q, name, own), z, abs(y - q[1])))
    if arms:
        found["reach"], found["shoulder"], side = max(arms)
        found["breadth"] = 2.0 * side
    return {name: float(value) for name, value in found.items()}


def _step(robot: "Robot", q: np.ndarray, patch: str, bodies: list[int]) -> float:
    """Return the height (m) by which a leg can lift the robot, whose weight is over the middle of its foot.

    A knee that bends by ``2 b`` lifts by ``(t + s) (1 - cos b)`` when it stretches, thigh t and shank s; the weight's
    lever about it is ``s sin b - x``, x from the ankle to the middle of the foot, and ``m g (s sin b - x)`` may take
    ``STRONG`` of its torque. A leg without hip, knee and ankle about y: ``HIGH`` of its length.
    """
    from mcplan.robot.proposal.limbs import Limb, joint_of_body  # they know robots, which know their sizes
    from mcplan.robot.proposal.patches import pitch_bodies

    high = HIGH * _length(robot, q, patch, bodies)
    pitch = pitch_bodies(robot, q, Limb(tuple(bodies), (), ""))
    if len(pitch) != 3:
        return high
    hip, knee, ankle = (place_of(robot, q, body) for body in pitch)
    thigh, shank = float(np.linalg.norm(knee - hip)), float(np.linalg.norm(ankle - knee))
    torque = robot.limits.torque[joint_of_body(robot)[pitch[1]]]
    middle = robot.frame_pose(q, patch) @ [*robot.patches[patch].polygon.mean(axis=0), 0.0, 1.0]
    lever = STRONG * torque / (robot.mass * GRAVITY) + max(middle[0] - ankle[0], 0.0)
    bend = np.arcsin(min(lever / shank, np.sin(DEEP)))
    return float((thigh + shank) * (1.0 - np.cos(bend)))


def chain_of(robot: "Robot", patch: str) -> list[int]:
    """Return the bodies from the first below the base to the one that carries a patch."""
    body, chain = robot.frame(patch)[0], []
    while body > 0:
        chain.append(body)
        body = int(robot.tree.topology[body, 0])
    return chain[::-1]


def own_part(chain: list[int], others: list[list[int]]) -> list[int]:
    """Return what of a chain no other one shares."""
    shared = {body for other in others if other is not chain and other != chain for body in other}
    return [body for body in chain if body not in shared]


def _length(robot: "Robot", q: np.ndarray, patch: str, bodies: list[int]) -> float:
    places = [*(place_of(robot, q, body) for body in bodies), robot.frame_pose(q, patch)[:3, 3]]
    return float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())


def place_of(robot: "Robot", q: np.ndarray, body: int) -> np.ndarray:
    """Return where (3,) the joint of a body is at a posture."""
    link = next(link for link in robot.link_names if robot.frame(link)[0] == body)
    X, offset = robot.frame_pose(q, link), robot.frame(link)[1]
    return X[:3, 3] - X[:3, :3] @ offset[:9].reshape(3, 3).T @ offset[9:]


LEG, SOLE, ARM, MASS = 0.70703477, 0.17357995, 0.60750000, 56.03717
"""m, m, m, kg: of HRP-2, whose scale is 1."""

DIGITS = 6
"""Of a ratio: the last digits of a robot's file are not its size."""


@dataclass(frozen=True)
class RobotScale:
    """Sizes of a robot as multiples of those of HRP-2.

    Attributes
    ----------
    leg, sole, arm : of its lengths; one that a robot does not have, points for feet, no arms, is that of its legs; that
        of legs, where it stands in no posture, that of its mass.
    mass : cube root of the ratio of the masses.
    """

    leg: float = 1.0
    sole: float = 1.0
    arm: float = 1.0
    mass: float = 1.0

    @classmethod
    def of(cls, robot: "Robot") -> "RobotScale":
        """Measure a robot."""
        mass = (robot.mass / MASS) ** (1 / 3)
        found = measured(robot)
        leg = found["leg"] / LEG if "leg" in found else mass
        areas = [float(np.ptp(robot.patches[name].polygon, axis=0).prod()) for name in robot.feet]
        sole = np.sqrt(max(areas)) / SOLE if max(areas, default=0.0) > 0.0 else leg
        arm = found["reach"] / ARM if "reach" in found else leg
        return cls(*(round(float(ratio), DIGITS) for ratio in (leg, sole, arm, mass)))


ONE = RobotScale()
"""Of the robot that the figures are written for."""
