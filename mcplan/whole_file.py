"""Files that are written whole or not at all: a reader, a crash or a full disk never leaves half of one."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the name of a file beside ``path``, which takes its place when the block ends and is gone when it fails.

    Of several who write the same file at once each has a file of its own: the last to end is who wrote it. Directories
    that lead there are made. An OSError of the block that names no file, as of a write to a full disk, names ``path``.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # the process alone is not enough: threads, and machines that share a disk
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
    """Write a text file (UTF-8), whole or not at all."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
