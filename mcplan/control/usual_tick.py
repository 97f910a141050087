"""Usual tick: only the state has changed since the last one, so two kernels do all of it (`core.whole_body.tick`).

`lay_out` collects their arguments after a tick that was computed step by step. They hold as long as state of the
machine, references, contacts, force limits and stiffness stay the same.
"""

import time

import numpy as np

from mcplan.control.avoidance import Avoidance
from mcplan.control.contact_detectors import SLIP_SPEED_M_S, SlipDetector
from mcplan.control.held_contacts import PlannedForces
from mcplan.control.joint_torques import JointImpedance
from mcplan.control.machine import Machine
from mcplan.control.motion import Motion
from mcplan.control.stepping import Stepping
from mcplan.control.task_set import TaskSet
from mcplan.core.whole_body import tick as kernel
from mcplan.core.whole_body.solve import SOLVED
from mcplan.robot.terms import Terms
from mcplan.scene.allowed_pose import MAX_DEVIATION
from mcplan.scene.contact import Contact
from mcplan.util.arrays import read_only
from mcplan.whole_body.packed import is_unchanged
from mcplan.whole_body.solution import Solution
from mcplan.whole_body.tables import BoundTables
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.whole_body import WholeBodyQP

NO_IMPEDANCE = np.zeros(0), np.zeros(0), 0.0, read_only(np.zeros(0)), 0.0, np.zeros(0), np.zeros(0)
"""Arguments of the joint impedance where there is none."""


class UsualTick:
    """Arguments of the kernels of a usual tick.

    Parameters
    ----------
    terms, motion, machine, tasks, forces, impedance, detector, stepping : parts of the controller.
    largest_error : capture-point error (m) beyond which the rate of torques is not bounded.

    Attributes
    ----------
    balance_error : capture-point error of the last call of `respond` (m).
    torque : (n,) commanded torques of the last call of `respond` (N m); None: the kernel found no solution, and joint
        impedance is not applied yet.
    """

    def __init__(
        self,
        terms: Terms,
        motion: Motion,
        machine: Machine,
        tasks: TaskSet,
        forces: PlannedForces,
        impedance: JointImpedance | None,
        detector: SlipDetector,
        stepping: Stepping,
        largest_error: float,
    ):
        self._terms, self._motion, self._machine, self._tasks = terms, motion, machine, tasks
        self._forces, self._impedance, self._detector, self._stepping = forces, impedance, detector, stepping
        self._largest_error = largest_error
        self._report = np.zeros(kernel.REPORTED)
        self._closed: tuple[Contact, ...] = ()
        self._limbs: list[tuple[LinkPoseTask, slice]] = []
        self._is_settled, self._drop_time, self.balance_error = False, -np.inf, 0.0
        self._sent_size = len(impedance.limit) if impedance else 0
        self._inputs: tuple = ()
        self._observed: tuple = ()
        self._fixed: tuple = ()
        self._problem: WholeBodyQP
        self._avoidance: Avoidance
        self._tables: BoundTables | None = None
        self.torque: np.ndarray | None = None

    def rehearse(self) -> None:
        """Call both kernels once after a rehearsal of `TaskSet`, to load them before the run."""
        self.lay_out(True)
        if self._observed:
            self.observe(self._terms.q.copy(), self._terms.v.copy())
            self.respond(0.0, True)
        self._inputs, self._observed, self._tables = (), (), None

    def lay_out(self, watches_slips: bool) -> None:
        """Collect the arguments for the next ticks, unless Python has to look at something in each of them.

        Without measured wrenches slips are not watched.
        """
        tasks, motion, terms, problem = self._tasks, self._motion, self._terms, self._tasks.problem
        inputs, last = self._present_inputs(), self._inputs
        self._inputs, observed, self._observed, objects = (), self._observed, (), tasks.objects
        if not isinstance(problem, WholeBodyQP) or tasks.avoidance is None or tasks.further or self._detector.slips:
            return
        balance, tables = self._stepping.balance_arguments(self._machine.phase, motion), problem.kernel_tables()
        if balance is None or tables is None:
            return
        self._is_settled = False
        if tables is self._tables and is_unchanged(inputs, last):
            self._inputs, self._observed = last, observed
            return
        least_depth, balance_arguments = balance
        self._observed = (
            np.array([SLIP_SPEED_M_S if watches_slips else np.inf, MAX_DEVIATION, least_depth]),
            *((terms.centroidal, terms.arrays[-1]) if objects else terms.arguments),
            *self._detector.arguments(motion.closed, terms)[1:], *balance_arguments,
        )  # fmt: skip
        body, places = tasks.body, [tables.place(task) for task in (tasks.com, tasks.momentum)]
        places += [tables.place(tasks.trunk, tasks.trunk.reference), tables.place(tasks.posture)]
        planned, target = self._forces.arranged(tables.patches, tables.force_slices)
        rolling = tasks.held.rolling
        self._fixed = (
            *body.arguments, body.ground, body.size, *body.outputs,
            np.array([place.start for place in places]), target, self._forces.gain, *tasks.avoidance.arguments,
            *problem.kernel_arguments(planned, tasks.torque_steps), self._largest_error,
            np.array([tables.contacts.index(constraint) for constraint, _ in rolling], np.int64),
            np.array([contact.R.T @ contact.axes for _, contact in rolling]).reshape(-1, 3, 3),
            *(self._impedance.arguments if self._impedance else NO_IMPEDANCE), self._report,
        )  # fmt: skip
        self._limbs = [(tasks.limbs[patch], tables.place(tasks.limbs[patch])) for patch in motion.limbs]
        self._problem, self._avoidance, self._tables = problem, tasks.avoidance, tables
        self._closed, self._inputs = motion.closed, inputs

    def _present_inputs(self) -> tuple:
        """Return the objects that have to stay the same."""
        motion, events = self._motion, self._machine.events
        return (
            events[-1] if events else None, motion.com, motion.angular_momentum, motion.posture, motion.closed,
            *motion.limbs.values(), None, *motion.contacts.values(),
        )  # fmt: skip

    def observe(self, q: np.ndarray, v: np.ndarray) -> bool:
        """Update the terms to the state (q, v); return whether no contact slides and the robot is in balance.

        If not, or if nothing is laid out, the terms may be out of date.
        """
        if not self._observed or self._motion.closed is not self._closed:
            return False
        free_bounds = self._tasks.held.free_bounds
        if self._tasks.objects:
            self._terms.update(q, v)
            seen = kernel.look(*free_bounds, *self._observed)
        else:
            seen = kernel.observe(q, v, *free_bounds, *self._observed)
        self._is_settled = self._is_settled and seen != kernel.MOVED
        return seen != kernel.LOOK

    def respond(self, t: float, is_steady: bool) -> Solution | None:
        """Return the solution of the program at time t (s); None, without effect, if something has changed.

        If the state ``is_steady``, the rate of torques is bounded.
        """
        tasks, motion, last, start = self._tasks, self._motion, self._tasks.previous, time.perf_counter()
        if not is_unchanged(self._present_inputs(), self._inputs):
            return None
        if tasks.problem is not self._problem or (tables := self._problem.kernel_tables()) is not self._tables:
            return None
        assert tables is not None
        assert last is not None
        tasks.follow_limbs(t, motion)
        if self._is_settled and tasks.preload_drop_time == self._drop_time:
            poses = None
            for task, place in self._limbs:
                tables.values[place] = task.values
        elif tasks.held.stiffness_share < 1.0:
            return None
        else:  # force limits, or poses in free directions and on objects, have changed
            contacts, all_tasks, poses = tasks.prepare(t, self._terms, motion)
            if contacts is not tasks.contacts or all_tasks is not tasks.tasks:
                return None
            tables.refresh()
            self._is_settled, self._drop_time = tasks.is_settled(t, motion), tasks.preload_drop_time
        self._problem.begin()
        shapes = self._avoidance.begin(self._terms, motion, poses)
        is_bounded, (t_law, rate, change) = tasks.bounds_torques(is_steady), tasks.body.law_time(t, motion)
        solution, sent = Solution(tables), np.empty(self._sent_size)
        status = kernel.respond(
            self._avoidance.tick, is_bounded, last.f, last.tau, solution.numbers, sent, *shapes, t_law, rate, change,
            *self._fixed,
        )  # fmt: skip
        self.balance_error, near_count = self._report.tolist()
        self.torque = sent if self._impedance else solution.tau
        if status != SOLVED:
            self.torque = None
            tasks.held.turn_axes(self._terms)  # relaxed programs are filled from the constraints
            self._avoidance.near_count = int(near_count)
            tasks.bound_torques(is_bounded and self.balance_error <= self._largest_error)
        answer = self._problem.conclude(status, solution, tasks.tasks, start)
        return tasks.complete(t, self._terms, self._forces.references, answer)
