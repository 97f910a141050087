"""From pictures to files: GIF by Pillow, MP4 by ffmpeg where no browser has encoded it."""

import importlib.util
import io
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from mcplan.errors import JobFailed

COLOURS = 128
"""Of a GIF: more make it larger and no clearer."""


def find_ffmpeg() -> str | None:
    """Return the path of ffmpeg: on the path, or that of the package imageio-ffmpeg; None where there is neither."""
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
    """Write pictures (PNG each) as a GIF that plays for ever; all share the colours of the first, so nothing flickers.

    Parameters
    ----------
    rate : pictures per second; a GIF counts in hundredths of a second.
    """
    images = (Image.open(io.BytesIO(data)).convert("RGB") for data in pictures)
    first = next(images)
    palette = first.quantize(COLOURS, method=Image.Quantize.MEDIANCUT)

    def reduced(image: Image.Image) -> Image.Image:
        return image.quantize(palette=palette, dither=Image.Dither.NONE)

    # one by one: Pillow keeps them all until it writes
    reduced(first).save(
        path, format="GIF", save_all=True, append_images=map(reduced, images), duration=10 * round(100 / rate), loop=0,
        optimize=True,
    )  # fmt: skip


def save_video(ffmpeg: str, pictures: Iterable[bytes], path: Path, rate: float) -> None:
    """Write pictures (PNG each) as an MP4 with H.264.

    Raises
    ------
    JobFailed
        ffmpeg has failed; with its last words.
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
            pass  # why is in what it says
        said = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise JobFailed(f"ffmpeg could not write {path.name}: {said.splitlines()[-1] if said else 'no reason given'}")
