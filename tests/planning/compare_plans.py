"""Compare plan files of two folders, value by value: stances, postures, knots, times; names of keys may differ.

``python -m tests.planning.compare_plans BEFORE AFTER``; made by ``mcplan plan NAME -o FOLDER/NAME.plan.yaml`` of each
version on one machine. Exit status 1 when a plan differs or is missing.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcplan.document.document import read_document


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the values of a document with their paths, in the order of the file; knots are packed in text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from leaves(item, (*path, k))
    else:
        yield path, value


def difference(before: Path, after: Path) -> str:
    """Return the first difference between the stances of two plan files; empty when there is none."""
    one, other = (list(leaves(read_document(file).data["stances"])) for file in (before, after))
    if len(one) != len(other):
        return f"{len(one)} values before, {len(other)} after"
    for (path, old), (_, new) in zip(one, other, strict=True):
        if old != new:
            return f"{'.'.join(map(str, path))}: {old!r} before, {new!r} after"
    return ""


def main(before: Path, after: Path) -> int:
    """Print one line a plan; return the exit status."""
    worst = 0
    for file in sorted(before.glob("*.plan.yaml")):
        new = after / file.name
        found = difference(file, new) if new.exists() else "missing"
        worst |= bool(found)
        print(f"{file.name.removesuffix('.plan.yaml'):18s} {found or 'equal'}")
    return worst


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
