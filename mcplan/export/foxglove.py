"""Foxglove messages of a run: transforms, scene with the robot's links, force arrows, joint states.

Also the JSON schemas of these messages; names and fields are Foxglove's own.

Source: foxglove-sdk, ``schemas/jsonschema`` (FrameTransforms, SceneUpdate, JointStates).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mcplan.record.run import Run
from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere
from mcplan.robot.pose import quat_from_rotation, rotation_onto

RATE = 30.0
"""Messages per second."""

WORLD = "world"
"""Name of the world frame."""

ARROW_SCALE = 0.6 / 600.0
"""Length of a force arrow per force, m/N."""

MIN_FORCE = 1.0
"""N: smaller forces are not drawn."""

ROBOT_COLOR, SURFACE_COLOR, BAR_COLOR, OBSTACLE_COLOR, OBJECT_COLOR, FORCE_COLOR = (
    (0.62, 0.66, 0.72, 1.0), (0.80, 0.78, 0.72, 1.0), (0.45, 0.50, 0.58, 1.0), (0.78, 0.47, 0.40, 1.0),
    (0.80, 0.63, 0.35, 1.0), (0.85, 0.25, 0.10, 1.0),
)  # fmt: skip
"""Colour of each kind of body, and of forces: red, green, blue, opacity."""

Message = tuple[str, str, dict[str, Any]]
"""Topic, name of the schema, and the message."""


def scene(run: Run) -> Message:
    """Return the message, logged once, with the environment and the shapes of the links in their own frames."""
    t, environment = float(run.t[0]), run.scenario.environment
    entities = []
    for surface in environment.surfaces:
        entities.append(_entity(t, WORLD, f"surface {surface.name}", triangles=[_surface_triangles(surface)]))
    for bar in environment.bars:
        z = bar.direction
        size = [2 * bar.radius, 2 * bar.radius, bar.length]
        shape = _cylinder(_pose(_rotation_with_z(z), bar.ends.mean(axis=0)), size, BAR_COLOR)
        entities.append(_entity(t, WORLD, f"bar {bar.name}", cylinders=[shape]))
    for item in environment.obstacles:
        entities.append(
            _entity(t, WORLD, f"obstacle {item.name}", **_shape(item.shape, item.R, item.p, OBSTACLE_COLOR))
        )
    for item in environment.objects:
        entities.append(_entity(t, _object_frame(item.name), f"object {item.name}",
                                **_shape(item.shape, np.eye(3), np.zeros(3), OBJECT_COLOR)))  # fmt: skip
    for link, geometries in run.robot.geometry.items():
        visual = [geometry for geometry in geometries if geometry.role != "collision"] or list(geometries)
        for k, geometry in enumerate(visual):
            shapes = _shape(geometry.shape, geometry.R, geometry.p, geometry.color or ROBOT_COLOR)
            entities.append(_entity(t, _link_frame(link), f"{link} {k}", **shapes))
    return "/scene", "foxglove.SceneUpdate", {"deletions": [], "entities": entities}


def frame(run: Run, k: int) -> Iterator[Message]:
    """Yield transforms, joint states and forces of sample k."""
    t, stamp, robot = float(run.t[k]), _stamp(float(run.t[k])), run.robot
    transforms = []
    for link in robot.link_names:
        X = robot.frame_pose(run.q[k], link)
        transforms.append(_transform(stamp, _link_frame(link), quat_from_rotation(X[:3, :3]), X[:3, 3]))
    for column, name in enumerate(run.record.objects):
        if run.object_q is not None:
            pose = run.object_q[k, column]
            transforms.append(_transform(stamp, _object_frame(name), pose[3:], pose[:3]))
    yield "/tf", "foxglove.FrameTransforms", {"transforms": transforms}
    numbers = zip(run.q[k, 7:], run.v[k, 6:], run.vd[k, 6:], run.tau[k], strict=True)
    joints = [
        {"name": name, "position": float(q), "velocity": float(v), "acceleration": float(a), "effort": float(tau)}
        for name, (q, v, a, tau) in zip(run.record.joints, numbers, strict=True)
    ]
    yield "/joint_states", "foxglove.JointStates", {"timestamp": stamp, "joints": joints}
    entities, deletions = [], []
    for column, patch in enumerate(run.patches):
        force = run.wrench[k, column, :3]
        size = float(np.linalg.norm(force))
        if MIN_FORCE < size < np.inf:
            entities.append(_entity(t, WORLD, f"force {patch}", arrows=[_arrow(_force_point(run, k, column), force)]))
        else:
            deletions.append({"timestamp": stamp, "type": 0, "id": f"force {patch}"})
    yield "/forces", "foxglove.SceneUpdate", {"deletions": deletions, "entities": entities}


def _force_point(run: Run, k: int, column: int) -> np.ndarray:
    """Return the point (3,) at which a patch's force is drawn: the force-weighted mean of its contact points.

    Without force it is the origin of the patch.
    """
    points = run.points(k)
    on_patch = run.point_patch[points] == column
    weight = np.linalg.norm(run.point_force[points][on_patch], axis=1)
    if weight.sum() > 1e-9:
        return weight @ run.point_xyz[points][on_patch] / weight.sum()
    return run.robot.frame_pose(run.q[k], run.patches[column])[:3, 3]


def _object_frame(name: str) -> str:
    return f"object {name}"


def _link_frame(link: str) -> str:
    """Return the name of a link's frame; for a link that is named like the world frame, another name."""
    return f"link {link}" if link == WORLD else link


def _stamp(t: float) -> dict[str, int]:
    nanoseconds = round(t * 1e9)
    return {"sec": nanoseconds // 10**9, "nsec": nanoseconds % 10**9}


def _entity(t: float, frame_id: str, name: str, **primitives: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = ("arrows", "cubes", "spheres", "cylinders", "lines", "triangles", "texts", "models")
    return {
        "timestamp": _stamp(t), "frame_id": frame_id, "id": name, "lifetime": {"sec": 0, "nsec": 0},
        "frame_locked": True, "metadata": [], **{kind: primitives.get(kind, []) for kind in kinds},
    }  # fmt: skip


def _transform(stamp: dict[str, int], child: str, quat_wxyz: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    return {"timestamp": stamp, "parent_frame_id": WORLD, "child_frame_id": child, "translation": _xyz(p),
            "rotation": _quat(quat_wxyz)}  # fmt: skip


def _xyz(p: Any) -> dict[str, float]:
    return dict(zip("xyz", map(float, p), strict=True))


def _quat(quat_wxyz: Any) -> dict[str, float]:
    return dict(zip("wxyz", map(float, quat_wxyz), strict=True))


def _pose(R: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    return {"position": _xyz(p), "orientation": _quat(quat_from_rotation(R))}


def _color(rgba: tuple[float, float, float, float]) -> dict[str, float]:
    return dict(zip("rgba", map(float, rgba), strict=True))


def _cylinder(pose: dict[str, Any], size: Any, color: Any) -> dict[str, Any]:
    return {"pose": pose, "size": _xyz(size), "bottom_scale": 1.0, "top_scale": 1.0, "color": _color(color)}


def _shape(shape: Any, R: np.ndarray, p: np.ndarray, color: Any) -> dict[str, list[dict[str, Any]]]:
    """Return Foxglove's primitives of a shape, by their kind."""
    pose = _pose(R, p)
    if isinstance(shape, Box):
        return {"cubes": [{"pose": pose, "size": _xyz(shape.size), "color": _color(color)}]}
    if isinstance(shape, Sphere):
        return {"spheres": [{"pose": pose, "size": _xyz([2 * shape.radius] * 3), "color": _color(color)}]}
    if isinstance(shape, Cylinder | Capsule):
        diameter = 2 * shape.radius
        found = {"cylinders": [_cylinder(pose, [diameter, diameter, shape.length], color)]}
        if isinstance(shape, Capsule):
            ends = [p + end * shape.length / 2 * R[:, 2] for end in (-1.0, 1.0)]
            ball = {"size": _xyz([diameter] * 3), "color": _color(color)}
            found["spheres"] = [{"pose": _pose(R, end)} | ball for end in ends]
        return found
    if isinstance(shape, MeshShape):
        return {"triangles": [_triangles(pose, shape.vertices, shape.faces, color)]}
    raise TypeError(f"no message for a {type(shape).__name__}")


def _triangles(pose: dict[str, Any], vertices: np.ndarray, faces: np.ndarray, color: Any) -> dict[str, Any]:
    points = [_xyz(point) for point in np.round(vertices, 6)]
    return {"pose": pose, "points": points, "color": _color(color), "colors": [], "indices": faces.ravel().tolist()}


def _surface_triangles(surface: Any) -> dict[str, Any]:
    """Return the slab below the polygon of a surface, as triangles."""
    k, (top, bottom) = len(surface.polygon), (0.0, -surface.thickness)
    vertices = np.vstack([np.column_stack([surface.polygon, np.full(k, z)]) for z in (top, bottom)])
    faces = [[0, i, i + 1] for i in range(1, k - 1)] + [[k, k + i + 1, k + i] for i in range(1, k - 1)]
    for i in range(k):
        j = (i + 1) % k
        faces += [[i, k + i, k + j], [i, k + j, j]]
    return _triangles(_pose(surface.R, surface.p), vertices, np.array(faces), SURFACE_COLOR)


def _arrow(point: np.ndarray, force: np.ndarray) -> dict[str, Any]:
    """Return the arrow of a force at a point; Foxglove's arrows point along their x axis."""
    size = float(np.linalg.norm(force))
    R = rotation_onto(np.array([1.0, 0.0, 0.0]), force)
    return {"pose": _pose(R, point), "shaft_length": size * ARROW_SCALE, "shaft_diameter": 0.02, "head_length": 0.07,
            "head_diameter": 0.05, "color": _color(FORCE_COLOR)}  # fmt: skip


def _rotation_with_z(z: np.ndarray) -> np.ndarray:
    """Return a rotation (3, 3) whose z axis is ``z``."""
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


NUMBER, TEXT, FLAG = {"type": "number"}, {"type": "string"}, {"type": "boolean"}
INTEGER = {"type": "integer"}

Schema = dict[str, Any]
"""A JSON schema."""


def _object_schema(properties: Schema, title: str = "") -> Schema:
    head = {"title": title} if title else {}
    return head | {"type": "object", "properties": properties, "required": list(properties)}


def _array_schema(items: Schema) -> Schema:
    return {"type": "array", "items": items}


TIME = _object_schema({"sec": INTEGER, "nsec": INTEGER}, "time")
DURATION = _object_schema({"sec": INTEGER, "nsec": INTEGER}, "duration")
VECTOR = _object_schema(dict.fromkeys("xyz", NUMBER), "foxglove.Vector3")
QUATERNION = _object_schema(dict.fromkeys("xyzw", NUMBER), "foxglove.Quaternion")
POSE = _object_schema({"position": VECTOR, "orientation": QUATERNION}, "foxglove.Pose")
POINT = _object_schema(dict.fromkeys("xyz", NUMBER), "foxglove.Point3")
COLOR = _object_schema(dict.fromkeys("rgba", NUMBER), "foxglove.Color")

ARROW = _object_schema(
    {"pose": POSE, "shaft_length": NUMBER, "shaft_diameter": NUMBER, "head_length": NUMBER, "head_diameter": NUMBER,
     "color": COLOR}, "foxglove.ArrowPrimitive",
)  # fmt: skip
CUBE = _object_schema({"pose": POSE, "size": VECTOR, "color": COLOR}, "foxglove.CubePrimitive")
SPHERE = _object_schema({"pose": POSE, "size": VECTOR, "color": COLOR}, "foxglove.SpherePrimitive")
CYLINDER = _object_schema(
    {"pose": POSE, "size": VECTOR, "bottom_scale": NUMBER, "top_scale": NUMBER, "color": COLOR},
    "foxglove.CylinderPrimitive",
)
TRIANGLES = _object_schema(
    {
        "pose": POSE,
        "points": _array_schema(POINT),
        "color": COLOR,
        "colors": _array_schema(COLOR),
        "indices": _array_schema(INTEGER),
    },
    "foxglove.TriangleListPrimitive",
)
ANY = {"type": "object"}  # primitives that mcplan does not send

ENTITY = _object_schema(
    {
        "timestamp": TIME, "frame_id": TEXT, "id": TEXT, "lifetime": DURATION, "frame_locked": FLAG,
        "metadata": _array_schema(_object_schema({"key": TEXT, "value": TEXT}, "foxglove.KeyValuePair")),
        "arrows": _array_schema(ARROW), "cubes": _array_schema(CUBE), "spheres": _array_schema(SPHERE),
        "cylinders": _array_schema(CYLINDER), "lines": _array_schema(ANY), "triangles": _array_schema(TRIANGLES),
        "texts": _array_schema(ANY), "models": _array_schema(ANY),
    },
    "foxglove.SceneEntity",
)  # fmt: skip
DELETION = _object_schema({"timestamp": TIME, "type": INTEGER, "id": TEXT}, "foxglove.SceneEntityDeletion")
TRANSFORM = _object_schema(
    {"timestamp": TIME, "parent_frame_id": TEXT, "child_frame_id": TEXT, "translation": VECTOR, "rotation": QUATERNION},
    "foxglove.FrameTransform",
)
JOINT = _object_schema(
    {"name": TEXT, "position": NUMBER, "velocity": NUMBER, "acceleration": NUMBER, "effort": NUMBER},
    "foxglove.JointState",
)

SCHEMAS: dict[str, Schema] = {
    "foxglove.FrameTransforms": _object_schema({"transforms": _array_schema(TRANSFORM)}, "foxglove.FrameTransforms"),
    "foxglove.SceneUpdate": _object_schema(
        {"deletions": _array_schema(DELETION), "entities": _array_schema(ENTITY)}, "foxglove.SceneUpdate"
    ),
    "foxglove.JointStates": _object_schema({"timestamp": TIME, "joints": _array_schema(JOINT)}, "foxglove.JointStates"),
}
"""JSON schema of each message, by Foxglove's name of the message."""
