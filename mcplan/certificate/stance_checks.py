"""Static certificate of a plan: start, goal, contacts on their supports, and the balance of every stance.

`mcplan.certificate.transition_checks` checks the motions between stances.

The posture of stance k is the linking posture from the previous stance: the contacts of the larger one of both stances
are closed, and only shared contacts carry load. Forces and torques of a stance that is passed in motion are dynamic.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from mcplan.certificate.contact_checks import contacts_not_in_scenario
from mcplan.certificate.goal_checks import GoalChecker, GoalStates, GoalTolerances, place_errors
from mcplan.certificate.independent import Mechanism, contact_deviation, rotation_of, rotation_vector
from mcplan.certificate.report import Check, Report, WorstCase
from mcplan.certificate.tolerances import (
    PLAN_ANGLE_DEG,
    PLAN_BALANCE,
    PLAN_COM,
    PLAN_FORCE,
    PLAN_OBJECT,
    PLAN_OBJECT_DEG,
    PLAN_PLACE,
)
from mcplan.certificate.transition_balance import cone_edges, missing_wrench
from mcplan.planning.plan import Plan
from mcplan.record.records import EFFORT_UNITS, ContactRecord, PlanRecord, RobotRecord, recorded_units, unit_of_all
from mcplan.robot.anatomy import HRP2_MASS_KG
from mcplan.robot.patch import MOUNT
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar
from mcplan.scene.spec import ContactSpec

MIN_REQUIRED_LOAD = 5.0
"""N: minimum load that contacts in `planner.require` must carry in some stance, for a robot of HRP-2's mass."""


def stance_checks(plan: Plan, robot: RobotRecord) -> Iterator[Check]:
    """Yield the checks of a plan against its scenario."""
    yield from _contacts_on_supports(plan, robot)
    failures = list(contacts_not_in_scenario(plan))
    name = "contacts as the scenario has them"
    yield Check(name, float(len(failures)), "options", "== 0", not failures, "", "; ".join(failures))
    yield from _unchanged_contacts(plan)
    yield from _required_contacts(plan, MIN_REQUIRED_LOAD * sum(link.mass for link in robot.links) / HRP2_MASS_KG)
    stances, environment = plan.stances, plan.scenario.environment
    q = np.array([stance.q for stance in stances])
    patches = [patch.name for patch in robot.patches]
    motion = Mechanism(robot).motion(q, patches=patches)
    supports = {
        patch: np.array([next((c.support for c in stance.contacts if c.patch == patch), "") for stance in stances])
        for patch in patches
    }
    objects = {
        item.name: np.array([stance.objects.get(item.name, item.pose) for stance in stances])
        for item in environment.objects
    }
    states = GoalStates(q, motion.com, motion.R, motion.p, supports, objects, lambda k: f"stance {k}")
    tolerances = GoalTolerances(
        PLAN_PLACE, float(np.deg2rad(PLAN_ANGLE_DEG)), PLAN_COM, PLAN_OBJECT, float(np.deg2rad(PLAN_OBJECT_DEG))
    )
    checker = GoalChecker(robot, plan.scenario.robot, environment, states, tolerances)
    yield from checker.checks(plan.scenario.document.data)


def _contacts_on_supports(plan: Plan, robot: RobotRecord) -> Iterator[Check]:
    """Yield the checks of planned contacts against the scenario's surfaces and bars."""
    patches = {patch.name: patch for patch in robot.patches}
    distance = WorstCase("contacts on their supports", "m", PLAN_PLACE, value=0.0)
    rotation = WorstCase("contacts on their supports, angle", "deg", PLAN_ANGLE_DEG, value=0.0)
    friction_excess = WorstCase("friction of the supports", "more than allowed", 1e-9, value=0.0)
    for k, stance in enumerate(plan.stances):
        environment = plan.scenario.environment.placed(stance.objects)
        for contact in stance.contacts:
            where = f"{contact.patch} on {contact.support}, stance {k}"
            if contact.patch == MOUNT:
                distance_m, degrees = base_deviation(contact, plan.scenario.start.q)
                distance.update(distance_m, where, f"{distance_m:.4g} m off the base of the start")
                rotation.update(degrees, where, f"turned by {degrees:.4g} deg out of the base of the start")
                continue
            support = environment.supports.get(contact.support)
            if support is None or contact.patch not in patches:
                distance.update(np.inf, where, "there is no such patch or support")
                continue
            spec = ContactSpec.model_validate({"patch": contact.patch, "surface": contact.support, **contact.options})
            spec = spec.model_copy(update={"kind": contact.kind})
            distances, angle = place_errors(spec, patches[contact.patch], support, contact.R[None], contact.p[None])
            distance.update(float(distances[0]), where, f"{distances[0]:.4g} m off its support")
            degrees = float(np.rad2deg(angle[0]))
            rotation.update(degrees, where, f"turned by {degrees:.4g} deg out of its support")
            friction = support.friction if spec.friction is None else spec.friction
            grasps = contact.kind == "grasp" and isinstance(support, Bar)
            excess = 0.0 if grasps else max(0.0, contact.friction - friction)
            friction_excess.update(
                excess, where, f"friction {contact.friction:g}, {excess:.4g} more than that of the support"
            )
    yield from (line.check() for line in (distance, rotation, friction_excess))


def base_deviation(contact: Contact, q: np.ndarray) -> tuple[float, float]:
    """Return the deviation (m, deg) of the contact of a fixed base from the base pose ``q`` of the scenario."""
    between = rotation_of(q[3:7, None])[..., 0].T @ contact.R
    rotation = float(np.linalg.norm(rotation_vector(between[None])[0]))
    return float(np.linalg.norm(contact.p - q[:3])), float(np.rad2deg(rotation))


def _unchanged_contacts(plan: Plan) -> Iterator[Check]:
    """Yield the check that contacts shared by two stances do not move; on an object, relative to the object."""
    line = WorstCase("kept contacts", "m, rad", PLAN_PLACE, value=0.0)
    for k in range(1, len(plan.stances)):
        before, after = plan.stances[k - 1], plan.stances[k]
        earlier = {contact.patch: contact for contact in before.contacts}
        changed = sum(c.patch not in earlier or c.support != earlier[c.patch].support for c in after.contacts)
        changed += sum(patch not in after.patches for patch in earlier)
        if changed > 1:
            line.failures.append(f"stance {k}: {changed} contacts change at once")
        for contact in after.contacts:
            old = earlier.get(contact.patch)
            if old is None or old.support != contact.support:
                continue
            moved = _contact_displacement(plan, old, contact, k)
            line.update(moved, f"{contact.patch}, stance {k}", f"{moved:.4g} m (rad) from where it was, without a step")
    yield line.check()


def _required_contacts(plan: Plan, min_load: float) -> Iterator[Check]:
    """Yield the check that each required contact, if any, carries more than ``min_load`` (N) in some stance."""
    smallest, where, failures = np.inf, "", []
    for group in plan.scenario.planner.require:
        names = (group,) if isinstance(group, str) else group
        loads = [np.linalg.norm(s.wrenches[name][:3]) for s in plan.stances for name in names if name in s.wrenches]
        largest, names_text = float(max(loads, default=0.0)), " or ".join(names)
        if not largest >= smallest:
            smallest, where = largest, names_text
        if not largest > min_load:
            failures.append(f"{names_text} carries no more than {largest:.4g} N in any stance")
    if where:
        yield Check("required contacts", smallest, "N", f"> {min_load:.3g}", not failures, where, "; ".join(failures))


def _contact_displacement(plan: Plan, old: Contact, new: Contact, k: int) -> float:
    """Return the displacement of a contact from stance k - 1 to k in its constrained directions (m, rad)."""
    R, p = old.R, old.p
    if new.carrier is not None:
        item = next(t for t in plan.scenario.environment.objects if t.name == new.carrier.name)
        first, second = (plan.stances[i].objects.get(item.name, item.pose) for i in (k - 1, k))
        R1, R2 = (rotation_of(pose[3:, None])[..., 0] for pose in (first, second))
        R, p = R2 @ R1.T @ R, second[:3] + R2 @ R1.T @ (p - first[:3])
    return float(np.linalg.norm(contact_deviation(new, (new.R.T @ R)[None], ((p - new.p) @ new.R)[None])))


CONE_EDGES = 64
"""Number of edges of the pyramid inscribed in a friction cone: 0.12 % smaller than the cone, and larger than the
planner's pyramid with 8 faces."""


def judge_plan(robot: RobotRecord, plan: PlanRecord, title: str, more_checks: Sequence[Check] = ()) -> Report:
    """Verify the postures and forces of a plan.

    Parameters
    ----------
    robot : the robot's record.
    plan : stances with posture, wrenches and torques.
    title : title of the certificate.
    more_checks : further checks, which need more than records.
    """
    lines = (
        WorstCase("contact place", "m", PLAN_PLACE),
        WorstCase("contact angle", "deg", PLAN_ANGLE_DEG),
        WorstCase("force balance", "N, N m", PLAN_BALANCE),
        WorstCase("friction", "N, N m outside the cone", PLAN_FORCE),
        WorstCase("contact force", "N beyond the limit", PLAN_FORCE),
        WorstCase("free direction", "N m", PLAN_FORCE),
        WorstCase("grasp moment", "N m beyond the limit", PLAN_FORCE),
        WorstCase("force on shared contacts only", "N, N m", PLAN_FORCE),
        WorstCase("torque", "of the limit", 1.0),
        WorstCase("position", f"{unit_of_all(recorded_units(robot))} beyond the limit", PLAN_FORCE),
    )
    line_by_name = {line.name: line for line in lines}
    for k in range(len(plan.stances)):
        for name, value, bound, text in _stance_values(robot, plan, k):
            line_by_name[name].update(value, f"stance {k}", text, bound)
    checks = [*(line.check() for line in lines if line.value is not None), *more_checks]
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


def _stance_values(robot: RobotRecord, plan: PlanRecord, k: int) -> Iterator[tuple[str, float, float, str]]:
    """Yield (name of the check, value, bound, failure message) of all checks of one stance."""
    stance = plan.stances[k]
    before = plan.stances[k - 1].contacts if k else stance.contacts
    placed = stance.contacts if len(stance.contacts) >= len(before) else before
    shared = {contact.patch for contact in stance.contacts} & {contact.patch for contact in before}
    patches = [contact.patch for contact in placed]
    loaded = list(dict.fromkeys([*patches, *(name for name in stance.wrenches if name not in patches)]))
    wrench = np.array([stance.wrenches.get(name, [0.0] * 6) for name in loaded], float).reshape(1, len(loaded), 6)
    q = np.array(stance.q)
    rates = {name: np.array(values)[None] for name, values in (("v", stance.v), ("vd", stance.vd)) if values}
    motion = Mechanism(robot).motion(q[None], **rates, wrench=wrench, patches=loaded)
    for contact in placed:
        R, p = motion.R[contact.patch][0], motion.p[contact.patch][0]
        target = np.array(contact.R)
        local = (p - np.array(contact.p)) @ target
        error = contact_deviation(contact, (target.T @ R)[None], local[None])[0]
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
        yield from _cone_violations(contact, motion.R[contact.patch][0], w)
    for name in loaded[len(patches) :]:
        load = float(np.abs(stance.wrenches[name]).max())
        yield "force on shared contacts only", load, PLAN_FORCE, f"{name} carries {load:.4g} but is not in contact"
    limit = robot.limit("torque")
    if stance.tau and np.isfinite(limit).any():
        ratio = np.abs(np.array(stance.tau)) / np.where(limit > 0, limit, np.finfo(float).tiny)
        i = int(np.argmax(ratio))
        unit = EFFORT_UNITS[recorded_units(robot)[i]]
        text = f"torque of {robot.coordinates[i]} is {stance.tau[i]:.6g} {unit}, limit {limit[i]:g}"
        yield "torque", float(ratio[i]), 1 + PLAN_FORCE / limit[i], text
    if len(robot.coordinates):
        excess = np.maximum(robot.limit("lower") - q[7:], q[7:] - robot.limit("upper"))
        i = int(np.argmax(excess))
        yield (
            "position",
            float(excess[i]),
            PLAN_FORCE,
            f"joint {robot.coordinates[i]} = {q[7 + i]:.6g} is {excess[i]:.3g} beyond its limit",
        )


def _cone_violations(contact: ContactRecord, R: np.ndarray, w: np.ndarray) -> Iterator[tuple[str, float, float, str]]:
    """Yield the violations of friction cones, and of force and moment limits, by a contact wrench."""
    patch = contact.patch
    limit = np.inf if contact.max_force is None else contact.max_force
    if contact.kind == "grasp":
        force = float(np.linalg.norm(w[:3])) - limit
        max_moment = np.inf if contact.max_moment is None else contact.max_moment
        moment = float(np.linalg.norm(w[3:])) - max_moment
        if np.isfinite(max_moment):
            yield "grasp moment", moment, PLAN_FORCE, f"the moment on {patch} is {moment:.4g} N m beyond {max_moment:g}"
        S = np.array(contact.selection).reshape(-1, 6)
        local = np.concatenate([R.T @ w[:3], R.T @ w[3:]])
        free = float(np.linalg.norm(local - S.T @ (S @ local)))
        yield "free direction", free, PLAN_FORCE, f"{patch} carries {free:.4g} N m along a direction that is free"
    else:
        R = np.array(contact.R) if contact.radius else R
        axes = (R @ np.array(contact.R).T if contact.rolls else np.eye(3)) @ np.array(contact.axes)
        edges = cone_edges(axes, contact.friction or 0.0, CONE_EDGES)
        missing = missing_wrench(edges, np.array(contact.points) @ R.T, w)
        yield "friction", missing, PLAN_FORCE, f"the wrench on {patch} is {missing:.4g} outside its friction cone"
        force = float(w[:3] @ axes[:, 2]) - limit
    if np.isfinite(limit):
        yield "contact force", force, PLAN_FORCE, f"the force on {patch} is {force:.4g} N beyond {limit:g}"
