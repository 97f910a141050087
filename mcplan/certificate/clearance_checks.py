"""Clearance checks of a run and of the stances of a plan; check of the contact points of unplanned forces.

Links must keep clear of each other and of everything except their supports. Distances come from
`mcplan.certificate.separation`, poses from `mcplan.certificate.independent`; planner and controller use neither. A run
is checked every 20 ms, and in between where the links move so far that an overlap is possible. The distance d between
two checked samples is bounded by::

    d(t) >= (d_k + d_k+1 - s) / 2,     s = sum over the samples of |dp| + r |dR|_F / sqrt(2) of both solids

because no point of a link moves farther than ``|dp| + r |dR|_F / sqrt(2)`` from one sample to the next, with the
change (dR, dp) of its pose and its radius r about its origin.

Every unplanned contact point of a link, and every contact point of an object, must lie on a solid of that link or
object and on another solid: between their surfaces, which may overlap.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from mcplan.certificate.independent import CHUNK_SAMPLES, Mechanism, rotation_of
from mcplan.certificate.recomputed_run import NONE, RecomputedRun
from mcplan.certificate.report import Check
from mcplan.certificate.separation import GAP, Convex, Placed, signed_distances
from mcplan.certificate.solids import WORLD, AllowedContacts, ClearanceMonitor, Solids, gather_solids
from mcplan.certificate.tolerances import PLAN_CLEARANCE
from mcplan.errors import RunError
from mcplan.planning.plan import Plan
from mcplan.record.recording import record_robot
from mcplan.record.world import with_imperfections
from mcplan.scene.environment import Environment

PERIOD_S = 0.020
"""s: period of the checked samples, and time after the end of a contact in which link and support may still touch."""

BLOCK_SAMPLES = 512
"""Number of samples evaluated at once, which limits the memory."""


def clearance_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the clearance check.

    A link may penetrate the support of its patch by 2 mm in phases to or from a stance with that contact. All other
    pairs must not overlap.
    """
    run = evidence.run
    try:
        scenario = evidence.plan.scenario
    except RunError as error:
        yield Check("clearance", None, "m", ">= 0", False, "", f"clearance cannot be judged: {error}")
        return
    environment = with_imperfections(scenario.environment, run.record.world)
    solids = gather_solids(scenario.robot, evidence.record.robot, environment)
    if not len(solids.pairs):
        yield Check("clearance", None, "m", "", True)
        return
    monitor = ClearanceMonitor(solids, evidence.tolerances.overlap)
    step = max(1, round(PERIOD_S / run.dt))
    samples = np.array(sorted({*range(0, len(run), step), len(run) - 1}))
    travel = _travel(evidence, solids, samples)
    allowed = _ContactsAtSample(evidence)
    lower = np.empty((len(samples), len(solids.pairs)))
    allowed_overlap = np.empty_like(lower)
    for start in range(0, len(samples), BLOCK_SAMPLES):
        rows = slice(start, start + BLOCK_SAMPLES)
        k = samples[rows]
        allowed_overlap[rows] = [monitor.allowed_overlap(allowed(int(sample))) for sample in k]
        slack = np.zeros((len(k), len(solids.pairs)))
        before, after = np.maximum(np.arange(len(samples))[rows] - 1, 0), np.arange(len(samples))[rows]
        if len(travel):
            slack = np.maximum(travel[before], travel[np.minimum(after, len(travel) - 1)]) / 2
        lower[rows] = monitor.check_all(*poses_of(evidence, k), allowed_overlap[rows], slack, k)
    if len(travel):
        candidates = lower[:-1] + lower[1:] + allowed_overlap[:-1] + allowed_overlap[1:] < travel - 2 * GAP
        _check_between(evidence, monitor, samples, np.argwhere(candidates), allowed)
    yield clearance_line(monitor, evidence.time, evidence.tolerances.overlap, "at")


def stance_clearance(plan: Plan) -> Check:
    """Return the clearance check of the postures of a plan's stances.

    A link may penetrate the support of its patch by 2 mm if the stance, or the previous one, has that contact.
    """
    robot, record = plan.scenario.robot, record_robot(plan.scenario.robot)
    solids = gather_solids(robot, record, plan.scenario.environment)
    if not len(solids.pairs):
        return Check("clearance", None, "m", "", True)
    monitor = ClearanceMonitor(solids, PLAN_CLEARANCE)
    q = np.array([stance.q for stance in plan.stances])
    R, p = Mechanism(record).poses(q)
    objects = [_object_poses(plan.scenario.environment, stance.objects) for stance in plan.stances]
    R, p = _with_world(R, p, np.array([o[0] for o in objects]), np.array([o[1] for o in objects]))
    allowed_overlap = np.array(
        [
            monitor.allowed_overlap(
                frozenset((c.patch, c.support) for s in plan.stances[max(k - 1, 0) : k + 1] for c in s.contacts)
            )
            for k in range(len(plan.stances))
        ]
    )
    monitor.check_all(R, p, allowed_overlap, np.zeros_like(allowed_overlap), np.arange(len(plan.stances)))
    return clearance_line(monitor, lambda k: f"stance {k}", PLAN_CLEARANCE, "in")


def clearance_line(
    monitor: ClearanceMonitor, when: Callable[[int], str], tolerance: float, preposition: str, name: str = "clearance"
) -> Check:
    """Return the check of the results of a clearance monitor.

    Parameters
    ----------
    when, preposition : text of a sample, and the word before it in messages ("at", "in").
    tolerance : allowed overlap, m.
    """
    failure = "; ".join(
        f"{monitor.name(pair)} overlap by {found.depth:.4g} m {preposition} {when(found.worst)}"
        + (f" (from {when(found.first)} on)" if found.first != found.worst else "")
        for pair, found in sorted(monitor.overlaps.items(), key=lambda item: -item[1].depth)
    )
    if np.isinf(monitor.min_distance):
        return Check(name, None, "m", "", True)
    pair, k = monitor.closest
    where = f"{monitor.name(pair)} {preposition} {when(k)}"
    return Check(name, monitor.min_distance, "m", f">= -{tolerance:g}", not failure, where, failure)


class _ContactsAtSample:
    """Contacts in which links may touch supports at a sample: closed and recent ones, and those of the stances."""

    def __init__(self, evidence: RecomputedRun):
        self._evidence = evidence
        self._period = round(PERIOD_S / evidence.run.dt)
        self._cache: dict[tuple, AllowedContacts] = {}

    def __call__(self, k: int) -> AllowedContacts:
        evidence, record = self._evidence, self._evidence.record
        stance = record.phases[evidence.run.phase[k]].stance
        touched = frozenset(np.unique(evidence.contact_index[max(k - self._period, 0) : k + 1]).tolist()) - {NONE}
        if (touched, stance) not in self._cache:
            contacts = [evidence.contacts[c] for c in touched]
            if stance is not None:
                for s in record.plan.stances[max(stance - 1, 0) : stance + 1]:
                    contacts += s.contacts
            self._cache[touched, stance] = frozenset((c.patch, c.support) for c in contacts)
        return self._cache[touched, stance]


def _check_between(
    evidence: RecomputedRun,
    monitor: ClearanceMonitor,
    checked: np.ndarray,
    candidates: np.ndarray,
    allowed: _ContactsAtSample,
) -> None:
    """Check all samples inside intervals in which a pair may overlap.

    Parameters
    ----------
    checked : samples that have been checked; an interval lies between two of them.
    candidates : (M, 2) indices of intervals and pairs.
    """
    items = [
        (sample, pair)
        for interval, pair in candidates
        for sample in range(checked[interval] + 1, checked[interval + 1])
    ]
    for start in range(0, len(items), CHUNK_SAMPLES):
        samples, pairs = np.array(items[start : start + CHUNK_SAMPLES]).T
        k, inverse = np.unique(samples, return_inverse=True)
        R, p = poses_of(evidence, k)
        allowed_overlap = np.array([monitor.allowed_overlap(allowed(int(sample))) for sample in k])[inverse, pairs]
        monitor.check_pairs(R[inverse], p[inverse], allowed_overlap, pairs, samples)


def _travel(evidence: RecomputedRun, solids: Solids, samples: np.ndarray) -> np.ndarray:
    """Return bounds (K-1, P), m, on the displacement of each pair's solids between checked samples, summed over both.

    For two links the bound relative to the base counts if it is tighter, because motion of the base moves both.
    """
    run = evidence.run
    reach = solids.reach
    travel = np.zeros((2, len(run), len(reach)))
    for start in range(0, len(run) - 1, CHUNK_SAMPLES):
        R, p = poses_of(evidence, np.arange(start, min(start + CHUNK_SAMPLES + 1, len(run))))
        for frame, (rotated, translated) in enumerate(((R, p), relative_to_base(R, p))):
            rotation = np.linalg.norm(np.diff(rotated, axis=0), axis=(2, 3)) / np.sqrt(2.0)
            travel[frame, start + 1 : start + len(R)] = (
                np.linalg.norm(np.diff(translated, axis=0), axis=2) + reach * rotation
            )
    total = np.diff(np.cumsum(travel, axis=1)[:, samples], axis=1)[:, :, solids.owner]
    i, j = solids.pairs.T
    world, base = total[..., i] + total[..., j]
    return np.asarray(np.where(solids.between_links, np.minimum(world, base), world))


def relative_to_base(R: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Transform poses (K, owners, 3, 3), (K, owners, 3) to the frame of the base, which is the first owner."""
    to_base = R[:, :1].transpose(0, 1, 3, 2)
    return to_base @ R, (to_base @ (p - p[:, :1])[..., None])[..., 0]


def poses_of(evidence: RecomputedRun, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the poses (K, owners + 1, 3, 3), (K, owners + 1, 3) of links, objects and the world (last) at samples."""
    run = evidence.run
    R, p = evidence.mechanism.poses(run.q[k])
    if run.object_q is None:
        return _with_world(R, p, np.zeros((len(k), 0, 3, 3)), np.zeros((len(k), 0, 3)))
    objects = run.object_q[k]
    R_objects = rotation_of(objects[..., 3:].reshape(-1, 4).T).transpose(2, 0, 1).reshape(len(k), -1, 3, 3)
    return _with_world(R, p, R_objects, objects[..., :3])


def _with_world(
    R: np.ndarray, p: np.ndarray, R_objects: np.ndarray, p_objects: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Append the poses of the objects and of the world to those of the links."""
    world = np.broadcast_to(np.eye(3), (len(R), 1, 3, 3)), np.zeros((len(R), 1, 3))
    return np.concatenate([R, R_objects, world[0]], axis=1), np.concatenate([p, p_objects, world[1]], axis=1)


def _object_poses(environment: Environment, moved: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (O, 3, 3) and positions (O, 3) of the objects; ``moved`` has the poses of moved ones by name."""
    objects = environment.placed(dict(moved)).objects
    R = np.array([item.R for item in objects]).reshape(-1, 3, 3)
    return R, np.array([item.p for item in objects]).reshape(-1, 3)


MAX_POINT_DISTANCE = 5e-3
"""m: maximum distance of a contact point from its solid: bodies overlap, and move during a step."""

PATCH_THICKNESS = 0.01
"""m: thickness of the solid that represents a patch."""

POINTS_BLOCK = 4000
"""Number of contact points evaluated at once, which limits the memory."""


def unplanned_point_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the check that unplanned contact forces act where two bodies touch."""
    run, name = evidence.run, "unplanned contact points"
    unplanned = (run.point_patch < 0) | (run.point_link >= len(evidence.record.links))
    force = np.linalg.norm(run.point_force, axis=1)
    (rows,) = np.nonzero(unplanned & (force > evidence.tolerances.force))
    if evidence.record.physics == "qp" or not len(rows):
        yield Check(name, None, "", "on two bodies", True)
        return
    try:
        placed = _PlacedSolids(evidence)
    except RunError as error:
        yield Check(name, None, "", "on two bodies", False, "", f"they cannot be judged: {error}")
        return
    misplaced = np.concatenate(
        [placed.misplaced(rows[k : k + POINTS_BLOCK]) for k in range(0, len(rows), POINTS_BLOCK)]
    )
    failure = ""
    if misplaced.any():
        i = int(rows[np.argmax(np.where(misplaced, force[rows], 0.0))])
        names = [link.name for link in evidence.record.robot.links] + list(evidence.record.objects)
        failure = (
            f"a force of {force[i]:.4g} N acts on {names[run.point_link[i]]} at "
            f"{evidence.time(int(evidence.point_sample[i]))} where no two bodies meet "
            f"({np.count_nonzero(misplaced)} points)"
        )
    yield Check(name, float(np.count_nonzero(misplaced)), "", "on two bodies", not failure, "", failure)


class _PlacedSolids:
    """Solids of a run, including patches, and their poses at its samples."""

    def __init__(self, evidence: RecomputedRun):
        self.evidence, scenario, record = evidence, evidence.plan.scenario, evidence.record.robot
        solids = gather_solids(scenario.robot, record, with_imperfections(scenario.environment, evidence.record.world))
        patches = [
            Convex(
                np.array([[*corner[:2], z] for corner in patch.polygon for z in (0.0, -PATCH_THICKNESS)]),
                ball=patch.radius,
            ).at(np.array(patch.R), np.array(patch.p))
            for patch in record.patches
        ]
        self.solids = [*solids.solids, *patches]
        links, world = len(record.links), len(record.links) + len(evidence.record.objects)
        owner = np.where(solids.owner == WORLD, world, solids.owner)
        self.owner = np.append(owner, [patch.link for patch in record.patches]).astype(int)
        self.body = np.append(solids.bodies, np.arange(links, world + 1))
        self.can_collide = self.body[:, None] != self.body  # two links only if they are a candidate pair
        self.can_collide[:links, :links] = False
        a, b = owner[solids.pairs].T
        self.can_collide[a, b] = self.can_collide[b, a] = True

    def misplaced(self, rows: np.ndarray) -> np.ndarray:
        """Return a mask (k,) of contact points that do not lie on a solid of their body and on one of another body."""
        run, point = self.evidence.run, Convex(np.zeros((1, 3)))
        samples, sample = np.unique(self.evidence.point_sample[rows], return_inverse=True)
        R, p = poses_of(self.evidence, samples)
        points_xyz, link = run.point_xyz[rows], run.point_link[rows]
        on_own_body, on_other_body = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
        for solid, owner in zip(self.solids, self.owner.tolist(), strict=True):
            centre, radius = solid.bounds
            centres = (R[:, owner] @ centre + p[:, owner])[sample]
            is_own = self.body[link] == self.body[owner]
            pending = ~np.where(is_own, on_own_body, on_other_body)
            (close,) = np.nonzero(
                pending & (np.linalg.norm(points_xyz - centres, axis=1) <= radius + MAX_POINT_DISTANCE)
            )
            if not len(close):
                continue
            zero = np.zeros(len(close), int)
            placed = Placed([solid], zero, R[sample[close], owner], p[sample[close], owner])
            points = Placed([point], zero, np.broadcast_to(np.eye(3), (len(close), 3, 3)), points_xyz[close])
            close = close[
                signed_distances(placed, points, np.full(len(close), MAX_POINT_DISTANCE), compute_depth=False).lower
                < MAX_POINT_DISTANCE
            ]
            on_own_body[close] |= is_own[close]
            on_other_body[close] |= self.can_collide[link[close], owner]
        return ~(on_own_body & on_other_body)
