"""Tasks and terms of the user take part in the execution of a plan."""

import numpy as np
import pytest

import mcplan as mc

TARGET = np.array([1.5, 0.8, 1.3])
"""m: where the head shall look; to the left, well within the neck's limits."""


@pytest.fixture(scope="module")
def plan():
    return mc.plan(mc.load_scenario("sway", {"control.avoidance.pairs": 0, "simulation.time_limit": 1.5}))


def executed(plan, **options):
    simulation = mc.Simulation(plan, **options)
    while simulation.t < 1.45 and simulation.step() is not None:
        pass
    return simulation


def off_target(robot, q):
    """Angle (rad) between the head's x axis and the direction of the target."""
    X = robot.frame_pose(q, "HEAD_LINK1")
    shift = TARGET - X[:3, 3]
    return np.arccos(X[:3, 0] @ shift / np.linalg.norm(shift))


def at_target():
    task = mc.LookAtTask("HEAD_LINK1", weight=50.0, kp=400.0)
    task.target[:] = TARGET
    return task


class Gaze:
    """The neck's two joints follow a target by a task written from nothing but the protocol."""

    weight, dimension, diagonal, key, frames = 50.0, 2, False, ("gaze", 2), ("HEAD_LINK1",)

    def __init__(self, robot):
        self.robot, self.times = robot, []

    def follow(self, t):
        self.times.append(t)

    def rows(self, terms):
        frame = terms.frame("HEAD_LINK1")
        shift = TARGET - frame.p
        error = np.cross(frame.R[:, 0], shift / np.linalg.norm(shift))
        B = frame.R[:, 1:]
        A = B.T @ frame.J[3:]
        return A, B.T @ (400.0 * error - 40.0 * frame.velocity[3:] - frame.bias[3:])


@pytest.mark.slow
def test_a_task_of_ones_own_is_followed(plan):
    robot = plan.scenario.robot
    gaze = Gaze(robot)
    without, own = executed(plan), executed(plan, tasks=[gaze])
    look = executed(plan, tasks=[at_target()])
    assert off_target(robot, without.physics.q) > 0.3
    assert off_target(robot, own.physics.q) < 0.02
    assert len(gaze.times) == own.index
    assert off_target(robot, look.physics.q) < 0.02
    np.testing.assert_allclose(own.controller.terms.com, without.controller.terms.com, atol=2e-3)


class Turn(mc.Task):
    """A wrong link is reported when the object is made; the rest is as a task has it."""

    dimension = 3

    def __init__(self, link, weight):
        self.frames, self.weight = (link,), weight

    def rows(self, terms):
        frame = terms.frame(self.frames[0])
        error = np.cross(frame.R[:, 0], TARGET - frame.p)
        return frame.J[3:], 100.0 * error - 20.0 * frame.velocity[3:] - frame.bias[3:]


def test_a_task_derived_from_task_needs_its_rows_alone(plan):
    turn = Turn("HEAD_LINK1", 50.0)
    assert (turn.weight, turn.key, turn.diagonal) == (50.0, ("Turn", 3), False)
    turned = executed(plan, tasks=[turn]).physics.q
    assert off_target(plan.scenario.robot, turned) < 0.05


def test_a_task_that_says_too_little_is_refused(plan):
    class Rows(mc.Task):
        def rows(self, terms):
            return np.zeros((1, 34)), np.zeros(1)

    class Dimension(mc.Task):
        dimension = 1

    with pytest.raises(TypeError, match=r"task .*Rows: it has no 'dimension'"):
        executed(plan, tasks=[Rows()])
    with pytest.raises(TypeError, match="rows"):
        Dimension()
    with pytest.raises(mc.InputError, match=r"no link or patch 'camera'; it has BODY, .*, and \d+ more"):
        executed(plan, tasks=[Turn("camera", 1.0)])


def test_terms_in_cvxpy_bound_what_they_say(plan):
    index = 6 + plan.scenario.robot.joint_names.index("HEAD_JOINT0")

    def still(program):
        return [], [program.vd[index] == 0.25]

    simulation = executed(plan, extra=still)
    rate = simulation.physics.v[index]
    assert rate == pytest.approx(0.25 * simulation.t, abs=1e-6)
