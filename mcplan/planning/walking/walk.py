"""Dynamic walking: steps on level ground without coming to rest.

A walk is as fast as the margins of the pace allow: velocities and accelerations of joints, touchdown speed, torques,
friction and pressure. Speeds decrease with the duration, so the fastest walk is found in a few iterations.

Footsteps are at equal distances along the path of the plan.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from mcplan.collision.model import CollisionModel
from mcplan.errors import InputError
from mcplan.motion.time_parameterization import TimeParameterization
from mcplan.optimize.path_program import PathProgram
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.posture.generator import contact_at
from mcplan.planning.timing.path_dynamics import PathDynamics
from mcplan.planning.timing.retiming import Retimer
from mcplan.planning.transition.transition import BoundaryState, ClosestApproach, Segment, SwingSpec, Transition
from mcplan.planning.walking.gait import SINGLE_SUPPORT_SAMPLES, Gait, GaitPhase, TimedWalk, WalkSection, walk_sections
from mcplan.robot.robot import Robot
from mcplan.scenario.scenario import Scenario
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.placement import make_contact
from mcplan.statics.equilibrium import balance, margins
from mcplan.util.progress import report_progress

COORDINATES = ("x", "y", "yaw")


def even_steps(
    robot: Robot, environment: Environment, stances: Sequence[PlannedStance], section: WalkSection, stride: float
) -> list[PlannedStance] | None:
    """Return the stances of a walk in even steps, or None if its feet stand on several supports.

    Each foot follows its places in the plan, at the same shares of the walk; one foot is ahead of the other by at most
    ``stride`` (m). The first stance is the beginning of the walk, the last one that in which the robot comes to rest.
    Postures, forces and motions are not yet computed for the new places.
    """
    steps, here = section.steps, stances[section.first]
    goal = {contact.patch: contact for contact in stances[section.last].contacts}
    feet = {contact.patch: [(0.0, contact)] for contact in here.contacts}
    for number, (_, down) in enumerate(steps):
        foot = stances[down].moved
        assert foot is not None
        feet[foot].append((min((number + 1) / (len(steps) - 1), 1.0), stances[down].contact(foot)))
    if len({contact.support for places in feet.values() for _, contact in places}) > 1:
        return None
    far = max(float(np.linalg.norm(goal[foot].p - places[0][1].p)) for foot, places in feet.items())
    count = max(int(np.ceil(far / stride - 1e-9)), 1)
    first = stances[steps[0][0]].moved
    order = sorted(feet, key=lambda foot: foot != first)
    found = [here]
    for number, foot in enumerate(islice(cycle(order), count + 1)):
        part = min((number + 1) / count, 1.0)
        try:
            contact = goal[foot] if part == 1.0 else _place(robot, environment, feet[foot], part)
        except InputError:  # beyond the edge of its support
            return None
        both = found[-1].contacts
        alone = tuple(other for other in both if other.patch != foot)
        again = tuple(contact if other.patch == foot else other for other in both)
        found.append(PlannedStance(alone, "remove", foot, here.q, {}, here.tau, {}))
        found.append(PlannedStance(again, "add", foot, here.q, {}, here.tau, {}))
    return [*found, stances[section.last + 1]]


def _place(robot: Robot, environment: Environment, places: Sequence[tuple[float, Contact]], part: float) -> Contact:
    """Return the contact of a foot after a share of its path."""
    parts = [at for at, _ in places]
    x, y, yaw = np.array([[float(contact.coordinates[name]) for name in COORDINATES] for _, contact in places]).T
    here = (float(np.interp(part, parts, values)) for values in (x, y, np.unwrap(yaw)))
    return make_contact(robot, environment, places[0][1].to_data() | dict(zip(COORDINATES, here, strict=True)))


STRIDES_M = (0.4, 0.35, 0.3, 0.25, 0.2, 0.15)
"""m: strides to try, for a robot of the size of HRP-2; the fastest walk is used. They are shorter than those of a robot
that shifts over each foot first, and some robots have ankles with a small range."""

COM_DROPS_M = (0.0, 0.04, 0.08, 0.12)
"""m: heights to try by which the centre of mass is below that of the postures at rest, for a robot of the size of
HRP-2."""

FIRST_INTERVAL_S = 0.028
"""s: sampling interval of the first walk that is tried, for a robot of the size of HRP-2."""

MAX_ROUNDS = 6
"""Maximum number of iterations to find the fastest walk."""

FULL_USE = 0.97
"""A share of the limits above this counts as full use."""

TARGET_USE = 0.985
"""Target share of the limits for the next walk."""

MIN_SINGLE_SUPPORT_SAMPLES = 12
"""Smallest number of samples on one foot."""

RESERVE_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Shares of the reserve of contacts and torques, tried in turn: the first feasible one is recorded."""

FORCE_CHECK_STRIDE = 4
"""Contact forces are checked at every so many nodes of a segment."""

LAW_NODES = 28
"""Nodes of the time parameterization of a segment at its nominal speed."""

MIN_SEPARATION_M = 5e-3
"""m: least distance between bodies, other than those in contact."""

SEPARATION_LOSS_M = 1e-3
"""m: largest decrease of the distance of bodies that are closer at rest, such as shoulder and chest."""


class _Timed(NamedTuple):
    """A walk, its segments and their dynamics, and the used share of the speed limits."""

    walk: TimedWalk
    segments: tuple[Segment, ...]
    paths: tuple[PathDynamics, ...]
    used: float


def with_walks(plan: Plan) -> Plan:
    """Return the plan with walks on level ground where they are faster than its steps."""
    walker, stances, done = _Walker(plan.scenario), list[PlannedStance](), 0
    for section in walk_sections(plan.stances):
        report_progress("walking", section.last, len(plan.stances) - 1)
        walk = walker.quicker(plan.stances, section)
        if walk is not None:
            stances += [*plan.stances[done : section.first + 1], *walk]
            done = section.last + 2
    return replace(plan, stances=(*stances, *plan.stances[done:]))


class _Walker:
    """Finds walks in one scene."""

    def __init__(self, scenario: Scenario):
        self.robot, self.environment, self.settings = scenario.robot, scenario.environment, scenario.transition_settings
        self.retimer, self.collisions = Retimer(self.robot, self.settings), CollisionModel(self.robot, self.environment)

    def quicker(self, stances: Sequence[PlannedStance], section: WalkSection) -> list[PlannedStance] | None:
        """Return the stances that replace those of a section after the first; None if no walk is faster."""
        most = sum(
            segment.time
            for stance in stances[section.first + 1 : section.last + 2]
            for segment in (() if stance.transition is None else stance.transition.segments)
        )
        best, steps = None, 0
        for stride in STRIDES_M:
            even = even_steps(self.robot, self.environment, stances, section, self.robot.scale.leg * stride)
            if even is None or len(even) == steps:
                continue
            steps = len(even)
            walk = self._walk(even, most)
            if walk is None and best is not None:
                break
            if walk is not None:
                best, most = walk, sum(stance.transition.segments[0].time for stance in walk if stance.transition)
        return best

    def _walk(self, stances: Sequence[PlannedStance], most: float) -> list[PlannedStance] | None:
        """Return the stances after the first of a walk that takes less than ``most`` (s), or None."""
        gait, timed = self._quickest(stances, most)
        kept = (
            None if timed is None else next((k for k in RESERVE_SHARES if _given(self.retimer, timed.paths, k)), None)
        )
        if timed is None or kept is None:
            return None
        near = [_near(self.collisions, stances, phase, timed.walk) for phase in gait.phases]
        rests = (gait.q_start, gait.phases[0].closed), (gait.q_end, gait.phases[-1].closed)
        ends = [self.collisions.smallest(q, contacts=closed) for q, closed in rests]
        least = min(MIN_SEPARATION_M, *(end.distance - SEPARATION_LOSS_M for end in ends if end is not None))
        if any(one.distance is not None and one.distance < least for one in near):
            return None
        found = []
        for phase, segment, apart in zip(gait.phases, timed.segments, near, strict=True):
            old = segment.law
            assert old is not None
            timing = TimeParameterization(old.times, old.path, old.rate, old.change, kept)
            stance = self._passed(stances, phase.stance, replace(segment, law=timing, near=apart))
            if stance is None:
                return None
            found.append(stance)
        return found

    def _quickest(self, stances: Sequence[PlannedStance], most: float) -> tuple[Gait, _Timed | None]:
        """Return the fastest walk within the speed limits, if it takes less than ``most`` (s), and its gait.

        Speeds decrease with the duration of single support. Double support lasts at least as long as the load ramps.
        """
        section, leg = WalkSection(0, len(stances) - 2), self.robot.scale.leg
        gait = chosen = Gait(self.robot, self.settings, stances, section)
        least, best = gait.least_interval(), None
        dt = max(FIRST_INTERVAL_S * np.sqrt(leg), least)
        looks = [(leg * lowered, _timed(gait, self.retimer, stances, dt, leg * lowered)) for lowered in COM_DROPS_M]
        lowered, look = min(looks, key=lambda one: np.inf if one[1] is None else one[1].used)
        for _ in range(MAX_ROUNDS):
            if look is None:
                break
            duration, used = float(look.walk.t[-1]), look.used
            if used <= 1.0 and duration < most:
                best, chosen, most = look, gait, duration
            on_one = gait.alone * dt * used / TARGET_USE
            dt = max(on_one / SINGLE_SUPPORT_SAMPLES, least)
            gait = Gait(
                self.robot, self.settings, stances, section, max(int(np.ceil(on_one / dt)), MIN_SINGLE_SUPPORT_SAMPLES)
            )
            if FULL_USE <= used <= 1.0 or dt * (gait.size - 1) >= most:
                break
            look = _timed(gait, self.retimer, stances, dt, lowered)
        return chosen, best

    def _passed(self, stances: Sequence[PlannedStance], k: int, segment: Segment) -> PlannedStance | None:
        """Return the stance at the end of a segment of a walk, with the forces of the motion there, or None."""
        stance, robot, q, passing = stances[k], self.robot, segment.q[-1], segment.finish
        if passing is None:  # at rest in the planned posture
            assert stance.transition is not None
            transition = replace(stance.transition, segments=(segment, *stance.transition.segments[1:]))
            return replace(stance, transition=transition)
        ramp = self.settings.timing.load_time if stance.change == "add" else self.settings.timing.unload_time
        before = {contact.patch for contact in stances[k - 1].contacts}
        placed = stance.contacts if len(stance.contacts) >= len(before) else stances[k - 1].contacts
        loaded = [contact.patch for contact in stance.contacts if contact.patch in before]
        held = balance(robot, q, placed, loaded, motion=passing.posture)
        if not (held.feasible and held.torque_feasible):
            return None
        loaded_contacts = [contact_at(robot, q, contact) for contact in placed if contact.patch in loaded]
        values = margins(robot, q, loaded_contacts, held, still=False)
        near = self.collisions.smallest(q, contacts=placed)
        values["clearance"] = None if near is None else float(near.distance)
        transition = Transition(stance.moved, (segment,), ramp)
        return PlannedStance(
            stance.contacts, stance.change, stance.moved, q, held.wrenches, held.tau, values, stance.objects,
            transition, passing,
        )  # fmt: skip


def _timed(gait: Gait, retimer: Retimer, stances: Sequence[PlannedStance], dt: float, lowered: float) -> _Timed | None:
    """Return a walk with the sampling interval dt and its segments, or None."""
    walk = gait.walk(dt, lowered)
    if walk is None:
        return None
    segments = tuple(_segment(gait.robot, walk, phase, stances[phase.stance]) for phase in gait.phases)
    paths = tuple(PathDynamics.pair(gait.robot, segment)[0] for segment in segments)
    return _Timed(walk, segments, paths, max(_speeds(retimer, path) for path in paths))


def _segment(robot: Robot, walk: TimedWalk, phase: GaitPhase, stance: PlannedStance) -> Segment:
    """Return the motion of a phase; the swing foot follows the postures."""
    here, size = slice(phase.begin, phase.end + 1), len(walk.t)
    times = walk.t[here] - walk.t[phase.begin]
    ends = []
    for k in (phase.begin, phase.end):
        sample = walk.curve.sample(float(walk.t[k]))
        ends.append(BoundaryState.at(robot, walk.q[k], sample.v, sample.vd) if 0 < k < size - 1 else None)
    none, courses = np.zeros(3), tuple[SwingSpec, ...]()
    if phase.swings is not None:
        courses = (SwingSpec(phase.swings.patch, "body", none, none, True, phase.swings),)
    nodes, one = np.linspace(0.0, float(times[-1]), LAW_NODES), np.ones(LAW_NODES)
    timing = TimeParameterization(nodes, nodes, one, np.zeros(LAW_NODES))
    begin, finish = ends
    return Segment(phase.closed, times, walk.q[here], walk.com[here], courses, law=timing, begin=begin, finish=finish)


def _speeds(retimer: Retimer, path: PathDynamics) -> float:
    """Return the used share of the limits of speeds and accelerations."""
    rates = max(float((1.0 / most).max()) for most in retimer.rates(path, 1.0).values())
    return max(rates, float(np.sqrt(np.abs(path.vd[:, 3:]).max() / retimer.pace.acceleration)))


def _given(retimer: Retimer, paths: Sequence[PathDynamics], kept: float) -> bool:
    """Say whether contacts and joints can generate the motion with a share of their reserve kept."""
    for path in paths:
        program = retimer.program_at(path, retimer.forces(path, kept))
        if not all(_feasible(program, i) for i in range(0, len(program.v), FORCE_CHECK_STRIDE)):
            return False
    return True


def _feasible(program: PathProgram, i: int) -> bool:
    """Say whether there are feasible forces at node i for the motion at its nominal speed."""
    A, b, C, d = program.forces_at(i, program.hold[i] + program.of_x[i])
    return bool(linprog(np.zeros(A.shape[1]), A, b, C, d, (None, None), method="highs").status == 0)


def _near(
    collisions: CollisionModel, stances: Sequence[PlannedStance], phase: GaitPhase, walk: TimedWalk
) -> ClosestApproach:
    """Return the closest approach of bodies along a phase."""
    touching = [*stances[phase.stance - 1].contacts, *stances[phase.stance].contacts]
    best = ClosestApproach(None, ())
    for q in walk.q[phase.begin : phase.end + 1]:
        found = collisions.smallest(q, contacts=touching)
        if found is not None and (best.distance is None or found.distance < best.distance):
            best = ClosestApproach(float(found.distance), (found.pair.a, found.pair.b))
    return best
