"""The replay and the plots of a run."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text

from mcplan.record.run import load_run
from mcplan.view.arrow import METRES_PER_NEWTON
from mcplan.view.drawing import Drawing
from mcplan.view.film import contact_heights
from mcplan.view.page import SCRIPTS, Page, band_items, web_file
from mcplan.view.palette import phase_bands
from mcplan.view.plots import FIGURES, save_plots
from mcplan.view.replay import replay, replay_page
from tests import shared
from tests.view.tracks import at, tracks_of


@pytest.fixture(scope="module")
def run():
    return shared.swaying()


@pytest.fixture(scope="module")
def tracks(run):
    """Return {path: {track: (times, values)}} of the replay at 10 frames per second."""
    return tracks_of(replay(run, 10.0).tracks())


def test_links_are_where_the_robot_has_them(run, tracks):
    for k in (0, 140, len(run) - 1):
        for link in ("BODY", "RLEG_LINK5", "LARM_LINK3"):
            expected = run.robot.frame_pose(run.q[k], link)[:3, 3]
            assert at(tracks[f"robot/n:{link}"][".position"], run.t[k]) == pytest.approx(expected, abs=1e-6)


def test_a_run_is_drawn_from_its_first_sample_whatever_its_clock_says(run, tracks):
    later = tracks_of(replay(replace(run, t=run.t + 3.0), 10.0).tracks())
    for link in ("robot/n:BODY", "robot/n:LARM_LINK3"):
        for found, expected in zip(later[link][".position"], tracks[link][".position"], strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-9)


def test_arrows_carry_the_weight_of_the_robot(run, tracks):
    feet = ("left_sole", "right_sole")
    lengths = [at(tracks[f"forces/n:{foot}/shaft"][".scale"], 0)[2] for foot in feet]
    # standing still at the start: the two forces are the weight, but for what they push against each other
    assert sum(lengths) == pytest.approx(run.robot.mass * 9.81 * METRES_PER_NEWTON, rel=0.02)
    for foot in feet:
        place = at(tracks[f"forces/n:{foot}/shaft"][".position"], 0)
        assert place[2] == pytest.approx(0.0, abs=1e-4)
        assert at(tracks[f"forces/n:{foot}/head"][".position"], 0)[2] > 0.2


def test_the_ground_is_as_high_as_the_lowest_point_in_contact_and_stays_there_without_one():
    heights = [[0.3, 0.1, 0.2], [], [], [-0.2, 0.4], [0.5]]
    points = [np.array([[0.1, -0.2, z] for z in frame]).reshape(-1, 3) for frame in heights]
    assert contact_heights(points).tolist() == [0.1, 0.1, 0.1, -0.2, 0.5]


def test_the_page_needs_no_network_and_names_every_phase(run):
    text = replay_page(run)
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text)
    for _, _, name in phase_bands(run):
        assert f'"{name}"' in text


def test_bands_cover_the_run_without_gaps(run):
    bands = phase_bands(run)
    assert bands[0][0] == 0.0
    assert bands[-1][1] == pytest.approx(run.t[-1] - run.t[0])
    assert all(end == begin for (_, end, _), (begin, _, _) in pairwise(bands))


def test_a_title_cannot_break_out_of_the_page():
    text = Page("</script><script>alert(1)</script>", Drawing(), band_items([(0.0, 1.0, "</script><b>")]), 1.0).text()
    assert "<script>alert(1)" not in text
    assert "<b>" not in text


def test_a_loaded_run_gives_the_same_page(run, tmp_path):
    run.save(tmp_path / "run.npz")
    loaded = load_run(tmp_path / "run.npz")
    # meshcat names its objects at random
    again, first = replay(loaded, 10.0), replay(run, 10.0)
    anonymous = [re.sub(rb"[0-9a-f-]{36}", b"", command) for command in again.commands()]
    assert anonymous == [re.sub(rb"[0-9a-f-]{36}", b"", command) for command in first.commands()]
    assert again.tracks() == first.tracks()


@pytest.mark.slow
def test_every_plot_is_drawn_and_labelled(run, tmp_path):
    paths = save_plots(run, tmp_path / "plots")
    assert [path.stem for path in paths] == list(FIGURES)
    for path, plot in zip(paths, FIGURES.values(), strict=True):
        assert np.ptp(imread(path)[..., :3]) > 0.5
        figure = plot(run)
        axes = figure.axes
        assert overlapping(figure) == []
        assert all(a.get_ylabel() for a in axes)
        assert any("time" in a.get_xlabel() for a in axes)
        assert any(line.get_label()[0] != "_" for a in axes for line in a.get_lines()) or any(a.images for a in axes)


def overlapping(figure):
    """Return the titles, labels and texts of legends in a figure that lie on another."""
    figure.draw_without_rendering()
    # ticks beyond the limits have labels too, which are not drawn
    ticks = {
        id(text)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for text in axis.findobj(Text)
        if text is not axis.label
    }
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    texts = [text for text in texts if id(text) not in ticks]
    boxes = [(text.get_text(), text.get_window_extent().shrunk(0.98, 0.9)) for text in texts]
    return [
        (one, two)
        for i, (one, first) in enumerate(boxes)
        for two, second in boxes[:i]
        if one != two and first.width > 0 and first.overlaps(second)
    ]


def test_no_two_scripts_of_a_page_give_the_same_name():
    """They share one scope: a name that is declared twice stops the whole page."""
    names = []
    for script in (*SCRIPTS, "main.js", "pictures.js", "tree.js"):
        for line in web_file(script).splitlines():
            if found := re.match(r"(?:async )?function (\w+)", line):
                names.append(found[1])
            elif re.match(r"(const|let) ", line):
                bare = re.sub(r"\(.*?\)|\[.*?\]|\{.*?\}|=>.*", "", line)
                names += re.findall(r"(?:^(?:const|let)|,)\s+(\w+)(?=\s*[=,;]|$)", bare)
    assert len(names) > 80
    assert sorted(names) == sorted(set(names))


def test_pictures_leave_no_room_for_a_panel():
    """Of rules that are equally specific the last one counts: a picture of a plan beside its tree has no tree."""
    rules = re.findall(r"^body\.([\w-]+) \{[^}]*--side: (\w+);", web_file("page.css"), re.MULTILINE)
    assert rules == [("with-tree", "400px"), ("still", "0px")]
