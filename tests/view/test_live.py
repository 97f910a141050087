"""What a page gets while a simulation runs: where the links are, on this machine only, and nothing else changes."""

import asyncio
import json
import struct
import threading
import urllib.error
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import umsgpack
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

import mcplan as mc
from mcplan.errors import InputError
from mcplan.sim.observer import StepSample
from mcplan.sim.simulate import Simulation
from mcplan.view.server import address_text
from tests import shared


@pytest.fixture(scope="module")
def plan():
    return shared.planned("sway", simulation__dt=0.005)


def parts(message):
    """Return the status of a frame, and the matrices (4,4) by path that it sets."""
    size = struct.unpack_from("<I", message)[0]
    status, at, set_to = json.loads(message[4 : 4 + size]), 4 + size, {}
    while at < len(message):
        length = struct.unpack_from("<I", message, at)[0]
        command = umsgpack.unpackb(message[at + 4 : at + 4 + length])
        if command["type"] == "set_transform":
            set_to[command["path"]] = np.array(command["matrix"]).reshape(4, 4).T
        at += 4 + length
    return status, set_to


def visible(message):
    """Return what a frame says of the visibility of paths."""
    at, found = 4 + struct.unpack_from("<I", message)[0], {}
    while at < len(message):
        length = struct.unpack_from("<I", message, at)[0]
        command = umsgpack.unpackb(message[at + 4 : at + 4 + length])
        if command["type"] == "set_property" and command["property"] == "visible":
            found[command["path"]] = command["value"]
        at += 4 + length
    return found


def test_frames_put_the_links_where_the_simulation_has_them(plan, monkeypatch):
    frames, ready = [], threading.Event()
    clock = 100.0
    monkeypatch.setattr("mcplan.view.live.time", SimpleNamespace(perf_counter=lambda: clock))

    async def listen(url):
        socket = await websocket_connect(url.replace("http", "ws") + "frames")
        ready.set()
        while (message := await socket.read_message()) is not None:
            frames.append(parts(message))
        socket.close()

    samples = {}

    class Keep(mc.Observer):
        def on_step(self, sample):
            nonlocal clock
            clock = 100.0 + 4.0 * sample.t  # a quarter of real time
            samples[round(sample.t, 9)] = sample.q.copy()

    with mc.LiveView(plan) as view:
        listener = threading.Thread(target=lambda: asyncio.run(listen(view.url)))
        listener.start()
        assert ready.wait(10.0)
        run = mc.simulate(plan, observers=[Keep(), view])
    listener.join(10.0)
    assert len(frames) > 3
    assert [status["t"] for status, _ in frames] == sorted(status["t"] for status, _ in frames)
    for status, set_to in frames[:: max(1, len(frames) // 5)]:
        q = samples[round(status["t"], 9)]
        for link in ("BODY", "LLEG_LINK5", "HEAD_LINK1"):
            expected = run.robot.frame_pose(q, link)
            np.testing.assert_allclose(set_to[f"/meshcat/robot/n:{link}"], expected, atol=1e-6)
        assert status["factor"] == pytest.approx(0.25 if status["t"] > 0.0 else 0.0)
        assert status["phase"] == run.phases[run.phase[np.abs(run.t - status["t"]).argmin()]]
    last, _ = frames[-1]
    assert last["ended"] == "the simulation has ended"
    assert last["t"] == pytest.approx(run.t[-1])
    assert {"t", "factor", "phase", "share"} <= set(last)
    alone = mc.simulate(plan)
    np.testing.assert_array_equal(alone.q, run.q)


@pytest.mark.parametrize("loaded", [["left_sole"], ["right_sole"], ["left_sole", "right_sole"], []])
def test_arrows_are_seen_where_forces_act_whatever_was_seen_before(plan, loaded):
    robot, q = plan.scenario.robot, plan.stances[0].q
    frames, zero = [], np.zeros(robot.nv)
    with mc.LiveView(plan) as view:
        view._server.push = frames.append
        for k, patches in enumerate((["left_sole", "right_sole"], loaded)):
            wrenches = {patch: np.array([10.0, 0.0, 200.0, 0.0, 0.0, 0.0]) for patch in patches}
            view.on_step(StepSample(k, 0.1 * k, q, zero, zero[6:], wrenches, {}, 0, 0, 1))
        view.on_end(None)
    seen = visible(frames[-1])
    for patch in ("left_sole", "right_sole"):
        assert seen[f"/meshcat/forces/n:{patch}"] is (patch in loaded)
        assert seen[f"/meshcat/robot/n:{robot.patches[patch].link}/patch {patch}"] is (patch in loaded)


def test_a_foreign_page_gets_no_frames(plan):
    async def ask(url, **headers):
        await websocket_connect(HTTPRequest(url.replace("http", "ws") + "frames", headers=headers))

    with mc.LiveView(plan) as view:
        for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
            with pytest.raises(HTTPClientError, match="403"):
                asyncio.run(ask(view.url, **headers))
    with pytest.raises((OSError, urllib.error.URLError)):
        asyncio.run(ask(view.url))


def test_a_port_that_is_taken_is_refused(plan):
    with mc.LiveView(plan) as view, pytest.raises(InputError, match="cannot be used"):
        mc.LiveView(plan, int(view.url.rstrip("/").rsplit(":", 1)[1]))


def test_who_comes_by_ssh_gets_the_line_for_a_tunnel(monkeypatch):
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    assert address_text("http://127.0.0.1:4321/") == "http://127.0.0.1:4321/   (this machine only)"
    monkeypatch.setenv("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22")
    assert "ssh -N -L 4321:127.0.0.1:4321 " in address_text("http://127.0.0.1:4321/")


def test_a_script_opens_the_browser_and_says_where(plan, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    mc.simulate(plan, live=True)
    assert len(opened) == 1
    assert f"live: {opened[0]}" in capsys.readouterr().err


def test_the_world_is_shown_as_the_physics_has_it(plan):
    """In every frame, as a page that is opened late has the last one alone."""
    shelf = mc.Surface("shelf", size=(0.4, 0.4), xyz=(2.0, 0.0, 0.5))
    environment = mc.Environment([*plan.scenario.environment.surfaces, shelf])
    flaws = {"ground_height": 0.05, "ground_tilt": 0.1, "mass_error": 0.5}
    simulation = {"imperfections": flaws, "physics": "contact", "dt": 0.001}
    uneven = replace(plan, scenario=plan.scenario.replace(environment=environment, simulation=simulation))
    frames = []
    with mc.LiveView(uneven) as view:
        view._server.push = lambda frame: frames.append(parts(frame)[1])
        begun = Simulation(uneven, observers=[view], seed=3)
        begun.step()
        run = begun.finish()
    assert len(frames) == 2
    place = run.record.world.surfaces["shelf"]
    assert np.abs(np.array(place.p) - shelf.p).max() > 1e-3
    for frame in frames:
        np.testing.assert_allclose(frame["/meshcat/environment/surfaces/n:shelf"][:3, :3], place.R, atol=1e-6)
        np.testing.assert_allclose(frame["/meshcat/environment/surfaces/n:shelf"][:3, 3], place.p, atol=1e-6)
        np.testing.assert_allclose(frame["/meshcat/com"][:3, 3], run.com[0], atol=1e-6)
