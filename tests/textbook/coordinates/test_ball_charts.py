"""Ball joints in Lagrangian coordinates: every chart gives one motion, constraints hold, no energy is lost."""

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from mcplan.errors import InputError
from mcplan.robot.assemble import JointLimits
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates import (
    ROLL_PITCH_YAW,
    ROTATION_MATRIX,
    ROTATION_VECTOR,
    UNIT_QUATERNION,
    Lagrangian,
    Maximal,
    equations_of_motion,
    frame_jacobian_rate,
)
from tests.core.random_trees import random_state, with_balls
from tests.textbook.coordinates.random_robots import Description

CHARTS = [ROTATION_VECTOR, UNIT_QUATERNION, ROTATION_MATRIX, ROLL_PITCH_YAW]


class State:
    """A robot with two ball joints, and a state in which none is turned by more than a right angle."""

    def __init__(self):
        rng = np.random.default_rng(3)
        tree, _, _, first = with_balls(rng, 5)
        n = len(tree.armature) - 6
        place = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])
        place.flags.writeable = False
        names = [f"link{i}" for i in range(len(tree.topology))]
        description: Any = Description(names)
        limit = np.full(n, 3.0)
        self.robot = Robot(
            name="balls",
            tree=tree,
            description=description,
            joint_names=tuple(f"joint{i}" for i in range(n)),
            limits=JointLimits(-limit, limit, limit, limit),
            frames=MappingProxyType({name: (i, place) for i, name in enumerate(names)}),
        )
        self.q, self.v, self.vd = random_state(rng, 6 + n)
        self.q[7:] *= 0.3
        self.columns = [k - 6 for k in first]


@pytest.fixture(scope="module")
def state():
    return State()


def test_the_columns_of_balls(state):
    assert list(state.robot.ball_columns) == state.columns
    assert len(state.columns) == 2


@pytest.mark.parametrize("chart", CHARTS, ids=[c.name for c in CHARTS])
def test_dynamics_in_a_chart_of_balls_are_the_robots(state, chart):
    robot, d = state.robot, Lagrangian(state.robot, UNIT_QUATERNION, chart)
    q = d.coordinates(state.q)
    rate = d.rates(q, state.v)
    assert d.size == 3 + 4 + robot.n + 2 * (chart.size - 3)
    np.testing.assert_allclose(robot.difference(d.configuration(q), state.q), 0.0, atol=1e-12)
    np.testing.assert_allclose(d.velocity(q, rate), state.v, atol=1e-11)
    tau = np.linspace(-1.0, 1.0, robot.n)
    growth = d.forward_dynamics(q, rate, d.force(q, tau))
    found = d.velocity_map(q) @ growth + d.velocity_map_rate(q, rate) @ rate
    np.testing.assert_allclose(found, robot.forward_dynamics(state.q, state.v, np.r_[np.zeros(6), tau]), atol=1e-8)
    np.testing.assert_allclose(d.constraint_acceleration(q, rate, growth), 0.0, atol=1e-9)
    np.testing.assert_allclose(d.multiplier(q, rate, growth, d.force(q, tau)), 0.0, atol=1e-8)
    tool = robot.link_names[-1]
    np.testing.assert_allclose(d.jacobian(q, tool) @ rate, robot.frame_jacobian(state.q, tool) @ state.v, atol=1e-10)


@pytest.mark.slow
def test_one_motion_in_all_charts(state):
    """A fall of a fifth of a second, without torques: the same to 1e-6, constraints to 1e-10, and the energy kept."""
    ends = []
    for chart in CHARTS:
        d = Lagrangian(state.robot, UNIT_QUATERNION, chart)
        q = d.coordinates(state.q)
        motion = d.simulate(q, d.rates(q, state.v), 0.2, 1e-3)
        assert max(np.abs(d.constraint(x)).max() for x in motion.q[::50]) < 1e-10
        ends.append((d.configuration(motion.q[-1]), d.velocity(motion.q[-1], motion.q_rate[-1])))
    for q, v in ends[1:]:
        np.testing.assert_allclose(state.robot.difference(q, ends[0][0]), 0.0, atol=1e-6)
        np.testing.assert_allclose(v, ends[0][1], atol=1e-5)

    def energy(q, v):
        weight = 9.81 * state.robot.mass * state.robot.com(q)[2]
        return 0.5 * v @ state.robot.mass_matrix(q) @ v + weight

    assert energy(*ends[0]) == pytest.approx(energy(state.q, state.v), rel=1e-8)


def test_the_coriolis_matrix_is_skew(state):
    robot, h = state.robot, 1e-6
    found = equations_of_motion(robot, state.q, state.v)
    step = [robot.mass_matrix(robot.integrate(state.q, state.v, s * h)) for s in (1, -1)]
    np.testing.assert_allclose(found.M_rate, (step[0] - step[1]) / (2 * h), atol=1e-5)


def test_the_rate_of_a_jacobian(state):
    robot, h, tool = state.robot, 1e-6, state.robot.link_names[-1]
    step = [robot.frame_jacobian(robot.integrate(state.q, state.v, s * h), tool) for s in (1, -1)]
    np.testing.assert_allclose(
        frame_jacobian_rate(robot, state.q, state.v, tool), (step[0] - step[1]) / (2 * h), atol=1e-6
    )


def test_maximal_coordinates_and_back(state):
    whole = Maximal(state.robot)
    found = whole.configuration(whole.poses(state.q))
    slides = np.isin(np.arange(state.robot.n), [c + k for c in state.columns for k in range(3)])
    np.testing.assert_allclose(found[7:][slides], state.q[7:][slides], atol=1e-12)
    V = whole.velocity(state.q, state.v)
    np.testing.assert_allclose(whole.joint_rates(state.q, V)[6:][slides], state.v[6:][slides], atol=1e-9)


def test_rates_of_a_ball_that_is_turned_by_more_than_half_a_turn(state):
    """Its rotation vector is longer than that of its rotation, and its rates are others."""
    robot, q = state.robot, state.q.copy()
    place = slice(7 + state.columns[0], 10 + state.columns[0])
    q[place] *= 4.5 / np.linalg.norm(q[place])
    bodies = Maximal(robot)
    columns = slice(6 + state.columns[0], 9 + state.columns[0])
    rates = bodies.joint_rates(q, bodies.velocity(q, state.v))
    np.testing.assert_allclose(rates[columns], state.v[columns], atol=1e-9)
    own = Lagrangian(robot)
    np.testing.assert_array_equal(own.configuration(own.coordinates(q))[7:], q[7:])
    name = robot.joint_names[state.columns[0]]
    with pytest.raises(InputError, match=f"ball joint of '{name}' is turned by 4.5 rad; expected at most pi in unit"):
        Lagrangian(robot, ball_chart=UNIT_QUATERNION).coordinates(q)
