"""A batch is the kernel of one configuration, many times, however it is shared out, and so is a path."""

import numpy as np
import pytest

from mcplan.core.rigid_body import batch, inverse_dynamics as path
from mcplan.core.rigid_body.com import centroidal_momentum_matrix, com, com_jacobian
from mcplan.core.rigid_body.forward_dynamics import forward_dynamics
from mcplan.core.rigid_body.frame import frame_bias_acceleration, frame_jacobian, frame_pose
from mcplan.core.rigid_body.inverse_dynamics import inverse_dynamics, nonlinear_effects
from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.tree import workspace, workspaces
from tests.core.random_trees import build_tree, random_bodies, random_state

SIZE = 7
TREE = build_tree(random_bodies(np.random.default_rng(31), 8, mimic=0.3))
NV = len(TREE.armature)
KERNELS = {
    mass_matrix: ("q", [(NV, NV)]),
    nonlinear_effects: ("qv", [(NV,)]),
    inverse_dynamics: ("qva", [(NV,)]),
    com: ("q", [(3,)]),
    com_jacobian: ("q", [(3,), (3, NV)]),
    centroidal_momentum_matrix: ("q", [(6, NV)]),
    frame_pose: ("qf", [(4, 4)]),
    frame_jacobian: ("qf", [(6, NV)]),
    frame_bias_acceleration: ("qvf", [(6,)]),
}


def states():
    rng = np.random.default_rng(32)
    q, v, a = (np.array(x) for x in zip(*(random_state(rng, NV) for _ in range(SIZE)), strict=True))
    return {"q": q, "v": v, "a": a}


@pytest.mark.parametrize("chunks", [1, 2, SIZE + 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_a_batch_is_one_after_the_other(kernel, chunks):
    wanted, shapes = KERNELS[kernel]
    inputs = [x for name, x in states().items() if name in wanted]
    frame = (5, np.r_[np.eye(3).ravel(), 0.1, 0.2, 0.3]) if "f" in wanted else ()
    together = [np.full((SIZE, *shape), np.nan) for shape in shapes]
    getattr(batch, kernel.__name__)(TREE, *inputs, *frame, workspaces(TREE, chunks), *together)
    for b in range(SIZE):
        single = [np.full(shape, np.nan) for shape in shapes]
        kernel(TREE, *(x[b] for x in inputs), *frame, workspace(TREE), *single)
        for ours, expected in zip(together, single, strict=True):
            # Fused sums may be ordered differently where a kernel is inlined into another.
            np.testing.assert_allclose(ours[b], expected, atol=1e-11)


def test_forward_dynamics_in_a_batch():
    q, v, force = states().values()
    together, single = np.full((SIZE, NV), np.nan), np.full(NV, np.nan)
    batch.forward_dynamics(TREE, q, v, force, workspaces(TREE, 2), np.zeros((2, NV, NV)), together)
    for b in range(SIZE):
        forward_dynamics(TREE, q[b], v[b], force[b], workspace(TREE), np.zeros((NV, NV)), single)
        np.testing.assert_allclose(together[b], single, rtol=1e-9, atol=1e-9)


def test_what_a_path_takes_is_what_its_accelerations_take():
    q, v, vd = states().values()
    still, work, rate, change = np.zeros(NV), workspace(TREE), 1.7, -0.6
    hold, of_u, of_x = (np.empty_like(v) for _ in range(3))
    path.path_forces(TREE, q, v, vd, still, work, hold, of_u, of_x)
    for i in range(SIZE):
        expected = np.empty(NV)
        inverse_dynamics(TREE, q[i], rate * v[i], change * v[i] + rate**2 * vd[i], work, expected)
        np.testing.assert_allclose(hold[i] + change * of_u[i] + rate**2 * of_x[i], expected, rtol=1e-9, atol=1e-9)


def test_a_frame_along_a_path_and_the_twist_of_its_body_about_the_origin():
    q, v, _ = states().values()
    body, offset = 5, np.append(np.eye(3).ravel(), [0.1, -0.2, 0.3])
    place, J, work = np.empty((SIZE, 3)), np.empty((SIZE, 6, NV)), workspace(TREE)
    path.write_frame_path(TREE, q, body, offset, work, place, J)
    X, own = np.empty((4, 4)), np.empty((6, NV))
    for i in range(SIZE):
        frame_pose(TREE, q[i], body, offset, work, X)
        frame_jacobian(TREE, q[i], body, offset, work, own)
        np.testing.assert_allclose(place[i], X[:3, 3], atol=1e-12)
        linear, angular = (own @ v[i]).reshape(2, 3)
        np.testing.assert_allclose(J[i] @ v[i], np.append(linear - np.cross(angular, X[:3, 3]), angular), atol=1e-9)
