"""Benchmark of what users wait for: ticks of plans, planning and its growth, commands and a first run, in CPU time."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mcplan.planning.plan import Plan
from mcplan.planning.planner import plan
from mcplan.scenario.load import load_scenario
from mcplan.sim.simulate import Simulation

BLOCK = 50
"""Ticks that are measured together: the clock of the process is coarser than a tick."""

PYTHON = (sys.executable, "-m", "mcplan")

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "load_robot('hrp2')": (sys.executable, "-c", "import mcplan; mcplan.load_robot('hrp2')"),
    "mcplan info": (*PYTHON, "info"),
    "mcplan info stairs": (*PYTHON, "info", "stairs"),
    "mcplan run stairs": (*PYTHON, "run", "stairs", "--quiet", "-o", "run"),
}
"""Measured commands, each in a process of its own."""

FIRST_RUN = (*PYTHON, "run", "table_hand", "--quiet", "-o", "run")
"""Command that is measured with an empty cache of kernels."""


def planning_s(scenarios: Sequence[str], walks: Sequence[float]) -> tuple[dict[str, float], dict[str, Plan]]:
    """Return the CPU time (s) of planning bundled scenarios and walks of some lengths (m), and the plans."""
    cases: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in scenarios}
    for length in walks:
        size = [2.0 * length + 4.0, 3.0]
        floor = {"name": "floor", "pose": {"xyz": ["=size", 0, 0]}, "size": size, "friction": "=friction"}
        cases[f"walk, {length:g} m"] = "walk", {"parameters.distance": length, "environment.surfaces": [floor]}
    times, plans = {}, {}
    for name, (scenario, values) in cases.items():
        loaded = load_scenario(scenario, values)
        start = time.process_time()
        plans[name] = plan(loaded)
        times[name] = time.process_time() - start
    return times, plans


def ticks_us(motion_plan: Plan, ticks: int, physics: str = "contact") -> float:
    """Return the median CPU time of a tick (µs) over blocks of ticks: control, physics and record."""
    simulation = Simulation(motion_plan, physics)
    for _ in range(BLOCK):
        simulation.step()
    blocks = []
    for _ in range(max(1, ticks // BLOCK)):
        start = time.process_time()
        for _ in range(BLOCK):
            simulation.step()
        blocks.append((time.process_time() - start) / BLOCK)
    return 1e6 * float(np.median(blocks))


def commands_s(first_run: bool, announce: Callable[[str], None]) -> dict[str, float]:
    """Return the CPU time (s) of each of `COMMANDS`, and of a run with an empty cache of kernels if it is asked for."""
    times = {}
    for name, command in COMMANDS.items():
        announce(name)
        times[name] = _cpu_s(command, {})
    if first_run:
        announce("first run: kernels are compiled")
        with tempfile.TemporaryDirectory() as cache:
            times["first run, compiled"] = _cpu_s(FIRST_RUN, {"NUMBA_CACHE_DIR": cache})
    return times


def _cpu_s(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the CPU time (s) of a command that runs in an empty folder."""
    before = os.times()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            command, cwd=folder, env=os.environ | environment, check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
