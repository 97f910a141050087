"""Curves of the plots: what they show is what the run holds."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.planning import plan
from mcplan.scene import load_scenario
from mcplan.sim.simulate import simulate
from mcplan.view.plots import FIGURES, save_plots
from mcplan.view.plots.clock import plot_clock
from mcplan.view.plots.forces import plot_forces
from mcplan.view.plots.momentum import plot_momentum
from mcplan.view.plots.tasks import plot_tasks
from mcplan.view.plots.torques import plot_torques, plot_velocities


@pytest.fixture(scope="module")
def run():
    return simulate(plan(load_scenario("step", overrides={"simulation.dt": 0.005})))


def curves(axes):
    return {line.get_label(): line.get_ydata() for line in axes.get_lines() if line.get_label()[0] != "_"}


def test_linear_momentum_is_that_of_the_centre_of_mass(run):
    linear = curves(plot_momentum(run).axes[0])
    velocity = np.gradient(run.com, run.t, axis=0)
    for axis, name in enumerate("xyz"):
        # finite differences of 5 ms against a motion of some 10 m/s3
        assert linear[name] == pytest.approx(run.robot.mass * velocity[:, axis], abs=run.robot.mass * 5e-3)
    assert max(np.abs(curve).max() for curve in linear.values()) > 1.0


@pytest.mark.parametrize(
    ("plot", "name", "values"),
    [(plot_torques, "torque", lambda run: run.tau), (plot_velocities, "velocity", lambda run: run.v[:, 6:])],
)
def test_shares_are_those_of_the_limits(run, plot, name, values):
    limit = run.record.robot.limit(name)
    largest, chosen = plot(run).axes
    share = np.abs(values(run) / limit).max(axis=1)
    assert np.allclose(largest.get_lines()[0].get_ydata(), share)
    for label, curve in curves(chosen).items():
        joint = run.record.joints.index(label.split(" ")[0])
        assert np.allclose(curve * limit[joint], values(run)[:, joint])


def test_the_distances_to_the_last_stance_vanish_and_a_swinging_foot_comes_closer(run):
    com, joints, air, contact = plot_tasks(run).axes
    assert com.get_lines()[0].get_ydata()[-1] < 0.01
    assert joints.get_lines()[0].get_ydata()[-1] < 0.05
    for line in contact.get_lines():
        assert np.nanmax(line.get_ydata()) < 1.0  # mm: the certificate's bound
    swings = [curve[~np.isnan(curve)] for curve in curves(air).values()]
    assert any(len(way) > 2 and way[0] > 0.05 and way[-1] < 1e-3 for way in swings)


def test_clock_times_are_drawn_where_there_are_some_and_unsolved_programs_are_marked(run, tmp_path):
    assert run.timing
    drawn = curves(plot_clock(run).axes[0])
    for name in ("terms", "machine", "program", "control", "physics"):
        assert any(label.startswith(name) for label in drawn)
    parts = sum(run.timing[name] for name in ("terms", "machine", "program"))
    assert np.all(parts <= run.timing["control"])
    assert parts.sum() > 0.8 * run.timing["control"].sum()
    status = run.qp_status.copy()
    status[3:5] = 1
    marked = curves(plot_clock(replace(run, qp_status=status)).axes[0])
    assert len(marked["2 programs not solved"]) == 2
    names = [path.stem for path in save_plots(replace(run, timing={}), tmp_path)]
    assert names == [name for name in FIGURES if name != "clock"]


def test_a_grasp_is_measured_by_the_force_that_it_may_carry(run):
    stances = [
        stance.model_copy(
            update={
                "contacts": [
                    c.model_copy(update={"kind": "grasp", "max_force": 1000.0}) if c.patch == "left_sole" else c
                    for c in stance.contacts
                ]
            }
        )
        for stance in run.record.plan.stances
    ]
    record = run.record.model_copy(update={"plan": run.record.plan.model_copy(update={"stances": stances})})
    used = curves(plot_forces(replace(run, record=record)).axes[1])["left_sole"]
    size = np.linalg.norm(run.wrench[:, run.patches.index("left_sole"), :3], axis=1)
    touching = run.active[:, run.patches.index("left_sole")]
    assert np.allclose(used[touching], size[touching] / 1000.0)
