"""Curves of the plots: what they show is what the run holds."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.analysis.pace import PlannedReference
from mcplan.analysis.readings import Readings
from mcplan.analysis.regions import com_limits
from mcplan.analysis.slowest_tick import PART_LABELS
from mcplan.errors import InputError
from mcplan.motion.time_parameterization import TimeParameterization
from mcplan.scene.contact import Carrier
from mcplan.sim.simulate import simulate
from mcplan.statics.support_region import support_region
from mcplan.util.progress import progress_listener
from mcplan.view.plots import FIGURES, save_plots, save_together
from mcplan.view.plots.com import plot_com, plot_momentum
from mcplan.view.plots.contact import plot_forces
from mcplan.view.plots.limits import plot_joints, plot_torques, plot_velocities, position_share
from mcplan.view.plots.pace import plot_clock
from mcplan.view.plots.tasks import plot_tasks
from mcplan.view.plots.together import plot_together
from mcplan.view.readings import run_charts
from tests import shared


@pytest.fixture(scope="module")
def run():
    return simulate(shared.planned("step", simulation__dt=0.005, control__pace="slow"))


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


def test_the_robot_is_near_the_plans_motion_and_at_its_end_where_that_ends(run):
    com, joints, air, contact = plot_tasks(run).axes
    (error,) = [line.get_ydata() for line in com.get_lines()]
    assert error.max() < 10.0  # mm, at steps of 5 ms
    assert error[-1] < 1.0
    assert joints.get_lines()[0].get_ydata()[-1] < 0.05
    for line in contact.get_lines():
        assert np.nanmax(line.get_ydata()) < 1.0  # mm: the certificate's bound
    assert any(np.isfinite(curve).sum() > 2 for curve in curves(air).values())


@pytest.mark.parametrize("way", [-1.0, 1.0])
def test_a_joint_that_lags_behind_on_either_side_is_drawn_and_named(run, way):
    q, joint = run.q.copy(), run.record.joints.index("LARM_JOINT3")
    q[-1, 7 + joint] += 0.3 * way
    curve = plot_tasks(replace(run, q=q)).axes[1].get_lines()[0]
    assert curve.get_ydata()[-1] == pytest.approx(0.3, abs=0.02)
    assert "LARM_JOINT3" in curve.get_label()


def test_the_reference_goes_through_the_postures_of_the_plan(run):
    reference = PlannedReference(run)
    planned = reference.com()
    assert planned[0] == pytest.approx(run.robot.com(run.plan.stances[0].q), abs=1e-9)
    assert planned[-1] == pytest.approx(run.robot.com(run.plan.stances[-1].q), abs=1e-6)
    rows = np.array([0, len(run) - 1])
    assert reference.postures(rows)[-1][7:] == pytest.approx(run.plan.stances[-1].q[7:], abs=1e-6)
    # it never jumps: each motion begins where the one before has ended
    assert np.linalg.norm(np.diff(planned, axis=0), axis=1).max() < 0.01


def with_segments(run, change):
    """Return the run with a plan whose transitions have other segments."""
    stances = [
        stance if stance.transition is None
        else replace(stance, transition=replace(stance.transition, segments=change(stance.transition.segments)))
        for stance in run.plan.stances
    ]  # fmt: skip
    return replace(run, live_plan=replace(run.plan, stances=tuple(stances)))


def test_the_reference_follows_the_laws_of_time_of_the_plan(run):
    def twice_as_fast(segment):
        ends = np.array([0.0, segment.duration])
        return replace(segment, law=TimeParameterization(0.5 * ends, ends, np.full(2, 2.0), np.zeros(2)))

    faster = with_segments(run, lambda segments: tuple(map(twice_as_fast, segments)))
    slow, fast = PlannedReference(run), PlannedReference(faster)
    assert slow.has_motions
    planned = slow.com()
    for stretch, end in slow._intervals_with_ends():
        half = stretch.begin + (end - stretch.begin) // 2
        twice = min(2 * half - stretch.begin, len(run) - 1)
        assert fast.com()[half] == pytest.approx(planned[twice], abs=1e-9)
        assert fast.postures(np.array([half])) == pytest.approx(slow.postures(np.array([twice])), abs=1e-6)


def test_a_limb_that_has_nothing_to_leave_stays_where_the_shift_has_ended(run):
    """A retraction without a motion of its own does not begin that of the shift again."""
    shifts = with_segments(run, lambda segments: segments[:1])
    phases = [phase.model_copy(update={"name": phase.name.replace("unload", "retract")}) for phase in run.record.phases]
    assert any(phase.name.startswith("retract") for phase in phases)
    record = run.record.model_copy(update={"phases": phases})
    assert np.array_equal(PlannedReference(replace(shifts, record=record)).com(), PlannedReference(shifts).com())


def test_a_state_of_the_users_own_follows_no_motion_of_the_plan_whatever_it_is_called(run):
    states = [{"state": "lift arm", "after": "load", "do": {}, "until": {"finished": 0.1}}]
    scenario = run.scenario.replace(control={"states": states})
    own = [phase.name.replace("load left_sole", "lift arm") for phase in run.record.phases]
    phases = [p.model_copy(update={"name": name}) for p, name in zip(run.record.phases, own, strict=True)]
    assert "lift arm" in own
    record = run.record.model_copy(update={"phases": phases})
    known = PlannedReference(replace(run, record=record, live_plan=replace(run.plan, scenario=scenario))).intervals
    assert [stretch.begin for stretch in known] == [stretch.begin for stretch in PlannedReference(run).intervals]


def test_a_contact_on_an_object_that_is_moved_goes_along_with_it(run):
    reference = PlannedReference(run)
    stretch = next(stretch for stretch in reference.intervals if stretch.segment is not None)
    k = stretch.begin + 1
    patch = next(name for name, touches in zip(run.patches, run.active[k], strict=True) if touches)
    contact = reference.patch_reference(k, patch, run.q[k])
    box = replace(contact, carrier=Carrier("box", 1.0, np.zeros(3), None), p=contact.p + np.array([0.3, 0.0, 0.0]))

    class Stance:
        contact = staticmethod(lambda name: box)

    for objects, ahead in (({"box": np.zeros(7)}, 0.0), ({"lid": np.zeros(7)}, 0.3), (None, 0.3)):
        moved = PlannedReference(
            replace(run, live_plan=SimpleNamespace(stances=[Stance] * 99, scenario=run.plan.scenario))
        )
        moved.__dict__["intervals"] = [replace(stretch, segment=replace(stretch.segment, objects=objects))]
        place = moved.patch_reference(k, patch, run.q[k])
        assert place.p - run.robot.frame_pose(run.q[k], patch)[:3, 3] == pytest.approx([ahead, 0, 0], abs=2e-3)


def test_the_centre_of_mass_is_drawn_with_the_plans_and_its_limits(run):
    rows = plot_com(run).axes
    for axis, axes in enumerate(rows[:3]):
        drawn = curves(axes)
        assert np.allclose(drawn["run"], run.com[:, axis])
        assert np.allclose(drawn["plan's motion"], PlannedReference(run).com()[:, axis])
    assert [len(axes.collections) for axes in rows] == [2, 2, 0, 0]
    speed = rows[3].get_lines()[0].get_ydata()
    assert speed.max() == pytest.approx(np.linalg.norm(np.diff(run.com, axis=0), axis=1).max() / run.dt, rel=0.05)


def test_limits_of_the_centre_of_mass_are_those_of_its_region(run):
    low, high, depth = com_limits(run)
    for k in range(0, len(run), 97):
        region = support_region(run.contacts(k), run.robot.mass)
        assert depth[k] == pytest.approx(region.depth(run.com[k]), abs=1e-9)
        for axis in range(2):
            for bound in (low[k, axis], high[k, axis]):
                edge = run.com[k, :2].copy()
                edge[axis] = bound
                assert region.depth(edge) == pytest.approx(0.0, abs=1e-9)
            assert low[k, axis] <= run.com[k, axis] <= high[k, axis]


def test_places_in_the_range_end_at_the_limits_and_the_worst_joint_is_named(run):
    lower, upper = run.record.robot.limit("lower"), run.record.robot.limit("upper")
    share = position_share(replace(run, q=np.concatenate([run.q[:, :7], np.tile(upper, (len(run), 1))], axis=1)))
    assert np.allclose(share, 1.0)
    share = position_share(run)
    assert np.allclose((lower + upper) / 2 + share * (upper - lower) / 2, run.q[:, 7:])
    titles = [axes.get_title(loc="left") for axes in plot_joints(run).axes]
    torque = np.abs(run.tau) / run.record.robot.limit("torque")
    k, i = np.unravel_index(torque.argmax(), torque.shape)
    expected = f"torque: worst (ring): {run.record.joints[i]}, {torque[k, i]:.0%} at {run.t[k]:.2f} s"
    assert expected in titles


def test_runs_are_compared_in_one_figure(run, tmp_path):
    other = replace(run, tau=2.0 * run.tau)
    figure = plot_together([("one", run), ("two", other)])
    one, two = (line.get_ydata() for line in figure.axes[2].get_lines()[:2])
    assert np.allclose(two, 2.0 * one, atol=0.2)  # of values rounded to 0.1 %
    assert all("[" in axes.get_ylabel() for axes in figure.axes)
    save_together([("one", run), ("two", other)], tmp_path / "new" / "both.png")
    assert (tmp_path / "new" / "both.png").stat().st_size > 10_000


@pytest.mark.slow
def test_clock_times_are_drawn_where_there_are_some_and_unsolved_programs_are_marked(run, tmp_path):
    assert run.timing
    drawn = curves(plot_clock(run).axes[0])
    labels = [" ".join(label.split()) for label in drawn]
    for words in PART_LABELS.values():
        assert any(label.startswith(f"{words} median") for label in labels)
        (curve,) = (drawn[label] for label in drawn if " ".join(label.split()).startswith(f"{words} median"))
        times = next(run.timing[name] for name, text in PART_LABELS.items() if text == words)
        assert np.allclose(curve, 1e6 * times)
    parts = sum(run.timing[name] for name in ("terms", "machine", "program"))
    assert np.all(parts <= run.timing["control"])
    assert parts.sum() > 0.8 * run.timing["control"].sum()
    status = run.qp_status.copy()
    status[3:5] = 1
    marked = curves(plot_clock(replace(run, qp_status=status)).axes[0])
    assert len(marked["2 programs not solved"]) == 2
    said = []
    with progress_listener(lambda what, share: said.append(what)):
        names = [path.stem for path in save_plots(replace(run, timing={}), tmp_path)]
    assert names == [name for name in FIGURES if name != "clock"]
    assert said == [f"{name} {k} of {len(names)}" for k, name in enumerate(names, 1)]
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(names)


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
    carried = {patch["name"]: patch for patch in run_charts(Readings(replace(run, record=record)))["patches"]}
    assert {patch: set(carried[patch]["of"]) for patch in carried} == {"left_sole": {"grip"}, "right_sole": {"cone"}}
    size = np.linalg.norm(run.wrench[:, run.patches.index("left_sole"), :3], axis=1)
    touching = run.active[:, run.patches.index("left_sole")]
    assert np.allclose(used[touching], size[touching] / 1000.0)


@pytest.mark.parametrize(
    ("place", "message"),
    [("report.html", "expected the name of a directory"), ("report.html/plots", "html is a file, so nothing can")],
)
def test_a_place_where_no_figure_can_be_is_refused_before_one_is_drawn(run, tmp_path, monkeypatch, place, message):
    def drawn(run):
        raise AssertionError("a figure is drawn")

    monkeypatch.setitem(FIGURES, "com", drawn)
    (tmp_path / "report.html").write_text("kept")
    with pytest.raises(InputError, match=message):
        save_plots(run, tmp_path / place)
