"""The file of a run: ``run.npz``, and ``timing.npz`` beside it; of ``NAME.npz`` that is ``NAME.timing.npz``.

An ordinary NumPy archive that ``numpy.load(path, allow_pickle=False)`` opens. It is written so that equal runs give
equal bytes (fixed order, fixed time stamps), and read with suspicion: names, sizes, types and shapes are all checked
against each other before the first array is read, because a file of 2 MB can announce arrays of 2 GB.
"""

import json
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
from mcplan.record.run import SHAPES, Run, dtype_of, shape_problems
from mcplan.util.arguments import file_path
from mcplan.util.files import check_writable, whole_file

RUN_NAME, TIMING_NAME = "run.npz", "timing.npz"

COMPRESSED = frozenset(SHAPES) - {"q", "v", "vd", "tau", "wrench", "com", "point_xyz", "point_force"}
"""Members worth deflating: indices, flags and arrays that are mostly zero. The others are full of digits: deflating
them takes ten times as long as storing them and saves a twentieth."""

MAX_BYTES = 4 << 30
"""Largest sum of array sizes that is read: ten hours of a humanoid at 1 kHz do not fit a laptop's memory anyway."""

MAX_META_BYTES = 256 << 20

_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)\{'descr': '(?P<descr>[<|=]?[a-zA-Z]\d+)', 'fortran_order': False, "
    rb"'shape': \((?P<shape>[\d, ]*)\), \} *\n",
    re.DOTALL,
)
_STAMP = (1980, 1, 1, 0, 0, 0)
_DAMAGE = (
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


def save_run(run: Run, path: str | Path) -> Path:
    """Write a run; equal runs give equal bytes.

    The file appears under its name only when it is complete.

    Parameters
    ----------
    path : a file name ending in ``.npz``, or a directory, which then gets ``run.npz`` (and is made if need be).

    Returns
    -------
    The path of the run's file. Clock times, if any, go to a file beside it: ``timing.npz`` or ``NAME.timing.npz``.

    Raises
    ------
    InputError
        A path that is none, of a file that is no run, or of what cannot be written.
    """
    path = file_path("save", path)
    folder = path.suffix != ".npz"
    check_writable(path, True, folder, "a name that ends in .npz, or a directory" if folder else "")
    if folder:
        path = path / RUN_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(run.record.model_dump(mode="json"), allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    _write(path, {"meta": np.array(text), **run.arrays()}, COMPRESSED | {"meta"})
    if run.timing:
        _write(_timing_path(path), dict(sorted(run.timing.items())), frozenset())
    return path


def load_run(path: str | Path) -> Run:
    """Read a run.

    Parameters
    ----------
    path : the file, or the directory that holds ``run.npz``.

    Raises
    ------
    RunError
        The file is missing, damaged, of another version, or not a run; the message says which and where.
    """
    path = file_path("load_run", path)
    if path.is_dir():
        path = path / RUN_NAME
    if not path.is_file():
        raise RunError(Problem(str(path), None, "", "no such run"))
    try:
        with zipfile.ZipFile(path) as archive:
            run = _read(path, archive)
    except RunError:
        raise
    except _DAMAGE as error:
        raise RunError(Problem(str(path), None, "", f"not a run, or damaged: {error}")) from error
    return run


def load_timing(path: str | Path) -> dict[str, np.ndarray]:
    """Clock times of a run by name, s; empty when none were kept.

    Parameters
    ----------
    path : that of the run, as for `load_run`.
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
    except _DAMAGE as error:
        raise RunError(Problem(str(path), None, "", f"damaged: {error}")) from error


def _timing_path(path: Path) -> Path:
    """Return the file of the clock times of the run in a file: each run of a directory has one of its own."""
    return path.with_name(TIMING_NAME if path.name == RUN_NAME else f"{path.stem}.{TIMING_NAME}")


def _write(path: Path, arrays: dict[str, np.ndarray], compressed: frozenset[str]) -> None:
    with whole_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(name + ".npy", _STAMP)
            member.create_system = 3  # the same bytes on every system
            member.compress_type = zipfile.ZIP_DEFLATED if name in compressed else zipfile.ZIP_STORED
            member._compresslevel = 1  # type: ignore[attr-defined]  # ZipInfo.compress_level from Python 3.13 on
            with archive.open(member, "w", force_zip64=True) as stream:
                array = np.ascontiguousarray(array) if array.ndim else array
                np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)


def _read(path: Path, archive: zipfile.ZipFile) -> Run:
    members = _members(path, archive)
    known = {"meta", *SHAPES}
    problems = [Problem(str(path), None, name, "not an array of a run") for name in members if name not in known]
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
    arrays = {name: _array(archive, member, *headers[name]) for name, member in members.items()}
    try:
        return Run(record, **arrays)  # type: ignore[arg-type]
    except RunError as error:
        raise RunError(*(Problem(str(path), None, p.key, p.message) for p in error.problems)) from error


def _members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name == member.filename or name in members:
            _refuse(path, member.filename, "does not belong into a run")
        members[name] = member
    total = sum(member.file_size for member in members.values())
    if total > MAX_BYTES:
        _refuse(path, "", f"announces {total / 2**30:.1f} GB, more than the {MAX_BYTES >> 30} GB that are read")
    return members


def _header(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[str, tuple[int, ...]]:
    """Element type and shape that a member announces, once they agree with the member's size."""
    with archive.open(member) as stream:
        start = stream.read(512)
    match = _HEADER.match(start)
    name = member.filename.removesuffix(".npy")
    if match is None:
        _refuse(path, name, "has no NumPy header of version 1.0 with C order")
    descr = match["descr"].decode()
    shape = tuple(int(size) for size in match["shape"].replace(b",", b" ").split())
    length = 10 + int.from_bytes(match["length"], "little")
    if length != match.end():
        _refuse(path, name, "has a NumPy header of the wrong length")
    size = int(np.dtype(descr).itemsize)
    for extent in shape:
        size *= extent
    if length + size != member.file_size:
        _refuse(path, name, f"announces {size} bytes of shape {shape}, holds {member.file_size - length}")
    return descr, shape


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, descr: str, shape: tuple[int, ...]) -> np.ndarray:
    """Read a member whose header has been checked; the archive checks the CRC at its end."""
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
            raise EOFError(f"{member.filename} does not end where it says")
    if dtype == np.dtype(bool) and array.size and array.view(np.uint8).max() > 1:
        raise ValueError(f"{member.filename} holds flags other than 0 and 1")
    return array


def _record(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> RunRecord:
    if member.file_size > MAX_META_BYTES:
        _refuse(path, "meta", f"announces {member.file_size >> 20} MB")
    with archive.open(member) as stream:
        content = stream.read()
    match = _HEADER.match(content)
    if match is None or match["shape"].strip() or not match["descr"].startswith(b"<U"):
        _refuse(path, "meta", "is not a text")
    try:
        text = content[match.end() :].decode("utf-32-le").rstrip("\0")
        data: Any = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        _refuse(path, "meta", f"is not JSON: {error}")
    version = data.get("mcplan_run") if isinstance(data, dict) else None
    if version != 1:
        _refuse(path, "meta.mcplan_run", f"format {version!r}; this mcplan reads format 1")
    try:
        return RunRecord.model_validate(data)
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            _refuse(path, "meta", "is nested too deeply")
        raise RunError(
            *(
                Problem(str(path), None, ".".join(["meta", *map(str, item["loc"])]), item["msg"])
                for item in error.errors(include_url=False, include_input=False, include_context=False)
            )
        ) from error


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


def _refuse(path: Path, key: str, message: str) -> NoReturn:
    raise RunError(Problem(str(path), None, key, message))
