"""Contact candidates and contacts as the contact kernels see them: packed arrays and their columns.

Bodies are numbered through: those of the robot's tree, then the free objects. The world is body -1. A free object is a
body whose frame sits at its centre of mass; its six velocities (linear, angular, world axes) follow the robot's.
"""

from typing import NamedTuple

import numpy as np

from mcplan.core.distance.pair import PAIR_SIZE
from mcplan.core.distance.shape import Shapes, scratch as distance_scratch
from mcplan.core.rigid_body.tree import Tree, workspace

OWNER, FIRST, COUNT, OWNER_LINK, SLAB = range(5)
"""Columns of ``Scene.surface_index``: body that carries the surface, its corners in ``Scene.corners``, the object by
its number as a link (-1: the world), its slab among the shapes (-1: a side of its object's own shape)."""

SURFACE_POSE, SURFACE_FRICTION, THICKNESS, MIDDLE, HALF, SURFACE_SIZE = 0, 12, 13, 14, 16, 18
"""Columns of ``Scene.surface``: pose in its owner (12), friction, thickness of the slab (m), middle (2) and half sides
(2) of the rectangle around the polygon."""

BAR_START, BAR_END, BAR_RADIUS, BAR_FRICTION, BAR_SIZE = 0, 3, 6, 7, 8
"""Columns of ``Scene.bar``: ends of the axis (3 + 3), radius, friction."""

PATCH_BODY, PATCH_LINK, PATCH_FIRST, PATCH_COUNT, PATCH_HOLDS = range(5)
"""Columns of ``Scene.patch_index``: body, link, corners in ``Scene.corners``, whether it only grasps."""

BALL, RIM = range(2)
"""Kinds of bump: a ball (a corner is a ball without radius), or the rim of a cylinder's end."""

BUMP_BODY, BUMP_LINK, BUMP_KIND, BUMP_PATCH = range(4)
"""Columns of ``Scene.bump_index``; the patch is that of a ball, -1 of all else."""

BUMP_CENTRE, BUMP_RADIUS, BUMP_AXIS, BUMP_FRICTION, BUMP_SIZE = 0, 3, 4, 7, 8
"""Columns of ``Scene.bump``: centre in its body (3), radius, axis of a rim (3), greatest friction (m, -)."""

LOWER, UPPER, DAMPING, COULOMB, EASE, EFFORT, JOINT_SIZE = range(7)
"""Columns of ``Scene.joint``, one row per velocity: position limits, viscous damping, Coulomb friction, the inverse
inertia that scales the compliance of limits and friction, and the most that its motor gives."""

BODY_BALL, BODY_EASE, BODY_MASS, BODY_SIZE = 0, 4, 5, 9
"""Columns of ``Scene.body``: middle (3) and radius of a ball around all that may touch on a body; inverse mass seen at
the body; for objects mass and principal inertia (1 + 3)."""


BUMP_FIRST, BUMP_STOP, CHAIN, SHAPE_FIRST, SHAPE_STOP = range(5)
"""Columns of ``Scene.body_index``: first and last bump (exclusive) of a body; length of its chain; its shapes."""

PAIR_A, PAIR_B, BODY_OF_A, BODY_OF_B = range(4)
"""Columns of ``Scene.pair``: shapes that may meet, and their bodies (-1: the world)."""


class ContactScene(NamedTuple):
    """Everything that may touch. All arrays are read-only and C-contiguous."""

    surface_index: np.ndarray  # (S, 5) int64
    surface: np.ndarray  # (S, 18)
    bar: np.ndarray  # (B, 8)
    friction: np.ndarray  # (P, S + B) of each patch on each surface, then on each bar
    patch_index: np.ndarray  # (P, 5) int64
    patch: np.ndarray  # (P, 12) pose of the patch frame in its body
    corners: np.ndarray  # (K, 2) of surfaces and patches, each in its own axes, counter-clockwise
    bump_index: np.ndarray  # (N, 4) int64
    bump: np.ndarray  # (N, 8)
    body_index: np.ndarray  # (bodies, 5) int64
    body: np.ndarray  # (bodies, 9)
    chain: np.ndarray  # (bodies, width) int64: velocities that move a body, ascending
    joint: np.ndarray  # (nv + 6 objects, 6)
    parent: np.ndarray  # (nv + 6 objects,) int64: next velocity towards the root, -1 at a root
    shapes: Shapes  # of the bodies, body by body; then obstacles, slabs and bars in the world
    shape_link: np.ndarray  # (shapes,) int64: link or object that a shape belongs to, -1: the world
    pair: np.ndarray  # (pairs, 4) int64: links, objects and obstacles that may meet
    pair_friction: np.ndarray  # (pairs,)


CONE, BALLED = range(2)
"""Kinds of contact: unilateral with friction; bilateral with a bounded magnitude (half of a grasp)."""

KIND, TURNING, BODY_A, BODY_B, PATCH, LINK, OTHER, KEY, STATE, SLOTS, INDEX_SIZE = range(11)
"""Columns of ``Touch.index``: kind; whether it concerns angular velocities; bodies that touch and that support; patch
(-1: none); link or object that touches, and the one that supports (-1: the world); name by which a contact is
recognised in the next step; state; number of velocities that it concerns."""

POINT, AXES, ERROR, FRICTION, VALUE_SIZE = 0, 3, 12, 15, 16
"""Columns of ``Touch.value``: place in the world (3), axes t1, t2, n in rows (9), displacement along the axes (3; the
last one of a contact is its gap, m), friction coefficient or bound of a grasp (N, N m)."""

OPEN, STICK, SLIDE = range(3)
"""States of a contact."""


TAKEN, ASKED, TAKEN_BEFORE, ASKED_BEFORE, SHIFT_SIZE = range(5)
"""Columns of ``Touch.shift``: what a round takes, what the slip then asks for, and both of the round before."""


class ContactPoints(NamedTuple):
    """Contacts of one step, and their state. ``C`` rows of space."""

    index: np.ndarray  # (C, 11) int64
    value: np.ndarray  # (C, 16)
    where: np.ndarray  # (C, W) int64: velocities that a contact concerns
    J: np.ndarray  # (C, 3, W): velocity of a on b along the axes, per velocity
    aim: np.ndarray  # (C, 6) wanted velocity along the axes (3), compliance (3)
    impulse: np.ndarray  # (C, 3) along the axes, N s
    speed: np.ndarray  # (C, 3) along the axes, m/s
    climb: np.ndarray  # (C, 3) change of the speed along the direction of a line search
    shift: np.ndarray  # (C, 4) subtracted from the wanted normal velocity so that sliding does not lift, m/s
    memory_index: np.ndarray  # (C, 2) int64: key and state in the previous step
    memory: np.ndarray  # (C, 2) stretch of the tangential springs of soft contacts (m)
    report_index: np.ndarray  # (2 C, 2) int64: link and patch of each point that carries force, as each side sees it
    report: np.ndarray  # (2 C, 9) its place, normal (leaving the support) and force in the world
    lost: np.ndarray  # (1,) int64: contacts that found no room


HELD, ANCHOR, BOUND, FREE, GRASP_SIZE = 0, 1, 13, 15, 21
"""Columns of the grasps, one row per patch: whether it holds, pose where it holds (12), bounds of force and moment (2),
1 for each direction (linear, angular, patch axes) that the hold leaves free (6)."""

SPACE = 160
"""Contacts that a step can hold."""


def touch(scene: ContactScene) -> ContactPoints:
    """Allocate the table of contacts of a scene."""
    width = 2 * scene.chain.shape[1]
    return ContactPoints(
        np.zeros((SPACE, INDEX_SIZE), np.int64),
        np.zeros((SPACE, VALUE_SIZE)),
        np.zeros((SPACE, width), np.int64),
        np.zeros((SPACE, 3, width)),
        np.zeros((SPACE, 6)),
        np.zeros((SPACE, 3)),
        np.zeros((SPACE, 3)),
        np.zeros((SPACE, 3)),
        np.zeros((SPACE, SHIFT_SIZE)),
        np.full((SPACE, 2), -1, np.int64),
        np.zeros((SPACE, 2)),
        np.zeros((2 * SPACE, 2), np.int64),
        np.zeros((2 * SPACE, 9)),
        np.zeros(1, np.int64),
    )


COMPLIANCE, RECOVERY, RECOVERY_SPEED, RESTITUTION, BOUNCE_SPEED, SOFT, STIFF, DAMP, LAW_SIZE = range(9)
"""Places in the array of what contacts are like: compliance as a fraction of the inverse mass seen; fraction of a
penetration that a step takes back, and its greatest speed (m/s); coefficient of restitution and the speed from which on
it counts (m/s); 1 for springs and dampers, their stiffness (N/m) and damping (N s/m)."""


class Exchange(NamedTuple):
    """Inputs and outputs of a step, other than the state of the robot."""

    grasp: np.ndarray  # (P, 21) holds
    tau: np.ndarray  # (nv - 6,) torques that the motors are asked for
    force: (
        np.ndarray
    )  # (n,) other generalized forces on all bodies, without gravity, contacts and joints' own; N and N m
    object_q: np.ndarray  # (O, 7) of the objects, overwritten by the next state
    object_v: np.ndarray  # (O, 6) of the objects, overwritten by the next state
    wrench: np.ndarray  # (P, 6) out: of the environment on every patch, at its origin, world axes
    tau_ext: np.ndarray  # (nv,) out: forces of joint friction, damping and limits, of contacts without a patch, what
    # ``force`` says, and what the motors do not give of ``tau``
    counts: np.ndarray  # (6,) int64 out: contacts in the table, Newton steps, points reported, 1 if the state is
    # finite, contacts that found no room, 1 if Coulomb's law holds
    work: np.ndarray  # workspace of the tree


def exchange(tree: Tree, patches: int, objects: int) -> Exchange:
    """Allocate what a step exchanges with its caller."""
    nv = len(tree.armature)
    return Exchange(
        np.zeros((patches, GRASP_SIZE)),
        np.zeros(nv - 6),
        np.zeros(nv + 6 * objects),
        np.zeros((objects, 7)),
        np.zeros((objects, 6)),
        np.zeros((patches, 6)),
        np.zeros(nv),
        np.zeros(6, np.int64),
        workspace(tree),
    )


STATE_NOW, MOMENTUM, GRADIENT, STEP, PRODUCT, SIDE, AIM, BEND, GRIP, LIMIT, RUB, VECTORS = range(12)
"""Rows of ``Scratch.vector``: velocity; M v + dt force; gradient; direction of the line search, M times it; which limit
of a joint is near (-1, 0, 1), velocity wanted there, compliance; bound of the joint's friction (N m s); impulses of
limits and of friction."""


class ContactScratch(NamedTuple):
    """Scratch space of a step."""

    M: np.ndarray  # (n, n) mass matrix with the damping, for all bodies; only the lower triangle
    H: np.ndarray  # (n, n) second derivative of the program, then its factor
    vector: np.ndarray  # (VECTORS, n)
    robot_M: np.ndarray  # (nv, nv)
    dense: np.ndarray  # (n,) int64: parents of a matrix that is full
    pose: np.ndarray  # (bodies, 12) of the bodies in the world
    surface: np.ndarray  # (S, 12) of the surfaces
    frame: np.ndarray  # (P, 12) of the patches
    clip: np.ndarray  # (2, K, 3) polygons being cut
    speed: np.ndarray  # (bodies,) m/s
    G: np.ndarray  # (3, 3) stiffness of a contact
    shape: np.ndarray  # (shapes, 12) of the shapes in the world, where one was looked at
    distance: np.ndarray  # scratch of the distance kernels
    nearest: np.ndarray  # (10,) result of the search
    apart: np.ndarray  # (pairs,) distance that a pair had at least, plus the travel of its bodies by then, m
    travel: np.ndarray  # (bodies,) bound on the path length of any point of a body, m
    quiet: np.ndarray  # (1,) distance that every pair has at least, m
    clear: np.ndarray  # (shapes of bodies, slabs and bars) the same of shapes and supports
    left_q: np.ndarray  # (nq,) where the last step left the robot
    left_object_q: np.ndarray  # (objects, 7) and the objects


def scratch(scene: ContactScene, nv: int) -> ContactScratch:
    """Allocate the scratch space of a scene with a robot of nv velocities."""
    n, bodies = len(scene.parent), len(scene.body)
    supports = int(np.sum(scene.surface_index[:, SLAB] >= 0)) + len(scene.bar)
    return ContactScratch(
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((VECTORS, n)),
        np.zeros((nv, nv)),
        np.arange(n) - 1,
        np.zeros((bodies, 12)),
        np.zeros((len(scene.surface), 12)),
        np.zeros((len(scene.patch), 12)),
        np.zeros((2, 2 * len(scene.corners) + 8, 3)),
        np.zeros(bodies),
        np.zeros((3, 3)),
        scene.shapes.offset.copy(),
        distance_scratch(),
        np.zeros(PAIR_SIZE),
        np.full(len(scene.pair), -np.inf),
        np.zeros(bodies),
        np.full(1, -np.inf),
        np.full((scene.body_index[-1, SHAPE_STOP], supports), -np.inf),
        np.full(nv + 1, np.nan),
        np.full(((n - nv) // 6, 7), np.nan),
    )
