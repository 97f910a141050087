"""Run: samples of one simulation; saving, loading and conversion to pandas.

Sample k is the state at ``t[k]``; ``tau``, ``wrench`` and ``vd`` act on ``[t_k, t_k+1)``: ``v+ = v + dt vd``,
``q+ = integrate(q, v+, dt)``. With impacts ``vd = dv / dt`` and forces are impulse / dt.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.errors import InputError, Problem, RunError
from mcplan.record.records import ContactRecord, RunRecord
from mcplan.record.run_file import RUN_NAME, SHAPES, dtype_of, read_run, shape_problems, write_run
from mcplan.util.arguments import file_path
from mcplan.util.html_table import html_of, html_table
from mcplan.util.qp_status import HOLD, NO_QP, SLACK, SOLVED

QP_STATUSES = (SOLVED, SLACK, HOLD, NO_QP)
"""Possible values of ``qp_status``."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A simulation run of N samples with K contact points in total.

    Parameters
    ----------
    record : robot, scenario, plan and phases (``meta`` in the file).
    t : (N,) times, s.
    q, v, vd : (N, 7+n), (N, 6+n), (N, 6+n) configuration, velocity, acceleration.
    tau : (N, n) joint torques, N m.
    tau_ext : (N, 6+n) generalised forces other than commanded torques and contacts of patches: pushes, joint friction
        and limits, unplanned contacts, and the negative of commanded torque beyond the motor limits.
    wrench : (N, P, 6) wrench of the environment on each patch, at the patch origin, world axes.
    active : (N, P) whether the patch is in contact.
    phase : (N,) index into ``record.phases``.
    com : (N, 3) centre of mass, m.
    qp_status : (N,) status of the control program: 0 solved, 1 slack form, 2 hold, 3 none.
    qp_slack : (N,) constraint violation of the control program if it was not solved (m/s², rad/s², N); None in runs
        of earlier versions.
    point_start : (N+1,) the points of sample k are ``point_start[k]:point_start[k+1]``.
    point_link : (K,) index into the links, then the objects.
    point_patch : (K,) index into the patches, -1 for an unplanned contact.
    point_xyz, point_normal, point_force : (K, 3) position, normal away from the support, and force on the link, in
        world axes.
    object_q, object_v : (N, O, 7), (N, O, 6) pose and velocity of the free objects.
    timing : computing times per sample, by name, s; in a separate file, because they differ from run to run.
    live_plan : the simulated Plan object; None for a run loaded from a file.
    """

    record: RunRecord
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    vd: np.ndarray
    tau: np.ndarray
    tau_ext: np.ndarray
    wrench: np.ndarray
    active: np.ndarray
    phase: np.ndarray
    com: np.ndarray
    qp_status: np.ndarray
    point_start: np.ndarray
    point_link: np.ndarray
    point_patch: np.ndarray
    point_xyz: np.ndarray
    point_normal: np.ndarray
    point_force: np.ndarray
    object_q: np.ndarray | None = None
    object_v: np.ndarray | None = None
    qp_slack: np.ndarray | None = None
    timing: dict[str, np.ndarray] = field(default_factory=dict)
    live_plan: Any = field(default=None, repr=False)

    def __post_init__(self):
        """Check the consistency of the arrays.

        Raises
        ------
        RunError
            Arrays are inconsistent; the error has a message for each of them.
        """
        problems = [*shape_problems(self.record, self.shapes()), *self._dtype_problems()]
        if not problems:
            problems = self._index_problems()
        if problems:
            raise RunError(*problems)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        name = self.record.scenario.document.get("name") or self.record.robot.name
        end = f", stopped: {self.record.stopped}" if self.record.stopped else ""
        return f"Run({name!r}, {self.record.physics}, {len(self)} samples, {len(self) * self.dt:.3f} s{end})"

    def _repr_html_(self) -> str:
        """Return a table of the phases and their durations for notebooks."""
        phase_starts = np.flatnonzero(np.diff(self.phase, prepend=-1))
        phase_ends = np.append(phase_starts[1:], len(self))
        rows = (
            (self.phases[self.phase[k]], float(self.t[k]), float(end - k) * self.dt)
            for k, end in zip(phase_starts, phase_ends, strict=True)
        )
        return html_of(self, html_table(["phase", "from (s)", "for (s)"], rows))

    @property
    def dt(self) -> float:
        """Step, s."""
        return self.record.dt

    @property
    def patches(self) -> list[str]:
        """Names of the patches, in the order of the second axis of ``wrench`` and ``active``."""
        return self.record.patches

    @property
    def phases(self) -> list[str]:
        """Names of the phases, to which the indices ``phase`` refer."""
        return [phase.name for phase in self.record.phases]

    @cached_property
    def plan(self) -> Any:
        """The simulated Plan, rebuilt from the record if it is not in memory."""
        from mcplan.record.replica import rebuild_plan

        return self.live_plan or rebuild_plan(self.record)

    @property
    def scenario(self) -> Any:
        """The Scenario."""
        return self.plan.scenario

    @property
    def robot(self) -> Any:
        """The Robot."""
        return self.plan.scenario.robot

    @cached_property
    def loaded_robot(self) -> Any:
        """The Robot with the masses in the simulation, with payloads and the mass errors of ``record.world``."""
        from mcplan.record.world import with_inertias
        from mcplan.robot.description import Inertia

        links = self.record.world.links
        inertias = {name: Inertia(x.mass, np.array(x.com), np.array(x.inertia)) for name, x in links.items()}
        return with_inertias(self.robot, inertias) if inertias else self.robot

    def contacts(self, k: int) -> tuple[Any, ...]:
        """Return the planned contacts (``mcplan.scene.Contact``) of the patches that are in contact at sample k.

        They belong to the stances given by `stance_of`, and have the friction coefficients of the simulation.
        """
        key = int(self.phase[k]), self.active[k].tobytes()
        if key not in self._contacts:
            active = [self.patches[i] for i in np.flatnonzero(self.active[k])]
            planned = [self.plan.stances[self.stance_of(k, patch)].contact(patch) for patch in active]
            self._contacts[key] = tuple(self._actual_contact(contact) for contact in planned)
        return self._contacts[key]

    def _actual_contact(self, contact: Any) -> Any:
        """Return a contact with the friction in the simulation, also for the resting contact of its object."""
        carrier = contact.carrier
        if carrier is not None and carrier.rest is not None:
            resting_contact = replace(carrier.rest, friction=self._actual_friction(carrier.rest.friction, carrier.name))
            carrier = replace(carrier, rest=resting_contact)
        return replace(contact, friction=self._actual_friction(contact.friction, contact.support), carrier=carrier)

    def _actual_friction(self, friction: float, support: str) -> float:
        """Return the friction of a support or object in the simulation, from its value in the plan."""
        return friction * self.record.world.friction.get(support, 1.0)

    @cached_property
    def _contacts(self) -> dict[tuple[int, bytes], tuple[Any, ...]]:
        """Cache of `contacts` by phase and patches in contact."""
        return {}

    def stance_of(self, k: int, patch: str) -> int:
        """Return the index of the stance that plans the contact of a patch at sample k.

        Among the stances with a contact of the patch it is the nearest to the target stance of the sample.
        """
        return self._nearest_stance(self.phase[k], patch)

    def _nearest_stance(self, phase: int, patch: str) -> int:
        stances, target = self.record.plan.stances, self.record.phases[phase].stance or 0
        candidates = [i for i, stance in enumerate(stances) if stance.contact(patch)]
        return min(candidates, key=lambda i: abs(i - target))

    def planned(self, patch: str) -> list[ContactRecord | None]:
        """Return the planned contact of a patch in each phase, chosen as by `stance_of`; None if there is none."""
        stances = self.record.plan.stances
        if not any(stance.contact(patch) for stance in stances):
            return [None] * len(self.record.phases)
        return [stances[self._nearest_stance(phase, patch)].contact(patch) for phase in range(len(self.record.phases))]

    def patch_friction(self, patch: str) -> np.ndarray:
        """Return the friction coefficient (N,) of a patch's planned contact in the simulation; NaN without contact."""
        by_phase = []
        for contact in self.planned(patch):
            if contact is None or contact.kind == "grasp" or contact.friction is None:
                by_phase.append(np.nan)
            else:
                by_phase.append(self._actual_friction(contact.friction, contact.support))
        return np.array(by_phase)[self.phase]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the run by name, in the order of the file."""
        return {name: getattr(self, name) for name in SHAPES if getattr(self, name) is not None}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each array by name."""
        return {name: np.shape(array) for name, array in self.arrays().items()}

    def every(self, rate: float | None = None) -> np.ndarray:
        """Return the indices of samples at a given rate, with the first and the last one; by default all samples.

        Parameters
        ----------
        rate : samples per second; a rate above that of the run returns all samples.

        Raises
        ------
        InputError
            The rate is not positive.
        """
        if rate is None:
            return np.arange(len(self.t))
        if not rate > 0.0:
            raise InputError(f"rate {rate:g}: expected a positive number of samples per second")
        instants = np.arange(self.t[0], self.t[-1], max(1.0 / rate, self.dt))
        return np.unique(np.append(np.rint((instants - self.t[0]) / self.dt).astype(int), len(self.t) - 1))

    def to_pandas(self, rate: float | None = None) -> Any:
        """Return a ``pandas.DataFrame``: a row per sample, columns ``q.RLEG_JOINT0``, ``wrench.left_sole.fz``, ...

        Parameters
        ----------
        rate : rows per second; None: all samples.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise InputError("to_pandas needs the package pandas: pip install pandas") from error
        rows = self.every(rate)
        return pandas.DataFrame({name: column[rows] for name, column in table(self).items()})

    def points(self, k: int) -> slice:
        """Return the slice of the contact points of sample k."""
        return slice(int(self.point_start[k]), int(self.point_start[k + 1]))

    def point_sample(self) -> np.ndarray:
        """Return the sample index (K,) of each contact point."""
        return np.repeat(np.arange(len(self.t)), np.diff(self.point_start))

    def save(self, path: str | Path) -> Path:
        """Write the run; equal runs give identical files.

        Parameters
        ----------
        path : a file name ending in ``.npz``, or a directory for ``run.npz``, created if necessary.

        Returns
        -------
        The path of the run's file. Clock times, if any, go to a file beside it: ``timing.npz`` or ``NAME.timing.npz``.

        Raises
        ------
        InputError
            The path is invalid, is a file that is not a run, or cannot be written.
        """
        return write_run(path, self.record, self.arrays(), self.timing)

    def _dtype_problems(self) -> list[Problem]:
        return [
            Problem(None, None, name, f"elements are {array.dtype.str}, expected {dtype_of(name)}")
            for name, array in self.arrays().items()
            if array.dtype.str != dtype_of(name)
        ]

    def _index_problems(self) -> list[Problem]:
        record, start = self.record, self.point_start
        problems = []

        def check_range(name: str, low: int, high: int) -> None:
            array = getattr(self, name)
            invalid = np.flatnonzero((array < low) | (array >= high))
            if invalid.size:
                message = f"entry {invalid[0]} is {array[invalid[0]]}, outside [{low}, {high})"
                problems.append(Problem(None, None, name, message))

        check_range("phase", 0, len(record.phases))
        check_range("qp_status", min(QP_STATUSES), max(QP_STATUSES) + 1)
        check_range("point_patch", -1, len(record.patches))
        check_range("point_link", 0, len(record.links) + len(record.objects))
        if start[0] != 0 or start[-1] != len(self.point_xyz) or np.any(np.diff(start) < 0):
            message = f"does not increase from 0 to the {len(self.point_xyz)} points"
            problems.append(Problem(None, None, "point_start", message))
        return problems


def load_run(path: str | Path) -> Run:
    """Read a run.

    Parameters
    ----------
    path : the file, or the directory with ``run.npz``.

    Raises
    ------
    RunError
        The file is missing, damaged, of another version, or not a run; the message gives the reason and the place.
    """
    path = file_path("load_run", path)
    path = path / RUN_NAME if os.path.isdir(path) else path
    record, arrays = read_run(path)
    try:
        return Run(record, **arrays)  # type: ignore[arg-type]
    except RunError as error:
        raise RunError(*(Problem(str(path), None, p.key, p.message) for p in error.problems)) from error


XYZ = ("x", "y", "z")
BASE_Q = ("x", "y", "z", "qw", "qx", "qy", "qz")
BASE_V = ("vx", "vy", "vz", "wx", "wy", "wz")
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
"""Names of the components of vectors, of the base in ``q`` and ``v``, and of wrenches, in column names."""


def table(run: "Run") -> dict[str, np.ndarray]:
    """Return the columns of the table of samples by name: ``q.RLEG_JOINT0``, ``wrench.left_sole.fz``, ..."""
    joints = run.record.joints
    columns = {"t": run.t}

    def add(array: np.ndarray, names: Iterable[str]) -> None:
        columns.update({name: column for name, column in zip(names, array.T, strict=True)})

    add(run.q, [f"q.{name}" for name in (*(f"base.{part}" for part in BASE_Q), *joints)])
    for key in ("v", "vd", "tau_ext"):
        base = WRENCH if key == "tau_ext" else BASE_V
        add(getattr(run, key), [f"{key}.{name}" for name in (*(f"base.{part}" for part in base), *joints)])
    add(run.tau, [f"tau.{name}" for name in joints])
    for column, patch in enumerate(run.patches):
        add(run.wrench[:, column], [f"wrench.{patch}.{part}" for part in WRENCH])
    add(run.active.astype(int), [f"active.{patch}" for patch in run.patches])
    columns["phase"] = np.array(run.phases)[run.phase]
    add(run.com, [f"com.{axis}" for axis in XYZ])
    columns["qp_status"] = run.qp_status
    if run.qp_slack is not None:
        columns["qp_slack"] = run.qp_slack
    if run.object_q is not None and run.object_v is not None:
        for column, name in enumerate(run.record.objects):
            add(run.object_q[:, column], [f"object_q.{name}.{part}" for part in BASE_Q])
            add(run.object_v[:, column], [f"object_v.{name}.{part}" for part in BASE_V])
    return columns
