"""Tasks and contact constraints of the whole-body program, filled from the references of the present time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mcplan.control.avoidance import Avoidance
from mcplan.control.command import LoadedContact, Ramp
from mcplan.control.handled import HandledObjects
from mcplan.control.held_contacts import HeldContacts
from mcplan.control.motion import Motion
from mcplan.core.algebra.rotation import quaternion_to_matrix
from mcplan.robot.robot import Robot
from mcplan.robot.system import SystemTerms
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings
from mcplan.whole_body.answer import Solution
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.pool import ProblemPool
from mcplan.whole_body.priorities import PrioritisedQP
from mcplan.whole_body.rows.forces import TorqueBand, steps_of
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.tasks.com import AngularMomentumTask, ComTask
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.tasks.task import Task, damping, unknown_of
from mcplan.whole_body.whole_body import WholeBodyQP

NONE: Mapping[str, float] = {}

NO_SPIN = np.zeros(3)

RETURN, SOME = 0.5, 0.02
"""In how many seconds the stiffness of contacts comes back after it has been given up; with less than the second part
of it there is none to give up. Preloads come back within as long, after as long."""

LACKING, PART = 0.2, 0.2
"""With less of its acceleration lacking (m/s²) the centre of mass is as it should be. Preloads give way where without
them the program would cost less by more than this part of what lacks: a hand that pushes a bar with 10 N takes half of
what keeps a robot on one foot from falling over."""

HURRY = 4.0 / 3.0
"""So many times as quickly torques change where nothing else is a solution: often hundredths of a N m are wanting."""

POSTURE_INERTIA_KG_M2 = 0.2
"""A joint that moves more than this inertia has a posture weight in proportion to it."""

GRIP_FRICTION_FRACTION = 0.5
"""Fraction of the friction of contacts that hold an object in the air, where contacts are compliant: less is a firmer
grip, which also keeps the object from turning about the line through two hands."""

VELOCITY_FRACTION = 0.99
"""Fraction of the joint velocity limits where contacts are compliant: the accelerations that torques cause differ a
little from those of the program."""

LOOSE = 1e-5
"""Weight of the orientation of a limb in the air relative to one that touches: less than the posture's."""


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
        self.com = ComTask(s.weights.com, s.gains.com_kp)
        self.trunk = LinkPoseTask(robot.link_names[0], position=False, weight=s.weights.trunk, kp=s.gains.trunk_kp)
        # Without the inertia a light pull at a hand would move the chest, with its long lever, before the arm.
        self._inertia = np.maximum(1.0, np.diag(robot.mass_matrix(q))[6:] / POSTURE_INERTIA_KG_M2)
        self.posture = PostureTask(q[7:], s.weights.posture * self._inertia, s.gains.posture_kp)
        self.posture.priority = s.posture_priority
        self.momentum = AngularMomentumTask(s.weights.angular_momentum, s.gains.angular_momentum_kd)
        self.limbs: dict[str, LinkPoseTask] = {}
        self._angles: dict[str, LinkPoseTask] = {}
        self.objects = objects
        self.further: tuple[Any, ...] = tuple(further)
        self.avoidance = Avoidance(robot, environment, s, dt) if s.avoidance.pairs else None
        self._limits = [self.avoidance] if self.avoidance else []
        self.held = HeldContacts(s, objects)
        self._dt, self._steps = dt, dt * steps_of(robot, s.gains.torque_rate)
        self._relieved = -np.inf
        self._previous: dict[str, np.ndarray] = {}
        self._torque: np.ndarray | None = None
        self._near: TorqueBand | None = None
        self._problem: WholeBodyQP | PrioritisedQP
        self.pool = ProblemPool(
            objects.system if objects else robot,
            QPSettings(
                dt=dt,
                solver=s.solver,
                form=s.form,
                velocity_fraction=VELOCITY_FRACTION if s.compliant else 1.0,
                # as hard as the motion itself does: less would take it off its course near a limit
                braking=QPSettings.braking if s.pace is None else min(s.pace.acceleration, QPSettings.ceiling),
                force_weight=s.weights.force,
                force_rate_weight=s.weights.force_rate,
                near_torques=s.gains.torque_rate > 0.0,
            ),
            extra,
        )

    def declare(self, contacts: Sequence[Contact], limbs: Iterable[str]) -> None:
        """Declare and compile the program of contacts, while limbs move by themselves: no tick has the time for it.

        The tick that first asks does it where objects take part, and for what slips.
        """
        loaded = [LoadedContact(contact, Ramp(0.0, 0.0, 0.0, 0.0), 0.0) for contact in contacts]
        self.pool.get([self.held.close(closed) for closed in loaded], self._tasks(limbs, contacts), self._limits)
        if self.avoidance:
            self.avoidance.expect(contacts)

    def rehearse(self, terms: Terms, motion: Motion) -> None:
        """Solve once and forget it: compiled code is loaded from its files where it is first called."""
        self.solve(0.0, terms, motion)
        self.pool.rehearse()
        self._previous, self._torque = {}, None
        self.held.stiffen(1.0)

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
        if self.held.stiff < 1.0:
            self.held.stiffen(min(1.0, self.held.stiff + self._dt / RETURN))
        self.held.bearing = motion.reserve(t) * min(max((t - self._relieved) / RETURN - 1.0, 0.0), 1.0)
        for task in self.further:
            if (follow := getattr(task, "follow", None)) is not None:
                follow(t)
        tasks = self._tasks(motion.limbs, motion.closed)
        contacts = [self.held.fill(t, loaded, terms, motion.grips(t)) for loaded in motion.contacts.values()]
        poses = None
        if isinstance(terms, SystemTerms):
            for constraint, loaded in zip(contacts, motion.contacts.values(), strict=True):
                self.objects.carry(constraint, loaded, terms)
                if (carrier := self.objects.carrier(loaded.contact)) is not None:
                    held, s = carrier in motion.held, self.settings
                    share = s.contact.friction_fraction
                    if held and s.compliant:
                        share = GRIP_FRICTION_FRACTION
                    constraint.friction = share * min(loaded.contact.friction, loaded.friction)
            tasks += self.objects.tasks(t, motion)
            contacts += self.objects.supports(t, motion, terms)
            poses = self.objects.poses(terms)
        for limit in self._limits:
            limit.update(terms, motion, poses)
        bounded, last = steady and self.settings.gains.torque_rate > 0.0, self._torque
        self._near = TorqueBand(last, self._steps) if bounded and last is not None else None
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
            self.limbs[patch] = LinkPoseTask(patch, weight=self.settings.weights.limb, kp=self.settings.gains.limb_kp)
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
        if self.held.stiff <= SOME:
            return False
        self.held.stiffen(0.0)
        return True

    def _set(self, gains: Mapping[str, float]) -> None:
        """Take weights and gains, by their keys in the settings, instead of those of the settings."""
        self._gains, s = gains, self._plain.updated(gains)
        self.settings = s
        self.com.weight, self.trunk.weight = s.weights.com, s.weights.trunk
        self.posture.weight = s.weights.posture * self._inertia
        self.momentum.weight, self.momentum.kd = s.weights.angular_momentum, s.gains.angular_momentum_kd
        g = s.gains
        for task, kp in ((self.com, g.com_kp), (self.trunk, g.trunk_kp), (self.posture, g.posture_kp)):
            task.kp, task.kd = kp, damping(kp, None)
        for angle in self._angles.values():
            angle.weight, angle.kp, angle.kd = s.weights.trunk, s.gains.trunk_kp, damping(s.gains.trunk_kp, None)
        for limb in self.limbs.values():
            limb.kp, limb.kd = s.gains.limb_kp, damping(s.gains.limb_kp, None)
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
            task.weight[:3], task.weight[3:] = s.weights.limb, s.weights.limb * LOOSE ** (1.0 - tightness)

    def _angle(self, contact: Contact) -> LinkPoseTask:
        """Return the task by which a sole on a bar keeps the angle of its contact: it could roll off it."""
        s, patch = self.settings, contact.patch
        if patch not in self._angles:
            self._angles[patch] = LinkPoseTask(patch, position=False, weight=s.weights.trunk, kp=s.gains.trunk_kp)
        self._angles[patch].R = contact.R
        return self._angles[patch]
