"""A meshcat scene kept in memory: what is drawn, and how it moves.

meshcat's own ``Visualizer`` wants a server process behind it, which listens on every interface and stops answering
when its unread error pipe is full. All that it needs of that process is ``send(command)``. A ``Drawing`` offers just
that and keeps the commands, so that a scene can be written into one offline page or served by ``view.server``.
"""

from collections.abc import Callable

import meshcat
import numpy as np
import umsgpack
from meshcat.animation import AnimationClip, AnimationTrack
from meshcat.path import Path
from numpy.typing import ArrayLike


class Drawing:
    """A recorded meshcat scene.

    ``drawing.root["robot/BODY"].set_object(...)`` draws as with any meshcat visualizer; ``animate`` adds motion;
    ``commands()`` gives it all, packed in the order in which a viewer must receive it.

    Parameters
    ----------
    times : (frames,) time of each frame of the animation, s.
    """

    def __init__(self, times: ArrayLike = ()):
        self.times = np.asarray(times, dtype=float)
        self.camera = (np.array([0.0, 0.0, 0.7]), np.array([2.5, 2.0, 1.7]))  # looks at the first point from the second
        self.root = meshcat.Visualizer(window=self)
        self._commands: list[bytes] = []
        self._clips: dict[str, list[AnimationTrack]] = {}

    def send(self, command) -> None:
        """Record one command; part of what meshcat asks of its window."""
        self._commands.append(_pack(command.lower()))

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
            tracks.append(_track(self.times, "position", "vector3", np.asarray(position)))
        if quat_wxyz is not None:
            tracks.append(_track(self.times, "quaternion", "quaternion", np.asarray(quat_wxyz)[:, [1, 2, 3, 0]]))
        if scale is not None:
            tracks.append(_track(self.times, "scale", "vector3", np.asarray(scale)))
        if visible is not None:
            tracks.append(_track(self.times, "visible", "boolean", np.asarray(visible, dtype=bool)))

    def commands(self) -> list[bytes]:
        """Return all commands, packed with msgpack, the animation last."""
        if not self._clips:
            return list(self._commands)
        clips = [
            {
                "path": Path(("meshcat", *path.split("/"))).lower(),
                "clip": AnimationClip({track.name: track for track in tracks}, fps=1, name="default").lower(),
            }
            for path, tracks in self._clips.items()
        ]
        options = {"play": True, "repetitions": 1_000_000}  # a replay that stops at its end looks broken
        return [*self._commands, _pack({"type": "set_animation", "animations": clips, "options": options, "path": ""})]


def _pack(command: dict) -> bytes:
    # single precision is a micrometre at 10 m, and half the size of the page
    return umsgpack.packb(command, force_float_precision="single")


def _track(times: np.ndarray, name: str, kind: str, values: np.ndarray) -> AnimationTrack:
    """Make a track that leaves out the frames in which nothing changes; the last value is always kept."""
    if len(values) > 2:
        flat = values.reshape(len(values), -1)
        unchanged = np.all(flat[1:-1] == flat[:-2], axis=1) & np.all(flat[1:-1] == flat[2:], axis=1)
        keep = np.concatenate([[True], ~unchanged, [True]])
    else:
        keep = np.ones(len(values), dtype=bool)
    return AnimationTrack(name, kind, frames=times[keep].tolist(), values=values[keep].tolist())
