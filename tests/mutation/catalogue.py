"""The list of deliberate faults: what each one changes, and which tests are to notice it."""

import ast
import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import yaml

ROOT = Path(__file__).parents[2]
LISTS = Path(__file__).parent / "faults"
CORE = "mcplan/core/"
KEYS = ["id", "file", "find", "replace", "why", "tests"]


@dataclass(frozen=True)
class Fault:
    """A fault: ``replace`` instead of ``find``, which occurs once in ``file``; ``why`` says what is wrong then.

    ``tests`` are arguments of pytest, each a file or a folder, with what selects from it; nearest first.
    """

    area: str
    id: str
    file: str
    find: str
    replace: str
    why: str
    tests: tuple[str, ...]

    @property
    def compiled(self) -> bool:
        """Whether the kernels may run compiled: a fault in one would have all of them compiled again."""
        return not self.file.startswith(CORE)

    @property
    def digest(self) -> str:
        """Hash of what is changed, and where."""
        return hashlib.sha256(repr((self.file, self.find, self.replace)).encode()).hexdigest()[:16]

    def apply(self, text: str) -> str:
        """Return the text of the file with the fault in it."""
        return text.replace(self.find, self.replace)

    def problems(self, root: Path = ROOT) -> Iterator[str]:
        """Yield what keeps the fault from being one in this tree."""
        path = root / self.file
        if not path.is_file():
            yield f"there is no {self.file}{_elsewhere(root, self)}"
        else:
            text = path.read_text()
            count = text.count(self.find)
            if count != 1:
                yield f"occurs {count} times in {self.file}: {self.find!r}{'' if count else _elsewhere(root, self)}"
            else:
                yield from _differs(text, self.apply(text))
        for test in self.tests:
            if not (root / shlex.split(test)[0].partition("::")[0]).exists():
                yield f"there is no {test}"
        if not (self.why and self.tests):
            yield "says not what is wrong or which test is to notice it"


def _differs(before: str, after: str) -> Iterator[str]:
    """Yield what is wrong with two versions of a file that are to differ as programs."""
    try:
        part = _around(before, after)
        if len({re.sub(r"\s|  # .*", "", text) for text in part}) == 1:
            yield "changes nothing"
        ast.parse(part[1])
    except SyntaxError:  # the part that was cut out need not stand alone; the file has to
        try:
            ast.parse(after)
        except SyntaxError as error:
            yield f"is no Python: {error}"


def _around(before: str, after: str) -> list[str]:
    """Cut the definition around the first change out of two versions of a file: to parse all of it takes 5 ms."""
    pair = [text.splitlines() for text in (before, after)]
    first = next(k for k, (a, b) in enumerate(zip(*pair, strict=False)) if a != b)
    last = next(k for k, (a, b) in enumerate(zip(*map(reversed, pair), strict=False)) if a != b)
    start, depth = first, _depth(pair[0][first])
    while start and not (_depth(pair[0][start]) < depth and pair[0][start].lstrip().startswith(("def ", "class "))):
        start -= 1
    depth = _depth(pair[0][start])
    rest = range(len(pair[0]) - last, len(pair[0]))
    stop = next((k for k in rest if pair[0][k].strip() and _depth(pair[0][k]) <= depth), len(pair[0]))
    return [dedent("\n".join(lines[start : len(lines) - len(pair[0]) + stop])) for lines in pair]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _elsewhere(root: Path, fault: Fault) -> str:
    """Say in which other files the text of a fault is now."""
    found = [str(path.relative_to(root)) for path in root.glob("mcplan/**/*.py") if fault.find in path.read_text()]
    return f"; it is in {', '.join(found)}" if found else ""


def load(lists: Path = LISTS) -> list[Fault]:
    """Read all faults; the area is the name of the file that lists them."""
    faults = []
    for path in sorted(lists.glob("*.yaml")):
        for entry in yaml.load(path.read_text(), yaml.CSafeLoader):
            if list(entry) != KEYS:
                raise ValueError(f"{path.name}: {entry.get('id')} has the keys {list(entry)}, not {KEYS}")
            faults.append(Fault(path.stem, **entry | {"tests": tuple(entry["tests"])}))
    return faults


def check(faults: list[Fault], root: Path = ROOT) -> list[str]:
    """Return what is wrong with the list: faults that no longer apply, ids that two of them share."""
    ids = Counter(fault.id for fault in faults)
    twice = [f"{name}: there are {count} of this id" for name, count in ids.items() if count > 1]
    return twice + [f"{fault.id}: {problem}" for fault in faults for problem in fault.problems(root)]
