"""Replay of a plan and its search tree, or of the tree alone after a failed search."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mcplan.analysis.plan_motion import carries_load, linking_contacts, stance_times
from mcplan.certificate.report import Report
from mcplan.errors import InputError
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.search.tree import SearchTree
from mcplan.record.records import unit_of_all
from mcplan.robot.robot import Robot
from mcplan.scenario.scenario import Scenario
from mcplan.scene.contact import Contact
from mcplan.textbook.constraint.contact_rows import stance_rank
from mcplan.view import palette, shapes
from mcplan.view.drawing import Drawing, node_name
from mcplan.view.page import Page, certificate_data
from mcplan.view.palette import band_colours
from mcplan.view.plan_film import TREE_GAP, Frame, film, node_frames, stance_frames, trails
from mcplan.view.readings import plan_charts
from mcplan.view.robot import ghost_data, patch_mesh
from mcplan.view.tree_panel import drawn_nodes, rejected_patches, tree_panel

MARGINS = {
    "equilibrium": ("resisted push", "{:.1f} N"),
    "equilibrium_torque": ("... within torque limits", "{:.1f} N"),
    "friction": ("friction margin", "{:.1f} N"),
    "friction_ratio": ("friction used", "{:.0%}"),
    "torque": ("torque used", "{:.0%}"),
    "position": ("distance to a joint limit", "{:.3f}"),
    "clearance": ("clearance", "{:.1f} mm"),
}
"""Label and format of each margin; clearance in mm, position without the unit of the joint."""


def plan_page(plan: Plan, tree: SearchTree | None = None, certificate: Report | None = None) -> str:
    """Return the replay of a plan as one HTML page: its stances and, if given, the search tree."""
    return stances_page(plan, tree, certificate).text()


def stances_page(plan: Plan, tree: SearchTree | None = None, certificate: Report | None = None) -> Page:
    """Return the page of a plan."""
    tree = tree or plan.tree
    last = len(plan.stances) - 1
    page = _page(plan.scenario, stance_frames(plan), tree, "", trails(plan), plan.stances)
    return replace(
        page,
        bands=stance_bands(plan),
        duration=float(last),
        seconds=stance_times(plan),
        readings=plan_charts(plan),
        certificate=certificate_data(certificate),
        ghost=ghost_data(
            plan.scenario.robot,
            [stance.q for stance in plan.stances],
            [(float(k), float(k + 1), k + 1) for k in range(last)],
        ),
    )


def tree_page(scenario: Scenario, tree: SearchTree, failure: str = "") -> str:
    """Return a search tree without a plan as one HTML page.

    Parameters
    ----------
    failure : reason why there is no plan.

    Raises
    ------
    InputError
        The search tree is empty.
    """
    return search_page(scenario, tree, failure).text()


def search_page(scenario: Scenario, tree: SearchTree, failure: str = "") -> Page:
    """Return the page of a search tree."""
    if not tree.nodes:
        raise InputError(failure or f"{scenario.name}: the search has no nodes")
    return _page(scenario, [], tree, failure)


def _page(
    scenario: Scenario,
    frames: list[Frame],
    tree: SearchTree | None,
    failure: str,
    paths: Sequence[np.ndarray] = (),
    stances: Sequence[PlannedStance] = (),
) -> Page:
    panel = None
    if tree is not None and tree.nodes:
        begin = max(len(stances) - 1, 0) + TREE_GAP
        indices = drawn_nodes(tree)
        frames = [*frames, *node_frames(scenario, tree, indices, begin)]
        panel = tree_panel(scenario, tree, indices, begin, failure, stances)
    drawing = film(scenario, frames, paths).draw()
    if panel is not None and tree is not None:
        _draw_rejected_patches(drawing, scenario, tree)
    return Page(scenario.name, drawing, [], 0.0, True, panel)


def _draw_rejected_patches(drawing: Drawing, scenario: Scenario, tree: SearchTree) -> None:
    """Draw the patches of rejected moves, hidden until such a move is selected."""
    for name in rejected_patches(tree, scenario):
        node = drawing.root["tried"][node_name(name)]
        polygon = scenario.robot.patches[name].polygon
        node.set_object(patch_mesh(polygon), shapes.material(palette.TRIED, flat=True, on_top=True))
        node.set_property("visible", False)


def margin_labels(robot: Robot) -> dict[str, tuple[str, str]]:
    """Return label and format of each margin, with the unit of a robot's joints."""
    label, form = MARGINS["position"]
    return MARGINS | {"position": (label, f"{form} {unit_of_all(robot.joint_units)}")}


def stance_bands(plan: Plan) -> list[dict[str, Any]]:
    """Return the bands of a plan's time line: one around each stance, coloured by its kind of change."""
    names = [stance.title for stance in plan.stances]
    colours = band_colours(names)
    last = len(names) - 1
    return [
        {
            "begin": max(0.0, k - 0.5),
            "end": min(float(last), k + 0.5),
            "name": name,
            "colour": colours[name],
            "facts": _facts(plan, k, linking_contacts(plan.stances[k - 1] if k else None, stance)),
        }
        for k, (name, stance) in enumerate(zip(names, plan.stances, strict=True))
    ]


def _facts(plan: Plan, k: int, touching: Sequence[Contact]) -> dict[str, Any]:
    """Return the contacts and margins of stance ``k``, for the card of the page."""
    stance, contacts = plan.stances[k], []
    for contact in touching:
        load = "no load"
        if carries_load(stance, contact.patch):
            load = f"{np.linalg.norm(stance.wrenches[contact.patch][:3]):.0f} N"
        moved = "moved" if contact.patch == stance.moved else ""
        contacts.append([f"{contact.patch} on {contact.support}", load, moved])
    values = []
    for name, (label, form) in margin_labels(plan.scenario.robot).items():
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
