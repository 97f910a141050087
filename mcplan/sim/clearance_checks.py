"""Checks of clearance, of a run and of a plan: links keep apart from each other and from what they do not rest on.

The distances come from the kernels that the planner uses as well: those are held against another library in their own
tests. The configurations are those of the run or plan, and what may touch is what it says.
"""

from collections.abc import Iterator

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.errors import RunError
from mcplan.planning.plan import Plan
from mcplan.sim.certificate import Check
from mcplan.sim.evidence import NONE, Evidence
from mcplan.sim.independent import rotation_of
from mcplan.sim.world import with_flaws

PERIOD = 0.020
"""Time between the samples that are looked at (s); so long a patch that has just let go is where it was."""

ROUNDING = 1e-6
"""Overlap that is none (m)."""


def clearance_checks(evidence: Evidence) -> Iterator[Check]:
    """Yield the line of the certificate that concerns clearance; a run that keeps no plan document has none.

    A link may sink 2 mm into the support of its own patch, in the phases that lead to or from a
    stance with that contact; every other pair has to stay apart.
    """
    run = evidence.run
    try:
        scenario = run.scenario
    except RunError as error:
        yield Check("clearance", None, "m", "", True, f"not judged: {error}")
        return
    model = CollisionModel(scenario.robot, with_flaws(scenario.environment, run.record.world))
    least, where = np.inf, ""
    deepest: dict[str, tuple[float, int, int]] = {}
    step = max(1, round(PERIOD / run.dt))
    for k in sorted({*range(0, len(run), step), len(run) - 1}):
        q = run.q[k].copy()
        q[3:7] /= np.linalg.norm(q[3:7])
        contacts, objects = _allowed(evidence, k), _objects(evidence, k)
        smallest = model.smallest(q, contacts=contacts, objects=objects)
        if smallest is None:
            break
        if not smallest.distance >= least:
            least, where = smallest.distance, f"{smallest.pair} at {evidence.time(k)}"
        if not smallest.distance >= -ROUNDING:
            near = model.distances(q, 0.0, contacts, objects)
            for pair, distance, room in zip(near.pairs, near.distance, near.room, strict=True):
                if not room >= -ROUNDING:
                    depth, worst, first = deepest.get(str(pair), (0.0, k, k))
                    deepest[str(pair)] = (-distance, k, first) if -distance > depth else (depth, worst, first)
    failure = "; ".join(
        f"{pair} overlap by {depth:.4g} m at {evidence.time(worst)} (from {evidence.time(first)} on)"
        for pair, (depth, worst, first) in sorted(deepest.items(), key=lambda item: -item[1][0])
    )
    if np.isinf(least):
        yield Check("clearance", None, "m", "", True)
    else:
        yield Check("clearance", float(least), "m", ">= 0", not failure, where, failure)


def stance_clearance(plan: Plan) -> Check:
    """Return the line of the certificate of a plan that concerns clearance, in the postures of its stances.

    A link may sink 2 mm into the support of its own patch where its stance, or the one before, has that contact.
    """
    robot, environment = plan.scenario.robot, plan.scenario.environment
    still = CollisionModel(robot, environment)
    least, where, wrong = np.inf, "", []
    for k, stance in enumerate(plan.stances):
        contacts = [*plan.stances[max(k - 1, 0)].contacts, *stance.contacts]
        model = CollisionModel(robot, environment.placed(stance.objects)) if stance.objects else still
        near = model.smallest(stance.q, contacts=contacts)
        if near is None:
            continue
        if near.distance < least:
            least, where = near.distance, f"{near.pair}, stance {k}"
        if not near.distance >= -ROUNDING:
            wrong.append(f"stance {k}: {near.pair} overlap by {-near.distance:.4g} m")
    value = float(least) if np.isfinite(least) else None
    return Check("clearance", value, "m", "" if value is None else ">= 0", not wrong, where, "; ".join(wrong))


def _allowed(evidence: Evidence, k: int) -> set[tuple[str, str]]:
    """Links and supports that may touch at a sample: those that touch or just let go, and those of the stances."""
    record = evidence.record
    links = {patch.name: record.robot.links[patch.link].name for patch in record.robot.patches}
    just = max(k - round(PERIOD / evidence.run.dt), 0)
    contacts = [evidence.contacts[c] for c in np.unique(evidence.target[just : k + 1]) if c != NONE]
    stance = record.phases[evidence.run.phase[k]].stance
    if stance is not None:
        for near in record.plan.stances[max(stance - 1, 0) : stance + 1]:
            contacts += near.contacts
    return {(links[contact.patch], contact.support) for contact in contacts}


def _objects(evidence: Evidence, k: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Poses of the objects at a sample."""
    run = evidence.run
    if run.object_q is None:
        return {}
    poses = zip(run.record.objects, run.object_q[k], strict=True)
    return {name: (rotation_of(row[3:, None])[:, :, 0], row[:3]) for name, row in poses}
