"""A stand-in robot with one patch of each kind, and surfaces and bars in every direction."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.robot.patch import Patch
from mcplan.scene.environment import Bar, Environment, Surface

SOLE = np.array([[-0.1, -0.075], [0.13, -0.075], [0.13, 0.056], [-0.1, 0.056]])


def patch(name, kind="surface", polygon=((0.0, 0.0),), **limits):
    return Patch(name, f"{name}_link", name, kind, np.array(polygon), np.eye(3), np.zeros(3), **limits)


@pytest.fixture(scope="session")
def robot():
    patches = [
        patch("sole", polygon=SOLE),
        patch("toe", polygon=((0.0, -0.06), (0.0, 0.06))),
        patch("edge", polygon=((0.02, -0.03), (0.08, 0.05))),
        patch("tip", "point"),
        patch("grip", "grasp", max_force=200.0, max_moment=20.0),
    ]
    return SimpleNamespace(name="stand-in", patches={p.name: p for p in patches})


@pytest.fixture(scope="session")
def environment():
    tilted = Rotation.from_euler("xyz", [0.3, -0.4, 0.7]).as_matrix()
    wall = Rotation.from_euler("xyz", [0, -np.pi / 2, 0]).as_matrix()
    square = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
    return Environment(
        surfaces=(
            Surface("floor", np.eye(3), np.zeros(3), 2 * square),
            Surface("ramp", tilted, np.array([1.0, 0.5, 0.2]), np.array([[0, 0], [0.5, -0.1], [0.6, 0.4], [0.1, 0.5]])),
            Surface("wall", wall, np.array([0.8, 0.0, 1.0]), square),
            Surface("stone", np.eye(3), np.array([0.0, 0.0, 0.1]), 0.08 * square),
        ),
        bars=(
            Bar("rail", np.array([[0.0, 0.5, 0.8], [1.0, 0.6, 1.1]]), 0.02),
            Bar("rung", np.array([[0.3, -0.35, 0.27], [0.3, 0.35, 0.27]]), 0.015),
            Bar("pole", np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 2.0]]), 0.03),
        ),
    )
