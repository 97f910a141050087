"""Proposed patches: soles, ball feet, knees and hands, from the shapes at the ends of the limbs."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mcplan.core.rigid_body.tree import AXIS, GRAVITY, ORIGIN, PARENT, ROTATION
from mcplan.document.document import comment, inline
from mcplan.robot.anatomy import joint_of_body, links_of_bodies, pitch_bodies
from mcplan.robot.pose import quat_from_rotation
from mcplan.robot.proposal.limbs import HEAD, Branch, branches, side
from mcplan.robot.proposal.surface import Face, body_points, face, flattest_direction, lowest_ball
from mcplan.robot.robot import Robot

LEG_END_SHARE = 0.12
"""Limbs that end within this share of the robot's height above its lowest point are legs."""

MIN_SOLE_SHARE = (0.12, 0.035)
"""Minimum length and width of a sole / leg length; smaller ends are balls."""

SOLE_DEPTHS = (1e-3, 2e-3, 4e-3)
"""m: tried depths of a flat sole above its lowest point."""

ROUNDED_SHARE = 0.015
"""Depth of a rounded sole / leg length."""

ANKLE_TORQUE_SHARE, MIN_LEVER = 0.8, 0.01
"""Share of an ankle's torque for the robot's weight; m: minimum lever arm, below which the ankle does not limit the
sole."""

MAX_LEG_TILT = np.deg2rad(50)
"""Maximum tilt of a leg on a ball; within it, the link must not reach beyond the ball."""

HAND_SIDES, GUESSED_HAND_SIDE = (0.02, 0.06), 0.02
"""m: minimum and maximum side of a hand's patch; side for a rounded hand."""


@dataclass(frozen=True, eq=False)
class ProposedPatch:
    """One patch in its link, with the reason for the proposal."""

    name: str
    link: str
    limb: str
    kind: str
    R: np.ndarray
    p: np.ndarray
    polygon: np.ndarray
    why: str
    radius: float = 0.0

    def lines(self) -> Iterator[str]:
        """Yield the lines of its entry in the file."""
        xyz = ", ".join(f"{x:.5g}" for x in np.round(self.p, 6) + 0.0)
        quat = ", ".join(f"{x:.9g}" for x in _snap_quaternion(quat_from_rotation(self.R)))
        yield f"  {inline(self.name)}:  # {comment(self.why)}"
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
    """Limbs of a robot in a posture, by function, and their patches."""

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
    found = LimbProposal(robot, q)
    limbs = branches(robot)
    low = {limb: float(_world_points(robot, q, limb.end)[:, 2].min()) for limb in limbs}
    if not low:
        return found
    top = max(float(_world_points(robot, q, body)[:, 2].max()) for body in range(len(robot.tree.topology)))
    bottom = min(low.values())
    legs = [limb for limb in limbs if low[limb] < bottom + LEG_END_SHARE * (top - bottom) and len(limb.joints) >= 2]
    arms = [limb for limb in limbs if limb not in legs and len(limb.joints) >= 4 and not HEAD.search(limb.names)]
    for name, limb in zip(_limb_names(robot, q, legs), legs, strict=True):
        found.legs[f"{name}_leg"] = limb
        found.soles.append(_sole(robot, q, limb, name))
        if len(legs) == 2 and (knee := _knee(robot, q, limb, name)) is not None:
            found.others.append(knee)
    for name, limb in zip(_limb_names(robot, q, arms), arms, strict=True):
        found.arms[f"{name}_arm"] = limb
        found.others.append(_hand(robot, q, limb, name))
    return found


def leg_length(robot: Robot, q: np.ndarray, limb: Branch) -> float:
    """Return the length along the joints of a limb, and on to its lowest point (m)."""
    places = [robot.body_pose(q, body)[:3, 3] for body in limb.bodies]
    end = places[-1][2] - float(_world_points(robot, q, limb.end)[:, 2].min())
    return float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum()) + max(end, 0.0)


def _limb_names(robot: Robot, q: np.ndarray, group: list[Branch]) -> list[str]:
    """Name limbs left or right, with front or hind if there are four, by position, or by link names if ambiguous.

    If two limbs would have the same name, all are numbered.
    """
    places = np.array([robot.body_pose(q, each.bodies[0])[:3, 3] for each in group]).reshape(-1, 3)
    sides = [place[1] if abs(place[1]) > 0.01 else side(limb.names) for place, limb in zip(places, group, strict=True)]
    names = ["left" if y > 0 else "right" for y in sides]
    x = np.sort(places[:, 0])
    if len(group) == 1:
        return ["single"]
    if len(group) == 4 and x[2] - x[1] > 0.05:
        ends = ["front" if place[0] > (x[1] + x[2]) / 2 else "hind" for place in places]
        names = [f"{end}_{name}" for end, name in zip(ends, names, strict=True)]
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
    found = [robot.frame(link)[1][:9].reshape(3, 3).T for link in links_of_bodies(robot)[body]]
    return np.concatenate([np.concatenate([R, -R]) for R in found])


def _sole(robot: Robot, q: np.ndarray, limb: Branch, name: str) -> ProposedPatch:
    R = robot.body_pose(q, limb.end)[:3, :3]
    down, ahead, leg = -R[2], R[0], leg_length(robot, q, limb)
    shapes = body_points(robot, limb.end)
    limb_name = f"{name}_leg"
    if not shapes:
        link = links_of_bodies(robot)[limb.end][0]
        size = leg * np.array([[-0.1, -0.07], [0.15, 0.07]])
        R_P = np.column_stack([ahead, np.cross(down, ahead), down])
        R_P, p = _on_link(robot, link, R_P, 0.12 * leg * down)
        why = "GUESSED from the leg's length: this link has no shapes"
        return ProposedPatch(f"{name}_sole", link, limb_name, "surface", R_P, p, _corners(*size), why)
    link = max(shapes, key=lambda each: float((shapes[each] @ down).max()))
    points = np.concatenate(list(shapes.values()))
    for depth in (*SOLE_DEPTHS, ROUNDED_SHARE * leg):
        normal = flattest_direction(points, down, _axes(robot, limb.end), depth)
        found = face(points, normal, ahead, np.zeros(3), depth)
        if found.size[0] >= MIN_SOLE_SHARE[0] * leg and found.size[1] >= MIN_SOLE_SHARE[1] * leg:
            low, high = _within_ankle_torque(robot, limb, found)
            R_P, p = _on_link(robot, link, found.R, found.p)
            why = f"the flat end of {link}, {1000 * found.size[0]:.0f} x {1000 * found.size[1]:.0f} mm"
            if not np.allclose([low, high], [found.low, found.high]):
                x, y = 1000 * (high - low)
                why += f", cut to the {x:.0f} x {y:.0f} mm that the ankle bears"
            sole = f"{name}_sole" if f"{name}_sole" not in robot.link_names else f"{name}_foot_sole"
            return ProposedPatch(sole, link, limb_name, "surface", R_P, p, _corners(low, high), why)
    sphere = lowest_ball(robot, limb.end, down)
    lowest = float((points @ down).max())
    if sphere is not None and abs(sphere[0] @ down + sphere[1] - lowest) < SOLE_DEPTHS[0]:
        centre, radius = sphere
    else:
        radius = 0.0
        centre, _ = _ball(points, down, ROUNDED_SHARE * leg)
    R_P = np.column_stack([ahead, np.cross(down, ahead), down])
    R_P, p = _on_link(robot, link, R_P, centre)
    offsets = points - centre
    distances = np.linalg.norm(offsets, axis=1)
    # no part of the link may touch before the ball
    radius = max(radius, float(distances[offsets @ down > np.cos(MAX_LEG_TILT) * distances].max()))
    why = f"a ball at the end of {link}, which rolls; the pose is that of its centre"
    return ProposedPatch(f"{name}_foot", link, limb_name, "ball", R_P, p, np.zeros((1, 2)), why, round(radius, 5))


def _within_ankle_torque(robot: Robot, limb: Branch, found: Face) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners (2,), (2,) of the part of a sole that the ankle torque can use under the robot's weight.

    A force ``m g`` at a distance d from a joint's axis needs the torque ``m g d``, limited to the share
    ``ANKLE_TORQUE_SHARE``.
    """
    low, high = found.low.copy(), found.high.copy()
    body, joints = limb.end, joint_of_body(robot)
    R, p = np.eye(3), np.zeros(3)  # from the body to the end of the leg
    for _ in range(min(2, len(limb.bodies))):
        row = robot.tree.joint[body]
        axis, origin = found.R.T @ R @ row[AXIS : AXIS + 3], found.R.T @ (p - found.p)
        lever = ANKLE_TORQUE_SHARE * robot.limits.torque[joints[body]] / (robot.mass * GRAVITY)
        side = 0 if abs(axis[1]) > 0.8 else 1 if abs(axis[0]) > 0.8 else None
        if side is not None and lever > MIN_LEVER:
            low[side], high[side] = max(low[side], origin[side] - lever), min(high[side], origin[side] + lever)
        # the joint at zero: its parent's frame in this one
        R_J, p_J = row[ROTATION:ORIGIN].reshape(3, 3), row[ORIGIN:AXIS]
        R = R @ R_J.T
        p = p - R @ p_J
        body = int(robot.tree.topology[body, PARENT])
    return (low, high) if (high - low).min() > 2 * MIN_LEVER else (found.low, found.high)


def _ball(points: np.ndarray, down: np.ndarray, depth: float) -> tuple[np.ndarray, float]:
    """Fit a ball to the lower end of points: return centre (3,) and radius from ``|x|² = 2 c'x + r² - c'c``."""
    height = points @ down
    cap = points[height > height.max() - 2 * depth]
    if len(cap) < 4:
        return cap.mean(axis=0), 0.0
    solution = np.linalg.lstsq(np.column_stack([2 * cap, np.ones(len(cap))]), (cap**2).sum(axis=1), rcond=None)[0]
    centre = solution[:3]
    radius = float(np.sqrt(max(solution[3] + centre @ centre, 0.0)))
    return centre + ((height.max() - radius) - centre @ down) * down, radius


def _knee(robot: Robot, q: np.ndarray, limb: Branch, name: str) -> ProposedPatch | None:
    """Return an edge across the front of the shank at the knee, the middle one of three joints that turn about y."""
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
    reach = 0.1 * leg_length(robot, q, limb)
    near = {link: x[np.abs(x[:, 2] - p[2]) < reach] for link, x in points.items()}
    near = {link: x for link, x in near.items() if len(x)}
    if not near:
        return None
    link = max(near, key=lambda each: float(near[each][:, 0].max()))
    x = near[link]
    front = x[x[:, 0] > x[:, 0].max() - 0.01]
    width = max(float(np.ptp(front[:, 1])) / 2, 0.02)
    place = np.array([x[:, 0].max(), float(front[:, 1].mean()), float(front[:, 2].mean())])
    # z forward, x down, y to the left: an edge along y
    R_P, p_P = _on_link(robot, link, R.T @ np.array([[0, 0, 1], [0, 1, 0], [-1, 0, 0.0]]), R.T @ (place - p))
    polygon, why = np.array([[0.0, -width], [0.0, width]]), "an edge across the knee's front"
    return ProposedPatch(f"{name}_knee", link, f"{name}_leg", "surface", R_P, p_P, polygon, why)


def _hand(robot: Robot, q: np.ndarray, limb: Branch, name: str) -> ProposedPatch:
    shapes = body_points(robot, limb.end)
    links = links_of_bodies(robot)[limb.end]
    X = robot.body_pose(q, limb.end)
    R, p = X[:3, :3], X[:3, 3]
    if not shapes:
        before = robot.body_pose(q, limb.bodies[-2])[:3, 3] if len(limb.bodies) > 1 else p + np.array([0, 0, 0.1])
        far = R.T @ (p - before)
        z = far / (np.linalg.norm(far) or 1.0) if np.linalg.norm(far) > 1e-6 else np.array([0, 0, -1.0])
        points, link, why = np.array([0.05 * z]), links[0], "GUESSED beyond the wrist: this link has no shapes"
    else:
        points = np.concatenate(list(shapes.values()))
        link = max(shapes, key=lambda each: float(np.linalg.norm(shapes[each], axis=1).max()))
        distance = np.linalg.norm(points, axis=1)
        far = points[distance > 0.8 * distance.max()].mean(axis=0)
        axes = _axes(robot, limb.end)
        z, why = axes[int(np.argmax(axes @ far))], f"the end of {link}, away from the wrist"
    ahead = np.eye(3)[int(np.argmin(np.abs(z)))]
    for depth in (2e-3, 5e-3, 1e-2, 2e-2):
        found = face(points, z, ahead, np.zeros(3), depth)
        if found.size.min() >= HAND_SIDES[0]:
            break
    middle, half = (found.low + found.high) / 2, np.clip(found.size, GUESSED_HAND_SIDE, HAND_SIDES[1]) / 2
    R_P, p_P = _on_link(robot, link, found.R, found.p + found.R[:, :2] @ middle)
    hand = f"{name}_hand" if f"{name}_hand" not in robot.link_names else f"{name}_palm"
    return ProposedPatch(hand, link, f"{name}_arm", "surface", R_P, p_P, _corners(-half, half), why)
