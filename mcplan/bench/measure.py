"""Benchmark run: several rounds, each with one measurement of mcplan and the peers in turn."""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.bench import closed_loop, growth, kernels, waiting
from mcplan.bench.growth import plain_urdf
from mcplan.bench.kernels import median
from mcplan.bench.peers import Agreement, Peers, compare
from mcplan.bench.reference_tick import ReferenceTick, TickDefinition, without_armature
from mcplan.bench.report import BenchReport, describe_machine
from mcplan.bench.settings import BenchSettings
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import load_robot

ProgressCallback = Callable[[str], None]


def measure(
    settings: BenchSettings, peers: Peers | None = None, report: ProgressCallback = lambda text: None
) -> BenchReport:
    """Run all measurements; return the medians over rounds.

    Parameters
    ----------
    settings : numbers of calls, ticks and rounds.
    peers : interpreters of other programs to measure; None: only mcplan.
    report : called with the name of each measurement before it starts.
    """
    robot, definition = without_armature(load_robot("hrp2")), TickDefinition()
    link = robot.patches[definition.patches[0]].link
    load_at_start = os.getloadavg()[0]
    report("planning the closed loop's scenario, compiling the ticks")
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
                report(f"round {k + 1} of {settings.rounds}: {measurement}")

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
                announce("whole terms and batches, other packages")
                results["others"] = peers.others_us(kernel_job)
            announce("static equilibrium")
            results["statics_us"] = kernels.statics_us(robot, settings.calls, settings.repeats)
            announce("contact points")
            results["contacts_us"] = growth.contacts_us(robot, definition, settings.points, settings.growth_ticks)
            for physics in closed_loop.PHYSICS:
                announce(f"closed loop, {settings.scenario}, {physics}")
                loop = closed_loop.measure(plan, settings.steps, physics)
                results[f"loop_{physics}"] = {
                    "factor": loop.real_time_factor, "tick_p999_us": loop.tick_p999_us, "parts_us": loop.parts_us,
                }  # fmt: skip
            announce("contact step")
            results["contact_step"] = closed_loop.steps_us(load_robot("hrp2"), settings.physics_steps)
            announce("planning")
            results["planning_s"], plans = waiting.planning_s(settings.plans, settings.walks)
            announce("ticks of plans")
            results["plan_ticks_us"] = {
                name: waiting.ticks_us(plans[name], settings.plan_ticks) for name in settings.plans
            }
            results["commands_s"] = waiting.commands_s(settings.first_run, announce) if settings.commands else {}
    median_values = medians(rounds)
    return BenchReport(
        machine=describe_machine(load_at_start),
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
        planning_s=median_values["planning_s"],
        plan_ticks_us=median_values["plan_ticks_us"],
        commands_s=median_values["commands_s"],
        tsid=median_values.get("tsid"),
        pinocchio=median_values.get("pinocchio"),
        others=median_values.get("others", {}),
        agreement=agreements(robot, definition, rounds[0]["tsid"]["first"]) if peers else {},
    )


def tick_us(tick: ReferenceTick, ticks: int, skipped: int) -> dict[str, Any]:
    """Run ticks; return the median and 99th percentile of their times, and the medians of their parts (µs).

    The first ``skipped`` ticks do not count.
    """
    times = tick.run(ticks)
    total = times.total[skipped:]
    parts = {name: median(values[skipped:]) for name, values in times.parts.items()}
    return {"tick_us": median(total), "tick_p99_us": float(np.percentile(total, 99)), "parts_us": parts}


def tick_of_peer(robot: Robot, definition: TickDefinition, urdf: Path, settings: BenchSettings) -> dict[str, Any]:
    """Return the job with which a peer runs the reference tick (JSON values)."""
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


def agreements(robot: Robot, definition: TickDefinition, first: dict[str, Any]) -> dict[str, Agreement]:
    """Return the deviation of the first tick's results from a peer's: compiled, plain, and without torque cost.

    The peer has no torques among its unknowns, so that without torque cost both solve exactly the same program.
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
    """Return a nested dictionary with the medians of numbers over rounds; of other values, the first."""
    first = rounds[0]
    if isinstance(first, dict):
        return {key: medians([document[key] for document in rounds]) for key in first}
    if isinstance(first, (int, float)) and not isinstance(first, bool):
        return float(np.median(rounds))
    return first
