"""Dynamic walking: steps on level ground without coming to rest.

A walk is as fast as the margins of the pace allow: velocities and accelerations of joints, touchdown speed, torques,
friction and centre of pressure. Speeds decrease with the duration, so the fastest walk is found in a few iterations.

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
"""Coordinates of a foot that are interpolated along its path."""


def even_steps(
    robot: Robot, environment: Environment, stances: Sequence[PlannedStance], section: WalkSection, stride: float
) -> list[PlannedStance] | None:
    """Return the stances of a walk in even steps, or None if its feet stand on several supports.

    Each foot follows its contacts in the plan, at the same shares of the walk; one foot is ahead of the other by at
    most ``stride`` (m). The robot is at rest in the first and the last stance. Postures, forces and motions are not yet
    computed for the new contacts.
    """
    steps, start = section.steps, stances[section.first]
    goal = {contact.patch: contact for contact in stances[section.last].contacts}
    feet = {contact.patch: [(0.0, contact)] for contact in start.contacts}
    for number, (_, landed) in enumerate(steps):
        foot = stances[landed].moved
        assert foot is not None
        feet[foot].append((min((number + 1) / (len(steps) - 1), 1.0), stances[landed].contact(foot)))
    if len({contact.support for places in feet.values() for _, contact in places}) > 1:
        return None
    max_distance = max(float(np.linalg.norm(goal[foot].p - places[0][1].p)) for foot, places in feet.items())
    count = max(int(np.ceil(max_distance / stride - 1e-9)), 1)
    first = stances[steps[0][0]].moved
    order = sorted(feet, key=lambda foot: foot != first)
    found = [start]
    for number, foot in enumerate(islice(cycle(order), count + 1)):
        share = min((number + 1) / count, 1.0)
        try:
            contact = goal[foot] if share == 1.0 else _interpolated_contact(robot, environment, feet[foot], share)
        except InputError:  # beyond the edge of its support
            return None
        closed = found[-1].contacts
        single_support = tuple(other for other in closed if other.patch != foot)
        double_support = tuple(contact if other.patch == foot else other for other in closed)
        found.append(PlannedStance(single_support, "remove", foot, start.q, {}, start.tau, {}))
        found.append(PlannedStance(double_support, "add", foot, start.q, {}, start.tau, {}))
    return [*found, stances[section.last + 1]]


def _interpolated_contact(
    robot: Robot, environment: Environment, places: Sequence[tuple[float, Contact]], share: float
) -> Contact:
    """Return the contact of a foot after a share of its path."""
    shares = [contact_share for contact_share, _ in places]
    x, y, yaw = np.array([[float(contact.coordinates[name]) for name in COORDINATES] for _, contact in places]).T
    coordinates = (float(np.interp(share, shares, values)) for values in (x, y, np.unwrap(yaw)))
    return make_contact(robot, environment, places[0][1].to_data() | dict(zip(COORDINATES, coordinates, strict=True)))


STRIDES_M = (0.4, 0.35, 0.3, 0.25, 0.2, 0.15)
"""Strides to try, for a robot of the size of HRP-2; the fastest walk is used.

They are shorter than those of a static gait. The smallest ones are for robots with ankles of a small range.
"""

COM_DROPS_M = (0.0, 0.04, 0.08, 0.12)
"""Heights to try by which the centre of mass is lower than in the postures at rest, for a robot of HRP-2's size."""

INITIAL_INTERVAL_S = 0.028
"""Sampling interval of the first walk that is tried, for a robot of the size of HRP-2."""

MAX_ROUNDS = 6
"""Maximum number of iterations to find the fastest walk."""

MIN_USED_SHARE = 0.97
"""The iteration ends when a walk uses at least this share of the speed limits."""

TARGET_USED_SHARE = 0.985
"""Share of the speed limits that the next walk aims at."""

MIN_SINGLE_SUPPORT_SAMPLES = 12
"""Smallest number of samples on one foot."""

RESERVE_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Shares of the reserve of contacts and torques, tried in turn: the first feasible one is recorded."""

FORCE_CHECK_STRIDE = 4
"""Contact forces are checked at every fourth node of a segment."""

TIME_NODES = 28
"""Nodes of the time parameterization of a segment at its nominal speed."""

MIN_SEPARATION_M = 5e-3
"""Smallest distance between bodies that are not in contact."""

SEPARATION_LOSS_M = 1e-3
"""Largest decrease of the smallest distance if bodies are closer at rest, such as shoulder and chest."""


class _TimedGait(NamedTuple):
    """A walk, its segments and their dynamics, and the share of the speed limits that it uses."""

    walk: TimedWalk
    segments: tuple[Segment, ...]
    paths: tuple[PathDynamics, ...]
    used_share: float


def with_walks(plan: Plan) -> Plan:
    """Return the plan with its steps on level ground replaced by dynamic walks where these are faster."""
    walker, stances, next_index = _Walker(plan.scenario), list[PlannedStance](), 0
    for section in walk_sections(plan.stances):
        report_progress("walking", section.last, len(plan.stances) - 1)
        replacement = walker.faster_walk(plan.stances, section)
        if replacement is not None:
            stances += [*plan.stances[next_index : section.first + 1], *replacement]
            next_index = section.last + 2
    return replace(plan, stances=(*stances, *plan.stances[next_index:]))


class _Walker:
    """Finds walks in one scene."""

    def __init__(self, scenario: Scenario):
        self.robot, self.environment, self.settings = scenario.robot, scenario.environment, scenario.transition_settings
        self.retimer, self.collisions = Retimer(self.robot, self.settings), CollisionModel(self.robot, self.environment)

    def faster_walk(self, stances: Sequence[PlannedStance], section: WalkSection) -> list[PlannedStance] | None:
        """Return the stances that replace those of a section after the first; None if no walk is faster."""
        max_time = sum(
            segment.time
            for stance in stances[section.first + 1 : section.last + 2]
            for segment in (() if stance.transition is None else stance.transition.segments)
        )
        fastest, stance_count = None, 0
        for stride in STRIDES_M:
            even = even_steps(self.robot, self.environment, stances, section, self.robot.scale.leg * stride)
            if even is None or len(even) == stance_count:
                continue
            stance_count = len(even)
            walk = self._walk(even, max_time)
            if walk is None and fastest is not None:
                break
            if walk is not None:
                fastest = walk
                max_time = sum(stance.transition.segments[0].time for stance in walk if stance.transition)
        return fastest

    def _walk(self, stances: Sequence[PlannedStance], max_time: float) -> list[PlannedStance] | None:
        """Return the stances of a walk after its first one, or None if it takes ``max_time`` (s) or longer."""
        gait, timed = self._fastest(stances, max_time)
        reserve = (
            None
            if timed is None
            else next((k for k in RESERVE_SHARES if _is_dynamically_feasible(self.retimer, timed.paths, k)), None)
        )
        if timed is None or reserve is None:
            return None
        approaches = [_closest_approach(self.collisions, stances, phase, timed.walk) for phase in gait.phases]
        end_postures = (gait.q_start, gait.phases[0].closed), (gait.q_end, gait.phases[-1].closed)
        ends = [self.collisions.smallest(q, contacts=closed) for q, closed in end_postures]
        min_separation = min(MIN_SEPARATION_M, *(end.distance - SEPARATION_LOSS_M for end in ends if end is not None))
        if any(one.distance is not None and one.distance < min_separation for one in approaches):
            return None
        found = []
        for phase, segment, approach in zip(gait.phases, timed.segments, approaches, strict=True):
            law = segment.law
            assert law is not None
            timing = TimeParameterization(law.times, law.path, law.rate, law.change, reserve)
            stance = self._stance_after(stances, phase.stance, replace(segment, law=timing, near=approach))
            if stance is None:
                return None
            found.append(stance)
        return found

    def _fastest(self, stances: Sequence[PlannedStance], max_time: float) -> tuple[Gait, _TimedGait | None]:
        """Return the gait of the fastest walk within the speed limits, and this walk if it is below ``max_time`` (s).

        Speeds decrease with the duration of single support. Double support lasts at least as long as the load ramps.
        """
        section, leg = WalkSection(0, len(stances) - 2), self.robot.scale.leg
        gait = chosen = Gait(self.robot, self.settings, stances, section)
        min_interval, best = gait.least_interval(), None
        dt = max(INITIAL_INTERVAL_S * np.sqrt(leg), min_interval)
        candidates = [
            (leg * com_drop, _time_gait(gait, self.retimer, stances, dt, leg * com_drop)) for com_drop in COM_DROPS_M
        ]
        com_drop, candidate = min(candidates, key=lambda one: np.inf if one[1] is None else one[1].used_share)
        for _ in range(MAX_ROUNDS):
            if candidate is None:
                break
            duration, used_share = float(candidate.walk.t[-1]), candidate.used_share
            if used_share <= 1.0 and duration < max_time:
                best, chosen, max_time = candidate, gait, duration
            single_support_time = gait.single_support_samples * dt * used_share / TARGET_USED_SHARE
            dt = max(single_support_time / SINGLE_SUPPORT_SAMPLES, min_interval)
            gait = Gait(
                self.robot,
                self.settings,
                stances,
                section,
                max(int(np.ceil(single_support_time / dt)), MIN_SINGLE_SUPPORT_SAMPLES),
            )
            if MIN_USED_SHARE <= used_share <= 1.0 or dt * (gait.size - 1) >= max_time:
                break
            candidate = _time_gait(gait, self.retimer, stances, dt, com_drop)
        return chosen, best

    def _stance_after(self, stances: Sequence[PlannedStance], k: int, segment: Segment) -> PlannedStance | None:
        """Return stance k at the end of a segment, with the forces of the motion, or None if they are infeasible."""
        stance, robot, q, passing = stances[k], self.robot, segment.q[-1], segment.finish
        if passing is None:  # at rest in the planned posture
            assert stance.transition is not None
            transition = replace(stance.transition, segments=(segment, *stance.transition.segments[1:]))
            return replace(stance, transition=transition)
        ramp = self.settings.timing.load_time if stance.change == "add" else self.settings.timing.unload_time
        before = {contact.patch for contact in stances[k - 1].contacts}
        contacts_in_place = stance.contacts if len(stance.contacts) >= len(before) else stances[k - 1].contacts
        loaded = [contact.patch for contact in stance.contacts if contact.patch in before]
        equilibrium = balance(robot, q, contacts_in_place, loaded, motion=passing.posture)
        if not (equilibrium.feasible and equilibrium.torque_feasible):
            return None
        loaded_contacts = [contact_at(robot, q, contact) for contact in contacts_in_place if contact.patch in loaded]
        values = margins(robot, q, loaded_contacts, equilibrium, still=False)
        closest = self.collisions.smallest(q, contacts=contacts_in_place)
        values["clearance"] = None if closest is None else float(closest.distance)
        transition = Transition(stance.moved, (segment,), ramp)
        return PlannedStance(
            stance.contacts, stance.change, stance.moved, q, equilibrium.wrenches, equilibrium.tau, values,
            stance.objects, transition, passing,
        )  # fmt: skip


def _time_gait(
    gait: Gait, retimer: Retimer, stances: Sequence[PlannedStance], dt: float, com_drop: float
) -> _TimedGait | None:
    """Return a walk with the sampling interval ``dt`` (s), its segments and speeds, or None if it is infeasible."""
    walk = gait.walk(dt, com_drop)
    if walk is None:
        return None
    segments = tuple(_segment(gait.robot, walk, phase, stances[phase.stance]) for phase in gait.phases)
    paths = tuple(PathDynamics.pair(gait.robot, segment)[0] for segment in segments)
    return _TimedGait(walk, segments, paths, max(_speed_share(retimer, path) for path in paths))


def _segment(robot: Robot, walk: TimedWalk, phase: GaitPhase, stance: PlannedStance) -> Segment:
    """Return the segment of a phase; the swing foot follows the postures."""
    samples, size = slice(phase.begin, phase.end + 1), len(walk.t)
    times = walk.t[samples] - walk.t[phase.begin]
    ends = []
    for k in (phase.begin, phase.end):
        sample = walk.curve.sample(float(walk.t[k]))
        ends.append(BoundaryState.at(robot, walk.q[k], sample.v, sample.vd) if 0 < k < size - 1 else None)
    zero, swings = np.zeros(3), tuple[SwingSpec, ...]()
    if phase.swing_target is not None:
        swings = (SwingSpec(phase.swing_target.patch, "body", zero, zero, True, phase.swing_target),)
    nodes, rates = np.linspace(0.0, float(times[-1]), TIME_NODES), np.ones(TIME_NODES)
    timing = TimeParameterization(nodes, nodes, rates, np.zeros(TIME_NODES))
    begin_state, finish_state = ends
    return Segment(
        phase.closed,
        times,
        walk.q[samples],
        walk.com[samples],
        swings,
        law=timing,
        begin=begin_state,
        finish=finish_state,
    )


def _speed_share(retimer: Retimer, path: PathDynamics) -> float:
    """Return the largest used share of the limits of speeds and accelerations."""
    rates = max(float((1.0 / most).max()) for most in retimer.rates(path, 1.0).values())
    return max(rates, float(np.sqrt(np.abs(path.vd[:, 3:]).max() / retimer.pace.acceleration)))


def _is_dynamically_feasible(retimer: Retimer, paths: Sequence[PathDynamics], reserve: float) -> bool:
    """Whether contacts and joints can generate the motion while they keep the share ``reserve`` of their reserve."""
    for path in paths:
        program = retimer.program_at(path, retimer.forces(path, reserve))
        if not all(_has_forces(program, i) for i in range(0, len(program.v), FORCE_CHECK_STRIDE)):
            return False
    return True


def _has_forces(program: PathProgram, i: int) -> bool:
    """Whether there are feasible forces at node ``i`` for the motion at its nominal speed."""
    A, b, C, d = program.forces_at(i, program.hold[i] + program.of_x[i])
    return bool(linprog(np.zeros(A.shape[1]), A, b, C, d, (None, None), method="highs").status == 0)


def _closest_approach(
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
