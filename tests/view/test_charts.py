"""Charts and plots show the numbers that they are given, in the units of their labels, with their limits."""

import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from mcplan.analysis.pace import PlannedReference
from mcplan.analysis.readings import cone_share, friction_share
from mcplan.control.phases import CustomPhase
from mcplan.control.program import State
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.record.records import LinkRecord, PhaseRecord, WorldRecord, recorded_units, unit_of_all
from mcplan.robot.robot_file import load_robot
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.states import StateAction, Until
from mcplan.statics.support_region import SupportRegion
from mcplan.util.qp_status import HOLD, NO_QP, SLACK
from mcplan.util.text import escape_mathtext
from mcplan.view.charts import Curve, curve_chart, heat_chart
from mcplan.view.machine import draw_machine, machine_dot
from mcplan.view.palette import PHASES, band_colours, phase_colour
from mcplan.view.plots.bands import time_axes
from mcplan.view.plots.com import plot_momentum
from mcplan.view.plots.contact import VIEW_MARGIN_M, plot_forces, plot_region, plot_stance
from mcplan.view.plots.limits import plot_positions, plot_torques, plot_velocities
from mcplan.view.plots.pace import plot_clock
from mcplan.view.plots.tasks import _distance
from mcplan.view.report_page import _clock
from mcplan.view.robot import robot_to_draw
from tests.sim.waving_box import waving_run


@pytest.fixture(scope="module")
def run():
    run = waving_run(samples=80, touch=50)
    phases = [PhaseRecord(name="wave", stance=1, ended_by="time"), PhaseRecord(name="touch tip", stance=1)]
    live = SimpleNamespace(scenario=SimpleNamespace(name="box", robot=load_robot("hrp2")))
    t = run.t + 3.0  # the clock of a run need not begin at zero
    return replace(run, t=t, record=run.record.model_copy(update={"phases": phases}), live_plan=live)


def lines(axes):
    return {line.get_label(): np.array(line.get_xydata()) for line in axes.get_lines()}


def test_bands_stand_behind_every_axes_for_the_time_of_their_phase(run):
    for axes in time_axes(run, ["a [m]", "b [m]"], "title")[1]:
        spans = [(p.get_x(), p.get_x() + p.get_width()) for p in axes.patches]
        first, second = (0.0, pytest.approx(0.05)), (pytest.approx(0.05), pytest.approx(0.079))
        assert spans == [first, first, second, second]
        colours = [phase_colour("wave"), phase_colour("wave"), phase_colour("touch tip"), phase_colour("touch tip")]
        assert [to_hex(p.get_facecolor()) for p in axes.patches] == colours
        # what covers the height is faint, what is strong covers the upper edge alone
        assert [(p.get_alpha() or 1.0) < 0.2 for p in axes.patches] == [p.get_height() == 1.0 for p in axes.patches]
        assert axes.get_xlim() == (0.0, pytest.approx(0.079))


def test_a_kind_of_phase_has_one_colour_wherever_it_comes():
    order = ["swing left_sole", "shift", "load left_sole"]
    assert band_colours(order)["swing left_sole"] == band_colours(order[::-1])["swing left_sole"]
    assert phase_colour("swing left_sole") == phase_colour("swing right_hand") == PHASES["swing"]
    assert phase_colour("my state") == phase_colour("my other state")
    assert len(set(PHASES.values())) == len(PHASES)


def test_friction_is_that_of_the_world_in_which_it_ran(run):
    record = run.record.model_copy(update={"world": WorldRecord(friction={"floor": 0.5, "wall": 0.5})})
    slippery = replace(run, record=record)
    for column, patch in enumerate(run.patches):
        np.testing.assert_allclose(slippery.patch_friction(patch), 0.5 * run.patch_friction(patch))
        np.testing.assert_allclose(friction_share(slippery, column), 2.0 * friction_share(run, column))


def test_regions_momentum_and_weight_are_those_of_the_world_in_which_it_ran():
    """The floor has half its friction, and the box of 30 kg weighs 50."""
    heavy = {"box": LinkRecord(name="box", mass=50.0, com=[0.1, 0.0, 0.0], inertia=(0.5 * np.eye(3)).tolist())}
    run = waving_run(samples=80, touch=50)
    planned = run.contacts(60)
    record = run.record.model_copy(update={"world": WorldRecord(friction={"floor": 0.5}, links=heavy)})
    other = replace(run, record=record)
    factors = [c.friction / p.friction for c, p in zip(other.contacts(60), planned, strict=True)]
    assert factors == pytest.approx([0.5, 1.0])
    robot = other.loaded_robot
    assert robot.mass == pytest.approx(run.robot.mass + 20.0)
    assert run.loaded_robot is run.robot
    linear, angular = plot_momentum(other).axes
    momentum = np.einsum("kij,kj->ki", robot.centroidal_momentum_matrix(run.q), run.v)
    for i, name in enumerate("xyz"):
        np.testing.assert_allclose(lines(linear)[name][:, 1], momentum[:, i], atol=1e-12)
        np.testing.assert_allclose(lines(angular)[name][:, 1], momentum[:, 3 + i], atol=1e-12)
    assert not np.allclose(lines(angular)["y"], lines(plot_momentum(run).axes[1])["y"])
    assert lines(plot_forces(other).axes[0])["weight of the robot"][0, 1] == pytest.approx(robot.mass * GRAVITY)
    assert robot_to_draw(other) is robot


def test_contacts_are_made_once_for_all_samples_that_have_them():
    run = waving_run(samples=80, touch=50)
    assert run.contacts(0) is run.contacts(49)
    assert [contact.patch for contact in run.contacts(50)] == ["sole", "tip"]
    assert run.contacts(50) is run.contacts(79)


def test_a_patch_that_rests_and_later_grasps_is_measured_by_what_it_does_at_the_time(run):
    first, second = run.record.plan.stances
    rest = second.contact("tip")
    grips = [rest.model_copy(update={"kind": "grasp", "max_force": most}) for most in (6.0, 12.0)]
    stances = [second.model_copy(update={"contacts": [first.contacts[0], tip]}) for tip in (rest, *grips)]
    record = run.record.model_copy(
        update={
            "plan": run.record.plan.model_copy(update={"stances": stances}),
            "phases": [PhaseRecord(name=f"phase {k}", stance=k) for k in range(3)],
        }
    )
    phase = np.repeat([0, 1, 2], [60, 10, 10])  # it touches from sample 50 on
    changed, column = replace(run, record=record, phase=phase), run.patches.index("tip")
    used, size = cone_share(changed, column), np.linalg.norm(run.wrench[:, column, :3], axis=1)
    assert np.isnan(used[:50]).all()
    assert used[50:60] == pytest.approx(friction_share(run, column)[50:60])
    assert used[60:70] == pytest.approx(size[60:70] / 6.0)
    assert used[70:] == pytest.approx(size[70:] / 12.0)


def test_names_that_mean_something_to_matplotlib_or_graphviz_are_written_as_they_are(run):
    for name in (r"$\oops$", "_tool", "a $5 b", r"\$x$", "plain"):
        written, formula = Text()._preprocess_math(escape_mathtext(name))
        assert (written.lstrip(), formula) == (name, False)
        assert not escape_mathtext(name).startswith("_")
    record = run.record.model_copy(update={"patches": ["sole", "_tool"]})
    live = SimpleNamespace(scenario=SimpleNamespace(name=r"$\oops$", robot=run.robot))
    figure = plot_forces(replace(run, record=record, live_plan=live))
    figure.savefig(io.BytesIO())
    assert " _tool" in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    state = State(CustomPhase(0, r'say "\hi"', StateAction(), Until(finished=0.1)))
    text = machine_dot([state], ControlSettings(), 'my "own"')
    assert r'digraph "my \"own\"" {' in text
    assert r's0 [label="say \"\\hi\"\nstance 0"];' in text
    draw_machine([state], ControlSettings(), r"$\oops$").savefig(io.BytesIO())


def test_friction_used_is_that_of_the_worst_point_that_carries(run):
    assert run.point_force.max() > 1.0
    for column in range(2):
        used = friction_share(run, column)
        for k in range(0, len(run), 7):
            ratios = []
            for i in range(run.point_start[k], run.point_start[k + 1]):
                fn = float(run.point_force[i] @ run.point_normal[i])
                if run.point_patch[i] == column and fn > 1.0:
                    along = run.point_force[i] - fn * run.point_normal[i]
                    ratios.append(float(np.linalg.norm(along)) / (0.7 * fn))
            assert np.isnan(used[k]) if not ratios else used[k] == pytest.approx(max(ratios))


def test_forces_are_drawn_where_there_is_contact_and_the_limit_is_at_one(run):
    force, friction = plot_forces(run).axes
    total = np.linalg.norm(run.wrench[:, :, :3].sum(axis=1), axis=1)
    assert lines(force)["all together"][:, 1] == pytest.approx(total)
    size = np.linalg.norm(run.wrench[:, 1, :3], axis=1)
    tip = lines(force)["tip"][:, 1]
    assert np.isnan(tip[:50]).all()
    assert tip[50:] == pytest.approx(size[50:])
    dashed = [line for line in friction.get_lines() if line.get_linestyle() == "--"]
    assert [float(line.get_ydata()[0]) for line in dashed] == [1.0]


def test_shares_of_limits_have_signs_and_joints_without_limit_have_none(run):
    without = run.record.robot.model_copy(update={"velocity": [3.0, None]})
    run = replace(run, record=run.record.model_copy(update={"robot": without}))
    largest, chosen = plot_velocities(run).axes
    escape_mathtext = {label.split(" ")[0]: xy[:, 1] for label, xy in lines(chosen).items()}
    assert escape_mathtext["shoulder"] == pytest.approx(run.v[:, 6] / 3.0)
    assert escape_mathtext["elbow"] == pytest.approx(np.zeros(len(run)))  # null: no limit
    _, torques = plot_torques(run).axes
    escape_mathtext = {label: xy[:, 1] for label, xy in lines(torques).items()}
    assert escape_mathtext["shoulder (60 N m)"] == pytest.approx(run.tau[:, 0] / 60.0)
    dashed = [line for line in largest.get_lines() if line.get_linestyle() == "--"]
    assert [float(line.get_ydata()[0]) for line in dashed] == [1.0]


def test_a_joint_that_slides_has_its_units(run):
    robot = run.record.robot
    slides = [
        joint.model_copy(update={"kind": "prismatic"}) if joint.name == "elbow" else joint for joint in robot.joints
    ]
    record = run.record.model_copy(update={"robot": robot.model_copy(update={"joints": slides})})
    assert recorded_units(robot) == ["rad", "rad"]
    run = replace(run, record=record)
    for plot, units in (
        (plot_torques, ("60 N m)", "60 N)")), (plot_velocities, ("3 rad/s)", "99 m/s)")),
        (plot_positions, ("-2.00 to 2.00 rad)", "-2.00 to 9.00 m)")),
    ):  # fmt: skip
        escape_mathtext = lines(plot(run).axes[1])
        assert {f"shoulder ({units[0]}", f"elbow ({units[1]}"} <= set(escape_mathtext)
    assert [unit_of_all(units) for units in (["rad"], ["m"], ["m", "rad", "m"], [])] == ["rad", "m", "rad or m", "rad"]


def test_clock_times_are_microseconds_and_the_step_is_a_line(run):
    times = np.linspace(1e-4, 3e-4, len(run))
    status = run.qp_status.copy()
    status[[3, 9]] = SLACK, HOLD
    axes, often = plot_clock(replace(run, timing={"program": times}, qp_status=status)).axes
    escape_mathtext = lines(axes)
    program = next(xy for label, xy in escape_mathtext.items() if label.startswith("quadratic program\nmedian 200 µs"))
    assert program[:, 1] == pytest.approx(1e6 * times)
    assert escape_mathtext["tick of 1 ms"][0, 1] == pytest.approx(1000.0)
    assert escape_mathtext["2 programs not solved"][:, 0] == pytest.approx([0.003, 0.009])
    assert axes.get_yscale() == "log"
    assert not often.patches  # how often: of the controller's ticks, which this run does not know
    figure = plot_clock(replace(run, timing={"control": times, "program": times / 2}))
    assert sum(p.get_height() for p in figure.axes[1].patches) == len(run)
    slowest = next(label for label in lines(figure.axes[1]) if label.startswith("0.3 ms"))
    assert slowest == f"0.3 ms at {run.t[-1] - 3.0:.2f} s: touch tip,\nquadratic program"
    figure = plot_clock(replace(run, timing={"control": 1e4 * times, "program": times}))
    assert any(label.startswith("3.0 s at ") for label in lines(figure.axes[1]))


@pytest.mark.parametrize("status", [0, NO_QP])  # of the whole-body program, and of a controller of the textbooks
def test_a_tick_that_lasts_five_steps_has_their_time(run, status):
    document = run.record.scenario.document | {"control": {"rate": 200.0}}
    scenario = run.record.scenario.model_copy(update={"document": document})
    times, every = np.linspace(1e-4, 3e-4, len(run) // 5), np.full(len(run), NO_QP)
    every[::5] = status
    ticking = replace(
        run, record=run.record.model_copy(update={"scenario": scenario}), qp_status=every,
        timing={"control": times, "physics": np.full(len(run), 2e-4)},
    )  # fmt: skip
    figure = plot_clock(ticking)
    escape_mathtext = lines(figure.axes[0])
    assert escape_mathtext["tick of 5 ms"][0, 1] == pytest.approx(5000.0)
    assert lines(figure.axes[1])["tick of 5 ms"][0, 0] == pytest.approx(5000.0)
    control = next(xy for label, xy in escape_mathtext.items() if label.startswith("the whole control tick"))
    assert control[:, 0] == pytest.approx(0.005 * np.arange(len(times)))
    assert control[:, 1] == pytest.approx(1e6 * times)
    assert "A control tick has 5 ms" in _clock(ticking)


def test_distances_leave_out_what_a_contact_leaves_free():
    """A patch 3 mm along its free direction and 4 mm off it is 4 mm from its place; in the air all three count."""
    R = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    free = {"selection": np.delete(np.eye(6), 0, axis=0), "R": R, "p": np.array([1.0, 2.0, 3.0])}
    contact = Contact(
        patch="hand", support="table", kind="surface", points=np.zeros((1, 3)), axes=np.eye(3), friction=0.5,
        max_force=np.inf, max_moment=np.inf, **free,
    )  # fmt: skip
    X, Y = np.eye(4), np.eye(4)
    X[:3, 3] = contact.p + R @ [0.003, 0.004, 0.0]
    Y[:3, 3] = contact.p
    run = SimpleNamespace(
        plan=SimpleNamespace(stances=[SimpleNamespace(contact=lambda patch: contact)]), patches=["hand"],
        active=np.array([[True], [False]]), stance_of=lambda k, patch: 0, q=np.zeros((2, 7)),
        robot=SimpleNamespace(frame_pose=lambda q, patch: Y if q is None else X),
    )  # fmt: skip
    reference = PlannedReference(run)
    assert _distance(reference, 0, "hand", None) == pytest.approx(0.004)
    assert _distance(reference, 1, "hand", None) == pytest.approx(0.005)


def test_curves_have_their_values_and_the_ends_of_their_intervals():
    value, low, high = np.array([0.5, 0.2, 0.9]), np.array([0.4, 0.1, 0.6]), np.array([0.7, 0.5, 1.0])
    figure = curve_chart([Curve("a", [3.0, 1.0, 2.0], value, low, high)], "x", "y", "t", rate=True)
    (axes,) = figure.axes
    assert lines(axes)["a"] == pytest.approx(np.array([[1, 0.2], [2, 0.9], [3, 0.5]]))
    band = axes.collections[0].get_paths()[0].vertices
    for x, bottom, top in ((1.0, 0.1, 0.5), (2.0, 0.6, 1.0), (3.0, 0.4, 0.7)):
        here = band[np.isclose(band[:, 0], x), 1]
        assert (here.min(), here.max()) == pytest.approx((bottom, top))
    assert axes.yaxis.get_major_formatter()(0.25, 0) == "25 %"
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("x", "y", "t")


def test_texts_along_x_stand_at_their_ticks_and_share_them():
    one = Curve("a", ["walk", "crawl"], np.array([1.0, 2.0]), np.array([0.5, 1.0]), np.array([1.5, 4.0]))
    two = Curve("b", ["crawl"], np.array([5.0]), np.array([5.0]), np.array([5.0]))
    (axes,) = curve_chart([one, two], "x", "y", "t").axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["walk", "crawl"]
    a, b = axes.containers
    assert np.round(a[0].get_xydata()[:, 0]).tolist() == [0, 1]
    assert np.round(b[0].get_xydata()[:, 0]).tolist() == [1]
    bars = a[2][0].get_segments()
    assert [segment[:, 1].tolist() for segment in bars] == [[0.5, 1.5], [1.0, 4.0]]


def test_numbers_beside_texts_along_x_are_texts():
    """A parameter that is a number in one set of runs and a name in another."""
    one = Curve("a", [1.0, 2.0], np.array([1.0, 2.0]), np.array([0.5, 1.0]), np.array([1.5, 4.0]))
    two = Curve("b", ["fast"], np.array([5.0]), np.array([5.0]), np.array([5.0]))
    (axes,) = curve_chart([one, two], "x", "y", "t").axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1.0", "2.0", "fast"]


def test_a_region_without_bounds_is_cut_and_its_contacts_are_seen():
    sole = SimpleNamespace(patch="sole", world_points=np.array([[0.1, 0.1, 0], [-0.1, 0.1, 0], [0.0, -0.1, 0]]))
    square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    sides, ones = np.vstack([np.eye(2), -np.eye(2)]), np.ones(4)
    regions = {
        "region": SupportRegion(5.0 * square, sides, 5.0 * ones, bounded=False),
        "ZMP": SupportRegion(0.1 * square, sides, 0.1 * ones),
    }
    figure = plot_stance("stance", [sole], np.array([0.2, 0.0, 0.8]), regions)
    (axes,) = figure.axes
    assert axes.get_xlim() == pytest.approx((-0.1 - 0.3, 0.2 + 0.3))  # as much as contacts and centre of mass extend
    assert axes.get_ylim() == pytest.approx((-0.1 - 0.3, 0.1 + 0.3))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["region (cut)", "ZMP", "centre of mass"]
    assert plot_region(regions["region"]).get_title().endswith("(cut)")
    (axes,) = plot_stance("stance", [sole], np.array([0.2, 0.0, 0.8]), {"ZMP": regions["ZMP"]}).axes
    assert axes.get_xlim() == pytest.approx((-0.1 - VIEW_MARGIN_M, 0.2 + VIEW_MARGIN_M))


def test_a_heat_map_has_each_value_in_its_row_and_column():
    values = np.array([[0.1, 0.2, np.nan], [0.4, 0.5, 0.6]])
    axes = heat_chart(values, ["a", "b", "c"], ["low", "high"], "x", "y", "v", "t", rate=True).axes[0]
    (image,) = axes.images
    assert np.ma.filled(image.get_array(), np.nan) == pytest.approx(values, nan_ok=True)
    assert image.origin == "lower"
    assert image.get_clim() == (0.0, 1.0)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["low", "high"]
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert written[2, 1] == "60 %"
    assert written[0, 0] == "10 %"
    assert (2, 0) not in written
