"""Kinematic tree of the kernels: bodies in a few packed, read-only arrays, and the workspace.

Bodies of fixed and locked joints are merged into their parents. Body 0 is the floating base; one joint connects body
``i > 0`` to its parent ``topology[i, PARENT] < i``. A body's frame is the URDF frame of its joint's child link.
"""

from typing import NamedTuple

import numpy as np

PARENT, TYPE, Q, V, DEGREE = range(5)
"""Columns of ``Tree.topology``: parent body, joint type, first index in q, first index in v, first row in ``screw``."""

FLOATING, REVOLUTE, PRISMATIC, BALL = range(4)
"""Joint types. Only ``body.write_body_pose`` and ``body.write_body_motion`` read them: for all other code the base has
six degrees of freedom and each further body one. A ball joint is three bodies with the same origin, of the types
``BALL`` to ``BALL + 2``; the last is the link and the others have no mass; see `ball`."""

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
    armature: np.ndarray  # (nv,) float64, kg m² or kg; of the base zero, unless it is fixed and massless


POSE, SCREW, VELOCITY, ACCELERATION, FORCE, SPATIAL, ARTICULATED, JOINT_SPACE, ROTATION_VECTOR, WORK_COLUMNS = (
    0,
    12,
    18,
    24,
    30,
    36,
    46,
    82,
    90,
    93,
)
"""Columns of the workspace, one row per body; ``SCREW`` has one row per degree of freedom. Spatial vectors are linear
then angular, in world axes. They and all positions are relative to the base origin, so that results do not depend on
the robot's position in the world.

===============  ==  ==========================================================================================
POSE             12  rotation (row-major) in the world, and position from the base origin
SCREW             6  motion of a degree of freedom at unit rate, times the multiplier of a mimic joint
VELOCITY          6  spatial velocity
ACCELERATION      6  spatial acceleration; with gravity as an upward acceleration of the base where loads are wanted
FORCE             6  spatial force that the parent exerts
SPATIAL          10  m, m c, inertia about the base origin (xx yy zz xy xz yz): of the body, or of its subtree
ARTICULATED      36  articulated inertia (6x6)
JOINT_SPACE       8  articulated inertia times screw (6), joint-space inertia, remaining joint force
ROTATION_VECTOR   3  rotation vector of the ball joint that a body belongs to
===============  ==  ==========================================================================================
"""

Workspace = np.ndarray
"""Scratch of the kernels: one array, because each array that crosses from Python to a kernel costs 0.1 µs."""


def parents_of(tree: Tree) -> np.ndarray:
    """Return the parent (bodies,) of each body; of all three bodies of a ball joint, the parent of the joint."""
    parent = tree.topology[:, PARENT].copy()
    for i in range(1, len(parent)):
        if tree.topology[i, TYPE] > BALL:
            parent[i] = parent[parent[i]]
    return parent


def workspace(tree: Tree) -> Workspace:
    """Allocate the scratch space for a tree: one row per body and per degree of freedom, whichever are more."""
    return np.zeros((len(tree.topology) + 5, WORK_COLUMNS))


def workspaces(tree: Tree, chunks: int) -> np.ndarray:
    """Allocate one workspace per chunk of a batch (chunks, rows, columns)."""
    return np.zeros((chunks, *workspace(tree).shape))
