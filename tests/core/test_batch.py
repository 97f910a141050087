"""A batch is the kernel of one configuration, many times, however it is shared out among the cores."""

import numpy as np
import pytest

from mcplan.core.rigid_body import batch
from mcplan.core.rigid_body.com import com, com_jacobian
from mcplan.core.rigid_body.forward_dynamics import forward_dynamics
from mcplan.core.rigid_body.frame import frame_bias_acceleration, frame_jacobian, frame_pose
from mcplan.core.rigid_body.inverse_dynamics import inverse_dynamics, nonlinear_effects
from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.momentum import centroidal_momentum_matrix
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
