"""Atomic file output: a crash or a full disk never leaves a partial file."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcplan.errors import InputError

PACKAGE_URI = "package://"
"""Begin of the name of a file in a package: ``package://NAME/path``."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file name beside ``path``; it replaces ``path`` at the end, or is deleted on failure.

    Several writers of the same file at once each have a separate temporary file: the last one to end wins. Missing
    parent directories are created. An OSError of the block without a file name (a full disk) gets the name ``path``.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # the process number alone is not unique: threads, and machines that share a disk, write too
    partial = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        yield partial
        os.replace(partial, target)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(partial)):
            error.filename = str(target)
        raise
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file (UTF-8) atomically."""
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8")


def check_writable(path: Path, force: bool, folder: bool = False, expected: str = "") -> None:
    """Check, before any work, that a path can be written.

    An existing file, or a directory that is not empty, is an error without ``force``. Missing parents are not created
    here; it is only checked that they can be.

    Parameters
    ----------
    folder : whether the path is that of a directory, otherwise of a file.
    expected : description of the path in the message; by default the name of a file or directory.

    Raises
    ------
    InputError
        The path is of the other kind, or exists, or lies in a file, or in a directory that cannot be written to.
    """
    if path.exists() and path.is_dir() != folder:
        found, wanted = ("a file", "a directory") if folder else ("a directory", "a file")
        raise InputError(f"{path}: is {found}; expected {expected or f'the name of {wanted}'}")
    occupied = path.exists() and (not folder or any(path.iterdir()))
    if occupied and not force:
        raise InputError(f"{path}: exists and is kept; choose another path, or overwrite it with --force")
    directory = path.absolute() if path.is_dir() else path.absolute().parent
    while not directory.exists():
        directory = directory.parent
    if not directory.is_dir():
        raise InputError(f"{path}: {directory} is a file, so nothing can be put into it")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{path}: the directory {directory} cannot be written to")
