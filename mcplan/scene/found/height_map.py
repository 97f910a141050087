"""Height maps as triangles: a grid of heights, two triangles to a cell."""

import io
import warnings
from pathlib import Path

import numpy as np
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0, read_magic

from mcplan.errors import InputError

MAX_BYTES = 64_000_000
MAX_SIDE = 500
"""Points along a side; 500 by 500 are as many triangles as are looked at."""


def read_height_map(path: Path, cell: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (k,3) and faces (m,3) of a height map, about the middle of its grid.

    Rows of an array follow y, columns x; an image is seen from above, with x to the right.

    Parameters
    ----------
    path : ``.npy`` and ``.csv`` hold heights in m, ``.png`` grey levels.
    cell : distance of the points, m.
    height : of the brightest grey level over the darkest, m.

    Raises
    ------
    InputError
        The file is too large, or holds something else than a grid of finite numbers.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise InputError(f"{path.name}: has {size} bytes, at most {MAX_BYTES} are read")
    try:
        heights = _heights(path, height)
    except (OSError, ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise InputError(f"{path.name}: cannot be read as a grid of heights: {str(error)[:100]}") from None
    if heights.ndim != 2 or min(heights.shape) < 2 or max(heights.shape) > MAX_SIDE:
        raise InputError(f"{path.name}: has the shape {heights.shape}, expected 2 to {MAX_SIDE} rows and columns")
    if not np.isfinite(heights).all():
        raise InputError(f"{path.name}: holds heights that are not finite")
    return grid(heights, cell, cell)


def grid(heights: np.ndarray, dx: float, dy: float) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (k,3) and faces (m,3), which look up, of heights (rows, columns) at distances ``dx``, ``dy``."""
    rows, columns = heights.shape
    x = dx * (np.arange(columns) - (columns - 1) / 2)
    y = dy * (np.arange(rows) - (rows - 1) / 2)
    vertices = np.column_stack([np.tile(x, rows), np.repeat(y, columns), heights.ravel()])
    a = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    lower = np.column_stack([a, a + 1, a + columns + 1])
    return vertices, np.concatenate([lower, np.column_stack([a, a + columns + 1, a + columns])])


def _heights(path: Path, height: float) -> np.ndarray:
    data = path.read_bytes()
    suffix = path.suffix.lower()
    if suffix == ".npy":
        _check_header(data)
        return np.asarray(np.load(io.BytesIO(data), allow_pickle=False), float)
    if suffix == ".csv":
        return np.loadtxt(io.StringIO(data.decode("utf-8")), delimiter=",", ndmin=2, max_rows=MAX_SIDE + 1)
    from PIL import Image

    try:
        with warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning):
            image = Image.open(io.BytesIO(data), formats=["PNG"])  # reads the header alone
        with image:
            if max(image.size) > MAX_SIDE:
                raise ValueError(f"{image.size[0]} by {image.size[1]} pixels, at most {MAX_SIDE} by {MAX_SIDE}")
            top = 65535.0 if image.mode.startswith("I") else 255.0
            levels = np.asarray(image if image.mode.startswith("I") else image.convert("L"), float)
    except Image.DecompressionBombError as error:
        raise ValueError(str(error)) from None
    return np.array(height * levels[::-1] / top)


def _check_header(data: bytes) -> None:
    """Refuse an array of another type or size by its header: what it says is what NumPy makes room for."""
    stream = io.BytesIO(data)
    readers = {(1, 0): read_array_header_1_0, (2, 0): read_array_header_2_0}
    version = read_magic(stream)
    if version not in readers:
        raise ValueError(f"it is of the version {version} of the format, which no array of plain numbers needs")
    shape, _, dtype = readers[version](stream)
    if dtype.kind not in "biuf":
        raise ValueError(f"it holds {dtype.name[:40]}, not numbers")
    if max(shape, default=0) > MAX_SIDE or len(shape) != 2:
        raise ValueError(f"it has the shape {str(shape)[:60]}, expected 2 to {MAX_SIDE} rows and columns")
