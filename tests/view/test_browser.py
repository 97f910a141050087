"""Pages in a browser: they show what the run holds, do what their buttons say, and ask for nothing."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

from mcplan.certificate.verify import verify
from mcplan.planning.search.tree import SearchTree
from mcplan.sim.simulate import simulate
from mcplan.view.live import LiveView
from mcplan.view.moving.chromium import Chromium, find_chromium
from mcplan.view.plan_replay import plan_page, stances_page
from mcplan.view.replay import replay_page
from mcplan.view.report_page import report_page
from tests import shared

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no Chromium on the path to open pages in")

SIZE = (860, 480)
READY = "typeof clock === 'object' && viewer.animator.actions.length > 0"


@pytest.fixture(scope="module")
def planned():
    return shared.planned("step", simulation__dt=0.005)


@pytest.fixture(scope="module")
def run(planned):
    return simulate(planned)


@pytest.fixture(scope="module")
def report(run):
    return verify(run)


@pytest.fixture(scope="module")
def browser():
    with Chromium(find_chromium(), SIZE) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(browser, run, report):
    """The replay of the run, opened, at rest."""
    browser.open(replay_page(run, report), READY, "t=0")
    return browser


def click(browser, selector, share=0.5):
    """Press and release the mouse on an element, at a share of its width."""
    box = browser.js(
        f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();"
        " return [b.left, b.top, b.width, b.height]; })()"
    )
    place = {"x": box[0] + share * box[2], "y": box[1] + box[3] / 2, "button": "left", "clickCount": 1}
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, **place)


def test_bodies_are_where_the_run_has_them(page, run):
    # at frames of the page, 30 a second: between two it interpolates, as a film does
    for t in (0.0, 1.0, 2.5, 4.0):
        k = int(np.searchsorted(run.t, run.t[0] + t - 1e-9))
        for link in ("BODY", "RLEG_LINK5", "LARM_LINK3"):
            seen = page.js(
                f"(() => {{ seek({t}); const o = nodeAt('robot/n:{link}'); o.updateWorldMatrix(true, false);"
                " const e = o.matrixWorld.elements; return [e[12], -e[14], e[13]]; })()"
            )
            assert seen == pytest.approx(run.robot.frame_pose(run.q[k], link)[:3, 3], abs=1e-5)


def test_it_plays_pauses_and_jumps(page, run):
    page.js("seek(0)")
    click(page, "#play")
    assert page.js("new Promise(go => setTimeout(() => go(clock.playing && clock.t > 0.05), 600))")
    click(page, "#play")
    assert not page.js("clock.playing")
    duration = run.t[-1] - run.t[0]
    click(page, "#track", 0.5)
    assert page.js("clock.t") == pytest.approx(duration / 2, abs=0.02 * duration)
    assert page.js("document.querySelector('#tip b').textContent") in run.phases
    before = page.js("bandIndex(clock.t)")
    click(page, "#forth")
    assert page.js("[bandIndex(clock.t), clock.t - data.bands[bandIndex(clock.t)].begin]") == [before + 1, 0]
    click(page, "#frame-back")
    assert page.js("bandIndex(clock.t)") == before


def test_keys_do_what_their_list_says(page):
    for key, effect in (("End", "clock.t === data.duration"), ("Home", "clock.t === 0"), ("v", "layers.values.on")):
        page.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        page.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        assert page.js(effect)
    assert page.js("get('labels').children.length") > 0
    page.js("setLayer('values', false)")


def test_the_legend_switches_what_is_seen(page):
    click(page, "#legend-button")
    for key, node in (("forces", "forces"), ("cones", "cones"), ("support", "support")):
        for on in (False, True):
            click(page, f'#legend input[data-layer="{key}"]')
            assert page.js(f"nodeAt('{node}').visible") is on
    assert page.js("setLayer('collision', true), nodeAt(data.layers.find(l => l.key === 'collision').nodes[0]).visible")
    click(page, "#legend-button")


def test_the_card_tells_the_loads_and_the_certificate(page, run, report):
    page.js("seek(0.0)")
    told = page.js("get('facts').textContent")
    assert "left_sole" in told
    assert f"{sum(1 for check in report.checks if check.bound)} checks" in told
    assert page.js("get('verdict').textContent") == "certificate holds"
    force = np.linalg.norm(run.wrench[0, run.patches.index("left_sole"), :3])
    assert f"{force:.0f} N" in told


def test_what_stands_before_the_robot_is_seen_through(page):
    opacity = "(() => { fade(); return Math.min(...slabs.map(slab => slab.material.opacity)); })()"
    page.js("seek(0), lookFrom('home'), viewer.render()")
    assert page.js(opacity) == 1
    page.js("look(centreOfMass(), centreOfMass().add(new THREE.Vector3(0.1, -3, 0))), viewer.render()")
    assert page.js(opacity) < 0.5  # from below the floor
    page.js("setLayer('fade', false)")
    assert page.js(opacity) == 1
    page.js("setLayer('fade', true), lookFrom('home')")


def test_the_next_posture_is_that_of_the_plan(page, run):
    k = next(k for k, phase in enumerate(run.record.phases) if phase.name.startswith("swing"))
    t = float(run.t[np.flatnonzero(run.phase == k)[0]] - run.t[0]) + 1e-3
    aim = run.plan.stances[run.record.phases[k].stance]
    page.js(f"seek({t}), setLayer('ghost', true)")
    index = page.js("data.ghost.links.indexOf('n:LARM_LINK3')")
    seen = page.js(f"ghost.root.children[{index}].position.toArray()")
    assert seen == pytest.approx(run.robot.frame_pose(aim.q, "LARM_LINK3")[:3, 3], abs=2e-5)
    page.js("setLayer('ghost', false)")


def test_the_tree_is_opened_and_leads_back_to_the_plan(browser, planned):
    tree = SearchTree()
    for k, stance in enumerate(planned.stances):
        tree.add_node(k - 1 if k else None, f"move {k}", stance.contacts, stance.q, k, len(planned.stances) - k)
    last = planned.stances[-1]
    tree.add_node(0, "aside", last.contacts, last.q, 1, 9)
    tree.reject(0, "too far", "reach", (), last.contacts)
    tree.path = list(range(len(planned.stances)))
    browser.open(plan_page(planned, tree), READY, "t=0")
    assert browser.js("document.querySelectorAll('#rows .row').length") == len(tree.nodes) + 1
    browser.js("pause(), pick(rows.find(row => row.node === 2))")
    assert browser.js("inTree() && get('facts').textContent.includes('node 2')")
    browser.js("pick(rows.find(row => row.classList.contains('rejected')))")
    assert browser.js("labels.tried.map(label => label.text)") == [f"{c.patch}, tried" for c in last.contacts]
    click(browser, "#only-plan")
    assert browser.js("rows.map(row => row.node)") == tree.path
    click(browser, "#to-plan")
    assert browser.js("clock.t") == 0
    browser.js("[...document.querySelectorAll('#rows a')].at(-1).click()")
    assert browser.js("clock.t") == len(planned.stances) - 1
    side = "getComputedStyle(document.body).getPropertyValue('--side').trim()"
    assert browser.js(side) == "400px"
    assert browser.js(f"beginPictures([]), {side}") == "0px"


def test_a_plan_plays_at_the_speed_of_its_motions_and_says_whether_it_is_verified(browser, planned):
    browser.open(plan_page(planned), READY, "t=0")
    page = stances_page(planned)
    for k, second in enumerate(page.seconds[1:], start=1):
        assert browser.js(f"later({k - 1}, {second - page.seconds[k - 1]})") == pytest.approx(k, abs=1e-9)
    half = 0.5 * (page.seconds[0] + page.seconds[1])
    assert browser.js(f"[later(0, {half}), later(0.5, 1e6)]") == pytest.approx([0.5, len(planned.stances) - 1])
    assert browser.js("get('verdict').textContent") == "not verified"
    browser.open(plan_page(planned, certificate=verify(planned)), READY, "t=0")
    assert browser.js("get('verdict').textContent") == "certificate holds"


def test_a_live_view_follows_the_simulation(planned):
    """Its policy lets the page load nothing but the frames."""
    with Chromium(find_chromium(), SIZE) as browser, LiveView(planned) as view:
        browser.call("Page.navigate", url=view.url)
        open_socket = "typeof socket === 'object' && socket.readyState === 1"
        ready = f"(go => {{ const wait = () => {open_socket} ? go(true) : setTimeout(wait, 50); wait(); }})"
        time.sleep(0.5)  # until the page of before is gone
        assert browser.js(f"new Promise{ready}")
        done = simulate(planned, observers=[view])
        browser.js("new Promise(go => setTimeout(go, 500))")
        assert browser.js("parseFloat(get('time').textContent)") == pytest.approx(done.t[-1], abs=0.02)
        assert browser.js("get('hint').textContent") == "the simulation has ended"
        assert browser.errors == []
        assert all(request.startswith((view.url, "ws://127.0.0.1")) for request in browser.requests)


def test_a_time_in_the_report_is_shown_by_its_replay(browser, run, report):
    browser.open(report_page(run, report), "true")
    ready = "typeof frames[0].eval === 'function' && frames[0].document.getElementById('time') !== null"
    assert browser.js(f"new Promise(go => {{ const wait = () => {ready} ? go(true) : setTimeout(wait, 50); wait(); }})")
    text = "frames[0].document.getElementById('time').textContent"
    shown = browser.js(
        f"new Promise(go => setTimeout(() => {{ showAt(2.5); setTimeout(() => go({text}), 500); }}, 800))"
    )
    assert shown.startswith("2.50")


def test_pages_stand_on_a_phone_and_in_the_dark(browser, run, report):
    browser.become((390, 700), dark=True)
    try:
        browser.open(replay_page(run, report), READY, "t=0")
        browser.js("pause(), seek(1)")
        # nothing is wider than the page, and no control lies outside
        assert browser.js("document.documentElement.scrollWidth <= innerWidth")
        controls = "[...document.querySelectorAll('#dock *, #tools *')]"
        assert browser.js(f"{controls}.filter(e => e.getBoundingClientRect().right > innerWidth + 1).length") == 0
        colours = browser.js("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)")
        assert max(colours[:3]) < 64
    finally:
        browser.become(SIZE)


@pytest.mark.parametrize("size", [(390, 844), (1140, 720), (2560, 1200)])
def test_no_text_lies_over_another(browser, planned, run, report, size):
    """Heading, tools, card, panels: of a run, and of a plan beside its search tree, in windows of all sizes."""
    tree = SearchTree()
    for k, stance in enumerate(planned.stances):
        tree.add_node(k - 1 if k else None, f"move {k}", stance.contacts, stance.q, k, len(planned.stances) - k)
    boxes = (
        "['#heading strong', '#verdict', '#hint', '#tools', '#facts', '#legend', '#dock']"
        ".map(s => [s, document.querySelector(s)])"
        ".filter(([s, e]) => e.offsetWidth && getComputedStyle(e).display !== 'none')"
        ".map(([s, e]) => { const b = e.getBoundingClientRect(); return [s, b.left, b.top, b.right, b.bottom]; })"
    )
    browser.become(size)
    try:
        for text in (replay_page(run, report), plan_page(planned, tree, report)):
            browser.open(text, READY, "t=0")
            browser.js("pause(), seek(1)")
            shown = browser.js(boxes)
            for (a, *one), (b, *two) in itertools.combinations(shown, 2):
                wide = min(one[2], two[2]) - max(one[0], two[0])
                high = min(one[3], two[3]) - max(one[1], two[1])
                assert min(wide, high) <= 0.5, (a, one, b, two)
    finally:
        browser.become(SIZE)


def test_names_from_files_stay_text(browser, run, report):
    evil = "<img src=x onerror='window.broken=1'></script><script>window.broken=1</script>"
    record = run.record.model_copy(
        update={"phases": [phase.model_copy(update={"name": f"swing {evil}"}) for phase in run.record.phases]}
    )
    hurt = replace(run, record=record)
    browser.open(replay_page(hurt, report), READY, "t=0")
    browser.js("pause(), seek(1), setPanel('legend', true)")
    assert browser.js("window.broken === undefined")
    assert evil in browser.js("get('phase').textContent")
    page = report_page(hurt, report, "<p>the replay</p>")
    assert "<img" not in page
    assert page.count("</script>") == 1


def test_no_page_has_failed_or_asked_for_anything(browser):
    assert browser.errors == []
    assert browser.requests == []
