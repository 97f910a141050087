"""Check that forces at contact points which no planned contact explains act where bodies meet.

A point of a link that nobody planned, and any point of an object, is on a solid of its own, and on one that it could
meet: of what stands fast, of an object, of a link that is not next to its own. What the physics reports of both lies
between their surfaces, which may overlap.
"""

from collections.abc import Iterator

import numpy as np

from mcplan.certificate.clearance_checks import poses_of
from mcplan.certificate.evidence import Evidence
from mcplan.certificate.report import Check
from mcplan.certificate.separation import Convex, Placed, signed_distances
from mcplan.certificate.solids import WORLD, gather
from mcplan.errors import RunError
from mcplan.sim.world import with_flaws

NEAR = 5e-3
"""m: how far a point may be from a solid on which it acts: by as much as bodies overlap, and move in a step."""

BEHIND = 0.01
"""m: how thick a patch may be."""

BLOCK = 4000
"""Points whose poses are held at a time."""


def touch_checks(evidence: Evidence) -> Iterator[Check]:
    """Yield the line of the certificate that says whether unplanned forces act where bodies are."""
    run, name = evidence.run, "unplanned contact points"
    loose = (run.point_patch < 0) | (run.point_link >= len(evidence.record.links))
    force = np.linalg.norm(run.point_force, axis=1)
    (rows,) = np.nonzero(loose & (force > evidence.tolerances.force))
    if evidence.record.physics == "qp" or not len(rows):
        yield Check(name, None, "", "on two bodies", True)
        return
    try:
        places = _Places(evidence)
    except RunError as error:
        yield Check(name, None, "", "on two bodies", False, "", f"they cannot be judged: {error}")
        return
    lost = np.concatenate([places.lost(rows[k : k + BLOCK]) for k in range(0, len(rows), BLOCK)])
    failure = ""
    if lost.any():
        i = int(rows[np.argmax(np.where(lost, force[rows], 0.0))])
        names = [link.name for link in evidence.record.robot.links] + list(evidence.record.objects)
        failure = (
            f"a force of {force[i]:.4g} N acts on {names[run.point_link[i]]} at "
            f"{evidence.time(int(evidence.point_sample[i]))} where no two bodies meet ({np.count_nonzero(lost)} points)"
        )
    yield Check(name, float(np.count_nonzero(lost)), "", "on two bodies", not failure, "", failure)


class _Places:
    """Where the solids of a run are, patches included."""

    def __init__(self, evidence: Evidence):
        self.evidence, scenario, record = evidence, evidence.plan.scenario, evidence.record.robot
        solids = gather(scenario.robot, record, with_flaws(scenario.environment, evidence.record.world))
        patches = [
            Convex(
                np.array([[*corner[:2], z] for corner in patch.polygon for z in (0.0, -BEHIND)]), ball=patch.radius
            ).at(np.array(patch.R), np.array(patch.p))
            for patch in record.patches
        ]
        self.solids = [*solids.solids, *patches]
        links, world = len(record.links), len(record.links) + len(evidence.record.objects)
        owner = np.where(solids.owner == WORLD, world, solids.owner)
        self.owner = np.append(owner, [patch.link for patch in record.patches]).astype(int)
        self.body = np.append(solids.bodies, np.arange(links, world + 1))
        self.meets = self.body[:, None] != self.body  # what could meet: of links only those that collisions know of
        self.meets[:links, :links] = False
        a, b = owner[solids.pairs].T
        self.meets[a, b] = self.meets[b, a] = True

    def lost(self, rows: np.ndarray) -> np.ndarray:
        """Say of contact points (k,) whether they lack a solid of their own, or one of something else."""
        run, point = self.evidence.run, Convex(np.zeros((1, 3)))
        samples, of = np.unique(self.evidence.point_sample[rows], return_inverse=True)
        R, p = poses_of(self.evidence, samples)
        at, link = run.point_xyz[rows], run.point_link[rows]
        own, other = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
        for solid, owner in zip(self.solids, self.owner.tolist(), strict=True):
            centre, radius = solid.bounds
            middle = (R[:, owner] @ centre + p[:, owner])[of]
            mine = self.body[link] == self.body[owner]
            asked = ~np.where(mine, own, other)
            (near,) = np.nonzero(asked & (np.linalg.norm(at - middle, axis=1) <= radius + NEAR))
            if not len(near):
                continue
            zero = np.zeros(len(near), int)
            placed = Placed([solid], zero, R[of[near], owner], p[of[near], owner])
            points = Placed([point], zero, np.broadcast_to(np.eye(3), (len(near), 3, 3)), at[near])
            near = near[signed_distances(placed, points, np.full(len(near), NEAR), deep=False).lower < NEAR]
            own[near] |= mine[near]
            other[near] |= self.meets[link[near], owner]
        return ~(own & other)
