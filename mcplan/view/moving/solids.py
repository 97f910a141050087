"""Scene graph of a drawing as animated triangles, built from meshcat's commands without a viewer."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import umsgpack
from scipy.spatial.transform import Rotation

from mcplan.view.drawing import Drawing, Track


@dataclass
class SceneNode:
    """Node of the scene graph: pose, visibility, and their animation."""

    X: np.ndarray = field(default_factory=lambda: np.eye(4))
    visible: bool = True
    tracks: dict[str, Track] = field(default_factory=dict)

    def pose(self, t: float) -> np.ndarray:
        """Return the pose (4, 4) in the parent's frame at time t."""
        if not {"position", "quaternion", "scale"} & set(self.tracks):
            return self.X
        X = np.eye(4)
        R = (
            Rotation.from_quat(_value_at(self.tracks["quaternion"], t)).as_matrix()
            if "quaternion" in self.tracks
            else np.eye(3)
        )
        X[:3, :3] = R * _value_at(self.tracks["scale"], t) if "scale" in self.tracks else R
        X[:3, 3] = _value_at(self.tracks["position"], t) if "position" in self.tracks else self.X[:3, 3]
        return X

    def is_visible(self, t: float) -> bool:
        """Whether the node is visible at time t."""
        if "visible" not in self.tracks:
            return self.visible
        track = self.tracks["visible"]
        return bool(track.values[max(int(np.searchsorted(track.times, t + 1e-9)) - 1, 0)])


@dataclass
class DrawnSolid:
    """A solid: triangles (k, 3, 3), colour, material, and its chain of nodes from the root."""

    triangles: np.ndarray
    colour: np.ndarray
    flat: bool
    on_top: bool
    coat: bool
    chain: list[SceneNode]

    def world_pose(self, t: float) -> np.ndarray:
        """Return the pose (4, 4) in the world frame at time t."""
        X = np.eye(4)
        for node in self.chain:
            X = X @ node.pose(t)
        return X

    def is_visible(self, t: float) -> bool:
        """Whether the solid and all its ancestors are visible."""
        return all(node.is_visible(t) for node in self.chain)


class Scene:
    """The solids of a drawing.

    Attributes
    ----------
    nodes : the solids in the order in which they were drawn.
    """

    def __init__(self, drawing: Drawing):
        nodes: dict[str, SceneNode] = {}
        objects: dict[str, dict[str, Any]] = {}
        for packed in drawing.commands():
            command = umsgpack.unpackb(packed)
            path = command["path"].removeprefix("/meshcat/").strip("/")
            if command["type"] == "set_object":
                objects[path] = command["object"]
            elif command["type"] == "set_transform":
                nodes.setdefault(path, SceneNode()).X = np.reshape(command["matrix"], (4, 4)).T
            elif command["type"] == "set_property" and command["property"] == "visible":
                nodes.setdefault(path, SceneNode()).visible = bool(command["value"])
        for path, tracks in drawing.clips().items():
            nodes.setdefault(path, SceneNode()).tracks = {track.name: track for track in tracks}
        self.nodes = []
        for path, content in objects.items():
            parts = path.split("/")
            chain = [nodes[name] for k in range(len(parts)) if (name := "/".join(parts[: k + 1])) in nodes]
            material = content["materials"][0]
            number = int(material["color"])
            colour = np.array([number >> 16 & 255, number >> 8 & 255, number & 255]) / 255.0
            self.nodes.append(
                DrawnSolid(
                    triangles=_triangles(content["geometries"][0]),
                    colour=np.append(colour, material.get("opacity", 1.0)),
                    flat=material["type"] == "MeshBasicMaterial",
                    on_top=not material.get("depthTest", True),
                    coat=material.get("polygonOffset", False),
                    chain=chain,
                )
            )


def _value_at(track: Track, t: float) -> np.ndarray:
    """Interpolate a track linearly at time t; neighbouring quaternions are close, and normalised later."""
    k = int(np.clip(np.searchsorted(track.times, t) - 1, 0, max(len(track.times) - 2, 0)))
    if len(track.times) < 2:
        return track.values[0]
    begin, end = track.times[k], track.times[k + 1]
    share = np.clip((t - begin) / (end - begin), 0.0, 1.0) if end > begin else 1.0
    return (1 - share) * track.values[k] + share * track.values[k + 1]


def _triangles(geometry: dict[str, Any]) -> np.ndarray:
    """Return the triangles (k, 3, 3) of one of meshcat's shapes."""
    match geometry["type"]:
        case "BoxGeometry":
            return _box(np.array([geometry["width"], geometry["height"], geometry["depth"]]))
        case "SphereGeometry":
            return _revolution(geometry["radius"] * _half_circle(9)[:, ::-1])
        case "CylinderGeometry":
            top, bottom, half = geometry["radiusTop"], geometry["radiusBottom"], geometry["height"] / 2
            return _revolution(np.array([[0.0, -half], [bottom, -half], [top, half], [0.0, half]]))
        case _:
            attributes = geometry["data"]["attributes"]
            points = np.frombuffer(attributes["position"]["array"].data, dtype=np.float32).reshape(-1, 3).astype(float)
            index = geometry["data"].get("index")
            order = np.arange(len(points)) if index is None else np.frombuffer(index["array"].data, dtype=np.uint32)
            return points[order].reshape(-1, 3, 3)


def _half_circle(count: int) -> np.ndarray:
    """Return points (count, 2) of half a circle from bottom to top: height, and distance from the axis."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, count)
    return np.column_stack([np.sin(angle), np.cos(angle)])


def _revolution(outline: np.ndarray, sides: int = 18) -> np.ndarray:
    """Return the triangles of a solid of revolution about y; its outline (k, 2) has distance from the axis, height."""
    angle = np.arange(sides + 1) * 2 * np.pi / sides
    ring = np.stack(
        [
            outline[:, :1] * np.cos(angle),
            np.repeat(outline[:, 1:], sides + 1, axis=1),
            -outline[:, :1] * np.sin(angle),
        ],
        axis=-1,
    )  # (k, sides + 1, 3)
    a, b, c, d = ring[:-1, :-1], ring[:-1, 1:], ring[1:, 1:], ring[1:, :-1]
    return np.concatenate([np.stack([a, b, c], -2).reshape(-1, 3, 3), np.stack([a, c, d], -2).reshape(-1, 3, 3)])


def _box(size: np.ndarray) -> np.ndarray:
    """Return the triangles (12, 3, 3) of a box."""
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * size
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return corners[np.array([[(a, b, c), (a, c, d)] for a, b, c, d in quads]).reshape(-1, 3)]
