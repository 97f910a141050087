"""A robot as its file describes it: postures, patches, frames, and what collides, in one page."""

import numpy as np

from mcplan.model.robot import Robot
from mcplan.scene.environment import Environment, Surface
from mcplan.view.film import Film
from mcplan.view.page import Page

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
    return Page(robot.name, film.draw(), [], 0.0, shown=("frames", "collision")).text()
