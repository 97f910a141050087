"""The whole way of a swing: what is in it although its ends and a few points between them are free."""

from types import SimpleNamespace

import numpy as np
import pytest
from mcplan.planning.posture.ways import BARRED, HIGHER, Ways

from mcplan.planning.prover import Prover
from mcplan.planning.transition.knots import NOWHERE, Transit
from mcplan.planning.transition.swing import Swing
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


def looked_at(step, normals, missed, before=True):
    """Return what bars a swing by ``step`` (m) from support to support, and the places of every way that was tried."""
    ends = [np.zeros(3), np.array(step, float)]
    poses = []
    for p in ends:
        X = np.eye(4)
        X[:3, 3] = p
        poses.append(X)
    ways, tried = Ways.__new__(Ways), []
    ways.clearance = 0.05
    ways.robot = SimpleNamespace(
        difference=lambda a, b: b - a, integrate=lambda q, v, s: q + s * v, frame_pose=lambda q, name: poses[int(q[0])]
    )

    def find(guides, common, led, touching):
        tried.append(None if not led else led[0].places)
        return Transit(guides, missed[len(tried) - 1], 0.0, NOWHERE)

    ways._finder = SimpleNamespace(find=find)
    old, new = (SimpleNamespace(patch="foot", normal=np.array(n, float)) for n in normals)
    swing = Swing((), old if before else None, (new,), np.zeros(1), np.ones(1))
    swing = SimpleNamespace(
        q0=np.zeros(1), q1=np.ones(1), before=swing.before, after=new, common=(), touching=swing.touching
    )
    return ways.barred(swing), tried


UP = (0.0, 0.0, 1.0)


@pytest.mark.parametrize("rise", [0.0, 0.2, -0.2])
def test_a_foot_goes_off_and_comes_down_along_the_normals_as_high_as_the_higher_place_asks(rise):
    barred, (places,) = looked_at([0.4, 0.0, rise], (UP, UP), [0.0])
    assert barred == ()
    assert places[[0, -1]] == pytest.approx(np.array([[0, 0, 0], [0.4, 0, rise]]), abs=1e-12)
    assert places[:, 2].max() == pytest.approx(max(0.0, rise) + 0.05, abs=2e-3)
    off, down = places[places[:, 0] == 0.0], places[np.isclose(places[:, 0], 0.4)]
    assert off[:, 2].max() > 0.01
    assert np.all(np.diff(off[:, 2]) >= 0.0)
    assert down[:, 2].max() > rise + 0.01
    assert np.all(np.diff(down[:, 2]) <= 0.0)


def test_from_a_floor_to_a_wall_it_comes_along_the_normal_of_the_wall():
    _, (places,) = looked_at([0.5, 0.0, 0.6], (UP, (-1.0, 0.0, 0.0)), [0.0])
    assert places[:, 0].max() <= 0.5 + 1e-12
    last = places[-4:]
    assert np.all(np.diff(last[:, 0]) > 0.0)
    assert last[:, 2] == pytest.approx(np.full(4, 0.6))


def test_ever_higher_ways_are_tried_and_then_that_of_the_body_and_the_best_is_told():
    misses = [0.05, 0.04, 0.03, 0.045, 0.06]
    (violation,), tried = looked_at([0.4, 0, 0], (UP, UP), misses)
    assert violation.amount == pytest.approx(0.03)
    assert violation.thing == "foot"
    tops = [places[:, 2].max() for places in tried[:-1]]
    assert tops == pytest.approx([0.05 + higher for higher in HIGHER[::2]], abs=2e-3)
    assert tried[-1] is None
    barred, tried = looked_at([0.4, 0, 0], (UP, UP), [0.05, BARRED])
    assert (barred, len(tried)) == ((), 2)
    _, tried = looked_at([0.4, 0, 0], (UP, UP), [0.0], before=False)
    assert tried == [None]  # from the air it goes as the body does first
