"""What the state machine commands and the controller carries out: references in time, and contacts with their load."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from mcplan.control.allowed import allowed_pose
from mcplan.control.loaded_contact import LoadedContact, Ramp
from mcplan.control.notice import Notice
from mcplan.control.way import FAST, GOOD, Start, Way, WayFinder, height_above, joint_rates
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.model.pose import rotation_from_quat
from mcplan.model.robot import Robot
from mcplan.motion.descent import Descent
from mcplan.motion.limb_path import LimbPath, Timing
from mcplan.motion.patch_turn import PatchTurn
from mcplan.motion.path import Pose
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.posture_path import PosturePath
from mcplan.motion.quintic import Quintic
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.planning.posture.limbs import joints_of
from mcplan.planning.posture.transit import TransitFinder
from mcplan.planning.posture.ways import BARRED, HIGHER
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.settings import ControlSettings

STRAYED = 0.1
"""rad or m: a limb whose joints are farther from their references is held up by something."""

WAITING = 1e-3
"""m: so far above its place a patch waits until its turn comes."""

Path = LimbPath | PosturePath | Descent
"""The reference of a limb."""

AnyPosture = PostureTrajectory | PostureSpline
PathMaker = Callable[[float, str, AnyPosture, bool], PosturePath]
"""Makes the path of a patch from a time on (s) that goes as a posture reference takes it; whether it leads the body, or
the body knows its way already."""


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
    waiting : patches among the targets that do not touch before another patch of their limb does.
    slides : by name, the reference of an object that slides on its support.
    sought : patches that come down along the normal and feel for their support.
    notices : what happened that the plan did not foresee.
    """

    def __init__(self, robot: Robot, environment: Environment, settings: ControlSettings, q: np.ndarray):
        self.robot, self.settings = robot, settings
        self.timing = Timing(settings.limb_speed, settings.limb_angular_speed)
        self.com: Quintic | Spline = Quintic(robot.com(q), robot.com(q), 1.0)
        self.posture: AnyPosture = PostureTrajectory(q, q, 1.0)
        self._ways = WayFinder(robot, settings, TransitFinder(robot, environment))
        self._joints = {patch.limb: joints_of(robot, patch.limb) for patch in robot.patches.values()}
        self.limbs: dict[str, Path] = {}
        self.contacts: dict[str, LoadedContact] = {}
        self.released: dict[str, Contact] = {}
        self.targets: dict[str, Contact] = {}
        self.slides: dict[str, LimbPath] = {}
        self.waiting: set[str] = set()
        self.sought: set[str] = set()
        self.notices: list[Notice] = []
        self.full_load = 2.0 * robot.mass * GRAVITY

    def note(self, t: float, text: str, bodies: tuple[str, ...] = (), amount: float | None = None) -> None:
        """Keep what happened at time t (s), as a `Notice` has it."""
        self.notices.append(Notice(t, text, bodies, amount))

    def close(self, contact: Contact, t: float, duration: float, force: float = 0.0, place: Pose | None = None) -> None:
        """Close a contact, at ``place``; what it may carry rises from ``force`` (N) within ``duration`` s."""
        full = min(self.full_load, self.settings.force_fraction * contact.max_force)
        self.contacts[contact.patch] = LoadedContact(contact, Ramp(min(force, full), full, t, duration), full, place)
        self.contacts = {name: self.contacts[name] for name in self.robot.patches if name in self.contacts}
        for table in (self.limbs, self.released, self.targets):
            table.pop(contact.patch, None)
        self.sought.discard(contact.patch)
        self.waiting.discard(contact.patch)

    def unload(self, patch: str, t: float, duration: float, force: float) -> None:
        """Let what a contact may carry sink from ``force`` (N), what it carries now, to nothing."""
        self.contacts[patch].limit = Ramp(force, 0.0, t, duration)

    def open(self, patch: str, t: float, place: Pose | None = None) -> None:
        """Open a contact; the patch is held where it is (``place``, or where it was planned)."""
        contact = self.contacts.pop(patch).contact
        if self._alone(patch):
            self.limbs[patch] = self._hold(place or (contact.R, contact.p), t)
            self.released[patch] = contact

    def catch_up(self, t: float, q: np.ndarray) -> None:
        """Let the next way begin where limbs in the air are that something holds up, at the configuration q (7+n,).

        A reference that went on without its limb may be beyond what stopped that: a way from there would lead through
        it.
        """
        start, v, vd = (x.copy() for x in self.posture.sample(t))
        guided = {self.robot.patches[patch].limb for patch in (*self.contacts, *self.limbs)}
        for limb, joints in self._joints.items():
            if limb not in guided and np.max(np.abs(q[joints] - start[joints])) > STRAYED:
                start[joints], v[joints - 1], vd[joints - 1] = q[joints], 0.0, 0.0
                self.posture = PostureTrajectory(start, start, 1.0, v, vd, t)

    def body_duration(self, t: float, q: np.ndarray) -> float:
        """Return the time that CoM, trunk and joints need to move to q (s).

        A minimum-jerk shift of the CoM by D keeps the centre of pressure within ``m`` of its straight way when
        T >= sqrt(5.8 D z / (g m)), as its largest acceleration is 5.8 D / T²; z is the height of the CoM above the
        lowest contact point. It speeds up at the start and slows down at the end, so m is no more than a part of the
        room that the contacts leave the CoM there.
        """
        s, now = self.settings, self.posture.sample(t).q
        com, target = self.com.sample(t).value, self.robot.com(q)
        D, z = float(np.linalg.norm((target - com)[:2])), height_above(self._closed, com)
        room = min(self._ways.room(self._closed, place) for place in (com, target))
        shift = np.sqrt(5.8 * D * z / (GRAVITY * room))
        rise = 15 / 8 * float(np.linalg.norm(target - com)) / s.com_speed
        turn = 15 / 8 * PostureTrajectory(now, q, 1.0).base.angle / s.trunk_speed
        joints = 15 / 8 * float(np.max(np.abs(q[7:] - now[7:]) / joint_rates(self.robot, s), initial=0.0))
        return max(s.shortest_shift, shift, rise, turn, joints)

    def move_body(self, t: float, q: np.ndarray, duration: float) -> float:
        """Move CoM, posture and all free limbs to where q has them; return when they have arrived (s)."""
        self._go(t, *self._way(t, q, duration, self._through_air))
        return max((path.end_time for path in self.limbs.values()), default=self.posture.end_time)

    def _way(self, t: float, q: np.ndarray, duration: float, path: PathMaker) -> tuple[Way, dict[str, PosturePath]]:
        """Find a way of the body, and of every free limb along what ``path`` makes of a posture reference.

        The limbs go as the straight way of the posture takes them, and the body follows; where that is barred they go
        as the body does on a way that is free. The body waits until limbs that still rest on an old support are lifted.
        """
        rising = any(patch in self.released for patch in self.limbs)
        wait = (1 - self.timing.overlap) * self.timing.duration(self.settings.clearance) if rising else 0.0
        start, closed, touching = self._start(t, q), self._closed, self._touching
        for _ in range(2):  # what limbs are lifted by does not take longer when the body does: the way is another one
            free_taken, straight = False, self._ways.straight(start, t + wait, duration)
            paths = {patch: path(t, patch, straight, True) for patch in self.limbs}
            way = self._ways.find(start, t + wait, duration, closed, touching, paths)
            if paths and way.missed > GOOD:
                free = self._ways.find(start, t + wait, duration, closed, touching)
                if free.missed < way.missed:
                    free_taken, way = True, free
                    paths = {patch: path(t, patch, free.posture, False) for patch in self.limbs}
            if way.stretch <= FAST:
                return way, paths
            duration *= way.stretch
        way = self._ways.slowed(start, way, closed)
        led = way.posture if free_taken else self._ways.straight(start, way.begin, way.duration)
        return way, {patch: path(t, patch, led, not free_taken) for patch in self.limbs}

    def _go(self, t: float, way: Way, paths: Mapping[str, PosturePath]) -> None:
        """Take a way of body and limbs."""
        self._judge(t, way)
        self.com, self.posture, self.limbs = way.com, way.posture, dict(paths)
        for patch in paths:
            self.released.pop(patch, None)

    def _judge(self, t: float, way: Way) -> None:
        """Note a way that is not free all along."""
        if way.missed > GOOD:
            self.note(t, way.shortfall, way.worst.bodies, way.missed)

    def _start(self, t: float, q: np.ndarray) -> Start:
        return Start(self.com.sample(t), self.posture.sample(t), q)

    @property
    def _closed(self) -> tuple[Contact, ...]:
        return tuple(loaded.contact for loaded in self.contacts.values())

    @property
    def _touching(self) -> tuple[Contact, ...]:
        return (*self.released.values(), *self.targets.values())

    def slide(self, t: float, q: np.ndarray, ways: Mapping[str, tuple[Pose, np.ndarray]]) -> float:
        """Move objects straight along their ways, each from a pose (R, p) to another (7,), and the body to q.

        The body goes straight to its posture; the contacts on the objects take it along. Returns the time at which
        everything has arrived (s).
        """
        way = max(float(np.linalg.norm(end[:3] - start[1])) for start, end in ways.values())
        duration = max(self.body_duration(t, q), 15 / 8 * way / self.settings.slide_speed)
        nothing = np.zeros(3)
        for name, (start, end) in ways.items():
            goal = rotation_from_quat(end[3:]), end[:3]
            self.slides[name] = LimbPath(start, goal, nothing, nothing, self.timing, t, duration)
        start_of_body = self._start(t, q)
        self.com, self.posture = self._ways.direct(start_of_body, t, duration)[:2]
        self.limbs = {patch: self._through_air(t, patch, self.posture) for patch in self.limbs}
        return max(path.end_time for path in (*self.slides.values(), *self.limbs.values()))

    def settle_objects(self, environment: Environment, contacts: Iterable[Contact]) -> None:
        """Let the objects that slid rest where ``environment`` has them; the contacts on them are those given."""
        self.slides.clear()
        for contact in contacts:
            self.contacts[contact.patch].contact = contact
        self._ways = WayFinder(self.robot, self.settings, TransitFinder(self.robot, environment))

    def raise_limb(self, t: float, patch: str, height: float) -> float:
        """Lift a free patch off what it was released from, and move the body along; return when that is done (s)."""
        place, old = self._place(patch, t)[1], self.released.pop(patch)
        q = self._ways.finder.lifted(self.posture.sample(t).q, self._closed, patch, place, height * old.normal)
        duration = max(self.timing.duration(height), self.body_duration(t, q))
        self.com, self.posture = self._ways.direct(self._start(t, q), t, duration)[:2]
        self.limbs = {name: self._through_air(t, name, self.posture) for name in self.limbs}
        return self.limbs[patch].end_time

    def reach(self, t: float, contact: Contact, start: Pose, q: np.ndarray) -> Path:
        """Start the motion of a patch to a new contact, and of the body to the posture q of the new stance.

        From one support to another the patch goes off along the old normal, over the higher of the two places and what
        is in between, and down along the new normal; from the air it goes as its posture does, and down along the new
        normal. ``start`` is the pose of a patch that has no reference yet.
        """
        patch, duration = contact.patch, self.body_duration(t, q)
        self.targets[patch] = contact
        self.waiting.discard(patch)
        tightness = 0.0
        if patch in self.limbs:
            tightness, start = self.limbs[patch].sample(t).tightness, self._place(patch, t)
        limb = self.robot.patches[patch].limb
        self.limbs = {name: path for name, path in self.limbs.items() if self.robot.patches[name].limb != limb}
        if patch in self.released:
            path: LimbPath | PosturePath | None = self._step(t, contact, start, q, duration, tightness)
            assert path is not None
        else:
            path = self._reach_out(t, contact, start, q, duration, tightness)
        self.limbs[patch] = led = self._led(path, contact)
        return led

    def _step(
        self,
        t: float,
        contact: Contact,
        start: Pose,
        q: np.ndarray,
        duration: float,
        tightness: float,
        bound: float = np.inf,
    ) -> LimbPath | PosturePath | None:
        """Begin the way from one support to another, as low as what is in between allows.

        From the air it goes off along the normal along which it will come down. Where no height will do a patch leaves
        its support as the body does, if that way is not barred either: a knee below its hip cannot go straight up
        without the body. None, and nothing is begun, where it misses as much as ``bound`` (m).
        """
        patch, touching, begin = contact.patch, self._touching, self._start(t, q)
        old = self.released.get(patch, contact)

        def path(higher: float, duration: float) -> LimbPath:
            clearance, step = self.settings.clearance + higher, contact.p - start[1]
            lift = old.normal * max(clearance, clearance + float(step @ old.normal))
            approach = contact.normal * (
                max(clearance, clearance - float(step @ contact.normal)) - self._height(contact)
            )
            return LimbPath(start, self._above(contact, q), lift, approach, self.timing, t, duration, (tightness, 1.0))

        best: tuple[Way, float, LimbPath] | None = None
        for higher in HIGHER:
            limb = path(higher, duration)
            way = self._ways.find(begin, t, limb.duration, self._closed, touching, {patch: limb})
            if best is None or way.rank < best[0].rank:
                best = way, higher, limb
            if way.missed <= GOOD:
                break
        assert best is not None
        way, higher, limb = best
        if way.missed >= bound:
            return None
        barred = (way.missed > GOOD or not way.held) and patch in self.released
        free = self._ways.find(begin, t, duration, self._closed, touching) if barred else way
        self.released.pop(patch, None)
        led: LimbPath | PosturePath
        if free.rank < way.rank and free.missed <= BARRED:
            way, none = self._ways.slowed(begin, free, self._closed), np.zeros(3)
            led = PosturePath(
                self.robot, patch, way.posture, start[1], self._above(contact, q), none, none, self.timing, t,
                (tightness, 1.0),
            )  # fmt: skip
        else:
            if way.stretch > FAST:
                way = self._ways.slowed(begin, way, self._closed)
                limb = path(higher, way.duration)
            if isinstance(way.posture, PostureSpline):
                limb.turn = PatchTurn(self.robot, patch, way.posture, start[0])
            led = limb
        self._judge(t, way)
        self.com, self.posture = way.com, way.posture
        self.limbs = {name: self._through_air(t, name, way.posture) for name in self.limbs if name != patch}
        for name in self.limbs:
            self.released.pop(name, None)
        return led

    def _reach_out(
        self, t: float, contact: Contact, start: Pose, q: np.ndarray, duration: float, tightness: float
    ) -> LimbPath | PosturePath:
        """Begin the way from the air to a support: as its posture goes, or over what would then be in its way."""
        distance = float(np.linalg.norm(contact.p - start[1]))
        # a patch that has come to its place with another one of its limb is not lifted first
        clearance = min(self.settings.reach_clearance, distance)
        approach = contact.normal * max(clearance - self._height(contact), 0.0)

        def path(t: float, patch: str, posture: AnyPosture, leads: bool) -> PosturePath:
            if patch != contact.patch:
                return self._through_air(t, patch, posture)
            end, none = self._above(contact, q), np.zeros(3)
            over = approach if leads else none
            return PosturePath(self.robot, patch, posture, start[1], end, none, over, self.timing, t, (tightness, 1.0))

        self.limbs[contact.patch] = self._hold(start, t)
        way, paths = self._way(t, q, max(duration, self.timing.duration(distance + clearance)), path)
        if way.missed > BARRED and (over := self._step(t, contact, start, q, duration, tightness, way.missed)):
            return over
        self._go(t, way, paths)
        return paths[contact.patch]

    def _height(self, contact: Contact) -> float:
        """How far above a support the search for it begins (m)."""
        return self.settings.touch_height if self.feels(contact) else 0.0

    def _above(self, contact: Contact, q: np.ndarray) -> Pose:
        """Return where the search for a support begins, turned as the posture q of the contact has it."""
        X = self.robot.frame_pose(q, contact.patch)
        R, p = allowed_pose(contact, (X[:3, :3], X[:3, 3]))
        return R, p + self._height(contact) * contact.normal

    def feels(self, contact: Contact) -> bool:
        """Say whether a patch comes down until it feels its support; a grip closes where it is."""
        return self.settings.touch_force > 0.0 and contact.kind != "grasp"

    def accompany(self, t: float, contact: Contact, start: Pose) -> None:
        """Lead another patch of a limb that reaches out to its own place, where it is at the posture that is begun.

        A knee and the toes behind it come down together: left to itself, the foot would be in the way of the knee. The
        posture takes the knee where it is led, so the toes go as the posture takes them, and nowhere else: the shank
        could not follow both. The straight way does not take the knee there: then the knee alone is led.
        """
        self.targets[contact.patch] = contact
        self.waiting.add(contact.patch)
        if isinstance(self.posture, PostureTrajectory):
            return
        nothing, (R, p) = np.zeros(3), self._above(contact, self.posture.end)
        end = R, p + max(WAITING - self._height(contact), 0.0) * contact.normal
        self.limbs[contact.patch] = PosturePath(
            self.robot, contact.patch, self.posture, start[1], end, nothing, nothing, self.timing, t, (0.0, 1.0)
        )

    def _led(self, path: LimbPath | PosturePath, contact: Contact) -> Path:
        """Return the path with the search for the support at its end, where touch is felt."""
        s = self.settings
        if not self.feels(contact):
            return path
        return Descent(path, contact.normal, s.descent_speed, s.touch_height + s.touch_depth)

    def _through_air(self, t: float, patch: str, posture: AnyPosture, leads: bool = True) -> PosturePath:
        """Return the path of a free patch with the body; off its old support first, along the normal."""
        sample, old = self.limbs[patch].sample(t), self.released.get(patch)
        lift = np.zeros(3)
        if old is not None:
            # Up: no higher than where it goes. Sideways: high enough not to graze the support. Below: over its edge.
            end = self.robot.frame_pose(posture.end, patch)[:3, 3]
            rise, clearance = float((end - sample.p) @ old.normal), self.settings.clearance
            height = clearance if rise <= 0.0 else np.clip(rise, 0.3 * clearance, clearance)
            lift = old.normal * (height if rise > -clearance else self.settings.reach_clearance)
        return PosturePath(
            self.robot, patch, posture, sample.p, None, lift, np.zeros(3), self.timing, t, (sample.tightness, 0.0)
        )

    def _place(self, patch: str, t: float) -> Pose:
        sample = self.limbs[patch].sample(t)
        return sample.R, sample.p

    def _hold(self, pose: Pose, t: float) -> LimbPath:
        return LimbPath(pose, pose, np.zeros(3), np.zeros(3), self.timing, t)

    def _alone(self, patch: str) -> bool:
        """Say whether no other patch of the same limb is in contact."""
        limb = self.robot.patches[patch].limb
        return all(self.robot.patches[name].limb != limb for name in self.contacts)
