"""Times against the number of bodies and of contact points."""

from functools import partial
from pathlib import Path

import numpy as np

from mcplan.bench.clock import median, microseconds
from mcplan.bench.definition import Definition
from mcplan.bench.plain_urdf import chain_urdf
from mcplan.bench.reference_tick import ReferenceTick
from mcplan.model.robot import Robot
from mcplan.model.robot_file import load_robot

BODIES = (10, 30, 100, 300)

CONTACTS = {4: (1, 4), 8: (2, 4), 16: (2, 8), 32: (2, 16)}
"""Contact points -> how many feet, and how many points each has."""


def write_chains(directory: Path, bodies: tuple[int, ...]) -> dict[int, Path]:
    """Write the chains that both sides load; return number of bodies -> path."""
    paths = {}
    for count in bodies:
        paths[count] = directory / f"chain{count}.urdf"
        paths[count].write_text(chain_urdf(count), encoding="utf-8")
    return paths


def bodies_us(chains: dict[int, Path], calls: int, repeats: int) -> dict[str, float]:
    """Return µs of one call of inverse dynamics by number of bodies."""
    found = {}
    for count, path in chains.items():
        robot = load_robot(path)
        q, v = robot.neutral(), np.ones(robot.nv)
        found[str(count)] = microseconds(partial(robot.inverse_dynamics, q, v, v), calls, repeats)
    return found


def contacts_us(robot: Robot, definition: Definition, points: tuple[int, ...], ticks: int) -> dict[str, float]:
    """Return µs of the compiled tick by number of contact points, at the start of the reference motion.

    Four points are those of one foot; more than eight are spread along the edges of both soles.
    """
    found = {}
    for count in points:
        feet, each = CONTACTS[count]
        tick = ReferenceTick(robot, definition, patches=definition.patches[:feet], points=each)
        times = tick.run(ticks, integrate=False).total
        found[str(count)] = median(times[ticks // 10 :])
    return found


def linearity(times: dict[str, float]) -> float:
    """Return the largest deviation from the best line ``a + b n``, relative to the time there.

    Few percent: the time grows linearly.
    """
    n, t = np.array([float(count) for count in times]), np.array(list(times.values()))
    A = np.column_stack([np.ones_like(n), n]) / t[:, None]  # relative errors count alike
    line = np.linalg.lstsq(A, np.ones_like(t), rcond=None)[0]
    return float(np.max(np.abs(A @ line - 1)))
