"""Push recovery: capture-point steps of a robot on its feet, and the steps back to its plan.

A robot of mass m can come to rest on its contacts while its capture point (`motion.pendulum`),

    xi = c + c' / w + w / (m g) (L_y, -L_x)

is inside their support region (Koolen et al. 2012). The term with the angular momentum L about the centre of mass c
counts because L has to be stopped too. Once the capture point is well outside, a foot steps to where it will be. During
the swing the centre of pressure stays at u, the point of the support region nearest to the capture point, which
diverges from it:

    xi(T) = u + (xi_0 - u) e^(w T)

Of all feet and durations T the robot takes the step after which the capture point is deepest in the new support region.
A foot in the air continues from its present motion, and follows the capture point. Then the robot returns to a stance
of its plan: the one before an interrupted shift, or the one after an interrupted swing. It leans over the other feet,
puts one foot after the other back to its planned contact, then moves the body to its planned posture.
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
from mcplan.motion.rotation import rotation_vector
from mcplan.motion.spline import PostureSpline, Spline
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
"""m, m/s: swing height, and speed of descent below the planned touchdown. Like all lengths and times below they are
those of HRP-2 and scale with the robot, unless stated otherwise."""

LANDING = 0.05
"""s, not scaled: within this time after touchdown a foot that stepped out reaches its full force limit."""

MISSED = 0.5
"""s, not scaled: a foot that is so late has missed its support."""

QUIET = 0.02
"""m: largest distance of the centre of pressure from the projected CoM while the robot returns to its plan."""

LEAST = 0.8
"""s: shortest duration of a step back."""

STRETCHED = 0.97
"""Fraction of the leg length up to which a leg may be stretched while the CoM is over the other foot; beyond it the
body is lowered."""


class BalanceStep(NamedTuple):
    """A step: new contact of the foot, duration (s), and depth of the capture point in the support region then (m)."""

    contact: Contact
    duration: float
    room: float


@dataclass
class StepOut(Phase):
    """Step to the capture point."""

    stance: int
    step: BalanceStep
    path: StepPath | None = field(default=None, repr=False)
    verb = "step"

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.step.contact.patch}"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Open the contact unless the foot is in the air, and start its swing.

        Feet that were being unloaded bear again; hands that were moving to a support stop.
        """
        contact, scale = self.step.contact, motion.robot.scale.leg
        patch, place, velocity = contact.patch, now.pose(contact.patch), None
        motion.note(t, f"the capture point has left the support region: {patch} steps out", (patch,))
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
        if isinstance(motion.posture, TimedPath):  # time-parameterized: it would run on during the step
            x = motion.posture.sample(t)
            motion.posture = PostureSpline.to_rest(x.q, x.q, self.step.duration, x.v, x.vd, t)
        return self.step.duration

    def aim(self, contact: Contact, motion: Motion, t: float) -> None:
        """Redirect the swing to another contact."""
        assert self.path is not None
        self.step = self.step._replace(contact=contact)
        self.path.aim((contact.R, contact.p), t)
        motion.targets[contact.patch] = contact

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the touchdown."""
        force = Until(force=self.step.contact.patch, above=settings.contact.touch_force)
        touch = Until(all=(Until(elapsed=0.5 * self.step.duration), force), altogether=TOUCH_TIME_S)
        return Until(any=(touch, Until(timeout=MISSED)))

    def leave(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Close the contact at the measured pose of the foot; legs keep their posture, trunk and arms return to theirs.

        Raises
        ------
        SimulationFailed
            The foot has touched nothing.
        """
        _land(self.step.contact, self.name, motion, t, now, LANDING)
        x = motion.posture.sample(t)
        q = x.q.copy()
        for limb in {motion.robot.patches[patch].limb for patch in motion.contacts}:
            legs = limb_joints(motion.robot, limb)
            q[legs] = now.q[legs]
        motion.posture = PostureSpline.to_rest(x.q, q, self.step.duration, x.v, x.vd, t)


@dataclass
class Regain(Phase):
    """Come to rest over the feet, wherever they stand."""

    stance: int
    verb = "regain"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Change nothing: `Stepping` sets the CoM reference."""
        return 0.0

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the CoM is slow and in place."""
        rest = Until(error="com", below=settings.timing.com_tolerance), Until(speed="com", below=COM_REST_SPEED_M_S)
        return or_timeout(all_of(*rest), settings)


@dataclass
class Lean(ContactPhase):
    """Move the CoM over the other feet, and joints to the planned posture, before a foot steps back.

    The body is lowered until the leg reaches both the present and the planned place of its foot.
    """

    stance: int
    contact: Contact
    planned: PlannedStance
    verb = "lean off"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the references of CoM and posture."""
        robot, x, patch = motion.robot, motion.com.sample(t), self.contact.patch
        region = support_region([contact for contact in motion.closed if contact.patch != patch], robot.mass)
        (leg,) = limbs_of(robot, now.q, (patch,)).values()
        hip = now.q[:3] + heading_rotation(now.q) @ leg.root
        hip[:2] += region.centre - x.value[:2]
        legs = hip - np.array([now.pose(patch)[1], self.contact.p])
        squared_height = (STRETCHED * leg.length) ** 2 - np.sum(legs[:, :2] ** 2, axis=1)
        sink = float(np.max(legs[:, 2] - np.sqrt(np.maximum(squared_height, 0.0)), initial=0.0))
        return _move_body_to(motion, t, np.append(region.centre, x.value[2] - sink), self.planned.q)

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the CoM has arrived and is slow."""
        return or_timeout(arrived(settings), settings)


@dataclass
class StepBack(ContactPhase):
    """Swing a foot to its planned contact, and lower it until it touches."""

    stance: int
    contact: Contact
    verb = "step back"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the swing: up, across, and down along the normal."""
        s, patch, up = motion.settings, self.contact.patch, self.contact.normal
        motion.note(t, f"{patch} steps back to its planned contact", (patch,))
        above = self.contact.R, self.contact.p + s.contact.touch_height * up
        lift, depth = s.avoidance.swing_clearance * up, s.contact.touch_height + s.contact.touch_depth
        over = LimbPath(now.pose(patch), above, lift, lift, motion.timing, t)
        path = Descent(over, up, s.timing.descent_speed, depth, descent_ramp(s))
        _send(motion, self.contact, path)
        return path.end_time - t

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the touchdown near the height of the planned contact."""
        patch, s = self.contact.patch, settings.contact
        touch = all_of(Until(force=patch, above=s.touch_force), Until(over=patch, below=s.touch_height))
        return or_timeout(touch.model_copy(update={"altogether": TOUCH_TIME_S}), settings)

    def leave(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Close the contact at the measured pose of the foot."""
        _land(self.contact, self.name, motion, t, now, motion.settings.timing.load_time)


@dataclass
class Restore(Phase):
    """Return to the planned posture of a stance, on its contacts."""

    stance: int
    planned: PlannedStance
    verb = "restore"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the references."""
        return _move_body_to(motion, t, motion.robot.com(self.planned.q), self.planned.q)

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the CoM has arrived and is slow."""
        return or_timeout(arrived(settings), settings)


def _send(motion: Motion, contact: Contact, path: StepPath | Descent) -> None:
    """Start the path of a foot to a contact, with touch detection at its end."""
    motion.limbs[contact.patch], motion.targets[contact.patch] = path, contact
    motion.released.pop(contact.patch, None)
    motion.waiting.discard(contact.patch)
    motion.sought.add(contact.patch)


def _land(contact: Contact, name: str, motion: Motion, t: float, now: MeasuredState, duration: float) -> None:
    """Close a contact at the measured pose of the foot; its force limit rises within ``duration`` (s)."""
    (R, p), force = now.pose(contact.patch), now.normal_force(contact.patch)
    if force <= 0.0:
        raise SimulationFailed(f"{name} at t = {t:g} s: the foot touches no support", "no contact")
    down = float((p - contact.p) @ contact.normal) * contact.normal
    motion.close(replace(contact, p=p - down), t, duration, force, (R, p))


def _move_body_to(motion: Motion, t: float, end: np.ndarray, q: np.ndarray) -> float:
    """Move CoM and posture to a point (3,) and q (nq,) quasi-statically; return the duration (s).

    The centre of pressure stays close to the projected CoM: a minimum-jerk motion over d within T accelerates by up to
    5.77 d / T², which displaces the pressure by 1 / w² times that.
    """
    x, posture = motion.com.sample(t), motion.posture.sample(t)
    distance, scale = float(np.linalg.norm(end - x.value)), motion.robot.scale
    omega = frequency(x.value, motion.closed, scale.leg)
    gentle = np.sqrt(5.77 * distance / (QUIET * scale.sole)) / omega
    duration = max(15 / 8 * distance / motion.settings.timing.com_speed, gentle, float(LEAST * np.sqrt(scale.leg)))
    motion.com = Spline.to_rest(x.value, end, duration, x.velocity, x.acceleration, t)
    motion.posture = PostureSpline.to_rest(posture.q, q, duration, posture.v, posture.vd, t)
    return duration


DURATIONS = 0.25, 0.3, 0.35, 0.4, 0.45, 0.5
"""s: candidate step durations. Like all lengths, times and speeds below they are those of HRP-2 and scale with the
robot, unless stated otherwise."""

FASTEST = 2.4
"""m/s: largest speed of a stepping foot."""

LONGEST, CLOSEST = 0.53, 0.02
"""m: largest distance between two feet, and smallest lateral gap between them."""

UNEVEN = 0.1
"""m: largest height difference of a step."""

ENOUGH = 0.04
"""m: sufficient depth of the capture point in the support region; of all steps that reach it the quickest is taken."""

LOST = 0.04
"""m: a capture point no farther outside the support region is recovered by rotating the trunk. Of 80 hard pushes from
which HRP-2 recovered without a step, none drove it out by more than 0.033 m; all others drove it beyond 0.18 m."""

LEVEL = 0.9
"""Smallest vertical component of the normal of a support to step on, or to stand on during a step."""

AIMED = 0.7
"""Fraction of a step's duration in which its target follows the capture point."""

BACK, INSIDE = 2.0, 0.01
"""1/s (not scaled), m: largest rate at which the capture point returns to the centre of the support region, with the
centre of pressure so far inside its edge."""

ASTRAY, TURNED = TOO_FAR, 0.05
"""m, rad, not scaled: a foot that is farther from its planned contact steps back."""

TRIES = 4
"""Consecutive steps back after which the return to the plan is given up."""

FALL = 0.999
"""Rate of a fall about a pivot relative to w. At 1 the two exponential solutions of the pendulum coincide."""


class _State(NamedTuple):
    """Capture point xi (2,), m, and ``w``, 1/s."""

    xi: np.ndarray
    omega: float


class Diversion(NamedTuple):
    """Phases inserted in place of the present state, and the index of the state to continue with."""

    phases: list[Phase]
    onward: int


class Stepping:
    """Push recovery: monitors the capture point of a robot that stands on its feet, and steps before it falls.

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
        self._leg, self._weight = self.robot.scale.leg, self.robot.mass * GRAVITY
        self._least_depth = -LOST * self.robot.scale.sole
        self._regions: dict[tuple[Contact, ...], SupportRegion | None] = {}
        # the support regions of all planned stances are computed before the first tick
        for contacts in (*(stance.contacts for stance in plan.stances), *(part.contacts for part in plan.segments)):
            self._region(contacts)

    def look(self, t: float, terms: Terms, motion: Motion, machine: Machine) -> Diversion | None:
        """Return the recovery step, or step back, to insert at time t (s); None: go on.

        Raises
        ------
        SimulationFailed
            The robot has stepped out, and its feet do not return to their planned contacts.
        """
        phase = machine.phase
        if isinstance(phase, StepOut):
            self._track_capture_point(t, terms, motion, phase)
            return None
        if isinstance(phase, StepBack) or not (self._left or isinstance(phase, Regain | Restore)):
            return None
        if (region := self._support(motion)) is None:
            return None
        if not isinstance(phase, Regain | Restore) and self._stands(region, terms):
            return None
        state = self._state(terms)
        if isinstance(phase, Regain):
            self._recover_com(t, terms, motion, region, state)
        lost = (depth := region.depth(state.xi)) < self._least_depth
        if lost and self._left and (on := self._return_plan(motion, machine)) is not None:
            step = self._best(terms, state, self._in_the_air(phase, motion))
            # a step must leave the capture point less far outside than no step
            if step is not None and step.room >= depth * np.exp(state.omega * step.duration):
                self._left, motion.spin = self._left - 1, None
                return Diversion([StepOut(phase.stance, step), *on.phases], on.onward)
        return self._step_back(t, terms, motion, machine) if isinstance(phase, Restore) else None

    def _return_plan(self, motion: Motion, machine: Machine) -> Diversion | None:
        """Return the phases that lead back to the plan after a step; None: there are none.

        Before a contact opens the robot returns to the stance before; later, to the one in which the foot in the air
        has landed. An interrupted hand motion starts again. A motion that is planned to begin in motion cannot begin
        from rest.
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

    def _step_back(self, t: float, terms: Terms, motion: Motion, machine: Machine) -> Diversion | None:
        """Return the step back of a foot that is not on its planned contact.

        Of several the one whose contact is nearest to the other feet: in a wide stance it is hard to lean.
        """
        stance = machine.phase.stance
        astray = [contact for contact in self.stances[stance].contacts if _relative_error(contact, terms) > 1.0]
        if not astray:
            self._tries = 0
            return None
        feet = [contact.patch for contact in motion.closed]
        wide = [max([0.0, *(_distance(foot, one, terms) for foot in feet if foot != one.patch)]) for one in astray]
        contact = astray[int(np.argmin(wide))]
        patch = contact.patch
        self._tries += 1
        if self._tries > TRIES or patch not in motion.contacts or len(motion.contacts) < 2:
            raise SimulationFailed(
                f"{machine.phase.name} of stance {stance} at t = {t:g} s: the robot has stepped out, and {patch} does "
                "not return to its planned contact",
                "stepped out",
            )
        lean = Lean(stance, contact, self.stances[stance])
        return Diversion([lean, Unload(stance, patch), StepBack(stance, contact)], machine.index)

    def may_step(self, contacts: Sequence[Contact]) -> Iterator[str]:
        """Yield the feet of some contacts that may step."""
        if self._left and len(contacts) > 1 and self._on_feet(contacts):
            limbs = [self.robot.patches[contact.patch].limb for contact in contacts]
            yield from (c.patch for c, limb in zip(contacts, limbs, strict=True) if limbs.count(limb) == 1)

    def _support(self, motion: Motion) -> SupportRegion | None:
        """Return the support region of the closed contacts; None unless all are feet on nearly level supports."""
        self._contacts = motion.closed
        return self._region(self._contacts)

    def _region(self, contacts: Sequence[Contact]) -> SupportRegion | None:
        """Return the cached support region of feet on nearly level supports; None for other contacts."""
        key = tuple(contacts)
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
        """Whether all contacts are feet on nearly level supports."""
        return all(contact.patch in self.robot.feet and _level(contact) for contact in contacts)

    def _state(self, terms: Terms) -> _State:
        x, y, omega = self._capture_point(terms)
        return _State(np.array([x, y]), omega)

    def _capture_point(self, terms: Terms) -> tuple[float, float, float]:
        """Return the capture point (m) and its rate w (1/s); as numbers, because every tick asks."""
        com, velocity, momentum = terms.com.tolist(), terms.com_velocity.tolist(), terms.momentum.tolist()
        omega = frequency(com, self._contacts, self._leg)
        spin = omega / self._weight
        x, y = com[0] + velocity[0] / omega + spin * momentum[4], com[1] + velocity[1] / omega - spin * momentum[3]
        return x, y, omega

    def _stands(self, region: SupportRegion, terms: Terms) -> bool:
        """Whether the capture point is not far outside the support region, and no step is needed."""
        x, y, _ = self._capture_point(terms)
        return not region.empty and all(b - (a0 * x + a1 * y) >= self._least_depth for a0, a1, b in region.edges)

    def _track_capture_point(self, t: float, terms: Terms, motion: Motion, phase: StepOut) -> None:
        """Set the CoM reference to a fall about the pivot that delays it most, and aim the foot at the capture point.

        A stiffer CoM reference would rotate the trunk, and back again at the landing.
        """
        region = self._support(motion)
        if region is None or phase.path is None:
            return
        state = self._state(terms)
        pivot = _nearest(region, state.xi)
        motion.com = Pendulum(terms.com, terms.com_velocity, pivot, state.omega, -FALL * state.omega, t)
        left = phase.path.end_time - t
        if left > (1.0 - AIMED) * phase.path.duration:
            contact = self._place(
                phase.step.contact.patch, _capture_point_after(state, pivot, left), terms, self._contacts
            )
            if contact is not None:
                phase.aim(contact, motion, t)

    def _recover_com(self, t: float, terms: Terms, motion: Motion, region: SupportRegion, state: _State) -> None:
        """Return the capture point to the centre of the support region, as fast as the centre of pressure allows."""
        if isinstance(motion.com, Pendulum) and motion.com.rate > 0.0:
            return
        rest = region.centre
        slopes, room = region.A @ (state.xi - rest), region.inset(INSIDE * self.robot.scale.sole) - region.A @ rest
        ahead = slopes > 0.0
        reach = float(np.min(room[ahead] / slopes[ahead], initial=np.inf))
        rate = float(np.clip(state.omega * (reach - 1.0), 0.05 * BACK, BACK))
        motion.com = Pendulum(terms.com, terms.com_velocity, rest, state.omega, rate, t)

    def _best(self, terms: Terms, state: _State, moving: str | None) -> BalanceStep | None:
        """Return the best step; ``moving`` is the foot in the air, the only candidate then."""
        enough = ENOUGH * self.robot.scale.sole
        feet = self.may_step(self._contacts) if moving is None else [moving]
        steps = [step for patch in feet for step in self._steps(patch, terms, state)]
        return max(steps, key=lambda step: (min(step.room, enough), -step.duration), default=None)

    def _steps(self, patch: str, terms: Terms, state: _State) -> Iterator[BalanceStep]:
        """Yield the feasible steps of one foot, in order of duration."""
        others = [contact for contact in self._contacts if contact.patch != patch]
        pivot, root = _nearest(support_region(others, self.robot.mass), state.xi), np.sqrt(self.robot.scale.leg)
        for duration in root * np.array(DURATIONS):
            xi = _capture_point_after(state, pivot, duration)
            contact = self._place(patch, xi, terms, others)
            if contact is None:
                continue
            if 15 / 8 * _distance(patch, contact, terms) <= FASTEST * root * duration:
                room = support_region([*others, contact], self.robot.mass).depth(xi)
                yield BalanceStep(contact, float(duration), room)

    def _place(self, patch: str, xi: np.ndarray, terms: Terms, others: Sequence[Contact]) -> Contact | None:
        """Return the contact of a foot centred as near to a point (2,) as the legs allow; None: no support there.

        The foot keeps its heading, and stays on its side of the other feet.
        """
        polygon, frame, scale = self.robot.patches[patch].polygon, terms.frame(patch), self.robot.scale.leg
        target = xi - frame.R[:2, :2] @ polygon.mean(axis=0)
        for contact in others:
            side = contact.R[:2, 1] * np.sign(contact.R[:2, 1] @ (frame.p - contact.p)[:2])
            gap = side @ (target - contact.p[:2]) - np.ptp(polygon[:, 1]) - CLOSEST * scale
            target = target - min(gap, 0.0) * side
            step = target - contact.p[:2]
            target = contact.p[:2] + step * min(1.0, LONGEST * scale / float(np.linalg.norm(step)))
        foot = target + polygon @ frame.R[:2, :2].T
        over = [s for s in self._surfaces if len(clip(foot, *half_planes(s.corners[:, :2])))]
        heights = [_height_at(surface, target) for surface in over]
        if not over or abs(max(heights) - frame.p[2]) > UNEVEN * scale:
            return None
        highest = int(np.argmax(heights))  # the foot would hit this one first: lower surfaces below it are out of reach
        surface = over[highest]
        place, heading = surface.R.T @ (np.append(target, heights[highest]) - surface.p), surface.R.T @ frame.R[:, 0]
        x, y, yaw = map(float, (*place[:2], np.arctan2(heading[1], heading[0])))
        spec = {"patch": patch, "surface": surface.name, "x": x, "y": y, "yaw": yaw}
        try:
            return make_contact(self.robot, self.environment, spec)
        except InputError:  # the sole would overhang the edge
            return None


def _height_at(surface: Surface, point: np.ndarray) -> float:
    """Return the height (m) of a surface at a horizontal point (2,)."""
    return float(surface.p[2] - surface.normal[:2] @ (point - surface.p[:2]) / surface.normal[2])


def _level(contact: Contact) -> bool:
    """Whether a contact is a face on a fixed, nearly level support."""
    face = contact.kind == "surface" and len(contact.points) > 2
    return face and contact.carrier is None and bool(contact.normal[2] >= LEVEL)


def _relative_error(contact: Contact, terms: Terms) -> float:
    """Return the larger of the tangential offset and rotation of a foot from its contact, relative to tolerances."""
    frame = terms.frame(contact.patch)
    step = frame.p - contact.p
    along = step - float(step @ contact.normal) * contact.normal
    turn = rotation_vector(frame.R @ contact.R.T)
    return max(float(np.linalg.norm(along)) / ASTRAY, float(np.linalg.norm(turn)) / TURNED)


def _distance(patch: str, contact: Contact, terms: Terms) -> float:
    """Return the distance of a patch from the position of a contact (m)."""
    return float(np.linalg.norm(contact.p - terms.frame(patch).p))


def _nearest(region: SupportRegion, point: np.ndarray) -> np.ndarray:
    """Project a point (2,) onto a region."""
    found = nearest(point, region.A, region.b)
    return region.centre if found is None else found


def _capture_point_after(state: _State, pivot: np.ndarray, duration: float) -> np.ndarray:
    """Return the capture point (2,) after ``duration`` (s) about a pivot (2,)."""
    return np.asarray(pivot + (state.xi - pivot) * np.exp(state.omega * duration))
