"""Half-sitting posture by optimization: knees bent, soles level on the ground, balanced, away from joint limits."""

import numpy as np
from scipy.optimize import least_squares

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.robot.anatomy import chain_of, joint_axis, joint_of_body, pitch_bodies
from mcplan.robot.link_solids import overlaps
from mcplan.robot.proposal.patches import LimbProposal, ProposedPatch
from mcplan.robot.robot import Robot

KNEE_BENDS = (0.7, 0.6, 0.5, 0.4, 0.3)
"""Candidate bends (rad) of the knees; the deepest feasible one is used. Hip and ankle bend back by half of it."""

MAX_KNEE_SHARE = 0.5
"""Largest allowed share of a knee's torque limit when one leg carries the whole weight."""

LEG_MARGIN, ARM_MARGIN = 0.05, 0.25
"""Distance (rad) of leg joints and of other joints from their limits; at most a tenth of the joint's range."""

HEIGHT_WEIGHT, SLOPE_WEIGHT, BALANCE_WEIGHT, DISPLACEMENT_WEIGHT = 50.0, 10.0, 30.0, 5.0
"""Weights of the height of feet (m), the slope of soles (rad), the offset of the centre of mass from the feet (m) and
the horizontal displacement of feet (m)."""

LEG_JOINT_WEIGHT, OTHER_JOINT_WEIGHT = 0.5, 1.0
"""Weights of joint displacements (rad) in the legs and elsewhere."""


def half_sitting(anatomy: LimbProposal) -> np.ndarray:
    """Return the posture ``q`` (nq,) with the ground at z = 0; arms that overlap other links are moved aside.

    Minimises over the base position and the joints, with the base level and the joints in their limits,

        HEIGHT_WEIGHT² z² + SLOPE_WEIGHT² slope² + BALANCE_WEIGHT² |c - c_feet|² + DISPLACEMENT_WEIGHT² |p - p0|²
        + (joints - joints0)²

    summed over all feet: z is the height of a foot, slope the tilt of a sole, c the horizontal centre of mass, c_feet
    the mean foot centre, p the horizontal position of a foot relative to the base; 0 denotes initial values.
    """
    lower, upper = _bounds(anatomy)
    start = anatomy.q.copy()
    for bend in KNEE_BENDS:
        start[7:] = np.clip(_initial_joints(anatomy, bend), lower, upper)
        q = _solve_posture(anatomy, start, lower, upper)
        if _knee_torque_share(anatomy, q) <= MAX_KNEE_SHARE:
            break
    for name, limb in anatomy.arms.items():
        q_aside = _move_arm_aside(anatomy, q, limb.joints, lower, upper)
        if q_aside is not None:
            q = _solve_posture(anatomy, q_aside, lower, upper)
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
    """Return the largest share of a knee's torque limit used when standing on one foot: ``m g |x - x_foot| / tau``."""
    robot, joint_index, share = anatomy.robot, joint_of_body(anatomy.robot), 0.0
    for limb, sole in zip(anatomy.legs.values(), anatomy.soles, strict=True):
        bodies = pitch_bodies(robot, q, limb.bodies)
        if len(bodies) == 3 and len(anatomy.legs) <= 2:
            foot_centre = pose(robot, q, sole) @ [*sole.polygon.mean(axis=0), 0.0, 1.0]
            moment = robot.mass * GRAVITY * abs(robot.body_pose(q, bodies[1])[0, 3] - foot_centre[0])
            share = max(share, moment / max(robot.limits.torque[joint_index[bodies[1]]], 1e-9))
    return share


def _initial_joints(anatomy: LimbProposal, bend: float) -> np.ndarray:
    """Return the initial joint positions (n,): those of ``q``, with straight knees bent, deep bends reduced."""
    robot, q = anatomy.robot, anatomy.q
    joints, joint_index = q[7:].copy(), joint_of_body(robot)
    for limb in anatomy.legs.values():
        bodies = pitch_bodies(robot, q, limb.bodies)
        if len(bodies) != 3 or len(anatomy.legs) > 2:
            continue
        hip, knee, ankle = bodies
        initial_bend = abs(joints[joint_index[knee]])
        if initial_bend > KNEE_BENDS[0] / 2:
            if bend < min(initial_bend, KNEE_BENDS[0]):  # the initial bend needs too much torque
                joints[[joint_index[body] for body in bodies]] *= bend / initial_bend
            continue
        for body, fraction in ((hip, -0.5), (knee, 1.0), (ankle, -0.5)):
            # about +y a positive angle moves the shank back
            joints[joint_index[body]] += fraction * bend * np.sign(joint_axis(robot, q, body)[1])
    return joints


def _solve_posture(anatomy: LimbProposal, start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    robot, soles = anatomy.robot, anatomy.soles
    weight = np.where(_in_legs(anatomy), LEG_JOINT_WEIGHT, OTHER_JOINT_WEIGHT)
    start_positions = np.array([pose(robot, start, sole)[:3, 3] - [0, 0, sole.radius] for sole in soles]).reshape(-1, 3)
    start_positions = start_positions - start[:3]
    q = start.copy()
    q[2] -= (start_positions[:, 2] + start[2]).min() if len(start_positions) else 0.0
    q[3:7] = [1.0, 0.0, 0.0, 0.0]

    def residual(x: np.ndarray) -> np.ndarray:
        q[:3], q[7:] = x[:3], x[3:]
        rows, foot_centres = [weight * (q[7:] - start[7:])], []
        for sole, start_position in zip(soles, start_positions, strict=True):
            X = pose(robot, q, sole)
            rows.append(
                [
                    HEIGHT_WEIGHT * (X[2, 3] - sole.radius),
                    *(DISPLACEMENT_WEIGHT * (X[:2, 3] - q[:2] - start_position[:2])),
                ]
            )
            if sole.kind == "surface":
                rows.append(SLOPE_WEIGHT * np.array([X[0, 2], X[1, 2], X[1, 0]]))
            foot_centres.append((X @ [*sole.polygon.mean(axis=0), 0.0, 1.0])[:2])
        if foot_centres:
            rows.append(BALANCE_WEIGHT * (robot.com(q)[:2] - np.mean(foot_centres, axis=0)))
        rows.append(1e-3 * q[:2])
        return np.concatenate(rows)

    x0 = np.concatenate([q[:3], np.clip(q[7:], lower, upper)])
    no_bound = np.full(3, np.inf)
    solution = least_squares(residual, x0, bounds=([*-no_bound, *lower], [*no_bound, *upper]), x_scale=1.0).x
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
    arm = {link for link in robot.link_names if set(_joints_to_link(robot, link)) & set(joints)}

    def overlap_depth(q: np.ndarray) -> float:
        return sum(overlap for pair, overlap in overlaps(robot, [q])[0].items() if len(pair & arm) == 1)

    initial_overlap = overlap_depth(q)
    if initial_overlap == 0.0:
        return None
    best_q, min_overlap = None, initial_overlap
    for angle in (0.1, 0.2, 0.3, 0.45, 0.6, 0.8):
        for joint in joints[:4]:
            for sign in (1, -1):
                q_moved = q.copy()
                q_moved[7 + joint] = np.clip(q[7 + joint] + sign * angle, lower[joint], upper[joint])
                if (remaining := overlap_depth(q_moved)) < min_overlap - 1e-4:
                    best_q, min_overlap = q_moved, remaining
        if min_overlap == 0.0:
            break
    return best_q


def _joints_to_link(robot: Robot, link: str) -> list[int]:
    """Return the indices of the joints between the root and a link."""
    joint_index = joint_of_body(robot)
    return [joint_index[body] for body in chain_of(robot, link)]
