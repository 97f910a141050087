"""Charts of a run or plan as plain values for a page: forces, limits used, margins."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mcplan.analysis.readings import LOADED_N, Readings, max_grip_force
from mcplan.planning.plan import Plan
from mcplan.view.palette import LIMITS, PATCHES
from mcplan.view.plan_film import carries_load

TORQUE, VELOCITY, FRICTION, MARGIN = "#c2410c", "#7c3aed", "#2e8b57", "#1f6fd0"
"""Colours of the curves of these quantities."""


def run_charts(readings: Readings) -> dict[str, Any]:
    """Return the charts of a run: time (s), and charts with their curves, unit and limit."""
    run, middle = readings.run, readings.sample_indices
    patch_curves = []
    for i, patch in enumerate(run.patches):
        if np.any(readings.forces[:, i] > LOADED_N):
            kinds = np.where(np.isnan(max_grip_force(run, patch)[middle]), "cone", "grip").tolist()
            used = rounded_values(readings.worst_in_interval(readings.cone_share[:, i]), 3)
            patch_curves.append(
                _curve(patch, _patch_colour(i), readings.forces[middle, i], 1) | {"of": kinds, "used": used}
            )
    limits = []
    for name, colour in (("torque", TORQUE), ("velocity", VELOCITY)):
        share, joints = readings.limit_shares(name)
        limits.append(_curve(name, colour, 100 * share, 1) | {"whose": joints})
    cone = readings.worst_in_interval(np.fmax.reduce(readings.cone_share, axis=1))
    limits.append(_curve("friction cone", FRICTION, 100 * cone, 1))
    margin = _curve("margin", MARGIN, 100 * readings.com_depth, 2)
    return {
        "t": rounded_values(run.t[middle] - run.t[0], 4),
        "charts": [
            _chart(
                "contact forces", "N", [*patch_curves, _curve("all", "total", readings.total_force[middle], 1)], low=0
            ),
            _chart("limits used", "%", limits, low=0, limit=100),
            _chart("centre of mass to the region's edge", "cm", [margin], limit=0),
            *_pace_chart(readings),
        ],
        "patches": patch_curves,
    }


def plan_charts(plan: Plan) -> dict[str, Any]:
    """Return the charts of a plan over its stances: forces, shares of limits, and the resisted push."""
    stances = plan.stances
    patches = dict.fromkeys(name for stance in stances for name in stance.wrenches if carries_load(stance, name))
    forces = []
    for i, name in enumerate(patches):
        sizes = [float(np.linalg.norm(stance.wrenches.get(name, np.zeros(6))[:3])) for stance in stances]
        forces.append(_curve(name, _patch_colour(i), np.array(sizes), 1))

    def margin(label: str, colour: str, name: str, scale: float) -> dict[str, Any]:
        values = [stance.margins.get(name) for stance in stances]
        return _curve(label, colour, scale * np.array(values, float), 2)

    limits = [margin("torque", TORQUE, "torque", 100.0), margin("friction cone", FRICTION, "friction_ratio", 100.0)]
    return {
        "t": [float(k) for k in range(len(stances))],
        "charts": [
            _chart("contact forces", "N", forces, low=0),
            _chart("limits used", "%", limits, low=0, limit=100),
            _chart("resisted push", "N", [margin("at rest", MARGIN, "equilibrium", 1.0)], low=0),
        ],
        "patches": [],
    }


def _pace_chart(readings: Readings) -> Iterator[dict[str, Any]]:
    """Yield a chart of the used margin of the limits that bound the motion; none at the pace ``slow``."""
    pace = readings.pace
    if not pace.has_active_limits:
        return
    bounds = pace.active_limits_at(readings.sample_indices)
    curves = []
    for kind in [kind for kind in LIMITS if any(bound is not None and bound.kind == kind for bound in bounds)]:
        of_kind = [bound if bound is not None and bound.kind == kind else None for bound in bounds]
        used = np.array([np.nan if bound is None else 100.0 * bound.share for bound in of_kind])
        whose = ["" if bound is None else bound.owner for bound in of_kind]
        curves.append(_curve(kind, LIMITS[kind], used, 0) | {"whose": whose})
    yield _chart(f"what bounds the pace {pace.name}, of its margin", "%", curves, low=0, limit=100)


def _chart(name: str, unit: str, curves: list[dict[str, Any]], **bounds: float) -> dict[str, Any]:
    """Return a chart; ``bounds`` are ``low``, the lower end of the axis, and ``limit``, a dashed line."""
    return {"name": name, "unit": unit, **bounds, "curves": curves}


def _curve(name: str, colour: str, values: np.ndarray, digits: int) -> dict[str, Any]:
    return {"name": name, "colour": colour, "values": rounded_values(values, digits)}


def _patch_colour(index: int) -> str:
    return PATCHES[index % len(PATCHES)]


def rounded_values(values: np.ndarray, digits: int) -> list[float | None]:
    """Return rounded values for a page; None for NaN and infinity."""
    return [round(float(value), digits) if np.isfinite(value) else None for value in values]
