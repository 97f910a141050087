"""The replay of a plan, of the search tree that led to it, or of the tree alone when there is no plan."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mcplan.analysis.closest_calls import Certificate, certificate_data
from mcplan.errors import InputError
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.search.tree import SearchTree
from mcplan.scenario.scenario import Scenario
from mcplan.view import palette, shapes
from mcplan.view.drawing import Drawing, node_name
from mcplan.view.page import Page
from mcplan.view.plan_facts import plan_readings, stance_bands
from mcplan.view.plan_film import GAP, Frame, film, node_frames, passing_times, stance_frames, trails
from mcplan.view.robot import ghost_data, patch_mesh
from mcplan.view.tree_panel import shown_nodes, tree_panel, tried_patches


def plan_page(plan: Plan, tree: SearchTree | None = None, certificate: Certificate | None = None) -> str:
    """Return the replay of a plan as the text of one HTML page: its stances, and the tree beside them if given."""
    return stances_page(plan, tree, certificate).text()


def stances_page(plan: Plan, tree: SearchTree | None = None, certificate: Certificate | None = None) -> Page:
    """Return the page of a plan."""
    tree = tree or plan.tree
    last = len(plan.stances) - 1
    page = _page(plan.scenario, stance_frames(plan), tree, "", trails(plan), plan.stances)
    return replace(
        page,
        bands=stance_bands(plan),
        duration=float(last),
        seconds=passing_times(plan),
        readings=plan_readings(plan),
        certificate=certificate_data(certificate),
        ghost=ghost_data(
            plan.scenario.robot,
            [stance.q for stance in plan.stances],
            [(float(k), float(k + 1), k + 1) for k in range(last)],
        ),
    )


def tree_page(scenario: Scenario, tree: SearchTree, failure: str = "") -> str:
    """Return a search tree alone as the text of one HTML page.

    Parameters
    ----------
    failure : why there is no plan.

    Raises
    ------
    InputError
        When the search looked at nothing.
    """
    return search_page(scenario, tree, failure).text()


def search_page(scenario: Scenario, tree: SearchTree, failure: str = "") -> Page:
    """Return the page of a search tree."""
    if not tree.nodes:
        raise InputError(failure or f"{scenario.name}: the search looked at nothing")
    return _page(scenario, [], tree, failure)


def _page(
    scenario: Scenario,
    frames: list[Frame],
    tree: SearchTree | None,
    failure: str,
    ways: Sequence[np.ndarray] = (),
    stances: Sequence[PlannedStance] = (),
) -> Page:
    panel = None
    if tree is not None and tree.nodes:
        begin = max(len(stances) - 1, 0) + GAP
        shown = shown_nodes(tree)
        frames = [*frames, *node_frames(scenario, tree, shown, begin)]
        panel = tree_panel(scenario, tree, shown, begin, failure, stances)
    drawing = film(scenario, frames, ways).draw()
    if panel is not None and tree is not None:
        _draw_tried(drawing, scenario, tree)
    return Page(scenario.name, drawing, [], 0.0, True, panel)


def _draw_tried(drawing: Drawing, scenario: Scenario, tree: SearchTree) -> None:
    """Draw the patches that rejected moves would have put down, hidden until one of those moves is chosen."""
    for name in tried_patches(tree, scenario):
        node = drawing.root["tried"][node_name(name)]
        polygon = scenario.robot.patches[name].polygon
        node.set_object(patch_mesh(polygon), shapes.material(palette.TRIED, flat=True, on_top=True))
        node.set_property("visible", False)
