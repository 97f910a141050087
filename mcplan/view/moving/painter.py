"""Software rasterizer of a drawing, without a browser: shaded triangles with a depth buffer.

The pictures are simpler than those of a browser and have no shadows, but need no further package. Rendering libraries
need a graphics card or hundreds of megabytes; matplotlib has no depth buffer, so intersecting solids look wrong.
"""

import io
from collections.abc import Iterable

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from mcplan.core.picture.raster import paint
from mcplan.util.text import escape_mathtext
from mcplan.view.drawing import Drawing
from mcplan.view.moving.solids import DrawnSolid, Scene

FIELD_OF_VIEW = np.radians(38.0)
"""Vertical field of view (rad), as in the page (`web/viewer.js`)."""

LIGHT_DIRECTION = np.array([0.33, 0.24, 0.91])
"""Direction to the light, of unit length."""

NEAR_PLANE_M = 0.05
"""Distance of the near plane from the eye (m); parts nearer than it are not drawn."""

COAT_DEPTH = 1e-3
"""Relative amount by which a coat (`shapes.material`) is drawn nearer."""

SUPERSAMPLING, MAX_SUPERSAMPLED_PIXELS = 2, 3_000_000
"""Samples along each side of a pixel (anti-aliasing), and the largest picture (pixels) for which they are taken."""

SKY = ((0.93, 0.95, 0.98), (0.74, 0.79, 0.86))
"""Colours of the background, top and bottom."""


class Painter:
    """Rasterizer of a drawing.

    Parameters
    ----------
    drawing : recorded scene.
    size : (width, height), pixels.
    """

    def __init__(self, drawing: Drawing, size: tuple[int, int]):
        self._scene, self._size = Scene(drawing), size
        self._samples = SUPERSAMPLING if size[0] * size[1] <= MAX_SUPERSAMPLED_PIXELS else 1
        self._figure = Figure(figsize=(size[0] / 100, size[1] / 100), dpi=100, facecolor="none")
        self._canvas = FigureCanvasAgg(self._figure)
        target, eye = drawing.camera
        forward = (target - eye) / np.linalg.norm(target - eye)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        self._eye, self._axes = eye, np.array([right, np.cross(forward, right), forward])

    def picture(self, t: float, caption: str) -> bytes:
        """Return the picture (PNG) at a time."""
        picture = Image.fromarray(self._pixels(t))
        text = self._caption(caption)
        picture.paste(text, mask=text)
        data = io.BytesIO()
        picture.save(data, "png")
        return data.getvalue()

    def _caption(self, caption: str) -> Image.Image:
        """Return the caption on a transparent background; matplotlib's font covers most alphabets."""
        self._figure.clear()
        self._figure.text(0.012, 0.02, escape_mathtext(caption), fontsize=self._size[1] / 42, color="#1d2533")
        self._canvas.draw()
        return Image.fromarray(np.asarray(self._canvas.buffer_rgba()))

    def _pixels(self, t: float) -> np.ndarray:
        """Return the colours (h, w, 3) of all pixels, from 0 to 255."""
        width, height = (self._samples * side for side in self._size)
        sky = np.linspace(*SKY, height, dtype=np.float32)
        picture = np.repeat(sky[:, None], width, axis=1)
        nodes = [node for node in self._scene.nodes if node.is_visible(t)]
        for on_top in (False, True):
            corners, colours = self._visible_triangles([node for node in nodes if node.on_top == on_top], t)
            is_transparent = colours[:, 3] < 1.0
            order = np.lexsort(
                (corners[:, :, 2].mean(axis=1), is_transparent)
            )  # transparent triangles last, far to near
            paint(corners[order], colours[order], np.zeros((height, width), np.float32), picture)
        mean = picture.reshape(self._size[1], self._samples, self._size[0], self._samples, 3).mean(axis=(1, 3))
        return np.round(255.0 * mean).astype(np.uint8)

    def _visible_triangles(self, nodes: Iterable[DrawnSolid], t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return corners (k, 3, 3) and colours (k, 4) of the front-facing triangles, as `paint` takes them."""
        width, height = (self._samples * side for side in self._size)
        scale = 0.5 * height / np.tan(0.5 * FIELD_OF_VIEW)
        parts = [(np.empty((0, 3, 3)), np.empty((0, 4)))]
        for node in nodes:
            X = node.world_pose(t)
            corners = node.triangles @ X[:3, :3].T + X[:3, 3] - self._eye
            normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            front_facing = np.einsum("ij,ij->i", normal, corners[:, 0]) < 0.0
            corners, normal = corners[front_facing], normal[front_facing]
            light = np.ones(len(normal))
            if not node.flat:
                light = 0.62 + 0.38 * np.clip(normal @ LIGHT_DIRECTION / np.linalg.norm(normal, axis=1), 0.0, 1.0)
            view, triangle = _clip_near_plane(corners @ self._axes.T, NEAR_PLANE_M)
            inverse_depth = 1.0 / view[..., 2]
            pixels = np.array([width, height]) / 2 + scale * view[..., :2] * inverse_depth[..., None]
            colours = np.column_stack([light[triangle, None] * node.colour[:3], np.full(len(triangle), node.colour[3])])
            parts.append((np.dstack([pixels, inverse_depth * (1.0 + COAT_DEPTH * node.coat)]), colours))
        corners, colours = (np.concatenate(part) for part in zip(*parts, strict=True))
        return corners, colours


def _clip_near_plane(corners: np.ndarray, near: float) -> tuple[np.ndarray, np.ndarray]:
    """Clip triangles (k, 3, 3) at the near plane; return the parts and the index of their triangle."""
    in_front = corners[..., 2] > near
    count = in_front.sum(axis=1)
    parts, triangles = [corners[count == 3]], [np.flatnonzero(count == 3)]
    for corners_in_front in (1, 2):
        rows = np.flatnonzero(count == corners_in_front)
        # rotate the corners so that the one alone on its side of the plane comes first; the orientation stays
        alone = np.argmax(in_front[rows] == (corners_in_front == 1), axis=1)
        a, b, c = np.moveaxis(corners[rows[:, None], (alone[:, None] + np.arange(3)) % 3], 1, 0)
        ab, ac = (a + (near - a[:, 2:]) / (x[:, 2:] - a[:, 2:]) * (x - a) for x in (b, c))
        pieces = [(a, ab, ac)] if corners_in_front == 1 else [(ab, b, c), (ab, c, ac)]
        parts += [np.stack(piece, axis=1) for piece in pieces]
        triangles += [rows] * len(pieces)
    return np.concatenate(parts), np.concatenate(triangles)
