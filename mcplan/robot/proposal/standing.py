"""Half-sitting posture by optimization: knees bent, soles level on the ground, balanced, away from joint limits."""

import numpy as np
from scipy.optimize import least_squares

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.robot.anatomy import chain_of, joint_axis, joint_of_body, pitch_bodies
from mcplan.robot.link_solids import overlaps
from mcplan.robot.proposal.patches import Anatomy, Proposed
from mcplan.robot.robot import Robot

BENDS = (0.7, 0.6, 0.5, 0.4, 0.3)
"""rad: candidate knee bends; the deepest feasible one is used. Hip and ankle bend back by half of it."""

BEARS = 0.5
"""Maximum share of a knee's torque with the whole weight on one leg."""

ROOM, ROOM_ARM = 0.05, 0.25
"""rad: margins of leg joints and other joints to their limits, at most a tenth of their range."""

PLACE, LEVEL, BALANCE, APART = 50.0, 10.0, 30.0, 5.0
"""Weights of the ground (m), of a sole's slope (rad), of the centre of mass and of the feet's places (m)."""

LEGS, OTHERS = 0.5, 1.0
"""Weights of the joint displacements (rad) of legs and others."""


def half_sitting(found: Anatomy) -> np.ndarray:
    """Return the posture ``q`` (nq,) with the ground at z = 0; arms that overlap other links are moved aside.

    Minimises over the base position and the joints, with the base level and the joints in their limits,

        PLACE² z² + LEVEL² slope² + BALANCE² |c - c_feet|² + APART² |p - p0|² + (joints - joints0)²

    over all feet: height, slope, centre of mass relative to their middle, and displacement from the start.
    """
    lower, upper = _bounds(found)
    start = found.q.copy()
    for bend in BENDS:
        start[7:] = np.clip(_bent(found, bend), lower, upper)
        q = _balanced(found, start, lower, upper)
        if _load(found, q) <= BEARS:
            break
    for name, limb in found.arms.items():
        aside = _aside(found, q, limb.joints, lower, upper)
        if aside is not None:
            q = _balanced(found, aside, lower, upper)
            found.notices.append(f"{name} is moved aside from where it would overlap others")
    return q


def _bounds(found: Anatomy) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = found.robot.limits.lower, found.robot.limits.upper
    tenth = np.where(np.isfinite(upper - lower), (upper - lower) / 10, np.inf)
    room = np.minimum(np.where(_in_legs(found), ROOM, ROOM_ARM), tenth)
    return lower + room, upper - room + 1e-9  # least_squares requires lower < upper


def _in_legs(found: Anatomy) -> np.ndarray:
    """Return the mask (n,) of leg joints."""
    return np.isin(np.arange(found.robot.n), [joint for limb in found.legs.values() for joint in limb.joints])


def _load(found: Anatomy, q: np.ndarray) -> float:
    """Return the largest used share of a knee's torque on one foot: ``m g |x - x_foot| / tau``."""
    robot, joint, share = found.robot, joint_of_body(found.robot), 0.0
    for limb, sole in zip(found.legs.values(), found.soles, strict=True):
        bodies = pitch_bodies(robot, q, limb.bodies)
        if len(bodies) == 3 and len(found.legs) <= 2:
            middle = pose(robot, q, sole) @ [*sole.polygon.mean(axis=0), 0.0, 1.0]
            moment = robot.mass * GRAVITY * abs(robot.body_pose(q, bodies[1])[0, 3] - middle[0])
            share = max(share, moment / max(robot.limits.torque[joint[bodies[1]]], 1e-9))
    return share


def _bent(found: Anatomy, bend: float) -> np.ndarray:
    """Return the initial joints (n,): those of ``q``, with straight knees bent, and deep bends reduced if required."""
    robot, q = found.robot, found.q
    joints, joint = q[7:].copy(), joint_of_body(robot)
    for limb in found.legs.values():
        bodies = pitch_bodies(robot, q, limb.bodies)
        if len(bodies) != 3 or len(found.legs) > 2:
            continue
        hip, knee, ankle = bodies
        already = abs(joints[joint[knee]])
        if already > BENDS[0] / 2:
            if bend < min(already, BENDS[0]):  # the initial bend needs too much torque
                joints[[joint[body] for body in bodies]] *= bend / already
            continue
        for body, share in ((hip, -0.5), (knee, 1.0), (ankle, -0.5)):
            # about +y a positive angle moves the shank back
            joints[joint[body]] += share * bend * np.sign(joint_axis(robot, q, body)[1])
    return joints


def _balanced(found: Anatomy, start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    robot, soles = found.robot, found.soles
    weight = np.where(_in_legs(found), LEGS, OTHERS)
    place0 = np.array([pose(robot, start, sole)[:3, 3] - [0, 0, sole.radius] for sole in soles]).reshape(-1, 3)
    place0 = place0 - start[:3]
    q = start.copy()
    q[2] -= (place0[:, 2] + start[2]).min() if len(place0) else 0.0
    q[3:7] = [1.0, 0.0, 0.0, 0.0]

    def residual(x: np.ndarray) -> np.ndarray:
        q[:3], q[7:] = x[:3], x[3:]
        rows, middles = [weight * (q[7:] - start[7:])], []
        for sole, place in zip(soles, place0, strict=True):
            X = pose(robot, q, sole)
            rows.append([PLACE * (X[2, 3] - sole.radius), *(APART * (X[:2, 3] - q[:2] - place[:2]))])
            if sole.kind == "surface":
                rows.append(LEVEL * np.array([X[0, 2], X[1, 2], X[1, 0]]))
            middles.append((X @ [*sole.polygon.mean(axis=0), 0.0, 1.0])[:2])
        if middles:
            rows.append(BALANCE * (robot.com(q)[:2] - np.mean(middles, axis=0)))
        rows.append(1e-3 * q[:2])
        return np.concatenate(rows)

    x0 = np.concatenate([q[:3], np.clip(q[7:], lower, upper)])
    infinite = np.full(3, np.inf)
    found_x = least_squares(residual, x0, bounds=([*-infinite, *lower], [*infinite, *upper]), x_scale=1.0).x
    rounded = np.round(found_x[3:], 3) + 0.0
    q[:3], q[7:] = found_x[:3], np.clip(rounded, robot.limits.lower, robot.limits.upper)
    q[:2] = np.round(q[:2], 4)
    heights = [pose(robot, q, sole)[2, 3] - sole.radius for sole in soles]
    q[2] = np.round(q[2] - (np.mean(heights) if heights else 0.0), 6)
    return q


def pose(robot: Robot, q: np.ndarray, patch: Proposed) -> np.ndarray:
    """Return the pose (4,4) of a proposed patch in the world."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = patch.R, patch.p
    return robot.frame_pose(q, patch.link) @ X


def _aside(
    found: Anatomy, q: np.ndarray, joints: tuple[int, ...], lower: np.ndarray, upper: np.ndarray
) -> np.ndarray | None:
    """Move one joint of an arm by the smallest angle that separates it from non-adjacent links; None if impossible."""
    robot = found.robot
    arm = {link for link in robot.link_names if set(_moved_by(robot, link)) & set(joints)}

    def depth(q: np.ndarray) -> float:
        return sum(deep for pair, deep in overlaps(robot, [q])[0].items() if len(pair & arm) == 1)

    before = depth(q)
    if before == 0.0:
        return None
    best, least = None, before
    for angle in (0.1, 0.2, 0.3, 0.45, 0.6, 0.8):
        for joint in joints[:4]:
            for sign in (1, -1):
                tried = q.copy()
                tried[7 + joint] = np.clip(q[7 + joint] + sign * angle, lower[joint], upper[joint])
                if (now := depth(tried)) < least - 1e-4:
                    best, least = tried, now
        if least == 0.0:
            break
    return best


def _moved_by(robot: Robot, link: str) -> list[int]:
    """Return the joints between a link and the root."""
    joint = joint_of_body(robot)
    return [joint[body] for body in chain_of(robot, link)]
