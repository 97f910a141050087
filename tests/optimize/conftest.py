"""Makers of QPs for the tests of this folder."""

import cvxpy as cp
import numpy as np
import pytest


@pytest.fixture(scope="session")
def random_problem():
    """Return a maker of random DPP QPs in which every feature of the compiled form meets every other one."""
    return _random_problem


@pytest.fixture(scope="session")
def whole_body():
    """Return a maker of QPs of a whole-body controller's form and size, with random mass matrix and Jacobians."""
    return _whole_body


def _random_problem(seed: int) -> cp.Problem:
    """Return a random feasible, bounded DPP QP whose minimiser is unique, with parameter values set."""
    g = np.random.default_rng(seed)
    n, m = int(g.integers(2, 9)), int(g.integers(1, 7))
    kind = g.integers(0, 2, size=12).astype(bool)
    anchor = g.standard_normal(n)  # a feasible point
    x = cp.Variable(n, bounds=[anchor - 1.0, np.inf]) if kind[0] else cp.Variable(n)
    A, b = _parameter(g, (m, n)), _parameter(g, (m,))
    weight = cp.Parameter(nonneg=True, value=float(g.uniform(0.1, 2.0)))
    cost = weight * cp.sum_squares(x) + cp.sum_squares(A @ x - b)
    constraints = []
    if kind[1]:  # an equality without a constant coefficient
        E = _parameter(g, (1, n))
        e = cp.Parameter(1, value=E.value @ anchor)
        constraints.append(E @ x == e)
    if kind[2]:  # a variable given by an equality, limited on both sides by parameters
        J, k = _parameter(g, (3, n)), _parameter(g, (3,))
        y = cp.Variable(3)
        limit = cp.Parameter(3, nonneg=True, value=np.abs(J.value @ anchor + k.value) + g.random(3))
        constraints += [y == J @ x + k, y <= limit, -limit <= y]
        cost = cost + 0.1 * cp.sum_squares(y)
    if kind[3]:  # a parameter of Fortran order and a matrix variable
        X = cp.Variable((2, 3))
        F = cp.Parameter((2, 3), value=np.asfortranarray(g.standard_normal((2, 3))))
        constraints += [X[0, :] >= F[0, :], X >= -5]
        cost = cost + cp.sum_squares(X - F) + cp.sum(X) * 0.3
    if kind[4]:  # scalar parameters times expressions
        s = cp.Parameter(value=float(g.standard_normal()))
        constraints.append(s * x[0] + x[1] <= s.value * anchor[0] + anchor[1] + g.random())
    if kind[5]:
        cost = cost + cp.quad_form(x, _positive(g, n))
    if kind[6]:  # a chain of substitutions
        z = cp.Variable((4, 2))
        drive = _parameter(g, (2,))
        constraints += [z[0] == drive] + [z[i + 1] == 0.5 * z[i] + x[:2] for i in range(3)]
        cost = cost + cp.sum_squares(z)
    if kind[7]:
        S = cp.Variable((2, 2), symmetric=True)
        constraints.append(S[0, 1] <= 0.2)
        cost = cost + cp.sum_squares(S - g.standard_normal((2, 2)))
    if kind[8]:
        cost = cost + cp.Parameter(value=float(g.standard_normal())) + 1.5
    if kind[9]:
        w = cp.Parameter(n, nonneg=True, value=g.random(n))
        cost = cost + w @ cp.square(x)
    if kind[10]:  # variables without a quadratic cost
        cost = cost + 0.3 * cp.norm1(x) + cp.max(x[:2])
    rows = cp.Parameter((m, n), value=g.standard_normal((m, n)))
    constraints.append(rows @ x <= rows.value @ anchor + g.random(m))
    return cp.Problem(cp.Maximize(-cost) if kind[11] else cp.Minimize(cost), constraints)


def _parameter(g, shape) -> cp.Parameter:
    return cp.Parameter(shape, value=g.standard_normal(shape))


def _positive(g, n: int) -> np.ndarray:
    B = g.standard_normal((n, n))
    return B @ B.T + 0.1 * np.eye(n)


def _whole_body(accelerations=38, torques=32, points=8, seed=0):
    """Return problem, {name: Parameter}, and a function that fills the parameters with a new feasible case."""
    generator = np.random.default_rng(seed)
    nv, nf, feet = accelerations, 3 * points, points // 4
    vd, tau, f = cp.Variable(nv), cp.Variable(torques), cp.Variable(nf)
    r_com, r_posture = cp.Variable(3), cp.Variable(torques)
    p = {
        "M": cp.Parameter((nv, nv)), "h": cp.Parameter(nv), "J": cp.Parameter((nf, nv)),
        "Jc": cp.Parameter((6 * feet, nv)),
        "ac": cp.Parameter(6 * feet), "Jcom": cp.Parameter((3, nv)), "bcom": cp.Parameter(3),
        "w": cp.Parameter(torques, nonneg=True), "a_ref": cp.Parameter(torques), "tau_max": cp.Parameter(torques),
        "vd_min": cp.Parameter(torques), "vd_max": cp.Parameter(torques), "JT": cp.Parameter((nv, nf)),
    }  # fmt: skip
    selection = np.vstack([np.zeros((nv - torques, torques)), np.eye(torques)])
    fx, fy, fn = f[0::3], f[1::3], f[2::3]
    constraints = [
        p["M"] @ vd + p["h"] == selection @ tau + p["JT"] @ f,
        p["Jc"] @ vd == p["ac"],
        tau <= p["tau_max"], tau >= -p["tau_max"],
        vd[nv - torques :] <= p["vd_max"], vd[nv - torques :] >= p["vd_min"],
        fx <= 0.5 * fn, fx >= -0.5 * fn, fy <= 0.5 * fn, fy >= -0.5 * fn, fn >= 0, fn <= 500.0,
        r_com == p["Jcom"] @ vd - p["bcom"],
        r_posture == vd[nv - torques :] - p["a_ref"],
    ]  # fmt: skip
    cost = (
        cp.sum_squares(r_com) + 0.1 * cp.sum_squares(r_posture) + 1e-5 * cp.sum_squares(f) + 1e-4 * cp.sum_squares(vd)
    )
    problem = cp.Problem(cp.Minimize(cost + 1e-8 * cp.sum_squares(tau)), constraints)

    def fill():
        B = generator.standard_normal((nv, nv))
        p["M"].value = B @ B.T / nv + 5 * np.eye(nv)
        p["J"].value = generator.standard_normal((nf, nv))
        p["JT"].value = p["J"].value.T.copy()
        p["Jc"].value = generator.standard_normal((6 * feet, nv))
        force = np.tile([0.0, 0.0, 60.0], points) + generator.standard_normal(nf)
        acceleration, torque = generator.standard_normal(nv), 10 * generator.standard_normal(torques)
        p["ac"].value = p["Jc"].value @ acceleration
        p["h"].value = selection @ torque + p["JT"].value @ force - p["M"].value @ acceleration
        p["tau_max"].value = np.abs(torque) + 20 * generator.random(torques)
        p["vd_max"].value = acceleration[nv - torques :] + generator.random(torques)
        p["vd_min"].value = acceleration[nv - torques :] - generator.random(torques)
        p["Jcom"].value, p["bcom"].value = generator.standard_normal((3, nv)), generator.standard_normal(3)
        p["w"].value, p["a_ref"].value = generator.random(torques), generator.standard_normal(torques)

    fill()
    return problem, p, fill
