"""What a robot or a scenario holds, as text for a person and as JSON for a program."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcplan.constraint.rank import stance_rank
from mcplan.model.robot import Robot
from mcplan.model.robot_file import bundled_robots, load_robot
from mcplan.planning import read_plan
from mcplan.recognise import PLAN, ROBOT, SCENARIO, find, kind_of
from mcplan.scene import GoalItem, Scenario, StanceItem, bundled_scenarios, load_scenario


@dataclass(frozen=True)
class Description:
    """Lines to print, and the same as plain values."""

    lines: tuple[str, ...]
    values: dict[str, Any]

    def text(self) -> str:
        """Return the lines as one text."""
        return "\n".join(self.lines)

    def to_json(self) -> dict[str, Any]:
        """Return the plain values."""
        return self.values


def describe(name: str) -> Description:
    """Describe a robot, a scenario or a plan, by bundled name or path.

    Raises
    ------
    InputError
        When it is none of these, or has mistakes.
    """
    path = find(name, ROBOT, SCENARIO, PLAN)
    kind = kind_of(path)
    if kind == ROBOT:
        return describe_robot(load_robot(path))
    if kind == PLAN:
        plan = read_plan(path)
        description = describe_scenario(plan.scenario)
        return Description((*description.lines, "", "plan", plan.summary()), description.values)
    return describe_scenario(load_scenario(path))


def bundled() -> Description:
    """List what comes with mcplan."""
    robots = list(bundled_robots())
    scenarios = {name: load_scenario(path).description for name, path in bundled_scenarios().items()}
    width = max(len(name) for name in [*robots, *scenarios])
    lines = ["robots", *(f"  {name}" for name in robots), "scenarios"]
    lines += [f"  {name:{width}s}  {text}" for name, text in scenarios.items()]
    return Description(tuple(lines), {"robots": robots, "scenarios": scenarios})


def describe_robot(robot: Robot) -> Description:
    """Describe a robot: size, joints with their limits, patches, postures."""
    limits = robot.limits
    lines = [
        f"{robot.name}: {robot.mass:.3f} kg, {len(robot.link_names)} links, {robot.n} joints "
        f"(nq {robot.nq}, nv {robot.nv})",
        f"urdf: {robot.urdf_path}",
        f"base: {robot.description.root}, {'fixed to the world' if robot.fixed else 'floating'}",
        "",
        f"{'joint':18s} {'lower':>8s} {'upper':>8s} {'velocity':>9s} {'torque':>8s}   [rad, rad/s, N m; m, m/s, N]",
    ]
    names = ("lower", "upper", "velocity", "torque")
    columns = (limits.lower, limits.upper, limits.velocity, limits.torque)
    for index, joint in enumerate(robot.joint_names):
        lower, upper, velocity, torque = (column[index] for column in columns)
        lines.append(f"{joint:18s} {lower:8.3f} {upper:8.3f} {velocity:9.3f} {torque:8.1f}")
    if robot.locked:
        lines += ["", "locked: " + ", ".join(f"{joint} = {value:g}" for joint, value in robot.locked.items())]
    if robot.patches:
        lines += ["", f"{'patch':16s} {'link':16s} {'kind':8s} {'limb':12s} corners"]
    for patch in robot.patches.values():
        lines.append(f"{patch.name:16s} {patch.link:16s} {patch.kind:8s} {patch.limb:12s} {len(patch.polygon)}")
    if robot.postures:
        lines += ["", "postures: " + ", ".join(robot.postures)]
    values = {
        "robot": robot.name,
        "mass": robot.mass,
        "nq": robot.nq,
        "nv": robot.nv,
        "urdf": str(robot.urdf_path),
        "fixed_base": robot.fixed,
        "joints": {
            joint: {key: _finite(column[i]) for key, column in zip(names, columns, strict=True)}
            for i, joint in enumerate(robot.joint_names)
        },
        "locked": dict(robot.locked),
        "patches": {p.name: {"link": p.link, "kind": p.kind, "limb": p.limb} for p in robot.patches.values()},
        "postures": list(robot.postures),
    }
    return Description(tuple(lines), values)


def describe_scenario(scenario: Scenario) -> Description:
    """Describe a scenario: environment, start, goal, and the sequence of stances if it has one."""
    environment = scenario.environment
    lines = [f"{scenario.name}: {scenario.description}", f"robot: {scenario.robot.name}", f"file: {scenario.path}"]
    groups: dict[str, tuple[Any, ...]] = {
        "surfaces": environment.surfaces,
        "bars": environment.bars,
        "obstacles": environment.obstacles,
        "objects": environment.objects,
    }
    lines += [f"{kind}: {', '.join(item.name for item in items)}" for kind, items in groups.items() if items]
    lines.append("start: " + ", ".join(f"{c.patch} on {c.support}" for c in scenario.start.contacts))
    rank = stance_rank(scenario.robot, scenario.start.q, scenario.start.contacts)
    lines.append(f"constraints at the start: {rank}")
    lines += [f"goal {number}: {_goal_text(item)}" for number, item in enumerate(scenario.goal)]
    settings = _settings(scenario)
    lines += _section("parameters (--set parameters.NAME=VALUE)", settings["parameters"])
    lines += _section("variants (--variant N)", settings["variants"])
    for part in ("planner", "control", "simulation"):
        lines += _section(f"{part} (--set {part}.KEY=VALUE)", settings[part])
    if scenario.stances:
        lines.append("stances:")
        lines += [f"  {number:2d}  {_stance_text(item)}" for number, item in enumerate(scenario.stances)]
    values = {
        "scenario": scenario.name,
        "description": scenario.description,
        "robot": scenario.robot.name,
        "file": str(scenario.path),
        **{kind: [item.name for item in items] for kind, items in groups.items()},
        "start": [{"patch": c.patch, "support": c.support} for c in scenario.start.contacts],
        "constraints": {
            "independent": rank.constraints,
            "base_controllable": rank.base_controllable,
            "internal": rank.internal,
        },
        "goal": [_goal_text(item) for item in scenario.goal],
        **settings,
        "stances": [_stance_text(item) for item in scenario.stances],
    }
    return Description(tuple(lines), values)


def _settings(scenario: Scenario) -> dict[str, dict[str, Any]]:
    """Return what the file says of parameters, of what varies, and of settings; expressions as they stand there."""
    said = scenario.source.data if isinstance(scenario.source.data, dict) else {}
    return {key: dict(said.get(key) or {}) for key in ("parameters", "variants", "planner", "control", "simulation")}


def _section(title: str, values: dict[str, Any]) -> list[str]:
    """Return the lines of one section, none where it is empty."""
    shown = {key: f"{len(value)} of them" if key == "states" else _plain(value) for key, value in values.items()}
    return [f"{title}:", *(f"  {key}: {value}" for key, value in shown.items())] if shown else []


def _plain(value: Any) -> str:
    """Return a value as a file would say it, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _goal_text(item: GoalItem) -> str:
    parts = [f"{contact.patch} on {contact.surface}" for contact in item.contacts]
    parts += ["nothing else"] if item.only else []
    if item.base is not None:
        turned = "" if item.base.rpy is None else f", rpy {_numbers(item.base.rpy)}"
        parts.append(f"base at {_numbers(item.base.xyz)} within {item.base.tolerance:g} m{turned}")
    if item.posture is not None:
        parts.append(f"posture {item.posture.name or 'of its own'} within {item.posture_tolerance:g}")
    if item.com is not None:
        parts.append(f"centre of mass at {_numbers(item.com)}")
    parts += [f"{name} at {_numbers(pose.xyz)}" for name, pose in item.objects.items()]
    return "; ".join(parts)


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _stance_text(item: StanceItem) -> str:
    parts = []
    if item.contacts is not None:
        parts.append("contacts " + ", ".join(f"{c.patch} on {c.surface}" for c in item.contacts))
    if item.add is not None:
        parts.append(f"add {item.add.patch} on {item.add.surface}")
    if item.remove is not None:
        parts.append(f"remove {item.remove}")
    if item.posture is not None:
        parts.append(f"posture {item.posture.name or 'of its own'}")
    if item.com is not None:
        parts.append("centre of mass at " + ", ".join(f"{value:g}" for value in item.com))
    return "; ".join(parts)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
