"""Object checks: equations of motion, friction, static support and clearance of free objects.

In a run, the motion of objects must satisfy the Newton-Euler equations with the recorded forces, and friction must
oppose sliding. In a plan, the support must balance the weight of the object and the forces of the robot; an object
without support is carried by the robot alone. At sampled times, objects must not overlap with the environment or with
other objects.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from mcplan.certificate.independent import STANDARD_GRAVITY, integrate, rotation_of
from mcplan.certificate.motion_checks import worst
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.report import Check, WorstCase, at_most
from mcplan.certificate.separation import Convex, Placed, signed_distances
from mcplan.certificate.solids import WORLD, environment_solids
from mcplan.certificate.stance_checks import CONE_EDGES
from mcplan.certificate.tolerances import PLAN_CLEARANCE, PLAN_FORCE
from mcplan.certificate.transition_balance import cone_edges, missing_wrench
from mcplan.certificate.transition_track import TransitionTrack
from mcplan.errors import RunError
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.record.records import BodyRecord
from mcplan.record.world import with_imperfections
from mcplan.scene.contact import Carrier
from mcplan.scene.environment import Environment
from mcplan.scene.resting import carrier as carrier_of

SEGMENT_SAMPLES, RUN_PERIOD_S = 40, 0.02
"""Number of sampled intervals per segment of a plan; s: sampling period of a run."""

MAX_DISTANCE = 0.05
"""m: larger distances are not measured."""


def track_clearance(environment: Environment, tracks: Sequence[TransitionTrack]) -> Check | None:
    """Return the clearance check of moved objects in a plan; None if no object moves."""
    solids = _EnvironmentSolids(environment)
    min_distance, where = np.inf, ""
    for track in tracks:
        t = np.linspace(0.0, track.duration, SEGMENT_SAMPLES + 1)
        poses = {name: track.object_poses(name, t) for name in track.start_poses}
        for name in track.start_poses:
            if np.array_equal(track.start_poses[name], track.end_poses[name]):
                continue
            distance, k, other = solids.min_distance(name, poses)
            if distance < min_distance:
                min_distance, where = distance, f"{name} and {other}, {track.label(t[k])}"
    return _line("transition: objects apart", min_distance, where, PLAN_CLEARANCE)


def run_clearance(evidence: RecomputedRun) -> Check | None:
    """Return the clearance check of moved objects in a ``qp`` run; its physics does not detect collisions of objects.

    The result is None in other physics, or if no object moves.
    """
    run = evidence.run
    if run.object_q is None or not len(evidence.record.objects) or evidence.record.physics != "qp":
        return None
    try:
        environment = with_imperfections(evidence.plan.scenario.environment, evidence.record.world)
    except RunError:
        return None  # reported by the goal checks
    solids, names = _EnvironmentSolids(environment), evidence.record.objects
    rows = np.unique([*range(0, len(run), max(1, round(RUN_PERIOD_S / run.dt))), len(run) - 1])
    q = run.object_q[rows]
    poses = {n: (rotation_of(q[:, i, 3:].T).transpose(2, 0, 1), q[:, i, :3]) for i, n in enumerate(names)}
    min_distance, where = np.inf, ""
    for name in names:
        if np.ptp(poses[name][1], axis=0).max(initial=0.0) == 0.0:
            continue
        distance, k, other = solids.min_distance(name, poses)
        if distance < min_distance:
            min_distance, where = distance, f"{name} and {other}, {evidence.time(int(rows[k]))}"
    return _line("objects: apart", min_distance, where, evidence.tolerances.overlap)


def _line(name: str, min_distance: float, where: str, tolerance: float) -> Check | None:
    if not where:
        return None
    failure = "" if min_distance >= -tolerance else f"{where}: they overlap by {-min_distance:.4g} m"
    return Check(name, min_distance, "m", f">= {-tolerance:g}", not failure, where, failure)


class _EnvironmentSolids:
    """Convex solids of the objects and of the environment."""

    def __init__(self, environment: Environment):
        found = list(environment_solids(environment, 0))
        self.objects: dict[str, Convex] = {name: solid for name, owner, solid in found if owner != WORLD}
        self.world: dict[str, Convex] = {name: solid for name, owner, solid in found if owner == WORLD}

    def min_distance(self, name: str, poses: dict[str, tuple[np.ndarray, np.ndarray]]) -> tuple[float, int, str]:
        """Return the minimum distance of an object to other solids (m), its time index, and the nearest solid."""
        R, p = poses[name]
        m, min_distance, k_min, nearest = len(p), MAX_DISTANCE, 0, ""
        fixed = np.broadcast_to(np.eye(3), (m, 3, 3)), np.zeros((m, 3))
        others = {other: (solid, *fixed) for other, solid in self.world.items()}
        others |= {other: (solid, *poses[other]) for other, solid in self.objects.items() if other != name}
        for other, (solid, R2, p2) in others.items():
            pair = [self.objects[name], solid]
            a, b = Placed(pair, np.zeros(m, int), R, p), Placed(pair, np.ones(m, int), R2, p2)
            distance = signed_distances(a, b, np.full(m, MAX_DISTANCE)).lower
            k = int(np.argmin(distance))
            if not distance[k] >= min_distance:
                min_distance, k_min, nearest = float(distance[k]), k, other
        return min_distance, k_min, nearest


SLIDING_SPEED = 5e-3
"""m/s: an object that moves faster counts as sliding."""

MIN_SLIDING_FRICTION = 0.99
"""Minimum friction force against sliding, as a share of the friction limit; the maximum is 2 minus this share."""


def object_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the object checks of a run; none without objects."""
    run, bodies = evidence.run, {body.name: body for body in evidence.record.plan.bodies}
    if run.object_q is None or run.object_v is None or len(run) < 2:
        return
    objects = [(i, bodies[name]) for i, name in enumerate(evidence.record.objects) if name in bodies]
    yield _integration(evidence, run.object_q, run.object_v)
    yield _balance(evidence, objects, run.object_q, run.object_v)
    if evidence.record.physics == "qp":
        yield _friction(evidence, objects, run.object_v)
    clearance = run_clearance(evidence)
    if clearance is not None:
        yield clearance


def stance_objects(plan: Plan) -> Iterator[Check]:
    """Yield the static support check of objects in a plan; none if no object is touched or moved."""
    line = WorstCase("objects: held", "N, N m beyond the support", PLAN_FORCE)
    names = {item.name for item in plan.scenario.environment.objects}
    for k, stance in enumerate(plan.stances):
        touched = {c.carrier.name for c in stance.contacts if c.carrier is not None}
        for name in sorted(touched | (stance.objects.keys() & names)):
            carrier = _carrier(plan, stance, name)
            missing = _unsupported(stance, carrier)
            motion = "slide or tip" if carrier.rest else "fall"
            line.update(missing, f"{name}, stance {k}", f"it would {motion}: {missing:.4g} N (N m) beyond its support")
    if line.value is not None:
        yield line.check()


def _carrier(plan: Plan, stance: PlannedStance, name: str) -> Carrier:
    """Return an object as carrier: that of a contact on it, or else the object at its pose in the stance."""
    carriers = [c.carrier for c in stance.contacts if c.carrier is not None and c.carrier.name == name]
    return carriers[0] if carriers else carrier_of(plan.scenario.environment.placed(stance.objects), name)


def _unsupported(stance: PlannedStance, carrier: Carrier) -> float:
    """Return the part of the weight and contact wrenches of an object that its support cannot balance (N, N m)."""
    contacts = [c for c in stance.contacts if c.carrier is not None and c.carrier.name == carrier.name]
    load = np.concatenate([-carrier.mass * STANDARD_GRAVITY, np.zeros(3)])
    for contact in contacts:
        w = stance.wrenches.get(contact.patch, np.zeros(6))
        load += np.concatenate([w[:3], w[3:] + np.cross(contact.p - carrier.com, w[:3])])
    if carrier.rest is None:
        return float(np.abs(load).max())
    edges = cone_edges(carrier.rest.axes, carrier.rest.friction, CONE_EDGES)
    return missing_wrench(edges, carrier.rest.world_points - carrier.com, load)


def _integration(evidence: RecomputedRun, q: np.ndarray, v: np.ndarray) -> Check:
    """Check ``q+ = integrate(q, v+, dt)`` for every object."""
    run, bound = evidence.run, evidence.tolerances.integration
    deviation = np.zeros((len(run) - 1, q.shape[1]))
    for i in range(q.shape[1]):
        expected = integrate(q[:-1, i], v[1:, i], run.dt)
        same_sign = np.sum(expected[:, 3:] * q[1:, i, 3:], axis=1) >= 0.0
        expected[:, 3:] *= np.where(same_sign, 1.0, -1.0)[:, None]
        deviation[:, i] = np.abs(expected - q[1:, i]).max(axis=1)
    k, i = worst(deviation)
    value, where = float(deviation[k, i]), f"{evidence.record.objects[i]}, {evidence.time(k + 1)}"
    failure = f"the pose of {where} does not follow from its velocity: off by {value:.3g}"
    return at_most("objects: integration", value, "m, -", bound, where, failure)


def _balance(evidence: RecomputedRun, objects: list[tuple[int, BodyRecord]], q: np.ndarray, v: np.ndarray) -> Check:
    """Check ``m (a_c - g) = sum f`` and ``I alpha + w x I w + r x m (a_c - g) = sum n`` of every object.

    Moments are about the origin of the object; its centre of mass is at r. In ``qp`` an object without contact points
    in the whole run must stay at rest. Integrators may evaluate the gyroscopic moment ``h(w) = w x I w`` anywhere in
    the step from ``w`` to ``w + d``. Therefore moments may differ from those at the start of the step by
    ``|h(w + d) - h(w)| + |h(d)|``, a first- and a second-order term.
    """
    run, bound = evidence.run, evidence.tolerances.eom
    deviation = np.zeros((len(run) - 1, max(len(objects), 1)))
    for column, (i, body) in enumerate(objects):
        force, moment, touched = _loads(evidence, i, q[:, i, :3])
        if not touched and evidence.record.physics == "qp":
            deviation[:, column] = np.abs(v[1:, i]).max(axis=1)
            continue
        R, w = rotation_of(q[:-1, i, 3:].T).transpose(2, 0, 1), v[:-1, i, 3:]
        a, alpha = np.split((v[1:, i] - v[:-1, i]) / run.dt, 2, axis=1)
        r = R @ np.array(body.com)
        net_force = body.mass * (a + np.cross(alpha, r) + np.cross(w, np.cross(w, r)) - STANDARD_GRAVITY)
        inertia = R @ np.array(body.inertia) @ R.transpose(0, 2, 1)
        change = run.dt * alpha
        gyroscopic = _gyroscopic(inertia, w)
        slack = _lengths(_gyroscopic(inertia, w + change) - gyroscopic) + _lengths(_gyroscopic(inertia, change))
        moment_error = np.einsum("kij,kj->ki", inertia, alpha) + gyroscopic + np.cross(r, net_force) - moment[:-1]
        deviation[:, column] = np.maximum(np.abs(net_force - force[:-1]).max(axis=1), _lengths(moment_error) - slack)
    k, column = worst(deviation)
    value, where = float(deviation[k, column]), f"{objects[column][1].name}, {evidence.time(k)}" if objects else ""
    failure = (
        f"equation of motion of {where} off by {value:.6g} N (N m) "
        f"({np.count_nonzero((deviation > bound).any(axis=1))} of {len(run)} samples)"
    )
    return at_most("objects: equation of motion", value, "N, N m", bound, where, failure)


def _gyroscopic(inertia: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return ``w x I w`` (N, 3)."""
    return np.cross(w, np.einsum("kij,kj->ki", inertia, w))


def _lengths(vectors: np.ndarray) -> np.ndarray:
    """Return the lengths of vectors (N, 3)."""
    return np.asarray(np.linalg.norm(vectors, axis=1))


def _loads(evidence: RecomputedRun, i: int, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the total contact force and moment (N, 3) on an object about its origin, and whether it has contacts."""
    run, count = evidence.run, len(evidence.run)
    rows = np.flatnonzero(run.point_link == len(evidence.record.links) + i)
    sample, f = evidence.point_sample[rows], run.point_force[rows]
    n = np.cross(run.point_xyz[rows] - origin[sample], f)
    total = [np.stack([np.bincount(sample, x[:, c], minlength=count) for c in range(3)], axis=1) for x in (f, n)]
    return total[0], total[1], bool(len(rows))


def _friction(evidence: RecomputedRun, objects: list[tuple[int, BodyRecord]], v: np.ndarray) -> Check:
    """Check that support forces on objects stay in the friction cone and, at its limit, oppose sliding.

    The support force is the total force on the object minus the force of the robot, which is the opposite of the
    object's force on the robot.
    """
    bound, name = evidence.tolerances.force, "objects: friction"
    largest, where, failure = 0.0, "", ""
    for i, body in objects:
        if body.up is None:
            continue
        normal_axis = np.array(body.up)
        total = _loads(evidence, i, np.zeros((len(evidence.run), 3)))[0] + _force_on_robot(evidence, body.name)
        normal = total @ normal_axis
        tangential = total - normal[:, None] * normal_axis
        velocity = v[:, i, :3] - (v[:, i, :3] @ normal_axis)[:, None] * normal_axis
        speed = np.linalg.norm(velocity, axis=1)
        limit = body.friction * normal
        excess = np.linalg.norm(tangential, axis=1) - limit * (2.0 - MIN_SLIDING_FRICTION)
        opposing = -np.einsum("ki,ki->k", tangential, velocity) / np.maximum(speed, SLIDING_SPEED)
        deficit = np.where(speed > SLIDING_SPEED, MIN_SLIDING_FRICTION * limit - opposing, -np.inf)
        for values, text in ((excess, "exceeds its cone"), (deficit, "is too small against sliding")):
            (k,) = worst(values)
            if values[k] > bound and not failure:
                failure = f"friction on {body.name} {text} by {values[k]:.4g} N at {evidence.time(k)}"
            if values[k] > largest:
                largest, where = float(values[k]), f"{body.name}, {evidence.time(k)}"
    return Check(name, largest, "N off", f"<= {bound:g}", not failure, where, failure)


def _force_on_robot(evidence: RecomputedRun, name: str) -> np.ndarray:
    """Return the force (N, 3) that an object exerts on the patches in contact with it."""
    run, target = evidence.run, evidence.point_contact_index
    points = np.array([contact.carrier == name for contact in evidence.contacts] + [False])[target]
    sample, f = evidence.point_sample[points], run.point_force[points]
    return np.stack([np.bincount(sample, f[:, c], minlength=len(run)) for c in range(3)], axis=1)
