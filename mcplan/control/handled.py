"""Handled objects in the whole-body program: at rest, sliding, or held in the air."""

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mcplan.control.command import LoadedContact, PointLoads, Ramp
from mcplan.control.motion import Motion
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.limb_path import HeldPose, LimbPath, Pose
from mcplan.planning.plan import Plan
from mcplan.robot.solid import shape_inertia
from mcplan.robot.system import FreeBody, System, SystemTerms, relative_frame
from mcplan.scene.contact import Contact
from mcplan.scene.environment import FreeObject
from mcplan.scene.resting import resting_contact, slides
from mcplan.settings.control import ControlSettings
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.solution import ByPatch
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.task import damping

NOISE_FRACTION = 0.3
"""Friction stops an object with a speed of ``mu g dt`` within one tick. Below this fraction of that speed the direction
of the velocity is noise, and friction opposes the reference instead, which prevents chatter."""


class HandledObjects:
    """Robot and handled objects as one system (S0, sec. 11).

    - At rest: friction holds the object within its cone.
    - Sliding: each point has a normal force ``fn`` and friction ``mu fn`` against the sliding direction, or at very low
      speed against the direction of the reference. When a slide begins, ``mu`` grows within
      ``control.timing.load_time`` from the friction used at rest: pushing hands are loaded gradually, as feet are.
    - In the air: Newton-Euler equations under its weight and the robot's contact forces, which track its reference.

    Parameters
    ----------
    plan : the plan, whose contacts determine which objects are handled.
    settings : settings of the controller.
    dt : control period, s.

    Attributes
    ----------
    things : the handled objects.
    system : the robot with them.
    poses : poses of the objects by name, views of the terms.
    last_forces : forces (k, 3) at the points of each contact in the last solution of the program.
    """

    def __init__(self, plan: Plan, settings: ControlSettings, dt: float = 1e-3):
        self.settings, self._dt, environment = settings, dt, plan.scenario.environment
        self._owners = environment.owners
        contacts = [contact for stance in plan.stances for contact in stance.contacts]
        pairs = {(c.patch, self._owners[c.support]) for c in contacts if c.support in self._owners}
        touched = {name for _, name in pairs}
        self.things = tuple(thing for thing in environment.objects if thing.name in touched)
        rows = [i for i, thing in enumerate(environment.objects) if thing.name in touched]
        self._rows = slice(None) if len(rows) == len(environment.objects) else rows
        self._all_names = [thing.name for thing in environment.objects]
        self.system = System(plan.scenario.robot, tuple(_body(thing) for thing in self.things))
        self._pairs = sorted(pairs)
        self._scenes = [environment.placed(stance.objects) for stance in plan.stances] if self.things else []
        self._names = frozenset(thing.name for thing in self.things)
        self._axes = {s.name: thing.R.T @ s.R for thing in self.things for s in thing.surfaces}
        s = settings
        self._tasks = {t.name: LinkPoseTask(t.name, weight=s.weights.limb, kp=s.gains.limb_kp) for t in self.things}
        self._support_contacts: dict[str, _SupportContact] = {}
        self._local_poses: dict[str, tuple[LoadedContact, Pose, np.ndarray | None]] = {}
        self.poses: dict[str, Pose] = {}
        self.last_forces: Mapping[str, np.ndarray] = {}

    def __bool__(self) -> bool:
        return bool(self.things)

    @property
    def mass(self) -> float:
        """Total mass of the handled objects (kg)."""
        return sum(thing.mass for thing in self.things)

    def terms(self, frames: list[str]) -> SystemTerms:
        """Return terms of the system, with the frames that contacts on objects need."""
        terms = SystemTerms(self.system, frames, self._pairs)
        self.poses = {thing.name: (terms.frame(thing.name).R, terms.frame(thing.name).p) for thing in self.things}
        return terms

    def state(self, q: np.ndarray, v: np.ndarray, poses: np.ndarray, velocities: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return q and v of the system; ``poses`` (O, 7) and ``velocities`` (O, 6) are of all objects of the scene."""
        return np.concatenate([q, poses[self._rows].ravel()]), np.concatenate([v, velocities[self._rows].ravel()])

    def initial_state(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return q and v of the system while the objects are at rest where the plan begins."""
        poses = np.array([thing.pose for thing in self._scenes[0].objects])
        return self.state(q, v, poses, np.zeros((len(poses), 6)))

    def forget(self) -> None:
        """Forget the last tick, after a rehearsal."""
        self._support_contacts.clear()
        self._local_poses.clear()
        self.last_forces = {}

    def accelerations(self, vd: np.ndarray) -> np.ndarray:
        """Return the accelerations of all objects of the scene (O, 6), from those of the system."""
        result = np.zeros((len(self._all_names), 6))
        result[self._rows] = vd[self.system.robot.nv :].reshape(-1, 6)
        return result

    def tasks(self, t: float, motion: Motion) -> list[LinkPoseTask]:
        """Return the tasks of the objects that move, filled from their references."""
        for name, path in motion.objects.items():
            path.write(t, self._tasks[name].reference)
        return [self._tasks[name] for name in motion.objects]

    def apply_gains(self, settings: ControlSettings) -> None:
        """Set weight and gains of the object tasks to those of limbs in ``settings`` (such as those of a state)."""
        for task in self._tasks.values():
            kp = settings.gains.limb_kp
            task.weight, task.kp, task.kd = settings.weights.limb, kp, damping(kp, None)

    def supports(self, t: float, motion: Motion, terms: SystemTerms) -> list[ContactConstraint]:
        """Return the contacts between objects and their supports, with their force limits at time t (s)."""
        return [self._support_constraint(t, name, motion, terms) for name in motion.object_supports]

    def _support_constraint(self, t: float, name: str, motion: Motion, terms: SystemTerms) -> ContactConstraint:
        """Return the constraint of an object on its support at time t (s), with its friction and force limit."""
        loaded, path, cached = motion.object_supports[name], motion.objects.get(name), self._support_contacts.get(name)
        if cached is None or cached.loaded is not loaded or cached.path is not path:
            cached = self._support_contacts[name] = self._support_contact(t, name, loaded, path)
        support, constraint, direction = loaded.contact, cached.constraint, cached.direction
        if direction is not None:
            noise = NOISE_FRACTION * support.friction * GRAVITY * self._dt
            sliding = _in_plane(support, terms.frame(name).velocity[:3]) + noise * direction
            speed = np.linalg.norm(sliding)
            constraint.slide(cached.friction_ramp.value(t) * (sliding / speed if speed > 1e-3 * noise else direction))
        constraint.max_force = loaded.limit.value(t)
        return constraint

    def _support_contact(
        self, t: float, name: str, loaded: LoadedContact, path: HeldPose | LimbPath | None
    ) -> "_SupportContact":
        """Make the constraint of an object on its support: at rest, or sliding along a path."""
        support = loaded.contact
        if path is None:
            return _SupportContact(loaded, path, self._constraint(support, None))
        direction = _in_plane(support, path.end[1] - path.sample(path.start_time).p)
        direction /= np.linalg.norm(direction)
        constraint = self._constraint(support, direction)
        return _SupportContact(loaded, path, constraint, direction, self._friction_ramp(t, name, support, direction))

    def _constraint(self, support: Contact, direction: np.ndarray | None) -> ContactConstraint:
        """Make the constraint of an object on its support, at rest or sliding in a direction (3,)."""
        kd = damping(self.settings.gains.contact_kp, None)
        contact = support if direction is None else _free_in_plane(support)
        return ContactConstraint(contact, 0.0, kd, slip=direction)

    def expected(self, stance: int, moved: Container[str]) -> tuple[list[ContactConstraint], list[LinkPoseTask]]:
        """Return contacts with supports, and tasks, in a stance, or while some objects move to it."""
        supports, tasks, after = list[ContactConstraint](), list[LinkPoseTask](), self._scenes[stance]
        for thing, end in zip(self._scenes[max(stance - 1, 0)].objects, after.objects, strict=True):
            rest, direction = resting_contact(end, after), None
            if thing.name in moved:
                begin = resting_contact(thing, self._scenes[stance - 1])
                rest, direction = (rest, thing.R[:, 0]) if slides(begin, rest, after) else (None, None)
            if thing.name in self._names:
                supports += [] if rest is None else [self._constraint(rest, direction)]
                tasks += [self._tasks[thing.name]] if rest is None or thing.name in moved else []
        return supports, tasks

    def _friction_ramp(self, t: float, name: str, support: Contact, direction: np.ndarray) -> Ramp:
        """Return the ramp of an object's friction as a slide begins: from the fraction used at rest to 1."""
        force = self.support_force(name)
        max_friction = support.friction * float(support.normal @ force)
        start = float(np.clip(-direction @ force / max_friction, 0.0, 1.0)) if max_friction > 0.0 else 0.0
        return Ramp(start, 1.0, t, self.settings.timing.load_time)

    def support_force(self, name: str) -> np.ndarray:
        """Return the force (3,) (N) of the support on an object in the last solution of the program."""
        return np.zeros(3) if name not in self.last_forces else self.last_forces[name].sum(axis=0)

    def carrier(self, contact: Contact) -> str | None:
        """Return the name of the object that a contact is on."""
        return self._owners.get(contact.support)

    def frame(self, contact: Contact) -> str | None:
        """Return the frame of a contact on an object, None for one on the environment."""
        carrier = self.carrier(contact)
        return None if carrier is None else relative_frame(contact.patch, carrier)

    def move_with_object(self, constraint: ContactConstraint, loaded: LoadedContact, terms: SystemTerms) -> None:
        """Move the set-point of a contact with the object that it is on, from the tick in which the contact closed."""
        carrier = self.carrier(loaded.contact)
        if carrier is None:
            return
        body = terms.frame(carrier)
        cached = self._local_poses.get(loaded.contact.patch)
        if cached is None or cached[0] is not loaded:
            local = body.R.T @ constraint.R, body.R.T @ (constraint.p - body.p)
            cached = self._local_poses[loaded.contact.patch] = loaded, local, self._axes.get(loaded.contact.support)
        _, (R, p), axes = cached
        constraint.R, constraint.p = body.R @ R, body.p + body.R @ p
        if axes is not None:  # a grasp has the axes of its patch
            constraint.axes = body.R @ axes

    def without_objects(self, by_patch: ByPatch) -> ByPatch:
        """Return the entries of patches only, without those of objects."""
        if not self.things:
            return by_patch
        return by_patch.without(self._names)

    def forces(self, terms: SystemTerms, motion: Motion, forces: Mapping[str, np.ndarray]) -> dict[str, PointLoads]:
        """Return the point forces on the objects: of their supports, and the reactions to the robot's contacts."""
        result = {}
        for thing in self.things:
            name, rest = thing.name, motion.object_supports.get(thing.name)
            parts = [] if rest is None else [(name, rest.contact, rest.contact.normal, forces[name])]
            for contact in (loaded.contact for loaded in motion.contacts.values()):
                if self.carrier(contact) == name:
                    parts.append((contact.patch, contact, -self._normal(contact, terms), -forces[contact.patch]))
            if not parts:
                continue
            loads = PointLoads(*np.empty((3, sum(len(contact.points) for _, contact, _, _ in parts), 3)))
            first = 0
            for patch, contact, normal, force in parts:
                rows, frame = slice(first, first + len(contact.points)), terms.frame(patch)
                loads.xyz[rows] = frame.p + contact.points @ frame.R.T
                loads.normal[rows], loads.force[rows] = normal, force
                first = rows.stop
            result[name] = loads
        return result

    def _normal(self, contact: Contact, terms: SystemTerms) -> np.ndarray:
        """Return the normal (3,) of a contact on an object, which turns with it."""
        axes = self._axes.get(contact.support)
        if axes is None:
            return -terms.frame(contact.patch).R[:, 2]
        return terms.frame(self._owners[contact.support]).R @ axes[:, 2]


class _SupportContact(NamedTuple):
    """Contact of an object with its support; in a slide also its direction and the ramp of friction."""

    loaded: LoadedContact
    path: HeldPose | LimbPath | None
    constraint: ContactConstraint
    direction: np.ndarray | None = None
    friction_ramp: Ramp = Ramp(1.0, 1.0, 0.0, 0.0)


def _body(thing: FreeObject) -> FreeBody:
    """Return the rigid body of an object, with uniform density."""
    com, inertia = shape_inertia(thing.shape, thing.mass)
    return FreeBody(thing.name, thing.mass, com, np.diag(inertia))


def _in_plane(support: Contact, vector: np.ndarray) -> np.ndarray:
    """Project a vector (3,) onto the plane of a support."""
    return np.asarray(vector - support.normal * (support.normal @ vector))


def _free_in_plane(support: Contact) -> Contact:
    """Return the contact of an object that may slide and turn in the plane of its support."""
    t1, t2, n = (support.R.T @ support.axes).T
    return replace(support, selection=np.array([[*n, 0, 0, 0], [0, 0, 0, *t1], [0, 0, 0, *t2]]))
