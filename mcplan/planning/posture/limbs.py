"""What the search knows about a robot's limbs: where their patches are in a natural posture, and how far they reach.

Limbs that touch nothing: they stay on the side of a rail, a wall or a pole on which they are.

A posture is found near a reference without a thought of the one before. What bodies overlap is pushed apart the nearer
way out, and so an arm may end above a rail that it hung beside, with no way from the one to the other.

Where limbs in the air must not go: a lifted patch stays above the surfaces below it and beside its neighbours.

The model of collisions keeps bodies apart by millimetres; a patch in the air keeps more, so that it has room to swing.
"""


from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.collision.model import CollisionModel
from mcplan.core.posture.rows import OF_POINT, PLACE_ROWS
from mcplan.core.rigid_body.tree import PARENT, PRISMATIC, TYPE, Q, V
from mcplan.planning.posture.freedom import ContactRows, cell_row
from mcplan.robot.robot import Robot
from mcplan.robot.sizes import chain_of
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface

AHEAD, BELOW = 0.25, 0.1
"""m: how far before and below its root a limb that touches nothing at the start is expected to touch."""

FARTHEST = 10.0
"""m: a slide that has no end goes no farther."""

NEAR = 0.3
"""Share of a limb's length from its root that does not give way: the thigh, the upper arm."""


@dataclass(frozen=True, eq=False)
class Limb:
    """One limb.

    Attributes
    ----------
    name : of the limb.
    patches : its patches that may touch, in the robot's order.
    root : (3,) its first joint in the base's heading frame, at the start.
    length : from there along the joints to the farthest patch, slides drawn out (m).
    """

    name: str
    patches: tuple[str, ...]
    root: np.ndarray
    length: float


def limbs_of(robot: Robot, q: np.ndarray, patches: tuple[str, ...]) -> dict[str, Limb]:
    """Return the limbs that own ``patches``, at the posture ``q`` (nq,)."""
    names = dict.fromkeys(patch.limb for patch in robot.patches.values() if patch.name in patches)
    turn = level_rotation(q)
    found = {}
    for name in names:
        own = tuple(patch.name for patch in robot.patches.values() if patch.limb == name and patch.name in patches)
        ancestors = [chain_of(robot, patch) for patch in own]
        length, root = 0.0, np.zeros(3)
        for patch, chain in zip(own, ancestors, strict=True):
            chain = _without_trunk(robot, chain, name)
            places = [_body_place(robot, q, body) for body in chain] + [robot.frame_pose(q, patch)[:3, 3]]
            own_length = float(np.sum(np.linalg.norm(np.diff(places, axis=0), axis=1)))
            drawn = (_stroke(robot, q, *piece) for piece in zip(chain, [places[0], *places], strict=False))
            length = max(length, own_length + sum(drawn))
            root = turn.T @ (places[0] - q[:3])
        found[name] = Limb(name, own, root, length)
    return found


def far_links(robot: Robot, q: np.ndarray, limbs: Mapping[str, Limb]) -> frozenset[str]:
    """Return the links beyond ``NEAR`` of the way from a limb's root to its patches: those that may give way."""
    far: set[int] = set()
    for limb in limbs.values():
        for patch in limb.patches:
            chain = _without_trunk(robot, chain_of(robot, patch), limb.name)
            if not chain:  # a patch of the base itself
                continue
            places = np.array([_body_place(robot, q, body) for body in chain])
            way = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(places, axis=0), axis=1)))
            far |= {body for body, length in zip(chain, way, strict=True) if length > NEAR * limb.length}
    far = _grown(robot, far)
    return frozenset(link for link in robot.link_names if robot.frame(link)[0] in far)


def nominal_offsets(
    robot: Robot, q: np.ndarray, contacts: tuple[Contact, ...], limbs: dict[str, Limb]
) -> dict[str, np.ndarray]:
    """Return the nominal place (3,) of each patch in the base's heading frame.

    That of the start where the patch touches there, or another one of its limb does; else ahead of the limb's root.
    """
    turn = level_rotation(q)
    touching = {contact.patch: turn.T @ (contact.p - q[:3]) for contact in contacts}
    offsets = {}
    for limb in limbs.values():
        own = [touching[patch] for patch in limb.patches if patch in touching]
        for patch in limb.patches:
            if patch in touching:
                offsets[patch] = touching[patch]
            elif own:
                place = turn.T @ (robot.frame_pose(q, patch)[:3, 3] - q[:3])
                offsets[patch] = np.array([place[0], place[1], min(p[2] for p in own)])
            else:
                offsets[patch] = limb.root + robot.scale.arm * np.array([AHEAD, 0.0, -BELOW])
    return offsets


def joints_of(robot: Robot, limb: str) -> np.ndarray:
    """Return the indices into q of the joints that move patches of this limb and of no other."""
    return np.unique(robot.tree.topology[sorted(_bodies(robot, limb)), Q])


def rates_of(robot: Robot, limb: str) -> np.ndarray:
    """Return the indices into v of the same joints."""
    return np.unique(robot.tree.topology[sorted(_bodies(robot, limb)), V])


def links_of(robot: Robot, limb: str) -> frozenset[str]:
    """Return the links that these joints move, fingers beyond a hand among them."""
    bodies = _grown(robot, _bodies(robot, limb))
    return frozenset(link for link in robot.link_names if robot.frame(link)[0] in bodies)


def _bodies(robot: Robot, limb: str) -> set[int]:
    bodies: set[int] = set()
    for patch in robot.patches.values():
        if patch.limb == limb:
            bodies.update(_without_trunk(robot, chain_of(robot, patch.name), limb))
    return bodies


def _grown(robot: Robot, bodies: set[int]) -> set[int]:
    """Return the bodies and all that hang on them."""
    topology, grown = robot.tree.topology, set(bodies)
    for i in range(len(topology)):  # parents come before their children
        if int(topology[i, PARENT]) in grown:
            grown.add(i)
    return grown


def level_rotation(q: np.ndarray) -> np.ndarray:
    """Return the rotation (3,3) about the vertical by the heading of the base."""
    return Rotation.from_euler("z", base_yaw(q)).as_matrix()


def base_yaw(q: np.ndarray) -> float:
    """Return the heading of the base (rad): of its x axis, or where that is steep, of its y axis less a right angle."""
    R = Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix()
    if np.hypot(*R[:2, 0]) > 0.5:
        return float(np.arctan2(R[1, 0], R[0, 0]))
    return float(np.arctan2(-R[0, 1], R[1, 1]))


def _without_trunk(robot: Robot, chain: list[int], limb: str) -> list[int]:
    """Drop the bodies that carry a patch of another limb too (a waist that carries both arms)."""
    others = [chain_of(robot, patch.name) for patch in robot.patches.values() if patch.limb != limb]
    shared = {body for other in others for body in other}
    return [body for body in chain if body not in shared] or chain[-1:]


def _stroke(robot: Robot, q: np.ndarray, body: int, before: np.ndarray) -> float:
    """Return how much farther (m) from ``before`` (3,) a body is at the better end of its slide than at q."""
    kind, at = robot.tree.topology[body, [TYPE, Q]]
    if kind != PRISMATIC:
        return 0.0
    away = []
    for end in np.clip([robot.limits.lower[at - 7], robot.limits.upper[at - 7], q[at]], -FARTHEST, FARTHEST):
        there = q.copy()
        there[at] = end
        away.append(float(np.linalg.norm(_body_place(robot, there, body) - before)))
    return max(away) - away[-1]


def _body_place(robot: Robot, q: np.ndarray, body: int) -> np.ndarray:
    for link in robot.link_names:
        index, offset = robot.frame(link)
        if index == body and not offset[9:].any():
            return robot.frame_pose(q, link)[:3, 3]
    return q[:3]


DEEP = 0.01
"""m: bodies that overlap by less than this on the straight way between two postures are got around easily."""

SAMPLES = 7
"""Postures between two that are looked at."""


class FreeLimbs:
    """Tells which limbs would have to go through something, and keeps them where they were.

    Parameters
    ----------
    robot, collisions : the scene.
    """

    def __init__(self, robot: Robot, collisions: CollisionModel):
        self.robot, self.collisions = robot, collisions
        names = dict.fromkeys(patch.limb for patch in robot.patches.values())
        own = {name: links_of(robot, name) for name in names}
        links = set(robot.link_names)
        self._rates = {name: rates_of(robot, name) for name in names}
        deep = -robot.scale.arm * DEEP
        of = {name: [pair.a in own[name] and pair.b not in links for pair in collisions.pairs] for name in names}
        self._margins = {name: np.where(mine, deep, -np.inf) for name, mine in of.items() if any(mine)}

    def crossing(self, touching: Collection[str], q0: np.ndarray, q1: np.ndarray) -> tuple[str, ...]:
        """Return the limbs that go through something on the straight way from one posture to another, by name.

        Parameters
        ----------
        touching : patches in contact; their limbs are left out, for their way is planned.
        q0, q1 : (nq,) postures.
        """
        held = {self.robot.patches[patch].limb for patch in touching}
        found = [name for name in self._margins if name not in held]
        way = self.robot.difference(q0, q1)
        between = [self.robot.integrate(q0, way, share) for share in np.arange(1, SAMPLES + 1) / (SAMPLES + 1)]
        least, margins = self.collisions.least, self._margins
        return tuple(name for name in found if any(least(q, margins[name]) is not None for q in between))

    def kept(self, limbs: Collection[str], q: np.ndarray, guide: np.ndarray) -> np.ndarray:
        """Return ``guide`` (nq,) with the joints of some limbs as they are in ``q``."""
        way = self.robot.difference(guide, q)
        mine = np.zeros(self.robot.nv, bool)
        for limb in limbs:
            mine[self._rates[limb]] = True
        return np.asarray(self.robot.integrate(guide, np.where(mine, way, 0.0), 1.0))


LIFT = 0.05
"""m: height of a lifted patch above a surface."""

GAP = 0.04
"""m: sideways distance of a lifted patch from one that stays on the same support, as far as it had it."""

REACH, UNDER = 0.10, 0.1
"""m: a surface counts when the patch is over it or this near to its border, and no farther below its plane."""


def airborne(
    robot: Robot, environment: Environment, guide: np.ndarray, in_place: Iterable[Contact], lifted: Sequence[Contact]
) -> dict[str, ContactRows]:
    """Return the rows that patches which were in contact, and whose limbs now hang in the air, are to keep.

    Parameters
    ----------
    guide : (nq,) the posture that will be preferred: it says which surfaces are below.
    in_place : contacts of the posture; their limbs are not free.
    lifted : the last contact of each patch that was lifted.

    Returns
    -------
    rows : {patch: rows}, ``n . x >= d`` for each point x of the patch and each plane.
    """
    in_place = tuple(in_place)
    busy = {robot.patches[contact.patch].limb for contact in in_place}
    found = {}
    for contact in lifted:
        patch = robot.patches[contact.patch]
        if patch.limb in busy or contact.kind == "grasp":
            continue
        place = robot.frame_pose(guide, contact.patch)[:3, 3]
        planes = [
            (surface.normal, float(surface.normal @ surface.p) + robot.scale.leg * LIFT)
            for surface in environment.surfaces
            if _below(surface, place, robot.scale.leg)
        ]
        gap = robot.scale.leg * GAP
        planes += [_beside(contact, other, gap) for other in in_place if other.support == contact.support]
        if planes:
            body, offset = robot.frame(contact.patch)
            frame = np.concatenate([offset, np.eye(3).ravel(), np.zeros(3)])
            above = [(n, d + patch.radius) for n, d in planes]
            cell = np.array([cell_row(n, x, d, np.inf, OF_POINT) for n, d in above for x in patch.points])
            found[contact.patch] = ContactRows(PLACE_ROWS, body, frame, np.zeros((0, 6)), cell)
    return found


def _beside(lifted: Contact, other: Contact, gap: float) -> tuple[np.ndarray, float]:
    """Return the plane (n, d) that kept two patches on one support apart best, for the lifted one to stay beyond it."""
    best = (-np.inf, np.zeros(3), 0.0)
    for axis in (other.R[:, 0], other.R[:, 1], lifted.R[:, 0], lifted.R[:, 1]):
        for n in (axis, -axis):
            edge = float((other.world_points @ n).max())
            distance = float((lifted.world_points @ n).min()) - edge
            if distance > best[0]:
                best = (distance, n, edge + min(distance, gap))
    return best[1], best[2]


def _below(surface: Surface, place: np.ndarray, size: float) -> bool:
    """Whether ``place`` (3,) is over the surface, or at most ``UNDER`` under its plane, and near it sideways."""
    if surface.normal[2] < 0.2:
        return False
    local = surface.R.T @ (place - surface.p)
    if local[2] < -size * UNDER:
        return False
    edge = np.roll(surface.polygon, -1, axis=0) - surface.polygon
    outward = np.column_stack([edge[:, 1], -edge[:, 0]]) / np.linalg.norm(edge, axis=1, keepdims=True)
    distance = np.einsum("ij,ij->i", outward, local[:2] - surface.polygon)
    return float(distance.max()) < size * REACH
