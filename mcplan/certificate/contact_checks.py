"""Contact force checks: within cones and limits, at points of their patches, only in contact; contact options.

A plan file repeats the options of its contacts (friction, limits, free directions), on which the checks depend. So each
option must be in the scenario for that patch on that support: in the start, a goal item, or the contact sequence. The
last stance must have the options of the last item.
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

PARALLEL_TOLERANCE, MAX_TILT = 1e-4, 0.1
"""rad: allowed errors of a contact normal.

``PARALLEL_TOLERANCE`` is that of parallel faces: collision detection finds normals to the square root of the
single-precision epsilon. ``MAX_TILT`` bounds that of any two faces: 6 degrees, twice the allowed rotation of a
patch."""


def force_checks(evidence: RecomputedRun) -> Iterator[Check]:
    """Yield the checks of contact forces."""
    yield from _friction(evidence)
    yield _unilateral(evidence)
    yield from _patch_limits(evidence)
    yield _points_against_wrenches(evidence)
    yield from _points_against_patches(evidence)
    yield _no_force_without_contact(evidence)
    yield _unplanned(evidence)


def _friction(evidence: RecomputedRun) -> Iterator[Check]:
    """Check ``|ft| <= mu fn``, the exact cone about the contact's normal, at planned points that carry more than 1 N.

    A point with less load is checked too if its tangential force exceeds that of the cone at 1 N.
    """
    fn, ft = evidence.point_force_parts
    contact_of_point = evidence.point_contact_index
    mu = np.where(
        contact_of_point != NONE, evidence.frictions[contact_of_point] if len(evidence.frictions) else np.nan, np.nan
    )
    has_cone = np.isfinite(mu) & ~(evidence.grasps[contact_of_point] if len(evidence.grasps) else False)
    checked = has_cone & ((fn > LOADED) | (ft > mu * LOADED + evidence.tolerances.force))
    if not checked.any():
        yield Check("friction margin", None, "N", "", True)
        yield Check("friction ratio", None, "", "", True)
        return
    margin = np.where(checked, mu * fn - ft, np.inf)
    allowed = mu * fn
    loaded = checked & (fn > LOADED)
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
    """Check ``fn >= 0`` at all points except those of grasps."""
    fn, _ = evidence.point_force_parts
    contact_of_point = evidence.point_contact_index
    is_grasp = (contact_of_point != NONE) & (evidence.grasps[contact_of_point] if len(evidence.grasps) else False)
    normal_force = np.where(is_grasp, np.inf, fn)
    if not np.isfinite(normal_force).any():
        return Check("unilateral", None, "N", "", True)
    (i,) = worst(-normal_force)
    passed = bool(normal_force[i] >= -evidence.tolerances.force)
    failure = "" if passed else f"the support pulls at {evidence.point_name(i)} with {-normal_force[i]:.6g} N"
    return Check("unilateral", float(normal_force[i]), "N", ">= 0", passed, evidence.point_name(i), failure)


def _patch_limits(evidence: RecomputedRun) -> Iterator[Check]:
    """Check force and moment limits of contacts: normal force of a surface, force and moment of a grasp."""
    run, tolerance = evidence.run, evidence.tolerances.force
    worst_ratios: dict[str, tuple[float, str, str]] = {}

    def judge(kind: str, values: np.ndarray, limit: float | None, rows: np.ndarray, patch: str, unit: str) -> None:
        if limit is None or not len(rows):
            return
        (i,) = worst(values)
        excess, place = float(values[i] - limit), f"{patch} at {evidence.time(int(rows[i]))}"
        text = f"{kind} of {place} is {values[i]:.6g} {unit}, limit {limit:g}: beyond it by {excess:.3g}"
        ratio = float(values[i] / limit) if limit > 0 else np.inf
        if (
            kind not in worst_ratios
            or worst_ratios[kind][0] < ratio
            or (excess > tolerance and not worst_ratios[kind][2])
        ):
            worst_ratios[kind] = (ratio, place, text if not excess <= tolerance else "")  # also NaN

    for column, patch in enumerate(run.patches):
        for c, contact in enumerate(evidence.contacts):
            rows = np.flatnonzero(evidence.contact_index[:, column] == c)
            w = _moving_average(run.wrench[:, column], round(evidence.tolerances.impact / run.dt))[rows]
            if contact.kind == "grasp":
                judge("grasp force", np.linalg.norm(w[:, :3], axis=1), contact.max_force, rows, patch, "N")
                judge("grasp moment", np.linalg.norm(w[:, 3:], axis=1), contact.max_moment, rows, patch, "N m")
                judge("free direction", _free_components(evidence, c, patch, rows), tolerance, rows, patch, "N m")
            else:
                judge(
                    "normal force",
                    np.sum(w[:, :3] * evidence.normal(c, rows), axis=1),
                    contact.max_force,
                    rows,
                    patch,
                    "N",
                )
    for kind, (ratio, place, failure) in worst_ratios.items():
        if kind == "free direction" and not failure:
            continue  # reported only if violated
        yield Check(kind, ratio, "of the limit", "<= 1", not failure, place, failure)


def _moving_average(w: np.ndarray, count: int) -> np.ndarray:
    """Return the moving average of a wrench (N, 6) over the last ``count`` samples."""
    if count <= 1:
        return w
    total = np.cumsum(np.concatenate([np.zeros((count, w.shape[1])), w]), axis=0)
    return (total[count:] - total[:-count]) / count


def _free_components(evidence: RecomputedRun, c: int, patch: str, rows: np.ndarray) -> np.ndarray:
    """Return the magnitude (k,) of a wrench along the free directions of contact ``c`` (the hinge of a grasp)."""
    R, w = evidence.motion.R[patch][rows], evidence.run.wrench[rows, evidence.run.patches.index(patch)]
    local = np.concatenate([np.einsum("kji,kj->ki", R, w[:, :3]), np.einsum("kji,kj->ki", R, w[:, 3:])], axis=1)
    return np.linalg.norm(local - local @ evidence.selections[c], axis=1)


def _points_against_wrenches(evidence: RecomputedRun) -> Check:
    """Check that point forces add up to the wrench of the patch; for a grasp, only to its force."""
    run, tolerance = evidence.run, evidence.tolerances.force
    name, P = "points add up to wrenches", len(run.patches)
    rows = np.flatnonzero(run.point_patch >= 0)
    if not P:
        return Check(name, None, "N, N m", "", True)
    sample, patch = evidence.point_sample[rows], run.point_patch[rows]
    origins = np.stack([evidence.motion.p[p] for p in run.patches], axis=1)
    force = run.point_force[rows]
    parts = np.concatenate([force, np.cross(run.point_xyz[rows] - origins[sample, patch], force)], axis=1)
    flat, size = sample * P + patch, len(run) * P
    total = np.stack([np.bincount(flat, parts[:, i], minlength=size) for i in range(6)], axis=1).reshape(len(run), P, 6)
    deviation = np.abs(total - run.wrench)
    if evidence.contacts:
        deviation[..., 3:][(evidence.contact_index != NONE) & evidence.grasps[evidence.contact_index]] = 0.0
    k, column, i = worst(deviation)
    value, where = float(deviation[k, column, i]), f"{run.patches[column]} at {evidence.time(k)}"
    failure = (
        f"point forces of {where} differ from its wrench by {value:.6g} {'N' if i < 3 else 'N m'} "
        f"({np.count_nonzero((deviation > tolerance).any(axis=(1, 2)))} samples)"
    )
    return at_most(name, value, "N, N m", tolerance, where, failure)


def _points_against_patches(evidence: RecomputedRun) -> Iterator[Check]:
    """Check that contact points lie in their patch, on its link, with the normal of the support."""
    run, bound = evidence.run, evidence.tolerances.point
    name, contact_of_point = "contact points on their patch", evidence.point_contact_index
    planned = np.flatnonzero(contact_of_point != NONE)
    if not len(planned):
        yield Check(name, None, "m", "", True)
        return
    distance = np.zeros(len(contact_of_point))
    for column, patch in enumerate(run.patches):
        for c, contact in enumerate(evidence.contacts):
            i = planned[(run.point_patch[planned] == column) & (contact_of_point[planned] == c)]
            if not len(i):
                continue
            k = evidence.point_sample[i]
            offset = run.point_xyz[i] - evidence.motion.p[patch][k]
            R = np.broadcast_to(contact.R, (len(k), 3, 3)) if contact.radius else evidence.motion.R[patch][k]
            local = np.einsum("kji,kj->ki", R, offset)
            points = np.array(contact.points)
            distance[i] = np.linalg.norm(local[:, None] - points, axis=2).min(axis=1)
            if contact.rolls:
                # a flat patch that rolls on a bar may touch anywhere on its face; its pose is checked separately
                points = _polygon(evidence, patch)
            if evidence.record.physics != "qp" and len(points) > 1:
                distance[i] = np.minimum(
                    distance[i],
                    _distance_to_polygon(local, points) if len(points) > 2 else _distance_to_segment(local, points),
                )
    (i,) = worst(distance)
    value, where = float(distance[i]), evidence.point_name(i)
    yield at_most(name, value, "m", bound, where, f"{where} is {value:.3g} m away from the contact points of its patch")
    links = np.array([p.link for n in run.patches for p in evidence.record.robot.patches if p.name == n])
    wrong_link = planned[run.point_link[planned] != links[run.point_patch[planned]]]
    failure = (
        f"{evidence.point_name(int(wrong_link[0]))} is recorded on another link than its patch"
        if len(wrong_link)
        else ""
    )
    yield Check("contact points on their link", float(len(wrong_link)), "points", "== 0", not failure, "", failure)
    normals = np.linalg.norm(run.point_normal[planned] - evidence.support_normal[planned], axis=1)
    ratio = normals / _allowed_tilt(evidence)[planned]
    (s,) = worst(ratio)
    value, where = float(ratio[s]), evidence.point_name(int(planned[s]))
    failure = f"the normal at {where} is not that of its support ({normals[s]:.3g} rad off)"
    yield at_most("contact normals", value, "of the allowed tilt", 1.0, where, failure)


def _allowed_tilt(evidence: RecomputedRun) -> np.ndarray:
    """Return the allowed deviation (K,) rad of each point's normal from that of its support.

    Between faces at an angle ``a`` the contact normal is that of one face, or that of two crossing edges. It deviates
    by at most ``a / sin(b)`` with the angle ``b`` between the edges, which is at least 45 degrees for rectangles. The
    edge of a patch that rolls on a bar may touch it anywhere on its circumference.
    """
    if evidence.record.physics == "qp":
        return np.full(len(evidence.point_tilt), evidence.tolerances.normal)
    allowed = np.minimum(np.sqrt(2.0) * evidence.point_tilt + PARALLEL_TOLERANCE, MAX_TILT)
    rolls = np.array([contact.rolls for contact in evidence.contacts], bool)
    planned = evidence.point_contact_index != NONE
    allowed[planned] = np.where(rolls[evidence.point_contact_index[planned]], MAX_TILT, allowed[planned])
    return allowed


def _polygon(evidence: RecomputedRun, patch: str) -> np.ndarray:
    """Return the corners (k, 3) of a patch, in its axes."""
    (polygon,) = (p.polygon for p in evidence.record.robot.patches if p.name == patch)
    return np.array([[*corner[:2], 0.0] for corner in polygon])


def _distance_to_polygon(local: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Return the distances (m) of points from a convex polygon in the plane z = 0, patch axes."""
    a, b = polygon[:, :2], np.roll(polygon[:, :2], -1, axis=0)
    edge = b - a
    area = np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
    normal = np.sign(area) * np.stack([edge[:, 1], -edge[:, 0]], axis=1)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), np.finfo(float).tiny)
    in_plane = np.einsum("kei,ei->ke", local[:, None, :2] - a, normal).max(axis=1)
    return np.hypot(np.maximum(in_plane, 0), local[:, 2])


def _distance_to_segment(local: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the distances (m) of points from a segment, patch axes."""
    edge = ends[1] - ends[0]
    share = np.clip((local - ends[0]) @ edge / (edge @ edge), 0.0, 1.0)
    return np.linalg.norm(local - ends[0] - share[:, None] * edge, axis=1)


def _no_force_without_contact(evidence: RecomputedRun) -> Check:
    """Check that a patch without contact carries no force."""
    run, tolerance = evidence.run, evidence.tolerances.force
    name = "force only in contact"
    if not run.patches:
        return Check(name, None, "N, N m", "", True)
    load = np.where(run.active[..., None], 0.0, np.abs(run.wrench)).max(axis=2)
    inactive = (run.point_patch >= 0) & ~run.active[evidence.point_sample, np.maximum(run.point_patch, 0)]
    entries = (evidence.point_sample[inactive], run.point_patch[inactive])
    np.maximum.at(load, entries, np.abs(run.point_force[inactive]).max(axis=1) if inactive.any() else np.zeros(0))
    k, column = worst(load)
    value, where = float(load[k, column]), f"{run.patches[column]} at {evidence.time(k)}"
    failure = f"{where} carries {value:.6g} N (N m) although it is not in contact"
    return at_most(name, value, "N, N m", tolerance, where if value else "", failure)


def _unplanned(evidence: RecomputedRun) -> Check:
    """Check that no unplanned contact carries more than ``stray_force`` for longer than ``stray_time``.

    Interruptions shorter than ``stray_time`` do not end a contact, but only the time with load counts.
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
        intervals = np.split(loaded, np.flatnonzero(np.diff(loaded) > gap) + 1)
        interval = max(intervals, key=len)
        if len(interval) > longest:
            longest, first, last, link = len(interval), int(interval[0]), int(interval[-1]), int(i)
    value = longest * run.dt
    if not longest:
        return Check(name, 0.0, "s", bound, True)
    where = f"{evidence.record.links[link]} from {evidence.time(first)}"
    peak = float(load[first : last + 1, link].max())
    failure = f"unplanned contact of {where} for {value:.3g} s with up to {peak:.4g} N"
    return at_most(name, value, "s", tolerances.stray_time, where, failure)


OPTIONS = ("friction", "max_force", "slide", "hinge", "overhang")
"""Options that increase the force capacity of a contact or free some of its directions. Grasps are not among them,
because the planner chooses them itself."""


def contacts_not_in_scenario(plan: Plan) -> Iterator[str]:
    """Yield the contact options of a plan that are not in its scenario.

    The first stance must have exactly the options of the start, the last stance at least those of the last item, except
    ``overhang``.
    """
    document = plan.scenario.document.data
    start, specified = _options_by_place((document.get("start") or {}).get("contacts")), _scenario_options(document)
    for k, stance in enumerate(plan.stances):
        for contact in stance.contacts:
            place = contact.patch, contact.support
            values = {name: _with_sorted_axes(contact.options).get(name) for name in OPTIONS}
            if k == 0 and place in start:
                scenario_options = start[place]
                differ = {name: value for name, value in values.items() if value != scenario_options[0].get(name)}
            else:
                scenario_options = [*start.get(place, ()), *specified.get(place, ())]
                differ = {
                    name: value
                    for name, value in values.items()
                    if value is not None and value not in [options.get(name) for options in scenario_options]
                }
            for name, value in differ.items():
                allowed = (
                    ", ".join(sorted({str(options[name]) for options in scenario_options if name in options})) or "none"
                )
                yield (
                    f"stance {k}: {contact.patch} on {contact.support} has "
                    f"{'no value of ' + name if value is None else f'{name} {value}'}; in the scenario: {allowed}"
                )
    yield from _missing_options(plan.stances[-1], document)


def _missing_options(stance: PlannedStance, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of the last item that the last stance lacks."""
    required = _options_by_place(_items(document)[-1].get("contacts")) if _items(document) else {}
    for contact in stance.contacts:
        for options in required.get((contact.patch, contact.support), ()):
            for name, value in options.items():
                actual = _with_sorted_axes(contact.options).get(name, getattr(contact, name, None))
                if name != "overhang" and actual != value:
                    yield f"at the end {contact.patch} on {contact.support} lacks {name} {value} of the last item"


def _items(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the items of the goal, or without a goal those of the contact sequence; empty if they cannot be read."""
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
    for item in contacts if isinstance(contacts, list | tuple) else ():
        try:
            spec = ContactSpec.model_validate(dict(item))
        except (ValidationError, TypeError, ValueError):
            continue
        found.setdefault((spec.patch, spec.surface), []).append(_with_sorted_axes(spec.options))
    return found


def _with_sorted_axes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options whose lists of axes are sorted."""
    return {name: sorted(value) if isinstance(value, list | tuple) else value for name, value in options.items()}
