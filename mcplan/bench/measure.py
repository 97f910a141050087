"""Benchmark run: several rounds, each with one measurement of mcplan and the peers in turn."""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.bench import closed_loop, closed_loop as physics_step, growth, kernels, kernels as statics
from mcplan.bench.growth import plain_urdf
from mcplan.bench.kernels import median
from mcplan.bench.peers import Agreement, Peers, compare
from mcplan.bench.reference_tick import Definition, ReferenceTick, without_armature
from mcplan.bench.report import BenchReport, machine
from mcplan.bench.settings import BenchSettings
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import load_robot

Say = Callable[[str], None]


def measure(settings: BenchSettings, peers: Peers | None = None, say: Say = lambda text: None) -> BenchReport:
    """Run all measurements; return the medians over rounds.

    Parameters
    ----------
    settings : numbers of calls, ticks and rounds.
    peers : other programs to measure, or None.
    say : called with the name of each measurement.
    """
    robot, definition = without_armature(load_robot("hrp2")), Definition()
    link = robot.patches[definition.patches[0]].link
    load_at_start = os.getloadavg()[0]
    say("planning the closed loop's scenario, compiling the ticks")
    plan = closed_loop.prepare(settings.scenario, settings.steps)
    with tempfile.TemporaryDirectory() as name:
        urdf = Path(name) / "robot.urdf"
        urdf.write_text(plain_urdf(robot.description, robot.locked), encoding="utf-8")
        chains = growth.write_chains(Path(name), settings.bodies)
        tick_job = tick_of_peer(robot, definition, urdf, settings)
        kernel_job = {
            "urdf": str(urdf), "frame": link, "calls": settings.calls, "repeats": settings.repeats,
            "batch": settings.batch, "batch_repeats": settings.batch_repeats, "batches": kernels.BATCHES,
            "chains": {str(count): str(path) for count, path in chains.items()},
        }  # fmt: skip
        rounds: list[dict[str, Any]] = []
        for k in range(settings.rounds):
            results: dict[str, Any] = {}
            rounds.append(results)

            def announce(measurement: str, k: int = k) -> None:
                say(f"round {k + 1} of {settings.rounds}: {measurement}")

            announce("reference tick, compiled")
            results["compiled"] = tick_us(ReferenceTick(robot, definition), settings.ticks, settings.skipped)
            if peers:
                announce("reference tick, TSID")
                results["tsid"] = peers.reference_tick(tick_job)
            announce("reference tick, plain")
            uncompiled = ReferenceTick(robot, definition, compiled=False)
            results["plain"] = tick_us(uncompiled, settings.plain_ticks, settings.skipped)
            announce("kernels and batches")
            results["kernels_us"] = kernels.kernels_us(robot, link, settings.calls, settings.repeats)
            results["batch_us"] = kernels.batch_us(robot, link, settings.batch, settings.batch_repeats)
            results["bodies_us"] = growth.bodies_us(chains, settings.calls, settings.repeats)
            if peers:
                announce("kernels and loops, Pinocchio")
                results["pinocchio"] = peers.kernels(kernel_job)
            announce("static equilibrium")
            results["statics_us"] = statics.statics_us(robot, settings.calls, settings.repeats)
            announce("contact points")
            results["contacts_us"] = growth.contacts_us(robot, definition, settings.points, settings.growth_ticks)
            for physics in closed_loop.PHYSICS:
                announce(f"closed loop, {settings.scenario}, {physics}")
                loop = closed_loop.measure(plan, settings.steps, physics)
                results[f"loop_{physics}"] = {
                    "factor": loop.real_time_factor, "tick_p999_us": loop.tick_p999_us, "parts_us": loop.parts_us,
                }  # fmt: skip
            announce("contact step")
            results["contact_step"] = physics_step.steps_us(load_robot("hrp2"), settings.physics_steps)
    median_values = medians(rounds)
    return BenchReport(
        machine=machine(load_at_start),
        settings=settings,
        tick_compiled=median_values["compiled"],
        tick_plain=median_values["plain"],
        kernels_us=median_values["kernels_us"],
        batch_us=median_values["batch_us"],
        statics_us=median_values["statics_us"],
        bodies_us=median_values["bodies_us"],
        contacts_us=median_values["contacts_us"],
        closed_loop=median_values["loop_qp"],
        contact_loop=median_values["loop_contact"],
        contact_step=median_values["contact_step"],
        tsid=median_values.get("tsid"),
        pinocchio=median_values.get("pinocchio"),
        agreement=agreements(robot, definition, rounds[0]["tsid"]["first"]) if peers else {},
    )


def tick_us(tick: ReferenceTick, ticks: int, skipped: int) -> dict[str, Any]:
    """Run ticks; return their median, 99th percentile and parts."""
    times = tick.run(ticks)
    total = times.total[skipped:]
    parts = {name: median(values[skipped:]) for name, values in times.parts.items()}
    return {"tick_us": median(total), "tick_p99_us": float(np.percentile(total, 99)), "parts_us": parts}


def tick_of_peer(robot: Robot, definition: Definition, urdf: Path, settings: BenchSettings) -> dict[str, Any]:
    """Return a peer's job for the reference tick."""
    q = robot.posture(definition.posture)
    patches = [robot.patches[name] for name in definition.patches]
    return {
        "urdf": str(urdf),
        "definition": definition.to_json(),
        "base_xyzw": [*q[:3], *q[4:7], q[3]],
        "joints": dict(zip(robot.joint_names, q[7:].tolist(), strict=True)),
        "feet": {patch.link: (patch.p + patch.points @ patch.R.T).tolist() for patch in patches},
        "ticks": settings.ticks,
        "skip": settings.skipped,
    }


def agreements(robot: Robot, definition: Definition, first: dict[str, Any]) -> dict[str, Agreement]:
    """Return the deviation of the first tick's results from a peer's: plain, compiled, and without torque cost.

    The peer has no torques among its unknowns, so the last is exactly the same program.
    """
    cases = {
        "compiled": ReferenceTick(robot, definition),
        "plain": ReferenceTick(robot, definition, compiled=False),
        "same_unknowns": ReferenceTick(robot, replace(definition, torque_regularisation=0.0)),
    }
    found = {}
    for name, tick in cases.items():
        q, v = tick.q, tick.v
        vd, tau, _, _ = tick(0.0)
        found[name] = compare(robot.joint_names, q, v, vd, tau, first)
    return found


def medians(rounds: Sequence[Any]) -> Any:
    """Return the medians of numbers at the same place in documents of the same form; the first of anything else."""
    first = rounds[0]
    if isinstance(first, dict):
        return {key: medians([document[key] for document in rounds]) for key in first}
    if isinstance(first, (int, float)) and not isinstance(first, bool):
        return float(np.median(rounds))
    return first
