"""The replay of a run: robot, environment, contacts, forces, centre of mass and support region over time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from meshcat import geometry as mg

from mcplan.scene import Contact
from mcplan.sim.run import Run
from mcplan.statics.support_region import support_region
from mcplan.view import palette, shapes
from mcplan.view.arrow import draw_force
from mcplan.view.drawing import Drawing
from mcplan.view.environment import draw_environment, pose, set_stage
from mcplan.view.page import page
from mcplan.view.phase_bands import phase_bands
from mcplan.view.robot import animate_robot, draw_robot


def save_html(run: Run, path: str | Path) -> Path:
    """Write the replay of ``run`` as one HTML file that needs no network; return its path."""
    path = Path(path)
    path.write_text(replay_page(run), encoding="utf-8")
    return path


def replay_page(run: Run) -> str:
    """Return the replay of ``run`` as the text of one HTML page."""
    return page(replay(run), run.scenario.name, phase_bands(run), float(run.t[-1] - run.t[0]))


def replay(run: Run, frames_per_second: float = 30.0) -> Drawing:
    """Draw a run, resampled to ``frames_per_second``."""
    duration = float(run.t[-1] - run.t[0])
    times = np.append(np.arange(0.0, duration, 1.0 / frames_per_second), duration)
    frames = np.minimum(np.searchsorted(run.t, run.t[0] + times - 1e-9), len(run) - 1)
    drawing = Drawing(times)
    robot = run.robot
    set_stage(drawing, run.com[frames], run.scenario.environment)
    draw_environment(drawing, run.scenario.environment)
    draw_robot(drawing, robot)
    animate_robot(drawing, robot, run.q[frames])
    for column, name in enumerate(run.patches):
        drawing.animate(f"robot/{robot.patches[name].link}/patch {name}", visible=run.active[frames, column])
        draw_force(drawing, f"forces/{name}", *_resultant(run, column, frames))
    ground = _ground_height(run, frames)
    _draw_com(drawing, run.com[frames], ground)
    _draw_support(drawing, run, frames, ground)
    return drawing


def _resultant(run: Run, column: int, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the force of one patch acts (the mean of its points, weighted by their force) and the force."""
    place, force = np.zeros((len(frames), 3)), np.zeros((len(frames), 3))
    for row, k in enumerate(frames):
        points = run.points(k)
        mine = run.point_patch[points] == column
        force[row] = run.wrench[k, column, :3]
        weight = np.linalg.norm(run.point_force[points][mine], axis=1)
        if weight.sum() > 1e-9:
            place[row] = weight @ run.point_xyz[points][mine] / weight.sum()
        elif row:
            place[row] = place[row - 1]
    return place, force


def _ground_height(run: Run, frames: np.ndarray) -> np.ndarray:
    """Return the height of the lowest loaded contact point of each frame, kept where there is none."""
    height, last = np.zeros(len(frames)), 0.0
    for row, k in enumerate(frames):
        points = run.point_xyz[run.points(k), 2]
        last = float(points.min()) if len(points) else last
        height[row] = last
    return height


def _draw_com(drawing: Drawing, com: np.ndarray, ground: np.ndarray) -> None:
    colour = shapes.material(palette.COM, flat=True, on_top=True)
    drawing.root["com/ball"].set_object(mg.Sphere(0.025), colour)
    drawing.root["com/disc"]["solid"].set_object(
        mg.Cylinder(0.004, 0.022), shapes.material(palette.COM, flat=True, on_top=True)
    )
    drawing.root["com/disc"]["solid"].set_transform(shapes.CYLINDER_TO_Z)
    drawing.root["com/line"]["solid"].set_object(
        mg.Cylinder(1.0, 0.003), shapes.material(palette.COM, flat=True, on_top=True)
    )
    drawing.root["com/line"]["solid"].set_transform(pose(np.eye(3), [0, 0, 0.5]) @ shapes.CYLINDER_TO_Z)
    below = np.column_stack([com[:, :2], ground + 0.006])
    ones = np.ones(len(com))
    drawing.animate("com/ball", position=com)
    drawing.animate("com/disc", position=below)
    drawing.animate("com/line", position=below, scale=np.column_stack([ones, ones, com[:, 2] - below[:, 2]]))


def _draw_support(drawing: Drawing, run: Run, frames: np.ndarray, ground: np.ndarray) -> None:
    """Draw the support region of each set of contacts, visible while it is the one that carries the robot."""
    shown: dict[str, np.ndarray] = {}
    height: dict[str, float] = {}
    for row, k in enumerate(frames):
        contacts = run.contacts(int(k))
        key = _key(contacts)
        if contacts and key not in shown:
            polygon = support_region(contacts, run.robot.mass).vertices
            shown[key] = np.zeros(len(frames), dtype=bool)
            height[key] = float(ground[row])
            if len(polygon) >= 3:
                node = drawing.root[f"support/{len(shown)}"]
                node.set_object(
                    shapes.mesh(*shapes.prism(polygon, 0.003, 0.0)), shapes.material(palette.SUPPORT, flat=True)
                )
                node.set_transform(pose(np.eye(3), [0, 0, height[key] + 0.002]))
        if contacts:
            shown[key][row] = True
    for index, visible in enumerate(shown.values(), start=1):
        drawing.animate(f"support/{index}", visible=visible)


def _key(contacts: Sequence[Contact]) -> str:
    return "|".join(f"{c.patch}@{np.round(c.p, 4).tolist()}" for c in contacts)
