"""Height maps: steps in a grid of heights become surfaces where they are; what is no grid is refused."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from mcplan.errors import InputError
from mcplan.scene.detection.detect import detect_scene
from mcplan.scene.detection.settings import FindSettings
from mcplan.scene.detection.triangles import Triangles, read_height_map

CELL = 0.05


def step():
    """Return 40 rows (y) and 60 columns (x) of heights: one quarter, at high x and high y, is 0.2 m up."""
    heights = np.zeros((40, 60))
    heights[20:, 30:] = 0.2
    return heights


def written(folder, suffix):
    path = folder / f"map{suffix}"
    if suffix == ".npy":
        np.save(path, step())
    elif suffix == ".csv":
        np.savetxt(path, step(), delimiter=",")
    else:
        Image.fromarray((255 * step()[::-1]).round().astype(np.uint8)).save(path)
    return path


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".png"])
def test_a_step_is_found_where_it_is(tmp_path, suffix):
    found = detect_scene(Triangles.of(*read_height_map(written(tmp_path, suffix), CELL, 1.0)), FindSettings())
    top = max(found.surfaces, key=lambda surface: surface.p[2])
    assert np.allclose(top.p, [0.75, 0.5, 0.2], atol=3e-3)
    assert np.allclose(np.sort(np.ptp(top.polygon, axis=0)), [0.95, 1.45], atol=6e-3)
    assert min(surface.p[2] for surface in found.surfaces) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("map.csv", b"1,2\n3,x\n", "cannot be read as a grid"),
        ("map.csv", b"1,2\n3,nan\n", "not finite"),
        ("map.npy", b"\x93NUMPY" + bytes(20), "cannot be read as a grid"),
        ("map.png", b"GIF89a" + bytes(20), "cannot be read as a grid"),
    ],
)
def test_what_is_no_grid_is_refused(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_height_map(tmp_path / name, CELL, 1.0)


def test_objects_in_an_array_are_not_loaded(tmp_path):
    np.save(tmp_path / "map.npy", np.array([[{}, {}], [{}, {}]]), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read as a grid"):
        read_height_map(tmp_path / "map.npy", CELL, 1.0)


def png_header(width, height):
    """Return a PNG that says that it is so large, and holds nothing."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def npy_header(shape, descr="<f8"):
    """Return the header of an array that holds nothing."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("map.png", png_header(100_000, 100_000), "cannot be read as a grid.*exceeds limit"),
        ("map.png", png_header(10_000, 10_000), "10000 by 10000 pixels, at most 500"),
        ("map.npy", npy_header((10**7, 10**7)), "expected 2 to 500"),
        ("map.npy", npy_header((2, 2, 10**12)), "expected 2 to 500"),
        ("map.npy", npy_header((10, 10), "|V2000000000"), "not numbers"),
        ("map.npy", npy_header((10, 10), "<U500000000"), "not numbers"),
    ],
    ids=["pixels", "side", "square", "cube", "void", "text"],
)
def test_a_small_file_that_says_it_is_large_is_refused_before_there_is_room_made_for_it(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_height_map(tmp_path / name, CELL, 1.0)


def test_a_map_that_is_too_fine_is_refused(tmp_path):
    np.save(tmp_path / "map.npy", np.zeros((2, 501)))
    with pytest.raises(InputError, match="expected 2 to 500"):
        read_height_map(tmp_path / "map.npy", CELL, 1.0)
