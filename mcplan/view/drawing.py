"""A meshcat scene kept in memory: what is drawn, and how it moves.

meshcat's own ``Visualizer`` wants a server process behind it, which listens on every interface and stops answering
when its unread error pipe is full. All that it needs of that process is ``send(command)``. A ``Drawing`` offers just
that and keeps the commands, so that a scene can be written into one offline page or served by ``view.server``.

Names of nodes of a drawing: what a file calls a thing leads to no other place, whatever it holds.
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
    """How one property of a node changes: ``position``, ``quaternion`` (x y z w), ``scale`` or ``visible``."""

    name: str
    times: np.ndarray
    values: np.ndarray


class Drawing:
    """A recorded meshcat scene.

    ``drawing.root["robot/BODY"].set_object(...)`` draws as with any meshcat visualizer; ``animate`` adds motion;
    ``commands()`` gives what is drawn, packed in the order in which a viewer must receive it; ``tracks()`` how it all
    moves.

    Parameters
    ----------
    times : (frames,) time of each frame of the animation, s.
    """

    def __init__(self, times: ArrayLike = ()):
        self.times = np.asarray(times, dtype=float)
        self.camera = (np.array([0.0, 0.0, 0.7]), np.array([2.5, 2.0, 1.7]))  # looks at the first point from the second
        self.root = meshcat.Visualizer(window=self)
        self.ground = 0.0  # m: height of the lowest support, where a grid lies
        self.paths: list[str] = []  # of the objects that were drawn
        self.seen: set[str] = set()  # of the nodes whose visibility is animated: those that are seen at some time
        self._commands: list[bytes] = []
        self._clips: dict[str, list[Track]] = {}

    def send(self, command) -> None:
        """Record one command; part of what meshcat asks of its window."""
        lowered = command.lower()
        if lowered["type"] == "set_object":
            self.paths.append(lowered["path"].removeprefix("/meshcat/"))
        self._commands.append(_pack(lowered))

    def frame(self, draw: Callable[[], None]) -> list[bytes]:
        """Return what ``draw`` sends, packed, instead of keeping it: what a live view pushes."""
        kept, self._commands = self._commands, []
        try:
            draw()
            return self._commands
        finally:
            self._commands = kept

    def animate(self, path: str, *, position=None, quat_wxyz=None, scale=None, visible=None) -> None:
        """Move the node at ``path`` with one value per frame of ``times``.

        Parameters
        ----------
        position, scale : (frames, 3), m and factor.
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
        """Return what was drawn, packed with msgpack, without its motion."""
        return list(self._commands)

    def clips(self) -> dict[str, list[Track]]:
        """Return the tracks of each node that moves."""
        return self._clips

    def tracks(self) -> list[dict[str, Any]]:
        """Return the motion for a page: of each node the path, and its tracks with their times and values.

        Each track has the name of what it moves, the number of its keys, and the times and values of these, row by row,
        as single precision, little endian, in base 64: a tenth of the work, and half the size, of meshcat's own form.
        """
        return [
            {
                "path": path,
                "tracks": [
                    {"name": track.name, "keys": len(track.times), "data": _encoded(track.times, track.values)}
                    for track in tracks
                ],
            }
            for path, tracks in self._clips.items()
        ]


def _encoded(times: np.ndarray, values: np.ndarray) -> str:
    return base64.b64encode(np.concatenate([times, values.ravel()]).astype("<f4").tobytes()).decode("ascii")


def _pack(command: dict) -> bytes:
    # single precision is a micrometre at 10 m, and half the size of the page
    return umsgpack.packb(command, force_float_precision="single")


def _track(times: np.ndarray, name: str, values: np.ndarray) -> Track:
    """Make a track that leaves out the frames in which nothing changes; the last value is always kept."""
    if len(values) > 2:
        flat = values.reshape(len(values), -1)
        unchanged = np.all(flat[1:-1] == flat[:-2], axis=1) & np.all(flat[1:-1] == flat[2:], axis=1)
        keep = np.concatenate([[True], ~unchanged, [True]])
    else:
        keep = np.ones(len(values), dtype=bool)
    return Track(name, times[keep], values[keep])


NAMED = "n:"
"""How the name of a node begins that is called as a thing of a file: no word that JavaScript knows has it."""


def node_name(name: str, kind: str = NAMED) -> str:
    """Return what the node of a thing is called: one step of a path, as ``/`` and the like are written ``%2F``.

    Parameters
    ----------
    kind : how it begins, where the node is one of several of its parent: ``patch``, ``frame``.
    """
    return kind + quote(name, safe=" ")


def thing_name(node: str) -> str:
    """Return the name of the thing that a node is called after, for people to read."""
    return unquote(node.removeprefix(NAMED))
