"""The mechanism as the kernels see it: a tree of bodies in a few packed, read-only arrays, and their scratch space.

Fixed and locked joints do not exist here: their bodies are merged into the parent's. Body 0 is the floating base; body
``i > 0`` hangs on body ``topology[i, PARENT] < i`` by one joint. A body's frame is the URDF frame of the link that its
joint moves.
"""

from typing import NamedTuple

import numpy as np

PARENT, TYPE, Q, V, DEGREE = range(5)
"""Columns of ``Tree.topology``: parent body, joint type, first index in q, first index in v, first row in ``screw``."""

FLOATING, REVOLUTE, PRISMATIC = range(3)
"""Joint types. A ball joint would be the next code: nothing assumes one coordinate or one degree per joint."""

ROTATION, ORIGIN, AXIS, MULTIPLIER, OFFSET = 0, 9, 12, 15, 16
"""Columns of ``Tree.joint``: rotation (9, row-major) and origin (3) of the joint in the parent body's frame, unit axis
(3) in the joint's frame, and the coupling ``position = multiplier * q[Q] + offset`` (1 and 0 unless the joint mimics
another one, whose indices in q and v it then shares)."""

MASS, COM, INERTIA = 0, 1, 4
"""Columns of ``Tree.inertia``: mass, centre of mass (3) in the body's frame, inertia at the centre of mass in the
body's axes (6: xx, yy, zz, xy, xz, yz)."""

GRAVITY = 9.81
"""m/s², along -z of the world."""


class Tree(NamedTuple):
    """The constant description of a mechanism. All arrays are read-only and C-contiguous."""

    topology: np.ndarray  # (bodies, 5) int64, columns PARENT .. DEGREE
    joint: np.ndarray  # (bodies, 17) float64, columns ROTATION .. OFFSET
    inertia: np.ndarray  # (bodies, 10) float64, columns MASS .. INERTIA
    armature: np.ndarray  # (nv,) float64, kg m² or kg; zero for the base


class Workspace(NamedTuple):
    """Scratch of the kernels; spatial vectors are in world axes about the base origin, linear then angular."""

    pose: np.ndarray  # (bodies, 12) R (row-major) and p of each body in the world; forward_kinematics
    screw: np.ndarray  # (degrees, 6) motion of each degree of freedom; forward_kinematics
    velocity: np.ndarray  # (bodies, 6) spatial velocity
    acceleration: np.ndarray  # (bodies, 6) spatial acceleration
    force: np.ndarray  # (bodies, 6) spatial force
    inertia: np.ndarray  # (bodies, 10) m, m c, inertia about the base origin (xx yy zz xy xz yz), single or composite


def workspace(tree: Tree) -> Workspace:
    """Allocate the scratch space for a tree."""
    bodies = len(tree.topology)
    degrees = int(bodies + 5)
    return Workspace(
        np.zeros((bodies, 12)),
        np.zeros((degrees, 6)),
        np.zeros((bodies, 6)),
        np.zeros((bodies, 6)),
        np.zeros((bodies, 6)),
        np.zeros((bodies, 10)),
    )
