"""S0's program in accelerations of a chart (eq. 37) has the optimum of the one in mixed velocities."""

import cvxpy as cp
import numpy as np
import pytest

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.textbook.coordinates import ROTATION_MATRIX, UNIT_QUATERNION, Lagrangian
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import contact_at, random_state, standing_tasks
from tests.whole_body.reference import constants


def projected_program(qp, robot, q, v, chart, oblique):
    """Return the optimum of eq. 37 for the same cost, contacts, cones and limits, as (value, vd, tau, force)."""
    form = Lagrangian(robot, chart)
    nv, theta = robot.nv, slice(3, 3 + chart.size)
    q = form.coordinates(q)
    qdot = form.rates(q, v)
    E, Edot, A = form.velocity_map(q), form.velocity_map_rate(q, qdot), form.projector(q, oblique)
    M, N = form.matrices(q, qdot)

    qddot, tau, f = cp.Variable(form.size), cp.Variable(nv - 6), cp.Variable(qp.force.size)
    vd = E @ qddot + Edot @ qdot
    data, c = qp.data, constants(qp.structure)
    actuation = np.vstack([np.zeros((form.size - nv + 6, nv - 6)), np.eye(nv - 6)])
    gravity = -GRAVITY * M[:, 2]
    motion = M @ qddot + N @ qdot - gravity - actuation @ tau - E.T @ data["force_map"] @ f
    mu = c["repeat"] @ data["friction"]
    constraints = [
        A @ motion == 0,
        chart.constraint_rows(q[theta]) @ qddot[theta] + chart.constraint_rows(qdot[theta]) @ qdot[theta] == 0,
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


@pytest.mark.parametrize(
    ("chart", "oblique"), [(UNIT_QUATERNION, True), (UNIT_QUATERNION, False), (ROTATION_MATRIX, False)]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_two_forms_agree(standing, seed, chart, oblique):
    standing.rng = np.random.default_rng(seed)
    random_state(standing, 0.5)
    contacts = [ContactConstraint(contact_at(standing.robot, p, standing.q)) for p in ("left_sole", "right_sole")]
    tasks = standing_tasks(standing, (0.02, 0.04, -0.01))
    qp = WholeBodyQP(standing.robot, contacts, tasks)
    qp.update(standing.terms, contacts, tasks)
    s = qp.solve()
    qp.write_back()
    assert s.ok, s.message
    value, vd, tau, force = projected_program(qp, standing.robot, standing.q, standing.v, chart, oblique)
    assert value == pytest.approx(qp.problem.value, rel=1e-7)
    np.testing.assert_allclose(vd, s.vd, atol=1e-4)
    np.testing.assert_allclose(tau, s.tau, atol=1e-2)
    np.testing.assert_allclose(force, qp.force.value, atol=1e-1)
