"""Contact force checks: within cones and limits, at points of their patches, only in contact; contact options.

A plan file repeats the options of its contacts (friction, limits, free directions), on which the checks depend. So each
option must come from the scenario, for that patch on that support: from the start, a goal item, or the given contact
sequence. The last stance must have the options of the last item.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from pydantic import ValidationError

from mcplan.certificate.goal_checks import goal_items
from mcplan.certificate.motion_checks import worst
from mcplan.certificate.recomputed_run import NONE, RecomputedRun
from mcplan.certificate.report import Check, at_most
from mcplan.certificate.tolerances import LOADED
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.scene.spec import ContactSpec

PARALLEL, MOST_SKEW = 1e-4, 0.1
"""rad: tolerance of the normals of parallel faces from collision detection (the root of single precision), and of any
faces in a holding contact: 6 degrees, twice the allowed rotation of a patch."""


def force_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the checks of contact forces."""
    yield from _friction(evidence)
    yield _unilateral(evidence)
    yield from _patch_limits(evidence)
    yield _points_against_wrenches(evidence)
    yield from _points_against_patches(evidence)
    yield _only_where_active(evidence)
    yield _unplanned(evidence)


def _friction(evidence: RecomputedRun) -> Iterator[Check]:
    """``|ft| <= mu fn`` on the exact cone about the contact's normal, at planned points that carry more than 1 N.

    A point with less load is checked if its tangential force exceeds the cone at 1 N.
    """
    fn, ft = evidence.point_split
    target = evidence.point_target
    mu = np.where(target != NONE, evidence.frictions[target] if len(evidence.frictions) else np.nan, np.nan)
    rubs = np.isfinite(mu) & ~(evidence.grasps[target] if len(evidence.grasps) else False)
    judged = rubs & ((fn > LOADED) | (ft > mu * LOADED + evidence.tolerances.force))
    if not judged.any():
        yield Check("friction margin", None, "N", "", True)
        yield Check("friction ratio", None, "", "", True)
        return
    margin = np.where(judged, mu * fn - ft, np.inf)
    allowed = mu * fn
    loaded = judged & (fn > LOADED)
    ratio = np.where(loaded, ft / np.where(loaded & (allowed > 0), allowed, np.finfo(float).tiny), -np.inf)
    (i,) = worst(-margin)
    passed = bool(margin[i] >= -evidence.tolerances.force)
    count = int(np.count_nonzero(margin < -evidence.tolerances.force))
    failure = "" if passed else (
        f"friction at {evidence.point_name(i)}: tangential force {ft[i]:.6g} N, cone allows {mu[i] * fn[i]:.6g} N: "
        f"beyond it by {-margin[i]:.3g} ({count} points)"
    )  # fmt: skip
    yield Check("friction margin", float(margin[i]), "N", ">= 0", passed, evidence.point_name(i), failure)
    if not loaded.any():
        yield Check("friction ratio", None, "", "", True)
        return
    (j,) = worst(ratio)
    yield Check("friction ratio", float(ratio[j]), "of the cone", "", True, evidence.point_name(j))


def _unilateral(evidence: RecomputedRun) -> Check:
    """``fn >= 0`` at every point that is not a grasp."""
    fn, _ = evidence.point_split
    target = evidence.point_target
    pulling = np.where((target != NONE) & (evidence.grasps[target] if len(evidence.grasps) else False), np.inf, fn)
    if not np.isfinite(pulling).any():
        return Check("unilateral", None, "N", "", True)
    (i,) = worst(-pulling)
    passed = bool(pulling[i] >= -evidence.tolerances.force)
    failure = "" if passed else f"the support pulls at {evidence.point_name(i)} with {-pulling[i]:.6g} N"
    return Check("unilateral", float(pulling[i]), "N", ">= 0", passed, evidence.point_name(i), failure)


def _patch_limits(evidence: RecomputedRun) -> Iterator[Check]:
    """Check force and moment limits of contacts: normal force of a surface, force and moment of a grasp."""
    run, tolerance = evidence.run, evidence.tolerances.force
    used: dict[str, tuple[float, str, str]] = {}

    def judge(kind: str, values: np.ndarray, limit: float | None, rows: np.ndarray, patch: str, unit: str) -> None:
        if limit is None or not len(rows):
            return
        (i,) = worst(values)
        excess, place = float(values[i] - limit), f"{patch} at {evidence.time(int(rows[i]))}"
        text = f"{kind} of {place} is {values[i]:.6g} {unit}, limit {limit:g}: beyond it by {excess:.3g}"
        ratio = float(values[i] / limit) if limit > 0 else np.inf
        if kind not in used or used[kind][0] < ratio or (excess > tolerance and not used[kind][2]):
            used[kind] = (ratio, place, text if not excess <= tolerance else "")

    for column, patch in enumerate(run.patches):
        for c, contact in enumerate(evidence.contacts):
            rows = np.flatnonzero(evidence.target[:, column] == c)
            w = _averaged(run.wrench[:, column], round(evidence.tolerances.impact / run.dt))[rows]
            if contact.kind == "grasp":
                judge("grasp force", np.linalg.norm(w[:, :3], axis=1), contact.max_force, rows, patch, "N")
                judge("grasp moment", np.linalg.norm(w[:, 3:], axis=1), contact.max_moment, rows, patch, "N m")
                judge("free direction", _unconstrained(evidence, c, patch, rows), tolerance, rows, patch, "N m")
            else:
                judge(
                    "normal force",
                    np.sum(w[:, :3] * evidence.normal(c, rows), axis=1),
                    contact.max_force,
                    rows,
                    patch,
                    "N",
                )
    for kind, (ratio, place, failure) in used.items():
        if kind == "free direction" and not failure:
            continue
        yield Check(kind, ratio, "of the limit", "<= 1", not failure, place, failure)


def _averaged(w: np.ndarray, steps: int) -> np.ndarray:
    """Mean of a wrench (N, 6) over each sample and those before it, ``steps`` in all."""
    if steps <= 1:
        return w
    total = np.cumsum(np.concatenate([np.zeros((steps, w.shape[1])), w]), axis=0)
    return (total[steps:] - total[:-steps]) / steps


def _unconstrained(evidence: RecomputedRun, c: int, patch: str, rows: np.ndarray) -> np.ndarray:
    """Return the part of a wrench along the free directions of the contact (the hinge of a grasp), in patch axes."""
    R, w = evidence.motion.R[patch][rows], evidence.run.wrench[rows, evidence.run.patches.index(patch)]
    local = np.concatenate([np.einsum("kji,kj->ki", R, w[:, :3]), np.einsum("kji,kj->ki", R, w[:, 3:])], axis=1)
    return np.linalg.norm(local - local @ evidence.selections[c], axis=1)


def _points_against_wrenches(evidence: RecomputedRun) -> Check:
    """Check that point forces add up to the wrench; for a grasp, only to its force."""
    run, tolerance = evidence.run, evidence.tolerances.force
    name, P = "points add up to wrenches", len(run.patches)
    mine = np.flatnonzero(run.point_patch >= 0)
    if not P:
        return Check(name, None, "N, N m", "", True)
    sample, patch = evidence.point_sample[mine], run.point_patch[mine]
    origins = np.stack([evidence.motion.p[p] for p in run.patches], axis=1)
    force = run.point_force[mine]
    parts = np.concatenate([force, np.cross(run.point_xyz[mine] - origins[sample, patch], force)], axis=1)
    flat, size = sample * P + patch, len(run) * P
    total = np.stack([np.bincount(flat, parts[:, i], minlength=size) for i in range(6)], axis=1).reshape(len(run), P, 6)
    off = np.abs(total - run.wrench)
    if evidence.contacts:
        off[..., 3:][(evidence.target != NONE) & evidence.grasps[evidence.target]] = 0.0
    k, column, i = worst(off)
    value, where = float(off[k, column, i]), f"{run.patches[column]} at {evidence.time(k)}"
    failure = (
        f"point forces of {where} differ from its wrench by {value:.6g} {'N' if i < 3 else 'N m'} "
        f"({np.count_nonzero((off > tolerance).any(axis=(1, 2)))} samples)"
    )
    return at_most(name, value, "N, N m", tolerance, where, failure)


def _points_against_patches(evidence: RecomputedRun) -> Iterator[Check]:
    """Contact points lie in their patch, on its link, with the normal of the support."""
    run, bound = evidence.run, evidence.tolerances.point
    name, target = "contact points on their patch", evidence.point_target
    planned = np.flatnonzero(target != NONE)
    if not len(planned):
        yield Check(name, None, "m", "", True)
        return
    off = np.zeros(len(target))
    for column, patch in enumerate(run.patches):
        for c, contact in enumerate(evidence.contacts):
            i = planned[(run.point_patch[planned] == column) & (target[planned] == c)]
            if not len(i):
                continue
            k = evidence.point_sample[i]
            arm = run.point_xyz[i] - evidence.motion.p[patch][k]
            R = np.broadcast_to(contact.R, (len(k), 3, 3)) if contact.radius else evidence.motion.R[patch][k]
            local = np.einsum("kji,kj->ki", R, arm)
            points = np.array(contact.points)
            off[i] = np.linalg.norm(local[:, None] - points, axis=2).min(axis=1)
            if contact.rolls:
                # a flat patch that rolls on a bar may touch anywhere on its plane; its place is checked separately
                points = _polygon(evidence, patch)
            if evidence.record.physics != "qp" and len(points) > 1:
                off[i] = np.minimum(off[i], _outside(local, points) if len(points) > 2 else _off_segment(local, points))
    (i,) = worst(off)
    value, where = float(off[i]), evidence.point_name(i)
    yield at_most(name, value, "m", bound, where, f"{where} is {value:.3g} m away from where its patch touches")
    links = np.array([p.link for n in run.patches for p in evidence.record.robot.patches if p.name == n])
    wrong = planned[run.point_link[planned] != links[run.point_patch[planned]]]
    failure = f"{evidence.point_name(int(wrong[0]))} is recorded on another link than its patch" if len(wrong) else ""
    yield Check("contact points on their link", float(len(wrong)), "points", "== 0", not failure, "", failure)
    normals = np.linalg.norm(run.point_normal[planned] - evidence.support_normal[planned], axis=1)
    share = normals / _skew_allowed(evidence)[planned]
    (s,) = worst(share)
    value, where = float(share[s]), evidence.point_name(int(planned[s]))
    failure = f"the normal at {where} is not that of its support ({normals[s]:.3g} rad off)"
    yield at_most("contact normals", value, "of what these faces can have", 1.0, where, failure)


def _skew_allowed(evidence: RecomputedRun) -> np.ndarray:
    """Return the allowed deviation (K,) rad of each point's normal from that of its support.

    Faces with an angle ``a`` between them meet with the normal of one face, or of two crossing edges. The deviation is
    at most ``a / sin(b)`` with the angle ``b`` between the edges, at least 45 degrees for rectangles. The edge of a
    patch may touch a bar anywhere on its circumference.
    """
    if evidence.record.physics == "qp":
        return np.full(len(evidence.point_tilt), evidence.tolerances.normal)
    allowed = np.minimum(np.sqrt(2.0) * evidence.point_tilt + PARALLEL, MOST_SKEW)
    rolls, target = np.array([contact.rolls for contact in evidence.contacts], bool), evidence.point_target
    allowed[target != NONE] = np.where(rolls[target[target != NONE]], MOST_SKEW, allowed[target != NONE])
    return allowed


def _polygon(evidence: RecomputedRun, patch: str) -> np.ndarray:
    """Corners (k, 3) of a patch, in its axes."""
    (polygon,) = (p.polygon for p in evidence.record.robot.patches if p.name == patch)
    return np.array([[*corner[:2], 0.0] for corner in polygon])


def _outside(local: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Return the distances (m) of points outside a convex polygon or from its plane (z = 0), patch axes."""
    a, b = polygon[:, :2], np.roll(polygon[:, :2], -1, axis=0)
    edge = b - a
    area = np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
    normal = np.sign(area) * np.stack([edge[:, 1], -edge[:, 0]], axis=1)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), np.finfo(float).tiny)
    beyond = np.einsum("kei,ei->ke", local[:, None, :2] - a, normal).max(axis=1)
    return np.hypot(np.maximum(beyond, 0), local[:, 2])


def _off_segment(local: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the distances (m) of points from a segment, patch axes."""
    edge = ends[1] - ends[0]
    share = np.clip((local - ends[0]) @ edge / (edge @ edge), 0.0, 1.0)
    return np.linalg.norm(local - ends[0] - share[:, None] * edge, axis=1)


def _only_where_active(evidence: RecomputedRun) -> Check:
    """Check that a patch without contact carries no force."""
    run, tolerance = evidence.run, evidence.tolerances.force
    name = "force only in contact"
    if not run.patches:
        return Check(name, None, "N, N m", "", True)
    size = np.where(run.active[..., None], 0.0, np.abs(run.wrench)).max(axis=2)
    loose = (run.point_patch >= 0) & ~run.active[evidence.point_sample, np.maximum(run.point_patch, 0)]
    at = (evidence.point_sample[loose], run.point_patch[loose])
    np.maximum.at(size, at, np.abs(run.point_force[loose]).max(axis=1) if loose.any() else np.zeros(0))
    k, column = worst(size)
    value, where = float(size[k, column]), f"{run.patches[column]} at {evidence.time(k)}"
    failure = f"{where} carries {value:.6g} N (N m) although it is not in contact"
    return at_most(name, value, "N, N m", tolerance, where if value else "", failure)


def _unplanned(evidence: RecomputedRun) -> Check:
    """Check that no unplanned contact carries more than ``stray_force`` for longer than ``stray_time``.

    Interruptions shorter than ``stray_time`` do not end a contact; only its loaded time counts.
    """
    run, tolerances = evidence.run, evidence.tolerances
    name, bound = "unplanned contact", f"<= {tolerances.stray_time:g}"
    stray = run.point_patch < 0
    if not stray.any():
        return Check(name, 0.0, "s", bound, True)
    links = len(evidence.record.links) + len(evidence.record.objects)
    robot = stray & (run.point_link < len(evidence.record.links))
    flat = evidence.point_sample[robot] * links + run.point_link[robot]
    force = np.linalg.norm(run.point_force[robot], axis=1)
    load = np.bincount(flat, force, minlength=len(run) * links).reshape(len(run), links)
    longest, first, last, link = 0, 0, 0, 0
    gap = max(round(tolerances.stray_time / run.dt), 1)
    for i in np.flatnonzero((load > tolerances.stray_force).any(axis=0)):
        loaded = np.flatnonzero(load[:, i] > tolerances.stray_force)
        touches = np.split(loaded, np.flatnonzero(np.diff(loaded) > gap) + 1)
        touch = max(touches, key=len)
        if len(touch) > longest:
            longest, first, last, link = len(touch), int(touch[0]), int(touch[-1]), int(i)
    value = longest * run.dt
    if not longest:
        return Check(name, 0.0, "s", bound, True)
    where = f"{evidence.record.links[link]} from {evidence.time(first)}"
    peak = float(load[first : last + 1, link].max())
    failure = f"unplanned contact of {where} for {value:.3g} s with up to {peak:.4g} N"
    return at_most(name, value, "s", tolerances.stray_time, where, failure)


OPTIONS = ("friction", "max_force", "slide", "hinge", "overhang")
"""Options that increase the capacity of a contact, or free directions; the planner itself chooses grasps."""


def contacts_not_in_scenario(plan: Plan) -> Iterator[str]:
    """Yield the contact options of a plan that the scenario does not have; the first stance has those of the start.

    The last stance must have the options of the last item, except ``overhang``.
    """
    document = plan.scenario.document.data
    start, specified = _options_by_place((document.get("start") or {}).get("contacts")), _scenario_options(document)
    for k, stance in enumerate(plan.stances):
        for contact in stance.contacts:
            place = contact.patch, contact.support
            here = {name: _with_sorted_axes(contact.options).get(name) for name in OPTIONS}
            if k == 0 and place in start:
                known = start[place]
                differ = {name: value for name, value in here.items() if value != known[0].get(name)}
            else:
                known = [*start.get(place, ()), *specified.get(place, ())]
                differ = {
                    name: value
                    for name, value in here.items()
                    if value is not None and value not in [options.get(name) for options in known]
                }
            for name, value in differ.items():
                given = ", ".join(sorted({str(options[name]) for options in known if name in options})) or "nothing"
                yield (
                    f"stance {k}: {contact.patch} on {contact.support} has "
                    f"{'no ' + name if value is None else f'{name} {value}'}, of which the scenario says {given}"
                )
    yield from _missing_options(plan.stances[-1], document)


def _missing_options(stance: PlannedStance, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of the last item that the last stance lacks."""
    stated = _options_by_place(_items(document)[-1].get("contacts")) if _items(document) else {}
    for contact in stance.contacts:
        for options in stated.get((contact.patch, contact.support), ()):
            for name, value in options.items():
                known = _with_sorted_axes(contact.options).get(name, getattr(contact, name, None))
                if name != "overhang" and known != value:
                    yield f"at the end {contact.patch} on {contact.support} is without {name} {value} of the last item"


def _items(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the items of goal or sequence."""
    try:
        return [item for _, item in goal_items(document)]
    except (TypeError, ValueError, KeyError, AttributeError):  # the goal checks report this
        return []


def _scenario_options(document: Mapping[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the contact options in goal or sequence, by patch and support."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for item in _items(document):
        for place, options in _options_by_place(item.get("contacts")).items():
            found.setdefault(place, []).extend(options)
    return found


def _options_by_place(contacts: Any) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the options of a list of contacts by patch and support; invalid entries are left out."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for given in contacts if isinstance(contacts, list | tuple) else ():
        try:
            spec = ContactSpec.model_validate(dict(given))
        except (ValidationError, TypeError, ValueError):
            continue
        found.setdefault((spec.patch, spec.surface), []).append(_with_sorted_axes(spec.options))
    return found


def _with_sorted_axes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with sorted axes."""
    return {name: sorted(value) if isinstance(value, list | tuple) else value for name, value in options.items()}
