"""Tasks and contact constraints of the whole-body program, filled from the references of the present time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.control.avoidance import Avoidance
from mcplan.control.handled import HandledObjects
from mcplan.control.loaded_contact import LoadedContact, Ramp
from mcplan.control.motion import Motion
from mcplan.core.algebra.rotation import quaternion_to_matrix
from mcplan.model.robot import Robot
from mcplan.model.system import SystemTerms
from mcplan.model.terms import Terms
from mcplan.scene.allowed import allowed_pose, lags
from mcplan.scene.contact import Contact
from mcplan.scene.counted import shrunk
from mcplan.scene.environment import Environment
from mcplan.scene.settings import ControlSettings
from mcplan.whole_body.contact import DEPENDENT, ContactConstraint
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.pool import ProblemPool
from mcplan.whole_body.priorities import PrioritisedQP
from mcplan.whole_body.rows.near_torques import Near, steps_of
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.solution import Solution
from mcplan.whole_body.tasks import AngularMomentumTask, ComTask, LinkPoseTask, PostureTask
from mcplan.whole_body.tasks.task import Task, damping, unknown_of
from mcplan.whole_body.whole_body import WholeBodyQP

NONE: Mapping[str, float] = {}

NO_SPIN = np.zeros(3)

RETURN, SOME = 0.5, 0.02
"""In how many seconds the stiffness of contacts comes back after it has been given up; with less than the second part
of it there is none to give up. Preloads come back within as long, after as long."""

MOST = 0.9
"""Of what a contact may bear, the part that is asked for as its preload: if it were less a contact that is let go would
lose the rest of it within a tick."""

LACKING, PART = 0.2, 0.2
"""With less of its acceleration lacking (m/s²) the centre of mass is as it should be. Preloads give way where without
them the program would cost less by more than this part of what lacks: a hand that pushes a bar with 10 N takes half of
what keeps a robot on one foot from falling over."""

HURRY = 4.0 / 3.0
"""So many times as quickly torques change where nothing else is a solution: often hundredths of a N m are wanting."""

LEAST = 1e-3
"""N: what a closed contact may always bear. Where that is nothing, or its points' inner margin, nothing solves it."""

GIVING = 3e-2
"""Part of a row along a support below which it is left out where contacts give: a robot that kneels on both shanks
cannot rock on its knees but for millimetres that these slip, and where its centre of mass is off its course it has to.
Where they do not give, and across supports, what is left out drifts: there only what contacts say twice is."""

LOOSE = 1e-5
"""Weight of the orientation of a limb in the air relative to one that touches: less than the posture's."""


class _Held(NamedTuple):
    """The constraint of a closed contact, its stiffness, and whether this leaves the patch free in some direction."""

    loaded: LoadedContact
    constraint: ContactConstraint
    kp: np.ndarray
    free: bool


class TaskSet:
    """What the controller keeps from step to step: one task per wish, one constraint per contact, one pool of problems.

    Parameters
    ----------
    robot : Robot
    environment : what the robot must not run into.
    settings : gains, weights and the solver.
    dt : control period (s).
    q : (7+n,) a posture, for the inertia that each joint moves.
    objects : that the robot handles.
    further : tasks of the user's, beside those of the plan.
    extra : terms of the user's in CVXPY (`whole_body.declaration.Extra`).
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: ControlSettings,
        dt: float,
        q: np.ndarray,
        objects: HandledObjects,
        further: Sequence[Task] = (),
        extra: Extra | None = None,
    ):
        s = self.settings = self._plain = settings
        self._gains: Mapping[str, float] = NONE
        self.com = ComTask(s.com_weight, s.com_kp)
        self.trunk = LinkPoseTask(robot.link_names[0], position=False, weight=s.trunk_weight, kp=s.trunk_kp)
        # Without the inertia a light pull at a hand would move the chest, with its long lever, before the arm.
        self._inertia = np.maximum(1.0, np.diag(robot.mass_matrix(q))[6:] / s.posture_inertia)
        self.posture = PostureTask(q[7:], s.posture_weight * self._inertia, s.posture_kp)
        self.posture.priority = s.posture_priority
        self.momentum = AngularMomentumTask(s.angular_momentum_weight, s.angular_momentum_damping)
        self.limbs: dict[str, LinkPoseTask] = {}
        self._angles: dict[str, LinkPoseTask] = {}
        self.objects = objects
        self.further: tuple[Any, ...] = tuple(further)
        self.avoidance = Avoidance(robot, environment, s, dt) if s.avoid_pairs else None
        self._limits = [self.avoidance] if self.avoidance else []
        self._held: dict[str, _Held] = {}
        self._shrunk: dict[Contact, Contact] = {}
        """Contacts with what of their faces is counted on: made before the run, no tick has the time for it."""
        self._stiff, self._dt, self._steps = 1.0, dt, dt * steps_of(robot, s.torque_rate)
        self._bearing, self._relieved = 0.0, -np.inf
        self._previous: dict[str, np.ndarray] = {}
        self._torque: np.ndarray | None = None
        self._near: Near | None = None
        self._problem: WholeBodyQP | PrioritisedQP
        self.pool = ProblemPool(
            objects.system if objects else robot,
            QPSettings(
                dt=dt,
                solver=s.solver,
                form=s.form,
                velocity_fraction=s.velocity_fraction,
                # as hard as the motion itself does: less would take it off its course near a limit
                braking=QPSettings.braking if s.pace is None else min(s.pace.acceleration, QPSettings.ceiling),
                force_weight=s.force_weight,
                force_rate_weight=s.force_rate_weight,
                near_torques=s.torque_rate > 0.0,
            ),
            extra,
        )

    def declare(self, contacts: Sequence[Contact], limbs: Iterable[str]) -> None:
        """Declare and compile the program of contacts, while limbs move by themselves: no tick has the time for it.

        The tick that first asks does it where objects take part, and for what slips.
        """
        loaded = [LoadedContact(contact, Ramp(0.0, 0.0, 0.0, 0.0), 0.0) for contact in contacts]
        self.pool.get([self._constrain(closed) for closed in loaded], self._tasks(limbs, contacts), self._limits)

    def rehearse(self, terms: Terms, motion: Motion) -> None:
        """Solve once and forget it: compiled code is loaded from its files where it is first called."""
        self.solve(0.0, terms, motion)
        self.pool.rehearse()
        self._previous, self._torque = {}, None
        self._stiffen(1.0)

    def solve(
        self,
        t: float,
        terms: Terms,
        motion: Motion,
        gains: Mapping[str, float] = NONE,
        planned: Mapping[str, np.ndarray] | None = None,
        steady: bool = True,
    ) -> Solution:
        """Fill references and limits of time t, and solve for the state of the terms.

        ``gains`` are weights and gains that hold instead of those of the settings; to ``planned`` forces, by patch, the
        contacts are drawn. What is not ``steady`` may need torques that jump.

        Where there is no solution, torques change quicker, then at will; then contacts go without their preload for a
        while. Contacts that drift by fractions of a millimetre, each on its own, ask for accelerations that no motion
        of the links between them has: next the program is solved without the stiffness of contacts, which then comes
        back gradually; their damping stays.
        """
        if gains != self._gains:
            self._set(gains)
        self._follow(t, motion)
        if self._stiff < 1.0:
            self._stiffen(min(1.0, self._stiff + self._dt / RETURN))
        self._bearing = motion.reserve(t) * min(max((t - self._relieved) / RETURN - 1.0, 0.0), 1.0)
        for task in self.further:
            if (follow := getattr(task, "follow", None)) is not None:
                follow(t)
        tasks = self._tasks(motion.limbs, motion.closed)
        contacts = [self._constraint(t, loaded, terms, motion.grips(t)) for loaded in motion.contacts.values()]
        poses = None
        if isinstance(terms, SystemTerms):
            for constraint, loaded in zip(contacts, motion.contacts.values(), strict=True):
                self.objects.carry(constraint, loaded, terms)
                if (carrier := self.objects.carrier(loaded.contact)) is not None:
                    held, s = carrier in motion.held, self.settings
                    share = s.grip_fraction if held else s.friction_fraction
                    constraint.friction = share * min(loaded.contact.friction, loaded.friction)
            tasks += self.objects.tasks(t, motion)
            contacts += self.objects.supports(t, motion, terms)
            poses = self.objects.poses(terms)
        for limit in self._limits:
            limit.update(terms, motion, poses)
        bounded, last = steady and self.settings.torque_rate > 0.0, self._torque
        self._near = Near(last, self._steps) if bounded and last is not None else None
        problem, solution = self.pool.get(contacts, tasks, self._limits), None
        for give_up in (None, self._hurry, self._free, lambda: self._relieve(t, contacts), self._loosen):
            if solution is None and (give_up is None or give_up()):
                problem.update(terms, contacts, tasks, None, self._previous, self._limits, planned, self._near)
                solution = problem.attempt()
        solution = solution or problem.solve()
        self._previous = solution.unknowns
        self._torque = solution.tau
        self._problem = problem
        return solution

    def put_balance_first(self, t: float, terms: Terms, solution: Solution) -> bool:
        """Let contacts go without their preload after time t (s), for a while, if these keep the centre of mass off.

        Return whether they do: whether the solution, the last one, lacks some of the acceleration that it was to have,
        and would cost so much less without preloads.
        """
        A, wanted = self.com.rows(terms)
        lacking = A @ solution.vd - wanted
        price = float(self.com.weight @ lacking**2)
        first = float(np.linalg.norm(lacking)) > LACKING and self._problem.preload_price() > PART * price
        if first:
            self._relieved = t
        return first

    def _tasks(self, limbs: Iterable[str], closed: Sequence[Contact]) -> list[Task]:
        """Return the tasks of limbs that move by themselves, patches, while contacts are closed."""
        patches = {contact.patch for contact in closed}
        own: list[Task] = [self.com, self.trunk, self.posture, self.momentum, *map(self._limb, limbs)]
        # a force of what is not in contact is none
        further = [task for task in self.further if unknown_of(task) != "force" or task.patch in patches]
        return [*own, *further, *(self._angle(contact) for contact in closed if contact.rolls)]

    def _limb(self, patch: str) -> LinkPoseTask:
        """Return the task of a limb that moves by itself."""
        if patch not in self.limbs:
            self.limbs[patch] = LinkPoseTask(patch, weight=self.settings.limb_weight, kp=self.settings.limb_kp)
        return self.limbs[patch]

    def _hurry(self) -> bool:
        """Let torques change somewhat quicker; say whether they may not change at will."""
        if self._near is None:
            return False
        self._near = self._near._replace(step=HURRY * self._near.step)
        return True

    def _free(self) -> bool:
        """Let torques change at will; say whether they may not."""
        bounded, self._near = self._near is not None, None
        return bounded

    def _relieve(self, t: float, contacts: Sequence[ContactConstraint]) -> bool:
        """Ask contacts to bear nothing in particular; say whether any was asked to."""
        asked = any(contact.preload > 0.0 for contact in contacts)
        if asked:
            self._relieved = t
            for contact in contacts:
                contact.preload = 0.0
        return asked

    def _loosen(self) -> bool:
        """Give the stiffness of contacts up; say whether there was any."""
        if self._stiff <= SOME:
            return False
        self._stiffen(0.0)
        return True

    def _stiffen(self, share: float) -> None:
        """Let closed contacts have a share of their stiffness."""
        self._stiff = share
        for held in self._held.values():
            held.constraint.kp = share * held.kp

    def _set(self, gains: Mapping[str, float]) -> None:
        """Take weights and gains, by their names in the settings, instead of what these say."""
        self._gains, s = gains, self._plain.model_copy(update=dict(gains))
        self.settings = s
        self.com.weight, self.trunk.weight = s.com_weight, s.trunk_weight
        self.posture.weight = s.posture_weight * self._inertia
        self.momentum.weight, self.momentum.kd = s.angular_momentum_weight, s.angular_momentum_damping
        for task, kp in ((self.com, s.com_kp), (self.trunk, s.trunk_kp), (self.posture, s.posture_kp)):
            task.kp, task.kd = kp, damping(kp, None)
        for angle in self._angles.values():
            angle.weight, angle.kp, angle.kd = s.trunk_weight, s.trunk_kp, damping(s.trunk_kp, None)
        for limb in self.limbs.values():
            limb.kp, limb.kd = s.limb_kp, damping(s.limb_kp, None)
        self.objects.take_gains(s)

    def _follow(self, t: float, motion: Motion) -> None:
        com, posture = motion.com.sample(t), motion.posture.sample(t)
        self.com.position, self.com.velocity, self.com.acceleration = com
        self.posture.position, self.posture.velocity = posture.q[7:], posture.v[6:]
        self.posture.acceleration = posture.vd[6:]
        quaternion_to_matrix(posture.q[3:7], self.trunk.R)
        self.trunk.velocity[3:], self.trunk.acceleration[3:] = posture.v[3:6], posture.vd[3:6]
        spin = (NO_SPIN, NO_SPIN) if motion.spin is None else motion.spin.sample(t)
        self.momentum.momentum, self.momentum.rate = spin
        s = self.settings
        for patch, path in motion.limbs.items():
            task = self._limb(patch)
            task.R, task.p, task.velocity, task.acceleration, tightness = path.sample(t)
            task.weight[:3], task.weight[3:] = s.limb_weight, s.limb_weight * LOOSE ** (1.0 - tightness)

    def _angle(self, contact: Contact) -> LinkPoseTask:
        """Return the task by which a sole on a bar keeps the angle of its contact: it could roll off it."""
        s, patch = self.settings, contact.patch
        if patch not in self._angles:
            self._angles[patch] = LinkPoseTask(patch, position=False, weight=s.trunk_weight, kp=s.trunk_kp)
        self._angles[patch].R = contact.R
        return self._angles[patch]

    def _constraint(self, t: float, loaded: LoadedContact, terms: Terms, grips: float) -> ContactConstraint:
        contact = loaded.contact
        held = self._held.get(contact.patch)
        if held is None or held.loaded is not loaded:
            made = self._constrain(loaded)
            free = len(contact.selection) < 6 and not contact.radius
            held = self._held[contact.patch] = _Held(loaded, made, made.kp.copy(), free)
            made.kp = self._stiff * held.kp
        known = held.constraint
        if held.free:
            frame, place = terms.frame(contact.patch), (known.R, known.p)
            if lags(contact, place, (frame.R, frame.p)):
                known.R, known.p = allowed_pose(contact, (frame.R, frame.p), place)
            if contact.rolls:
                known.axes = contact.axes_at(frame.R)
        if loaded.lifted:
            self._set_down(known, contact, terms)
        limit = loaded.limit.value(t)
        known.max_force = max(limit, LEAST)
        known.preload = self._preload(loaded, limit)
        if contact.kind == "grasp":
            known.max_moment = grips * contact.max_moment * min(1.0, limit / loaded.full)
            known.max_force = min(limit, grips * contact.max_force)
        return known

    def _preload(self, loaded: LoadedContact, limit: float) -> float:
        """Return what a contact bears at least: most of what it may while that rises or sinks."""
        s = self.settings
        if not s.compliant or loaded.contact.kind == "grasp" or loaded.lifted or loaded.idle:
            return 0.0
        return self._bearing * min(s.preload, MOST * limit)

    def _set_down(self, known: ContactConstraint, contact: Contact, terms: Terms) -> None:
        """Draw a contact that has lost its support back to it, at the speed of a descent: ``kp e = kd v``.

        It is held flat: nothing else keeps it from turning while it bears nothing.
        """
        s, p = self.settings, terms.frame(contact.patch).p
        kp = max(s.contact_kp, 1.0)
        ahead = s.descent_speed * s.contact_kd / kp
        known.kp[:] = kp
        known.p = known.p + (float((p - known.p) @ contact.normal) - ahead) * contact.normal

    def _constrain(self, loaded: LoadedContact) -> ContactConstraint:
        """Return the constraint of a contact: stiff along its support, with what is counted on of patch and cone.

        On an object it is stiff in all directions. Edges and faces are drawn flat onto their supports, from however
        they touched: weight presses them flat, but not what bears little (a foot beside another one stands up on a
        corner while a hand reaches out for seconds), nor an edge of a closed chain, such as both shanks of a robot that
        kneels. A sole on a bar is drawn flat along the bar.
        """
        contact, s = loaded.contact, self.settings
        # of an edge the patch's z is not the normal: each axis takes its part of both stiffnesses
        upright = (contact.axes[:, 2] @ contact.R) ** 2
        frame = self.objects.frame(contact)
        normal_kp = s.contact_normal_kp if frame is None else s.contact_kp
        lies = contact.kind == "surface"
        tilt = np.zeros(3) if lies else 1.0 - upright
        if contact.rolls:  # about the bar it is free
            bar = contact.points[1] - contact.points[0]
            tilt = bar**2 / (bar @ bar)
        kp = s.contact_kp + (normal_kp - s.contact_kp) * np.concatenate([upright, tilt])
        if contact.radius:  # what it rolls belongs to its place along the support; where contacts give it rolls truly
            kp[[0, 1, 3, 4, 5]] = 0.0 if s.compliant else s.contact_kp
        if s.pressure_margin > 0.0:
            if contact not in self._shrunk:
                self._shrunk[contact] = replace(contact, points=shrunk(contact.points, s.pressure_margin))
            contact = self._shrunk[contact]
        constraint = ContactConstraint(contact, kp, s.contact_kd, faces=s.friction_faces, frame=frame)
        if s.compliant and contact.kind != "grasp":
            constraint.dependent[:3] += (GIVING - DEPENDENT) * (1.0 - upright)
        constraint.friction = s.friction_fraction * min(contact.friction, loaded.friction)
        if loaded.place is not None:
            R, constraint.p = loaded.place
            if contact.radius:
                constraint.R, constraint.p = contact.R, constraint.p - contact.rolled(R)
            else:
                constraint.R = levelled(R, contact) if lies and frame is None else R  # an object may have turned
        return constraint


def levelled(R: np.ndarray, contact: Contact) -> np.ndarray:
    """Return a rotation (3,3) of a patch turned by the least angle that lays it, edge or face, onto its support."""
    if len(contact.points) == 2:
        line = R @ (contact.points[1] - contact.points[0])
        lies, goal = line, line - (line @ contact.normal) * contact.normal
    else:
        lies, goal = R @ contact.R.T @ contact.normal, contact.normal
    return Rotation.align_vectors(goal[None], lies[None])[0].as_matrix() @ R
