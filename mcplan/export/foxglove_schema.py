"""The messages of Foxglove that a log holds, as JSON schemas: names and members as Foxglove defines them.

Source: foxglove-sdk, ``schemas/jsonschema`` (FrameTransforms, SceneUpdate, JointStates).
"""

from typing import Any

NUMBER, TEXT, FLAG = {"type": "number"}, {"type": "string"}, {"type": "boolean"}
INTEGER = {"type": "integer"}

Schema = dict[str, Any]


def _object(properties: Schema, title: str = "") -> Schema:
    said = {"title": title} if title else {}
    return said | {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


TIME = _object({"sec": INTEGER, "nsec": INTEGER}, "time")
DURATION = _object({"sec": INTEGER, "nsec": INTEGER}, "duration")
VECTOR = _object(dict.fromkeys("xyz", NUMBER), "foxglove.Vector3")
QUATERNION = _object(dict.fromkeys("xyzw", NUMBER), "foxglove.Quaternion")
POSE = _object({"position": VECTOR, "orientation": QUATERNION}, "foxglove.Pose")
POINT = _object(dict.fromkeys("xyz", NUMBER), "foxglove.Point3")
COLOR = _object(dict.fromkeys("rgba", NUMBER), "foxglove.Color")

ARROW = _object(
    {"pose": POSE, "shaft_length": NUMBER, "shaft_diameter": NUMBER, "head_length": NUMBER, "head_diameter": NUMBER,
     "color": COLOR}, "foxglove.ArrowPrimitive",
)  # fmt: skip
CUBE = _object({"pose": POSE, "size": VECTOR, "color": COLOR}, "foxglove.CubePrimitive")
SPHERE = _object({"pose": POSE, "size": VECTOR, "color": COLOR}, "foxglove.SpherePrimitive")
CYLINDER = _object(
    {"pose": POSE, "size": VECTOR, "bottom_scale": NUMBER, "top_scale": NUMBER, "color": COLOR},
    "foxglove.CylinderPrimitive",
)
TRIANGLES = _object(
    {"pose": POSE, "points": _list(POINT), "color": COLOR, "colors": _list(COLOR), "indices": _list(INTEGER)},
    "foxglove.TriangleListPrimitive",
)
ANY = {"type": "object"}

ENTITY = _object(
    {
        "timestamp": TIME, "frame_id": TEXT, "id": TEXT, "lifetime": DURATION, "frame_locked": FLAG,
        "metadata": _list(_object({"key": TEXT, "value": TEXT}, "foxglove.KeyValuePair")), "arrows": _list(ARROW),
        "cubes": _list(CUBE), "spheres": _list(SPHERE), "cylinders": _list(CYLINDER), "lines": _list(ANY),
        "triangles": _list(TRIANGLES), "texts": _list(ANY), "models": _list(ANY),
    },
    "foxglove.SceneEntity",
)  # fmt: skip
DELETION = _object({"timestamp": TIME, "type": INTEGER, "id": TEXT}, "foxglove.SceneEntityDeletion")
TRANSFORM = _object(
    {"timestamp": TIME, "parent_frame_id": TEXT, "child_frame_id": TEXT, "translation": VECTOR, "rotation": QUATERNION},
    "foxglove.FrameTransform",
)
JOINT = _object(
    {"name": TEXT, "position": NUMBER, "velocity": NUMBER, "acceleration": NUMBER, "effort": NUMBER},
    "foxglove.JointState",
)

SCHEMAS: dict[str, Schema] = {
    "foxglove.FrameTransforms": _object({"transforms": _list(TRANSFORM)}, "foxglove.FrameTransforms"),
    "foxglove.SceneUpdate": _object({"deletions": _list(DELETION), "entities": _list(ENTITY)}, "foxglove.SceneUpdate"),
    "foxglove.JointStates": _object({"timestamp": TIME, "joints": _list(JOINT)}, "foxglove.JointStates"),
}
"""By the name under which Foxglove knows them."""
