"""The drawing of a page as tests look at it: its animation as tracks, and what a viewer would show at a time."""

import base64

import numpy as np
import umsgpack
from scipy.spatial.transform import Rotation


def tracks_of(items) -> dict:
    """Return {path: {track: (times, values)}} of the motion of a drawing, as a page holds it."""
    found = {}
    for item in items:
        tracks = found[item["path"]] = {}
        for track in item["tracks"]:
            numbers = np.frombuffer(base64.b64decode(track["data"]), dtype="<f4").astype(float)
            times, values = np.split(numbers, [track["keys"]])
            tracks["." + track["name"]] = (
                times,
                values if track["name"] == "visible" else values.reshape(len(times), -1),
            )
    return found


def at(track, t) -> np.ndarray:
    """Return the value of a track at a time, interpolated."""
    times, values = track
    return np.array([np.interp(t, times, column) for column in values.T])


class Scene:
    """What a viewer would show: constant transforms, objects and animation of a drawing."""

    def __init__(self, drawing):
        commands = [umsgpack.unpackb(command) for command in drawing.commands()]
        kinds = {kind: [c for c in commands if c["type"] == kind] for kind in ("set_object", "set_transform")}
        self.object = {c["path"].removeprefix("/meshcat/"): c["object"] for c in kinds["set_object"]}
        self.constant = {
            c["path"].removeprefix("/meshcat/"): np.reshape(c["matrix"], (4, 4)).T for c in kinds["set_transform"]
        }
        self.tracks = tracks_of(drawing.tracks())

    def value(self, path, track, frame, default):
        """Return what a track holds at a whole number of seconds; what does not change has only its ends."""
        if track not in self.tracks.get(path, {}):
            return np.array(default)
        times, values = self.tracks[path][track]
        return values[np.searchsorted(times, frame + 1e-9) - 1]

    def place(self, path, points, frame):
        """Return points of the node ``path``/solid in the world at a frame, as three.js composes them."""
        X = self.constant.get(f"{path}/solid", np.eye(4))
        points = points @ X[:3, :3].T + X[:3, 3]
        points = points * self.value(path, ".scale", frame, np.ones(3))
        R = Rotation.from_quat(self.value(path, ".quaternion", frame, [0.0, 0, 0, 1])).as_matrix()
        return points @ R.T + self.value(path, ".position", frame, np.zeros(3))

    def vertices(self, path):
        """Return the vertices (k, 3) of the mesh at ``path`` in the world, by the constant transforms above it."""
        (geometry,) = self.object[path]["geometries"]
        packed = geometry["data"]["attributes"]["position"]["array"]
        points = np.frombuffer(packed.data, dtype=np.float32).reshape(-1, 3).astype(float)
        parts = path.split("/")
        for k in range(len(parts), 0, -1):
            X = self.constant.get("/".join(parts[:k]), np.eye(4))
            points = points @ X[:3, :3].T + X[:3, 3]
        return points

    def ends(self, path, frame):
        """Return the middle of bottom and top of the cylinder at ``path``; three.js's stand along y."""
        (geometry,) = self.object[f"{path}/solid"]["geometries"]
        half = geometry["height"] / 2
        return self.place(path, np.array([[0, -half, 0], [0, half, 0]]), frame)
