"""Joint limits by an engine: those that a run declares, against those that the engine reads in the URDF of the run.

The certificate divides by the declared limits, so that its ratios and margins are reproduced when the limits are. What
``robot.yaml`` puts in place of a limit of the URDF is read from its text.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import yaml

from mcplan.certificate.engines.contract import Engine, JointLimits
from mcplan.sim.certificate import Check
from mcplan.sim.records import RobotRecord

AGREEMENT = 1e-6
"""Largest relative difference of a limit, or absolute one below 1."""

NO_LIMIT = 1e9
"""What is larger is none: readers write the largest double, infinity, or nothing."""


def limit_checks(engine: type[Engine], robot: RobotRecord) -> Iterator[Check]:
    """Yield the line of limits; a run without URDF is not compared, and the line says so."""
    name = f"{engine.name}: limits"
    if "robot.urdf" not in robot.files:
        yield Check(name, None, "relative", "", True, "not compared: this run keeps no URDF")
        return
    try:
        found = engine.limits(robot.files["robot.urdf"])
        replaced = (yaml.safe_load(robot.files.get("robot.yaml", "")) or {}).get("limits") or {}
    except (ValueError, RuntimeError, yaml.YAMLError, AttributeError) as error:
        text = f"{engine.name} cannot read the files of the robot in this run: {error}"
        yield Check(name, None, "relative", f"<= {AGREEMENT:g}", False, "robot.urdf", text)
        return
    largest, where, wrong = 0.0, "", []
    for i, joint in enumerate(robot.coordinates):
        if joint not in found:
            wrong.append(f"{engine.name} finds no joint {joint} in the URDF")
            continue
        for kind in JointLimits._fields:
            theirs, ours = _limit(found[joint], replaced.get(joint) or {}, kind), getattr(robot, kind)[i]
            if np.isnan(theirs):
                continue
            ours = _finite(np.inf * (-1 if kind == "lower" else 1) if ours is None else ours)
            off = 0.0 if theirs == ours else abs(theirs - ours) / max(1.0, min(abs(theirs), abs(ours)))
            if off > largest or not where:
                largest, where = off, f"{kind} of {joint}"
            if off > AGREEMENT:
                wrong.append(f"{engine.name}: {kind} limit of {joint} is {theirs:.9g} instead of {ours:.9g}")
    yield Check(name, largest, "relative", f"<= {AGREEMENT:g}", not wrong, where, "; ".join(wrong))


def _limit(read: JointLimits, replaced: dict[str, Any], kind: str) -> float:
    return _finite(float(getattr(read, kind) if replaced.get(kind) is None else replaced[kind]))


def _finite(value: float) -> float:
    return float(np.sign(value)) * np.inf if abs(value) > NO_LIMIT else value
