"""What the state machine commands and the controller carries out: references in time, and contacts with their load."""

from dataclasses import dataclass

import numpy as np

from mcplan.control.descent import Descent
from mcplan.control.limb_path import LimbPath, Timing
from mcplan.control.posture import PostureTrajectory
from mcplan.control.posture_path import PosturePath
from mcplan.control.quintic import Quintic, minimum_jerk
from mcplan.core.tree import GRAVITY
from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.settings import ControlSettings

Path = LimbPath | PosturePath | Descent
"""The reference of a limb."""


@dataclass(frozen=True)
class Ramp:
    """A smooth change of a force limit (N) from ``start`` at ``start_time`` to ``end`` after ``duration`` (s)."""

    start: float
    end: float
    start_time: float
    duration: float

    def value(self, t: float) -> float:
        """Return the limit at time t."""
        if self.duration <= 0.0:
            return self.end
        return self.start + (self.end - self.start) * minimum_jerk((t - self.start_time) / self.duration)[0]


@dataclass
class LoadedContact:
    """A contact that is closed.

    Attributes
    ----------
    limit : the most that it may carry now (N, normal; for a grasp the magnitude).
    full : what it may carry when fully loaded (N).
    place : R (3,3) and p (3,) where it touched; None for where it was planned.
    """

    contact: Contact
    limit: Ramp
    full: float
    place: tuple[np.ndarray, np.ndarray] | None = None


class Motion:
    """References of CoM, posture and free limbs, and the closed contacts.

    Every new reference continues the one before with its velocity and acceleration, so no target ever steps.

    Attributes
    ----------
    com : CoM reference (m).
    posture : whole posture; its base orientation is the reference of the trunk.
    limbs : by patch, the reference of a patch frame that moves or is held in the air.
    contacts : by patch, in the order of the robot's patches.
    released : by patch, the contact that a patch in ``limbs`` was released from and has not moved away from yet.
    targets : by patch, the contact that a patch in ``limbs`` is on its way to.
    sought : patches that come down along the normal and feel for their support.
    """

    def __init__(self, robot: Robot, settings: ControlSettings, q: np.ndarray):
        self.robot, self.settings = robot, settings
        self.timing = Timing(settings.limb_speed, settings.limb_angular_speed)
        self.com = Quintic(robot.com(q), robot.com(q), 1.0)
        self.posture = PostureTrajectory(q, q, 1.0)
        self.limbs: dict[str, Path] = {}
        self.contacts: dict[str, LoadedContact] = {}
        self.released: dict[str, Contact] = {}
        self.targets: dict[str, Contact] = {}
        self.sought: set[str] = set()
        self.full_load = 2.0 * robot.mass * GRAVITY

    def close(
        self,
        contact: Contact,
        t: float,
        duration: float,
        force: float = 0.0,
        place: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Close a contact, at ``place``; what it may carry rises from ``force`` (N) within ``duration`` s."""
        full = min(self.full_load, self.settings.force_fraction * contact.max_force)
        self.contacts[contact.patch] = LoadedContact(contact, Ramp(min(force, full), full, t, duration), full, place)
        self.contacts = {name: self.contacts[name] for name in self.robot.patches if name in self.contacts}
        for table in (self.limbs, self.released, self.targets):
            table.pop(contact.patch, None)
        self.sought.discard(contact.patch)

    def unload(self, patch: str, t: float, duration: float, force: float) -> None:
        """Let what a contact may carry sink from ``force`` (N), what it carries now, to nothing."""
        self.contacts[patch].limit = Ramp(force, 0.0, t, duration)

    def open(self, patch: str, t: float, place: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        """Open a contact; the patch is held where it is (``place``, or where it was planned)."""
        contact = self.contacts.pop(patch).contact
        if self._alone(patch):
            self.limbs[patch] = self._hold(place or (contact.R, contact.p), t)
            self.released[patch] = contact

    def body_duration(self, t: float, q: np.ndarray) -> float:
        """Return the time that CoM, trunk and joints need to move to q (s).

        A minimum-jerk shift of the CoM by D keeps the centre of pressure within ``m`` of its straight way when
        T >= sqrt(5.8 D z / (g m)), as its largest acceleration is 5.8 D / T²; z is the height of the CoM above the
        lowest contact point.
        """
        s, now = self.settings, self.posture.sample(t).q
        com, target = self.com.sample(t).value, self.robot.com(q)
        ground = min((float((c.contact.p + c.contact.points @ c.contact.R.T)[:, 2].min())
                      for c in self.contacts.values()), default=com[2])  # fmt: skip
        D = float(np.linalg.norm((target - com)[:2]))
        z = max(float(com[2]) - ground, 0.1)
        shift = np.sqrt(5.8 * D * z / (GRAVITY * s.pressure_room))
        rise = 15 / 8 * float(np.linalg.norm(target - com)) / s.com_speed
        turn = 15 / 8 * PostureTrajectory(now, q, 1.0).base.angle / s.trunk_speed
        rates = np.minimum(s.joint_speed_fraction * self.robot.limits.velocity, s.joint_speed)
        joints = 15 / 8 * float(np.max(np.abs(q[7:] - now[7:]) / rates, initial=0.0))
        return max(s.shortest_shift, shift, rise, turn, joints)

    def move_body(self, t: float, q: np.ndarray, duration: float, but: str | None = None) -> float:
        """Move CoM, posture, and every free limb except ``but``, to where they are in the posture q.

        The body waits until limbs that still rest on an old support have been lifted. Returns the time at which
        everything has arrived (s).
        """
        rising = [patch for patch in self.limbs if patch in self.released and patch != but]
        wait = (1 - self.timing.overlap) * self.timing.duration(self.settings.clearance) if rising else 0.0
        x, y = self.com.sample(t), self.posture.sample(t)
        self.com = Quintic(x.value, self.robot.com(q), duration, x.velocity, x.acceleration, t + wait)
        self.posture = PostureTrajectory(y.q, q, duration, y.v, y.vd, t + wait)
        for patch in list(self.limbs):
            if patch != but:
                self.limbs[patch] = self._through_air(t, patch)
        return max((path.end_time for path in self.limbs.values()), default=t + wait + duration)

    def raise_limb(self, t: float, patch: str, height: float) -> float:
        """Lift a free patch straight off what it was released from; return when that is done (s)."""
        (R, p), old = self._place(patch, t), self.released.pop(patch)
        end = R, p + height * old.normal
        self.limbs[patch] = LimbPath((R, p), end, height * old.normal, np.zeros(3), self.timing, t)
        return self.limbs[patch].end_time

    def reach(self, t: float, contact: Contact, start: tuple[np.ndarray, np.ndarray], q: np.ndarray) -> Path:
        """Start the motion of a patch to a new contact, and of the body to the posture q of the new stance.

        From one support to another the patch goes off along the old normal, over the higher of the two places, and
        down along the new normal; from the air it goes as its posture does, and down along the new normal.
        ``start`` is the pose of a patch that has no reference yet.
        """
        patch, clearance, duration = contact.patch, self.settings.clearance, self.body_duration(t, q)
        height = self.settings.touch_height if self.feels(contact) else 0.0
        end = contact.R, contact.p + height * contact.normal
        old = self.released.pop(patch, None)
        tightness = 0.0
        if patch in self.limbs:
            tightness, start = self.limbs[patch].sample(t).tightness, self._place(patch, t)
        limb = self.robot.patches[patch].limb
        self.limbs = {name: path for name, path in self.limbs.items() if self.robot.patches[name].limb != limb}
        step = contact.p - start[1]
        if old is not None:
            lift = old.normal * max(clearance, clearance + float(step @ old.normal))
            approach = contact.normal * (max(clearance, clearance - float(step @ contact.normal)) - height)
            way = LimbPath(start, end, lift, approach, self.timing, t, duration, (tightness, 1.0))
            self.limbs[patch] = path = self._led(way, contact)
            self.move_body(t, q, way.duration, but=patch)
            return path
        # a patch that has come to its place with another one of its limb is not lifted first
        clearance = min(self.settings.reach_clearance, float(np.linalg.norm(step)))
        duration = max(duration, self.timing.duration(float(np.linalg.norm(step)) + clearance))
        self.move_body(t, q, duration)
        air = PosturePath(
            self.robot, patch, self.posture, start[1], end, np.zeros(3),
            contact.normal * max(clearance - height, 0.0), self.timing, t, (tightness, 1.0),
        )  # fmt: skip
        self.limbs[patch] = self._led(air, contact)
        return self.limbs[patch]

    def feels(self, contact: Contact) -> bool:
        """Say whether a patch comes down until it feels its support; a grip closes where it is."""
        return self.settings.touch_force > 0.0 and contact.kind != "grasp"

    def accompany(self, t: float, contact: Contact, start: tuple[np.ndarray, np.ndarray]) -> None:
        """Lead another patch of a limb that reaches out to its own place, where it is at the posture that is begun.

        A knee and the toes behind it come down together: left to itself, the foot would be in the way of the knee.
        """
        clearance = self.settings.reach_clearance
        height = self.settings.touch_height if self.feels(contact) else 0.0
        self.targets[contact.patch] = contact
        self.limbs[contact.patch] = PosturePath(
            self.robot, contact.patch, self.posture, start[1], (contact.R, contact.p + height * contact.normal),
            np.zeros(3), contact.normal * max(clearance - height, 0.0), self.timing, t, (0.0, 1.0),
        )  # fmt: skip

    def _led(self, path: LimbPath | PosturePath, contact: Contact) -> Path:
        """Return the path with the search for the support at its end, where touch is felt."""
        self.targets[contact.patch] = contact
        s = self.settings
        if not self.feels(contact):
            return path
        return Descent(path, contact.normal, s.descent_speed, s.touch_height + s.touch_depth)

    def _through_air(self, t: float, patch: str) -> Path:
        """Return the path of a free patch with the body; off its old support first, along the normal."""
        sample, old = self.limbs[patch].sample(t), self.released.pop(patch, None)
        lift = np.zeros(3)
        if old is not None:
            # Up: no higher than where it goes. Sideways: high enough not to graze the support. Below: over its edge.
            end = self.robot.frame_pose(self.posture.end, patch)[:3, 3]
            rise, clearance = float((end - sample.p) @ old.normal), self.settings.clearance
            height = clearance if rise <= 0.0 else np.clip(rise, 0.3 * clearance, clearance)
            lift = old.normal * (height if rise > -clearance else self.settings.reach_clearance)
        return PosturePath(
            self.robot, patch, self.posture, sample.p, None, lift, np.zeros(3), self.timing, t, (sample.tightness, 0.0)
        )

    def _place(self, patch: str, t: float) -> tuple[np.ndarray, np.ndarray]:
        sample = self.limbs[patch].sample(t)
        return sample.R, sample.p

    def _hold(self, pose: tuple[np.ndarray, np.ndarray], t: float) -> LimbPath:
        return LimbPath(pose, pose, np.zeros(3), np.zeros(3), self.timing, t)

    def _alone(self, patch: str) -> bool:
        """Say whether no other patch of the same limb is in contact."""
        limb = self.robot.patches[patch].limb
        return all(self.robot.patches[name].limb != limb for name in self.contacts)
