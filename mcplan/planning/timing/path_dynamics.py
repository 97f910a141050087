"""What of the dynamics along the path of a segment no margin changes: forces, speeds, and how patches come down.

How fast joints may move: a part of their velocity limits, and no faster than their damping lets them.
"""


import numpy as np

from mcplan.core.rigid_body import inverse_dynamics as core
from mcplan.core.rigid_body.tree import workspace
from mcplan.optimize.path_program import law_basis
from mcplan.planning.transition.transition import Segment
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact, largest_per_link

TOUCHING, TOUCHED = 0.01, 0.003
"""m: so near to its support a patch comes down no faster than a pace says, and no faster than balance and grips bear:
tracking leaves it off its path by a millimetre. Farther for robots larger than HRP-2."""

WITHIN = 4
"""Parts of an interval of the grid in which the speed of a patch that comes down is looked at."""

ENDS = 1 / 16
"""Part of a path at either end in which the rate is bounded by the jerk."""

TINY = 1e-9
"""1/s³: third derivatives of a path below this are none."""

NO_WAY = 1e-9
"""m: where the centre of mass has gone no farther than this, it has not begun to move."""


class PathDynamics:
    """A segment at parts ``s`` (m,) of its length.

    Attributes
    ----------
    contacts : those that bear; ``arriving`` those that patches come down to.
    q, v, vd : (m, nq), (m, nv), (m, nv) postures, tangents q' and their derivatives.
    hold, of_u, of_x : (m, nv) the forces that stand still, and those that sdd and sd² take besides.
    jacobians : (m, 6, nv) of each contact, at the world's origin.
    height, along : (m, 2) first and second derivative of the height of the centre of mass, and of how far it has gone.
    speed, from_end : (m,) of the centre of mass, and how far along its way it is from the nearer end at rest.
    joints, closing, third : (m, ..) speeds of joints, of arriving patches within TOUCHING and then within TOUCHED of
        their supports, and third derivatives of q near the ends.
    swung : (m,) how quickly ``of_x`` changes along the path, of that joint of the limbs in the air where it is most.
    travel : how far all mass goes along (m).
    passes : whether it begins or ends in motion.
    """

    def __init__(self, robot: Robot, segment: Segment, s: np.ndarray):
        self._segment = segment
        self.contacts = largest_per_link(robot, segment.contacts)
        self.length, self.end = segment.duration, segment.q[-1]
        self.q, self.v, self.vd = segment.posture.samples(self.length * s)
        place, velocity, bend = segment.centre.samples(self.length * s)
        self.height = np.column_stack([velocity[:, 2], bend[:, 2]])
        self.speed = np.linalg.norm(velocity, axis=1)
        self.along = np.column_stack([self.speed, np.einsum("ij,ij->i", velocity, bend) / np.maximum(self.speed, TINY)])
        steps = np.linalg.norm(np.diff([segment.com[0], *place, segment.com[-1]], axis=0), axis=1)
        gone, left = np.cumsum(steps[:-1]), np.cumsum(steps[:0:-1])[::-1]
        ends = (gone + (0.0 if segment.begin is None else np.inf), left + (0.0 if segment.finish is None else np.inf))
        self.from_end = np.maximum(np.minimum(*ends), NO_WAY)
        self.passes = segment.passes
        self.hold, self.of_u, self.of_x = (np.empty_like(self.v) for _ in range(3))
        still, work = np.zeros(robot.nv), workspace(robot.tree)
        core.path_forces(robot.tree, self.q, self.v, self.vd, still, work, self.hold, self.of_u, self.of_x)
        self.jacobians = {contact.patch: self._about_world(robot, contact) for contact in self.contacts}
        self.s, self.joints, self.closing = s, np.abs(self.v[:, 6:]), np.zeros((len(s), 0))
        self.third, self.swung = np.full(len(s), TINY), np.full(len(s), TINY)
        # v' M v / m is the square of the speed with which all mass goes along: M v is what the first derivative takes
        speed = np.sqrt(np.maximum(np.einsum("ij,ij->i", self.v, self.of_u), 0.0) / robot.mass)
        self.travel = float(np.trapezoid(speed, self.length * s))
        self.arriving: tuple[Contact, ...] = ()

    @classmethod
    def pair(cls, robot: Robot, segment: Segment) -> tuple["PathDynamics", "PathDynamics"]:
        """Return a segment in the nodes of a law, and between them."""
        path, middles = cls(robot, segment, _nodes()), cls(robot, segment, _middles())
        path._bound_speeds(robot, segment, middles)
        return path, middles

    def at(self, robot: Robot, s: np.ndarray) -> "PathDynamics":
        """Return the same segment at other parts s (k,) of its length."""
        return PathDynamics(robot, self._segment, s)

    def _bound_speeds(self, robot: Robot, segment: Segment, middles: "PathDynamics") -> None:
        """Take what is between the nodes into the speeds of joints, and of patches that come down."""
        self.joints = np.maximum(self.joints, _around(middles.joints))
        free = np.flatnonzero(~np.any([np.any(J[:, :, 6:], axis=(0, 1)) for J in self.jacobians.values()], axis=0))
        third, swung = (
            self._change(middles, mine[:, columns], others[:, columns])
            for mine, others, columns in ((self.vd, middles.vd, slice(3, None)), (self.of_x, middles.of_x, 6 + free))
        )
        self.swung = np.maximum(swung, TINY)
        begins = (self.s < ENDS) & (segment.begin is None)
        ends = (1.0 - self.s < ENDS) & (segment.finish is None)
        self.third = np.where(begins | ends, np.maximum(third, TINY), TINY)
        self.arriving = tuple(c.target for c in segment.courses if c.target is not None and not c.hold)
        if self.arriving:
            self.closing = self._closing(robot, segment)

    def _change(self, middles: "PathDynamics", mine: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return how quickly any column of what is known in nodes and between them changes along the path (m,)."""
        if not mine.shape[1]:
            return np.zeros(len(self.s))
        s, values = np.empty(2 * len(self.s) - 1), np.empty((2 * len(self.s) - 1, mine.shape[1]))
        s[::2], s[1::2], values[::2], values[1::2] = self.s, middles.s, mine, others
        with np.errstate(invalid="ignore", divide="ignore"):
            change = np.abs(np.diff(values, axis=0)).max(axis=1) / (np.diff(s) * self.length)
        change[[0, -1]] = change[[1, -2]]  # nodes at the ends are where the middles are
        return np.asarray(_around(change.reshape(-1, 2).max(axis=1, keepdims=True))[:, 0])

    def _about_world(self, robot: Robot, contact: Contact) -> np.ndarray:
        """Return the Jacobians (m, 6, nv) of the point of a contact's link that is at the world's origin.

        A contact that turns, rolls or slides is where its patch is: its forces go along by the little that it moves.
        """
        place, J = _frame(robot, contact.patch, self.q)
        if contact.selection[:, :3].any() and len(contact.selection) < 6:
            J[:, :3] += np.cross((contact.p - place)[:, :, None], J[:, 3:], axis=1)
        return J

    def _closing(self, robot: Robot, segment: Segment) -> np.ndarray:
        """Return how fast patches come down within TOUCHING, then within TOUCHED: (m, twice arriving), m per unit.

        It is the most between the points of the grid on either side: the last of the way is short.
        """
        grid = self.length * law_basis().s
        s = np.interp(np.arange((len(grid) - 1) * WITHIN + 1) / WITHIN, np.arange(len(grid)), grid)
        q = segment.posture.samples(s).q
        height = np.array([(_frame(robot, c.patch, q)[0] - c.p) @ c.normal for c in self.arriving])
        speed, far = np.maximum(-np.diff(height), 0.0) / np.diff(s), height[:, 1:] / max(robot.scale.leg, 1.0)
        within = np.vstack([np.where(far <= near, speed, 0.0) for near in (TOUCHING, TOUCHED)])
        return _around(within.reshape(len(within), -1, WITHIN).max(axis=2).T)


def _frame(robot: Robot, name: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where a frame is (m, 3), and the Jacobians (m, 6, nv) of its link's point at the world's origin."""
    place, J = np.empty((len(q), 3)), np.empty((len(q), 6, robot.nv))
    core.path_of_frame(robot.tree, q, *robot.frame(name), workspace(robot.tree), place, J)
    return place, J


def _nodes() -> np.ndarray:
    """Return where the dynamics of the nodes are taken.

    At the ends of a segment, where q' = q'' = 0, any rate is rest: there the middles of the first and of the last
    interval count.
    """
    s = law_basis().s.copy()
    s[0], s[-1] = 0.5 * s[1], 0.5 * (s[-2] + 1.0)
    return s


def _middles() -> np.ndarray:
    s = law_basis().s
    return 0.5 * (s[:-1] + s[1:])


def _around(values: np.ndarray) -> np.ndarray:
    """Return the greater values (m, n) of the intervals (m - 1, n) on either side of each node."""
    none = np.zeros((1, values.shape[1]))
    return np.maximum(np.vstack([values, none]), np.vstack([none, values]))


DAMPED = 0.5
"""Part of a joint's torque that its damping may take: a wrist of 0.5 N m that is damped with 1 N m s/rad is slow."""


def joint_speeds(robot: Robot, part: float) -> np.ndarray:
    """Return the greatest speeds (n,) of joints that use a part of their velocity limits, rad/s (m/s)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        damped = np.where(robot.joint_damping > 0.0, DAMPED * robot.limits.torque / robot.joint_damping, np.inf)
    return np.minimum(part * robot.limits.velocity, damped)
