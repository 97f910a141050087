"""The phases of a robot that steps out, comes to rest, and steps back to where its plan goes on.

The step that catches it is quick (`control.stepping`). What leads back is not: with the centre of mass over the feet
that stay, one foot after the other goes to the place that the plan has it in, and the body to its posture there.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mcplan.control.motion import Motion
from mcplan.control.phase import Now
from mcplan.control.phases import Body, OfContact, all_of, arrived, or_timeout
from mcplan.errors import SimulationFailed
from mcplan.motion.descent import Descent
from mcplan.motion.limb_path import LimbPath, StepPath
from mcplan.motion.pendulum import frequency
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.quintic import Quintic
from mcplan.motion.time_parameterization import TimedPath
from mcplan.planning.plan import PlannedStance
from mcplan.robot.anatomy import limb_joints, limbs_of
from mcplan.robot.pose import heading_rotation
from mcplan.scene.contact import Contact
from mcplan.settings.settings import ControlSettings
from mcplan.settings.states import Until
from mcplan.statics.support_region import support_region

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
        _land(self.step.contact, self.name, motion, t, now, LANDING)
        x = motion.posture.sample(t)
        q = x.q.copy()
        for limb in {motion.robot.patches[patch].limb for patch in motion.contacts}:
            legs = limb_joints(motion.robot, limb)
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


@dataclass
class Lean(OfContact):
    """Bring the centre of mass over the feet that stay, so low that the leg of the other one is long enough.

    It is to reach from where its foot is to where that will step. Joints go to where the stance of the plan has them.
    """

    stance: int
    contact: Contact
    planned: PlannedStance
    verb = "lean off"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
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
class StepBack(OfContact):
    """Swing a foot to the place that the plan has it in, and feel for the support there."""

    stance: int
    contact: Contact
    verb = "step back"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Send the foot on its way: up, across, and down along the normal."""
        s, patch, up = motion.settings, self.contact.patch, self.contact.normal
        motion.note(t, f"{patch} steps back to where the plan has it", (patch,))
        above = self.contact.R, self.contact.p + s.touch_height * up
        over = LimbPath(now.pose(patch), above, s.clearance * up, s.clearance * up, motion.timing, t)
        path = Descent(over, up, s.descent_speed, s.touch_height + s.touch_depth, s.descent_ramp)
        _send(motion, self.contact, path)
        return path.end_time - t

    def until(self, settings: ControlSettings) -> Until:
        """Wait until it touches where it is to."""
        patch = self.contact.patch
        touch = all_of(Until(force=patch, above=settings.touch_force), Until(over=patch, below=settings.touch_height))
        return or_timeout(touch.model_copy(update={"altogether": settings.touch_time or None}), settings)

    def leave(self, motion: Motion, t: float, now: Now) -> None:
        """Close the contact where the foot is."""
        _land(self.contact, self.name, motion, t, now, motion.settings.load_time)


@dataclass
class Restore(Body):
    """Go back to the posture of a stance of the plan, on its contacts."""

    stance: int
    planned: PlannedStance
    verb = "restore"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
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


def _land(contact: Contact, name: str, motion: Motion, t: float, now: Now, duration: float) -> None:
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
    duration = max(15 / 8 * way / motion.settings.com_speed, gentle, float(LEAST * np.sqrt(scale.leg)))
    motion.com = Quintic(x.value, end, duration, x.velocity, x.acceleration, t)
    motion.posture = PostureTrajectory(posture.q, q, duration, posture.v, posture.vd, t)
    return duration
