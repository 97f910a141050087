"""MP4 container (muxer) of H.264 frames encoded by a browser: one video track, frames of equal duration.

Source: ISO/IEC 14496-12 (boxes), 14496-15 (``avc1`` and ``avcC``).
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

TICKS_PER_SECOND = 90_000
"""Ticks per second of the clock of the file."""


class Chunk(NamedTuple):
    """An encoded frame: its bytes, and whether it is a key frame."""

    data: bytes
    key: bool


def mp4(chunks: Sequence[Chunk], description: bytes, size: tuple[int, int], rate: float) -> bytes:
    """Return an MP4 file.

    Parameters
    ----------
    chunks : the frames in order.
    description : the decoder's configuration record (``avcC``).
    size : (width, height), pixels.
    rate : frames per second.
    """
    ticks = round(TICKS_PER_SECOND / rate)
    total = ticks * len(chunks)
    head = _box(b"ftyp", b"isom" + struct.pack(">I", 512) + b"isomiso2avc1mp41")
    # the frames begin after all boxes, whose size does not depend on this offset: build them twice
    offset = len(head) + len(_movie(chunks, description, size, ticks, total, 0)) + 8
    movie = _movie(chunks, description, size, ticks, total, offset)
    return head + movie + _box(b"mdat", b"".join(chunk.data for chunk in chunks))


def _movie(
    chunks: Sequence[Chunk], description: bytes, size: tuple[int, int], ticks: int, total: int, offset: int
) -> bytes:
    """Return the box ``moov``: one track of ``total`` ticks, ``ticks`` per frame, whose data begin at ``offset``."""
    width, height = size
    matrix = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
    mvhd = _full_box(
        b"mvhd", struct.pack(">4IIH10x", 0, 0, TICKS_PER_SECOND, total, 0x10000, 0x0100) + matrix + bytes(24) + _u32(2)
    )
    tkhd = _full_box(
        b"tkhd",
        struct.pack(">5I8x4H", 0, 0, 1, 0, total, 0, 0, 0, 0) + matrix + _u32(width << 16, height << 16),
        flags=3,
    )
    mdhd = _full_box(b"mdhd", struct.pack(">4I2H", 0, 0, TICKS_PER_SECOND, total, 0x55C4, 0))
    hdlr = _full_box(b"hdlr", bytes(4) + b"vide" + bytes(12) + b"video\0")
    vmhd = _full_box(b"vmhd", bytes(8), flags=1)
    dinf = _box(b"dinf", _full_box(b"dref", _u32(1) + _full_box(b"url ", b"", flags=1)))
    entry = struct.pack(">6xH16x2H3IH32x2H", 1, width, height, 0x480000, 0x480000, 0, 1, 0x18, 0xFFFF)
    stsd = _full_box(b"stsd", _u32(1) + _box(b"avc1", entry + _box(b"avcC", description)))
    keys = [k for k, chunk in enumerate(chunks, start=1) if chunk.key]
    table = _box(
        b"stbl",
        stsd
        + _full_box(b"stts", _u32(1, len(chunks), ticks))
        + _full_box(b"stss", _u32(len(keys), *keys))
        + _full_box(b"stsc", _u32(1, 1, len(chunks), 1))
        + _full_box(b"stsz", _u32(0, len(chunks), *(len(chunk.data) for chunk in chunks)))
        + _full_box(b"stco", _u32(1, offset)),
    )
    media = _box(b"mdia", mdhd + hdlr + _box(b"minf", vmhd + dinf + table))
    return _box(b"moov", mvhd + _box(b"trak", tkhd + media))


def _box(kind: bytes, content: bytes) -> bytes:
    """Return a box: size, type, content."""
    return struct.pack(">I", 8 + len(content)) + kind + content


def _full_box(kind: bytes, content: bytes, flags: int = 0) -> bytes:
    """Return a box with version 0 and flags before its content."""
    return _box(kind, struct.pack(">I", flags) + content)


def _u32(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values)
