"""Pictures of a drawing without a browser: its triangles, shaded and painted from far to near by matplotlib.

Not as clear as what a browser draws, without shadows and with surfaces that cut through each other shown one before the
other; but it needs nothing that is not there anyway.
"""

import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from mcplan.view.drawing import Drawing
from mcplan.view.moving.solids import Node, Scene
from mcplan.view.written import drawn

FIELD = np.radians(38.0)
"""Vertical field of view, that of the page."""

SUN = np.array([0.33, 0.24, 0.91])
LONGEST = 0.4
"""m: longer triangles are cut, as those that are far apart cannot be put in order."""

SKY = ((0.93, 0.95, 0.98), (0.74, 0.79, 0.86))
"""Colours above and below."""


class Painter:
    """Makes pictures of a drawing.

    Parameters
    ----------
    drawing : what is drawn.
    size : (width, height), pixels.
    """

    def __init__(self, drawing: Drawing, size: tuple[int, int]):
        self._scene, self._size = Scene(drawing), size
        self._figure = Figure(figsize=(size[0] / 100, size[1] / 100), dpi=100)
        FigureCanvasAgg(self._figure)
        target, eye = drawing.camera
        forward = (target - eye) / np.linalg.norm(target - eye)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        self._eye, self._axes = eye, np.array([right, np.cross(right, forward), forward])

    def picture(self, t: float, caption: str) -> bytes:
        """Return the picture (PNG) at a time."""
        width, height = self._size
        self._figure.clear()
        axes = self._figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0, width), ylim=(0, height))
        axes.axis("off")
        share = np.linspace(0.0, 1.0, 32)[:, None, None]
        sky = np.array(SKY[1]) * (1 - share) + np.array(SKY[0]) * share
        axes.imshow(sky, extent=(0, width, 0, height), aspect="auto", origin="lower", interpolation="bilinear")
        corners, colours, depth = self._triangles(t)
        order = np.argsort(-depth, kind="stable")
        axes.add_collection(
            PolyCollection(list(corners[order]), facecolors=colours[order], edgecolors=colours[order], linewidths=0.25)
        )
        axes.text(0.012 * width, 0.02 * height, drawn(caption), fontsize=height / 42, color="#1d2533")
        data = io.BytesIO()
        self._figure.savefig(data, format="png", dpi=100)
        return data.getvalue()

    def _triangles(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return corners (k, 3, 2) in pixels, colours (k, 4) and distances (k,) of all triangles that are seen."""
        found = [self._seen(node, node.world(t)) for node in self._scene.nodes if node.shown(t)]
        corners, colours, depth = (np.concatenate(part) for part in zip(*found, strict=True))
        return corners, colours, depth

    def _seen(self, node: Node, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        corners = node.triangles @ X[:3, :3].T + X[:3, 3]
        corners = _cut(corners)
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.linalg.norm(normal, axis=1)
        view = (corners - self._eye) @ self._axes.T
        towards = np.einsum("ij,ij->i", normal, corners.mean(axis=1) - self._eye) < 0.0
        keep = (view[:, :, 2].min(axis=1) > 0.05) & (length > 1e-12) & towards
        corners, view, normal = corners[keep], view[keep], normal[keep] / length[keep, None]
        width, height = self._size
        scale = 0.5 * height / np.tan(0.5 * FIELD)
        flat = np.stack(
            [width / 2 + scale * view[..., 0] / view[..., 2], height / 2 + scale * view[..., 1] / view[..., 2]], -1
        )
        light = np.ones(len(normal)) if node.flat else 0.62 + 0.38 * np.clip(normal @ SUN, 0.0, 1.0)
        colours = np.column_stack(
            [np.clip(light[:, None] * node.colour[:3], 0, 1), np.full(len(light), node.colour[3])]
        )
        depth = np.linalg.norm(view.mean(axis=1), axis=1)
        return flat, colours, depth - 1e3 if node.on_top else depth


def _cut(corners: np.ndarray) -> np.ndarray:
    """Return triangles (k, 3, 3) cut at the middle of their longest edge until none is longer than `LONGEST`."""
    for _ in range(12):
        edges = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2)
        long = edges.max(axis=1) > LONGEST
        if not long.any():
            break
        first = edges[long].argmax(axis=1)
        turned = np.take_along_axis(corners[long], ((first[:, None] + np.arange(3)) % 3)[:, :, None], axis=1)
        a, b, c = turned[:, 0], turned[:, 1], turned[:, 2]
        middle = (a + b) / 2
        corners = np.concatenate([corners[~long], np.stack([a, middle, c], 1), np.stack([middle, b, c], 1)])
    return corners
