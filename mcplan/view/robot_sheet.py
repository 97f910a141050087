"""A robot as its file describes it: postures, patches, frames, and what collides, in one page."""

import numpy as np
from meshcat import geometry as mg

from mcplan.model.robot import Robot
from mcplan.scene.environment import Environment, Surface
from mcplan.view import palette, shapes
from mcplan.view.drawing import Drawing
from mcplan.view.environment import pose
from mcplan.view.film import Film
from mcplan.view.page import Page

AXIS, THICK = 0.08, 0.002
"""m: length and radius of the axes of a frame; x is red, y green, z, which points out of the link, blue."""

COLOURS = ((0.85, 0.15, 0.15, 1.0), (0.15, 0.65, 0.15, 1.0), (0.15, 0.25, 0.85, 1.0))
FLOOR = 2.0
"""m: side of the floor."""


def robot_page(robot: Robot, postures: tuple[str, ...] = ()) -> str:
    """Return a page (HTML) that goes through the postures, one a second; the neutral one where there is none."""
    names = postures or robot.postures
    q = np.array([robot.posture(name) for name in names] or [robot.neutral()])
    q = np.repeat(q, 2, axis=0) if len(q) == 1 else q
    count = len(q)
    square = FLOOR / 2 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    touching = {name: np.ones(count, bool) for name, patch in robot.patches.items()}
    film = Film(
        robot=robot,
        environment=Environment([Surface("floor", np.eye(3), np.zeros(3), square)]),
        times=np.arange(float(count)),
        q=q,
        com=np.array([robot.com(row) for row in q]),
        ground=np.zeros(count),
        touching=touching,
        carrying=[()] * count,
    )
    drawing = film.draw()
    _draw_collision(drawing, robot)
    for patch in robot.patches.values():
        _draw_axes(drawing, f"robot/{patch.link}/frame {patch.name}", pose(patch.R, patch.p))
    return Page(robot.name, drawing, [], 0.0).text()


def _draw_collision(drawing: Drawing, robot: Robot) -> None:
    red, green, blue, _ = palette.OBSTACLE
    for link, geometries in robot.geometry.items():
        if all(geometry.role == "collision" for geometry in geometries):
            continue  # drawn as what the link looks like
        for index, geometry in enumerate(geometries):
            if geometry.role != "visual":
                node = drawing.root["robot"][link][f"collision{index}"]
                shapes.draw(node, geometry.shape, (red, green, blue, 0.35), pose(geometry.R, geometry.p))


def _draw_axes(drawing: Drawing, path: str, X: np.ndarray) -> None:
    for axis, colour in enumerate(COLOURS):
        R = np.roll(np.eye(3), axis + 1, axis=1)  # turns z into the axis
        node = drawing.root[f"{path}/{'xyz'[axis]}"]
        node.set_object(mg.Cylinder(AXIS, THICK), shapes.material(colour, flat=True, on_top=True))
        node.set_transform(X @ pose(R, AXIS / 2 * np.eye(3)[axis]) @ shapes.CYLINDER_TO_Z)
