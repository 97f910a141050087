"""S0's program in unit-quaternion accelerations (eq. 37) has the optimum of the one in mixed velocities."""

import cvxpy as cp
import numpy as np
import pytest

from mcplan.core.rigid_body import lagrangian
from mcplan.core.rigid_body.tree import GRAVITY, workspace
from mcplan.whole_body import ContactConstraint, WholeBodyQP
from tests.whole_body.conftest import contact_at, random_state, standing_tasks


def quaternion_program(qp, tree, q, v, projector):
    """Return the optimum of eq. 37 for the same cost, contacts, cones and limits, as (value, vd, tau, force)."""
    nv, nq = qp.structure.nv, qp.structure.nv + 1
    E, Edot, A = np.zeros((nv, nq)), np.zeros((nv, nq)), np.zeros((nq, nq))
    lagrangian.velocity_map(q, E)
    qdot = np.linalg.pinv(E) @ v
    lagrangian.velocity_map_rate(qdot, Edot)
    M, N, rows = np.zeros((nq, nq)), np.zeros((nq, nq)), np.zeros((12, nq))
    J, Jdot = E[3:6, 3:7].copy(), Edot[3:6, 3:7].copy()
    lagrangian.lagrangian_matrices(tree, q, v, J, Jdot, workspace(tree), rows, M, N)
    projector(q, A)

    qddot, tau, f = cp.Variable(nq), cp.Variable(nv - 6), cp.Variable(qp.force.size)
    vd = E @ qddot + Edot @ qdot
    data, c = qp.data, qp.declaration.constants
    actuation = np.vstack([np.zeros((7, nv - 6)), np.eye(nv - 6)])
    gravity = -GRAVITY * M[:, 2]
    motion = M @ qddot + N @ qdot - gravity - actuation @ tau - E.T @ data["force_map"] @ f
    theta, rate = q[3:7], qdot[3:7]
    mu = c["repeat"] @ data["friction"]
    constraints = [
        A @ motion == 0,
        theta @ qddot[3:7] + rate @ rate == 0,
        data["contact_jacobian"] @ vd == data["contact_acceleration"],
        c["tangential"] @ f + qp.settings.inner_margin <= cp.multiply(mu, c["normal"] @ f),
        c["total"] @ f >= data["normal_min"],
        vd[6:] >= data["acceleration_min"],
        vd[6:] <= data["acceleration_max"],
        cp.abs(tau) <= np.array(qp.structure.torque),
    ]
    cost = (
        cp.sum_squares(data["task_matrix"] @ vd - data["task_target"])
        + data["acceleration_weight"] @ cp.square(vd)
        - 2 * data["acceleration_pull"] @ vd
        + data["force_weight"] @ cp.square(f)
    )
    problem = cp.Problem(cp.Minimize(cost), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status == cp.OPTIMAL
    return problem.value, vd.value, tau.value, f.value


@pytest.mark.parametrize("projector", [lagrangian.projector, lagrangian.projector_tangent])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_two_forms_agree(standing, seed, projector):
    standing.rng = np.random.default_rng(seed)
    random_state(standing, 0.5)
    contacts = [ContactConstraint(contact_at(standing.robot, p, standing.q)) for p in ("left_sole", "right_sole")]
    tasks = standing_tasks(standing, (0.02, 0.04, -0.01))
    qp = WholeBodyQP(standing.robot, contacts, tasks)
    qp.update(standing.terms, contacts, tasks)
    s = qp.solve()
    qp.write_back()
    assert s.ok, s.message
    value, vd, tau, force = quaternion_program(qp, standing.robot.tree, standing.q, standing.v, projector)
    assert value == pytest.approx(qp.problem.value, rel=1e-7)
    np.testing.assert_allclose(vd, s.vd, atol=1e-4)
    np.testing.assert_allclose(tau, s.tau, atol=1e-2)
    np.testing.assert_allclose(force, qp.force.value, atol=1e-1)
