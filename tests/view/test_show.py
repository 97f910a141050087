"""What Python shows: a page in a notebook, a file in a browser."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mcplan as mc
from mcplan.errors import InputError
from mcplan.view import show as module
from tests import shared


@pytest.fixture(scope="module")
def robot():
    return mc.load_robot("hrp2")


@pytest.fixture
def opened(monkeypatch):
    addresses = []
    monkeypatch.setattr(module.webbrowser, "open", addresses.append)
    return addresses


def test_a_script_gets_a_file_and_the_browser(robot, opened):
    page = mc.show(robot)
    assert opened == [page.path.as_uri()]
    assert page.path.read_text(encoding="utf-8") == page.text
    assert "hrp2" in page.text
    page.path.unlink()


def test_a_notebook_gets_the_page_in_a_frame_of_its_own(robot, opened, monkeypatch):
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(config={"IPKernelApp": {}}))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    floor = mc.Surface("floor", size=(4, 4))
    q = robot.posture("half_sitting")
    sole = mc.contact(robot, "left_sole", floor, near=q)
    page = mc.show(robot, q, contacts=[sole], environment=mc.Environment([floor]))
    assert page.path is None
    assert not opened
    frame = page._repr_html_()
    assert frame.startswith("<iframe")
    assert "<script" not in frame, "the page is text of an attribute"


def test_scenarios_are_shown_at_their_start(opened):
    page = mc.show(mc.load_scenario("step"))
    assert "step" in page.text
    page.path.unlink()


def test_a_run_that_is_written_is_verified_first_and_one_that_is_shown_says_that_it_is_not(opened, tmp_path):
    run = shared.swaying()
    said = mc.save_html(run, tmp_path / "run.html").read_text(encoding="utf-8")
    assert '"certificate": {"success": true' in said
    report = mc.verify(run)
    missed = replace(report, checks=tuple(replace(check, passed=False) for check in report.checks))
    said = mc.save_html(run, tmp_path / "run.html", report=missed).read_text(encoding="utf-8")
    assert '"certificate": {"success": false' in said, "the report that is given is the one that is shown"
    shown = mc.show(run)
    assert '"certificate": null' in shown.text
    shown.path.unlink()
    shown = mc.show(run, report=report)
    assert '"certificate": {"success": true' in shown.text
    shown.path.unlink()


def test_what_cannot_be_shown_is_refused(robot):
    with pytest.raises(InputError, match="not 3"):
        mc.show(3)
    with pytest.raises(InputError, match="hrp2 has"):
        mc.show(robot, np.zeros(3))
    with pytest.raises(InputError, match="are for a robot"):
        mc.show(mc.load_scenario("step"), robot.posture("half_sitting"))


def test_a_region_draws_its_outline(robot):
    q = robot.posture("half_sitting")
    floor = mc.Surface("floor", size=(4, 4))
    soles = [mc.contact(robot, f"{side}_sole", floor, near=q) for side in ("left", "right")]
    region = mc.support_region(robot, q, soles)
    assert region.depth(robot.com(q)) > 0.05
    outline = mc.plot(region).lines[0].get_xydata()
    np.testing.assert_allclose(outline[:-1], region.vertices)
    np.testing.assert_allclose(outline[-1], region.vertices[0])
