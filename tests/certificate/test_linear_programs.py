"""Programs that are solved from where the one before has ended have the optima that they have alone."""

import numpy as np
import pytest
from scipy.optimize import linprog

from mcplan.certificate.transition_balance import LinearPrograms


def program(rng, rows, columns, equations):
    """A program with an optimum: what holds at some x, and costs that a combination of its rows bounds."""
    A, E = rng.normal(size=(rows, columns)), rng.normal(size=(equations, columns))
    free = np.arange(columns) < columns // 3
    x = np.where(free, rng.normal(size=columns), rng.random(columns))
    c = np.where(free, 0.0, rng.random(columns)) - rng.random(rows) @ A + rng.normal(size=equations) @ E
    return c, E, E @ x, A, A @ x + rng.random(rows), free


def alone(c, E, e, A, b, free):
    """Its optimum by another solver."""
    bounds = [(None if one else 0.0, None) for one in free]
    return linprog(c, A, b, E, e, bounds, method="highs").fun


@pytest.fixture
def programs():
    return LinearPrograms()


def test_each_has_its_own_optimum(programs):
    rng = np.random.default_rng(0)
    for rows, columns, equations in [(12, 20, 4), (12, 20, 4), (15, 20, 4), (9, 20, 4), (12, 8, 3), (12, 20, 4)]:
        asked = program(rng, rows, columns, equations)
        x = programs.solve(*asked)
        c, E, e, A, b, free = asked
        assert c @ x == pytest.approx(alone(*asked), rel=1e-7)
        np.testing.assert_allclose(E @ x, e, atol=1e-6)
        assert (A @ x <= b + 1e-6).all()
        assert (x[~free] >= -1e-9).all()


def test_one_that_hardly_differs_takes_few_steps(programs):
    rng = np.random.default_rng(1)
    c, E, e, A, b, free = program(rng, 60, 80, 6)
    steps = []
    for _ in range(3):
        programs.solve(c, E, e, A + 1e-4 * rng.normal(size=A.shape), b, free)
        steps.append(programs._highs.getInfo().simplex_iteration_count)
    assert max(steps[1:]) < 0.2 * steps[0]


def test_after_one_that_has_no_solution_the_next_has_its_own(programs):
    rng = np.random.default_rng(2)
    c, E, e, A, b, free = program(rng, 12, 20, 4)
    first = programs.solve(c, E, e, A, b, free)
    against = np.concatenate([A, -A[:1]]), np.append(b, -b[0] - 1.0)
    assert programs.solve(c, E, e, *against, free) is None
    assert c @ programs.solve(c, E, e, A, b, free) == pytest.approx(c @ first, rel=1e-9)


def test_the_solver_prints_nothing(capfd):
    """``verify --json`` would be no JSON: some versions of HiGHS print a banner from C."""
    asked = program(np.random.default_rng(0), 12, 20, 4)
    assert LinearPrograms().solve(*asked) is not None
    assert capfd.readouterr() == ("", "")
