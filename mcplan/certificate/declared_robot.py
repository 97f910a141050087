"""The robot that a run declares, against the one that an engine's own reader finds in the URDF of the run.

Everything else that engines judge is computed from the declared numbers. Here these are held to the file: links (what
moves as one body: mass, place of the centre of mass, inertia), joints (place and axis), and limits, by which the
certificate divides. What ``robot.yaml`` puts in place of a limit of the URDF is read from its text. Payloads and wrong
masses of the simulated world are no part of the robot, and left out on both sides.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import yaml

from mcplan.certificate.engines.contract import BASE, Engine, JointDescription, body_row
from mcplan.certificate.engines.joints import with_hinges
from mcplan.certificate.report import Check
from mcplan.record.records import RobotRecord

AGREEMENT = 1e-9
"""Largest relative difference (absolute below 1): both sides read the same digits."""

NO_LIMIT = 1e9
"""What is larger is none: readers write the largest double, infinity, or nothing."""

LIMITS = ("lower", "upper", "velocity", "torque")


def description_checks(engine: type[Engine], robot: RobotRecord) -> Iterator[Check]:
    """Yield the lines of links and limits; a run without URDF is not compared, and the lines say so."""
    names = [f"{engine.name}: {what}" for what in ("links", "limits")]
    if "robot.urdf" not in robot.files:
        for name in names:
            yield Check(name, None, "relative", "", True, "not compared: this run keeps no URDF")
        return
    try:
        found = engine.read_urdf(with_hinges(robot.files["robot.urdf"]))
        settings = yaml.safe_load(robot.files.get("robot.yaml", ""))
        replaced = (settings.get("limits") if isinstance(settings, dict) else None) or {}
    except (ValueError, RuntimeError, yaml.YAMLError) as error:
        text = f"{engine.name} cannot read the files of the robot in this run: {error}"
        for name in names:
            yield Check(name, None, "relative", f"<= {AGREEMENT:g}", False, "robot.urdf", text)
        return
    yield _links(engine.name, robot, found)
    yield _limits(engine.name, robot, found, replaced)


def _links(engine: str, robot: RobotRecord, found: dict[str, JointDescription]) -> Check:
    """Compare the bodies that joints move, and the joints, where all joints are at zero."""
    declared = _declared(robot)
    largest, where, wrong = 0.0, "", []
    for name in sorted(set(declared) ^ set(found)):
        side = engine if name in found else "the run"
        wrong.append(f"only {side} has a joint {name} that moves")
    for name in sorted(set(declared) & set(found)):
        ours, theirs = declared[name], found[name]
        scale = max(1.0, float(np.abs(ours[0]).max()), float(np.abs(ours[1]).max()))
        rows = (("mass and inertia", 0), ("place of the joint", 1), ("axis", 2))
        for what, row in rows:
            off = float(np.abs(ours[row] - theirs[row]).max()) / scale
            if not off <= largest or not where:
                largest, where = off, f"{what}, {name or BASE}"
            if not off <= AGREEMENT:
                wrong.append(f"{engine}: {what} of {name or BASE} differs by {off * scale:.4g}")
    return Check(
        f"{engine}: links", largest, "relative", f"<= {AGREEMENT:g}", not wrong, where, "; ".join(wrong)
    )  # fmt: skip


def _declared(robot: RobotRecord) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return by joint what moves with it as one body (10,), its place (3,) and its axis (3,), joints at zero."""
    names, R, p = {0: BASE}, {0: np.eye(3)}, {0: np.zeros(3)}
    found = {BASE: (np.zeros(10), np.zeros(3), np.zeros(3))}
    for joint in robot.joints:
        parent, child = joint.parent, joint.child
        R[child], p[child] = R[parent] @ np.array(joint.R), p[parent] + R[parent] @ np.array(joint.p)
        names[child] = names[parent] if joint.kind == "fixed" else joint.name
        if joint.kind != "fixed":
            found[joint.name] = (np.zeros(10), p[child], R[child] @ np.array(joint.axis))
    for i, link in enumerate(robot.links):
        found[names[i]][0][:] += body_row(link.mass, np.array(link.com), np.array(link.inertia), R[i], p[i])
    return found


def _limits(
    engine: str, robot: RobotRecord, found: dict[str, JointDescription], replaced: dict[str, dict[str, Any]]
) -> Check:
    largest, where, wrong = 0.0, "", []
    for i, joint in enumerate(robot.coordinates):
        for kind in LIMITS if joint in found else ():
            theirs, ours = _limit(found[joint], replaced.get(joint) or {}, kind), getattr(robot, kind)[i]
            if np.isnan(theirs):
                continue
            ours = _finite(np.inf * (-1 if kind == "lower" else 1) if ours is None else ours)
            off = 0.0 if theirs == ours else abs(theirs - ours) / max(1.0, min(abs(theirs), abs(ours)))
            if off > largest or not where:
                largest, where = off, f"{kind} of {joint}"
            if off > AGREEMENT:
                wrong.append(f"{engine}: {kind} limit of {joint} is {theirs:.9g} instead of {ours:.9g}")
    return Check(f"{engine}: limits", largest, "relative", f"<= {AGREEMENT:g}", not wrong, where, "; ".join(wrong))


def _limit(read: JointDescription, replaced: dict[str, Any], kind: str) -> float:
    return _finite(float(getattr(read, kind) if replaced.get(kind) is None else replaced[kind]))


def _finite(value: float) -> float:
    return float(np.sign(value)) * np.inf if abs(value) > NO_LIMIT else value
