from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.certificate.tolerances import FALL, NEGLIGIBLE_VIOLATION
from mcplan.sim.failure import FailureDetector


@pytest.fixture
def loss():
    robot = SimpleNamespace(fixed=False, com=lambda q: np.array([[0.0, 0.0, 0.8], [0.1, 0.0, 0.6]]))
    plan = SimpleNamespace(scenario=SimpleNamespace(robot=robot), stances=[SimpleNamespace(q=np.zeros(7))] * 2)
    return FailureDetector(plan, 0.01, 0.1)


def test_a_fall_is_a_centre_of_mass_far_below_every_planned_one_or_far_from_its_reference(loss):
    low = np.array([0.0, 0.0, 0.6 - FALL + 0.01])
    assert loss.fell(low, low) == ""
    assert "height" in loss.fell(low - [0, 0, 0.02], low)
    assert "0.35 m from its reference" in loss.fell(np.array([0.35, 0.0, 0.8]), np.array([0.0, 0.0, 0.8]))


def test_a_run_is_lost_when_most_of_the_time_had_no_solution_and_says_since_when_and_why(loss):
    text = [loss.no_solution(0.01 * k, k % 2, f"reason {k}") for k in range(20)]
    assert text == [""] * 20  # every other step is not most of them
    text = [loss.no_solution(0.2 + 0.01 * k, 0, "") for k in range(10)]
    text = [loss.no_solution(0.5 + 0.01 * k, 1, f"reason {k}") for k in range(6)]
    assert text[:5] == [""] * 5
    assert "since t = 0.500 s: reason 0" in text[5]


def test_a_program_that_misses_its_rows_by_next_to_nothing_has_not_failed(loss):
    assert [loss.no_solution(0.01 * k, 1, "rounding", 0.2 * NEGLIGIBLE_VIOLATION) for k in range(40)] == [""] * 40
    text = [loss.no_solution(0.4 + 0.01 * k, 1, "torque", 2.0 * NEGLIGIBLE_VIOLATION) for k in range(8)]
    assert "since t = 0.400 s: torque" in text[-1]
