"""MCAP log of a run, for Foxglove and similar viewers: JSON messages with their JSON schemas.

The messages that Foxglove draws, ``/tf``, ``/scene``, ``/forces`` and ``/joint_states``, have Foxglove's schemas and
are logged 30 times a second. All numbers of the run are logged at the rate of the export, in schemas of mcplan;
non-finite numbers become null.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcap.writer import Writer

from mcplan.export import foxglove
from mcplan.export.foxglove import SCHEMAS as FOXGLOVE_SCHEMAS
from mcplan.record.run import WRENCH, XYZ, Run
from mcplan.util.files import atomic_write
from mcplan.version import __version__

NUMBER, TEXT = {"type": "number"}, {"type": "string"}
VECTOR = {"type": "object", "properties": {axis: NUMBER for axis in XYZ}}
QUATERNION = {"type": "object", "properties": {part: NUMBER for part in "wxyz"}}
NUMBERS, TEXTS = {"type": "array", "items": NUMBER}, {"type": "array", "items": TEXT}
POINT = {
    "type": "object",
    "properties": {"link": TEXT, "patch": TEXT} | dict.fromkeys(("p", "normal", "force"), VECTOR),
}

SCHEMAS: dict[str, dict[str, Any]] = {
    "joints": {"name": TEXTS, "position": NUMBERS, "velocity": NUMBERS, "acceleration": NUMBERS, "effort": NUMBERS},
    "pose": {"position": VECTOR, "orientation": QUATERNION},
    "twist": {"linear": VECTOR, "angular": VECTOR},
    "external": {"force": NUMBERS},
    "point": {axis: NUMBER for axis in XYZ},
    "wrench": {part: NUMBER for part in WRENCH} | {"active": {"type": "boolean"}},
    "status": {"phase": TEXT, "qp_status": {"type": "integer"}},
    "contact_points": {"points": {"type": "array", "items": POINT}},
}
"""Properties of mcplan's messages, by the name of their schema; SI units, world axes."""


def write(run: Run, path: Path, rate: float | None = None) -> list[Path]:
    """Write the log; return its path.

    Parameters
    ----------
    rate : samples per second; None writes all.
    """
    with atomic_write(path) as partial, open(partial, "wb") as stream:
        writer = Writer(stream)
        writer.start(profile="", library=f"mcplan {__version__}")
        schemas = {name: _schema(writer, name, properties) for name, properties in SCHEMAS.items()}
        for name, schema in FOXGLOVE_SCHEMAS.items():
            schemas[name] = writer.register_schema(name, "jsonschema", json.dumps(schema).encode())
        channels: dict[str, int] = {}

        def add(k: int, topic: str, name: str, message: dict[str, Any]) -> None:
            time = round(float(run.t[k]) * 1e9)
            if topic not in channels:
                channels[topic] = writer.register_channel(topic, "json", schemas[name])
            data = _json(message).encode()
            writer.add_message(channels[topic], log_time=time, data=data, publish_time=time)

        add(0, *foxglove.scene(run))
        foxglove_samples = set(run.every(min(foxglove.RATE, rate or foxglove.RATE)).tolist())
        for k in sorted(foxglove_samples | set(run.every(rate).tolist())):
            for message in foxglove.frame(run, k) if k in foxglove_samples else ():
                add(k, *message)
            for message in _messages(run, k):
                add(k, *message)
        record = run.record
        metadata = {"scenario": run.scenario.name, "robot": record.robot.name, "physics": record.physics}
        writer.add_metadata("mcplan", {**metadata, "seed": str(record.seed), "dt": repr(record.dt)})
        writer.finish()
    return [path]


def _json(message: dict[str, Any]) -> str:
    """Format a message as JSON; non-finite numbers (at the end of a failed run) become null."""
    try:
        return json.dumps(message, allow_nan=False)
    except ValueError:
        return json.dumps(_without_nonfinite(message))


def _without_nonfinite(value: Any) -> Any:
    """Replace every non-finite number by None."""
    if isinstance(value, dict):
        return {key: _without_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nonfinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _schema(writer: Writer, name: str, properties: dict[str, Any]) -> int:
    schema = {"type": "object", "properties": properties}
    return writer.register_schema(f"mcplan.{name}", "jsonschema", json.dumps(schema).encode())


def _messages(run: Run, k: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield topic, schema name and content of all of mcplan's messages of sample k."""
    yield (
        "/joints",
        "joints",
        {
            "name": run.record.joints,
            "position": run.q[k, 7:].tolist(),
            "velocity": run.v[k, 6:].tolist(),
            "acceleration": run.vd[k, 6:].tolist(),
            "effort": run.tau[k].tolist(),
        },
    )
    yield "/base/pose", "pose", _pose(run.q[k])
    yield "/base/twist", "twist", _twist(run.v[k])
    yield "/base/acceleration", "twist", _twist(run.vd[k])
    yield "/external_forces", "external", {"force": run.tau_ext[k].tolist()}
    yield "/com", "point", _vector(run.com[k])
    yield "/status", "status", {"phase": run.phases[run.phase[k]], "qp_status": int(run.qp_status[k])}
    for column, patch in enumerate(run.patches):
        wrench = dict(zip(WRENCH, run.wrench[k, column].tolist(), strict=True))
        yield f"/wrench/{patch}", "wrench", {**wrench, "active": bool(run.active[k, column])}
    yield "/contact_points", "contact_points", {"points": _points(run, k)}
    if run.object_q is not None and run.object_v is not None:
        for column, name in enumerate(run.record.objects):
            yield f"/object/{name}/pose", "pose", _pose(run.object_q[k, column])
            yield f"/object/{name}/twist", "twist", _twist(run.object_v[k, column])


def _points(run: Run, k: int) -> list[dict[str, Any]]:
    bodies, found = [*run.record.links, *run.record.objects], []
    for i in range(*run.points(k).indices(len(run.point_xyz))):
        patch = int(run.point_patch[i])
        found.append(
            {
                "link": bodies[run.point_link[i]],
                "patch": run.patches[patch] if patch >= 0 else "",
                "p": _vector(run.point_xyz[i]),
                "normal": _vector(run.point_normal[i]),
                "force": _vector(run.point_force[i]),
            }
        )
    return found


def _vector(values) -> dict[str, float]:
    return dict(zip(XYZ, values.tolist(), strict=True))


def _pose(q) -> dict[str, Any]:
    return {"position": _vector(q[:3]), "orientation": dict(zip("wxyz", q[3:7].tolist(), strict=True))}


def _twist(v) -> dict[str, Any]:
    return {"linear": _vector(v[:3]), "angular": _vector(v[3:6])}
