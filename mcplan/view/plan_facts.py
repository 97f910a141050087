"""What the panel of a plan's replay says about a stance: its contacts with their loads, and its margins."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mcplan.planning.plan import Plan
from mcplan.record.records import unit_of_all
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.textbook.constraint.contact_rows import stance_rank
from mcplan.view.palette import PATCHES, band_colours
from mcplan.view.plan_film import in_place, loaded
from mcplan.view.readings import numbers

MARGINS = {
    "equilibrium": ("push it resists", "{:.1f} N"),
    "equilibrium_torque": ("... within torque limits", "{:.1f} N"),
    "friction": ("friction to spare", "{:.1f} N"),
    "friction_ratio": ("friction used", "{:.0%}"),
    "torque": ("torque used", "{:.0%}"),
    "position": ("to a joint limit", "{:.3f}"),
    "clearance": ("clearance", "{:.1f} mm"),
}
"""Name of a margin, its label, and how its value is written; clearance in mm, of a joint without its unit."""


def margin_words(robot: Robot) -> dict[str, tuple[str, str]]:
    """Return `MARGINS` with the unit of a robot's joints."""
    label, form = MARGINS["position"]
    return MARGINS | {"position": (label, f"{form} {unit_of_all(robot.joint_units)}")}


def stance_bands(plan: Plan) -> list[dict[str, Any]]:
    """Return the bands of a plan's time line: one around each stance, coloured by what changes."""
    names = [stance.title for stance in plan.stances]
    colours = band_colours(names)
    last = len(names) - 1
    return [
        {
            "begin": max(0.0, k - 0.5),
            "end": min(float(last), k + 0.5),
            "name": name,
            "colour": colours[name],
            "facts": _facts(plan, k, in_place(plan.stances[k - 1] if k else None, stance)),
        }
        for k, (name, stance) in enumerate(zip(names, plan.stances, strict=True))
    ]


def _facts(plan: Plan, k: int, touching: Sequence[Contact]) -> dict[str, Any]:
    stance, contacts = plan.stances[k], []
    for contact in touching:
        load = "no load"
        if loaded(stance, contact.patch):
            load = f"{np.linalg.norm(stance.wrenches[contact.patch][:3]):.0f} N"
        moved = "moved" if contact.patch == stance.moved else ""
        contacts.append([f"{contact.patch} on {contact.support}", load, moved])
    values = []
    for name, (label, form) in margin_words(plan.scenario.robot).items():
        if name in stance.margins:
            value = stance.margins[name]
            scale = 1e3 if name == "clearance" else 1.0
            values.append([label, "no bound" if value is None else form.format(scale * value), ""])
    rank = stance_rank(plan.scenario.robot, stance.q, stance.contacts)
    values.append(["base controllable", "yes" if rank.base_controllable else f"{rank.base} of 6 directions", ""])
    values.append(["internal constraints", str(rank.internal), ""])
    if stance.transition is not None:
        near = stance.transition.near
        values.append(["motion from the stance before", f"{stance.transition.duration:.1f} s", ""])
        if near.distance is not None:
            values.append(["... least clearance", f"{1e3 * near.distance:.1f} mm", " and ".join(near.bodies)])
    return {"title": f"stance {k}: {stance.title}", "contacts": contacts, "values": values}


def plan_readings(plan: Plan) -> dict[str, Any]:
    """Return charts over the stances of a plan: forces, shares of limits, and the push that each resists."""
    stances = plan.stances
    patches = list(dict.fromkeys(name for stance in stances for name in stance.wrenches if loaded(stance, name)))
    forces = [
        np.array([float(np.linalg.norm(s.wrenches.get(name, np.zeros(6))[:3])) for s in stances]) for name in patches
    ]
    curves = [
        {"name": name, "colour": PATCHES[i % len(PATCHES)], "values": numbers(force, 1)}
        for i, (name, force) in enumerate(zip(patches, forces, strict=True))
    ]

    def margin(name: str, scale: float) -> list[float | None]:
        values = [stance.margins.get(name) for stance in stances]
        return numbers(np.array([np.nan if value is None else scale * value for value in values]), 2)

    return {
        "t": [float(k) for k in range(len(stances))],
        "charts": [
            {"name": "contact forces", "unit": "N", "low": 0, "curves": curves},
            {
                "name": "limits used",
                "unit": "%",
                "low": 0,
                "limit": 100,
                "curves": [
                    {"name": "torque", "colour": "#c2410c", "values": margin("torque", 100.0)},
                    {"name": "friction cone", "colour": "#2e8b57", "values": margin("friction_ratio", 100.0)},
                ],
            },
            {
                "name": "push it resists",
                "unit": "N",
                "low": 0,
                "curves": [{"name": "at rest", "colour": "#1f6fd0", "values": margin("equilibrium", 1.0)}],
            },
        ],
        "patches": [],
    }
