"""Run recorder: collects the samples of a simulation into a Run."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
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
from mcplan.util.qp_status import SOLVED
from mcplan.version import __version__

SAMPLE_ARRAYS = (
    "t", "q", "v", "vd", "tau", "tau_ext", "active", "wrench", "phase", "qp_status", "qp_slack", *OBJECT_ARRAYS,
)  # fmt: skip
"""Arrays of the run with one row per sample, in the order of their columns."""

POINT_FIELDS = ("link", "patch", "xyz", "normal", "force")
"""Values of each contact point: the arrays ``point_link`` to ``point_force`` of the run."""


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
        self._samples = _Table({name: (self._size(name), dtype_of(name)) for name in SAMPLE_ARRAYS})
        self._points = _Table({"labels": ((2,), dtype_of("point_link")), "values": ((9,), dtype_of("point_xyz"))})
        self._point_start = [0]
        self._planned: dict[tuple[str, int | None, int], _PlannedPoints] = {}
        self._phases: list[dict[str, Any]] = []  # checked at the end: that takes a tenth of a tick
        self._phase_index: dict[tuple[str, int | None], int] = {}
        self._phase = -1
        self._current_phase: tuple[str, int | None] | None = None
        self._timing: defaultdict[str, list[float]] = defaultdict(list)

    def __len__(self) -> int:
        return self._samples.count

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
    ) -> None:
        """Record one sample: the state at t, and torques and forces from t to t + dt.

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
        """
        self._enter_phase(phase)
        if isinstance(forces_at_points, PointForces):
            self._add_points(forces_at_points)
        else:
            for name in wrenches:
                # a grasp has no points: its force acts at the patch origin, the moment is in the wrench
                self._add_patch_points(name, forces_at_points[name] if name in forces_at_points else wrenches[name][:3])
        if object_points is not None:
            self._add_points(object_points)
        self._point_start.append(self._points.count)
        k, columns = self._samples.append(1).start, self._samples.columns
        ts, qs, vs, vds, taus, taus_ext, actives, wrench_rows, phases, statuses, slacks, object_qs, object_vs = columns
        ts[k], qs[k], vs[k], vds[k], taus[k] = t, q, v, vd, tau
        if tau_ext is not None:
            taus_ext[k] = tau_ext
        index = self.patch_index
        for name in active:
            actives[k, index[name]] = True
        for name, value in wrenches.items():
            wrench_rows[k, index[name]] = value
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

    def object_points(self, loads: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]) -> PointForces | None:
        """Return the contact points of objects, given their positions, normals and forces (k, 3) by object."""
        if not loads:
            return None
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
        points = PointForces(**self._points.arrays())
        arrays = self._samples.arrays() | {f"point_{name}": getattr(points, name).copy() for name in POINT_FIELDS}
        if not self.objects:
            for name in OBJECT_ARRAYS:
                del arrays[name]
        self._fill_planned_points(arrays)
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
            point_start=np.array(self._point_start, "<i8"),
            timing=timing,
            live_plan=self._live_plan,
            **arrays,
        )

    def _size(self, name: str) -> tuple[int, ...]:
        return tuple(self._sizes[size] if isinstance(size, str) else size for size in SHAPES[name][1:])

    def _enter_phase(self, phase: tuple[str, int | None]) -> None:
        if phase == self._current_phase:
            return
        if phase not in self._phase_index:
            self._phase_index[phase] = len(self._phases)
            self._phases.append({"name": phase[0], "stance": phase[1]})
        self._phase, self._current_phase = self._phase_index[phase], phase

    def _planned_points(self, patch: str, count: int) -> "_PlannedPoints":
        """Return the points of the planned contact of a patch in this phase, if their number is ``count``."""
        stance = self._phases[self._phase]["stance"]
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

    def _add_patch_points(self, patch: str, forces: np.ndarray) -> None:
        """Store the forces (k, 3) of a patch; `finish` computes the positions of its points for all samples at once."""
        count = np.size(forces) // 3
        planned = self._planned_points(patch, count)
        planned.samples.append(len(self))
        planned.first_rows.append(self._points.count)
        rows = self._points.append(count)
        self._points.columns[1][rows, 6:] = forces

    def _add_points(self, points: PointForces) -> None:
        rows = self._points.append(len(points.labels))
        labels, values = self._points.columns
        labels[rows], values[rows] = points

    def _fill_planned_points(self, arrays: dict[str, np.ndarray]) -> None:
        """Fill in the positions and normals of planned contact points: ``R_WP points + p_WP`` at each sample."""
        for planned in self._planned.values():
            rows = np.array(planned.first_rows)[:, None] + np.arange(len(planned.points))
            q = arrays["q"][planned.samples]
            finite = np.isfinite(q).all(axis=1)
            X = np.full((len(q), 4, 4), np.nan)
            X[finite] = self.robot.frame_pose(q[finite], planned.patch)
            arrays["point_link"][rows], arrays["point_patch"][rows] = planned.link, self.patch_index[planned.patch]
            arrays["point_normal"][rows] = planned.normals(X[:, :3, :3], self._carrier(planned, arrays))
            R = np.array(planned.contact.R)[None] if planned.contact.radius else X[:, :3, :3]
            arrays["point_xyz"][rows] = planned.points @ R.transpose(0, 2, 1) + X[:, None, :3, 3]

    def _carrier(self, planned: "_PlannedPoints", arrays: dict[str, np.ndarray]) -> np.ndarray | None:
        """Return the poses (k, 7) of the object that carries a planned contact, at its samples, or None."""
        names = [body.name for body in self._plan.bodies]
        if planned.contact.carrier not in names or "object_q" not in arrays:
            return None
        return arrays["object_q"][planned.samples, names.index(planned.contact.carrier)]


class _PlannedPoints:
    """Points of one planned contact in patch axes, and where they occur in the record.

    Attributes
    ----------
    samples : indices of the samples with this contact.
    first_rows : for each of these samples, the first row of the points in the arrays of points.
    """

    def __init__(self, patch: str, link: int, contact: ContactRecord):
        self.patch, self.link, self.contact, self.points = patch, link, contact, np.array(contact.points)
        self.samples: list[int] = []
        self.first_rows: list[int] = []

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


BLOCK_ROWS = 4096
"""Rows that are allocated at once. Arrays that grow by copying would take a whole tick now and then."""


class _Table:
    """Columns with a common number of rows, initially zero, in blocks that are joined at the end.

    Parameters
    ----------
    columns : name -> shape of a row, and element type.

    Attributes
    ----------
    columns : the arrays of the present block, in the order of their names.
    count : number of rows in all blocks.
    """

    def __init__(self, columns: Mapping[str, tuple[tuple[int, ...], str]]):
        self._shapes, self.count = columns, 0
        self._full: list[list[np.ndarray]] = []
        self._begin_block()

    def _begin_block(self) -> None:
        # zeros cost no memory until they are written
        self.columns = [np.zeros((BLOCK_ROWS, *shape), dtype) for shape, dtype in self._shapes.values()]
        self._used = 0

    def append(self, count: int) -> slice:
        """Add ``count`` rows of zeros to the present block, or to a new one; return their place in it."""
        first = self._used
        if first + count > BLOCK_ROWS:
            self._full.append([column[:first] for column in self.columns])
            self._begin_block()
            first = 0
        self._used, self.count = first + count, self.count + count
        return slice(first, self._used)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all rows by name."""
        blocks = [*self._full, [column[: self._used] for column in self.columns]]
        return dict(zip(self._shapes, map(np.concatenate, zip(*blocks, strict=True)), strict=True))
