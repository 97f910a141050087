"""Gait: the steps of a plan on level ground as a walk of given duration, with centre of mass, feet and postures.

The times of lift-off and touchdown are fixed samples. The path of the centre of mass is the optimum of a convex program
(`mcplan.optimize.preview`), at a height that decreases by ``lowered`` in the first step and increases again in the last
one: a leg needs bent knees to swing. A foot moves from p0 to p1 on

    p(r) = p0 + f(r) (p1 - p0) + 64 h r³ (1 - r)³ n,   r from 0 to 1

with the normal n and the swing height h, reached at r = 1/2. The share f accelerates and decelerates within
`ACCELERATION_SHARE` of the time, with constant speed in between, which keeps the largest leg speed small. Postures come
from the posture search. The angular momentum of the legs enters the program in a second round.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.core.posture.rows import POSE_ROWS
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.rotation import rotation_vector
from mcplan.motion.spline import PostureSpline, minimum_jerk
from mcplan.optimize.preview import Preview, centre_of_mass
from mcplan.planning.plan import PlannedStance
from mcplan.planning.posture.freedom import FrameRows
from mcplan.planning.posture.task import PostureSearch
from mcplan.robot.anatomy import limb_joints
from mcplan.robot.pose import Pose
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.margins import shrink_points
from mcplan.settings.pace import used_fraction

MIN_NORMAL_Z = 0.999
"""Smallest vertical component of the normals of the ground."""

MAX_HEIGHT_DIFFERENCE_M = 0.01
"""Largest height difference of the two soles."""

MIN_STEPS = 2
"""Smallest number of steps of a walk: a single step would begin and end at rest anyway."""


class WalkSection(NamedTuple):
    """Section of a plan from rest to rest on both feet, in which the feet step in turn.

    Attributes
    ----------
    first : index of the stance at rest at the beginning.
    last : index of the stance in which the last foot comes down; the next transition ends at rest.
    """

    first: int
    last: int

    @property
    def steps(self) -> list[tuple[int, int]]:
        """For each step, the indices of the stances in which the foot is lifted, and set down."""
        return [(k, k + 1) for k in range(self.first + 1, self.last, 2)]


def walk_sections(stances: Sequence[PlannedStance]) -> Iterator[WalkSection]:
    """Yield the walks of a plan, each as long as possible."""
    k = 0
    while k < len(stances):
        last = k
        while last + 2 < len(stances) and _is_step(stances, last):
            last += 2
        while last > k and not _can_end(stances, last):
            last -= 2
        if (last - k) // 2 >= MIN_STEPS:
            yield WalkSection(k, last)
            last += 1  # the transition that ends at rest
        k = max(last, k + 1)


def _is_step(stances: Sequence[PlannedStance], k: int) -> bool:
    """Whether a foot is lifted and set down after stance k on two feet, other than the foot of the previous step."""
    both, lifted, landed = stances[k : k + 3]
    foot = lifted.moved
    if (lifted.change, landed.change) != ("remove", "add") or landed.moved != foot or foot is None:
        return False
    earlier = stances[k].moved if stances[k].change == "add" else None
    return foot != earlier and _is_level_stance(both.contacts) and _is_level_stance(landed.contacts)


def _can_end(stances: Sequence[PlannedStance], k: int) -> bool:
    """Whether a motion on both feet follows after stance k, at the end of which the robot can be at rest."""
    return k + 1 < len(stances) and stances[k + 1].change in ("shift", "remove") and not stances[k + 1].objects


def _is_level_stance(contacts: Sequence[Contact]) -> bool:
    """Whether the contacts are two soles on level ground."""
    if len(contacts) != 2 or any(c.kind == "grasp" or c.radius or len(c.points) < 3 or c.carrier for c in contacts):
        return False
    heights = [float(contact.p[2]) for contact in contacts]
    return min(float(c.normal[2]) for c in contacts) > MIN_NORMAL_Z and np.ptp(heights) < MAX_HEIGHT_DIFFERENCE_M


STANDING_SAMPLES = 18
"""Number of samples on both feet at the beginning, and at the end."""

SINGLE_SUPPORT_SAMPLES = 36
"""Largest number of samples on one foot."""

DOUBLE_SUPPORT_SAMPLES = 5
"""Number of samples on both feet between two swings."""

ACCELERATION_SHARE = 0.35
"""Share of the duration of a swing for its acceleration, and the same for its deceleration."""

SWING_HEIGHT_M = 0.02
"""Swing height of a foot, for a robot of the size of HRP-2."""

COP_INSET_M = 0.01
"""Additional inset of the centre of pressure from the edges of the soles, for the tracking of the references."""

MAX_COP_INSET_SHARE = 0.6
"""Largest inset of a small sole, as a share of the distance from the edge to the centre."""

LEG_WEIGHT = 1e-3
"""Weight of the squared deviation of leg joints from their guide (1/rad²)."""

JOINT_WEIGHT = 0.1
"""Weight of the squared deviation of other joints from their guide (1/rad²)."""

BASE_WEIGHT = 1.0
"""Weight of the squared deviation of the base orientation from its guide (1/rad²)."""

ROW_TOLERANCE, STEP_TOLERANCE = 1e-8, 1e-6
"""Tolerances of the posture search: violation, and size of a step (m, rad). Smooth rates need accurate postures."""

IK_STEPS = 60
"""Maximum number of steps of the posture search per sample."""

MOMENTUM_ROUNDS = 2
"""Number of programs for the centre of mass; from the second one on they include the angular momentum of the legs."""

MAX_BASE_TURN_RAD = 2.8
"""Largest turn of the base in a walk: one spline of rotation vectors has to represent it."""

JOINT_MARGIN_RAD = 0.02
"""Smallest distance of joints from their limits."""


class GaitPhase(NamedTuple):
    """Phase of a gait, with constant contacts between two samples.

    Attributes
    ----------
    stance : index of the stance at the end of the phase.
    begin, end : indices of the first and last sample.
    closed : contacts that carry load.
    swing_target, swing_start : next and previous contact of the foot in the air; None in double support.
    lifting_foot, landed_foot : patch that lifts next, and patch that came down last, in double support.
    """

    stance: int
    begin: int
    end: int
    closed: tuple[Contact, ...]
    swing_target: Contact | None = None
    swing_start: Contact | None = None
    lifting_foot: str | None = None
    landed_foot: str | None = None


class TimedWalk(NamedTuple):
    """A walk in time: N + 1 samples at intervals dt.

    Attributes
    ----------
    t : (N + 1,) times (s).
    q : (N + 1, nq) postures.
    com : (N + 1, 3) centre of mass (m).
    curve : spline through the postures, from rest to rest.
    """

    t: np.ndarray
    q: np.ndarray
    com: np.ndarray
    curve: PostureSpline


class Gait:
    """Walks through one section.

    Parameters
    ----------
    robot, settings : of the plan.
    stances : stances of the plan.
    section : section of the stances that is walked.
    single_support_samples : number of samples on one foot per step.
    """

    def __init__(
        self,
        robot: Robot,
        settings: ControlSettings,
        stances: Sequence[PlannedStance],
        section: WalkSection,
        single_support_samples: int = SINGLE_SUPPORT_SAMPLES,
    ):
        assert settings.pace is not None
        self.single_support_samples = single_support_samples
        self.robot, self.settings, self.pace = robot, settings, settings.pace
        self.phases = tuple(_phases(stances, section, single_support_samples))
        self.size = self.phases[-1].end + 1
        self.q_start, self.q_end = stances[section.first].q, stances[section.last + 1].q
        self.feet = [contact.patch for contact in stances[section.first].contacts]
        weight = np.full(robot.nv, JOINT_WEIGHT)
        weight[:3], weight[3:6] = 0.0, BASE_WEIGHT
        for foot in self.feet:
            weight[limb_joints(robot, robot.patches[foot].limb) - 1] = LEG_WEIGHT
        self.search = PostureSearch(robot, weight, JOINT_MARGIN_RAD)
        self._soles = self._sole_corners()

    def walk(self, dt: float, lowered: float) -> TimedWalk | None:
        """Return the walk with the sampling interval ``dt`` (s), or None if it is infeasible.

        The height of the centre of mass is decreased by ``lowered`` (m).
        """
        t, momentum_rate, walk = dt * np.arange(self.size), np.zeros((self.size, 2)), None
        for _ in range(MOMENTUM_ROUNDS):
            com = centre_of_mass(self._preview(dt, lowered, momentum_rate))
            q = None if com is None else self._postures(com)
            if q is None or max(map(self._base_angle, q)) > MAX_BASE_TURN_RAD:
                return None
            walk = TimedWalk(t, q, self.robot.com(q), PostureSpline(t, q))
            v = np.array([walk.curve.sample(at).v for at in t.tolist()])
            angular_momentum = np.einsum("kij,kj->ki", self.robot.centroidal_momentum_matrix(q)[:, 3:5], v)
            momentum_rate = np.gradient(angular_momentum, dt, axis=0) / self.robot.mass
        return walk

    def least_interval(self) -> float:
        """Return the smallest sampling interval (s): double support has to last for unloading and half of loading."""
        return (self.settings.timing.unload_time + 0.5 * self.settings.timing.load_time) / DOUBLE_SUPPORT_SAMPLES

    # -- centre of mass ---------------------------------------------------------------------------------------------

    def _preview(self, dt: float, lowered: float, momentum_rate: np.ndarray) -> Preview:
        robot, phases, n = self.robot, self.phases, self.size
        ends = np.array([robot.com(self.q_start), robot.com(self.q_end)])
        descent_end, ascent_begin = phases[1].end, phases[-1].begin
        descent = np.array([minimum_jerk(k / descent_end) for k in range(n)]).T
        ascent = np.array([minimum_jerk((k - ascent_begin) / (n - 1 - ascent_begin)) for k in range(n)]).T
        z = ends[0, 2] - lowered * descent[0] + (ends[1, 2] - ends[0, 2] + lowered) * ascent[0]
        squared_rates = 1.0 / (descent_end * dt) ** 2, 1.0 / ((n - 1 - ascent_begin) * dt) ** 2
        zdd = (
            -lowered * squared_rates[0] * descent[2]
            + (ends[1, 2] - ends[0, 2] + lowered) * squared_rates[1] * ascent[2]
        )
        corners, friction = self._soles
        middle = np.full((n, 2), np.nan)
        for phase in phases:
            if phase.swing_target is not None:
                foot = self.feet.index(phase.closed[0].patch)
                middle[phase.begin : phase.end + 1] = corners[phase.begin, foot, :, :2].mean(axis=0)
        return Preview(dt, ends[:, :2], z, zdd, momentum_rate, corners, self._force_limits(dt), friction, middle)

    def _sole_corners(self) -> tuple[np.ndarray, float]:
        """Return the inset corners (N + 1, 2, V, 3) of the soles, and the usable share of the smallest friction."""
        inset, friction = max(self.pace.pressure, self.settings.contact.pressure_margin) + COP_INSET_M, np.inf
        corners = np.zeros((self.size, 2, max(len(c.points) for c in self.phases[0].closed), 3))
        is_closed = np.zeros((self.size, 2), dtype=bool)
        friction_share = used_fraction(self.pace.friction, self.settings.contact.friction_fraction, 1.0)
        for phase in self.phases:
            for contact in phase.closed:
                world = contact.p + shrink_points(contact.points, inset, MAX_COP_INSET_SHARE) @ contact.R.T
                padded = world[np.minimum(np.arange(corners.shape[2]), len(world) - 1)]
                indices = slice(phase.begin, phase.end + 1), self.feet.index(contact.patch)
                corners[indices], is_closed[indices] = padded, True
                friction = min(friction, friction_share * contact.friction / np.sqrt(2.0))
        # a foot in the air keeps the corners of its last contact
        last_closed = np.maximum.accumulate(np.where(is_closed, np.arange(self.size)[:, None], 0), axis=0)
        return corners[last_closed, np.arange(2)], float(friction)

    def _force_limits(self, dt: float) -> np.ndarray:
        """Return the largest normal force per mass of each foot (N + 1, 2), with ramps before and after its swings."""
        limits, max_acceleration = np.zeros((self.size, 2)), 3.0 * GRAVITY
        load_time = 1.5 * self.settings.timing.load_time
        for phase in self.phases:
            k = np.arange(phase.begin, phase.end + 1)
            for contact in phase.closed:
                limit = np.full(len(k), max_acceleration)
                if contact.patch == phase.lifting_foot:
                    limit = np.minimum(limit, GRAVITY * dt * (phase.end - k) / self.settings.timing.unload_time)
                if contact.patch == phase.landed_foot:
                    limit = np.minimum(limit, GRAVITY * dt * (k - phase.begin) / load_time)
                foot = self.feet.index(contact.patch)
                limits[k, foot] = np.maximum(limits[k, foot], limit) if phase.swing_target is None else limit
        for phase in self.phases:
            if phase.swing_target is not None:  # no force at the first and last sample of a swing
                limits[phase.begin : phase.end + 1, self.feet.index(phase.swing_target.patch)] = 0.0
        return limits

    # -- postures ---------------------------------------------------------------------------------------------------

    def _postures(self, com: np.ndarray) -> np.ndarray | None:
        """Return postures (N + 1, nq) for the centre of mass ``com`` (N + 1, 3) and the foot paths, or None.

        There are none if legs are too short. The base turns with the feet.
        """
        robot, last = self.robot, self.size - 1
        step, q = robot.difference(self.q_start, self.q_end), np.empty((self.size, robot.nq))
        q[0], q[-1] = self.q_start, self.q_end
        for phase in self.phases:
            rows = [self._rows(contact.patch, contact.R, contact.p) for contact in phase.closed]
            lift_off, target = phase.swing_start, phase.swing_target
            for k in range(max(phase.begin, 1), min(phase.end, last - 1) + 1):
                placed = list(rows)
                if target is not None and lift_off is not None:
                    share = (k - phase.begin) / (phase.end - phase.begin)
                    placed.append(self._rows(target.patch, *self._swing_pose(lift_off, target, share)))
                guide = robot.integrate(self.q_start, step, float(minimum_jerk(k / last)[0]))
                task = self.search.task(placed, guide, centre=np.column_stack([np.eye(3), com[k]]))
                start = q[k - 1] if k > 1 else guide
                found = self.search.run(task, start, IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE)
                if not found.found:
                    return None
                q[k] = found.q
        return q

    def _base_angle(self, q: np.ndarray) -> float:
        """Return the angle of the base relative to the start of the walk (rad)."""
        return float(np.linalg.norm(self.robot.difference(self.q_start, q)[3:6]))

    def _rows(self, patch: str, R: np.ndarray, p: np.ndarray) -> FrameRows:
        body, offset = self.robot.frame(patch)
        frame = np.concatenate([offset, np.asarray(R).ravel(), p])
        return FrameRows(POSE_ROWS, body, frame, np.eye(6), np.zeros((0, 10)))

    def _swing_pose(self, begin: Contact, end: Contact, r: float) -> Pose:
        """Return the pose of a foot after the share r of its swing."""
        share, turn = swing_share(r), rotation_vector(end.R @ begin.R.T)
        lift = 64.0 * SWING_HEIGHT_M * self.robot.scale.leg * (r * (1.0 - r)) ** 3
        R = Rotation.from_rotvec(share * turn).as_matrix()
        return R @ begin.R, begin.p + share * (end.p - begin.p) + lift * end.normal


def swing_share(r: float) -> float:
    """Return the share of the path of a foot after the share r of its swing.

    The speed increases as ``10 s³ - 15 s⁴ + 6 s⁵`` within `ACCELERATION_SHARE`, is constant, and decreases likewise.
    """
    r_begin, r_end = (min(part, ACCELERATION_SHARE) / ACCELERATION_SHARE for part in (r, 1.0 - r))
    constant_part = min(max(r - ACCELERATION_SHARE, 0.0), 1.0 - 2.0 * ACCELERATION_SHARE)
    begin_share, end_share = (s**4 * (2.5 - 3.0 * s + s * s) for s in (r_begin, r_end))
    return (ACCELERATION_SHARE * begin_share + constant_part + ACCELERATION_SHARE * (0.5 - end_share)) / (
        1.0 - ACCELERATION_SHARE
    )


def _phases(stances: Sequence[PlannedStance], section: WalkSection, single_support_samples: int) -> list[GaitPhase]:
    found: list[GaitPhase] = []
    begin, landed_foot = 0, None
    for number, (lifted, down) in enumerate(section.steps):
        foot = stances[lifted].moved
        assert foot is not None
        end = begin + (DOUBLE_SUPPORT_SAMPLES if number else STANDING_SAMPLES)
        before = stances[lifted - 1]
        found.append(GaitPhase(lifted, begin, end, before.contacts, lifting_foot=foot, landed_foot=landed_foot))
        swing = stances[down].contact(foot), before.contact(foot)
        found.append(GaitPhase(down, end, end + single_support_samples, stances[lifted].contacts, *swing))
        begin, landed_foot = end + single_support_samples, foot
    return [
        *found,
        GaitPhase(
            section.last + 1, begin, begin + STANDING_SAMPLES, stances[section.last].contacts, landed_foot=landed_foot
        ),
    ]
