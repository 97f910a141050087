"""Pages of a robot (postures, patches, frames, collision bodies) and of a scene found in a mesh."""

import numpy as np

from mcplan.robot.robot import Robot
from mcplan.scene.detection.detect import DetectedScene
from mcplan.scene.environment import Environment, Surface
from mcplan.view.drawing import Drawing
from mcplan.view.environment import draw_environment, set_stage
from mcplan.view.film import Film
from mcplan.view.page import Page, band_items

POSTURE_GAP_S = 1e-3
"""Time between two postures (s), so short that the page jumps from one to the next."""

FLOOR_SIZE_M = 2.0
"""Side of the square floor (m)."""


def robot_page(robot: Robot, postures: tuple[str, ...] = ()) -> str:
    """Return a page (HTML) that shows the postures, one per second; without any, the neutral posture."""
    names = postures or robot.postures
    q = np.repeat([robot.posture(name) for name in names] or [robot.neutral()], 2, axis=0)
    count = len(q)
    begin = np.arange(count // 2)
    square = FLOOR_SIZE_M / 2 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    touching = {name: np.ones(count, bool) for name, patch in robot.patches.items()}
    film = Film(
        robot=robot,
        environment=Environment([Surface("floor", np.eye(3), np.zeros(3), square)]),
        times=np.column_stack([begin, begin + 1.0 - POSTURE_GAP_S]).ravel(),
        q=q,
        com=np.array([robot.com(row) for row in q]),
        ground=np.zeros(count),
        touching=touching,
        carrying=[()] * count,
    )
    spans = [(float(k), k + 1.0, name) for k, name in enumerate(names)] if len(names) > 1 else []
    bands = [band | {"facts": {"title": band["name"]}} for band in band_items(spans)]
    return Page(robot.name, film.draw(), bands, float(len(bands)), shown=("frames", "collision")).text()


def scene_page(scene: DetectedScene, title: str) -> str:
    """Return the page (HTML) of a scene without a robot."""
    drawing = Drawing()
    draw_environment(drawing, scene.environment)
    corners = [surface.corners for surface in scene.surfaces]
    points = np.vstack(corners) if corners else np.zeros((1, 3))
    set_stage(drawing, points, scene.environment)
    return Page(title, drawing, [], 0.0).text()
