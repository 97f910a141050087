"""Resolution of names on the command line: files, directories, bundled robots and scenarios, runs.

All commands go through `find`, so that ``step``, ``step.plan``, ``step.plan.yaml``, ``runs/step`` and
``runs/step/run.npz`` mean the same everywhere.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from mcplan.document.file_kind import is_plan, is_tree_file
from mcplan.errors import InputError, Problem, either
from mcplan.util.bundled import ROBOTS, bundled_robots, bundled_scenarios
from mcplan.util.files import PACKAGE_URI
from mcplan.util.spelling import did_you_mean

RUNS = Path("runs")
"""Default directory of runs."""

ROBOT, SCENARIO, PLAN, RUN, TREE, EXPERIMENT = "robot", "scenario", "plan", "run", "search tree", "experiment"
"""Kinds of files and directories."""

URDF = "URDF"
"""Kind of the robot description that a robot.yaml refers to."""

URDFS = (".urdf", ".xml")
"""Suffixes of URDF files."""

HINTS = {
    (SCENARIO, RUN): "`mcplan run {name}` makes a run of it",
    (SCENARIO, PLAN): "`mcplan plan {name}` makes a plan of it",
    (PLAN, RUN): "`mcplan simulate {name}` makes a run of it",
    (EXPERIMENT, SCENARIO): "`mcplan sweep {name}` runs it",
    (RUN, EXPERIMENT): "`mcplan verify {name}` judges it",
    (SCENARIO, EXPERIMENT): "an experiment lists scenarios under `scenarios:` (experiments/README.md)",
    (ROBOT, SCENARIO): "a scenario names its robot: `robot: {name}` (stances/README.md)",
    (ROBOT, URDF): "it names one under `urdf:`",
}
"""Hint by (kind of the file, required kind): how to obtain the required file."""

ENDINGS = ("", ".yaml", ".yml", ".plan.yaml", ".tree.json", ".json", ".urdf", ".npz")
"""Suffixes that may be missing from a name."""


def kind_of(path: str | Path) -> str | None:
    """Return the kind of a file or directory by its suffix and content; None if unknown.

    Raises
    ------
    InputError
        A YAML file that cannot be read.
    """
    path = Path(path)
    if path.is_dir():
        return RUN if (path / "run.npz").is_file() else PLAN if (path / "plan.yaml").is_file() else None
    if not path.is_file():
        return None
    suffix = path.suffix.lower()
    if suffix in URDFS:
        return ROBOT
    if suffix == ".npz":
        return RUN
    if is_tree_file(path):
        return TREE
    if suffix in (".yaml", ".yml"):
        from mcplan.document.document import read_document  # slow import, not needed to answer a misspelt name

        document = read_document(path, collect=True)
        keys = document.data if isinstance(document.data, dict) else {}
        if "urdf" in keys:
            return ROBOT
        return EXPERIMENT if "scenarios" in keys else PLAN if is_plan(document) else SCENARIO
    return None


def find(name: str, *wanted: str, packages: Sequence[Path] = ()) -> Path:
    """Return the path of a name, of one of the required kinds.

    Parameters
    ----------
    wanted : required kinds.
    packages : folders searched for ``package://NAME`` of a robot before installed packages.

    Raises
    ------
    InputError
        Nothing has this name (with the closest one), or it is of another kind (with a command that converts it).
    """
    if not name:
        raise InputError(f"expected the name or path of {_with_article(wanted)}, not an empty text")
    if name.startswith(PACKAGE_URI) and ROBOT in wanted:
        from mcplan.robot.mesh_file import package_file

        return package_file(name, packages)
    other: tuple[Path, str] | None = None
    for path in _candidates(name, wanted):
        kind = kind_of(path)
        if kind in wanted:
            return path / "plan.yaml" if kind == PLAN and path.is_dir() else path
        if kind == RUN and path.is_dir() and PLAN in wanted and (path / "plan.yaml").is_file():
            return path / "plan.yaml"  # the plan of the run
        if kind is not None and other is None:
            other = path, kind
    if other is not None:
        hint = _conversion_hint(name, other[1], wanted)
        raise InputError(f"{name} is {_with_article((other[1],))}, expected {_with_article(wanted)}{hint}")
    path = Path(name)
    if path.exists():
        what = "a directory without run.npz" if path.is_dir() else "no file of mcplan"
        raise InputError(f"{name}: {what}; expected {_with_article(wanted)}")
    if len(path.parts) > 1 or path.suffix.lower() in (".yaml", ".yml", ".npz", ".urdf", ".xml", ".json"):
        message = f"there is no such file; expected {_with_article(wanted)}{did_you_mean(name, _siblings(path))}"
        raise InputError(Problem(name, None, "", message))
    known = _known_names(wanted)
    raise InputError(f"there is no {either(wanted)} `{name}`{did_you_mean(name, known) or _list_text(known)}")


def check_is_urdf(name: str) -> None:
    """Check that a file is a readable URDF and no mcplan file, before anything is overwritten.

    Raises
    ------
    InputError
        With the kind of the file, and a command that makes a URDF from it.
    """
    if name.startswith(PACKAGE_URI):
        return
    from mcplan.robot.urdf import read_bytes

    read_bytes(Path(name))
    if Path(name).suffix.lower() not in URDFS and (kind := kind_of(name)) is not None:
        hint = _conversion_hint(name, kind, (URDF,))
        raise InputError(f"{name} is {_with_article((f'{kind} file',))}, expected {_with_article((URDF,))}{hint}")


def _candidates(name: str, wanted: tuple[str, ...]) -> Iterator[Path]:
    """Yield candidate paths of a name: as given, bundled, a run by name, with a suffix added."""
    plain = len(Path(name).parts) == 1
    yield Path(name)
    if plain and RUN in wanted:
        yield RUNS / name
    if plain and name in bundled_scenarios():
        yield bundled_scenarios()[name]
    if plain and name in bundled_robots():
        yield ROBOTS / name / "robot.yaml"
    for ending in ENDINGS[1:]:
        yield Path(name + ending)
    if plain:
        yield RUNS / name


def _known_names(wanted: tuple[str, ...]) -> list[str]:
    """Return the names of all files and bundled items of the required kinds."""
    directory = Path()
    names = {
        ROBOT: list(bundled_robots()),
        SCENARIO: list(bundled_scenarios()),
        PLAN: [path.name for path in sorted(directory.glob("*.plan.yaml"))],
        RUN: [path.parent.name for path in sorted(RUNS.glob("*/run.npz"))],
        TREE: [path.name for path in sorted(directory.glob("*.tree.json"))],
        EXPERIMENT: [path.as_posix() for path in sorted(directory.glob("experiments/*.yaml"))],
    }
    return [name for kind in wanted for name in names[kind]]


def _siblings(path: Path) -> list[str]:
    """Return the files and directories beside a missing path."""
    return [sibling.as_posix() for sibling in sorted(path.parent.iterdir())] if path.parent.is_dir() else []


def _list_text(known: list[str]) -> str:
    """Return the list of known names, as the end of a message."""
    return f"; there are: {', '.join(known)}" if known else " (for another file give its path)"


def _conversion_hint(name: str, kind: str, wanted: tuple[str, ...]) -> str:
    """Return the command that converts a file to the required kind, as the end of a message."""
    hints = [HINTS[kind, target] for target in wanted if (kind, target) in HINTS]
    return f": {hints[0].format(name=name)}" if hints else ""


def _with_article(kinds: tuple[str, ...]) -> str:
    """Return the kinds with an article: ``a run or a plan``."""
    return ("an " if kinds[0][0] in "aeiou" else "a ") + either(kinds)
