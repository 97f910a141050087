"""Live view of a simulation: a page on 127.0.0.1 that receives frames while the simulation runs."""

import json
import struct
import time
from collections.abc import Mapping

import numpy as np
from meshcat import geometry as mg

from mcplan.control.machine import PhaseEvent
from mcplan.errors import InputError
from mcplan.planning.plan import Plan
from mcplan.record.world import World
from mcplan.robot.pose import rotation_from_quat
from mcplan.sim.observer import Observer, StepSample
from mcplan.util.arguments import check_instance
from mcplan.view import palette, shapes
from mcplan.view.arrow import METRES_PER_NEWTON, MIN_DRAWN_FORCE_N, draw_arrow
from mcplan.view.drawing import Drawing, node_name
from mcplan.view.environment import draw_environment, pose, set_stage
from mcplan.view.page import POLICY, STYLES, base64_commands, fill_template
from mcplan.view.robot import body_points, draw_robot, drawn_links
from mcplan.view.server import PageServer, address_text

SCRIPTS = ("element.js", "viewer.js", "live.js")

SOCKET_SOURCES = "ws://127.0.0.1:* ws://localhost:*"
"""Allowed sources of frames in the security policy: this machine, or the local end of an SSH tunnel."""

MAX_FRAME_RATE_HZ = 25.0
"""Maximum number of frames per second of clock time."""


class LiveView(Observer):
    """Observer that shows a simulation in a browser while it runs; as a context manager it serves until the block ends.

        with mc.LiveView(plan) as view:
            print(view.url)
            run = mc.simulate(plan, observers=[view])

    The page is served to this machine only. The view does not affect the simulation.

    Parameters
    ----------
    plan : plan whose robot and environment are drawn, surfaces at their pose in the physics.
    port : port on 127.0.0.1; 0 takes a free one.

    Attributes
    ----------
    url : address of the page.
    address : text with the address and, over SSH, the command for a tunnel.

    Raises
    ------
    InputError
        ``plan`` is not a Plan, or the port cannot be used.
    """

    def __init__(self, plan: Plan, port: int = 0):
        plan = check_instance("LiveView", "plan", plan, Plan)
        self._robot = plan.scenario.robot
        self._links = drawn_links(self._robot)
        self._drawing = Drawing()
        path = np.array([self._robot.com(stance.q) for stance in plan.stances])
        body = body_points(self._robot, np.array([stance.q for stance in plan.stances]))
        set_stage(self._drawing, path, plan.scenario.environment, body)
        draw_environment(self._drawing, plan.scenario.environment)
        draw_robot(self._drawing, self._robot)
        patches = dict.fromkeys(contact.patch for stance in plan.stances for contact in stance.contacts)
        for patch in patches:
            draw_arrow(self._drawing, f"forces/{node_name(patch)}")
        colour = shapes.material(palette.COM, flat=True, on_top=True)
        self._drawing.root["com"].set_object(mg.Sphere(0.025), colour)
        self._patches = tuple(patches)
        self._planned_poses = {
            surface.name: pose(surface.R, surface.p) for surface in plan.scenario.environment.surfaces
        }
        self._surface_poses: dict[str, np.ndarray] = {}
        self._objects = [item.name for item in plan.scenario.environment.objects]
        self._pose(plan.stances[0].q, {}, None)
        data = {
            "commands": base64_commands(self._drawing),
            "camera": [point.tolist() for point in self._drawing.camera],
        }
        page = fill_template(
            "live.html", plan.scenario.name, data, STYLES, SCRIPTS, f"{POLICY}; connect-src 'self' {SOCKET_SOURCES}"
        )
        self._phase, self._start_time, self._last_push = "", time.perf_counter(), -np.inf
        self._last_sample: StepSample | None = None
        try:
            self._server = PageServer(page, port, frames=True)
        except (OSError, OverflowError) as error:
            raise InputError(f"port {port} of 127.0.0.1 cannot be used: {error}") from error
        self.url = self._server.url

    @property
    def address(self) -> str:
        """Address of the page; over SSH also the command for a tunnel."""
        return address_text(self.url)

    def on_world(self, world: World) -> None:
        """Take robot and surfaces from the physics, which may differ from the plan's (imperfections)."""
        self._robot = world.robot
        for surface in world.environment.surfaces:
            X = pose(surface.R, surface.p)
            if surface.name in self._surface_poses or not np.array_equal(X, self._planned_poses[surface.name]):
                self._surface_poses[surface.name] = X

    def on_start(self, steps_per_second: float, phases: int) -> None:
        """Start the clock."""
        self._start_time = time.perf_counter()

    def on_step(self, sample: StepSample) -> None:
        """Push a frame, at most ``MAX_FRAME_RATE_HZ`` per second."""
        self._last_sample, now = sample, time.perf_counter()
        if now - self._last_push >= 1.0 / MAX_FRAME_RATE_HZ:
            self._last_push = now
            self._push(sample)

    def on_phase(self, event: PhaseEvent) -> None:
        """Store the name of the phase."""
        if event.ended_by is None:
            self._phase = event.name

    def on_end(self, stopped: str | None) -> None:
        """Push the last frame, with the reason of the end."""
        if self._last_sample is not None:
            self._push(self._last_sample, f"stopped: {stopped}" if stopped else "the simulation has ended")

    def close(self) -> None:
        """Stop serving."""
        self._server.close()

    def __enter__(self) -> "LiveView":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _push(self, sample: StepSample, ended: str = "") -> None:
        """Send a frame to all pages: status (JSON) and packed meshcat commands, each with its length."""
        commands = self._drawing.frame(lambda: self._pose(sample.q, sample.wrenches, sample.objects))
        clock = max(time.perf_counter() - self._start_time, 1e-9)
        share = 1.0 if ended else min(1.0, sample.phase / max(sample.phases, 1))
        status = {"t": sample.t, "factor": sample.t / clock, "phase": self._phase, "share": share, "ended": ended}
        head = json.dumps(status).encode()
        parts = [struct.pack("<I", len(head)), head]
        for command in commands:
            parts += [struct.pack("<I", len(command)), command]
        self._server.push(b"".join(parts))

    def _pose(self, q: np.ndarray, wrenches: Mapping[str, np.ndarray], objects: np.ndarray | None) -> None:
        """Set the poses of links, objects, centre of mass, forces, and displaced surfaces.

        A page that connects late receives only this frame, so it must be complete.
        """
        robot, root = self._robot, self._drawing.root
        for name, X in self._surface_poses.items():
            root["environment"]["surfaces"][node_name(name)].set_transform(X)
        for link in self._links:
            root["robot"][node_name(link)].set_transform(robot.frame_pose(q, link))
        root["com"].set_transform(pose(np.eye(3), robot.com(q)))
        for name, position_quat in zip(self._objects, () if objects is None else objects, strict=objects is not None):
            X = pose(rotation_from_quat(position_quat[3:]), position_quat[:3])
            root["environment"]["objects"][node_name(name)].set_transform(X)
        for patch in self._patches:
            force = np.asarray(wrenches.get(patch, np.zeros(6)))[:3]
            size = float(np.linalg.norm(force))
            node = root["forces"][node_name(patch)]
            node.set_property("visible", size > MIN_DRAWN_FORCE_N)
            link = root["robot"][node_name(robot.patches[patch].link)]
            link[node_name(patch, "patch ")].set_property("visible", size > MIN_DRAWN_FORCE_N)
            if size > MIN_DRAWN_FORCE_N:
                origin = robot.frame_pose(q, patch)[:3, 3]
                R = rotation_from_quat(shapes.rotation_from_z(force[None])[0])
                node["shaft"].set_transform(pose(R @ np.diag([1.0, 1.0, size * METRES_PER_NEWTON]), origin))
                node["head"].set_transform(pose(R, origin + force * METRES_PER_NEWTON))
