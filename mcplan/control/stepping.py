"""Steps that catch a robot that stands: it has been pushed, and no pressure under its feet would stop it.

A robot of mass m can come to rest on the contacts that it has while its capture point (`motion.pendulum`),

    xi = c + c' / w + w / (m g) (L_y, -L_x)

with the angular momentum L about its centre of mass c, which has to be stopped too, is inside their support region
(Koolen et al. 2012). Once it is well outside, a foot goes to where the capture point will be: while the foot swings,
the pressure stays at the point u of what still bears that is nearest to the capture point, which runs away from it,

    xi(T) = u + (xi_0 - u) e^(w T)

Of all feet and durations T the step is taken after which the capture point has the most room in the new support region.
The foot follows the capture point as it goes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mcplan.control.motion import Motion
from mcplan.control.phase import Now, Phase
from mcplan.control.phases import Body, Settle, Stand, all_of, or_timeout
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError, SimulationFailed
from mcplan.model.robot import Robot
from mcplan.model.terms import Terms
from mcplan.motion.pendulum import Pendulum, frequency
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.step_path import StepPath
from mcplan.planning.posture.limbs import joints_of
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.machine import Until
from mcplan.scene.place import make_contact
from mcplan.scene.polygon import clip, half_planes, nearest
from mcplan.scene.settings import ControlSettings
from mcplan.statics.support_region import SupportRegion, support_region

DURATIONS = 0.25, 0.3, 0.35, 0.4, 0.45, 0.5
"""s: how long a step may take, for a robot of the size of HRP-2, as all that follows."""

FASTEST = 2.4
"""m/s: of a foot that steps."""

LONGEST, CLOSEST = 0.53, 0.02
"""m: the most between two feet, and the least gap between them sideways."""

RISE, DESCENT = 0.05, 0.1
"""m, m/s: how high a foot is lifted, and how fast it goes on down where it has met nothing."""

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
"""1/s, m: how quickly the capture point goes back to the middle of the support region at most, with the pressure so far
inside its edge."""

FALL = 0.999
"""k / w of a fall about a point: at one the two exponentials of the pendulum are no solution of their own any more."""

LANDING = 0.05
"""s: within which a foot that has stepped out may bear everything."""

MISSED = 0.5
"""s: a foot that has met nothing so long after its time has missed its support."""


class Step(NamedTuple):
    """A step: the foot's new contact, its duration (s), and the room that it leaves the capture point (m)."""

    contact: Contact
    duration: float
    room: float


@dataclass
class StepOut(Body):
    """Set a foot to where it catches the robot."""

    stance: int
    step: Step
    path: StepPath | None = field(default=None, repr=False)
    verb = "step"

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.step.contact.patch}"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Open the contact and send the foot on its way."""
        contact, scale = self.step.contact, motion.robot.scale.leg
        patch, place = contact.patch, now.pose(contact.patch)
        motion.note(t, f"the capture point has left the feet: {patch} steps out", (patch,))
        motion.open(patch, t, place)
        motion.released.pop(patch, None)
        speed = np.sqrt(scale) * DESCENT
        end = contact.R, contact.p
        self.path = StepPath(place, end, contact.normal, RISE * scale, self.step.duration, speed, t)
        motion.limbs[patch], motion.targets[patch] = self.path, contact
        motion.sought.add(patch)
        return self.step.duration

    def aim(self, contact: Contact, motion: Motion, t: float) -> None:
        """Lead the foot to another place."""
        assert self.path is not None
        self.step = self.step._replace(contact=contact)
        self.path.aim((contact.R, contact.p), t)
        motion.targets[contact.patch] = contact

    def until(self, settings: ControlSettings) -> Until:
        """Wait until it touches."""
        down = Until(elapsed=0.5 * self.step.duration), Until(force=self.step.contact.patch, above=settings.touch_force)
        touch = Until(all=down, altogether=settings.touch_time or None)
        return Until(any=(touch, Until(timeout=MISSED)))

    def leave(self, motion: Motion, t: float, now: Now) -> None:
        """Close the contact where the foot is, and keep the legs as they are; trunk and arms go back to their posture.

        Raises
        ------
        SimulationFailed
            The foot has met nothing.
        """
        contact, (R, p) = self.step.contact, now.pose(self.step.contact.patch)
        force = now.normal_force(contact.patch)
        if force <= 0.0:
            raise SimulationFailed(f"{self.name} at t = {t:g} s: the foot has met nothing", "no contact")
        down = float((p - contact.p) @ contact.normal) * contact.normal
        motion.close(replace(contact, p=p - down), t, LANDING, force, (R, p))
        x = motion.posture.sample(t)
        q = x.q.copy()
        for limb in {motion.robot.patches[patch].limb for patch in motion.contacts}:
            legs = joints_of(motion.robot, limb)
            q[legs] = now.q[legs]
        motion.posture = PostureTrajectory(x.q, q, self.step.duration, x.v, x.vd, t)


@dataclass
class Regain(Body):
    """Come to rest over the feet where they are."""

    stance: int
    verb = "regain"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Leave the centre of mass to what catches it."""
        return 0.0

    def until(self, settings: ControlSettings) -> Until:
        """Wait until it is slow and in place."""
        rest = Until(error="com", below=settings.com_error), Until(speed="com", below=settings.com_rest_speed)
        return or_timeout(all_of(*rest), settings)


class _State(NamedTuple):
    """Capture point xi (2,), m, and ``w``, 1/s."""

    xi: np.ndarray
    omega: float


class Stepping:
    """Watches a robot that stands on feet for its capture point, and steps out where it would fall.

    Parameters
    ----------
    robot, environment, settings : of the run; ``settings.recovery_steps`` says how many steps there may be.
    """

    def __init__(self, robot: Robot, environment: Environment, settings: ControlSettings):
        self.robot, self.environment = robot, environment
        self._left = settings.recovery_steps if settings.compliant else 0
        supports = environment.supports.values()
        self._surfaces = [s for s in supports if isinstance(s, Surface) and s.normal[2] >= LEVEL]
        self._stepped = False
        self._contacts: tuple[Contact, ...] = ()
        self._region: SupportRegion | None = None

    def look(self, t: float, terms: Terms, motion: Motion, phase: Phase) -> list[Phase]:
        """Return what to do at time t (s) instead of a phase: nothing, or a step and what comes after it.

        Raises
        ------
        SimulationFailed
            The plan goes on, and the feet are not where its next motion begins.
        """
        if isinstance(phase, StepOut):
            self._lead(t, terms, motion, phase)
            return []
        if not isinstance(phase, Stand | Settle | Regain):
            if self._stepped:
                raise SimulationFailed(
                    f"{phase.name} of stance {phase.stance} at t = {t:g} s: the robot has stepped out, "
                    "and the motions that are left begin with its feet elsewhere",
                    "stepped out",
                )
            return []
        region = self._support(motion)
        if region is None:
            return []
        state = self._state(terms)
        if isinstance(phase, Regain):
            self._catch(t, terms, motion, region, state)
        if not self._left or (depth := region.depth(state.xi)) >= -LOST * self.robot.scale.sole:
            return []
        step = self._best(terms, state)
        if step is None or step.room < depth * np.exp(state.omega * step.duration):  # as much as if it stayed
            return []
        self._left, self._stepped = self._left - 1, True
        motion.spin = None
        return [StepOut(phase.stance, step), *([] if isinstance(phase, Regain) else [Regain(phase.stance)])]

    def may_step(self, contacts: Sequence[Contact]) -> Iterator[str]:
        """Go through the feet that may leave some contacts."""
        if self._left and len(contacts) > 1 and all(map(_level, contacts)):
            limbs = [self.robot.patches[contact.patch].limb for contact in contacts]
            yield from (c.patch for c, limb in zip(contacts, limbs, strict=True) if limbs.count(limb) == 1)

    def _support(self, motion: Motion) -> SupportRegion | None:
        """Return the support region of the closed contacts; None unless all are faces that lie about level."""
        contacts = motion.closed
        if contacts != self._contacts:
            level = contacts and all(map(_level, contacts))
            self._contacts, self._region = contacts, support_region(contacts, self.robot.mass) if level else None
        return self._region

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

    def _best(self, terms: Terms, state: _State) -> Step | None:
        enough = ENOUGH * self.robot.scale.sole
        steps = [step for patch in self.may_step(self._contacts) for step in self._steps(patch, terms, state)]
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
            if 15 / 8 * np.linalg.norm(contact.p - terms.frame(patch).p) <= FASTEST * root * duration:
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


def _nearest(region: SupportRegion, point: np.ndarray) -> np.ndarray:
    """Return the point (2,) of a region that is nearest to one."""
    found = nearest(point, region.A, region.b)
    return region.centre if found is None else found


def _runs_to(state: _State, pivot: np.ndarray, duration: float) -> np.ndarray:
    """Return where the capture point (2,) is after so many seconds about a pivot (2,)."""
    return np.asarray(pivot + (state.xi - pivot) * np.exp(state.omega * duration))
