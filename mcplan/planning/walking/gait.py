"""Gait: the steps of a plan on level ground as a walk of given duration, with centre of mass, feet and postures.

The times of lift-off and touchdown are fixed samples. The path of the centre of mass is the optimum of a convex program
(`mcplan.optimize.preview`), at a height that decreases by ``lowered`` in the first step and increases again in the last
one: a leg needs bent knees to swing. A foot follows

    p(r) = p0 + f(r) (p1 - p0) + 64 h r³ (1 - r)³ n,   r from 0 to 1

where f accelerates and decelerates within `ACCELERATION_SHARE` of the time, with constant speed in between, which keeps
the largest leg speed small. Postures come from the posture search. The angular momentum of the legs enters the program
in a second round.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.core.posture.rows import POSE_ROWS
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.quintic import minimum_jerk, rotation_vector
from mcplan.motion.spline import PostureSpline
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
"""m: largest height difference of the two soles."""

MIN_STEPS = 2
"""Smallest number of steps of a walk: a single step would begin and end at rest anyway."""


class WalkSection(NamedTuple):
    """Stances between two at rest on both feet: a foot is lifted and set down, then the other one.

    Attributes
    ----------
    first, last : index of the stance at rest at the beginning, and of that in which the last foot comes down; the
        next transition ends at rest.
    """

    first: int
    last: int

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Indices of the stances in which a foot is lifted, and set down."""
        return [(k, k + 1) for k in range(self.first + 1, self.last, 2)]


def walk_sections(stances: Sequence[PlannedStance]) -> Iterator[WalkSection]:
    """Yield the walks of a plan, each as long as possible."""
    k = 0
    while k < len(stances):
        last = k
        while last + 2 < len(stances) and _is_step(stances, last):
            last += 2
        while last > k and not _stays(stances, last):
            last -= 2
        if (last - k) // 2 >= MIN_STEPS:
            yield WalkSection(k, last)
            last += 1  # the transition that ends at rest
        k = max(last, k + 1)


def _is_step(stances: Sequence[PlannedStance], k: int) -> bool:
    """Say whether after stance k, on two feet, a foot is lifted and set down, not the one of the step before."""
    both, lifted, down = stances[k : k + 3]
    foot = lifted.moved
    if (lifted.change, down.change) != ("remove", "add") or down.moved != foot or foot is None:
        return False
    earlier = stances[k].moved if stances[k].change == "add" else None
    return foot != earlier and _level(both.contacts) and _level(down.contacts)


def _stays(stances: Sequence[PlannedStance], k: int) -> bool:
    """Say whether after stance k a motion on both feet follows, at the end of which the robot can be at rest."""
    return k + 1 < len(stances) and stances[k + 1].change in ("shift", "remove") and not stances[k + 1].objects


def _level(contacts: Sequence[Contact]) -> bool:
    """Say whether these are two soles side by side on level ground."""
    if len(contacts) != 2 or any(c.kind == "grasp" or c.radius or len(c.points) < 3 or c.carrier for c in contacts):
        return False
    heights = [float(contact.p[2]) for contact in contacts]
    return min(float(c.normal[2]) for c in contacts) > MIN_NORMAL_Z and np.ptp(heights) < MAX_HEIGHT_DIFFERENCE_M


STANDING_SAMPLES = 18
"""Samples on both feet at the beginning and at the end."""

SINGLE_SUPPORT_SAMPLES = 36
"""Largest number of samples on one foot."""

DOUBLE_SUPPORT_SAMPLES = 5
"""Samples on both feet between two swings."""

ACCELERATION_SHARE = 0.35
"""Share of the duration of a swing for its acceleration, and the same for its deceleration."""

SWING_HEIGHT_M = 0.02
"""m: swing height of a foot, for a robot of the size of HRP-2."""

COP_INSET_M = 0.01
"""m: inset of the centre of pressure from the edges in addition to that of the pace: feet track references."""

MAX_COP_INSET_SHARE = 0.6
"""Largest inset of a small sole, as a share of the distance to its centre."""

LEG_PRICE = 1e-3
"""Weight of the squared deviation of leg joints from their guide (1/rad²)."""

JOINT_PRICE = 0.1
"""The same of other joints."""

BASE_PRICE = 1.0
"""The same of the rotation of the base."""

ROW_TOLERANCE = 1e-8
STEP_TOLERANCE = 1e-6
IK_STEPS = 60

SPIN_ROUNDS = 2
"""Number of programs of the centre of mass; the second one includes the angular momentum of the legs."""

MAX_BASE_TURN_RAD = 2.8
"""rad: largest turn of the base in a walk, which one spline of rotation vectors can represent."""

JOINT_MARGIN_RAD = 0.02
"""rad: distance of joints from their limits."""


class GaitPhase(NamedTuple):
    """Phase of a gait: constant contacts between two samples.

    Attributes
    ----------
    stance : index of the stance at the end of its transition.
    begin, end : indices of samples.
    closed : contacts that carry load.
    swings, lifted : next and last contact of the foot in the air.
    leaves, arrived : the foot that lifts next, and the one that came down last.
    """

    stance: int
    begin: int
    end: int
    closed: tuple[Contact, ...]
    swings: Contact | None = None
    lifted: Contact | None = None
    leaves: str | None = None
    arrived: str | None = None


class TimedWalk(NamedTuple):
    """A walk in time: N + 1 samples at intervals dt.

    Attributes
    ----------
    t : (N + 1,) s.
    q, com : (N + 1, nq), (N + 1, 3).
    curve : through the postures, from rest to rest.
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
    stances : of the plan.
    section : the stances of the walk.
    alone : number of samples on one foot.
    """

    def __init__(
        self,
        robot: Robot,
        settings: ControlSettings,
        stances: Sequence[PlannedStance],
        section: WalkSection,
        alone: int = SINGLE_SUPPORT_SAMPLES,
    ):
        assert settings.pace is not None
        self.alone = alone
        self.robot, self.settings, self.pace = robot, settings, settings.pace
        self.phases = tuple(_phases(stances, section, alone))
        self.size = self.phases[-1].end + 1
        self.q_start, self.q_end = stances[section.first].q, stances[section.last + 1].q
        self.feet = [contact.patch for contact in stances[section.first].contacts]
        weight = np.full(robot.nv, JOINT_PRICE)
        weight[:3], weight[3:6] = 0.0, BASE_PRICE
        for foot in self.feet:
            weight[limb_joints(robot, robot.patches[foot].limb) - 1] = LEG_PRICE
        self.search = PostureSearch(robot, weight, JOINT_MARGIN_RAD)
        self._soles = self._stood_on()

    def walk(self, dt: float, lowered: float) -> TimedWalk | None:
        """Return the walk with the sampling interval dt (s), the centre of mass ``lowered`` (m); None if infeasible."""
        t, spin, walk = dt * np.arange(self.size), np.zeros((self.size, 2)), None
        for _ in range(SPIN_ROUNDS):
            com = centre_of_mass(self._known(dt, lowered, spin))
            q = None if com is None else self._postures(com)
            if q is None or max(map(self._turned, q)) > MAX_BASE_TURN_RAD:
                return None
            walk = TimedWalk(t, q, self.robot.com(q), PostureSpline(t, q))
            v = np.array([walk.curve.sample(at).v for at in t.tolist()])
            turning = np.einsum("kij,kj->ki", self.robot.centroidal_momentum_matrix(q)[:, 3:5], v)
            spin = np.gradient(turning, dt, axis=0) / self.robot.mass
        return walk

    def least_interval(self) -> float:
        """Return the smallest sampling interval (s): feet are loaded and unloaded in double support."""
        return (self.settings.timing.unload_time + 0.5 * self.settings.timing.load_time) / DOUBLE_SUPPORT_SAMPLES

    # -- centre of mass ---------------------------------------------------------------------------------------------

    def _known(self, dt: float, lowered: float, spin: np.ndarray) -> Preview:
        robot, phases, n = self.robot, self.phases, self.size
        ends = np.array([robot.com(self.q_start), robot.com(self.q_end)])
        first, last = phases[1].end, phases[-1].begin
        share = np.array([minimum_jerk(k / first) for k in range(n)]).T
        again = np.array([minimum_jerk((k - last) / (n - 1 - last)) for k in range(n)]).T
        z = ends[0, 2] - lowered * share[0] + (ends[1, 2] - ends[0, 2] + lowered) * again[0]
        rates = 1.0 / (first * dt) ** 2, 1.0 / ((n - 1 - last) * dt) ** 2
        zdd = -lowered * rates[0] * share[2] + (ends[1, 2] - ends[0, 2] + lowered) * rates[1] * again[2]
        corners, friction = self._soles
        middle = np.full((n, 2), np.nan)
        for phase in phases:
            if phase.swings is not None:
                foot = self.feet.index(phase.closed[0].patch)
                middle[phase.begin : phase.end + 1] = corners[phase.begin, foot, :, :2].mean(axis=0)
        return Preview(dt, ends[:, :2], z, zdd, spin, corners, self._caps(dt), friction, middle)

    def _stood_on(self) -> tuple[np.ndarray, float]:
        """Return the inset corners (N + 1, 2, V, 3) of the soles, and the usable share of the smallest friction."""
        inside, friction = max(self.pace.pressure, self.settings.contact.pressure_margin) + COP_INSET_M, np.inf
        corners = np.zeros((self.size, 2, max(len(c.points) for c in self.phases[0].closed), 3))
        stands = np.zeros((self.size, 2), dtype=bool)
        share = used_fraction(self.pace.friction, self.settings.contact.friction_fraction, 1.0)
        for phase in self.phases:
            for contact in phase.closed:
                world = contact.p + shrink_points(contact.points, inside, MAX_COP_INSET_SHARE) @ contact.R.T
                padded = world[np.minimum(np.arange(corners.shape[2]), len(world) - 1)]
                here = slice(phase.begin, phase.end + 1), self.feet.index(contact.patch)
                corners[here], stands[here] = padded, True
                friction = min(friction, share * contact.friction / np.sqrt(2.0))
        last = np.maximum.accumulate(np.where(stands, np.arange(self.size)[:, None], 0), axis=0)  # of a foot in the air
        return corners[last, np.arange(2)], float(friction)

    def _caps(self, dt: float) -> np.ndarray:
        """Return the largest normal force per mass of each foot (N + 1, 2), with ramps at lift-off and touchdown."""
        caps, everything = np.zeros((self.size, 2)), 3.0 * GRAVITY
        rise = 1.5 * self.settings.timing.load_time
        for phase in self.phases:
            k = np.arange(phase.begin, phase.end + 1)
            for contact in phase.closed:
                most = np.full(len(k), everything)
                if contact.patch == phase.leaves:
                    most = np.minimum(most, GRAVITY * dt * (phase.end - k) / self.settings.timing.unload_time)
                if contact.patch == phase.arrived:
                    most = np.minimum(most, GRAVITY * dt * (k - phase.begin) / rise)
                at = self.feet.index(contact.patch)
                caps[k, at] = np.maximum(caps[k, at], most) if phase.swings is None else most
        for phase in self.phases:
            if phase.swings is not None:  # the ends of a swing belong to it
                caps[phase.begin : phase.end + 1, self.feet.index(phase.swings.patch)] = 0.0
        return caps

    # -- postures ---------------------------------------------------------------------------------------------------

    def _postures(self, com: np.ndarray) -> np.ndarray | None:
        """Return postures (N + 1, nq) with these centres of mass and feet on their paths; None if legs are too short.

        The base turns with the feet.
        """
        robot, last = self.robot, self.size - 1
        step, q = robot.difference(self.q_start, self.q_end), np.empty((self.size, robot.nq))
        q[0], q[-1] = self.q_start, self.q_end
        for phase in self.phases:
            rows = [self._rows(contact.patch, contact.R, contact.p) for contact in phase.closed]
            begin, target = phase.lifted, phase.swings
            for k in range(max(phase.begin, 1), min(phase.end, last - 1) + 1):
                placed = list(rows)
                if target is not None and begin is not None:
                    share = (k - phase.begin) / (phase.end - phase.begin)
                    placed.append(self._rows(target.patch, *self._swung(begin, target, share)))
                guide = robot.integrate(self.q_start, step, float(minimum_jerk(k / last)[0]))
                task = self.search.task(placed, guide, centre=np.column_stack([np.eye(3), com[k]]))
                start = q[k - 1] if k > 1 else guide
                found = self.search.run(task, start, IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE)
                if not found.found:
                    return None
                q[k] = found.q
        return q

    def _turned(self, q: np.ndarray) -> float:
        """Return the angle of the base relative to the beginning (rad)."""
        return float(np.linalg.norm(self.robot.difference(self.q_start, q)[3:6]))

    def _rows(self, patch: str, R: np.ndarray, p: np.ndarray) -> FrameRows:
        body, offset = self.robot.frame(patch)
        frame = np.concatenate([offset, np.asarray(R).ravel(), p])
        return FrameRows(POSE_ROWS, body, frame, np.eye(6), np.zeros((0, 10)))

    def _swung(self, begin: Contact, end: Contact, r: float) -> Pose:
        """Return the pose of a foot after the share r of its swing."""
        share, turn = swing_share(r), rotation_vector(end.R @ begin.R.T)
        lift = 64.0 * SWING_HEIGHT_M * self.robot.scale.leg * (r * (1.0 - r)) ** 3
        R = Rotation.from_rotvec(share * turn).as_matrix()
        return R @ begin.R, begin.p + share * (end.p - begin.p) + lift * end.normal


def swing_share(r: float) -> float:
    """Return the share of the path of a foot after the share r of its swing.

    The speed increases as ``10 s³ - 15 s⁴ + 6 s⁵`` within `ACCELERATION_SHARE`, is constant, and decreases likewise.
    """
    first, left = (min(part, ACCELERATION_SHARE) / ACCELERATION_SHARE for part in (r, 1.0 - r))
    even = min(max(r - ACCELERATION_SHARE, 0.0), 1.0 - 2.0 * ACCELERATION_SHARE)
    begun, ended = (s**4 * (2.5 - 3.0 * s + s * s) for s in (first, left))
    return (ACCELERATION_SHARE * begun + even + ACCELERATION_SHARE * (0.5 - ended)) / (1.0 - ACCELERATION_SHARE)


def _phases(stances: Sequence[PlannedStance], section: WalkSection, alone: int) -> list[GaitPhase]:
    found: list[GaitPhase] = []
    at, arrived = 0, None
    for number, (lifted, down) in enumerate(section.steps):
        foot = stances[lifted].moved
        assert foot is not None
        end = at + (DOUBLE_SUPPORT_SAMPLES if number else STANDING_SAMPLES)
        before = stances[lifted - 1]
        found.append(GaitPhase(lifted, at, end, before.contacts, leaves=foot, arrived=arrived))
        swing = stances[down].contact(foot), before.contact(foot)
        found.append(GaitPhase(down, end, end + alone, stances[lifted].contacts, *swing))
        at, arrived = end + alone, foot
    return [
        *found,
        GaitPhase(section.last + 1, at, at + STANDING_SAMPLES, stances[section.last].contacts, arrived=arrived),
    ]
