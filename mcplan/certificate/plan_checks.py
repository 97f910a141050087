"""The static certificate of a plan: every stance's posture keeps its contacts and its balance, by another path.

The motions between stances are judged in `mcplan.certificate.transition_checks`.

The posture of stance k links it to the one before: the contacts of the larger of the two are in place, and only those
that both share carry load. Where it is passed in motion, forces and torques are those of that motion.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from mcplan.certificate.independent import Mechanism, away
from mcplan.certificate.report import Check, Report
from mcplan.certificate.tolerances import PLAN_ANGLE_DEG, PLAN_BALANCE, PLAN_FORCE, PLAN_PLACE
from mcplan.certificate.transition_balance import cone_edges, missing_wrench
from mcplan.record.records import FORCES, ContactRecord, PlanRecord, RobotRecord, recorded_units, unit_of_all

FACES = 64
"""Edges of the inscribed pyramid that stands for a friction cone: 0.12 % inside it, and around any of 8 faces."""


def judge_plan(robot: RobotRecord, plan: PlanRecord, title: str, further: Sequence[Check] = ()) -> Report:
    """Verify the postures and forces of a plan.

    Parameters
    ----------
    robot : the mechanism.
    plan : stances with posture, wrenches and torques.
    title : of the certificate.
    further : lines of the certificate that need more than records.
    """
    worst: dict[str, tuple[float, str, list[str]]] = {}
    for k in range(len(plan.stances)):
        for name, value, bound, text in _stance(robot, plan, k):
            before = worst.get(name, (-np.inf, "", []))
            wrong = before[2] if value <= bound else [*before[2], f"stance {k}: {text}"]
            worst[name] = (value, f"stance {k}", wrong) if not value <= before[0] else (before[0], before[1], wrong)
    units = {
        "contact place": ("m", f"<= {PLAN_PLACE:g}"),
        "contact angle": ("deg", f"<= {PLAN_ANGLE_DEG:g}"),
        "force balance": ("N, N m", f"<= {PLAN_BALANCE:g}"),
        "friction": ("N, N m outside the cone", f"<= {PLAN_FORCE:g}"),
        "contact force": ("N beyond the limit", f"<= {PLAN_FORCE:g}"),
        "free direction": ("N m", f"<= {PLAN_FORCE:g}"),
        "grasp moment": ("N m beyond the limit", f"<= {PLAN_FORCE:g}"),
        "force on shared contacts only": ("N, N m", f"<= {PLAN_FORCE:g}"),
        "torque": ("of the limit", "<= 1"),
        "position": (f"{unit_of_all(recorded_units(robot))} beyond the limit", f"<= {PLAN_FORCE:g}"),
    }
    checks = [
        Check(name, worst[name][0], *units[name], not worst[name][2], worst[name][1], "; ".join(worst[name][2]))
        for name in units
        if name in worst
    ]
    checks += further
    found = {check.name: check.value for check in checks}
    position = found.get("position")
    clearances = [found.get(name) for name in ("clearance", "transition: clearance")]
    values = {
        "eom_residual": found.get("force balance"),
        "torque_ratio": found.get("torque"),
        "clearance": min((value for value in clearances if value is not None), default=None),
        "position_margin": None if position is None or not np.isfinite(position) else -position,
    }
    return Report(title, tuple(checks), values)


def _stance(robot: RobotRecord, plan: PlanRecord, k: int) -> Iterator[tuple[str, float, float, str]]:
    """Yield (check, value, bound, what is wrong) for one stance."""
    stance = plan.stances[k]
    before = plan.stances[k - 1].contacts if k else stance.contacts
    placed = stance.contacts if len(stance.contacts) >= len(before) else before
    shared = {contact.patch for contact in stance.contacts} & {contact.patch for contact in before}
    patches = [contact.patch for contact in placed]
    loaded = list(dict.fromkeys([*patches, *(name for name in stance.wrenches if name not in patches)]))
    wrench = np.array([stance.wrenches.get(name, [0.0] * 6) for name in loaded], float).reshape(1, len(loaded), 6)
    q = np.array(stance.q)
    moving = {name: np.array(rates)[None] for name, rates in (("v", stance.v), ("vd", stance.vd)) if rates}
    motion = Mechanism(robot).motion(q[None], **moving, wrench=wrench, patches=loaded)
    for contact in placed:
        R, p = motion.R[contact.patch][0], motion.p[contact.patch][0]
        target = np.array(contact.R)
        at = (p - np.array(contact.p)) @ target
        error = away(contact, (target.T @ R)[None], at[None])[0]
        distance, angle = float(np.linalg.norm(error[:3])), float(np.rad2deg(np.linalg.norm(error[3:])))
        yield "contact place", distance, PLAN_PLACE, f"{contact.patch} is {distance:.4g} m away from its place"
        yield "contact angle", angle, PLAN_ANGLE_DEG, f"{contact.patch} is turned by {angle:.4g} deg from its place"
    force = motion.force[0]
    force[6:] -= np.array(stance.tau) if stance.tau else force[6:]
    i = int(np.argmax(np.abs(force)))
    name = f"row {i} of the base" if i < 6 else robot.coordinates[i - 6]
    yield "force balance", float(abs(force[i])), PLAN_BALANCE, f"forces do not balance: {abs(force[i]):.6g} on {name}"
    for contact in placed:
        w = np.array(stance.wrenches.get(contact.patch, [0.0] * 6))
        if contact.patch not in shared:
            load = float(np.abs(w).max())
            yield (
                "force on shared contacts only",
                load,
                PLAN_FORCE,
                f"{contact.patch} carries {load:.4g} but is in one stance only",
            )
        yield from _outside(contact, motion.R[contact.patch][0], w)
    for name in loaded[len(patches) :]:
        load = float(np.abs(stance.wrenches[name]).max())
        yield "force on shared contacts only", load, PLAN_FORCE, f"{name} carries {load:.4g} but is not in contact"
    limit = robot.limit("torque")
    if stance.tau and np.isfinite(limit).any():
        ratio = np.abs(np.array(stance.tau)) / np.where(limit > 0, limit, np.finfo(float).tiny)
        i = int(np.argmax(ratio))
        unit = FORCES[recorded_units(robot)[i]]
        text = f"torque of {robot.coordinates[i]} is {stance.tau[i]:.6g} {unit}, limit {limit[i]:g}"
        yield "torque", float(ratio[i]), 1 + PLAN_FORCE / limit[i], text
    if len(robot.coordinates):
        beyond = np.maximum(robot.limit("lower") - q[7:], q[7:] - robot.limit("upper"))
        i = int(np.argmax(beyond))
        yield (
            "position",
            float(beyond[i]),
            PLAN_FORCE,
            f"joint {robot.coordinates[i]} = {q[7 + i]:.6g} is {beyond[i]:.3g} beyond its limit",
        )


def _outside(contact: ContactRecord, R: np.ndarray, w: np.ndarray) -> Iterator[tuple[str, float, float, str]]:
    """Yield how far a wrench is from all that point forces in their cones, and limits of force and moment, can give."""
    patch = contact.patch
    limit = np.inf if contact.max_force is None else contact.max_force
    if contact.kind == "grasp":
        force = float(np.linalg.norm(w[:3])) - limit
        most = np.inf if contact.max_moment is None else contact.max_moment
        moment = float(np.linalg.norm(w[3:])) - most
        if np.isfinite(most):
            yield "grasp moment", moment, PLAN_FORCE, f"the moment on {patch} is {moment:.4g} N m beyond {most:g}"
        S = np.array(contact.selection).reshape(-1, 6)
        local = np.concatenate([R.T @ w[:3], R.T @ w[3:]])
        free = float(np.linalg.norm(local - S.T @ (S @ local)))
        yield "free direction", free, PLAN_FORCE, f"{patch} carries {free:.4g} N m along a direction that is free"
    else:
        R = np.array(contact.R) if contact.radius else R
        axes = (R @ np.array(contact.R).T if contact.rolls else np.eye(3)) @ np.array(contact.axes)
        edges = cone_edges(axes, contact.friction or 0.0, FACES)
        missing = missing_wrench(edges, np.array(contact.points) @ R.T, w)
        yield "friction", missing, PLAN_FORCE, f"the wrench on {patch} is {missing:.4g} outside its friction cone"
        force = float(w[:3] @ axes[:, 2]) - limit
    if np.isfinite(limit):
        yield "contact force", force, PLAN_FORCE, f"the force on {patch} is {force:.4g} N beyond {limit:g}"
