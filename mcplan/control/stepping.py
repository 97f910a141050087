"""Push recovery: capture-point steps of a robot on its feet, and the steps back to its plan.

A robot of mass m can come to rest on its contacts while its capture point (`motion.pendulum`),

    xi = c + c' / w + w / (m g) (L_y, -L_x)

with the angular momentum L about its centre of mass c, which has to be stopped too, is inside their support region
(Koolen et al. 2012). Once it is well outside, a foot goes to where the capture point will be: while the foot swings,
the pressure stays at the point u of the bearing contacts that is nearest to the capture point, which diverges from it,

    xi(T) = u + (xi_0 - u) e^(w T)

Of all feet and durations T the robot takes the step after which the capture point is deepest in the new support region.
A foot in the air continues from its present motion, and follows the capture point. Then the robot steps back to where
its plan goes on: to the stance before a shift, to the one after a swing. These steps are slow: with the centre of mass
over the feet that stay, one foot after the other goes to its planned place, and the body to its planned posture.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mcplan.control.arrival import descent_ramp
from mcplan.control.machine import Machine
from mcplan.control.motion import Motion
from mcplan.control.phases import (
    COM_REST_SPEED_M_S,
    TOO_FAR,
    TOUCH_TIME_S,
    Approach,
    ContactPhase,
    Lift,
    Load,
    MeasuredState,
    Phase,
    Retract,
    Settle,
    Shift,
    Stand,
    Swing,
    Unload,
    all_of,
    arrived,
    or_timeout,
)
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError, SimulationFailed
from mcplan.motion.descent import Descent
from mcplan.motion.limb_path import LimbPath, StepPath
from mcplan.motion.pendulum import Pendulum, frequency
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.quintic import Quintic, rotation_vector
from mcplan.motion.time_parameterization import TimedPath
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.robot.anatomy import limb_joints, limbs_of
from mcplan.robot.pose import heading_rotation
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.polygon import clip, half_planes, nearest
from mcplan.settings.control import ControlSettings
from mcplan.settings.states import Until
from mcplan.statics.support_region import SupportRegion, support_region

RISE, DESCENT = 0.05, 0.1
"""m, m/s: how high a foot is lifted, and how fast it goes on down where it has met nothing, for a robot of the size of
HRP-2, as all lengths and times that follow, but for those that say otherwise."""

LANDING = 0.05
"""s, of any robot: within which a foot that has stepped out may bear everything."""

MISSED = 0.5
"""s, of any robot: a foot that has met nothing so long after its time has missed its support."""

QUIET = 0.02
"""m: on the way back the pressure is no farther from below the centre of mass."""

LEAST = 0.8
"""s: for a step back, however short."""

STRETCHED = 0.97
"""Part of its length that a leg may be long where the centre of mass is over the other one: else the body sinks."""


class BalanceStep(NamedTuple):
    """A step: the foot's new contact, its duration (s), and the room that it leaves the capture point (m)."""

    contact: Contact
    duration: float
    room: float


@dataclass
class StepOut(Phase):
    """Set a foot to where it catches the robot."""

    stance: int
    step: BalanceStep
    path: StepPath | None = field(default=None, repr=False)
    verb = "step"

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.step.contact.patch}"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Open the contact, if the foot is not in the air, and send the foot on its way.

        A foot that was to be lifted bears again, and a hand that was on its way to a support gives that up.
        """
        contact, scale = self.step.contact, motion.robot.scale.leg
        patch, place, velocity = contact.patch, now.pose(contact.patch), None
        motion.note(t, f"the capture point has left the feet: {patch} steps out", (patch,))
        if patch in motion.contacts:
            motion.open(patch, t, place)
        else:
            x = motion.limbs[patch].sample(t)
            place, velocity = (x.R, x.p), x.velocity[:3]
        motion.reload(t, LANDING)
        for name in motion.targets.keys() - {patch}:
            motion.limbs.pop(name, None)
            del motion.targets[name]
            motion.sought.discard(name)
            motion.waiting.discard(name)
        speed = np.sqrt(scale) * DESCENT
        end = contact.R, contact.p
        self.path = StepPath(place, end, contact.normal, RISE * scale, self.step.duration, speed, t, velocity)
        _send(motion, contact, self.path)
        if isinstance(motion.posture, TimedPath):  # what the plan goes on with does not wait
            x = motion.posture.sample(t)
            motion.posture = PostureTrajectory(x.q, x.q, self.step.duration, x.v, x.vd, t)
        return self.step.duration

    def aim(self, contact: Contact, motion: Motion, t: float) -> None:
        """Lead the foot to another place."""
        assert self.path is not None
        self.step = self.step._replace(contact=contact)
        self.path.aim((contact.R, contact.p), t)
        motion.targets[contact.patch] = contact

    def until(self, settings: ControlSettings) -> Until:
        """Wait until it touches."""
        force = Until(force=self.step.contact.patch, above=settings.contact.touch_force)
        touch = Until(all=(Until(elapsed=0.5 * self.step.duration), force), altogether=TOUCH_TIME_S)
        return Until(any=(touch, Until(timeout=MISSED)))

    def leave(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Close the contact where the foot is, and keep the legs as they are; trunk and arms go back to their posture.

        Raises
        ------
        SimulationFailed
            The foot has met nothing.
        """
        _land(self.step.contact, self.name, motion, t, now, LANDING)
        x = motion.posture.sample(t)
        q = x.q.copy()
        for limb in {motion.robot.patches[patch].limb for patch in motion.contacts}:
            legs = limb_joints(motion.robot, limb)
            q[legs] = now.q[legs]
        motion.posture = PostureTrajectory(x.q, q, self.step.duration, x.v, x.vd, t)


@dataclass
class Regain(Phase):
    """Come to rest over the feet where they are."""

    stance: int
    verb = "regain"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Leave the centre of mass to what catches it."""
        return 0.0

    def until(self, settings: ControlSettings) -> Until:
        """Wait until it is slow and in place."""
        rest = Until(error="com", below=settings.timing.com_tolerance), Until(speed="com", below=COM_REST_SPEED_M_S)
        return or_timeout(all_of(*rest), settings)


@dataclass
class Lean(ContactPhase):
    """Bring the centre of mass over the feet that stay, so low that the leg of the other one is long enough.

    It is to reach from where its foot is to where that will step. Joints go to where the stance of the plan has them.
    """

    stance: int
    contact: Contact
    planned: PlannedStance
    verb = "lean off"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the centre of mass."""
        robot, x, patch = motion.robot, motion.com.sample(t), self.contact.patch
        region = support_region([contact for contact in motion.closed if contact.patch != patch], robot.mass)
        (leg,) = limbs_of(robot, now.q, (patch,)).values()
        hip = now.q[:3] + heading_rotation(now.q) @ leg.root
        hip[:2] += region.centre - x.value[:2]
        ways = hip - np.array([now.pose(patch)[1], self.contact.p])
        room = (STRETCHED * leg.length) ** 2 - np.sum(ways[:, :2] ** 2, axis=1)
        sink = float(np.max(ways[:, 2] - np.sqrt(np.maximum(room, 0.0)), initial=0.0))
        return _led_to(motion, t, np.append(region.centre, x.value[2] - sink), self.planned.q)

    def until(self, settings: ControlSettings) -> Until:
        """Wait until it is there."""
        return or_timeout(arrived(settings), settings)


@dataclass
class StepBack(ContactPhase):
    """Swing a foot to the place that the plan has it in, and feel for the support there."""

    stance: int
    contact: Contact
    verb = "step back"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Send the foot on its way: up, across, and down along the normal."""
        s, patch, up = motion.settings, self.contact.patch, self.contact.normal
        motion.note(t, f"{patch} steps back to where the plan has it", (patch,))
        above = self.contact.R, self.contact.p + s.contact.touch_height * up
        lift, depth = s.avoidance.swing_clearance * up, s.contact.touch_height + s.contact.touch_depth
        over = LimbPath(now.pose(patch), above, lift, lift, motion.timing, t)
        path = Descent(over, up, s.timing.descent_speed, depth, descent_ramp(s))
        _send(motion, self.contact, path)
        return path.end_time - t

    def until(self, settings: ControlSettings) -> Until:
        """Wait until it touches where it is to."""
        patch, s = self.contact.patch, settings.contact
        touch = all_of(Until(force=patch, above=s.touch_force), Until(over=patch, below=s.touch_height))
        return or_timeout(touch.model_copy(update={"altogether": TOUCH_TIME_S}), settings)

    def leave(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Close the contact where the foot is."""
        _land(self.contact, self.name, motion, t, now, motion.settings.timing.load_time)


@dataclass
class Restore(Phase):
    """Go back to the posture of a stance of the plan, on its contacts."""

    stance: int
    planned: PlannedStance
    verb = "restore"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the references."""
        return _led_to(motion, t, motion.robot.com(self.planned.q), self.planned.q)

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the body is there."""
        return or_timeout(arrived(settings), settings)


def _send(motion: Motion, contact: Contact, path: StepPath | Descent) -> None:
    """Send a foot to a contact along a path, to feel for its support there."""
    motion.limbs[contact.patch], motion.targets[contact.patch] = path, contact
    motion.released.pop(contact.patch, None)
    motion.waiting.discard(contact.patch)
    motion.sought.add(contact.patch)


def _land(contact: Contact, name: str, motion: Motion, t: float, now: MeasuredState, duration: float) -> None:
    """Close a contact where the foot is; it may bear more and more within ``duration`` (s)."""
    (R, p), force = now.pose(contact.patch), now.normal_force(contact.patch)
    if force <= 0.0:
        raise SimulationFailed(f"{name} at t = {t:g} s: the foot has met nothing", "no contact")
    down = float((p - contact.p) @ contact.normal) * contact.normal
    motion.close(replace(contact, p=p - down), t, duration, force, (R, p))


def _led_to(motion: Motion, t: float, end: np.ndarray, q: np.ndarray) -> float:
    """Lead centre of mass and posture to a place (3,) and q (nq,); return the time (s).

    The pressure stays close below the centre of mass.

    A minimum-jerk motion over d within T accelerates by up to 5.77 d / T², which moves the pressure by 1 / w² of it.
    """
    x, posture = motion.com.sample(t), motion.posture.sample(t)
    way, scale = float(np.linalg.norm(end - x.value)), motion.robot.scale
    omega = frequency(x.value, motion.closed, scale.leg)
    gentle = np.sqrt(5.77 * way / (QUIET * scale.sole)) / omega
    duration = max(15 / 8 * way / motion.settings.timing.com_speed, gentle, float(LEAST * np.sqrt(scale.leg)))
    motion.com = Quintic(x.value, end, duration, x.velocity, x.acceleration, t)
    motion.posture = PostureTrajectory(posture.q, q, duration, posture.v, posture.vd, t)
    return duration


DURATIONS = 0.25, 0.3, 0.35, 0.4, 0.45, 0.5
"""s: how long a step may take, for a robot of the size of HRP-2, as all lengths, times and speeds that follow, but for
those that say otherwise."""

FASTEST = 2.4
"""m/s: of a foot that steps."""

LONGEST, CLOSEST = 0.53, 0.02
"""m: the most between two feet, and the least gap between them sideways."""

UNEVEN = 0.1
"""m: a support so far above or below a foot is none to step on."""

ENOUGH = 0.04
"""m: there need not be more room for a capture point inside the support region; then the quicker step is the better."""

LOST = 0.04
"""m: a capture point no farther outside the support region comes back by a turn of the trunk. Of 80 hard pushes from
which HRP-2 recovered without a step, none drove it out by more than 0.033 m; all others drove it beyond 0.18 m."""

LEVEL = 0.9
"""A support whose normal has a smaller part upwards is none to step on, or to stand on while one does."""

AIMED = 0.7
"""Part of a step's duration in which its place follows the capture point."""

BACK, INSIDE = 2.0, 0.01
"""1/s of any robot, m: how quickly the capture point goes back to the middle of the support region at most, with the
pressure so far inside its edge."""

ASTRAY, TURNED = TOO_FAR, 0.05
"""m, rad, of any robot: a foot that is farther from where the plan has it steps back."""

TRIES = 4
"""Steps back in a row after which feet that are still astray do not come back."""

FALL = 0.999
"""k / w of a fall about a point: at one the two exponentials of the pendulum are no solution of their own any more."""


class _State(NamedTuple):
    """Capture point xi (2,), m, and ``w``, 1/s."""

    xi: np.ndarray
    omega: float


class Diversion(NamedTuple):
    """What is done instead of the present state, and the index of the state that comes after it."""

    phases: list[Phase]
    onward: int


class Stepping:
    """Watches a robot that is on its feet alone for its capture point, and steps out where it would fall.

    Parameters
    ----------
    plan : of the run.
    settings : ``recovery.max_steps`` is the number of steps.
    """

    def __init__(self, plan: Plan, settings: ControlSettings):
        self.robot, self.environment, self.stances = plan.scenario.robot, plan.scenario.environment, plan.stances
        self._left = settings.recovery.max_steps if settings.compliant else 0
        self._surfaces = [s for s in self.environment.surfaces if s.normal[2] >= LEVEL]
        self._tries = 0
        self._contacts: tuple[Contact, ...] = ()
        self._regions: dict[frozenset[Contact], SupportRegion | None] = {}
        # the programs of what the plan stands on are solved before the first tick
        for contacts in (*(stance.contacts for stance in plan.stances), *(part.contacts for part in plan.segments)):
            self._region(contacts)

    def look(self, t: float, terms: Terms, motion: Motion, machine: Machine) -> Diversion | None:
        """Return what to do at time t (s) instead of the present state of the machine: a step, and what comes after it.

        Raises
        ------
        SimulationFailed
            The robot has stepped out, and its feet do not come back to where the plan goes on.
        """
        phase = machine.phase
        if isinstance(phase, StepOut):
            self._lead(t, terms, motion, phase)
            return None
        if isinstance(phase, StepBack) or not (self._left or isinstance(phase, Regain | Restore)):
            return None
        if (region := self._support(motion)) is None:
            return None
        state = self._state(terms)
        if isinstance(phase, Regain):
            self._catch(t, terms, motion, region, state)
        lost = (depth := region.depth(state.xi)) < -LOST * self.robot.scale.sole
        if lost and self._left and (on := self._way_on(motion, machine)) is not None:
            step = self._best(terms, state, self._in_the_air(phase, motion))
            # not where as much is missing as if it stayed
            if step is not None and step.room >= depth * np.exp(state.omega * step.duration):
                self._left, motion.spin = self._left - 1, None
                return Diversion([StepOut(phase.stance, step), *on.phases], on.onward)
        return self._back(t, terms, motion, machine) if isinstance(phase, Restore) else None

    def _way_on(self, motion: Motion, machine: Machine) -> Diversion | None:
        """Return what leads back to the plan from where a step has ended; None where nothing does.

        Before a contact opens that is the stance before; later, the one in which the foot in the air will have come
        down; a hand that was on its way begins it again. What is planned to begin in motion cannot begin from rest.
        """
        states, here = machine.states, machine.index
        phase, following = states[here].phase, [state.phase for state in states[here + 1 :]]
        if isinstance(phase, Regain):
            return Diversion([], here)
        if isinstance(phase, Restore | Lean) or (isinstance(phase, Unload) and isinstance(following[0], StepBack)):
            again = next(k for k, after in enumerate([phase, *following]) if isinstance(after, Restore))
            return Diversion([Regain(phase.stance)], here + again)
        if isinstance(phase, Stand | Settle):
            return self._restored(phase.stance, here)
        if motion.passing:
            return None
        hand = isinstance(phase, Lift | Swing | Approach) and phase.contact.patch not in self.robot.feet
        if hand or isinstance(phase, Shift | Unload):
            while here and not isinstance(states[here].phase, Lift if hand else Shift):
                here -= 1
            return self._restored(phase.stance - 1, here)
        if isinstance(phase, Retract | Lift | Swing | Approach | Load):
            loads = [(k, after) for k, after in enumerate([phase, *following]) if isinstance(after, Load)]
            if not loads:
                return None
            k, load = loads[0]
            if isinstance(phase, Retract) and load.patch not in self.robot.feet:
                return self._restored(phase.stance, here + 1)
            return self._restored(load.stance, here + k + 1)
        return None

    def _restored(self, stance: int, onward: int) -> Diversion:
        return Diversion([Regain(stance), Restore(stance, self.stances[stance])], onward)

    def _back(self, t: float, terms: Terms, motion: Motion, machine: Machine) -> Diversion | None:
        """Return the step of a foot that is not where the plan has it, before the robot goes back there.

        Of several, of the one that will be nearest to the other feet: a wide stance is hard to lean in.
        """
        stance = machine.phase.stance
        astray = [contact for contact in self.stances[stance].contacts if _off(contact, terms) > 1.0]
        if not astray:
            self._tries = 0
            return None
        feet = [contact.patch for contact in motion.closed]
        wide = [max([0.0, *(_way(foot, one, terms) for foot in feet if foot != one.patch)]) for one in astray]
        contact = astray[int(np.argmin(wide))]
        patch = contact.patch
        self._tries += 1
        if self._tries > TRIES or patch not in motion.contacts or len(motion.contacts) < 2:
            raise SimulationFailed(
                f"{machine.phase.name} of stance {stance} at t = {t:g} s: the robot has stepped out, and {patch} does "
                "not come back to where the plan has it",
                "stepped out",
            )
        lean = Lean(stance, contact, self.stances[stance])
        return Diversion([lean, Unload(stance, patch), StepBack(stance, contact)], machine.index)

    def may_step(self, contacts: Sequence[Contact]) -> Iterator[str]:
        """Go through the feet that may leave some contacts."""
        if self._left and len(contacts) > 1 and self._on_feet(contacts):
            limbs = [self.robot.patches[contact.patch].limb for contact in contacts]
            yield from (c.patch for c, limb in zip(contacts, limbs, strict=True) if limbs.count(limb) == 1)

    def _support(self, motion: Motion) -> SupportRegion | None:
        """Return the support region of the closed contacts; None unless all are feet on what is about level."""
        self._contacts = motion.closed
        return self._region(self._contacts)

    def _region(self, contacts: Sequence[Contact]) -> SupportRegion | None:
        """Return the support region of feet on what is about level, found once; None of any other contacts."""
        key = frozenset(contacts)
        if key not in self._regions:
            stands = contacts and self._on_feet(contacts)
            self._regions[key] = support_region(contacts, self.robot.mass) if stands else None
        return self._regions[key]

    def _in_the_air(self, phase: Phase, motion: Motion) -> str | None:
        """Return the foot that a phase swings, if one is in the air."""
        if isinstance(phase, Lift | Swing | Approach) and self._on_feet([phase.contact]):
            patch = phase.contact.patch
            return patch if patch in motion.limbs and not motion.waiting else None
        return None

    def _on_feet(self, contacts: Sequence[Contact]) -> bool:
        """Say whether all contacts are feet on what is about level."""
        return all(contact.patch in self.robot.feet and _level(contact) for contact in contacts)

    def _state(self, terms: Terms) -> _State:
        omega = frequency(terms.com, self._contacts, self.robot.scale.leg)
        spin = omega / (self.robot.mass * GRAVITY) * np.array([terms.momentum[4], -terms.momentum[3]])
        return _State(terms.com[:2] + terms.com_velocity[:2] / omega + spin, omega)

    def _lead(self, t: float, terms: Terms, motion: Motion, phase: StepOut) -> None:
        """Let the centre of mass fall about the pressure that delays it most, and the foot follow its capture point.

        What a stiffer reference would ask for beyond that turns the trunk, and turns it back when the foot lands.
        """
        region = self._support(motion)
        if region is None or phase.path is None:
            return
        state = self._state(terms)
        pivot = _nearest(region, state.xi)
        motion.com = Pendulum(terms.com, terms.com_velocity, pivot, state.omega, -FALL * state.omega, t)
        left = phase.path.end_time - t
        if left > (1.0 - AIMED) * phase.path.duration:
            contact = self._place(phase.step.contact.patch, _runs_to(state, pivot, left), terms, self._contacts)
            if contact is not None:
                phase.aim(contact, motion, t)

    def _catch(self, t: float, terms: Terms, motion: Motion, region: SupportRegion, state: _State) -> None:
        """Let the capture point come back to the middle of the feet, as quickly as pressure inside their edges can."""
        if isinstance(motion.com, Pendulum) and motion.com.rate > 0.0:
            return
        rest = region.centre
        slopes, room = region.A @ (state.xi - rest), region.inset(INSIDE * self.robot.scale.sole) - region.A @ rest
        ahead = slopes > 0.0
        reach = float(np.min(room[ahead] / slopes[ahead], initial=np.inf))
        rate = float(np.clip(state.omega * (reach - 1.0), 0.05 * BACK, BACK))
        motion.com = Pendulum(terms.com, terms.com_velocity, rest, state.omega, rate, t)

    def _best(self, terms: Terms, state: _State, moving: str | None) -> BalanceStep | None:
        """Return the best step, of a foot in the air where one is ``moving``."""
        enough = ENOUGH * self.robot.scale.sole
        feet = self.may_step(self._contacts) if moving is None else [moving]
        steps = [step for patch in feet for step in self._steps(patch, terms, state)]
        return max(steps, key=lambda step: (min(step.room, enough), -step.duration), default=None)

    def _steps(self, patch: str, terms: Terms, state: _State) -> Iterator[BalanceStep]:
        """Go through the steps of one foot, by their durations."""
        bearing = [contact for contact in self._contacts if contact.patch != patch]
        pivot, root = _nearest(support_region(bearing, self.robot.mass), state.xi), np.sqrt(self.robot.scale.leg)
        for duration in root * np.array(DURATIONS):
            xi = _runs_to(state, pivot, duration)
            contact = self._place(patch, xi, terms, bearing)
            if contact is None:
                continue
            if 15 / 8 * _way(patch, contact, terms) <= FASTEST * root * duration:
                room = support_region([*bearing, contact], self.robot.mass).depth(xi)
                yield BalanceStep(contact, float(duration), room)

    def _place(self, patch: str, xi: np.ndarray, terms: Terms, bearing: Sequence[Contact]) -> Contact | None:
        """Return the contact of a foot whose middle is as near to a point (2,) as legs allow; None: nothing is there.

        The foot keeps its heading and its side of the others.
        """
        polygon, frame, scale = self.robot.patches[patch].polygon, terms.frame(patch), self.robot.scale.leg
        target = xi - frame.R[:2, :2] @ polygon.mean(axis=0)
        for contact in bearing:
            side = contact.R[:2, 1] * np.sign(contact.R[:2, 1] @ (frame.p - contact.p)[:2])
            gap = side @ (target - contact.p[:2]) - np.ptp(polygon[:, 1]) - CLOSEST * scale
            target = target - min(gap, 0.0) * side
            way = target - contact.p[:2]
            target = contact.p[:2] + way * min(1.0, LONGEST * scale / float(np.linalg.norm(way)))
        foot = target + polygon @ frame.R[:2, :2].T
        over = [s for s in self._surfaces if len(clip(foot, *half_planes(s.corners[:, :2])))]
        heights = [_height_at(surface, target) for surface in over]
        if not over or abs(max(heights) - frame.p[2]) > UNEVEN * scale:
            return None
        highest = int(np.argmax(heights))  # what the foot would meet first: on another surface it has no room
        surface = over[highest]
        place, heading = surface.R.T @ (np.append(target, heights[highest]) - surface.p), surface.R.T @ frame.R[:, 0]
        x, y, yaw = map(float, (*place[:2], np.arctan2(heading[1], heading[0])))
        spec = {"patch": patch, "surface": surface.name, "x": x, "y": y, "yaw": yaw}
        try:
            return make_contact(self.robot, self.environment, spec)
        except InputError:  # it would reach over the edge
            return None


def _height_at(surface: Surface, point: np.ndarray) -> float:
    """Return how high a surface is over a horizontal point (2,), m."""
    return float(surface.p[2] - surface.normal[:2] @ (point - surface.p[:2]) / surface.normal[2])


def _level(contact: Contact) -> bool:
    """Say whether a contact is a face on a fixed support that is about level."""
    face = contact.kind == "surface" and len(contact.points) > 2
    return face and contact.carrier is None and bool(contact.normal[2] >= LEVEL)


def _off(contact: Contact, terms: Terms) -> float:
    """Return how far a foot is from its contact along its support, or turned, relative to what is too much."""
    frame = terms.frame(contact.patch)
    step = frame.p - contact.p
    along = step - float(step @ contact.normal) * contact.normal
    turn = rotation_vector(frame.R @ contact.R.T)
    return max(float(np.linalg.norm(along)) / ASTRAY, float(np.linalg.norm(turn)) / TURNED)


def _way(patch: str, contact: Contact, terms: Terms) -> float:
    """Return how far a patch is from the place of a contact (m)."""
    return float(np.linalg.norm(contact.p - terms.frame(patch).p))


def _nearest(region: SupportRegion, point: np.ndarray) -> np.ndarray:
    """Return the point (2,) of a region that is nearest to one."""
    found = nearest(point, region.A, region.b)
    return region.centre if found is None else found


def _runs_to(state: _State, pivot: np.ndarray, duration: float) -> np.ndarray:
    """Return where the capture point (2,) is after so many seconds about a pivot (2,)."""
    return np.asarray(pivot + (state.xi - pivot) * np.exp(state.omega * duration))
