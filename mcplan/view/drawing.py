"""Recorded meshcat scene: geometry and animation, kept in memory.

meshcat's own ``Visualizer`` starts a server process, which listens on every interface and stops answering when its
unread error pipe is full. A ``Drawing`` replaces that process: it implements ``send(command)`` and stores the commands,
so that a scene can be written into one offline page or served by ``view.server``.

Names from files are quoted in node paths, so that no name can address another node.
"""

import base64
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import meshcat
import numpy as np
import umsgpack
from numpy.typing import ArrayLike


class Track(NamedTuple):
    """Animation of one property of a node: ``position``, ``quaternion`` (x y z w), ``scale`` or ``visible``."""

    name: str
    times: np.ndarray
    values: np.ndarray


class Drawing:
    """A recorded meshcat scene.

    ``drawing.root["robot/BODY"].set_object(...)`` draws as with any meshcat visualizer; ``animate`` adds motion;
    ``commands()`` returns the packed commands in the order for a viewer; ``tracks()`` the animation.

    Parameters
    ----------
    times : (frames,) time of each frame of the animation, s.
    """

    def __init__(self, times: ArrayLike = ()):
        self.times = np.asarray(times, dtype=float)
        self.camera = (np.array([0.0, 0.0, 0.7]), np.array([2.5, 2.0, 1.7]))  # target, eye
        self.root = meshcat.Visualizer(window=self)
        self.ground = 0.0  # height of the grid (m), which is that of the lowest support
        self.paths: list[str] = []  # node paths of the drawn objects
        self.seen: set[str] = set()  # nodes with animated visibility that are visible at some time
        self._commands: list[bytes] = []
        self._clips: dict[str, list[Track]] = {}

    def send(self, command) -> None:
        """Record one command; part of meshcat's window interface."""
        fields = command.lower()
        if fields["type"] == "set_object":
            self.paths.append(fields["path"].removeprefix("/meshcat/"))
        self._commands.append(_pack(fields))

    def frame(self, draw: Callable[[], None]) -> list[bytes]:
        """Return the packed commands of ``draw`` without storing them; a live view pushes them."""
        stored, self._commands = self._commands, []
        try:
            draw()
            return self._commands
        finally:
            self._commands = stored

    def animate(self, path: str, *, position=None, quat_wxyz=None, scale=None, visible=None) -> None:
        """Animate the node at ``path``, with one value per frame of ``times``.

        Parameters
        ----------
        position, scale : (frames, 3) position, m, and scale factors of the axes.
        quat_wxyz : (frames, 4) unit quaternions.
        visible : (frames,) booleans.
        """
        tracks = self._clips.setdefault(path, [])
        if position is not None:
            tracks.append(_track(self.times, "position", np.asarray(position)))
        if quat_wxyz is not None:
            tracks.append(_track(self.times, "quaternion", np.asarray(quat_wxyz)[:, [1, 2, 3, 0]]))
        if scale is not None:
            tracks.append(_track(self.times, "scale", np.asarray(scale)))
        if visible is not None:
            self.seen |= {path} if np.any(visible) else set()
            tracks.append(_track(self.times, "visible", np.asarray(visible, dtype=bool)))

    def commands(self) -> list[bytes]:
        """Return the commands, packed with msgpack, without the animation."""
        return list(self._commands)

    def clips(self) -> dict[str, list[Track]]:
        """Return the tracks of each node that moves."""
        return self._clips

    def tracks(self) -> list[dict[str, Any]]:
        """Return the animation for a page: the path and the tracks of each node.

        Each track has a property name, the number of its keys, and their times and values row by row: single
        precision, little endian, base 64. It is written ten times faster than meshcat's own format, and half as large.
        """
        return [
            {
                "path": path,
                "tracks": [
                    {"name": track.name, "keys": len(track.times), "data": _base64_text(track.times, track.values)}
                    for track in tracks
                ],
            }
            for path, tracks in self._clips.items()
        ]


def _base64_text(times: np.ndarray, values: np.ndarray) -> str:
    return base64.b64encode(np.concatenate([times, values.ravel()]).astype("<f4").tobytes()).decode("ascii")


def _pack(command: dict) -> bytes:
    # single precision resolves a micrometre at 10 m and halves the size of the page
    return umsgpack.packb(command, force_float_precision="single")


def _track(times: np.ndarray, name: str, values: np.ndarray) -> Track:
    """Return a track without the frames between equal values; the first and the last frame stay."""
    if len(values) > 2:
        rows = values.reshape(len(values), -1)
        unchanged = np.all(rows[1:-1] == rows[:-2], axis=1) & np.all(rows[1:-1] == rows[2:], axis=1)
        keep = np.concatenate([[True], ~unchanged, [True]])
    else:
        keep = np.ones(len(values), dtype=bool)
    return Track(name, times[keep], values[keep])


NAME_PREFIX = "n:"
"""Prefix of nodes named after items of a file; it prevents clashes with properties of JavaScript objects."""


def node_name(name: str, kind: str = NAME_PREFIX) -> str:
    """Return the node name of an item, one step of a path, with ``/`` and similar characters percent-encoded.

    Parameters
    ----------
    kind : prefix; ``patch `` or ``frame `` under a link, which has several kinds of nodes.
    """
    return kind + quote(name, safe=" ")


def item_name(node: str) -> str:
    """Return the name of an item from its node name."""
    return unquote(node.removeprefix(NAME_PREFIX))
