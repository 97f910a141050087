"""The whole way of a swing: what is in it although its ends and a few points between them are free."""

import pytest

from mcplan.planning.posture.prover import Prover
from mcplan.planning.posture.swing import Swing
from tests.planning.posture.obstacle_step import step_past

SOLES = ["left_sole", "right_sole"]


def swing_past(size, centre):
    """HRP-2 stepping past an obstacle: its prover and the swing."""
    robot, environment, right, before, after, q0, q1 = step_past(size, centre)
    return Prover(robot, environment, q0, SOLES, 0.05), Swing((right,), before, (after,), q0, q1)


def test_a_hurdle_is_stepped_over():
    prover, swing = swing_past((0.04, 2.0, 0.08), [0.2, 0.0, 0.04])
    assert prover.swing(swing) == ()
    assert prover.barred(swing) == ()


@pytest.fixture(scope="module")
def past_a_bar():
    """A thin bar before the left thigh: the leg would have to pass through it."""
    return swing_past((0.02, 0.3, 0.02), [0.2, 0.2, 0.5])


def test_what_a_leg_would_pass_through_bars_its_swing(past_a_bar):
    prover, swing = past_a_bar
    (violation,) = prover.barred(swing)
    assert violation.kind == "passage"
    assert violation.thing.startswith("LLEG_")
    assert violation.thing.endswith(" and bar")
    assert violation.amount > 0.02
    assert "on the way there LLEG_" in str(violation)


def test_once_one_was_barred_its_like_are_looked_at_as_closely(past_a_bar):
    known, swing = past_a_bar
    prover = Prover(known.robot, known.environment, swing.q0, SOLES, 0.05)
    assert prover.swing(swing) == ()
    assert prover.barred(swing)
    assert prover.swing(swing) == prover.barred(swing)
