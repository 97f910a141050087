"""Whether objects that the robot moves keep off what stands around them, and off each other.

An object at rest touches what it lies on; a deeper overlap at any of the times that are looked at is found.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.certificate.evidence import Evidence
from mcplan.certificate.independent import rotation_of
from mcplan.certificate.report import Check
from mcplan.certificate.separation import Convex, Placed, signed_distances
from mcplan.certificate.solids import WORLD, environment_solids
from mcplan.certificate.transition_track import Track
from mcplan.errors import RunError
from mcplan.scene.environment import Environment
from mcplan.sim.tolerances import PLAN_CLEARANCE
from mcplan.sim.world import with_flaws

PARTS, PERIOD = 40, 0.02
"""Equal parts of a segment, and time between samples of a run (s), at whose ends it is looked at."""

FAR = 0.05
"""m: of pairs that are farther apart no more is asked."""


def track_clearance(environment: Environment, tracks: Sequence[Track]) -> Check | None:
    """Return the line of the certificate of a plan; None where no object moves."""
    solids = _Solids(environment)
    least, where = np.inf, ""
    for track in tracks:
        t = np.linspace(0.0, track.duration, PARTS + 1)
        poses = {name: track.object_poses(name, t) for name in track.objects}
        for name in track.objects:
            if np.array_equal(track.objects[name], track.moved[name]):
                continue
            distance, k, other = solids.least(name, poses)
            if distance < least:
                least, where = distance, f"{name} and {other}, {track.when(t[k])}"
    return _line("transition: objects apart", least, where, PLAN_CLEARANCE)


def run_clearance(evidence: Evidence) -> Check | None:
    """Return the line of the certificate of a run in ``qp``, where nothing but the plan keeps objects off the world."""
    run = evidence.run
    if run.object_q is None or not len(evidence.record.objects) or evidence.record.physics != "qp":
        return None
    try:
        environment = with_flaws(evidence.plan.scenario.environment, evidence.record.world)
    except RunError:
        return None  # the lines on the goal say so
    solids, names = _Solids(environment), evidence.record.objects
    rows = np.unique([*range(0, len(run), max(1, round(PERIOD / run.dt))), len(run) - 1])
    q = run.object_q[rows]
    poses = {n: (rotation_of(q[:, i, 3:].T).transpose(2, 0, 1), q[:, i, :3]) for i, n in enumerate(names)}
    least, where = np.inf, ""
    for name in names:
        if np.ptp(poses[name][1], axis=0).max(initial=0.0) == 0.0:
            continue
        distance, k, other = solids.least(name, poses)
        if distance < least:
            least, where = distance, f"{name} and {other}, {evidence.time(int(rows[k]))}"
    return _line("objects: apart", least, where, evidence.tolerances.overlap)


def _line(name: str, least: float, where: str, tolerance: float) -> Check | None:
    if not where:
        return None
    failure = "" if least >= -tolerance else f"{where}: they overlap by {-least:.4g} m"
    return Check(name, least, "m", f">= {-tolerance:g}", not failure, where, failure)


class _Solids:
    """The objects of a scene, and what stands around them."""

    def __init__(self, environment: Environment):
        found = list(environment_solids(environment, 0))
        self.objects: dict[str, Convex] = {name: solid for name, owner, solid in found if owner != WORLD}
        self.world: dict[str, Convex] = {name: solid for name, owner, solid in found if owner == WORLD}

    def least(self, name: str, poses: dict[str, tuple[np.ndarray, np.ndarray]]) -> tuple[float, int, str]:
        """Return the least distance of an object (m), at which of the m times that is, and from what."""
        R, p = poses[name]
        m, least, when, who = len(p), FAR, 0, ""
        still = np.broadcast_to(np.eye(3), (m, 3, 3)), np.zeros((m, 3))
        others = {other: (solid, *still) for other, solid in self.world.items()}
        others |= {other: (solid, *poses[other]) for other, solid in self.objects.items() if other != name}
        for other, (solid, R2, p2) in others.items():
            pair = [self.objects[name], solid]
            mine, theirs = Placed(pair, np.zeros(m, int), R, p), Placed(pair, np.ones(m, int), R2, p2)
            distance = signed_distances(mine, theirs, np.full(m, FAR)).lower
            k = int(np.argmin(distance))
            if not distance[k] >= least:
                least, when, who = float(distance[k]), k, other
        return least, when, who
