"""Export of a replay as PNG, GIF (Pillow) or MP4 (browser or ffmpeg)."""

import base64
import importlib.util
import io
import json
import math
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image

from mcplan.errors import InputError, JobFailed
from mcplan.util.files import atomic_write
from mcplan.view.moving.chromium import Chromium, find_chromium
from mcplan.view.moving.mp4 import Chunk, mp4
from mcplan.view.moving.painter import Painter
from mcplan.view.page import Page

GIF_COLOURS = 128
"""Number of colours of a GIF; more would increase the size without visible gain."""


def find_ffmpeg() -> str | None:
    """Return the path of ffmpeg, from the path or the package imageio-ffmpeg, or None."""
    if found := shutil.which("ffmpeg"):
        return found
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        return None
    import imageio_ffmpeg

    try:
        return imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError:
        return None


def save_gif(pictures: Iterable[bytes], path: Path, rate: float) -> None:
    """Write pictures (PNG each) as a looping GIF; all share the palette of the first, so that nothing flickers.

    Parameters
    ----------
    rate : pictures per second; a GIF counts in hundredths of a second.
    """
    images = (Image.open(io.BytesIO(data)).convert("RGB") for data in pictures)
    first = next(images)
    palette = first.quantize(GIF_COLOURS, method=Image.Quantize.MEDIANCUT)

    def reduce(image: Image.Image) -> Image.Image:
        return image.quantize(palette=palette, dither=Image.Dither.NONE)

    # `map` reduces one picture at a time, so that memory holds the reduced ones only
    reduce(first).save(
        path, format="GIF", save_all=True, append_images=map(reduce, images), duration=10 * round(100 / rate), loop=0,
        optimize=True,
    )  # fmt: skip


def save_video(ffmpeg: str, pictures: Iterable[bytes], path: Path, rate: float) -> None:
    """Write pictures (PNG each) as an MP4 with H.264.

    Raises
    ------
    JobFailed
        ffmpeg has failed; the message ends with its last line.
    """
    command = [
        ffmpeg, "-y", "-loglevel", "error", "-f", "image2pipe", "-c:v", "png", "-framerate", f"{rate:g}", "-i", "-",
        "-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", str(path),
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            for data in pictures:
                process.stdin.write(data)
            process.stdin.close()
        except BrokenPipeError:
            pass  # stderr has the reason
        message = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        reason = message.splitlines()[-1] if message else "no reason given"
        raise JobFailed(f"ffmpeg could not write {path.name}: {reason}")


SIZE = (960, 600)
"""Default width and height of a picture, pixels."""

MIN_SIDE, MAX_SIDE = 64, 3840
"""Smallest and largest side of a picture, pixels."""

RATES = {"gif": 12.5, "mp4": 25.0}
"""Pictures per second; those of a GIF are a whole number of hundredths of a second apart."""

MAX_PICTURES = 4000
"""Maximum number of pictures in a file."""

MAX_GIF_PIXELS = 1_500_000_000
"""Maximum number of pixels of all pictures of a GIF, which are in memory (one byte each) until it is written."""

H264_CODEC = "avc1.640028"
"""Codec of MP4 files: H.264, high profile, level 4.0."""


class Renderer(Protocol):
    """Renderer of pictures of a page."""

    def picture(self, t: float, caption: str) -> bytes:
        """Return the picture (PNG) at a time."""
        ...


def check_output(
    kind: str,
    duration: float | None = None,
    speed: float = 1.0,
    t: float | None = None,
    size: tuple[int, int] = SIZE,
) -> None:
    """Check an export before any work: an encoder exists, not too many pictures, time within the motion.

    Parameters
    ----------
    kind : ``gif``, ``mp4`` or ``png``.
    duration : duration of the motion, s; None if not known yet.
    speed : playback speed / real time.
    t : time of a single picture, s; None for a film.
    size : width and height of a picture, pixels.

    Raises
    ------
    InputError
        No encoder is installed, the file would have too many pictures, or the speed or the time is invalid.
    """
    if kind == "mp4" and find_chromium() is None and find_ffmpeg() is None:
        raise InputError(
            "--mp4 needs Chromium or ffmpeg, and neither was found: pip install imageio-ffmpeg, or use --gif"
        )
    if not (np.isfinite(speed) and speed > 0.0):
        raise InputError(f"--speed {speed:g}: expected a factor above zero")
    if duration is None:
        return
    if t is not None and not 0.0 <= t <= duration:
        raise InputError(f"--png {t:g}: the motion goes from 0 to {duration:g}")
    if kind in RATES and duration == 0.0:
        raise InputError(f"--{kind}: there is no motion; --png 0 FILE makes a picture")
    limit = min(MAX_PICTURES, MAX_GIF_PIXELS // (size[0] * size[1])) if kind == "gif" else MAX_PICTURES
    if kind in RATES and duration / speed * RATES[kind] > limit:
        min_speed = math.ceil(10.0 * duration * RATES[kind] / limit) / 10.0
        text, hint = (f" of {size[0]}x{size[1]}", ", or a smaller --size") if limit < MAX_PICTURES else ("", "")
        raise InputError(
            f"--{kind}: more than {limit} pictures{text}; give a --speed of at least {min_speed:.1f}{hint}"
        )


def times_of(duration: float, speed: float, rate: float) -> np.ndarray:
    """Return equally spaced times of the pictures of a motion, with its end."""
    count = max(2, round(duration / speed * rate) + 1)
    return np.linspace(0.0, duration, count)


def caption_at(page: Page, t: float) -> str:
    """Return the caption of a picture: time and phase, or stance."""
    band = next(
        (band for band in page.bands if band["begin"] <= t < band["end"]), page.bands[-1] if page.bands else None
    )
    name = band["name"] if band else ""
    return f"stance {round(t)}   {name}" if page.stances else f"{t:5.2f} s   {name}"


def save_picture(page: Page, path: Path, t: float, size: tuple[int, int] = SIZE) -> None:
    """Write one picture at a time as PNG."""
    with _renderer(page, size) as renderer, atomic_write(path) as partial:
        partial.write_bytes(renderer.picture(t, caption_at(page, t)))


def save_moving(page: Page, path: Path, kind: str, size: tuple[int, int] = SIZE, speed: float = 1.0) -> None:
    """Write a GIF or MP4.

    Parameters
    ----------
    kind : ``gif`` or ``mp4``.
    speed : playback speed / real time.
    """
    rate = RATES[kind]
    times = np.array([page.at(second) for second in times_of(page.length, speed, rate)])
    size = (size[0] // 2 * 2, size[1] // 2 * 2)  # H.264 subsamples colours by two: even sizes
    with _renderer(page, size) as renderer, atomic_write(path) as partial:
        if kind == "mp4" and isinstance(renderer, BrowserRenderer) and renderer.encodes(size, rate):
            partial.write_bytes(renderer.video(times.tolist(), [caption_at(page, t) for t in times], size, rate))
            return
        pictures = (renderer.picture(float(t), caption_at(page, float(t))) for t in times)
        if kind == "gif":
            save_gif(pictures, partial, rate)
            return
        ffmpeg = find_ffmpeg()
        if ffmpeg is None:
            raise InputError("--mp4: this Chromium has no H.264 and there is no ffmpeg (pip install imageio-ffmpeg)")
        save_video(ffmpeg, pictures, partial, rate)


@contextmanager
def _renderer(page: Page, size: tuple[int, int]) -> Iterator[Renderer]:
    """Yield a renderer of a page: a browser, or the software rasterizer without one."""
    path = find_chromium()
    if path is None:
        yield Painter(page.drawing, size)
        return
    with Chromium(path, size) as browser:
        browser.open(page.text(), "typeof beginPictures === 'function'", "t=0")
        browser.js("beginPictures([])")
        yield BrowserRenderer(browser)


class BrowserRenderer:
    """Renderer in a browser: the page itself draws."""

    def __init__(self, browser: Chromium):
        self.browser = browser

    def picture(self, t: float, caption: str) -> bytes:
        """Return the picture (PNG) at a time."""
        address = self.browser.js(f"picture({t!r}, {json.dumps(caption)})")
        return base64.b64decode(address.partition(",")[2])

    def encodes(self, size: tuple[int, int], rate: float) -> bool:
        """Whether this browser can encode H.264."""
        return bool(self.browser.js(f"canEncode({_settings(size, rate)})"))

    def video(self, times: Sequence[float], captions: Sequence[str], size: tuple[int, int], rate: float) -> bytes:
        """Return the motion as an MP4 file."""
        self.browser.js(f"beginVideo({_settings(size, rate)})")
        for k, (t, caption) in enumerate(zip(times, captions, strict=True)):
            self.browser.js(f"addFrame({float(t)!r}, {json.dumps(caption)}, {k}, {rate!r})")
        video = self.browser.js("endVideo()")
        chunks = [Chunk(base64.b64decode(data), key) for data, key in video["chunks"]]
        return mp4(chunks, base64.b64decode(video["description"]), size, rate)


def _settings(size: tuple[int, int], rate: float) -> str:
    """Return the settings of the encoder in the browser, as JSON."""
    bit_rate = round(0.12 * size[0] * size[1] * rate)  # 0.12 bit per pixel suffices for drawn scenes
    return json.dumps(
        {"codec": H264_CODEC, "width": size[0], "height": size[1], "bitrate": bit_rate, "framerate": rate}
    )
