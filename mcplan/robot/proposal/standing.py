"""Half-sitting posture by optimization: knees bent, soles level on the ground, balanced, away from joint limits."""

import numpy as np
from scipy.optimize import least_squares

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.robot.anatomy import chain_of, joint_axis, joint_of_body, pitch_bodies
from mcplan.robot.link_solids import overlaps
from mcplan.robot.proposal.patches import LimbProposal, ProposedPatch
from mcplan.robot.robot import Robot

KNEE_BENDS = (0.7, 0.6, 0.5, 0.4, 0.3)
"""rad: candidate knee bends; the deepest feasible one is used. Hip and ankle bend back by half of it."""

MAX_KNEE_SHARE = 0.5
"""Largest share of a knee's torque limit with the whole weight on one leg."""

LEG_MARGIN, ARM_MARGIN = 0.05, 0.25
"""rad: margins of leg joints and other joints to their limits; at most a tenth of the joint's range."""

HEIGHT_WEIGHT, SLOPE_WEIGHT, BALANCE_WEIGHT, DISPLACEMENT_WEIGHT = 50.0, 10.0, 30.0, 5.0
"""Weights of foot height (m), slope of soles (rad), centre of mass (m) and horizontal foot displacement (m)."""

LEG_JOINT_WEIGHT, OTHER_JOINT_WEIGHT = 0.5, 1.0
"""Weights of joint displacements (rad) in the legs and elsewhere."""


def half_sitting(anatomy: LimbProposal) -> np.ndarray:
    """Return the posture ``q`` (nq,) with the ground at z = 0; arms that overlap other links are moved aside.

    Minimises over the base position and the joints, with the base level and the joints in their limits,

        HEIGHT_WEIGHT² z² + SLOPE_WEIGHT² slope² + BALANCE_WEIGHT² |c - c_feet|² + DISPLACEMENT_WEIGHT² |p - p0|²
        + (joints - joints0)²

    over all feet: height, slope, centre of mass relative to the mean foot centre, displacement from the start.
    """
    lower, upper = _bounds(anatomy)
    start = anatomy.q.copy()
    for bend in KNEE_BENDS:
        start[7:] = np.clip(_initial_joints(anatomy, bend), lower, upper)
        q = _solve_posture(anatomy, start, lower, upper)
        if _knee_torque_share(anatomy, q) <= MAX_KNEE_SHARE:
            break
    for name, limb in anatomy.arms.items():
        aside = _move_arm_aside(anatomy, q, limb.joints, lower, upper)
        if aside is not None:
            q = _solve_posture(anatomy, aside, lower, upper)
            anatomy.notices.append(f"{name} is moved aside from where it would overlap others")
    return q


def _bounds(anatomy: LimbProposal) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = anatomy.robot.limits.lower, anatomy.robot.limits.upper
    max_margin = np.where(np.isfinite(upper - lower), (upper - lower) / 10, np.inf)
    margin = np.minimum(np.where(_in_legs(anatomy), LEG_MARGIN, ARM_MARGIN), max_margin)
    return lower + margin, upper - margin + 1e-9  # least_squares requires lower < upper


def _in_legs(anatomy: LimbProposal) -> np.ndarray:
    """Return the mask (n,) of leg joints."""
    return np.isin(np.arange(anatomy.robot.n), [joint for limb in anatomy.legs.values() for joint in limb.joints])


def _knee_torque_share(anatomy: LimbProposal, q: np.ndarray) -> float:
    """Return the largest used share of a knee's torque on one foot: ``m g |x - x_foot| / tau``."""
    robot, joint, share = anatomy.robot, joint_of_body(anatomy.robot), 0.0
    for limb, sole in zip(anatomy.legs.values(), anatomy.soles, strict=True):
        bodies = pitch_bodies(robot, q, limb.bodies)
        if len(bodies) == 3 and len(anatomy.legs) <= 2:
            middle = pose(robot, q, sole) @ [*sole.polygon.mean(axis=0), 0.0, 1.0]
            moment = robot.mass * GRAVITY * abs(robot.body_pose(q, bodies[1])[0, 3] - middle[0])
            share = max(share, moment / max(robot.limits.torque[joint[bodies[1]]], 1e-9))
    return share


def _initial_joints(anatomy: LimbProposal, bend: float) -> np.ndarray:
    """Return the initial joints (n,): those of ``q``, with straight knees bent, and deep bends reduced if required."""
    robot, q = anatomy.robot, anatomy.q
    joints, joint = q[7:].copy(), joint_of_body(robot)
    for limb in anatomy.legs.values():
        bodies = pitch_bodies(robot, q, limb.bodies)
        if len(bodies) != 3 or len(anatomy.legs) > 2:
            continue
        hip, knee, ankle = bodies
        present = abs(joints[joint[knee]])
        if present > KNEE_BENDS[0] / 2:
            if bend < min(present, KNEE_BENDS[0]):  # the initial bend needs too much torque
                joints[[joint[body] for body in bodies]] *= bend / present
            continue
        for body, share in ((hip, -0.5), (knee, 1.0), (ankle, -0.5)):
            # about +y a positive angle moves the shank back
            joints[joint[body]] += share * bend * np.sign(joint_axis(robot, q, body)[1])
    return joints


def _solve_posture(anatomy: LimbProposal, start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    robot, soles = anatomy.robot, anatomy.soles
    weight = np.where(_in_legs(anatomy), LEG_JOINT_WEIGHT, OTHER_JOINT_WEIGHT)
    start_places = np.array([pose(robot, start, sole)[:3, 3] - [0, 0, sole.radius] for sole in soles]).reshape(-1, 3)
    start_places = start_places - start[:3]
    q = start.copy()
    q[2] -= (start_places[:, 2] + start[2]).min() if len(start_places) else 0.0
    q[3:7] = [1.0, 0.0, 0.0, 0.0]

    def residual(x: np.ndarray) -> np.ndarray:
        q[:3], q[7:] = x[:3], x[3:]
        rows, middles = [weight * (q[7:] - start[7:])], []
        for sole, place in zip(soles, start_places, strict=True):
            X = pose(robot, q, sole)
            rows.append(
                [HEIGHT_WEIGHT * (X[2, 3] - sole.radius), *(DISPLACEMENT_WEIGHT * (X[:2, 3] - q[:2] - place[:2]))]
            )
            if sole.kind == "surface":
                rows.append(SLOPE_WEIGHT * np.array([X[0, 2], X[1, 2], X[1, 0]]))
            middles.append((X @ [*sole.polygon.mean(axis=0), 0.0, 1.0])[:2])
        if middles:
            rows.append(BALANCE_WEIGHT * (robot.com(q)[:2] - np.mean(middles, axis=0)))
        rows.append(1e-3 * q[:2])
        return np.concatenate(rows)

    x0 = np.concatenate([q[:3], np.clip(q[7:], lower, upper)])
    infinite = np.full(3, np.inf)
    solution = least_squares(residual, x0, bounds=([*-infinite, *lower], [*infinite, *upper]), x_scale=1.0).x
    rounded = np.round(solution[3:], 3) + 0.0
    q[:3], q[7:] = solution[:3], np.clip(rounded, robot.limits.lower, robot.limits.upper)
    q[:2] = np.round(q[:2], 4)
    heights = [pose(robot, q, sole)[2, 3] - sole.radius for sole in soles]
    q[2] = np.round(q[2] - (np.mean(heights) if heights else 0.0), 6)
    return q


def pose(robot: Robot, q: np.ndarray, patch: ProposedPatch) -> np.ndarray:
    """Return the pose (4,4) of a proposed patch in the world."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = patch.R, patch.p
    return robot.frame_pose(q, patch.link) @ X


def _move_arm_aside(
    anatomy: LimbProposal, q: np.ndarray, joints: tuple[int, ...], lower: np.ndarray, upper: np.ndarray
) -> np.ndarray | None:
    """Move one joint of an arm by the smallest angle that separates it from non-adjacent links; None if impossible."""
    robot = anatomy.robot
    arm = {link for link in robot.link_names if set(_moved_by(robot, link)) & set(joints)}

    def depth(q: np.ndarray) -> float:
        return sum(overlap for pair, overlap in overlaps(robot, [q])[0].items() if len(pair & arm) == 1)

    before = depth(q)
    if before == 0.0:
        return None
    best, smallest = None, before
    for angle in (0.1, 0.2, 0.3, 0.45, 0.6, 0.8):
        for joint in joints[:4]:
            for sign in (1, -1):
                q_moved = q.copy()
                q_moved[7 + joint] = np.clip(q[7 + joint] + sign * angle, lower[joint], upper[joint])
                if (remaining := depth(q_moved)) < smallest - 1e-4:
                    best, smallest = q_moved, remaining
        if smallest == 0.0:
            break
    return best


def _moved_by(robot: Robot, link: str) -> list[int]:
    """Return the joints between a link and the root."""
    joint = joint_of_body(robot)
    return [joint[body] for body in chain_of(robot, link)]
