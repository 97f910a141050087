"""External force checks: pushes, joint losses and limits, and unplanned contacts must explain every sample.

    tau_ext = sum J' f + S' (s + r + l - d (v_j + dt vd_j))

with the forces ``f`` of pushes and of unplanned contacts, the difference ``s`` between the torque that a saturated
motor provides and the commanded one, joint friction ``|r| <= c``, forces ``l`` of joints at their position limits,
which point away from the limit, and damping ``d`` of the joint velocities ``v_j``. ``d`` and ``c`` are those of the
URDF and of ``simulation``. Masses, friction and surface poses that differ from the plan are compared with
``simulation.payloads`` and ``simulation.imperfections``.
"""

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

import numpy as np
from pydantic import ValidationError

from mcplan.certificate.independent import rotation_vector
from mcplan.certificate.motion_checks import force_units, worst
from mcplan.certificate.recomputed_run import NONE, RecomputedRun
from mcplan.certificate.report import Check, at_most
from mcplan.record.records import LinkRecord
from mcplan.settings.simulation import SimulationSettings

ROUNDING = 1e-9
"""Relative tolerance of numbers that are computed twice, by sums in different orders."""


def external_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the checks of external forces, and of differences between the physics and the planned world."""
    try:
        settings = SimulationSettings.model_validate(evidence.section("simulation"))
    except ValidationError as error:
        failure = f"the scenario's `simulation` cannot be read: {error.errors()[0]['msg']}"
        yield Check("external forces", None, "", "explained", False, "", failure)
        return
    if evidence.record.physics == "qp":
        yield _no_external_force(evidence)
    else:
        yield _explained_by_scenario(evidence, settings)
    yield _world(evidence, settings)


def _no_external_force(evidence: RecomputedRun) -> Check:
    """Check that only torques and planned contacts act in ``qp``."""
    size = np.abs(evidence.run.tau_ext)
    k, i = worst(size)
    value, where = float(size[k, i]), f"{evidence.coordinate(i)}, {evidence.time(k)}" if size.any() else ""
    failure = f"an external force that the scenario does not have: {value:.6g} on {where}" if value else ""
    return Check("external forces", value, "N, N m", "== 0", not value, where, failure)


def _explained_by_scenario(evidence: RecomputedRun, settings: SimulationSettings) -> Check:
    """Check that pushes, joint losses and limits, and unplanned contacts explain all external forces."""
    run, bound = evidence.run, evidence.tolerances.external
    known_force = known_forces(evidence, settings)
    remainder = run.tau_ext - known_force
    friction, damping = joint_losses(evidence, settings)
    limit = evidence.record.robot.limit("torque")
    if settings.torque_limits:
        remainder[:, 6:] -= np.clip(run.tau, -limit, limit) - run.tau
    remainder[:, 6:] += damping * (run.v[:, 6:] + run.dt * run.vd[:, 6:])
    low, high = np.zeros_like(remainder), np.zeros_like(remainder)
    low[:, 6:], high[:, 6:] = -friction, friction
    at_lower, at_upper = _joints_at_limits(evidence)
    high[:, 6:][at_lower], low[:, 6:][at_upper] = np.inf, -np.inf
    excess = np.maximum(low - remainder, remainder - high) - ROUNDING * np.abs(known_force)
    k, i = worst(excess)
    value, where = max(float(excess[k, i]), 0.0), f"{evidence.coordinate(i)}, {evidence.time(k)}"
    failure = (
        f"an external force that the scenario does not have: {value:.6g} {force_units(evidence)[i]} on {where} "
        f"({np.count_nonzero((excess > bound).any(axis=1))} of {len(run)} samples)"
    )
    return at_most("external forces", value, "N, N m unexplained", bound, where, failure)


def known_forces(evidence: RecomputedRun, settings: SimulationSettings) -> np.ndarray:
    """Return the generalised forces (N, 6+n) of the pushes in the scenario and of unplanned contacts."""
    run, robot = evidence.run, evidence.record.robot
    loads: dict[int, np.ndarray] = {}

    def add(link: int, rows: np.ndarray, point: np.ndarray, force: np.ndarray) -> None:
        load = loads.setdefault(link, np.zeros((len(run), 6)))
        np.add.at(load, rows, np.concatenate([force, np.cross(point, force)], axis=1))

    stray = (run.point_patch < 0) & (run.point_link < len(robot.links))
    for link in np.unique(run.point_link[stray]).tolist():
        on_link = stray & (run.point_link == link)
        add(link, evidence.point_sample[on_link], run.point_xyz[on_link], run.point_force[on_link])
    index = {link.name: i for i, link in enumerate(robot.links)}
    for push in settings.pushes:
        rows = np.flatnonzero((push.start <= run.t + 1e-9) & (run.t + 1e-9 < push.start + push.duration))
        patch = next((patch for patch in robot.patches if patch.name == push.link), None)
        link = index.get(push.link, NONE) if patch is None else patch.link
        point = np.array(push.point) if patch is None else np.array(patch.p) + np.array(patch.R) @ np.array(push.point)
        if len(rows) and link != NONE:
            R, p = evidence.mechanism.poses(run.q[rows])
            add(link, rows, R[:, link] @ point + p[:, link], np.broadcast_to(np.array(push.force), (len(rows), 3)))
    force = np.zeros_like(run.tau_ext)
    has_load = np.zeros(len(run), bool)
    for load in loads.values():
        has_load |= np.abs(load).max(axis=1) > 0
    loaded = np.flatnonzero(has_load)
    if len(loaded):
        force[loaded] = evidence.mechanism.generalized(run.q[loaded], {i: load[loaded] for i, load in loads.items()})
    return force


def joint_losses(evidence: RecomputedRun, settings: SimulationSettings) -> tuple[np.ndarray, np.ndarray]:
    """Return Coulomb friction (n,), N m, and damping (n,), N m s/rad, of the joints, including those of the URDF.

    A mimic joint ``q = k q_m + c`` adds ``k²`` times its damping and ``|k|`` times its friction to the joint that it
    follows.
    """
    robot = evidence.record.robot
    joints = {joint.name: joint for joint in robot.joints}
    limit = robot.limit("torque")
    friction = settings.joint_friction * np.where(np.isfinite(limit), limit, 0.0)
    damping = np.full(len(limit), settings.joint_damping)
    for name, dynamics in _urdf_dynamics(robot.files.get("robot.urdf", "")).items():
        joint = joints.get(name)
        if joint is not None and joint.coordinate >= 0:
            friction[joint.coordinate] += abs(joint.multiplier) * float(dynamics.get("friction") or 0.0)
            damping[joint.coordinate] += joint.multiplier**2 * float(dynamics.get("damping") or 0.0)
    return friction, damping


def _urdf_dynamics(text: str) -> dict[str, Mapping[str, str]]:
    if not text:
        return {}
    try:
        joints = ElementTree.fromstring(text).iter("joint")
    except ElementTree.ParseError:  # not the recorded file: reported by `record_checks`
        return {}
    return {str(joint.get("name")): found.attrib for joint in joints if (found := joint.find("dynamics")) is not None}


def _joints_at_limits(evidence: RecomputedRun) -> tuple[np.ndarray, np.ndarray]:
    """Return masks (N, n) of joints at their lower and at their upper limits, at the start or end of a step."""
    run, robot = evidence.run, evidence.record.robot
    tolerance = evidence.tolerances.position
    q = run.q[:, 7:]
    q_next = q + run.dt * (run.v[:, 6:] + run.dt * run.vd[:, 6:])
    lower, upper = robot.limit("lower") + tolerance, robot.limit("upper") - tolerance
    return (q <= lower) | (q_next <= lower), (q >= upper) | (q_next >= upper)


def _world(evidence: RecomputedRun, settings: SimulationSettings) -> Check:
    """Check that the physics differs from the plan only as specified in the scenario."""
    differences = list(_world_differences(evidence, settings))
    failure = "; ".join(differences)
    return Check("world", float(len(differences)), "differences", "== 0", not differences, "", failure)


def _world_differences(evidence: RecomputedRun, settings: SimulationSettings) -> Iterator[str]:
    """Yield the differences in masses, friction and surface poses that the scenario does not allow."""
    world, robot, imperfections = evidence.record.world, evidence.record.robot, settings.imperfections
    is_exact = evidence.record.physics == "qp"
    low, high = (
        (1.0, 1.0) if is_exact else (imperfections.mass_scale * (1 + s * imperfections.mass_error) for s in (-1, 1))
    )
    for link in robot.links:
        payloads = [] if is_exact else [load for load in settings.payloads if load.link == link.name]
        actual = world.links.get(link.name, link)
        added = sum(load.mass for load in payloads)
        if not link.mass:
            factor = 1.0 if abs(actual.mass - added) <= ROUNDING * max(added, 1.0) else np.inf
            allowed = factor == 1.0
        else:
            factor = (actual.mass - added) / link.mass
            allowed = low * (1 - ROUNDING) - ROUNDING <= factor <= high * (1 + ROUNDING) + ROUNDING
        if not allowed:
            expected = f"{low * link.mass + added:.6g}" + (f" to {high * link.mass + added:.6g}" if high > low else "")
            yield f"{link.name} has {actual.mass:.6g} kg, the scenario says {expected}"
            continue
        com, inertia = _with_point_masses(link, factor, [(load.mass, np.array(load.com)) for load in payloads])
        deviation = max(np.abs(com - actual.com).max(), np.abs(inertia - np.array(actual.inertia)).max())
        if not deviation <= ROUNDING * max(1.0, np.abs(inertia).max()):
            yield f"{link.name} has another centre of mass or inertia than the scenario says (off by {deviation:.3g})"
    low, high = (
        (1.0, 1.0)
        if is_exact
        else (imperfections.friction_scale * (1 + s * imperfections.friction_error) for s in (-1, 1))
    )
    names = [c.support for c in evidence.contacts]
    for name in sorted({*world.friction, *names}):
        factor = world.friction.get(name, 1.0)
        if not low * (1 - ROUNDING) <= factor <= high * (1 + ROUNDING):
            yield f"the friction of {name} is {factor:.6g} times that of the scenario, which allows {low:g} to {high:g}"
    start_supports = {contact.support for contact in evidence.record.plan.stances[0].contacts}
    for name, pose in world.surfaces.items():
        surface = evidence.planned_surfaces.get(name)
        if surface is None or name in start_supports or is_exact:
            yield f"{name} is not at its pose in the scenario, which allows no imperfection of it"
            continue
        rotation = np.array(pose.R) @ surface.R.T
        middle = surface.R[:, :2] @ (surface.polygon.min(axis=0) + surface.polygon.max(axis=0)) / 2
        displacement = np.array(pose.p) + rotation @ middle - surface.p - middle
        tilt = surface.R.T @ rotation_vector(rotation[None])[0]
        if not (
            abs(displacement @ surface.normal) <= imperfections.ground_height + ROUNDING
            and np.linalg.norm(displacement - (displacement @ surface.normal) * surface.normal) <= ROUNDING
            and np.abs(tilt[:2]).max() <= imperfections.ground_tilt + ROUNDING
            and abs(tilt[2]) <= ROUNDING
        ):
            yield f"{name} is farther from its place in the scenario than its imperfections allow"


def _with_point_masses(
    link: LinkRecord, factor: float, points: list[tuple[float, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return centre of mass (3,) and inertia about it (3, 3) of a link with scaled mass and added point masses."""
    link_part = (factor * link.mass, np.array(link.com), factor * np.array(link.inertia))
    parts: list[tuple[float, np.ndarray, np.ndarray]] = [link_part]
    parts += [(mass, com, np.zeros((3, 3))) for mass, com in points]
    total = sum(mass for mass, _, _ in parts)
    if total == 0.0:
        return np.array(link.com), np.array(link.inertia)
    com = sum((mass * c for mass, c, _ in parts), np.zeros(3)) / total
    inertia = np.zeros((3, 3))
    for mass, c, part_inertia in parts:
        r = c - com
        inertia += part_inertia + mass * ((r @ r) * np.eye(3) - np.outer(r, r))
    return com, inertia
