"""File format of a run: ``run.npz`` with ``timing.npz``, or ``NAME.npz`` with ``NAME.timing.npz``.

A run file is a NumPy archive, readable with ``numpy.load(path, allow_pickle=False)``. Equal runs give equal bytes: the
order of arrays and the time stamps are fixed. The reader checks names, sizes, types and shapes against each other
before it reads the first array, because a file of 2 MB can announce arrays of 2 GB.
"""

import json
import os
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from pydantic import ValidationError

from mcplan.errors import Problem, RunError
from mcplan.record.records import RunRecord
from mcplan.util.arguments import file_path
from mcplan.util.files import atomic_write, check_writable

SHAPES: dict[str, tuple[str | int, ...]] = {
    "t": ("N",),
    "q": ("N", "nq"),
    "v": ("N", "nv"),
    "vd": ("N", "nv"),
    "tau": ("N", "n"),
    "tau_ext": ("N", "nv"),
    "wrench": ("N", "P", 6),
    "active": ("N", "P"),
    "phase": ("N",),
    "com": ("N", 3),
    "qp_status": ("N",),
    "qp_slack": ("N",),
    "point_start": ("N+1",),
    "point_link": ("K",),
    "point_patch": ("K",),
    "point_xyz": ("K", 3),
    "point_normal": ("K", 3),
    "point_force": ("K", 3),
    "object_q": ("N", "objects", 7),
    "object_v": ("N", "objects", 6),
}
"""Shape of every array of a run: N samples, K contact points, P patches, n joints, nq = 7 + n, nv = 6 + n."""

DTYPES = {name: "<i8" for name in ("phase", "qp_status", "point_start", "point_link", "point_patch")} | {
    "active": "|b1"
}
"""Element type of the arrays that are not of float64."""

OBJECT_ARRAYS = ("object_q", "object_v")
"""Arrays that only runs with free objects have."""

OPTIONAL_ARRAYS = ("qp_slack",)
"""Arrays that runs of earlier versions do not have."""


def dtype_of(name: str) -> str:
    """Return the element type of an array of the run, as in NumPy files."""
    return DTYPES.get(name, "<f8")


RUN_NAME, TIMING_NAME = "run.npz", "timing.npz"
"""Names of the files of a run in its directory."""

COMPRESSED = frozenset(SHAPES) - {"q", "v", "vd", "tau", "wrench", "com", "point_xyz", "point_force"}
"""Arrays to compress: indices, flags and sparse arrays. Compression of the others would take ten times as long as
storing them and save only 5 %."""

MAX_BYTES = 4 << 30
"""Maximum total size of the arrays: more than the memory of a laptop, exceeded by ten hours of a humanoid at 1 kHz."""

MAX_META_BYTES = 256 << 20
"""Maximum size of the record ``meta``."""

_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)\{'descr': '(?P<descr>[<|=]?[a-zA-Z]\d+)', 'fortran_order': False, "
    rb"'shape': \((?P<shape>[\d, ]*)\), \} *\n",
    re.DOTALL,
)
_TIME_STAMP = (1980, 1, 1, 0, 0, 0)
_READ_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    MemoryError,
)


def shape_problems(record: RunRecord, shapes: dict[str, tuple[int, ...]]) -> list[Problem]:
    """Return the problems of the shapes of a run's arrays, given by name; the arrays need not be read."""
    n = len(record.joints)
    if not shapes.get("t"):
        return [Problem(None, None, "t", "missing or not a list of times")]
    sizes = {
        "N": shapes["t"][0],
        "N+1": shapes["t"][0] + 1,
        "K": (shapes.get("point_link") or (0,))[0],
        "P": len(record.patches),
        "n": n,
        "nv": 6 + n,
        "nq": 7 + n,
        "objects": len(record.objects),
    }
    problems = []
    if sizes["N"] == 0:
        problems.append(Problem(None, None, "t", "the run has no samples"))
    for name, symbols in SHAPES.items():
        expected = tuple(sizes[symbol] if isinstance(symbol, str) else symbol for symbol in symbols)
        if name not in shapes:
            if name not in (*OBJECT_ARRAYS, *OPTIONAL_ARRAYS) or (name in OBJECT_ARRAYS and record.objects):
                problems.append(Problem(None, None, name, "missing"))
        elif shapes[name] != expected:
            problems.append(Problem(None, None, name, f"has shape {shapes[name]}, expected {expected}"))
    return problems


def write_run(
    path: str | Path, record: RunRecord, arrays: dict[str, np.ndarray], timing: dict[str, np.ndarray]
) -> Path:
    """Write record and arrays of a run (see `Run.save`); the file gets its name only when it is complete."""
    path = file_path("save", path)
    is_directory = path.suffix != ".npz"
    check_writable(path, True, is_directory, "a name that ends in .npz, or a directory" if is_directory else "")
    if is_directory:
        path = path / RUN_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record.model_dump(mode="json"), allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    _write(path, {"meta": np.array(text), **arrays}, COMPRESSED | {"meta"})
    if timing:
        _write(_timing_path(path), dict(sorted(timing.items())), frozenset())
    return path


def read_run(path: Path) -> tuple[RunRecord, dict[str, np.ndarray]]:
    """Return record and arrays of a run file (see `mcplan.record.run.load_run`)."""
    if not os.path.isfile(path):
        raise RunError(Problem(str(path), None, "", "no such run"))
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(path, archive)
    except RunError:
        raise
    except _READ_ERRORS as error:
        raise RunError(Problem(str(path), None, "", f"not a run, or damaged: {error}")) from error


def load_timing(path: str | Path) -> dict[str, np.ndarray]:
    """Return the clock times of a run by name, s; empty if there are none.

    Parameters
    ----------
    path : the run, as for `mcplan.record.run.load_run`.
    """
    path = Path(path)
    path = _timing_path(path / RUN_NAME if path.is_dir() else path)
    if not path.is_file():
        return {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(path, archive)
            return {name: _array(archive, member, *_header(path, archive, member)) for name, member in members.items()}
    except RunError:
        raise
    except _READ_ERRORS as error:
        raise RunError(Problem(str(path), None, "", f"damaged: {error}")) from error


def _timing_path(path: Path) -> Path:
    """Return the path of the file of clock times that belongs to a run file."""
    return path.with_name(TIMING_NAME if path.name == RUN_NAME else f"{path.stem}.{TIMING_NAME}")


def _write(path: Path, arrays: dict[str, np.ndarray], compressed: frozenset[str]) -> None:
    with atomic_write(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(name + ".npy", _TIME_STAMP)
            member.create_system = 3  # the same bytes on every system
            member.compress_type = zipfile.ZIP_DEFLATED if name in compressed else zipfile.ZIP_STORED
            member._compresslevel = 1  # type: ignore[attr-defined]  # ZipInfo.compress_level from Python 3.13 on
            with archive.open(member, "w", force_zip64=True) as stream:
                array = np.ascontiguousarray(array) if array.ndim else array
                np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)


def _read(path: Path, archive: zipfile.ZipFile) -> tuple[RunRecord, dict[str, np.ndarray]]:
    members = _members(path, archive)
    array_names = {"meta", *SHAPES}
    problems = [Problem(str(path), None, name, "not an array of a run") for name in members if name not in array_names]
    if "meta" not in members:
        problems.append(Problem(str(path), None, "meta", "missing: this is not a run of mcplan"))
    if problems:
        raise RunError(*problems)
    record = _record(path, archive, members.pop("meta"))
    headers = {name: _header(path, archive, member) for name, member in members.items()}
    problems = [
        Problem(str(path), None, name, f"elements are {descr}, expected {dtype_of(name)}")
        for name, (descr, _) in headers.items()
        if descr != dtype_of(name)
    ]
    problems += [
        Problem(str(path), None, problem.key, problem.message)
        for problem in shape_problems(record, {name: shape for name, (_, shape) in headers.items()})
    ]
    if problems:
        raise RunError(*problems)
    return record, {name: _array(archive, member, *headers[name]) for name, member in members.items()}


def _members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name == member.filename or name in members:
            _raise_error(path, member.filename, "does not belong in a run")
        members[name] = member
    total = sum(member.file_size for member in members.values())
    if total > MAX_BYTES:
        _raise_error(path, "", f"announces {total / 2**30:.1f} GB, more than the limit of {MAX_BYTES >> 30} GB")
    return members


def _header(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[str, tuple[int, ...]]:
    """Return element type and shape of an array from its header; raise an error if they contradict its size."""
    with archive.open(member) as stream:
        header = stream.read(512)
    match = _HEADER.match(header)
    name = member.filename.removesuffix(".npy")
    if match is None:
        _raise_error(path, name, "has no NumPy header of version 1.0 with C order")
    descr = match["descr"].decode()
    shape = tuple(int(size) for size in match["shape"].replace(b",", b" ").split())
    length = 10 + int.from_bytes(match["length"], "little")
    if length != match.end():
        _raise_error(path, name, "has a NumPy header of the wrong length")
    size = int(np.dtype(descr).itemsize)
    for extent in shape:
        size *= extent
    if length + size != member.file_size:
        _raise_error(path, name, f"announces {size} bytes of shape {shape}, contains {member.file_size - length}")
    return descr, shape


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, descr: str, shape: tuple[int, ...]) -> np.ndarray:
    """Read an array whose header has been checked; the archive verifies the checksum at its end."""
    dtype = np.dtype(descr)
    array = np.empty(shape, dtype)
    with archive.open(member) as stream:
        stream.seek(member.file_size - array.nbytes)
        buffer, position = memoryview(array.reshape(-1).view(np.uint8)), 0  # type: ignore[arg-type]
        while position < array.nbytes:
            count = stream.readinto(buffer[position:])  # type: ignore[attr-defined]
            if not count:
                raise EOFError(f"{member.filename} ends early")
            position += count
        if stream.read(1):
            raise EOFError(f"{member.filename} is longer than its header says")
    if dtype == np.dtype(bool) and array.size and array.view(np.uint8).max() > 1:
        raise ValueError(f"{member.filename} has flags other than 0 and 1")
    return array


def _record(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> RunRecord:
    if member.file_size > MAX_META_BYTES:
        _raise_error(path, "meta", f"announces {member.file_size >> 20} MB")
    with archive.open(member) as stream:
        content = stream.read()
    match = _HEADER.match(content)
    if match is None or match["shape"].strip() or not match["descr"].startswith(b"<U"):
        _raise_error(path, "meta", "is not a text")
    try:
        text = content[match.end() :].decode("utf-32-le").rstrip("\0")
        data: Any = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        _raise_error(path, "meta", f"is not JSON: {error}")
    version = data.get("mcplan_run") if isinstance(data, dict) else None
    if version != 1:
        _raise_error(path, "meta.mcplan_run", f"format {version!r}; this mcplan reads format 1")
    try:
        return RunRecord.model_validate(data)
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            _raise_error(path, "meta", "is nested too deeply")
        raise RunError(
            *(
                Problem(str(path), None, ".".join(["meta", *map(str, item["loc"])]), item["msg"])
                for item in error.errors(include_url=False, include_input=False, include_context=False)
            )
        ) from error


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


def _raise_error(path: Path, key: str, message: str) -> NoReturn:
    raise RunError(Problem(str(path), None, key, message))
