"""The whole way of a swing: what is in it although its ends and a few points between them are free."""

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.model.geometry import Box
from mcplan.model.robot_file import load_robot
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.posture.prover import Prover
from mcplan.planning.posture.swing import Swing
from mcplan.scene.environment import Environment, Obstacle, Surface
from mcplan.scene.place import make_contact

ROBOT = load_robot("hrp2")


def step_past(size, centre):
    """HRP-2 stepping 0.36 m ahead with the left foot, past an obstacle: its prover and the swing."""
    square = np.array([[-2, -2], [2, -2], [2, 2], [-2, 2.0]])
    obstacle = Obstacle("bar", Box(size), np.eye(3), np.array(centre))
    environment = Environment((Surface("floor", np.eye(3), np.zeros(3), square),), (), (obstacle,), ())

    def sole(patch, x, y):
        return make_contact(ROBOT, environment, {"patch": patch, "surface": "floor", "x": x, "y": y, "yaw": 0.0})

    right, before, after = (
        sole("right_sole", 0.0, -0.095), sole("left_sole", 0.0, 0.095), sole("left_sole", 0.36, 0.095),
    )  # fmt: skip
    generator = PostureGenerator(ROBOT, environment, collisions=CollisionModel(ROBOT, environment))
    ends = [
        generator.generate([right, left], ["right_sole"], ROBOT.posture("half_sitting")) for left in (before, after)
    ]
    assert all(end.found for end in ends)
    swing = Swing((right,), before, (after,), ends[0].q, ends[1].q)
    return Prover(ROBOT, environment, ends[0].q, ["left_sole", "right_sole"], 0.05), swing


def test_a_hurdle_is_stepped_over():
    prover, swing = step_past((0.04, 2.0, 0.08), [0.2, 0.0, 0.04])
    assert prover.swing(swing) == ()
    assert prover.barred(swing) == ()


@pytest.fixture(scope="module")
def past_a_bar():
    """A thin bar before the left thigh: the leg would have to pass through it."""
    return step_past((0.02, 0.3, 0.02), [0.2, 0.2, 0.5])


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
    prover = Prover(ROBOT, known.environment, swing.q0, ["left_sole", "right_sole"], 0.05)
    assert prover.swing(swing) == ()
    assert prover.barred(swing)
    assert prover.swing(swing) == prover.barred(swing)
