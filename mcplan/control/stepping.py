"""Steps that catch a robot that has been pushed, and that no pressure under its feet would stop, as it stands or walks.

A robot of mass m can come to rest on the contacts that it has while its capture point (`motion.pendulum`),

    xi = c + c' / w + w / (m g) (L_y, -L_x)

with the angular momentum L about its centre of mass c, which has to be stopped too, is inside their support region
(Koolen et al. 2012). Once it is well outside, a foot goes to where the capture point will be: while the foot swings,
the pressure stays at the point u of what still bears that is nearest to the capture point, which runs away from it,

    xi(T) = u + (xi_0 - u) e^(w T)

Of all feet and durations T the step is taken after which the capture point has the most room in the new support region;
a foot in the air goes on from how it moves. It follows the capture point as that goes. Then the robot steps back to
where its plan goes on (`control.step_phases`): to the stance before a shift, to the one after a swing.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mcplan.control.machine import Machine
from mcplan.control.motion import Motion
from mcplan.control.phase import Phase
from mcplan.control.phases import TOO_FAR, Approach, Lift, Load, Retract, Settle, Shift, Stand, Swing, Unload
from mcplan.control.step_phases import Lean, Regain, Restore, Step, StepBack, StepOut
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError, SimulationFailed
from mcplan.motion.pendulum import Pendulum, frequency
from mcplan.motion.quintic import rotation_vector
from mcplan.planning.plan import Plan
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.polygon import clip, half_planes, nearest
from mcplan.settings.settings import ControlSettings
from mcplan.statics.support_region import SupportRegion, support_region

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
    settings : ``recovery_steps`` says how many steps there may be.
    """

    def __init__(self, plan: Plan, settings: ControlSettings):
        self.robot, self.environment, self.stances = plan.scenario.robot, plan.scenario.environment, plan.stances
        self._left = settings.recovery_steps if settings.compliant else 0
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

    def _best(self, terms: Terms, state: _State, moving: str | None) -> Step | None:
        """Return the best step, of a foot in the air where one is ``moving``."""
        enough = ENOUGH * self.robot.scale.sole
        feet = self.may_step(self._contacts) if moving is None else [moving]
        steps = [step for patch in feet for step in self._steps(patch, terms, state)]
        return max(steps, key=lambda step: (min(step.room, enough), -step.duration), default=None)

    def _steps(self, patch: str, terms: Terms, state: _State) -> Iterator[Step]:
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
                yield Step(contact, float(duration), room)

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
