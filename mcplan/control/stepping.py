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
    MISS_DISTANCE_M,
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
    com_arrived,
    with_timeout,
)
from mcplan.core.motion.balance import capture_point_depth
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError, SimulationFailed
from mcplan.motion.descent import Descent
from mcplan.motion.limb_path import LimbPath, StepPath
from mcplan.motion.pendulum import Pendulum, frequency, lowest
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

SWING_HEIGHT_M, DESCENT_SPEED_M_S = 0.05, 0.1
"""Height of the swing, and speed of the descent below the planned touchdown. Like all lengths, times and speeds below
they are those of HRP-2 and scale with the robot, unless stated otherwise."""

LANDING_TIME_S = 0.05
"""Time after touchdown within which a foot that stepped out reaches its full force limit (not scaled)."""

MISS_TIME_S = 0.5
"""Time after the planned touchdown after which a foot has missed its support (not scaled)."""

MAX_PRESSURE_OFFSET_M = 0.02
"""Largest distance of the centre of pressure from the projected CoM while the robot returns to its plan."""

MIN_STEP_BACK_S = 0.8
"""Shortest duration of a body motion during a step back."""

MAX_LEG_STRETCH = 0.97
"""Largest distance from hip to foot while the CoM is over the other foot, as a fraction of the leg length. If a foot is
farther away, the body is lowered."""


class BalanceStep(NamedTuple):
    """A step: new contact of the foot, duration (s), and depth of the capture point in the new support region (m)."""

    contact: Contact
    duration: float
    depth: float


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

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Open the contact unless the foot is in the air, and start its swing.

        Feet that were being unloaded bear again; hands that were moving to a support stop.
        """
        contact, scale = self.step.contact, motion.robot.scale.leg
        patch, place, velocity = contact.patch, measured.pose(contact.patch), None
        motion.note(t, f"the capture point has left the support region: {patch} steps out", (patch,))
        if patch in motion.contacts:
            motion.open(patch, t, place)
        else:
            x = motion.limbs[patch].sample(t)
            place, velocity = (x.R, x.p), x.velocity[:3]
        motion.reload(t, LANDING_TIME_S)
        for name in motion.targets.keys() - {patch}:
            motion.limbs.pop(name, None)
            del motion.targets[name]
            motion.descending_patches.discard(name)
            motion.waiting_patches.discard(name)
        speed = np.sqrt(scale) * DESCENT_SPEED_M_S
        end = contact.R, contact.p
        self.path = StepPath(place, end, contact.normal, SWING_HEIGHT_M * scale, self.step.duration, speed, t, velocity)
        _start_path(motion, contact, self.path)
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
        return Until(any=(touch, Until(timeout=MISS_TIME_S)))

    def leave(self, motion: Motion, t: float, measured: MeasuredState) -> None:
        """Close the contact at the measured pose of the foot; legs keep their posture, trunk and arms return to theirs.

        Raises
        ------
        SimulationFailed
            The foot has touched nothing.
        """
        _land(self.step.contact, self.name, motion, t, measured, LANDING_TIME_S)
        x = motion.posture.sample(t)
        q = x.q.copy()
        for limb in {motion.robot.patches[patch].limb for patch in motion.contacts}:
            legs = limb_joints(motion.robot, limb)
            q[legs] = measured.q[legs]
        motion.posture = PostureSpline.to_rest(x.q, q, self.step.duration, x.v, x.vd, t)


@dataclass
class Regain(Phase):
    """Come to rest over the feet, wherever they stand."""

    stance: int
    verb = "regain"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Change nothing: `Stepping` sets the CoM reference."""
        return 0.0

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the CoM is slow and in place."""
        at_rest = Until(error="com", below=settings.timing.com_tolerance), Until(speed="com", below=COM_REST_SPEED_M_S)
        return with_timeout(all_of(*at_rest), settings)


@dataclass
class Lean(ContactPhase):
    """Move the CoM over the other feet, and joints to the planned posture, before a foot steps back.

    The body is lowered until the leg reaches both the present and the planned place of its foot.
    """

    stance: int
    contact: Contact
    planned: PlannedStance
    verb = "lean off"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the references of CoM and posture."""
        robot, x, patch = motion.robot, motion.com.sample(t), self.contact.patch
        region = support_region([contact for contact in motion.closed if contact.patch != patch], robot.mass)
        (leg,) = limbs_of(robot, measured.q, (patch,)).values()
        hip = measured.q[:3] + heading_rotation(measured.q) @ leg.root
        hip[:2] += region.centre - x.value[:2]
        hip_from_foot = hip - np.array([measured.pose(patch)[1], self.contact.p])
        squared_height = (MAX_LEG_STRETCH * leg.length) ** 2 - np.sum(hip_from_foot[:, :2] ** 2, axis=1)
        lowering = float(np.max(hip_from_foot[:, 2] - np.sqrt(np.maximum(squared_height, 0.0)), initial=0.0))
        return _move_body_to(motion, t, np.append(region.centre, x.value[2] - lowering), self.planned.q)

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the CoM has arrived and is slow."""
        return with_timeout(com_arrived(settings), settings)


@dataclass
class StepBack(ContactPhase):
    """Swing a foot to its planned contact, and lower it until it touches."""

    stance: int
    contact: Contact
    verb = "step back"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the swing: up, across, and down along the normal."""
        s, patch, normal = motion.settings, self.contact.patch, self.contact.normal
        motion.note(t, f"{patch} steps back to its planned contact", (patch,))
        above = self.contact.R, self.contact.p + s.contact.touch_height * normal
        lift, depth = s.avoidance.swing_clearance * normal, s.contact.touch_height + s.contact.touch_depth
        swing = LimbPath(measured.pose(patch), above, lift, lift, motion.timing, t)
        path = Descent(swing, normal, s.timing.descent_speed, depth, descent_ramp(s))
        _start_path(motion, self.contact, path)
        return path.end_time - t

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the touchdown near the height of the planned contact."""
        patch, s = self.contact.patch, settings.contact
        touch = all_of(Until(force=patch, above=s.touch_force), Until(over=patch, below=s.touch_height))
        return with_timeout(touch.model_copy(update={"altogether": TOUCH_TIME_S}), settings)

    def leave(self, motion: Motion, t: float, measured: MeasuredState) -> None:
        """Close the contact at the measured pose of the foot."""
        _land(self.contact, self.name, motion, t, measured, motion.settings.timing.load_time)


@dataclass
class Restore(Phase):
    """Return to the planned posture of a stance, on its contacts."""

    stance: int
    planned: PlannedStance
    verb = "restore"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the references."""
        return _move_body_to(motion, t, motion.robot.com(self.planned.q), self.planned.q)

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the CoM has arrived and is slow."""
        return with_timeout(com_arrived(settings), settings)


def _start_path(motion: Motion, contact: Contact, path: StepPath | Descent) -> None:
    """Start the path of a foot to a contact, with touch detection at its end."""
    motion.limbs[contact.patch], motion.targets[contact.patch] = path, contact
    motion.released.pop(contact.patch, None)
    motion.waiting_patches.discard(contact.patch)
    motion.descending_patches.add(contact.patch)


def _land(contact: Contact, name: str, motion: Motion, t: float, measured: MeasuredState, duration: float) -> None:
    """Close a contact at the measured pose of the foot; its force limit rises within ``duration`` (s)."""
    (R, p), force = measured.pose(contact.patch), measured.normal_force(contact.patch)
    if force <= 0.0:
        raise SimulationFailed(f"{name} at t = {t:g} s: the foot touches no support", "no contact")
    normal_offset = float((p - contact.p) @ contact.normal) * contact.normal
    motion.close(replace(contact, p=p - normal_offset), t, duration, force, (R, p))


def _move_body_to(motion: Motion, t: float, end: np.ndarray, q: np.ndarray) -> float:
    """Move CoM and posture to a point (3,) and q (nq,) quasi-statically; return the duration (s).

    The centre of pressure stays close to the projected CoM: a minimum-jerk motion over d within T accelerates by up to
    5.77 d / T², which displaces the pressure by 1 / w² times that.
    """
    x, posture = motion.com.sample(t), motion.posture.sample(t)
    distance, scale = float(np.linalg.norm(end - x.value)), motion.robot.scale
    omega = frequency(x.value, motion.closed, scale.leg)
    quasi_static = np.sqrt(5.77 * distance / (MAX_PRESSURE_OFFSET_M * scale.sole)) / omega
    duration = max(
        15 / 8 * distance / motion.settings.timing.com_speed, quasi_static, float(MIN_STEP_BACK_S * np.sqrt(scale.leg))
    )
    motion.com = Spline.to_rest(x.value, end, duration, x.velocity, x.acceleration, t)
    motion.posture = PostureSpline.to_rest(posture.q, q, duration, posture.v, posture.vd, t)
    return duration


RECOVERY_PHASES = StepOut, StepBack, Regain, Restore
"""Phases of a recovery; in all others the robot follows its plan."""

STEP_DURATIONS_S = 0.25, 0.3, 0.35, 0.4, 0.45, 0.5
"""Candidate durations of a step."""

MAX_FOOT_SPEED_M_S = 2.4
"""Largest speed of a stepping foot."""

MAX_STEP_M, MIN_LATERAL_GAP_M = 0.53, 0.02
"""Largest distance between two feet, and smallest lateral gap between them."""

MAX_STEP_HEIGHT_M = 0.1
"""Largest height difference of a step."""

SUFFICIENT_DEPTH_M = 0.04
"""Sufficient depth of the capture point in the support region; of all steps that reach it the quickest is taken."""

MAX_OUTSIDE_M = 0.04
"""Without a step, by rotating the trunk, the robot recovers from a capture point up to this far outside the support
region. Of 80 hard pushes from which HRP-2 recovered without a step, none drove it out by more than 0.033 m; all others
drove it beyond 0.18 m."""

MIN_NORMAL_Z = 0.9
"""Smallest vertical component of the normal of a support to step on, or to stand on during a step."""

AIM_FRACTION = 0.7
"""Fraction of a step's duration during which its target follows the capture point."""

MAX_RETURN_RATE, PRESSURE_MARGIN_M = 2.0, 0.01
"""Largest rate with which the capture point returns to the centre of the support region (1/s, not scaled), and least
distance of the centre of pressure from its edge during this return."""

MAX_FOOT_OFFSET_M, MAX_FOOT_ROTATION_RAD = MISS_DISTANCE_M, 0.05
"""A foot with a larger offset or rotation from its planned contact steps back (not scaled)."""

MAX_TRIES = 4
"""Number of consecutive steps back after which the return to the plan fails."""

FALL_RATE = 0.999
"""Rate of a fall about a pivot relative to w. At 1 both exponential solutions of the pendulum would coincide."""


class _State(NamedTuple):
    """Capture point ``xi`` (2,) (m), and rate ``omega`` of the pendulum (1/s)."""

    xi: np.ndarray
    omega: float


class Diversion(NamedTuple):
    """Phases inserted in place of the present state, and the index of the state to continue with."""

    phases: list[Phase]
    successor: int


class Stepping:
    """Push recovery: monitors the capture point of a robot that stands on its feet, and steps before it falls.

    Parameters
    ----------
    plan : the plan of the run.
    settings : controller settings; ``recovery.max_steps`` is the number of steps that may be taken.
    """

    def __init__(self, plan: Plan, settings: ControlSettings):
        self.robot, self.environment, self.stances = plan.scenario.robot, plan.scenario.environment, plan.stances
        self._remaining_steps = settings.recovery.max_steps if settings.compliant else 0
        self._surfaces = [s for s in self.environment.surfaces if s.normal[2] >= MIN_NORMAL_Z]
        self._tries = 0
        self._contacts: tuple[Contact, ...] = ()
        self._present_region: SupportRegion | None = None
        self._ground = 0.0
        self._leg, self._weight = self.robot.scale.leg, self.robot.mass * GRAVITY
        self._least_depth = -MAX_OUTSIDE_M * self.robot.scale.sole
        self._regions: dict[frozenset[Contact], SupportRegion | None] = {}
        # the support regions of all planned stances are computed before the first tick
        for contacts in (*(stance.contacts for stance in plan.stances), *(part.contacts for part in plan.segments)):
            if (region := self._region(contacts)) is not None:
                assert region.edges.ndim == 2  # computed and kept, too

    def rehearse(self, terms: Terms, motion: Motion) -> None:
        """Look at the balance once without effect, to load the compiled kernel before the run."""
        if (region := self._support(motion)) is not None:
            self._is_balanced(region, terms)

    def balance_arguments(self, phase: Phase, motion: Motion) -> tuple[float, tuple] | None:
        """Return the least depth and the arguments of ``capture_point_depth`` with which `update` has nothing to do.

        None: it has to be called in every tick.
        """
        region = self._support(motion) if self._remaining_steps else None
        if isinstance(phase, RECOVERY_PHASES) or (region is not None and region.empty):
            return None
        edges = np.zeros((0, 3)) if region is None else region.edges
        return self._least_depth, (self._ground, self._leg, self._weight, edges)

    def update(self, t: float, terms: Terms, motion: Motion, machine: Machine) -> Diversion | None:
        """Return the recovery step, or step back, to insert at time t (s), or None.

        Raises
        ------
        SimulationFailed
            The robot has stepped out, and its feet do not return to their planned contacts.
        """
        phase = machine.phase
        is_recovering = isinstance(phase, RECOVERY_PHASES)
        if not (is_recovering or self._remaining_steps) or (region := self._support(motion)) is None:
            return None
        if not is_recovering and self._is_balanced(region, terms):
            return None
        if isinstance(phase, StepOut):
            self._track_capture_point(t, terms, motion, phase)
        if isinstance(phase, StepOut | StepBack):
            return None
        state = self._state(terms)
        if isinstance(phase, Regain):
            self._recover_com(t, terms, motion, region, state)
        is_outside = (depth := region.depth(state.xi)) < self._least_depth
        if is_outside and self._remaining_steps and (return_plan := self._return_plan(motion, machine)) is not None:
            step = self._best_step(terms, state, self._swing_foot(phase, motion))
            # a step must leave the capture point less far outside than no step
            if step is not None and step.depth >= depth * np.exp(state.omega * step.duration):
                self._remaining_steps, motion.angular_momentum = self._remaining_steps - 1, None
                return Diversion([StepOut(phase.stance, step), *return_plan.phases], return_plan.successor)
        return self._step_back(t, terms, motion, machine) if isinstance(phase, Restore) else None

    def _return_plan(self, motion: Motion, machine: Machine) -> Diversion | None:
        """Return the phases that lead back to the plan after a step; None: there are none.

        Before a contact opens, the robot returns to the previous stance; later, to the stance in which the foot in the
        air has landed. An interrupted hand motion starts again. A motion that is planned to start without rest cannot
        start from rest.
        """
        states, index = machine.states, machine.index
        phase, later_phases = states[index].phase, [state.phase for state in states[index + 1 :]]
        if isinstance(phase, Regain):
            return Diversion([], index)
        if isinstance(phase, Restore | Lean) or (isinstance(phase, Unload) and isinstance(later_phases[0], StepBack)):
            restore_index = next(k for k, later in enumerate([phase, *later_phases]) if isinstance(later, Restore))
            return Diversion([Regain(phase.stance)], index + restore_index)
        if isinstance(phase, Stand | Settle):
            return self._restore_at(phase.stance, index)
        if motion.passing:
            return None
        is_hand_motion = isinstance(phase, Lift | Swing | Approach) and phase.contact.patch not in self.robot.feet
        if is_hand_motion or isinstance(phase, Shift | Unload):
            while index and not isinstance(states[index].phase, Lift if is_hand_motion else Shift):
                index -= 1
            return self._restore_at(phase.stance - 1, index)
        if isinstance(phase, Retract | Lift | Swing | Approach | Load):
            load_phases = [(k, later) for k, later in enumerate([phase, *later_phases]) if isinstance(later, Load)]
            if not load_phases:
                return None
            k, load = load_phases[0]
            if isinstance(phase, Retract) and load.patch not in self.robot.feet:
                return self._restore_at(phase.stance, index + 1)
            return self._restore_at(load.stance, index + k + 1)
        return None

    def _restore_at(self, stance: int, successor: int) -> Diversion:
        """Return the phases that restore a stance, and the state to continue with."""
        return Diversion([Regain(stance), Restore(stance, self.stances[stance])], successor)

    def _step_back(self, t: float, terms: Terms, motion: Motion, machine: Machine) -> Diversion | None:
        """Return the step back of a foot that is not on its planned contact.

        The foot whose contact is nearest to the other feet steps first: in a wide stance leaning is hard.
        """
        stance = machine.phase.stance
        misplaced = [contact for contact in self.stances[stance].contacts if _relative_error(contact, terms) > 1.0]
        if not misplaced:
            self._tries = 0
            return None
        feet = [contact.patch for contact in motion.closed]
        distances = [
            max([0.0, *(_distance(foot, one, terms) for foot in feet if foot != one.patch)]) for one in misplaced
        ]
        contact = misplaced[int(np.argmin(distances))]
        patch = contact.patch
        self._tries += 1
        if self._tries > MAX_TRIES or patch not in motion.contacts or len(motion.contacts) < 2:
            raise SimulationFailed(
                f"{machine.phase.name} of stance {stance} at t = {t:g} s: the robot has stepped out, and {patch} does "
                "not return to its planned contact",
                "stepped out",
            )
        lean = Lean(stance, contact, self.stances[stance])
        return Diversion([lean, Unload(stance, patch), StepBack(stance, contact)], machine.index)

    def steppable_feet(self, contacts: Sequence[Contact]) -> Iterator[str]:
        """Yield the feet of some contacts that may step."""
        if self._remaining_steps and len(contacts) > 1 and self._are_level_feet(contacts):
            limbs = [self.robot.patches[contact.patch].limb for contact in contacts]
            yield from (c.patch for c, limb in zip(contacts, limbs, strict=True) if limbs.count(limb) == 1)

    def _support(self, motion: Motion) -> SupportRegion | None:
        """Return the support region of the closed contacts; None unless all are feet on nearly level supports."""
        if motion.closed is not self._contacts:
            self._contacts = motion.closed
            self._present_region, self._ground = self._region(self._contacts), lowest(self._contacts)
        return self._present_region

    def _region(self, contacts: Sequence[Contact]) -> SupportRegion | None:
        """Return the cached support region of feet on nearly level supports; None for other contacts."""
        key = frozenset(contacts)  # plan and run list them in different orders
        if key not in self._regions:
            is_supported = contacts and self._are_level_feet(contacts)
            self._regions[key] = support_region(contacts, self.robot.mass) if is_supported else None
        return self._regions[key]

    def _swing_foot(self, phase: Phase, motion: Motion) -> str | None:
        """Return the foot in the air that a phase swings, or None."""
        if isinstance(phase, Lift | Swing | Approach) and self._are_level_feet([phase.contact]):
            patch = phase.contact.patch
            return patch if patch in motion.limbs and not motion.waiting_patches else None
        return None

    def _are_level_feet(self, contacts: Sequence[Contact]) -> bool:
        """Whether all contacts are feet on nearly level supports."""
        return all(contact.patch in self.robot.feet and _is_level_face(contact) for contact in contacts)

    def _state(self, terms: Terms) -> _State:
        omega = frequency(terms.com, self._contacts, self._leg)
        factor = omega / self._weight
        turning = np.array([terms.momentum[4], -terms.momentum[3]])
        return _State(terms.com[:2] + terms.com_velocity[:2] / omega + factor * turning, omega)

    def _is_balanced(self, region: SupportRegion, terms: Terms) -> bool:
        """Whether the capture point is inside the support region, or so near that no step is needed."""
        depth = capture_point_depth(terms.centroidal, self._ground, self._leg, self._weight, region.edges)
        return not region.empty and depth >= self._least_depth

    def _track_capture_point(self, t: float, terms: Terms, motion: Motion, phase: StepOut) -> None:
        """Set the CoM reference to a fall about the pivot that delays it most, and aim the foot at the capture point.

        A stiffer CoM reference would rotate the trunk, and back again at the landing.
        """
        region = self._support(motion)
        if region is None or phase.path is None:
            return
        state = self._state(terms)
        pivot = _nearest(region, state.xi)
        motion.com = Pendulum(terms.com, terms.com_velocity, pivot, state.omega, -FALL_RATE * state.omega, t)
        remaining = phase.path.end_time - t
        if remaining > (1.0 - AIM_FRACTION) * phase.path.duration:
            contact = self._foot_contact(
                phase.step.contact.patch, _capture_point_after(state, pivot, remaining), terms, self._contacts
            )
            if contact is not None:
                phase.aim(contact, motion, t)

    def _recover_com(self, t: float, terms: Terms, motion: Motion, region: SupportRegion, state: _State) -> None:
        """Return the capture point to the centre of the support region, as fast as the centre of pressure allows."""
        if isinstance(motion.com, Pendulum) and motion.com.rate > 0.0:
            return
        rest = region.centre
        slopes, distances = (
            region.A @ (state.xi - rest),
            region.inset(PRESSURE_MARGIN_M * self.robot.scale.sole) - region.A @ rest,
        )
        is_ahead = slopes > 0.0
        reach = float(np.min(distances[is_ahead] / slopes[is_ahead], initial=np.inf))
        rate = float(np.clip(state.omega * (reach - 1.0), 0.05 * MAX_RETURN_RATE, MAX_RETURN_RATE))
        motion.com = Pendulum(terms.com, terms.com_velocity, rest, state.omega, rate, t)

    def _best_step(self, terms: Terms, state: _State, swing_foot: str | None) -> BalanceStep | None:
        """Return the best step; ``moving`` is the foot in the air, the only candidate then."""
        sufficient = SUFFICIENT_DEPTH_M * self.robot.scale.sole
        feet = self.steppable_feet(self._contacts) if swing_foot is None else [swing_foot]
        steps = [step for patch in feet for step in self._steps(patch, terms, state)]
        return max(steps, key=lambda step: (min(step.depth, sufficient), -step.duration), default=None)

    def _steps(self, patch: str, terms: Terms, state: _State) -> Iterator[BalanceStep]:
        """Yield the feasible steps of one foot, in order of duration."""
        others = [contact for contact in self._contacts if contact.patch != patch]
        pivot, root = _nearest(support_region(others, self.robot.mass), state.xi), np.sqrt(self.robot.scale.leg)
        for duration in root * np.array(STEP_DURATIONS_S):
            xi = _capture_point_after(state, pivot, duration)
            contact = self._foot_contact(patch, xi, terms, others)
            if contact is None:
                continue
            if 15 / 8 * _distance(patch, contact, terms) <= MAX_FOOT_SPEED_M_S * root * duration:
                depth = support_region([*others, contact], self.robot.mass).depth(xi)
                yield BalanceStep(contact, float(duration), depth)

    def _foot_contact(self, patch: str, xi: np.ndarray, terms: Terms, others: Sequence[Contact]) -> Contact | None:
        """Return the contact of a foot centred as near to a point (2,) as the legs allow; None: no support there.

        The foot keeps its heading, and stays on its side of the other feet.
        """
        polygon, frame, scale = self.robot.patches[patch].polygon, terms.frame(patch), self.robot.scale.leg
        target = xi - frame.R[:2, :2] @ polygon.mean(axis=0)
        for contact in others:
            side = contact.R[:2, 1] * np.sign(contact.R[:2, 1] @ (frame.p - contact.p)[:2])
            gap = side @ (target - contact.p[:2]) - np.ptp(polygon[:, 1]) - MIN_LATERAL_GAP_M * scale
            target = target - min(gap, 0.0) * side
            step = target - contact.p[:2]
            target = contact.p[:2] + step * min(1.0, MAX_STEP_M * scale / float(np.linalg.norm(step)))
        foot = target + polygon @ frame.R[:2, :2].T
        surfaces = [s for s in self._surfaces if len(clip(foot, *half_planes(s.corners[:, :2])))]
        heights = [_height_at(surface, target) for surface in surfaces]
        if not surfaces or abs(max(heights) - frame.p[2]) > MAX_STEP_HEIGHT_M * scale:
            return None
        highest = int(np.argmax(heights))  # the foot would hit this one first: lower surfaces below it are out of reach
        surface = surfaces[highest]
        local, heading = surface.R.T @ (np.append(target, heights[highest]) - surface.p), surface.R.T @ frame.R[:, 0]
        x, y, yaw = map(float, (*local[:2], np.arctan2(heading[1], heading[0])))
        spec = {"patch": patch, "surface": surface.name, "x": x, "y": y, "yaw": yaw}
        try:
            return make_contact(self.robot, self.environment, spec)
        except InputError:  # the sole would overhang the edge
            return None


def _height_at(surface: Surface, point: np.ndarray) -> float:
    """Return the height (m) of a surface at a horizontal point (2,)."""
    return float(surface.p[2] - surface.normal[:2] @ (point - surface.p[:2]) / surface.normal[2])


def _is_level_face(contact: Contact) -> bool:
    """Whether a contact is a face on a fixed, nearly level support."""
    is_face = contact.kind == "surface" and len(contact.points) > 2
    return is_face and contact.carrier is None and bool(contact.normal[2] >= MIN_NORMAL_Z)


def _relative_error(contact: Contact, terms: Terms) -> float:
    """Return the larger of the tangential offset and rotation of a foot from its contact, relative to tolerances."""
    frame = terms.frame(contact.patch)
    offset = frame.p - contact.p
    tangential = offset - float(offset @ contact.normal) * contact.normal
    rotation = rotation_vector(frame.R @ contact.R.T)
    return max(
        float(np.linalg.norm(tangential)) / MAX_FOOT_OFFSET_M, float(np.linalg.norm(rotation)) / MAX_FOOT_ROTATION_RAD
    )


def _distance(patch: str, contact: Contact, terms: Terms) -> float:
    """Return the distance of a patch from the position of a contact (m)."""
    return float(np.linalg.norm(contact.p - terms.frame(patch).p))


def _nearest(region: SupportRegion, point: np.ndarray) -> np.ndarray:
    """Project a point (2,) onto a region."""
    projection = nearest(point, region.A, region.b)
    return region.centre if projection is None else projection


def _capture_point_after(state: _State, pivot: np.ndarray, duration: float) -> np.ndarray:
    """Return the capture point (2,) after ``duration`` (s) about a pivot (2,)."""
    return np.asarray(pivot + (state.xi - pivot) * np.exp(state.omega * duration))
