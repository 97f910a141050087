"""Benchmark of dynamics kernels (per Python call, and in batches on one and two cores) and of static equilibrium.

All times are in microseconds. Equilibrium: HRP-2 on hands and soles, friction 0.7, pyramids of eight faces.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcplan.core.compilation import config, threads
from mcplan.core.rigid_body import batch
from mcplan.core.rigid_body.frame import write_body_poses
from mcplan.core.rigid_body.tree import workspace, workspaces
from mcplan.robot.robot import Robot
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.statics.equilibrium import balance, equilibrium_margin, equilibrium_torque_margin
from mcplan.statics.feasibility import can_balance, can_hold
from mcplan.statics.support_region import support_region, torque_support_region


def microseconds(function: Callable[[], object], calls: int, repeats: int, warm: int = 50) -> float:
    """Return the median over ``repeats`` of the mean time of ``calls`` calls, µs, after ``warm`` untimed calls."""
    for _ in range(warm):
        function()
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        found.append((time.perf_counter() - begin) / calls * 1e6)
    return float(np.median(found))


def median(values: ArrayLike) -> float:
    """Return the median as a Python float."""
    return float(np.median(np.asarray(values)))


Array = NDArray[np.float64]

BATCHES = (
    "mass_matrix",
    "inverse_dynamics",
    "nonlinear_effects",
    "forward_dynamics",
    "frame_jacobian",
    "momentum_matrix",
)
"""Kernels that are also measured in batches."""

CORES = (1, 2)
"""Numbers of cores of the batch measurements."""


def random_states(robot: Robot, count: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return random configurations (count, nq), velocities and accelerations (or forces), each (count, nv)."""
    rng = np.random.default_rng(seed)
    q = np.array([robot.random_configuration(rng) for _ in range(count)])
    return q, rng.standard_normal((count, robot.nv)), rng.standard_normal((count, robot.nv))


def kernels_us(robot: Robot, link: str, calls: int, repeats: int) -> dict[str, float]:
    """Return the time (µs) per Python call by name of the kernel.

    Public methods are measured, including argument checks and allocation. Exception: ``kinematics_and_jacobians`` is
    the internal kernel that computes the poses of all bodies and their Jacobian columns. ``frame_jacobian`` is the
    Jacobian of one link; ``all_terms`` computes all terms of a controller with one frame.
    """
    (q,), (v,), (a,) = random_states(robot, 1)
    terms, work = Terms(robot, [link]), workspace(robot.tree)
    table: dict[str, Callable[[], object]] = {
        "mass_matrix": lambda: robot.mass_matrix(q),
        "inverse_dynamics": lambda: robot.inverse_dynamics(q, v, a),
        "nonlinear_effects": lambda: robot.nonlinear_effects(q, v),
        "forward_dynamics": lambda: robot.forward_dynamics(q, v, a),
        "kinematics_and_jacobians": lambda: write_body_poses(robot.tree, q, work),
        "frame_jacobian": lambda: robot.frame_jacobian(q, link),
        "momentum_matrix": lambda: robot.centroidal_momentum_matrix(q),
        "all_terms": lambda: terms.update(q, v),
    }
    return {name: microseconds(function, calls, repeats) for name, function in table.items()}


def batch_us(robot: Robot, link: str, size: int, repeats: int) -> dict[str, dict[str, float]]:
    """Return the time (µs) per configuration by name and number of cores, for each available number in ``CORES``.

    Kernels write into preallocated arrays.
    """
    q, v, a = random_states(robot, size)
    body, offset = robot.frame(link)
    nv, tree = robot.nv, robot.tree
    available_cores: int = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    found: dict[str, dict[str, float]] = {name: {} for name in BATCHES}
    shapes = {"mass_matrix": (nv, nv), "frame_jacobian": (6, nv), "momentum_matrix": (6, nv)}
    for name in BATCHES:
        out = np.ones((size, *shapes.get(name, (nv,))))  # written to, so that its memory pages exist
        for cores in (count for count in CORES if count <= available_cores):
            work, M = workspaces(tree, cores), np.empty((cores, nv, nv))
            kernel, arguments = {
                "mass_matrix": (batch.mass_matrix, (q, work, out)),
                "inverse_dynamics": (batch.inverse_dynamics, (q, v, a, work, out)),
                "nonlinear_effects": (batch.nonlinear_effects, (q, v, work, out)),
                "forward_dynamics": (batch.forward_dynamics, (q, v, a, work, M, out)),
                "frame_jacobian": (batch.frame_jacobian, (q, body, offset, work, out)),
                "momentum_matrix": (batch.centroidal_momentum_matrix, (q, work, out)),
            }[name]
            with threads(cores):
                found[name][str(cores)] = microseconds(partial(kernel, tree, *arguments), 1, repeats, warm=1) / size
    return found


PATCHES = ("left_sole", "right_sole", "left_hand", "right_hand")
"""Patches in contact in the benchmarks of static equilibrium."""

POSTURE, FRICTION = "crawl", 0.7
"""Posture of the robot and friction coefficient of all its contacts in these benchmarks."""

REGION_TOLERANCE = 2e-3
"""m: accuracy of support regions, as in the planner."""

STATICS: dict[str, tuple[float | None, float | None]] = {
    "test": (1000.0, 200.0),
    "test with torque limits": (1000.0, 200.0),
    "least forces within torque limits": (1000.0, 200.0),
    "support region": (None, None),
    "support region within torque limits": (None, None),
    "margin, exact cones": (None, None),
    "margin with torque limits": (None, None),
}
"""Upper bound and target (µs) of each benchmark of static equilibrium; None: no requirement.

``test`` decides whether contacts can balance gravity. The order is that of ``functions`` in `statics_us`.
"""


def contact_at(robot: Robot, q: np.ndarray, patch: str, friction: float = FRICTION) -> Contact:
    """Return the contact of a patch with a surface at the pose of the patch in ``q``."""
    X, points = robot.frame_pose(q, patch), robot.patches[patch].points
    axes = X[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    return Contact(patch, "surface", "surface", X[:3, :3], X[:3, 3], points, axes, friction, np.inf, np.inf, np.eye(6))


def statics_us(robot: Robot, calls: int, repeats: int) -> dict[str, float]:
    """Return the time (µs) per call of each benchmark of static equilibrium."""
    q = robot.posture(POSTURE)
    contacts, com, mass = [contact_at(robot, q, patch) for patch in PATCHES], robot.com(q), robot.mass
    functions: tuple[Callable[[], object], ...] = (
        partial(can_balance, com, contacts, mass),
        partial(can_hold, robot, q, contacts),
        partial(balance, robot, q, contacts),
        partial(support_region, contacts, mass, tolerance=REGION_TOLERANCE),
        partial(torque_support_region, robot, q, contacts, tolerance=REGION_TOLERANCE),
        partial(equilibrium_margin, com, contacts, mass),
        partial(equilibrium_torque_margin, robot, q, contacts),
    )
    calls_per_repeat = max(1, calls // 10)  # these functions are slower than kernels
    return {
        name: microseconds(function, calls_per_repeat, repeats, warm=5)
        for name, function in zip(STATICS, functions, strict=True)
    }
