"""Comparison of a run with another engine: recomputed motion, distances, and the robot as read from its URDF.

Distances: the certificate selects the pairs to check (`mcplan.certificate.solids`). The engine measures their distances
between shapes that are read independently from the texts in the run (``engines/collision_shapes.py``). Signed distances
up to ``MAX_DISTANCE`` are compared for each pair of names (the minimum over several shapes of a link), at samples with
the period ``PERIOD_S``.

Robot: all other checks use the numbers in the record. Here these are compared with the URDF in the run: links (mass,
centre of mass and inertia of each rigid body), joints (position and axis), and limits. Limits that ``robot.yaml``
replaces are read from its text. Payloads and mass errors of the physics are not compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

from mcplan.certificate.clearance_checks import poses_of
from mcplan.certificate.engines.contract import BASE, Engine, JointDescription, Unsupported, body_row
from mcplan.certificate.engines.joints import EngineCoordinates, with_hinges
from mcplan.certificate.motion_checks import worst
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.report import Check, at_most
from mcplan.certificate.solids import ClearanceMonitor, gather_solids
from mcplan.errors import InputError
from mcplan.record.records import RobotRecord
from mcplan.record.world import with_imperfections

ENERGY_STEP = 1e-4
"""s: step of the difference quotient of energy. Its error, of fourth order, is
``ENERGY_STEP**4 E''''' / 30``, below rounding (some 1e-9 W) up to joint accelerations of 1e4 rad/s²."""


@dataclass(frozen=True, eq=False)
class RunMotion:
    """States of a robot at N samples, and the wrenches on its P patches, as in a run.

    Parameters
    ----------
    q, v, vd : (N, 7+n), (N, 6+n), (N, 6+n).
    wrench : (N, P, 6).
    """

    q: np.ndarray
    v: np.ndarray
    vd: np.ndarray
    wrench: np.ndarray


class EngineMotion:
    """Motion recomputed by an engine.

    Parameters
    ----------
    engine : engine, built from the same record.
    robot : record of the robot.
    motion : states and wrenches at N samples.

    Attributes
    ----------
    force : (N, 6+n) ``M vd + h - sum J' w`` in world axes, N and N m.
    com : (N, 3) m.
    R, p : (N, P, 3, 3), (N, P, 3) poses of the patch frames.
    twist : (N, P, 6) velocities of the patch origins, world axes.
    kinetic, potential : (N,) J, rotors included.
    """

    def __init__(self, engine: Engine, robot: RobotRecord, motion: RunMotion):
        self._engine, self._joints, self._motion = engine, EngineCoordinates(robot), motion
        q, v, vd = motion.q, motion.v, motion.vd
        self._x, self._u, self._a = self._joints.state(q), self._joints.rate(q, v), self._joints.acceleration(q, v, vd)
        samples = [engine.sample(*row) for row in zip(self._x, self._u, self._a, motion.wrench, strict=True)]
        force, com, R, p, twist, kinetic, potential = (np.array(values) for values in zip(*samples, strict=True))
        self.force = self._joints.force(q, vd, force)
        self.com, self.R, self.p, self.twist = com, R, p, twist
        self.kinetic, self.potential = kinetic + self._joints.rotor_energy(v), potential

    def next_configuration(self, dt: float) -> np.ndarray:
        """Return ``q`` of the following samples, (N-1, 7+n): ``integrate(q, v+, dt)`` by the engine."""
        motion, joints = self._motion, self._joints
        u = joints.step_rate(motion.q[:-1], motion.v[1:], dt)
        after = [self._engine.integrate(*row, dt) for row in zip(self._x[:-1], u, strict=True)]
        rows = [joints.configuration(q, x) for q, x in zip(motion.q[:-1], after, strict=True)]
        return np.array(rows).reshape(-1, motion.q.shape[1])

    def energy_rate(self, rows: np.ndarray) -> np.ndarray:
        """Return ``dE/dt`` (k,) of samples by differences of the engine's energy along the motion, W.

            dE/dt = (8 (E(s) - E(-s)) - (E(2s) - E(-2s))) / 12 s,   x(s) = integrate(x, u, s), u(s) = u + s a

        Only the tangent of this curve matters: ``dx/ds = u`` and ``du/ds = a`` at ``s = 0``. Neither inverse dynamics
        nor Jacobians are used.
        """
        rates = []
        for x, u, a in zip(self._x[rows], self._u[rows], self._a[rows], strict=True):
            energy = [
                self._engine.energy(self._engine.integrate(x, u, s * ENERGY_STEP), u + s * ENERGY_STEP * a)
                for s in _STENCIL_STEPS
            ]
            rates.append(float(np.dot(_STENCIL_WEIGHTS, energy)) / (12 * ENERGY_STEP))
        v, vd = self._motion.v[rows, 6:], self._motion.vd[rows, 6:]
        return np.array(rates) + (v * vd) @ self._joints.armature


_STENCIL_STEPS, _STENCIL_WEIGHTS = (-2.0, -1.0, 1.0, 2.0), (1.0, -8.0, 8.0, -1.0)


MAX_DISTANCE, PERIOD_S = 0.05, 0.02
"""m: larger distances are not compared; s: period of the compared samples."""

DISTANCE_TOLERANCE = 1e-6
"""m: tolerance of distances; both algorithms iterate to smaller errors."""

DEPTH_TOLERANCE = 1e-4
"""m: tolerance of penetration depths: their minimisation over directions has several local minima."""


def distance_checks(engine: type[Engine], evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the check of distances, if the engine measures them.

    Runs without shapes, or with shapes that the engine does not support, are not compared; the check says so.
    """
    run, name = evidence.run, f"{engine.name}: distances"
    if engine.shapes is Engine.shapes:
        return
    has_files = "robot.urdf" in run.record.robot.files and (run.live_plan is not None or run.record.plan.document)
    try:
        shapes = engine.shapes(run.record) if has_files else None
        scenario = run.scenario if has_files else None
    except Unsupported as error:
        yield Check(name, None, "m", "", True, f"not compared: {error}")
        return
    except InputError as error:
        yield Check(name, None, "m", f"<= {DISTANCE_TOLERANCE:g}", False, "", f"{engine.name}: {error}")
        return
    if shapes is None or scenario is None:
        yield Check(name, None, "m", "", True, "not compared: this run has no files of robot and plan")
        return
    solids = gather_solids(scenario.robot, run.record.robot, with_imperfections(scenario.environment, run.record.world))
    names = [(solids.names[i], solids.names[j]) for i, j in solids.pairs]
    pairs = list(dict.fromkeys(names))
    if not pairs:
        yield Check(name, None, "m", "", True, "there is nothing that could collide")
        return
    column = np.array([pairs.index(pair) for pair in names])
    step = max(1, round(PERIOD_S / run.dt))
    rows = np.unique([*range(0, len(run), step), len(run) - 1])
    x = EngineCoordinates(run.record.robot).state(run.q[rows])
    ours, theirs = np.full((len(pairs), len(rows)), MAX_DISTANCE), np.empty((len(rows), len(pairs)))
    np.minimum.at(ours, column, ClearanceMonitor(solids, 0.0).distances(*poses_of(evidence, rows), MAX_DISTANCE).T)
    ours = ours.T
    for k, row in enumerate(rows):
        poses = {} if run.object_q is None else dict(zip(run.record.objects, run.object_q[row], strict=True))
        theirs[k] = shapes.distances(x[k], poses, pairs, MAX_DISTANCE)
    deviation, allowed = (
        np.abs(theirs - ours),
        np.where(np.minimum(ours, theirs) < 0, DEPTH_TOLERANCE, DISTANCE_TOLERANCE),
    )
    k, i = worst(deviation / allowed)
    value, (a, b) = float(deviation[k, i]), pairs[i]
    where = f"{a} and {b}, {evidence.time(int(rows[k]))}"
    failure = (
        f"{engine.name}: distance of {where}: {theirs[k, i]:.9g} instead of {ours[k, i]:.9g} m "
        f"({np.count_nonzero(deviation > allowed)} of "
        f"{np.count_nonzero(np.minimum(ours, theirs) < MAX_DISTANCE)} distances)"
    )
    yield at_most(name, value, "m", float(allowed[k, i]), where, failure)


SAME_DIGITS = 1e-9
"""Largest relative difference (absolute below 1) of numbers that both sides read from the same digits."""

NO_LIMIT = 1e9
"""Larger limits count as none: for a missing limit, readers return the largest double, infinity, or nothing."""

LIMIT_KINDS = ("lower", "upper", "velocity", "torque")


def description_checks(engine: type[Engine], robot: RobotRecord) -> Iterator[Check]:
    """Yield the checks of links and limits; a run without URDF is not compared, and the checks say so."""
    names = [f"{engine.name}: {quantity}" for quantity in ("links", "limits")]
    if "robot.urdf" not in robot.files:
        for name in names:
            yield Check(name, None, "relative", "", True, "not compared: this run has no URDF")
        return
    try:
        found = engine.read_urdf(with_hinges(robot.files["robot.urdf"]))
        settings = yaml.safe_load(robot.files.get("robot.yaml", ""))
        replaced_limits = (settings.get("limits") if isinstance(settings, dict) else None) or {}
    except (ValueError, RuntimeError, yaml.YAMLError) as error:
        text = f"{engine.name} cannot read the files of the robot in this run: {error}"
        for name in names:
            yield Check(name, None, "relative", f"<= {SAME_DIGITS:g}", False, "robot.urdf", text)
        return
    yield _links(engine.name, robot, found)
    yield _limits(engine.name, robot, found, replaced_limits)


def _links(engine: str, robot: RobotRecord, found: dict[str, JointDescription]) -> Check:
    """Compare bodies and joints with all joints at zero."""
    declared = _declared_bodies(robot)
    largest, where, failures = 0.0, "", []
    for name in sorted(set(declared) ^ set(found)):
        side = engine if name in found else "the run"
        failures.append(f"only {side} has a joint {name} that moves")
    for name in sorted(set(declared) & set(found)):
        ours, theirs = declared[name], found[name]
        scale = max(1.0, float(np.abs(ours[0]).max()), float(np.abs(ours[1]).max()))
        rows = (("mass and inertia", 0), ("place of the joint", 1), ("axis", 2))
        for quantity, row in rows:
            deviation = float(np.abs(ours[row] - theirs[row]).max()) / scale
            if not deviation <= largest or not where:
                largest, where = deviation, f"{quantity}, {name or BASE}"
            if not deviation <= SAME_DIGITS:
                failures.append(f"{engine}: {quantity} of {name or BASE} differs by {deviation * scale:.4g}")
    return Check(
        f"{engine}: links", largest, "relative", f"<= {SAME_DIGITS:g}", not failures, where, "; ".join(failures)
    )  # fmt: skip


def _declared_bodies(robot: RobotRecord) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return, by joint, its rigid body (10,), position (3,) and axis (3,), with all joints at zero."""
    names, R, p = {0: BASE}, {0: np.eye(3)}, {0: np.zeros(3)}
    found = {BASE: (np.zeros(10), np.zeros(3), np.zeros(3))}
    for joint in robot.joints:
        parent, child = joint.parent, joint.child
        R[child], p[child] = R[parent] @ np.array(joint.R), p[parent] + R[parent] @ np.array(joint.p)
        names[child] = names[parent] if joint.kind == "fixed" else joint.name
        if joint.kind != "fixed":
            found[joint.name] = (np.zeros(10), p[child], R[child] @ np.array(joint.axis))
    for i, link in enumerate(robot.links):
        found[names[i]][0][:] += body_row(link.mass, np.array(link.com), np.array(link.inertia), R[i], p[i])
    return found


def _limits(
    engine: str, robot: RobotRecord, found: dict[str, JointDescription], replaced_limits: dict[str, dict[str, Any]]
) -> Check:
    largest, where, failures = 0.0, "", []
    for i, joint in enumerate(robot.coordinates):
        for kind in LIMIT_KINDS if joint in found else ():
            theirs, ours = _limit(found[joint], replaced_limits.get(joint) or {}, kind), getattr(robot, kind)[i]
            if np.isnan(theirs):
                continue
            ours = _finite(np.inf * (-1 if kind == "lower" else 1) if ours is None else ours)
            deviation = 0.0 if theirs == ours else abs(theirs - ours) / max(1.0, min(abs(theirs), abs(ours)))
            if deviation > largest or not where:
                largest, where = deviation, f"{kind} of {joint}"
            if deviation > SAME_DIGITS:
                failures.append(f"{engine}: {kind} limit of {joint} is {theirs:.9g} instead of {ours:.9g}")
    return Check(
        f"{engine}: limits",
        largest,
        "relative",
        f"<= {SAME_DIGITS:g}",
        not failures,
        where,
        "; ".join(failures),
    )


def _limit(joint: JointDescription, replaced_limits: dict[str, Any], kind: str) -> float:
    return _finite(float(getattr(joint, kind) if replaced_limits.get(kind) is None else replaced_limits[kind]))


def _finite(value: float) -> float:
    return float(np.sign(value)) * np.inf if abs(value) > NO_LIMIT else value
