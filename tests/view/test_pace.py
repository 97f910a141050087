"""Pages and plots say how long motions were to take and took, and what bounds them."""

import numpy as np
import pytest

from mcplan.analysis import pace as pace_module
from mcplan.analysis.pace import PaceOfRun, active_limits, limits_text
from mcplan.analysis.readings import Readings
from mcplan.certificate.verify import verify
from mcplan.sim.simulate import simulate
from mcplan.view.palette import LIMITS
from mcplan.view.plots.pace import plot_pace
from mcplan.view.readings import run_charts
from mcplan.view.report_page import report_page
from tests import shared


@pytest.fixture(scope="module")
def run():
    """HRP-2 lifts a foot and sets it down elsewhere, at a quick pace."""
    return simulate(shared.planned("step", control__pace="fast"), physics="qp")


@pytest.mark.slow
def test_motions_fill_the_run_and_take_what_was_planned_and_what_they_wait(run):
    pace = PaceOfRun(run)
    assert pace.name == "fast"
    assert [motion.stance for motion in pace.motions] == list(range(1, len(run.plan.stances)))
    ends = [motion.start + motion.actual_duration for motion in pace.motions]
    np.testing.assert_allclose(ends[:-1], [motion.start for motion in pace.motions[1:]], atol=2 * run.dt)
    assert ends[-1] == pytest.approx(len(run) * run.dt, abs=2 * run.dt)
    for motion, stance in zip(pace.motions, run.plan.stances[1:], strict=True):
        assert motion.planned_duration == stance.transition.duration
        assert sum(motion.limit_shares.values()) == pytest.approx(1.0)
    t, late = pace.delays()
    assert late[0] == 0.0
    assert late[-1] == pytest.approx(pace.actual_duration - pace.planned_duration)
    assert t[-1] == pytest.approx(len(run) * run.dt, abs=2 * run.dt)


def test_what_bounds_a_sample_is_what_bounds_its_place_on_the_planned_way(run):
    pace = PaceOfRun(run)
    stretch = next(s for s in pace.reference.intervals if s.segment is not None)
    bound = pace.limits_by_stance[1][0][3]
    k = stretch.begin + round(bound.t / run.dt)
    assert pace.active_limits_at(np.array([k])) == [bound]
    assert pace.active_limits_at(np.array([0]))[0] is None or stretch.begin == 0


def test_the_page_has_a_chart_of_it_and_the_report_a_table(run):
    chart = run_charts(Readings(run))["charts"][-1]
    assert "pace fast" in chart["name"]
    values = np.array([[np.nan if value is None else value for value in curve["values"]] for curve in chart["curves"]])
    assert {curve["name"] for curve in chart["curves"]} <= set(LIMITS)
    told = ~np.isnan(values)
    assert told.sum(axis=0).max() == 1  # one limit at a time
    assert told.any(axis=0).mean() > 0.5
    assert np.nanmax(values) <= 102
    page = report_page(run, verify(run), "<p>the replay</p>")
    pace = PaceOfRun(run)
    assert f"Pace fast: {pace.planned_duration:.1f} s planned, {pace.actual_duration:.1f} s taken" in page
    for motion in pace.motions:
        assert limits_text(motion.limit_shares) in page


def test_what_bounds_a_motion_is_found_once_for_all_pages_of_a_run(run, monkeypatch):
    found = []

    def counted(retimer, segment):
        found.append(id(segment))
        return active_limits(retimer, segment)

    monkeypatch.setattr(pace_module, "active_limits", counted)
    report_page(run, verify(run))
    assert found == [id(part) for stance in run.plan.stances[1:] for part in stance.transition.segments]


def test_the_figure_names_what_bounds_and_the_delay(run):
    figure = plot_pace(run)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["part of the margin used [-]", "behind the plan [s]"]
    assert {line.get_label() for line in figure.axes[0].get_lines()} & set(LIMITS)
