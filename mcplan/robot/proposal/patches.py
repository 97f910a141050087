"""Proposal of patches (soles, ball feet, knees, hands) from the shapes at the ends of the limbs."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mcplan.core.rigid_body.tree import AXIS, GRAVITY, ORIGIN, PARENT, ROTATION
from mcplan.document.document import comment, inline
from mcplan.robot.anatomy import joint_of_body, links_of_bodies, pitch_bodies
from mcplan.robot.pose import quat_from_rotation
from mcplan.robot.proposal.limbs import HEAD_PATTERN, Branch, branches, side
from mcplan.robot.proposal.surface import Face, body_points, face, flattest_direction, lowest_ball
from mcplan.robot.robot import Robot

LEG_END_SHARE = 0.12
"""Limbs that end within this share of the robot's height above its lowest point are legs."""

MIN_SOLE_SHARE = (0.12, 0.035)
"""Minimum length and width of a sole, divided by the leg length; smaller ends of legs become balls."""

SOLE_DEPTHS = (1e-3, 2e-3, 4e-3)
"""Depths (m) above the lowest point of a flat sole within which points count as on the sole, tried in this order."""

ROUNDED_SHARE = 0.015
"""The same depth for a rounded sole, divided by the leg length."""

ANKLE_TORQUE_SHARE, MIN_LEVER = 0.8, 0.01
"""Share of an ankle's torque limit that may carry the robot's weight, and the lever arm (m) below which the ankle is
not used to limit the sole."""

MAX_LEG_TILT = np.deg2rad(50)
"""Maximum tilt (rad) of a leg on a ball; up to it no other part of the link may touch the ground."""

HAND_SIDES, GUESSED_HAND_SIDE = (0.02, 0.06), 0.02
"""Minimum and maximum side (m) of a hand's patch, and side (m) of the patch of a rounded hand."""


@dataclass(frozen=True, eq=False)
class ProposedPatch:
    """A proposed patch, with the fields of a `Patch` and the reason of the proposal."""

    name: str
    link: str
    limb: str
    kind: str
    R: np.ndarray
    p: np.ndarray
    polygon: np.ndarray
    reason: str
    radius: float = 0.0

    def lines(self) -> Iterator[str]:
        """Yield the lines of the patch in a robot.yaml."""
        xyz = ", ".join(f"{x:.5g}" for x in np.round(self.p, 6) + 0.0)
        quat = ", ".join(f"{x:.9g}" for x in _snap_quaternion(quat_from_rotation(self.R)))
        yield f"  {inline(self.name)}:  # {comment(self.reason)}"
        yield f"    link: {inline(self.link)}"
        yield f"    limb: {inline(self.limb)}"
        yield f"    pose: {{xyz: [{xyz}], quat_wxyz: [{quat}]}}"
        if self.kind == "surface":
            corners = ", ".join(f"[{x:.4g}, {y:.4g}]" for x, y in np.round(self.polygon, 4) + 0.0)
            yield f"    polygon: [{corners}]"
        else:
            yield f"    kind: {self.kind}"
            if self.radius:
                yield f"    radius: {self.radius:.5g}"


@dataclass(eq=False)
class LimbProposal:
    """Legs and arms of a robot in the posture ``q`` (nq,), and the patches proposed for them."""

    robot: Robot
    q: np.ndarray
    legs: dict[str, Branch] = field(default_factory=dict)
    arms: dict[str, Branch] = field(default_factory=dict)
    soles: list[ProposedPatch] = field(default_factory=list)
    others: list[ProposedPatch] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def patches(self) -> list[ProposedPatch]:
        """All patches, foot patches first."""
        return [*self.soles, *self.others]


def propose_limbs(robot: Robot, q: np.ndarray) -> LimbProposal:
    """Find legs and arms and propose their patches; ``q`` (nq,) is roughly a standing posture with a level base."""
    proposal = LimbProposal(robot, q)
    limbs = branches(robot)
    heights = {limb: float(_world_points(robot, q, limb.end)[:, 2].min()) for limb in limbs}
    if not heights:
        return proposal
    top = max(float(_world_points(robot, q, body)[:, 2].max()) for body in range(len(robot.tree.topology)))
    ground = min(heights.values())
    legs = [limb for limb in limbs if heights[limb] < ground + LEG_END_SHARE * (top - ground) and len(limb.joints) >= 2]
    arms = [
        limb for limb in limbs if limb not in legs and len(limb.joints) >= 4 and not HEAD_PATTERN.search(limb.names)
    ]
    for name, limb in zip(_limb_names(robot, q, legs), legs, strict=True):
        proposal.legs[f"{name}_leg"] = limb
        proposal.soles.append(_sole(robot, q, limb, name))
        if len(legs) == 2 and (knee := _knee(robot, q, limb, name)) is not None:
            proposal.others.append(knee)
    for name, limb in zip(_limb_names(robot, q, arms), arms, strict=True):
        proposal.arms[f"{name}_arm"] = limb
        proposal.others.append(_hand(robot, q, limb, name))
    return proposal


def leg_length(robot: Robot, q: np.ndarray, limb: Branch) -> float:
    """Return the length (m) of a leg: along its joints, and from the last one down to the lowest point."""
    positions = [robot.body_pose(q, body)[:3, 3] for body in limb.bodies]
    ankle_height = positions[-1][2] - float(_world_points(robot, q, limb.end)[:, 2].min())
    return float(np.linalg.norm(np.diff(positions, axis=0), axis=1).sum()) + max(ankle_height, 0.0)


def _limb_names(robot: Robot, q: np.ndarray, group: list[Branch]) -> list[str]:
    """Return the names of limbs: left or right, with front or hind if there are four.

    The side follows from the position, near the middle plane from the link names. If two limbs would have the same
    name, all are numbered.
    """
    positions = np.array([robot.body_pose(q, limb.bodies[0])[:3, 3] for limb in group]).reshape(-1, 3)
    sides = [
        position[1] if abs(position[1]) > 0.01 else side(limb.names)
        for position, limb in zip(positions, group, strict=True)
    ]
    names = ["left" if y > 0 else "right" for y in sides]
    x = np.sort(positions[:, 0])
    if len(group) == 1:
        return ["single"]
    if len(group) == 4 and x[2] - x[1] > 0.05:
        prefixes = ["front" if position[0] > (x[1] + x[2]) / 2 else "hind" for position in positions]
        names = [f"{prefix}_{name}" for prefix, name in zip(prefixes, names, strict=True)]
    elif len(group) > 2:
        names = []
    return names if len(set(names)) == len(group) else [f"limb{k + 1}" for k in range(len(group))]


def _world_points(robot: Robot, q: np.ndarray, body: int) -> np.ndarray:
    """Return points (k,3) of a body in the world; without shapes, the origins of its links."""
    X = robot.body_pose(q, body)
    R, p = X[:3, :3], X[:3, 3]
    shapes = body_points(robot, body)
    if shapes:
        return np.concatenate(list(shapes.values())) @ R.T + p
    return np.array([robot.frame_pose(q, link)[:3, 3] for link in links_of_bodies(robot)[body]])


def _on_link(robot: Robot, link: str, R: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert a pose from the body's frame to that of one of its links."""
    offset = robot.frame(link)[1]
    R_L = offset[:9].reshape(3, 3)
    return R_L.T @ R, R_L.T @ (p - offset[9:])


def _snap_quaternion(quat: np.ndarray) -> np.ndarray:
    """Snap the components of a quaternion to those of a quarter or half turn within 1e-4."""
    exact = np.array([0.0, 0.5, np.sqrt(0.5), 1.0])
    nearest = np.sign(quat) * exact[np.argmin(np.abs(np.abs(quat)[:, None] - exact), axis=1)]
    return nearest + 0.0 if np.abs(nearest - quat).max() < 1e-4 else np.round(quat, 9) + 0.0


def _corners(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])


def _axes(robot: Robot, body: int) -> np.ndarray:
    """Return the axes (m,3) of a body's links, in both directions."""
    rotations = [robot.frame(link)[1][:9].reshape(3, 3).T for link in links_of_bodies(robot)[body]]
    return np.concatenate([np.concatenate([R, -R]) for R in rotations])


def _sole(robot: Robot, q: np.ndarray, limb: Branch, name: str) -> ProposedPatch:
    R = robot.body_pose(q, limb.end)[:3, :3]
    down, forward, leg = -R[2], R[0], leg_length(robot, q, limb)
    shapes = body_points(robot, limb.end)
    limb_name = f"{name}_leg"
    if not shapes:
        link = links_of_bodies(robot)[limb.end][0]
        size = leg * np.array([[-0.1, -0.07], [0.15, 0.07]])
        R_P = np.column_stack([forward, np.cross(down, forward), down])
        R_P, p = _on_link(robot, link, R_P, 0.12 * leg * down)
        reason = "GUESSED from the leg's length: this link has no shapes"
        return ProposedPatch(f"{name}_sole", link, limb_name, "surface", R_P, p, _corners(*size), reason)
    link = max(shapes, key=lambda name_of_link: float((shapes[name_of_link] @ down).max()))
    points = np.concatenate(list(shapes.values()))
    for depth in (*SOLE_DEPTHS, ROUNDED_SHARE * leg):
        normal = flattest_direction(points, down, _axes(robot, limb.end), depth)
        sole_face = face(points, normal, forward, np.zeros(3), depth)
        if sole_face.size[0] >= MIN_SOLE_SHARE[0] * leg and sole_face.size[1] >= MIN_SOLE_SHARE[1] * leg:
            low, high = _within_ankle_torque(robot, limb, sole_face)
            R_P, p = _on_link(robot, link, sole_face.R, sole_face.p)
            reason = f"the flat end of {link}, {1000 * sole_face.size[0]:.0f} x {1000 * sole_face.size[1]:.0f} mm"
            if not np.allclose([low, high], [sole_face.low, sole_face.high]):
                x, y = 1000 * (high - low)
                reason += f", cut to the {x:.0f} x {y:.0f} mm that the ankle bears"
            sole = f"{name}_sole" if f"{name}_sole" not in robot.link_names else f"{name}_foot_sole"
            return ProposedPatch(sole, link, limb_name, "surface", R_P, p, _corners(low, high), reason)
    sphere = lowest_ball(robot, limb.end, down)
    lowest = float((points @ down).max())
    if sphere is not None and abs(sphere[0] @ down + sphere[1] - lowest) < SOLE_DEPTHS[0]:
        centre, radius = sphere
    else:
        radius = 0.0
        centre, _ = _ball(points, down, ROUNDED_SHARE * leg)
    R_P = np.column_stack([forward, np.cross(down, forward), down])
    R_P, p = _on_link(robot, link, R_P, centre)
    offsets = points - centre
    distances = np.linalg.norm(offsets, axis=1)
    # no part of the link may touch before the ball
    radius = max(radius, float(distances[offsets @ down > np.cos(MAX_LEG_TILT) * distances].max()))
    reason = f"a ball at the end of {link}, which rolls; the pose is that of its centre"
    return ProposedPatch(f"{name}_foot", link, limb_name, "ball", R_P, p, np.zeros((1, 2)), reason, round(radius, 5))


def _within_ankle_torque(robot: Robot, limb: Branch, sole_face: Face) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners (2,), (2,) of the part of a sole that the ankle torque can use under the robot's weight.

    A force ``m g`` at a distance d from a joint's axis needs the torque ``m g d``, limited to the share
    ``ANKLE_TORQUE_SHARE``.
    """
    low, high = sole_face.low.copy(), sole_face.high.copy()
    body, joints = limb.end, joint_of_body(robot)
    R, p = np.eye(3), np.zeros(3)  # pose of ``body`` in the last body of the leg
    for _ in range(min(2, len(limb.bodies))):
        row = robot.tree.joint[body]
        axis, origin = sole_face.R.T @ R @ row[AXIS : AXIS + 3], sole_face.R.T @ (p - sole_face.p)
        lever = ANKLE_TORQUE_SHARE * robot.limits.torque[joints[body]] / (robot.mass * GRAVITY)
        k = 0 if abs(axis[1]) > 0.8 else 1 if abs(axis[0]) > 0.8 else None
        if k is not None and lever > MIN_LEVER:
            low[k], high[k] = max(low[k], origin[k] - lever), min(high[k], origin[k] + lever)
        # pose of the parent body in the last body, with the joint at position zero
        R_J, p_J = row[ROTATION:ORIGIN].reshape(3, 3), row[ORIGIN:AXIS]
        R = R @ R_J.T
        p = p - R @ p_J
        body = int(robot.tree.topology[body, PARENT])
    return (low, high) if (high - low).min() > 2 * MIN_LEVER else (sole_face.low, sole_face.high)


def _ball(points: np.ndarray, down: np.ndarray, depth: float) -> tuple[np.ndarray, float]:
    """Return centre (3,) and radius (m) of a ball fitted to the lower end of points (k,3).

    The fit is linear: ``|x|² = 2 c'x + (r² - c'c)``. The ball is then shifted so that it ends with the lowest point.
    """
    height = points @ down
    cap = points[height > height.max() - 2 * depth]
    if len(cap) < 4:
        return cap.mean(axis=0), 0.0
    solution = np.linalg.lstsq(np.column_stack([2 * cap, np.ones(len(cap))]), (cap**2).sum(axis=1), rcond=None)[0]
    centre = solution[:3]
    radius = float(np.sqrt(max(solution[3] + centre @ centre, 0.0)))
    return centre + ((height.max() - radius) - centre @ down) * down, radius


def _knee(robot: Robot, q: np.ndarray, limb: Branch, name: str) -> ProposedPatch | None:
    """Return an edge patch across the front of the knee, the middle one of three joints that turn about y, or None."""
    bodies = pitch_bodies(robot, q, limb.bodies)
    if len(bodies) < 3:
        return None
    body = bodies[1]
    shapes = body_points(robot, body)
    if not shapes:
        return None
    X = robot.body_pose(q, body)
    R, p = X[:3, :3], X[:3, 3]
    points = {link: (x @ R.T + p) for link, x in shapes.items()}
    knee_range = 0.1 * leg_length(robot, q, limb)
    points_near_knee = {link: x[np.abs(x[:, 2] - p[2]) < knee_range] for link, x in points.items()}
    points_near_knee = {link: x for link, x in points_near_knee.items() if len(x)}
    if not points_near_knee:
        return None
    link = max(points_near_knee, key=lambda link_name: float(points_near_knee[link_name][:, 0].max()))
    x = points_near_knee[link]
    front_points = x[x[:, 0] > x[:, 0].max() - 0.01]
    half_width = max(float(np.ptp(front_points[:, 1])) / 2, 0.02)
    position = np.array([x[:, 0].max(), float(front_points[:, 1].mean()), float(front_points[:, 2].mean())])
    # z forward, x down, y to the left: an edge along y
    R_P, p_P = _on_link(robot, link, R.T @ np.array([[0, 0, 1], [0, 1, 0], [-1, 0, 0.0]]), R.T @ (position - p))
    polygon, reason = np.array([[0.0, -half_width], [0.0, half_width]]), "an edge across the knee's front"
    return ProposedPatch(f"{name}_knee", link, f"{name}_leg", "surface", R_P, p_P, polygon, reason)


def _hand(robot: Robot, q: np.ndarray, limb: Branch, name: str) -> ProposedPatch:
    shapes = body_points(robot, limb.end)
    links = links_of_bodies(robot)[limb.end]
    X = robot.body_pose(q, limb.end)
    R, p = X[:3, :3], X[:3, 3]
    if not shapes:
        previous_position = (
            robot.body_pose(q, limb.bodies[-2])[:3, 3] if len(limb.bodies) > 1 else p + np.array([0, 0, 0.1])
        )
        outward = R.T @ (p - previous_position)
        z = outward / (np.linalg.norm(outward) or 1.0) if np.linalg.norm(outward) > 1e-6 else np.array([0, 0, -1.0])
        points, link, reason = np.array([0.05 * z]), links[0], "GUESSED beyond the wrist: this link has no shapes"
    else:
        points = np.concatenate(list(shapes.values()))
        link = max(shapes, key=lambda link_name: float(np.linalg.norm(shapes[link_name], axis=1).max()))
        distances = np.linalg.norm(points, axis=1)
        outward = points[distances > 0.8 * distances.max()].mean(axis=0)
        axes = _axes(robot, limb.end)
        z, reason = axes[int(np.argmax(axes @ outward))], f"the end of {link}, away from the wrist"
    forward = np.eye(3)[int(np.argmin(np.abs(z)))]
    for depth in (2e-3, 5e-3, 1e-2, 2e-2):
        hand_face = face(points, z, forward, np.zeros(3), depth)
        if hand_face.size.min() >= HAND_SIDES[0]:
            break
    middle, half = (hand_face.low + hand_face.high) / 2, np.clip(hand_face.size, GUESSED_HAND_SIDE, HAND_SIDES[1]) / 2
    R_P, p_P = _on_link(robot, link, hand_face.R, hand_face.p + hand_face.R[:, :2] @ middle)
    hand = f"{name}_hand" if f"{name}_hand" not in robot.link_names else f"{name}_palm"
    return ProposedPatch(hand, link, f"{name}_arm", "surface", R_P, p_P, _corners(-half, half), reason)
