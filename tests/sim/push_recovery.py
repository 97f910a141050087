"""Pushes on standing and on walking HRP-2: from which does it recover?

    python -m tests.sim.push_recovery OUT.jsonl [COUNT] [FIRST] [PHYSICS]
    python -m tests.sim.push_recovery OUT.jsonl COUNT FIRST PHYSICS PACE [dynamic]

Push k is drawn from ``numpy.random.default_rng(k)``: on standing HRP-2 a link, a horizontal direction, 0-150 N for
0.1-0.3 s; with a PACE on HRP-2 that walks 2 m (``dynamic``: without coming to rest on each foot) a moment and a
direction, 100 N for 0.1 s on the pelvis. Each is one line
of OUT.jsonl; a push that it has already is not repeated. The curve of recoveries against impulse of pushes on the
standing robot goes to OUT.png.
"""

import json
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mcplan.errors import SimulationFailed
from mcplan.planning.planner import plan as make_plan
from mcplan.scenario.load import load_scenario
from mcplan.settings.disturbance import Push
from mcplan.sim.simulate import Simulation
from mcplan.sweep.case import commit
from mcplan.sweep.tables import wilson

LINKS = ("BODY", "CHEST_LINK1", "HEAD_LINK1", "LARM_LINK3", "RARM_LINK3", "LLEG_LINK2", "RLEG_LINK2")
START, REST = 0.2, 1.8
"""When the push begins, and how long the robot is watched after it (s)."""


def drawn(seed):
    """Return the push of a seed."""
    rng = np.random.default_rng(seed)
    link, heading = LINKS[rng.integers(len(LINKS))], rng.uniform(0, 2 * np.pi)
    size, duration = rng.uniform(0, 150), rng.uniform(0.1, 0.3)
    force = size * np.cos(heading), size * np.sin(heading), 0.0
    return Push(link=link, force=force, start=START, duration=duration)


def standing():
    """Return the plan of standing still for as long as a push is watched."""
    still = "[{contacts: [{patch: left_sole, surface: floor}, {patch: right_sole, surface: floor}]}]"
    timing = {"start_time": START + REST, "settle_time": 0.2, "phase_timeout": 0.5}
    return make_plan(load_scenario("sway", {"stances": still, "control.timing": timing}))


def walking(pace, way):
    """Return the plan of walking 2 m at a pace, ``static`` or ``dynamic``."""
    return make_plan(load_scenario("walk", {"control.pace": pace, "control.walking": way}))


def drawn_during(seed, plan):
    """Return the push of a seed on a robot that executes a plan."""
    rng = np.random.default_rng(seed)
    heading, start = rng.uniform(0, 2 * np.pi), rng.uniform(0, sum(motion.duration for motion in plan.transitions))
    force = 100 * np.cos(heading), 100 * np.sin(heading), 0.0
    return Push(link="BODY", force=force, start=start, duration=0.1)


def pushed(plan, push, physics, seed):
    """Simulate one push and return the result."""
    settings = plan.scenario.simulation.model_copy(update={"pushes": (push,)})
    clock = time.perf_counter()
    simulation = Simulation(replace(plan, scenario=replace(plan.scenario, simulation=settings)), physics, seed=seed)
    robot, physics_ = simulation.controller.robot, simulation.physics
    soles = ("left_sole", "right_sole")
    com, end = robot.com(physics_.q), plan.stances[-1].q
    places, goal = {name: robot.frame_pose(end, name) for name in soles}, robot.com(end)
    inner, failures = simulation.controller.step, []
    state = {"sway": 0.0}

    def step(t, q, v, *measured):
        command = inner(t, q, v, *measured)
        now = simulation.controller.terms.com
        state["sway"] = max(state["sway"], float(np.linalg.norm(now[:2] - com[:2])))
        if command.status:
            up = 1 - 2 * (q[4] ** 2 + q[5] ** 2)
            tilt, away = np.rad2deg(np.arccos(np.clip(up, -1, 1))), np.linalg.norm(now[:2] - com[:2])
            failures.append([t, command.status, command.message, float(now[2] - com[2]), float(tilt), float(away)])
        return command

    simulation.controller.step = step
    row = {
        "seed": seed,
        "link": push.link,
        "force": push.force,
        "start": push.start,
        "duration": push.duration,
        "impulse": float(np.linalg.norm(push.force) * push.duration),
        "stopped": None,
    }
    try:
        while simulation.step() is not None:
            pass
    except SimulationFailed as failure:
        row["stopped"] = str(failure)
    q, v = physics_.q, physics_.v
    row |= {
        "finite": bool(np.isfinite(q).all() and np.isfinite(v).all()),
        "time": simulation.t,
        "sway": state["sway"],
        "left": float(np.linalg.norm(robot.com(q)[:2] - goal[:2])),
        "speed": float(np.linalg.norm(robot.com_jacobian(q) @ v)),
        "steps": sum(event.name.startswith("step ") for event in simulation.controller.machine.events),
        "slip": max(float(np.linalg.norm(robot.frame_pose(q, n)[:2, 3] - places[n][:2, 3])) for n in soles),
        "ended_by": simulation.controller.machine.events[-1].ended_by,
        "qp_failures": len(failures),
        "first_failures": failures[:3],
        "clock": time.perf_counter() - clock,
    }
    return row


def draw(rows, path):
    """Draw the share of pushes that were recovered from, by impulse, with Wilson's 95 % intervals."""
    impulse, stood = np.array([row["impulse"] for row in rows]), np.array([row["stopped"] is None for row in rows])
    bins = np.arange(0.0, 48.0, 3.0)
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot(xlabel="impulse of the push [N s]", ylabel="share recovered", ylim=(-0.02, 1.05))
    for low in bins:
        chosen = (impulse >= low) & (impulse < low + 3.0)
        n = int(chosen.sum())
        if n:
            rate = wilson(int(stood[chosen].sum()), n)
            ends = np.maximum([[rate.value - rate.low], [rate.high - rate.value]], 0.0)
            axes.errorbar(low + 1.5, rate.value, ends, fmt="o", color="#305090", capsize=3)
            axes.annotate(f"{n}", (low + 1.5, 0.0), ha="center", fontsize=7, color="grey")
    axes.set_title(f"{len(rows)} pushes on standing HRP-2: {int(stood.sum())} recovered, {int((~stood).sum())} fell")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)


def tell(rows):
    """Say what came of the pushes."""
    ran = [row for row in rows if "exception" not in row]
    failed = [row for row in ran if row["qp_failures"]]
    print(f"{len(rows)} pushes, {len(rows) - len(ran)} exceptions, {sum(not row['finite'] for row in ran)} not finite")
    stood = [row for row in ran if row["stopped"] is None]
    stepped = sum(row["steps"] > 0 for row in stood)
    print(f"{len(stood)} recovered, {stepped} of them by steps; {len(ran) - len(stood)} fell")
    print(f"programs without solution in {len(failed)} runs, {sum(row['stopped'] is None for row in failed)} recovered")
    for row in failed:
        t, _, message, sunk, tilt, away = row["first_failures"][0]
        count = row["qp_failures"]
        where = f"CoM {sunk:+.2f} m up, {away:.2f} m away, trunk tilted {tilt:.0f} deg"
        print(f"  push {row['seed']}: {count} steps from {t:.3f} s, {where}: {message}")
    return ran


def main(out, count=1000, first=0, physics="contact", pace=None, way="static"):
    """Simulate the pushes."""
    warnings.simplefilter("error")
    np.seterr(all="warn", under="ignore")
    path = Path(out)
    old = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    asked = physics, pace, way
    known = {row["seed"] for row in old if (row["physics"], row["pace"], row.get("way", "static")) == asked}
    same = {"physics": physics, "pace": pace, "way": way, "commit": commit()}
    plan = standing() if pace is None else walking(pace, way)
    with path.open("a") as file:
        for seed in range(int(first), int(first) + int(count)):
            if seed in known:
                continue
            try:
                push = drawn(seed) if pace is None else drawn_during(seed, plan)
                row = pushed(plan, push, physics, seed) | same
            except Exception as error:
                row = {"seed": seed, "exception": repr(error)} | same
            file.write(json.dumps(row) + "\n")
            file.flush()
    rows = tell([json.loads(line) for line in path.read_text().splitlines()])
    if pace is None:
        draw(rows, path.with_suffix(".png"))


if __name__ == "__main__":
    main(*sys.argv[1:])
