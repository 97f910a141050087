"""Reproduction of a run by another engine, which recomputes it; all results are compared with the certificate's.

The bound of each relative difference is 1e-6 (``AGREEMENT``). Compared quantities and their scales:

- generalised forces ``M vd + h - sum J' w``, relative to the largest force or moment of the sample, weight included;
- centre of mass and patch poses, relative to 1 m, or to the distance from the origin if that is larger; rotations by
  the entries of their matrices;
- velocities of patches, relative to 1 m/s (rad/s), or to the fastest coordinate of the sample. The certificate has no
  velocities; they follow from the power of its contact forces, ``w . (J v) = (J' w) . v``;
- kinetic and potential energy, relative to the greater of the two and to ``m g`` times 1 m;
- power: the rate of the engine's energy against the power of torques, wrenches and external forces, relative to the sum
  of the magnitudes, or to 1 W;
- links, joint limits and distances: see `mcplan.certificate.engine_checks`.

Two further checks use the engine alone: the equation of motion with its forces, relative to the largest force of the
sample (``EQUATION``), and the integration of state and velocity by its integrator, relative to the largest number in
the row, or to 1 (``INTEGRATION``). Both equations hold to rounding in every back end, because a run continues with the
recorded numbers (largest residuals found: 8e-14 and 3e-15). So their bounds are about a hundred times the rounding, far
below those of the certificate, which are set by physically relevant errors. They detect that a single number is changed
by 1e-3 of its value, if the number is larger than

- 1e-8 of the largest force of the sample, of ``tau`` and ``wrench`` (5e-6 N for a humanoid);
- 1e-9 m or rad, of ``q``, where the robot is within 1 m of the origin; 1e-3 m, of ``com``;
- 1e-9 / dt, of ``vd`` (1e-6 m/s² or rad/s² at 1 kHz); in the last sample, which has no successor, if the force due to
  ``vd`` is larger than the limit of ``tau`` above.

Changes of smaller numbers are lost in rounding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.certificate.engine_checks import EngineMotion, RunMotion, description_checks, distance_checks
from mcplan.certificate.engines import engine_class
from mcplan.certificate.engines.contract import STANDARD_GRAVITY, Engine
from mcplan.certificate.independent import Mechanism, configuration_difference
from mcplan.certificate.motion_checks import worst
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.report import Check, Report, at_most
from mcplan.certificate.verify import finite_samples, first_samples, json_number, verify
from mcplan.errors import InputError, RunError
from mcplan.record.records import BodyRecord, LinkRecord, RobotRecord
from mcplan.record.run import Run, load_run

AGREEMENT = 1e-6
"""Largest relative difference between an engine and the certificate."""

EQUATION, INTEGRATION = 1e-11, 1e-12
"""Largest relative residuals of the equation of motion, and of the integration of states."""

PERIOD_S = 0.020
"""s: period of the samples at which velocities, energy and power are compared; the others use every sample."""


class Reproduction:
    """Comparison of a run recomputed by an engine with the certificate's recomputation.

    Parameters
    ----------
    engine : class of the engine.
    evidence : the run recomputed by the certificate.
    """

    def __init__(self, engine: type[Engine], evidence: RecomputedRun):
        self.evidence, self.run, self.robot = evidence, evidence.run, evidence.mechanism.record
        self.name, run = engine.name, evidence.run
        self._engine_class = engine
        motion = RunMotion(run.q, run.v, run.vd, run.wrench)
        try:
            built = engine(self.robot, run.patches)
        except (ValueError, RuntimeError) as error:
            raise RunError(f"{engine.name} refuses the robot of this run: {error}") from error
        self.found = EngineMotion(built, self.robot, motion)
        step = max(1, round(PERIOD_S / run.dt))
        self.rows = np.unique([*range(0, len(run), step), len(run) - 1])

    def checks(self) -> Iterator[Check]:
        """Yield all checks of the engine."""
        yield self._forces()
        yield self._equation_of_motion()
        yield self._integration()
        yield self._com()
        if self.run.patches:
            yield self._poses()
            yield self._velocities()
        yield self._energy()
        yield self._power()
        yield from self._objects()

    def _forces(self) -> Check:
        ours, theirs = self.evidence.motion.force, self.found.force
        difference = np.abs(theirs - ours) / self._force_scale[:, None]
        k, i = worst(difference)
        text = f"{theirs[k, i]:.9g} instead of {ours[k, i]:.9g} N (N m)"
        return self._agreement("generalised forces", float(difference[k, i]), self._where(i, k), text)

    def _equation_of_motion(self) -> Check:
        """Check ``M vd + h - sum J' w = S' tau + tau_ext``."""
        run = self.run
        residual = self.found.force - run.tau_ext
        residual[:, 6:] -= run.tau
        deviation = np.abs(residual) / self._force_scale[:, None]
        k, i = worst(deviation)
        where, violated = self._where(i, k), ~(deviation.max(axis=1) <= EQUATION)
        text = (
            f"equation of motion off by {abs(residual[k, i]):.6g} N (N m) at {where} "
            f"({np.count_nonzero(violated)} of {len(run)} samples)"
        )
        return self._line("equation of motion", float(deviation[k, i]), "relative", EQUATION, where, text)

    def _integration(self) -> Check:
        """Check ``v+ = v + dt vd`` and ``q+ = integrate(q, v+, dt)``; a quaternion and its negative are the same."""
        run = self.run
        deviation = np.zeros((len(run), run.v.shape[1]))
        deviation[:, 3:6] = np.abs(np.linalg.norm(run.q[:, 3:7], axis=1) - 1)[:, None]
        if len(run) > 1:
            position_error = (
                configuration_difference(self.found.next_configuration(run.dt), run.q[1:]) / _magnitude(run.q)[1:]
            )
            velocity_error = np.abs(run.v[1:] - run.v[:-1] - run.dt * run.vd[:-1])
            deviation[1:] = np.maximum(
                np.maximum(deviation[1:], position_error), velocity_error / _magnitude(run.v[:-1], run.v[1:])
            )
        k, i = worst(deviation)
        value, where = float(deviation[k, i]), self._where(i, k)
        text = f"{where} does not follow from the sample before it: off by {value:.3g}"
        return self._line("integration", value, "relative", INTEGRATION, where, text)

    def _com(self) -> Check:
        theirs = self.found.com
        scale = np.maximum(1.0, np.linalg.norm(theirs, axis=1))
        deviation = np.maximum(_lengths(theirs - self.evidence.motion.com), _lengths(theirs - self.run.com)) / scale
        (k,) = worst(deviation)
        text = f"{_vector_text(theirs[k])} instead of {_vector_text(self.run.com[k])} m"
        return self._agreement("centre of mass", float(deviation[k]), self.evidence.time(k), text)

    def _poses(self) -> Check:
        motion, patches = self.evidence.motion, self.run.patches
        p = np.stack([motion.p[name] for name in patches], axis=1)
        R = np.stack([motion.R[name] for name in patches], axis=1)
        scale = np.maximum(1.0, np.linalg.norm(p, axis=2))
        R_error = np.abs(self.found.R - R).max(axis=(2, 3))
        deviation = np.maximum(np.linalg.norm(self.found.p - p, axis=2) / scale, R_error)
        k, i = worst(deviation)
        theirs, ours = _vector_text(self.found.p[k, i]), _vector_text(p[k, i])
        text = f"{theirs} instead of {ours} m, rotation off by {R_error[k, i]:.3g}"
        return self._agreement("patch poses", float(deviation[k, i]), f"{patches[i]}, {self.evidence.time(k)}", text)

    def _velocities(self) -> Check:
        run, rows, patches = self.run, self.rows, self.run.patches
        q, v, mechanism = run.q[rows], run.v[rows], self.evidence.mechanism
        unloaded = mechanism.motion(q).force
        ours = np.empty((len(rows), len(patches), 6))
        for i, patch in enumerate(patches):
            for c in range(6):
                unit = np.zeros((len(rows), 1, 6))
                unit[..., c] = 1.0
                ours[:, i, c] = np.sum((unloaded - mechanism.motion(q, wrench=unit, patches=[patch]).force) * v, axis=1)
        theirs = self.found.twist[rows]
        deviation = np.abs(theirs - ours) / np.maximum(1.0, np.abs(v).max(axis=1))[:, None, None]
        k, i, c = worst(deviation)
        text = f"{theirs[k, i, c]:.9g} instead of {ours[k, i, c]:.9g} m/s (rad/s)"
        where = f"{patches[i]} {'xyz'[c % 3]}, {self.evidence.time(int(rows[k]))}"
        return self._agreement("patch velocities", float(deviation[k, i, c]), where, text)

    def _energy(self) -> Check:
        """Check ``T = v' M v / 2`` and ``V = m g z``; ``M v`` are the forces of an acceleration v at rest."""
        run, rows, mechanism = self.run, self.rows, self.evidence.mechanism
        q, v = run.q[rows], run.v[rows]
        momentum = mechanism.motion(q, vd=v).force - mechanism.motion(q).force
        kinetic = 0.5 * np.sum(v * momentum, axis=1)
        potential = self._weight * self.evidence.motion.com[rows, 2]
        deviation = np.maximum(
            np.abs(self.found.kinetic[rows] - kinetic), np.abs(self.found.potential[rows] - potential)
        )
        scale = np.maximum(np.maximum(kinetic, np.abs(potential)), self._weight)
        (k,) = worst(deviation / scale)
        theirs, ours = self.found.kinetic[rows][k], self.found.potential[rows][k]
        text = f"{theirs:.9g} and {ours:.9g} J instead of {kinetic[k]:.9g} and {potential[k]:.9g} J"
        return self._agreement("energy", float(deviation[k] / scale[k]), self.evidence.time(int(rows[k])), text)

    def _power(self) -> Check:
        """Check ``dE/dt = v' (S' tau + tau_ext) + sum w . twist``."""
        run, rows = self.run, self.rows
        force = run.tau_ext[rows].copy()
        force[:, 6:] += run.tau[rows]
        powers = np.concatenate([run.v[rows] * force, (run.wrench[rows] * self.found.twist[rows]).sum(axis=2)], axis=1)
        power, rate = powers.sum(axis=1), self.found.energy_rate(rows)
        deviation = np.abs(rate - power) / np.maximum(1.0, np.abs(powers).sum(axis=1))
        (k,) = worst(deviation)
        text = f"energy changes by {rate[k]:.9g} W, but {power[k]:.9g} W are supplied"
        return self._agreement("power", float(deviation[k]), self.evidence.time(int(rows[k])), text)

    def _objects(self) -> Iterator[Check]:
        run, bodies = self.run, {body.name: body for body in self.evidence.record.plan.bodies}
        if run.object_q is None or run.object_v is None or len(run) < 2:
            return
        objects = [(i, bodies[name]) for i, name in enumerate(self.evidence.record.objects) if name in bodies]
        forces, steps = [], []
        for i, body in objects:
            robot, no_wrench = _free_body(body), np.zeros((len(run), 0, 6))
            q, v = run.object_q[:, i], run.object_v[:, i]
            vd = np.concatenate([np.diff(v, axis=0) / run.dt, np.zeros((1, 6))])
            found = EngineMotion(self._engine_class(robot, ()), robot, RunMotion(q, v, vd, no_wrench))
            ours = Mechanism(robot).motion(q, v, vd).force
            scale = np.maximum(np.abs(ours).max(axis=1), STANDARD_GRAVITY * body.mass)
            forces.append(np.abs(found.force - ours).max(axis=1) / scale)
            deviation = configuration_difference(found.next_configuration(run.dt), q[1:])
            steps.append(deviation.max(axis=1) / _magnitude(q)[1:, 0])
        if not objects:
            return
        i, k = worst(np.array(forces))
        where = f"{objects[i][1].name}, {self.evidence.time(k)}"
        yield self._agreement("forces on objects", float(forces[i][k]), where, "the forces on an object differ")
        i, k = worst(np.array(steps))
        value, where = float(steps[i][k]), f"{objects[i][1].name}, {self.evidence.time(k + 1)}"
        text = f"the pose of {where} does not follow from its velocity: off by {value:.3g}"
        yield self._line("integration of objects", value, "relative", INTEGRATION, where, text)

    @cached_property
    def _weight(self) -> float:
        return STANDARD_GRAVITY * sum(link.mass for link in self.robot.links)

    @cached_property
    def _force_scale(self) -> np.ndarray:
        """Largest force or moment of every sample, (N,), among all terms of the equation of motion, and the weight."""
        run = self.run
        forces = (self.evidence.motion.force, run.tau, run.tau_ext, run.wrench)
        largest = [np.abs(force.reshape(len(run), -1)).max(axis=1, initial=0.0) for force in forces]
        return np.maximum(np.max(largest, axis=0), self._weight)

    def _where(self, i: int, k: int) -> str:
        return f"{self.evidence.coordinate(i)}, {self.evidence.time(k)}"

    def _agreement(self, quantity: str, value: float, where: str, text: str) -> Check:
        return self._line(quantity, value, "relative", AGREEMENT, where, f"{quantity} at {where}: {text}")

    def _line(self, quantity: str, value: float, unit: str, bound: float, where: str, text: str) -> Check:
        return at_most(f"{self.name}: {quantity}", value, unit, bound, where, f"{self.name}: {text}")


def with_engines(path: str | Path, engines: Sequence[str]) -> tuple[Report, dict[str, Any]]:
    """Verify a run as ``verify`` does, and add the checks of other engines.

    Parameters
    ----------
    path : path of ``run.npz``, or of its directory.
    engines : names, see ``mcplan.certificate.engines.NAMES``.

    Returns
    -------
    The certificate with the checks of the engines at its end, and these checks by engine as JSON values.

    Raises
    ------
    InputError
        The run cannot be read, it is a plan, an engine is unknown, or its library is not installed.
    """
    for name in engines:
        engine_class(name)
    if Path(path).suffix.lower() in (".yaml", ".yml"):
        raise InputError(f"--with {engines[0]}: {path} is a plan, which has no motion to recompute; simulate it first")
    run = load_run(path)
    report, found = verify(run), reproduce(run, engines)
    content = {
        name: {
            "version": engine_class(name).version,
            "success": all(check.passed for check in checks),
            "checks": [{name: json_number(value) for name, value in asdict(check).items()} for check in checks],
        }
        for name, checks in found.items()
    }
    added = [check for checks in found.values() for check in checks]
    return replace(report, checks=(*report.checks, *added)), content


def reproduce(run: Run, engines: Sequence[str]) -> dict[str, tuple[Check, ...]]:
    """Recompute a run with other engines; return the checks of each engine by its name.

    Only samples before the first one with a non-finite number are checked; the certificate reports that sample.

    Parameters
    ----------
    run : as read from its file.
    engines : names, see ``mcplan.certificate.engines.NAMES``.

    Raises
    ------
    InputError
        An engine is unknown, its library is not installed, or it refuses the robot.
    """
    classes = [engine_class(name) for name in dict.fromkeys(engines)]
    count, _ = finite_samples(run)
    if not count:
        where = "the first sample"
        return {
            engine.name: (
                Check(
                    f"{engine.name}: samples", 0.0, "", ">= 1", False, where, f"{where} has numbers that are not finite"
                ),
            )
            for engine in classes
        }
    with np.errstate(all="ignore"):
        evidence = RecomputedRun(run if count == len(run) else first_samples(run, count))
        return {
            engine.name: (
                *Reproduction(engine, evidence).checks(),
                *description_checks(engine, evidence.record.robot),
                *distance_checks(engine, evidence),
            )
            for engine in classes
        }


def _free_body(body: BodyRecord) -> RobotRecord:
    """Return an object as a robot without joints."""
    link = LinkRecord(name=body.name, mass=body.mass, com=body.com, inertia=body.inertia)
    return RobotRecord(
        name=body.name, digest="", links=[link], joints=[], coordinates=[], lower=[], upper=[], velocity=[], torque=[],
        armature=[], patches=[],
    )  # fmt: skip


def _magnitude(*rows: np.ndarray) -> np.ndarray:
    """Return the largest magnitude in each row, (N, 1), at least 1."""
    return np.maximum(1.0, np.max([np.abs(values).max(axis=1) for values in rows], axis=0))[:, None]


def _lengths(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(vectors, axis=1))


def _vector_text(values: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:.9g}" for value in values) + "]"
