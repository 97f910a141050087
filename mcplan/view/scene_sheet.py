"""What was found in a mesh, in one page: surfaces with their names' order, bars, obstacles; nothing moves."""

import numpy as np

from mcplan.scene.found import Found
from mcplan.view.drawing import Drawing
from mcplan.view.environment import draw_environment, set_stage
from mcplan.view.page import Page


def scene_page(found: Found, title: str) -> str:
    """Return the page (HTML) of a scene without a robot."""
    drawing = Drawing()
    draw_environment(drawing, found.environment)
    corners = [surface.corners for surface in found.surfaces]
    points = np.vstack(corners) if corners else np.zeros((1, 3))
    set_stage(drawing, points, found.environment)
    return Page(title, drawing, [], 0.0).text()
