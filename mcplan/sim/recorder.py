"""Run recorder: collects the samples of a simulation into a Run."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.control.command import Notice
from mcplan.planning.plan import Plan
from mcplan.planning.plan_file import plan_document
from mcplan.record.recording import record_document, record_plan, record_robot
from mcplan.record.records import ContactRecord, NoticeRecord, PhaseRecord, RunRecord, WorldRecord
from mcplan.record.run import Run
from mcplan.record.run_file import OBJECT_ARRAYS, SHAPES, dtype_of
from mcplan.robot.pose import rotation_from_quat
from mcplan.robot.robot import Robot
from mcplan.sim.physics import PointForces
from mcplan.util.arrays import read_only
from mcplan.util.qp_status import SOLVED
from mcplan.version import __version__

SAMPLE_ARRAYS = (
    "t", "q", "v", "vd", "tau", "tau_ext", "active", "wrench", "phase", "qp_status", "qp_slack", *OBJECT_ARRAYS,
)  # fmt: skip
"""Arrays of the run with one row per sample, in the order of their columns."""

POINT_FIELDS = ("link", "patch", "xyz", "normal", "force")
"""Values of each contact point: the arrays ``point_link`` to ``point_force`` of the run."""

BLOCK_ROWS = 2048
"""Rows that are allocated at once. Arrays that grow by copying would take a whole tick now and then."""


class RunRecorder:
    """Collects the samples of one simulation.

    Parameters
    ----------
    plan : the simulated plan.
    dt : simulation step, s.
    physics : ``qp``, ``contact`` or ``mujoco``.
    seed : seed of all random numbers of the run.
    controller : class name of a custom controller; empty for the whole-body program.
    """

    def __init__(self, plan: Plan, dt: float, physics: str = "qp", seed: int = 0, controller: str = ""):
        scenario = plan.scenario
        self.robot = robot = scenario.robot
        self._live_plan, self._robot_record = plan, record_robot(robot)
        self._plan = record_plan(plan, plan_document(plan, Path(scenario.path).parent))
        self._scenario = record_document(dict(scenario.document.data))
        self._dt, self._physics, self._seed, self._controller = float(dt), physics, int(seed), controller
        planned_patches = {contact.patch for stance in self._plan.stances for contact in stance.contacts}
        self.patches: list[str] = [name for name in robot.patches if name in planned_patches]
        self._world = WorldRecord()
        self.patch_index = {name: i for i, name in enumerate(self.patches)}
        n = len(robot.joint_names)
        self.objects = [thing.name for thing in plan.scenario.environment.objects]
        self._sizes = {"n": n, "nv": 6 + n, "nq": 7 + n, "P": len(self.patches), "objects": len(self.objects)}
        self._row_type = np.dtype([(name, dtype_of(name), self._size(name)) for name in SAMPLE_ARRAYS], align=True)
        self._blocks: list[np.ndarray] = []
        self._begin_block()
        # arrays, because objects with references make the garbage collector search all objects now and then: 100 ms
        self._labels, self._values = ([array] for array in _blank_points(0))
        self._planned: dict[tuple[str, int | None, int], _PlannedPoints] = {}
        self._phases: list[dict[str, Any]] = []  # checked at the end: that takes a tenth of a tick
        self._phase_index: dict[tuple[str, int | None], int] = {}
        self._phase = -1
        self._current_phase: tuple[str, int | None] | None = None
        self._stance: int | None = None
        self._active: tuple[str, ...] = ()
        self._is_active = np.zeros(len(self.patches), bool)
        self._timing: defaultdict[str, list[float]] = defaultdict(list)

    def __len__(self) -> int:
        return (len(self._blocks) - 1) * BLOCK_ROWS + self._used

    def _begin_block(self) -> None:
        # zeros cost no memory until they are written
        self._blocks.append(np.zeros(BLOCK_ROWS, self._row_type))
        self._columns, self._used = [self._blocks[-1][name] for name in SAMPLE_ARRAYS], 0

    def set_world(self, world: WorldRecord, robot: Robot) -> None:
        """Set the model errors of the physics, and its robot; the recorded centre of mass is that of this robot."""
        self._world, self.robot = world, robot

    def append(
        self,
        t: float,
        q: np.ndarray,
        v: np.ndarray,
        vd: np.ndarray,
        tau: np.ndarray,
        tau_ext: np.ndarray | None,
        wrenches: Mapping[str, np.ndarray],
        forces_at_points: Mapping[str, np.ndarray] | PointForces,
        active: Iterable[str],
        phase: tuple[str, int | None],
        qp_status: int,
        timing: Mapping[str, float] | None = None,
        objects: tuple[np.ndarray, np.ndarray] | None = None,
        object_points: PointForces | None = None,
        violation: float = 0.0,
        wrench_table: np.ndarray | None = None,
    ) -> None:
        """Record one sample: the state at t, and torques and forces from t to t + dt.

        Read-only arrays of points are not copied.

        Parameters
        ----------
        t : time, s.
        q, v, vd : (7+n,), (6+n,), (6+n,) configuration, velocity and acceleration.
        tau : (n,) joint torques, N m.
        tau_ext : (6+n,) generalised forces other than ``tau`` and ``wrenches``; None: there are none.
        wrenches : wrench of each patch, (6,) at the patch origin, world axes.
        forces_at_points : forces of each patch at the points of its planned contact, (k, 3), world axes (not for a
            grasp); or the contact points of a back end.
        active : names of the patches in contact.
        phase : name of the state machine's phase, and index of the plan's stance that it leads to.
        qp_status : 0 solved, 1 slack form, 2 hold, 3 none.
        timing : computing times of this step by name, s.
        objects : poses (O, 7) and velocities (O, 6) of the free objects at t; required if there are any.
        object_points : contact points of the objects that are not among ``forces_at_points``.
        violation : constraint violation of the control program if it was not solved (m/s², rad/s², N).
        wrench_table : (P, 6) ``wrenches`` in the order of ``patches``, if the back end has such a table.
        """
        if phase != self._current_phase:
            self._enter_phase(phase)
        if not isinstance(forces_at_points, PointForces):
            forces_at_points = self._add_planned_points(wrenches, forces_at_points)
        if object_points is not None:
            forces_at_points = forces_at_points.joined(object_points)
        self._labels.append(_kept(forces_at_points.labels))
        self._values.append(_kept(forces_at_points.values))
        if self._used == BLOCK_ROWS:
            self._begin_block()
        k, self._used = self._used, self._used + 1
        (
            ts, qs, vs, vds, taus, taus_ext, actives, wrench_rows, phases, statuses, slacks, object_qs, object_vs,
        ) = self._columns  # fmt: skip
        ts[k], qs[k], vs[k], vds[k], taus[k] = t, q, v, vd, tau
        if tau_ext is not None:
            taus_ext[k] = tau_ext
        if (names := tuple(active)) != self._active:
            self._active, self._is_active = names, np.zeros(len(self.patches), bool)
            self._is_active[[self.patch_index[name] for name in names]] = True
        actives[k] = self._is_active
        if wrench_table is not None:
            wrench_rows[k] = wrench_table
        else:
            for name in wrenches:
                wrench_rows[k, self.patch_index[name]] = wrenches[name]
        phases[k], statuses[k] = self._phase, qp_status
        if qp_status != SOLVED:
            slacks[k] = violation
        if self.objects:
            if objects is None:
                raise ValueError(f"no poses of the objects {', '.join(self.objects)}")
            object_qs[k], object_vs[k] = objects
        if timing is not None:
            for name, seconds in timing.items():
                self._timing[name].append(seconds)

    def object_points(self, loads: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]) -> PointForces:
        """Return the contact points of objects, given their positions, normals and forces (k, 3) by object."""
        first = len(self._robot_record.links)
        link = [np.full(len(xyz), first + self.objects.index(name)) for name, (xyz, _, _) in loads.items()]
        xyz, normal, force = (np.concatenate(column) for column in zip(*loads.values(), strict=True))
        links = np.concatenate(link)
        return PointForces.of(links, np.full(len(links), -1), xyz, normal, force)

    def end_phase(self, criterion: str) -> None:
        """Record which criterion ended the present phase; the next sample begins a new one, even of the same name."""
        if self._phase >= 0:
            self._phases[self._phase]["ended_by"] = criterion
            self._phase_index.clear()
            self._current_phase = None

    def finish(self, stopped: str | None = None, notices: Iterable[Notice] = ()) -> Run:
        """Return the run of all samples recorded so far.

        Parameters
        ----------
        stopped : reason of a failure; None if the state machine reached its end.
        notices : events that the plan did not foresee.

        Raises
        ------
        RunError
            Nothing was recorded.
        """
        blocks = [*self._blocks[:-1], self._blocks[-1][: self._used]]
        arrays = {name: np.concatenate([block[name] for block in blocks]) for name in SAMPLE_ARRAYS}
        points = PointForces(np.concatenate(self._labels), np.concatenate(self._values))
        arrays |= {f"point_{name}": getattr(points, name).copy() for name in POINT_FIELDS}
        if not self.objects:
            for name in OBJECT_ARRAYS:
                del arrays[name]
        point_start = np.cumsum([len(labels) for labels in self._labels])
        self._fill_planned_points(arrays, point_start)
        q = arrays["q"]
        finite = np.isfinite(q).all(axis=1)
        arrays["com"] = np.full((len(q), 3), np.nan)
        arrays["com"][finite] = self.robot.com(q[finite])
        record = RunRecord(
            mcplan_run=1,
            mcplan=__version__,
            dt=self._dt,
            physics=self._physics,
            seed=self._seed,
            controller=self._controller,
            joints=list(self.robot.joint_names),
            links=[link.name for link in self._robot_record.links],
            patches=self.patches,
            objects=self.objects,
            phases=[PhaseRecord(**phase) for phase in self._phases],
            notices=[NoticeRecord.model_validate(notice._asdict()) for notice in notices],
            stopped=stopped,
            robot=self._robot_record,
            scenario=self._scenario,
            plan=self._plan,
            world=self._world,
        )
        timing = {name: np.array(values) for name, values in self._timing.items()}
        return Run(
            record=record,
            point_start=point_start,
            timing=timing,
            live_plan=self._live_plan,
            **arrays,
        )

    def _size(self, name: str) -> tuple[int, ...]:
        return tuple(self._sizes[size] if isinstance(size, str) else size for size in SHAPES[name][1:])

    def _enter_phase(self, phase: tuple[str, int | None]) -> None:
        if phase not in self._phase_index:
            self._phase_index[phase] = len(self._phases)
            self._phases.append({"name": phase[0], "stance": phase[1]})
        self._phase, self._current_phase, self._stance = self._phase_index[phase], phase, phase[1]

    def _add_planned_points(self, wrenches: Mapping[str, np.ndarray], forces: Mapping[str, np.ndarray]) -> PointForces:
        """Record the forces (k, 3) at the points of planned contacts; return the points, which `finish` fills in."""
        k, count = len(self), 0
        for patch in wrenches:
            # a grasp has no points: its force acts at the patch origin, the moment is in the wrench
            force = forces[patch] if patch in forces else wrenches[patch][:3]
            planned = self._planned_contact(patch, force.size // 3)
            planned.samples.append(k)
            planned.first_rows.append(count)
            planned.forces.append(force.copy())
            count += force.size // 3
        return _blank_points(count)

    def _planned_contact(self, patch: str, count: int) -> "_PlannedPoints":
        """Return the points of the planned contact of a patch in this phase, if their number is ``count``."""
        stance = self._stance
        key = (patch, stance, count)
        if key not in self._planned:
            stances = self._plan.stances
            order = sorted(range(len(stances)), key=lambda i: abs(i - (stance or 0)))
            candidates = [
                c for c in (stances[i].contact(patch) for i in order) if c is not None and len(c.points) == count
            ]
            if not candidates:
                raise ValueError(f"no planned contact of {patch} has {count} points")
            link = next(p.link for p in self._robot_record.patches if p.name == patch)
            self._planned[key] = _PlannedPoints(patch, link, candidates[0])
        return self._planned[key]

    def _fill_planned_points(self, arrays: dict[str, np.ndarray], point_start: np.ndarray) -> None:
        """Fill in the planned contact points, with their positions ``R_WP points + p_WP`` at each sample."""
        for planned in self._planned.values():
            first_rows = point_start[planned.samples] + planned.first_rows
            rows = first_rows[:, None] + np.arange(len(planned.points))
            q = arrays["q"][planned.samples]
            finite = np.isfinite(q).all(axis=1)
            X = np.full((len(q), 4, 4), np.nan)
            X[finite] = self.robot.frame_pose(q[finite], planned.patch)
            arrays["point_link"][rows], arrays["point_patch"][rows] = planned.link, self.patch_index[planned.patch]
            arrays["point_normal"][rows] = planned.normals(X[:, :3, :3], self._carrier(planned, arrays))
            R = np.array(planned.contact.R)[None] if planned.contact.radius else X[:, :3, :3]
            arrays["point_force"][rows] = np.reshape(planned.forces, (*rows.shape, 3))
            arrays["point_xyz"][rows] = planned.points @ R.transpose(0, 2, 1) + X[:, None, :3, 3]

    def _carrier(self, planned: "_PlannedPoints", arrays: dict[str, np.ndarray]) -> np.ndarray | None:
        """Return the poses (k, 7) of the object that carries a planned contact, at its samples, or None."""
        names = [body.name for body in self._plan.bodies]
        if planned.contact.carrier not in names or "object_q" not in arrays:
            return None
        return arrays["object_q"][planned.samples, names.index(planned.contact.carrier)]


@lru_cache
def _blank_points(count: int) -> PointForces:
    return PointForces(read_only(np.zeros((count, 2), np.int64)), read_only(np.zeros((count, 9))))


def _kept(array: np.ndarray) -> np.ndarray:
    """Return an array that its owner does not change."""
    return array.copy() if array.flags.writeable else array


class _PlannedPoints:
    """Points of one planned contact in patch axes, and where they occur in the record.

    Attributes
    ----------
    samples : indices of the samples with this contact.
    first_rows, forces : for each of these samples, the first row of the points among those of the sample, and their
        forces (k, 3).
    """

    def __init__(self, patch: str, link: int, contact: ContactRecord):
        self.patch, self.link, self.contact, self.points = patch, link, contact, np.array(contact.points)
        self.samples: list[int] = []
        self.first_rows: list[int] = []
        self.forces: list[np.ndarray] = []

    def normals(self, R: np.ndarray, carrier: np.ndarray | None = None) -> np.ndarray:
        """Return the normals (k, 1, 3) of the contact.

        Parameters
        ----------
        R : (k, 3, 3) rotations of the patch; the normal of a rolling contact turns with it.
        carrier : (k, 7) poses of the object that carries the contact, with which its normal turns; None: a support of
            the environment.
        """
        normal, rotation = np.array(self.contact.axes)[:, 2], np.eye(3)
        if self.contact.rolls:
            rotation = R @ np.array(self.contact.R).T
        elif carrier is not None and self.contact.carrier_pose is not None:
            initial_inverse = rotation_from_quat(self.contact.carrier_pose[3:]).T
            rotation = np.array([rotation_from_quat(pose[3:]) for pose in carrier]) @ initial_inverse
        return np.atleast_2d(rotation @ normal)[:, None]
