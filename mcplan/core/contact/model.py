"""Packed arrays of the contact physics, and their columns: scene, contacts, inputs and outputs, scratch space.

Bodies have consecutive numbers: those of the robot's tree, then the free objects. The world is body -1. The frame of a
free object is at its centre of mass; its six velocities (linear, angular, world axes) follow those of the robot.
"""

from typing import NamedTuple

import numpy as np

from mcplan.core.algebra.tree_factor import roots
from mcplan.core.distance.pair import PAIR_SIZE
from mcplan.core.distance.shape import Shapes, scratch as distance_scratch
from mcplan.core.rigid_body.tree import Tree, workspace

OWNER, FIRST, COUNT, OWNER_LINK, SLAB = range(5)
"""Columns of ``ContactScene.surface_index``: body that carries the surface, first corner in ``ContactScene.corners``
and number of corners, link number of the object (-1: the world), slab among the shapes (-1: the surface is a side of
its object's shape)."""

SURFACE_POSE, SURFACE_FRICTION, THICKNESS, RECTANGLE_CENTRE, RECTANGLE_HALF, SURFACE_SIZE = 0, 12, 13, 14, 16, 18
"""Columns of ``ContactScene.surface``: pose in its owner (12), friction, thickness of the slab (m), centre (2) and half
sides (2) of the rectangle around the polygon (m)."""

BAR_START, BAR_END, BAR_RADIUS, BAR_FRICTION, BAR_SIZE = 0, 3, 6, 7, 8
"""Columns of ``ContactScene.bar``: ends of the axis (3 + 3), radius, friction."""

PATCH_BODY, PATCH_LINK, PATCH_FIRST, PATCH_COUNT, ONLY_GRASPS = range(5)
"""Columns of ``ContactScene.patch_index``: body, link, first corner in ``ContactScene.corners`` and number of corners;
1 if the patch only grasps."""

PATCH_POSITION, PATCH_RADIUS, PATCH_SIZE = 9, 12, 13
"""Columns of ``ContactScene.patch``: rotation (9, at 0) and position (3) in its body, radius of a ball (m), else 0."""

BALL, RIM = range(2)
"""Kinds of bump. A bump is a convex feature of a link's shape that can touch a plane first: a ball (a corner is a ball
of radius 0), or the rim of a cylinder's end."""

BUMP_BODY, BUMP_LINK, BUMP_KIND, BUMP_PATCH = range(4)
"""Columns of ``ContactScene.bump_index``; the patch is -1 unless the bump is the ball of a patch."""

BUMP_CENTRE, BUMP_RADIUS, BUMP_AXIS, BUMP_FRICTION, BUMP_SIZE = 0, 3, 4, 7, 8
"""Columns of ``ContactScene.bump``: centre in its body (3), radius, axis of a rim (3) (m), largest friction
coefficient."""

LOWER, UPPER, DAMPING, COULOMB, INVERSE_INERTIA, EFFORT, JOINT_SIZE = range(7)
"""Columns of ``ContactScene.joint``, one row per velocity: position limits, viscous damping, Coulomb friction,
inverse inertia, which scales the compliance of limits and friction, and largest effort of the motor."""

BODY_BALL, BODY_INVERSE_MASS, BODY_MASS, BODY_SIZE = 0, 4, 5, 9
"""Columns of ``ContactScene.body``: centre (3) and radius of a ball around all parts of a body that may touch;
effective inverse mass at the body; for objects mass and principal inertia (1 + 3)."""


BUMP_FIRST, BUMP_STOP, CHAIN, SHAPE_FIRST, SHAPE_STOP = range(5)
"""Columns of ``ContactScene.body_index``: first bump and end of the bumps of a body; length of its chain; first shape
and end of its shapes."""

PAIR_A, PAIR_B, BODY_OF_A, BODY_OF_B = range(4)
"""Columns of ``ContactScene.pair``: shapes that may meet, and their bodies (-1: the world)."""


class ContactScene(NamedTuple):
    """Parts of bodies and of the world that may touch.

    S surfaces, B bars, P patches, K corners, N bumps. All arrays are read-only and C-contiguous.
    """

    surface_index: np.ndarray  # (S, 5) int64
    surface: np.ndarray  # (S, 18)
    bar: np.ndarray  # (B, 8)
    friction: np.ndarray  # (P, S + B) of each patch on each surface, then on each bar
    patch_index: np.ndarray  # (P, 5) int64
    patch: np.ndarray  # (P, 13)
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
    on_link: np.ndarray  # (links, P) int64: 1 if contact points of a link's patches may belong to a patch


CONE, BOUNDED_BY_BALL = range(2)
"""Kinds of contact: unilateral with friction; bilateral with a bounded magnitude (half of a grasp)."""

KIND, IS_ANGULAR, BODY_A, BODY_B, PATCH, LINK, SUPPORT_LINK, KEY, STATE, SLOTS, INDEX_SIZE = range(11)
"""Columns of ``ContactPoints.index``: kind; 1 if the contact constrains angular velocities; touching and supporting
body; patch (-1: none); touching and supporting link or object (-1: the world); key by which a contact is recognised in
the next step; state; number of velocities that move the contact."""

POINT, AXES, ERROR, FRICTION, VALUE_SIZE = 0, 3, 12, 15, 16
"""Columns of ``ContactPoints.value``: position in the world (3), axes t1, t2, n in rows (9), displacement along the
axes (3; unless in a grasp, the last is the gap, m), friction coefficient or bound of a grasp (N, N m)."""

OPEN, STICK, SLIDE = range(3)
"""States of a contact."""


APPLIED, REQUIRED, LAST_APPLIED, LAST_REQUIRED, SHIFT_SIZE = range(5)
"""Columns of ``ContactPoints.shift``: shift in an iteration, shift ``mu |s|`` for the resulting slip, and both of the
previous iteration; see `solve`."""


class ContactPoints(NamedTuple):
    """Contacts of one step, and their state: tables for at most C = CAPACITY contacts."""

    index: np.ndarray  # (C, 11) int64
    value: np.ndarray  # (C, 16)
    columns: np.ndarray  # (C, W) int64: indices of the velocities that move a contact
    J: np.ndarray  # (C, 3, W): velocity of a on b along the axes, per velocity
    target: np.ndarray  # (C, 6) target velocity along the axes (3), compliance (3)
    impulse: np.ndarray  # (C, 3) along the axes, N s
    speed: np.ndarray  # (C, 3) along the axes, m/s
    speed_slope: np.ndarray  # (C, 3) derivative of the speed along the direction of a line search
    shift: np.ndarray  # (C, 4) subtracted from the target normal velocity so that sliding does not lift, m/s
    memory_index: np.ndarray  # (C, 2) int64: key and state of the contacts of the previous step
    memory: np.ndarray  # (C, 2) stretch of the tangential springs of soft contacts (m)
    report_index: np.ndarray  # (2 C, 2) int64: link and patch of each point that carries force, a row for each side
    report: np.ndarray  # (2 C, 9) its position, normal (away from the support) and force in the world
    overflow: np.ndarray  # (1,) int64: number of contacts beyond the capacity


IS_HELD, ANCHOR, MAX_WRENCH, IS_FREE, GRASP_SIZE = 0, 1, 13, 15, 21
"""Columns of ``Exchange.grasp``, one row per patch: 1 if the patch holds a bar, pose of the patch when it closed (12),
largest force (N) and moment (N m), 1 for each direction that the grasp leaves free (6: linear, angular, patch axes)."""

CAPACITY = 160
"""Largest number of contacts of a step."""


def contact_table(scene: ContactScene) -> ContactPoints:
    """Allocate the table of contacts of a scene."""
    width = 2 * scene.chain.shape[1]
    return ContactPoints(
        np.zeros((CAPACITY, INDEX_SIZE), np.int64),
        np.zeros((CAPACITY, VALUE_SIZE)),
        np.zeros((CAPACITY, width), np.int64),
        np.zeros((CAPACITY, 3, width)),
        np.zeros((CAPACITY, 6)),
        np.zeros((CAPACITY, 3)),
        np.zeros((CAPACITY, 3)),
        np.zeros((CAPACITY, 3)),
        np.zeros((CAPACITY, SHIFT_SIZE)),
        np.zeros((CAPACITY, 2), np.int64),
        np.zeros((CAPACITY, 2)),
        np.zeros((2 * CAPACITY, 2), np.int64),
        np.zeros((2 * CAPACITY, 9)),
        np.zeros(1, np.int64),
    )


COMPLIANCE, RECOVERY, RECOVERY_SPEED, RESTITUTION, BOUNCE_SPEED = range(5)
IS_SOFT, SPRING_STIFFNESS, SPRING_DAMPING, LAW_SIZE = range(5, 9)
"""Parameters of the contact law: compliance as a fraction of the effective inverse mass; fraction of a penetration that
a step corrects, and the largest speed of the correction (m/s); coefficient of restitution, and the impact speed above
which it applies (m/s); 1 if contacts are springs with dampers, their stiffness (N/m) and damping (N s/m)."""


class Exchange(NamedTuple):
    """Inputs and outputs of a step, other than the state of the robot."""

    grasp: np.ndarray  # (P, 21) grasps
    tau: np.ndarray  # (nv - 6,) commanded motor torques
    force: np.ndarray  # (n,) other generalized forces (N, N m), without those of gravity, contacts and joints
    object_q: np.ndarray  # (O, 7) of the objects, overwritten by the next state
    object_v: np.ndarray  # (O, 6) of the objects, overwritten by the next state
    vd: np.ndarray  # (nv,) out: mean acceleration of the robot
    wrench: np.ndarray  # (P, 6) out: of the environment on every patch, at its origin, world axes
    tau_ext: np.ndarray  # (nv,) out: forces of joint friction, damping and limits, of contacts without a patch,
    # ``force``, and minus the part of ``tau`` that exceeds the motors' limits
    counts: np.ndarray  # (7,) int64 out: contacts in the table, Newton steps, points reported, 1 if the state is
    # finite, contacts beyond the capacity, 1 if Coulomb's law is satisfied, 1 if number, links or patches of the points
    # reported differ from those of the last step
    work: np.ndarray  # workspace of the tree
    active: np.ndarray  # (P,) int64: 1 for patches that the controller takes to be in contact


def exchange(tree: Tree, patches: int, objects: int) -> Exchange:
    """Allocate inputs and outputs of a step."""
    nv = len(tree.armature)
    return Exchange(
        np.zeros((patches, GRASP_SIZE)),
        np.zeros(nv - 6),
        np.zeros(nv + 6 * objects),
        np.zeros((objects, 7)),
        np.zeros((objects, 6)),
        np.zeros(nv),
        np.zeros((patches, 6)),
        np.zeros(nv),
        np.zeros(7, np.int64),
        workspace(tree),
        np.zeros(patches, np.int64),
    )


NEW_VELOCITY, MOMENTUM, GRADIENT, STEP, PRODUCT, NEAR_LIMIT = range(6)
LIMIT_VELOCITY, JOINT_COMPLIANCE, FRICTION_BOUND, LIMIT_IMPULSE, FRICTION_IMPULSE = range(6, 11)
VELOCITY_PRODUCT, INVERSE_DIAGONAL, VECTORS = 11, 12, 13
"""Rows of ``ContactScratch.vector``: iterate of the velocity after the step; M v + dt force; gradient; direction d of
the line search; M d; near limit of a joint (-1 upper, 0 none, 1 lower), target velocity there, compliance; bound of the
joint's friction impulse (N m s); impulses of limits and of friction; M times the iterate; 1 / M_kk."""


class ContactScratch(NamedTuple):
    """Scratch space of a step."""

    M: np.ndarray  # (n, n) mass matrix of all bodies plus dt times damping; only the lower triangle
    H: np.ndarray  # (n, n) Hessian of the program, then its factor
    vector: np.ndarray  # (VECTORS, n)
    root: np.ndarray  # (n,) int64: first velocity of the tree that a velocity belongs to
    pose: np.ndarray  # (bodies, 12) of the bodies in the world
    surface: np.ndarray  # (S, 12) of the surfaces
    frame: np.ndarray  # (P, 12) of the patches
    clip: np.ndarray  # (2, K, 3) polygons that are clipped
    speed: np.ndarray  # (bodies,) m/s
    G: np.ndarray  # (3, 3) stiffness of a contact
    shape: np.ndarray  # (shapes, 12) poses of the shapes in the world at their last tests
    distance: np.ndarray  # scratch of the distance kernels
    nearest: np.ndarray  # (10,) nearest points, see ``distance.pair``
    pair_clearance: (
        np.ndarray
    )  # (pairs,) m: lower bound of a pair's distance at its last test, plus travel of its bodies then
    travel: np.ndarray  # (bodies,) bound on the path length of any point of a body since the start, m
    min_clearance: np.ndarray  # (1,) lower bound of the distance of all pairs, m
    support_clearance: np.ndarray  # (shapes of bodies, slabs and bars) like ``pair_clearance``
    last_q: np.ndarray  # (nq,) state of the robot after the last step
    last_object_q: np.ndarray  # (objects, 7) and of the objects
    radius: np.ndarray  # (bodies,) of the ball around a body's origin that contains its parts, m
    world_clearance: np.ndarray  # (bodies,) like ``pair_clearance``, of bodies from all surfaces and bars of the world


def scratch(scene: ContactScene, nv: int) -> ContactScratch:
    """Allocate the scratch space of a scene with a robot of nv velocities."""
    n, bodies = len(scene.parent), len(scene.body)
    supports = int(np.sum(scene.surface_index[:, SLAB] >= 0)) + len(scene.bar)
    return ContactScratch(
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((VECTORS, n)),
        roots(scene.parent),
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
        scene.body[:, 3] + np.linalg.norm(scene.body[:, :3], axis=1),
        np.full(bodies, -np.inf),
    )
