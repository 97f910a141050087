"""The bundled scenarios, simulated with the accelerations of the whole-body program."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mcplan as mc
from mcplan.control.command import Ramp
from mcplan.errors import InputError, SimulationFailed
from mcplan.planning.plan_file import save_plan
from mcplan.planning.sequence import complete_sequence
from mcplan.scenario.load import load_scenario
from mcplan.sim.observer import Observer
from mcplan.sim.qp_physics import QpPhysics
from mcplan.sim.simulate import Simulation, simulate
from tests import shared

FAST = {"simulation.dt": 0.004}


def planned(name, **overrides):
    return complete_sequence(load_scenario(name, overrides=FAST | overrides))


class Watch(Observer):
    """Keeps the events, and the largest drift of a contact (m)."""

    def __init__(self):
        self.begun, self.ended, self.steps, self.stopped, self.drift = [], [], 0, "not ended", 0.0

    def on_phase(self, event):
        (self.begun if event.ended_by is None else self.ended).append((event.name, event.ended_by))

    def on_step(self, sample):
        self.steps += 1

    def on_end(self, stopped):
        self.stopped = stopped


@pytest.fixture(scope="module", params=["sway", "single_support", "step", "table_hand"])
def executed(request):
    plan, watch = planned(request.param), Watch()
    return plan, simulate(plan, observers=[watch]), watch


def test_it_reaches_the_end_by_its_criteria_without_failure_of_the_program(executed):
    _plan, run, watch = executed
    assert watch.stopped is None
    assert run.record.stopped is None
    assert np.all(run.qp_status == 0)
    assert [name for name, _ in watch.begun] == [name for name, _ in watch.ended]
    assert all("timeout" not in ended_by for _, ended_by in watch.ended)
    assert watch.steps == len(run)
    assert run.record.phases[-1].ended_by == watch.ended[-1][1]


def test_contacts_stay_where_they_were_planned(executed):
    plan, run, _ = executed
    robot = plan.scenario.robot
    for k in range(0, len(run), 25):
        stance = plan.stances[run.record.phases[run.phase[k]].stance]
        for contact in stance.contacts:
            if run.active[k, run.patches.index(contact.patch)]:
                X = robot.frame_pose(run.q[k], contact.patch)
                assert np.linalg.norm(X[:3, 3] - contact.p) < 5e-4
                assert np.linalg.norm(X[:3, :3] - contact.R) < 1e-3


def test_the_last_contacts_are_those_of_the_plan(executed):
    plan, run, _ = executed
    last = plan.stances[-1].contacts
    assert {c.patch for c in last} == {p for p, on in zip(run.patches, run.active[-1], strict=True) if on}
    for contact in last:
        X = plan.scenario.robot.frame_pose(run.q[-1], contact.patch)
        np.testing.assert_allclose(X[:3, 3], contact.p, atol=1e-5)


def test_forces_and_torques_do_not_jump_at_contact_changes(executed):
    _, run, _ = executed
    # 4 N m and 40 N within 4 ms: 1 N m and 10 N per millisecond on a robot of 560 N.
    assert np.abs(np.diff(run.tau, axis=0)).max() < 8.0
    assert np.abs(np.diff(run.wrench[:, :, :3], axis=0)).max() < 80.0
    closing = np.argwhere(np.diff(run.active.astype(int), axis=0) == 1)
    opening = np.argwhere(np.diff(run.active.astype(int), axis=0) == -1)
    for k, patch in closing:
        assert np.linalg.norm(run.wrench[k + 1, patch, :3]) < 2.0
    for k, patch in opening:
        assert np.linalg.norm(run.wrench[k, patch, :3]) < 2.0


def test_samples_follow_from_each_other(executed):
    plan, run, _ = executed
    np.testing.assert_allclose(run.v[1:], run.v[:-1] + run.dt * run.vd[:-1], atol=1e-15)
    q = plan.scenario.robot.integrate(run.q[:-1], run.v[1:], run.dt)
    np.testing.assert_allclose(run.q[1:], q, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(run.q[:, 3:7], axis=1), 1.0, atol=1e-12)


def test_a_foot_in_the_air_stays_above_the_floor(executed):
    plan, run, _ = executed
    robot = plan.scenario.robot
    for k in range(0, len(run), 10):
        for index, patch in enumerate(run.patches):
            if "sole" in patch and not run.active[k, index]:
                X = robot.frame_pose(run.q[k], patch)
                corners = X[:3, 3] + robot.patches[patch].points @ X[:3, :3].T
                assert corners[:, 2].min() > -1e-4


def test_the_same_plan_gives_the_same_motion_to_the_bit():
    plan = planned("sway")
    first, second = (Simulation(plan) for _ in range(2))
    for _ in range(60):
        a, b = first.step(), second.step()
    np.testing.assert_array_equal(a.q, b.q)
    np.testing.assert_array_equal(a.tau, b.tau)


def test_a_state_that_is_not_a_number_stops_the_run_and_keeps_it():
    plan = planned("sway")

    class Poison(Observer):
        def on_step(self, sample):
            if sample.index == 4:
                simulation.physics.v[8] = np.nan

    simulation = Simulation(plan, observers=[Poison()])
    for _ in range(5):
        simulation.step()
    with pytest.raises(SimulationFailed, match="not a number"):
        simulation.step()
    run = simulation.finish("poisoned")
    assert len(run) == 5
    assert run.record.stopped == "poisoned"


def test_a_failed_simulation_hands_over_what_was_recorded():
    plan = planned("sway", **{"simulation.time_limit": 0.1})
    with pytest.raises(SimulationFailed, match="time limit") as failure:
        simulate(plan)
    assert len(failure.value.run) == 25


def test_unknown_physics_is_refused():
    with pytest.raises(InputError, match="physics 'bullet'"):
        Simulation(planned("sway"), physics="bullet")


def test_a_ramp_is_smooth_and_ends_where_it_should():
    ramp = Ramp(100.0, 0.0, 1.0, 0.5)
    values = [ramp.value(t) for t in np.linspace(0.9, 1.6, 71)]
    assert values[0] == 100.0
    assert values[-1] == 0.0
    assert np.all(np.diff(values) <= 0)
    assert np.abs(np.diff(values, 2)).max() < 0.01 * 100


def test_physics_integrates_on_the_manifold():
    robot = planned("sway").scenario.robot
    physics = QpPhysics(robot, robot.posture("half_sitting"))
    vd = np.random.default_rng(0).normal(size=robot.nv)
    from mcplan.sim.physics import Action

    for _ in range(100):
        physics.step(Action(np.zeros(robot.n), vd, {}, {}, ()), 0.001)
    np.testing.assert_allclose(physics.v, 0.1 * vd, atol=1e-14)
    assert np.linalg.norm(physics.q[3:7]) == pytest.approx(1.0, abs=1e-14)


def test_a_plan_file_is_simulated_as_it_is_written(tmp_path):
    """The planner would find one more stance."""
    plan = shared.planned("sway")
    file = tmp_path / "short.plan.yaml"
    save_plan(replace(plan, stances=plan.stances[:-1]), file)
    still = SimpleNamespace(torque=lambda t, terms, wrenches: terms.h[6:])
    run = mc.simulate(file, physics="contact", controller=still, duration=0.01)
    np.testing.assert_array_equal([stance.q for stance in run.record.plan.stances], [s.q for s in plan.stances[:-1]])
