"""Checks of the motion: equation of motion, integration, centre of mass, joint limits."""

from collections.abc import Iterator

import numpy as np

from mcplan.certificate.independent import configuration_difference, integrate
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.report import Check, at_most
from mcplan.errors import RunError
from mcplan.record.records import EFFORT_UNITS, recorded_units
from mcplan.settings.simulation import SimulationSettings


def worst(values: np.ndarray) -> tuple[int, ...]:
    """Return the index of the largest entry; NaN counts as the largest."""
    values = np.where(np.isnan(values), np.inf, values)
    return tuple(int(i) for i in np.unravel_index(np.argmax(values), values.shape))


def motion_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the checks of the motion."""
    yield _initial_state(evidence)
    yield _time_steps(evidence)
    yield _integration(evidence)
    yield _equation_of_motion(evidence)
    yield _com(evidence)
    yield from _limits(evidence)


def _initial_state(evidence: RecomputedRun) -> Check:
    """Check that the robot starts at rest in the posture of the first stance, and objects at their initial poses."""
    run, name, bound = evidence.run, "beginning", evidence.tolerances.integration
    try:
        plan = evidence.plan
    except RunError as error:
        return Check(name, None, "", f"<= {bound:g}", False, "", f"the beginning cannot be judged: {error}")
    differences = {"time (s)": abs(float(run.t[0])), "velocity": float(np.abs(run.v[0]).max(initial=0.0))}
    differences["posture"] = _largest_difference(run.q[0], plan.stances[0].q)
    poses = {item.name: item.pose for item in plan.scenario.environment.objects}
    if run.object_q is not None and run.object_v is not None:
        for i, body in enumerate(evidence.record.objects):
            in_scenario = body in poses
            differences[f"pose of {body}"] = (
                _largest_difference(run.object_q[0, i], poses[body]) if in_scenario else np.inf
            )
            differences[f"velocity of {body}"] = float(np.abs(run.object_v[0, i]).max())
    largest = max(differences, key=lambda key: differences[key])
    violations = [f"{key} is off by {value:.6g}" for key, value in differences.items() if not value <= bound]
    failure = f"the run does not begin as its plan does: {', '.join(violations)}" if violations else ""
    return Check(name, differences[largest], "s, m, rad, m/s, rad/s", f"<= {bound:g}", not violations, largest, failure)


def _largest_difference(q: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference of two configurations; a quaternion and its negative are the same."""
    sign = np.ones(len(q))
    sign[3:7] = -1.0 if q[3:7] @ other[3:7] < 0.0 else 1.0
    return float(np.abs(sign * q - other).max())


def _time_steps(evidence: RecomputedRun) -> Check:
    """Check that samples are ``simulation.dt`` apart."""
    run, bound = evidence.run, evidence.tolerances.integration
    expected_dt = evidence.section("simulation").get("dt", SimulationSettings().dt)
    if not isinstance(expected_dt, int | float) or not abs(run.dt - expected_dt) <= bound:
        failure = f"samples are {run.dt:g} s apart, simulation.dt is {expected_dt}"
        return Check("time step", None, "s", f"<= {bound:g}", False, "", failure)
    deviation = np.abs(np.diff(run.t) - run.dt) if len(run) > 1 else np.zeros(1)
    (k,) = worst(deviation)
    passed = bool(deviation[k] <= bound)
    failure = (
        "" if passed else f"time steps by {deviation[k] + run.dt:.6g} s after {evidence.time(k)}, dt is {run.dt:g}"
    )
    return Check(
        "time step", float(deviation[k]), "s", f"<= {bound:g}", passed, "" if passed else evidence.time(k), failure
    )


def _integration(evidence: RecomputedRun) -> Check:
    """Check ``v+ = v + dt vd`` and ``q+ = integrate(q, v+, dt)``; a quaternion and its negative are the same."""
    run, bound = evidence.run, evidence.tolerances.integration
    name, unit = "integration identity", "m, rad, m/s, rad/s"
    norm = np.abs(np.linalg.norm(run.q[:, 3:7], axis=1) - 1)
    residual = np.zeros((len(run), 2, run.v.shape[1]))
    residual[:, 0, 3:6] = norm[:, None]
    if len(run) > 1:
        residual[1:, 1] = np.abs(run.v[1:] - run.v[:-1] - run.dt * run.vd[:-1])
        expected = integrate(run.q[:-1], run.v[1:], run.dt)
        residual[1:, 0] = np.maximum(residual[1:, 0], configuration_difference(expected, run.q[1:]))
    k, kind, i = worst(residual)
    value = float(residual[k, kind, i])
    where = f"{evidence.coordinate(i)}, {evidence.time(k)}"
    first = int(np.argmax(~(residual.max(axis=(1, 2)) <= bound)))
    quantity = "velocity" if kind else "position"
    failure = (
        f"the trajectory does not follow from the samples before it: {quantity} of {evidence.coordinate(i)} at "
        f"{evidence.time(k)} (sample {k}) is off by {value:.3g}; first at {evidence.time(first)} (sample {first})"
    )
    return at_most(name, value, unit, bound, where, failure)


def _equation_of_motion(evidence: RecomputedRun) -> Check:
    run, bound = evidence.run, evidence.tolerances.eom
    residual = equation_residual(evidence)
    k, i = worst(np.abs(residual))
    value = float(abs(residual[k, i]))
    passed = bool(value <= bound)
    where = f"{evidence.coordinate(i)}, {evidence.time(k)}"
    failure = ""
    if not passed:
        count = int(np.count_nonzero(np.abs(residual).max(axis=1) > bound))
        failure = (
            f"equation of motion off by {value:.6g} {force_units(evidence)[i]} at {where}"
            f" ({count} of {len(run)} samples){_explanation(evidence, k, residual[k])}"
        )
    return Check(
        "equation of motion", value, "N, N m", f"<= {bound:g}" if np.isfinite(bound) else "", passed, where, failure
    )


def force_units(evidence: RecomputedRun) -> list[str]:
    """Return the units of the rows of the equation of motion, (6+n,)."""
    return [*["N"] * 3, *["N m"] * 3, *(EFFORT_UNITS[unit] for unit in recorded_units(evidence.record.robot))]


def equation_residual(evidence: RecomputedRun) -> np.ndarray:
    """Return ``M vd + h - S' tau - sum J' w - tau_ext``, (N, 6+n)."""
    residual = evidence.motion.force - evidence.run.tau_ext
    residual[:, 6:] -= evidence.run.tau
    return residual


def _explanation(evidence: RecomputedRun, k: int, r: np.ndarray) -> str:
    """Return, as text, a single joint torque or contact wrench whose error would explain the residual of a sample."""
    size, row = np.linalg.norm(r), int(np.argmax(np.abs(r)))
    if row >= 6 and np.linalg.norm(np.delete(r, row)) <= 1e-6 * size:
        amount = f"{r[row]:+.6g} {force_units(evidence)[row]}"
        return f": as if the torque of {evidence.coordinate(row)} should change by {amount}"
    patches = evidence.run.patches
    unit, none = np.eye(6), np.zeros((6, len(patches), 6))
    q = np.repeat(evidence.run.q[k : k + 1], 6, axis=0)
    unloaded = evidence.mechanism.motion(q).force
    best, explanation = 1e-3 * float(size), ""
    for column, patch in enumerate(patches):
        wrench = none.copy()
        wrench[:, column] = unit
        J = unloaded - evidence.mechanism.motion(q, wrench=wrench, patches=patches).force
        w = np.linalg.lstsq(J.T, r, rcond=None)[0]
        remainder = float(np.linalg.norm(J.T @ w - r))
        if remainder < best:
            force = ", ".join(f"{x:.4g}" for x in w[:3])
            best, explanation = remainder, f": as if the force on {patch} lacked [{force}] N"
    return explanation


def _com(evidence: RecomputedRun) -> Check:
    run, bound = evidence.run, evidence.tolerances.com
    deviation = np.linalg.norm(evidence.motion.com - run.com, axis=1)
    (k,) = worst(deviation)
    failure = f"recorded centre of mass is off by {deviation[k]:.3g} m at {evidence.time(k)}"
    return at_most("centre of mass", float(deviation[k]), "m", bound, evidence.time(k), failure)


def _limits(evidence: RecomputedRun) -> Iterator[Check]:
    run, robot, tolerances = evidence.run, evidence.record.robot, evidence.tolerances
    units = recorded_units(robot)
    for name, values, limit, tolerance, joint_units in (
        ("torque", run.tau, robot.limit("torque"), tolerances.torque, [EFFORT_UNITS[unit] for unit in units]),
        ("velocity", run.v[:, 6:], robot.limit("velocity"), tolerances.velocity, [f"{unit}/s" for unit in units]),
    ):
        if not np.isfinite(limit).any():
            yield Check(name, None, "", "", True)
            continue
        excess = np.abs(values) - limit
        ratio = np.abs(values) / np.where(limit > 0, limit, np.finfo(float).tiny)
        k, i = worst(ratio)
        a, b = worst(excess)
        passed = bool(excess[a, b] <= tolerance)
        violations = np.count_nonzero((excess > tolerance).any(axis=1))
        failure = "" if passed else (
            f"{name} of {run.record.joints[b]} is {values[a, b]:.6g} {joint_units[b]} at {evidence.time(a)}, "
            f"limit {limit[b]:g}: beyond it by {excess[a, b]:.3g} ({violations} samples)"
        )  # fmt: skip
        where = f"{run.record.joints[i]}, {evidence.time(k)}"
        yield Check(name, float(ratio[k, i]), "of the limit", "<= 1", passed, where, failure)
    lower, upper, joints = robot.limit("lower"), robot.limit("upper"), run.q[:, 7:]
    margin = np.minimum(joints - lower, upper - joints)
    if not np.isfinite(margin).any():
        yield Check("position", None, "", "", True)
        return
    k, i = worst(-margin)
    passed = bool(margin[k, i] >= -tolerances.position)
    where = f"{run.record.joints[i]}, {evidence.time(k)}"
    failure = "" if passed else (
        f"joint {run.record.joints[i]} = {joints[k, i]:.6g} {units[i]} at {evidence.time(k)}, outside "
        f"[{lower[i]:g}, {upper[i]:g}] by {-margin[k, i]:.3g}"
    )  # fmt: skip
    yield Check("position", float(margin[k, i]), f"{units[i]} from the limit", ">= 0", passed, where, failure)
