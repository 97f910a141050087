"""Description of a robot, scenario or plan, as text and as JSON (``mcplan info``).

What only one of them needs is imported where it is described.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mcplan.cli.name_resolution import PLAN, ROBOT, SCENARIO, find, kind_of

if TYPE_CHECKING:
    from mcplan.planning.plan import PlannedStance
    from mcplan.robot.robot import Robot
    from mcplan.scenario.scenario import Scenario


def describe(name: str, package_directories: Sequence[str] = ()) -> tuple[list[str], dict[str, Any]]:
    """Return the description of a robot, a scenario or a plan, by bundled name or path: lines, and plain values.

    Raises
    ------
    InputError
        It is none of these, or has errors.
    """
    path = find(name, ROBOT, SCENARIO, PLAN, packages=[Path(folder) for folder in package_directories])
    kind = kind_of(path)
    if kind == ROBOT:
        from mcplan.robot.robot_file import load_robot

        return describe_robot(load_robot(path, package_directories=package_directories))
    if kind == PLAN:
        from mcplan.planning.plan_file import load_plan

        plan = load_plan(path)
        lines, values = describe_scenario(plan.scenario)
        motions = [_motion(stance) for stance in plan.stances]
        lines += ["", "plan", plan.summary(), "", "motions: duration, and smallest distance of bodies"]
        lines += [f"{k:3d}  {text}" for k, text in enumerate(map(_motion_text, motions)) if text]
        return lines, values | {"motions": motions}
    from mcplan.core.jit import interpreted
    from mcplan.scenario.load import load_scenario

    with interpreted():
        return describe_scenario(load_scenario(path))


def _motion(stance: "PlannedStance") -> dict[str, Any] | None:
    """Return the motion to a stance as plain values."""
    if stance.transition is None:
        return None
    near = stance.transition.near
    return {
        "change": stance.change,
        "moved": stance.moved,
        "duration": stance.transition.duration,
        "clearance": near.distance,
        "between": list(near.bodies),
        "missed": stance.transition.missed,
    }


def _motion_text(motion: dict[str, Any] | None) -> str:
    if motion is None:
        return ""
    change = " ".join(filter(None, (motion["change"], motion["moved"])))
    clearance = "nothing near" if motion["clearance"] is None else f"{1e3 * motion['clearance']:.1f} mm"
    bodies = f" between {' and '.join(motion['between'])}" if motion["between"] else ""
    missed = f", {1e3 * motion['missed']:.1f} mm below the required clearance" if motion["missed"] > 0.0 else ""
    return f"{change:24s} {motion['duration']:5.1f} s  {clearance}{bodies}{missed}"


def describe_robot(robot: "Robot") -> tuple[list[str], dict[str, Any]]:
    """Describe a robot: size, joints with their limits, patches, postures."""
    limits = robot.limits
    width = _width(18, robot.joint_names)
    lines = [
        f"{robot.name}: {robot.mass:.3f} kg, {len(robot.link_names)} links, {robot.n} joints "
        f"(nq {robot.nq}, nv {robot.nv})",
        f"urdf: {robot.urdf_path}",
        f"base: {robot.description.root}, {'fixed to the world' if robot.fixed else 'floating'}",
        "",
        f"{'joint':{width}s} {'lower':>8s} {'upper':>8s} {'velocity':>9s} {'torque':>8s}   "
        "[rad, rad/s, N m; m, m/s, N]",
    ]
    names = ("lower", "upper", "velocity", "torque")
    columns = (limits.lower, limits.upper, limits.velocity, limits.torque)
    for index, joint in enumerate(robot.joint_names):
        lower, upper, velocity, torque = (column[index] for column in columns)
        lines.append(f"{joint:{width}s} {lower:8.3f} {upper:8.3f} {velocity:9.3f} {torque:8.1f}")
    if robot.locked:
        lines += ["", "locked: " + ", ".join(f"{joint} = {value:g}" for joint, value in robot.locked.items())]
    lines += ["", *_links(robot)]
    patches = robot.patches.values()
    if patches:
        rows = [("patch", "link", "kind", "limb"), *((p.name, p.link, p.kind, p.limb) for p in patches)]
        columns_of_texts = zip((16, 16, 8, 12), zip(*rows, strict=True), strict=True)
        widths = [_width(minimum, texts) for minimum, texts in columns_of_texts]
        corner_counts = ["corners", *(str(len(patch.polygon)) for patch in patches)]
        lines.append("")
        for row, count in zip(rows, corner_counts, strict=True):
            lines.append(" ".join([f"{text:{width}s}" for text, width in zip(row, widths, strict=True)] + [count]))
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
            joint: {key: _finite_or_none(column[i]) for key, column in zip(names, columns, strict=True)}
            for i, joint in enumerate(robot.joint_names)
        },
        "locked": dict(robot.locked),
        "links": {link: _link(robot, link) for link in robot.link_names},
        "patches": {p.name: {"link": p.link, "kind": p.kind, "limb": p.limb} for p in robot.patches.values()},
        "postures": list(robot.postures),
    }
    return lines, values


def _width(minimum: int, texts: Iterable[str]) -> int:
    """Return the width of a column of texts."""
    return max(minimum, *map(len, texts))


def _links(robot: "Robot") -> Iterator[str]:
    """Yield a table of the links: mass, collision shapes, their extent in link axes; other links in one line."""
    width = _width(24, robot.link_names)
    yield f"{'link':{width}s} {'mass':>8s}  {'extent of what collides':26s} shapes   [kg, m]"
    frames = []
    for link in robot.link_names:
        values = _link(robot, link)
        if not values["mass"] and not values["shapes"]:
            frames.append(link)
            continue
        size = " x ".join(f"{side:.3f}" for side in values["extent"] or ())
        yield f"{link:{width}s} {values['mass']:8.3f}  {size or '-':26s} {', '.join(values['shapes']) or '-'}"
    if frames:
        yield "frames: " + ", ".join(frames)


def _link(robot: "Robot", link: str) -> dict[str, Any]:
    """Return mass (kg), extent (m, link axes) and kinds of the collision shapes of a link."""
    from mcplan.robot.proposal.surface import shape_points

    description = robot.description.links[link]
    colliding = [geometry for geometry in description.geometry if geometry.role != "visual"]
    points = [shape_points(geometry.shape) @ geometry.R.T + geometry.p for geometry in colliding]
    return {
        "mass": 0.0 if description.inertia is None else description.inertia.mass,
        "extent": np.ptp(np.concatenate(points), axis=0).tolist() if points else None,
        "shapes": [type(geometry.shape).__name__.removesuffix("Shape").lower() for geometry in colliding],
    }


def describe_scenario(scenario: "Scenario") -> tuple[list[str], dict[str, Any]]:
    """Describe a scenario: environment, start, goal, and contact sequence, if any."""
    from mcplan.scenario.scenario import goal_text, stance_text
    from mcplan.textbook.constraint.contact_rows import stance_rank

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
    lines += [f"goal {number}: {goal_text(item)}" for number, item in enumerate(scenario.goal)]
    settings = _settings(scenario)
    lines += _section("parameters (--set parameters.NAME=VALUE)", settings["parameters"])
    lines += _section("variants (--variant N)", settings["variants"])
    for part in ("planner", "control", "simulation"):
        lines += _section(f"{part} (--set {part}.KEY=VALUE)", settings[part])
    if scenario.stances:
        lines.append("stances:")
        lines += [f"  {number:2d}  {stance_text(item)}" for number, item in enumerate(scenario.stances)]
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
        "goal": [goal_text(item) for item in scenario.goal],
        **settings,
        "stances": [stance_text(item) for item in scenario.stances],
    }
    return lines, values


def _settings(scenario: "Scenario") -> dict[str, dict[str, Any]]:
    """Return parameters, variants and settings of the file, with expressions unevaluated."""
    data = scenario.source.data if isinstance(scenario.source.data, dict) else {}
    return {key: dict(data.get(key) or {}) for key in ("parameters", "variants", "planner", "control", "simulation")}


def _section(title: str, values: dict[str, Any]) -> list[str]:
    """Return the lines of one section; none if it is empty."""
    texts = {key: f"{len(value)} of them" if key == "states" else _yaml_text(value) for key, value in values.items()}
    return [f"{title}:", *(f"  {key}: {value}" for key, value in texts.items())] if texts else []


def _yaml_text(value: Any) -> str:
    """Return a value in YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml_text, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
