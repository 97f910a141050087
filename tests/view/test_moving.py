"""Pictures of a replay: by a browser, without one, and refused before any work where they could not be made."""

import io
import struct
import sys

import numpy as np
import pytest
from PIL import Image, ImageChops

from mcplan.cli.main import main
from mcplan.errors import InputError
from mcplan.view import palette
from mcplan.view.drawing import Drawing
from mcplan.view.moving import film_maker, film_maker as encode
from mcplan.view.moving.chromium import Chromium, find_chromium
from mcplan.view.moving.film_maker import (
    MAX_PICTURES,
    caption_at,
    check_output,
    save_gif,
    save_moving,
    save_picture,
    times_of,
)
from mcplan.view.moving.mp4 import Chunk, mp4
from mcplan.view.moving.painter import SKY, Painter, _clip_near_plane
from mcplan.view.moving.solids import Scene
from mcplan.view.replay import run_page
from tests import shared

needs_chromium = pytest.mark.skipif(find_chromium() is None, reason="no Chromium on the path to make pictures with")
SIZE = (160, 120)


@pytest.fixture(scope="module")
def run():
    return shared.swaying()


@pytest.fixture(scope="module")
def page(run):
    return run_page(run)


@pytest.fixture
def no_browser(monkeypatch):
    monkeypatch.setattr(film_maker, "find_chromium", lambda: None)


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def test_the_solids_of_a_drawing_are_where_its_nodes_are(run, page):
    scene = Scene(page.drawing)
    ball = next(
        node for node in scene.nodes if node.chain and len(node.triangles) > 100 and "position" in node.chain[-1].tracks
    )
    for t in (0.0, 1.0, 2.0):
        k = int(np.searchsorted(run.t, run.t[0] + t - 1e-9))
        assert ball.world_pose(t)[:3, 3] == pytest.approx(run.com[k], abs=1e-5)
    shown = [(node.triangles, node.world_pose(0.0)) for node in scene.nodes if node.is_visible(0.0)]
    contact_heights = min(float((corners @ X[:3, :3].T + X[:3, 3])[..., 2].min()) for corners, X in shown)
    assert contact_heights == pytest.approx(-run.scenario.environment.surfaces[0].thickness, abs=1e-6)


def test_solids_are_closed_and_look_outwards(page):
    """Of a closed solid whose faces look outwards the volume, sum of det(a, b, c) / 6, is positive."""
    for node in Scene(page.drawing).nodes:
        volume = np.linalg.det(node.triangles).sum() / 6
        assert volume > -1e-9


def test_of_what_reaches_behind_the_eye_the_part_before_it_is_left():
    """A triangle of the plane x + y + z = 1, with corners behind z = 0.1, is cut there and faces as before."""
    normal = np.ones(3) / np.sqrt(3.0)
    front = np.array([[3.0, -3, 1], [-3, 3, 1], [-1, -1, 3]])
    for behind in range(4):
        corners = front.copy()
        corners[:behind, 2], corners[:behind, 0] = -1.0, 2.0 - corners[:behind, 1]
        parts, of = _clip_near_plane(corners[None], 0.1)
        twice = np.cross(parts[:, 1] - parts[:, 0], parts[:, 2] - parts[:, 0]).reshape(-1, 3)
        whole = np.cross(corners[1] - corners[0], corners[2] - corners[0]) @ normal
        assert (parts[..., 2] >= 0.1 - 1e-12).all()
        assert parts @ np.ones(3) == pytest.approx(np.ones(parts.shape[:2]))
        assert len(of) == (1, 2, 1, 0)[behind]
        left = 1.0 - behind // 3
        if behind in (1, 2):  # the cut leaves a small triangle at the corner that is alone on its side, or takes it off
            alone, h = 2 * (behind - 1), corners[:, 2]
            small = np.prod([(h[alone] - 0.1) / (h[alone] - h[k]) for k in range(3) if k != alone])
            left = small if behind == 2 else 1.0 - small
        assert twice.sum(axis=0) @ normal == pytest.approx(left * whole)


def test_without_a_browser_the_robot_is_painted_where_it_is(page):
    painter = Painter(page.drawing, (320, 240))
    begin, again, later = (pixels(painter.picture(t, "")) for t in (0.0, 0.0, 2.0))
    assert np.array_equal(begin, again)
    assert np.abs(begin - later).max() > 60
    # the ball of the centre of mass, which nothing hides, is near the middle of what the camera looks at
    red = np.array(palette.COM[:3]) * 255
    rows, columns = np.nonzero(np.abs(begin - red).max(axis=2) < 40)
    assert len(rows) > 5
    assert abs(columns.mean() - 160) < 40
    assert abs(rows.mean() - 120) < 40
    assert begin[:4].mean() > begin[-4:].mean()  # the sky is lighter above


def test_the_empty_scene_is_sky_of_any_size():
    for size in ((65, 67), (2400, 1600)):  # the second is too large for several samples of a pixel
        painter = Painter(Drawing(), size)
        image = pixels(painter.picture(0.0, "")) / 255.0
        assert image.shape == (size[1], size[0], 3)
        assert image[0, 0] == pytest.approx(SKY[0], abs=0.01)
        assert image[-1, -1] == pytest.approx(SKY[1], abs=0.01)
        assert (pixels(painter.picture(0.0, "stance 3")) / 255.0 != image).any()


@needs_chromium
def test_a_browser_makes_a_picture_and_a_film_that_plays(page, run, tmp_path):
    save_picture(page, tmp_path / "one.png", 1.0, SIZE)
    image = pixels((tmp_path / "one.png").read_bytes())
    assert image.shape == (SIZE[1], SIZE[0], 3)
    assert np.ptp(image) > 100
    save_moving(page, tmp_path / "film.mp4", "mp4", SIZE, speed=8.0)
    duration = float(run.t[-1] - run.t[0]) / 8.0
    data = (tmp_path / "film.mp4").read_bytes()
    with Chromium(find_chromium(), (320, 240)) as browser:
        browser.open("<video></video>", "true")
        import base64

        source = "data:video/mp4;base64," + base64.b64encode(data).decode()
        seen = browser.js(
            "new Promise((go, fail) => { const v = document.querySelector('video');"
            " v.onloadeddata = () => go([v.videoWidth, v.videoHeight, v.duration]);"
            f" v.onerror = () => fail(new Error(v.error.message)); v.src = '{source}'; }})"
        )
    assert seen[:2] == list(SIZE)
    assert seen[2] == pytest.approx(duration, abs=0.1)


def test_without_a_browser_a_gif_is_written_that_moves(page, tmp_path, no_browser):
    save_moving(page, tmp_path / "film.gif", "gif", SIZE, speed=10.0)
    with Image.open(tmp_path / "film.gif") as image:
        assert image.size == SIZE
        assert image.n_frames == len(times_of(page.duration, 10.0, 12.5))
        assert image.info["duration"] == 80
        first = np.asarray(image.convert("RGB")).astype(int)
        image.seek(image.n_frames // 2)
        assert np.abs(np.asarray(image.convert("RGB")).astype(int) - first).max() > 60


def test_a_gif_keeps_its_colours(tmp_path):
    def picture(shade):
        data = io.BytesIO()
        Image.new("RGB", (40, 30), (shade, 40, 200)).save(data, "png")
        return data.getvalue()

    save_gif([picture(10), picture(12)], tmp_path / "a.gif", 12.5)
    with Image.open(tmp_path / "a.gif") as image:
        colour = image.convert("RGB").getpixel((5, 5))
    assert np.abs(np.array(colour) - [10, 40, 200]).max() < 6


def test_pictures_of_a_gif_are_made_as_they_are_written(tmp_path, monkeypatch):
    made, save = [], Image.Image.save

    def pictures():
        for k in range(5):
            data = io.BytesIO()
            save(ImageChops.offset(Image.linear_gradient("L"), 0, 20 * k), data, "png")
            made.append(k)
            yield data.getvalue()

    def begun(*arguments, **options):
        assert len(made) == 1
        save(*arguments, **options)

    monkeypatch.setattr(Image.Image, "save", begun)
    save_gif(pictures(), tmp_path / "a.gif", 12.5)
    with Image.open(tmp_path / "a.gif") as image:
        assert image.n_frames == len(made) == 5


def test_the_boxes_of_an_mp4_have_their_lengths_and_lead_to_the_frames():
    chunks = [Chunk(b"first frame", True), Chunk(b"second", False)]
    data = mp4(chunks, b"config", (64, 48), 25.0)
    at, kinds = 0, []
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        kinds.append(kind)
        at += length
    assert at == len(data)
    assert kinds == [b"ftyp", b"moov", b"mdat"]
    place = struct.unpack(">I", data[data.index(b"stco") + 12 :][:4])[0]
    assert data[place:] == b"first framesecond"


def test_what_cannot_be_made_is_refused_before_any_work(monkeypatch, no_browser, tmp_path, capsys):
    monkeypatch.setattr(film_maker, "find_ffmpeg", lambda: None)
    with pytest.raises(InputError, match="needs Chromium or ffmpeg"):
        check_output("mp4")
    check_output("gif")
    with pytest.raises(InputError, match=rf"more than {MAX_PICTURES} pictures; give a --speed of at least 3\.2"):
        check_output("gif", duration=1000.0, size=(320, 240))
    with pytest.raises(InputError, match=r"651 pictures of 1920x1200; give a --speed of at least 1\.2, or a smaller"):
        check_output("gif", duration=60.0, size=(1920, 1200))
    check_output("gif", duration=60.0)
    with pytest.raises(InputError, match="from 0 to 4"):
        check_output("png", duration=4.0, t=4.5)
    with pytest.raises(InputError, match="--speed nan"):
        check_output("gif", speed=float("nan"))
    there = tmp_path / "there.gif"
    there.write_bytes(b"mine")
    broken = tmp_path / "run.npz"
    broken.write_bytes(b"no record")  # nothing of this reads it
    for arguments, words in (
        (["--mp4", str(tmp_path / "a.mp4")], "needs Chromium or ffmpeg"),
        (["--gif", str(tmp_path / "a.mov")], "ends in .gif"),
        (["--gif", str(there)], "exists and is kept"),
        (["--png", "soon", str(tmp_path / "a.png")], "expected a time"),
        (["--png", "1", str(tmp_path / "a.png"), "--size", "10x10"], "from 64 to 3840"),
        (["--gif", str(tmp_path / "a.gif"), "--size", "wide"], "WIDTHxHEIGHT"),
        (["--gif", str(tmp_path / "a.gif"), "--speed", "0"], "a factor above zero"),
    ):
        assert main(["replay", str(broken), *arguments]) == 2
        assert words in capsys.readouterr().err
    assert there.read_bytes() == b"mine"


def test_captions_name_time_and_phase(page):
    band = page.bands[1]
    assert caption_at(page, band["begin"]) == f"{band['begin']:5.2f} s   {band['name']}"
    assert caption_at(page, page.duration).endswith(page.bands[-1]["name"])


def test_ffmpeg_is_found_on_the_path_or_in_its_package(monkeypatch):
    monkeypatch.setattr(encode.shutil, "which", lambda name: "/somewhere/ffmpeg")
    assert encode.find_ffmpeg() == "/somewhere/ffmpeg"
    monkeypatch.setattr(encode.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setattr(encode.importlib.util, "find_spec", lambda name: None)
    assert encode.find_ffmpeg() is None
