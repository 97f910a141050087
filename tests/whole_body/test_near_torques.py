"""Torques stay close to given ones, such as the last, where that has a solution."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.robot.anatomy import RobotScale
from mcplan.whole_body.priorities import PrioritisedQP
from mcplan.whole_body.rows.forces import PRISMATIC_LEVER_M, TorqueBand, torque_steps
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.solution import Solution
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import standing_tasks
from tests.whole_body.test_whole_body import soles, solved

STEP = 0.5


def asked(state):
    """Return tasks of which one jumps: the centre of mass is suddenly to go sideways."""
    tasks = standing_tasks(state)
    tasks[0].acceleration = np.array([0.0, 3.0, 0.0])
    return tasks


@pytest.fixture
def last(standing):
    """Torques (n,) before the jump."""
    return solved(standing, soles(standing), standing_tasks(standing))[1].tau


def kept_near(state, torque, **settings):
    """Return the solution after the jump, near the torques of the last tick, or wherever it is."""
    contacts, tasks = soles(state), asked(state)
    qp = WholeBodyQP(state.robot, contacts, tasks, QPSettings(torque_band=True, **settings))
    qp.update(state.terms, contacts, tasks, torque_band=None if torque is None else TorqueBand(torque, STEP))
    return qp.solve()


@pytest.mark.parametrize("compiled", [True, False])
def test_torques_go_as_far_as_they_may_and_no_farther(standing, last, compiled):
    free = solved(standing, soles(standing), asked(standing))[1]
    assert np.abs(free.tau - last).max() > 4 * STEP
    held = kept_near(standing, last, compiled=compiled)
    assert held.ok, held.message
    assert np.abs(held.tau - last).max() == pytest.approx(STEP, abs=1e-5)
    assert held.residuals.stationarity < 1e-6
    assert held.objective > free.objective


def test_compiled_and_plain_program_agree(standing, last):
    one, other = (kept_near(standing, last, compiled=compiled) for compiled in (True, False))
    np.testing.assert_allclose(one.vd, other.vd, atol=1e-6)
    np.testing.assert_allclose(one.tau, other.tau, atol=1e-5)


@pytest.mark.parametrize("compiled", [True, False])
def test_without_torques_of_a_last_tick_they_are_free(standing, compiled):
    free = solved(standing, soles(standing), asked(standing))[1]
    np.testing.assert_allclose(kept_near(standing, None, compiled=compiled).tau, free.tau, atol=1e-5)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_no_torque_near_the_last_ones_holds_has_no_solution(standing, last, sign):
    """With 300 N m more in every joint no robot stands still on two soles."""
    contacts, tasks = soles(standing), standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings(torque_band=True))
    qp.update(standing.terms, contacts, tasks, torque_band=TorqueBand(last + 300.0 * sign, STEP))
    assert qp.attempt() is None
    qp.update(standing.terms, contacts, tasks)
    assert qp.attempt() is not None


def test_the_check_of_an_answer_looks_at_them(standing, last):
    contacts, tasks = soles(standing), asked(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings(torque_band=True))
    qp.update(standing.terms, contacts, tasks)
    free = qp.solve()
    assert free.residuals.inequality < 1e-9
    forces = np.concatenate([free.unknowns[contact.patch] for contact in qp.contacts])
    for centre in (last, free.tau - 3.0 * STEP, free.tau + 3.0 * STEP):  # too low, too high
        qp.update(standing.terms, contacts, tasks, torque_band=TorqueBand(centre, STEP))
        again = Solution.checked(qp._filled_tables(), free.vd, free.tau, forces, 0.0)
        assert again.inequality == pytest.approx(np.abs(free.tau - centre).max() - STEP, abs=1e-6)


def test_levels_of_priority_keep_them_near_too(standing, last):
    contacts, tasks = soles(standing), asked(standing)
    posture = PostureTask(standing.q[7:] + 0.1, 1.0)
    posture.priority = 2
    qp = PrioritisedQP(standing.robot, contacts, [*tasks, posture], QPSettings(torque_band=True))
    qp.update(standing.terms, contacts, [*tasks, posture], torque_band=TorqueBand(last, STEP))
    held = qp.solve()
    assert held.ok, held.message
    assert np.abs(held.tau - last).max() == pytest.approx(STEP, abs=1e-5)


def test_a_force_changes_by_as_much_as_a_torque_over_a_lever(standing):
    """Of a joint that slides; of a robot half as large the lever is half as long."""
    joints = {"turn": SimpleNamespace(type="revolute"), "slide": SimpleNamespace(type="prismatic")}
    description = SimpleNamespace(joints=joints)
    for leg in (1.0, 0.5):
        robot = SimpleNamespace(description=description, joint_names=("slide", "turn"), scale=RobotScale(leg=leg))
        assert torque_steps(robot, 1500.0) == pytest.approx([1500.0 / (PRISMATIC_LEVER_M * leg), 1500.0])
    np.testing.assert_array_equal(torque_steps(standing.robot, 1500.0), 1500.0)


def test_each_torque_has_its_step(standing, last):
    steps = np.where(np.arange(standing.robot.n) % 2, 2.0, 0.5)
    contacts, tasks = soles(standing), asked(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings(torque_band=True))
    qp.update(standing.terms, contacts, tasks, torque_band=TorqueBand(last, steps))
    held = qp.solve()
    assert held.ok, held.message
    used = np.abs(held.tau - last) / steps
    assert used.max() == pytest.approx(1.0, abs=1e-5)
    assert np.abs(held.tau - last).max() > 0.6
