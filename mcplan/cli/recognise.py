"""What a name on the command line means: a file, a directory, a bundled robot or scenario, a run by its name.

All commands go through `find`, so that ``step``, ``step.plan``, ``step.plan.yaml``, ``runs/step`` and
``runs/step/run.npz`` mean the same everywhere.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from mcplan.document.document import read_document
from mcplan.errors import InputError, Problem, either
from mcplan.planning.plan_file import is_plan
from mcplan.planning.search.tree import is_tree_file
from mcplan.robot.mesh_file import SCHEME, package_file
from mcplan.robot.robot_file import BUNDLED, bundled_robots
from mcplan.robot.urdf import read_bytes
from mcplan.scenario.load import bundled_scenarios
from mcplan.util.spelling import did_you_mean

RUNS = Path("runs")
"""Where runs are by default."""

ROBOT, SCENARIO, PLAN, RUN, TREE, EXPERIMENT = "robot", "scenario", "plan", "run", "search tree", "experiment"

URDF = "URDF"
"""Of a robot, the file that its robot file names."""

URDFS = (".urdf", ".xml")
"""Endings of these."""

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
"""From what something is to what a command takes instead: how the one becomes the other."""

ENDINGS = ("", ".yaml", ".yml", ".plan.yaml", ".tree.json", ".json", ".urdf", ".npz")
"""What may be left out at the end of a name."""


def kind_of(path: str | Path) -> str | None:
    """Return what a file or directory is by its ending and content, None where it is nothing of ours.

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
        document = read_document(path, collect=True)
        keys = document.data if isinstance(document.data, dict) else {}
        if "urdf" in keys:
            return ROBOT
        return EXPERIMENT if "scenarios" in keys else PLAN if is_plan(document) else SCENARIO
    return None


def find(name: str, *wanted: str, packages: Sequence[Path] = ()) -> Path:
    """Return the path of what a name means, of one of the kinds that are wanted.

    Parameters
    ----------
    packages : folders searched for ``package://NAME`` of a robot before installed packages.

    Raises
    ------
    InputError
        Nothing has this name (with the closest one), or it is of another kind (with a command that converts it).
    """
    if not name:
        raise InputError(f"expected the name or path of {_a(wanted)}, not an empty text")
    if name.startswith(SCHEME) and ROBOT in wanted:
        return package_file(name, packages)
    other: tuple[Path, str] | None = None
    for path in _candidates(name, wanted):
        kind = kind_of(path)
        if kind in wanted:
            return path / "plan.yaml" if kind == PLAN and path.is_dir() else path
        if kind == RUN and path.is_dir() and PLAN in wanted and (path / "plan.yaml").is_file():
            return path / "plan.yaml"  # what a run was made of
        if kind is not None and other is None:
            other = path, kind
    if other is not None:
        raise InputError(f"{name} is {_a((other[1],))}, expected {_a(wanted)}{_way(name, other[1], wanted)}")
    path = Path(name)
    if path.exists():
        what = "a directory without run.npz" if path.is_dir() else "no file of mcplan"
        raise InputError(f"{name}: {what}; expected {_a(wanted)}")
    if len(path.parts) > 1 or path.suffix.lower() in (".yaml", ".yml", ".npz", ".urdf", ".xml", ".json"):
        message = f"there is no such file; expected {_a(wanted)}{did_you_mean(name, _beside(path))}"
        raise InputError(Problem(name, None, "", message))
    known = _known(wanted)
    raise InputError(f"there is no {either(wanted)} `{name}`{did_you_mean(name, known) or _listed(known)}")


def refuse_other_than_urdf(name: str) -> None:
    """Refuse what cannot be read, or is a file of ours, where a URDF is wanted, before anything is written over.

    Raises
    ------
    InputError
        With the kind of the file, and a command that makes a URDF from it.
    """
    if name.startswith(SCHEME):
        return
    read_bytes(Path(name))
    if Path(name).suffix.lower() not in URDFS and (kind := kind_of(name)) is not None:
        raise InputError(f"{name} is {_a((f'{kind} file',))}, expected {_a((URDF,))}{_way(name, kind, (URDF,))}")


def _candidates(name: str, wanted: tuple[str, ...]) -> Iterator[Path]:
    """Yield places where a name may lead: as it stands, bundled, a run by name, with its ending left out."""
    plain = len(Path(name).parts) == 1
    yield Path(name)
    if plain and RUN in wanted:
        yield RUNS / name
    if plain and name in bundled_scenarios():
        yield bundled_scenarios()[name]
    if plain and name in bundled_robots():
        yield BUNDLED / name / "robot.yaml"
    for ending in ENDINGS[1:]:
        yield Path(name + ending)
    if plain:
        yield RUNS / name


def _known(wanted: tuple[str, ...]) -> list[str]:
    """Return the names that would have been understood."""
    here = Path()
    names = {
        ROBOT: list(bundled_robots()),
        SCENARIO: list(bundled_scenarios()),
        PLAN: [path.name for path in sorted(here.glob("*.plan.yaml"))],
        RUN: [path.parent.name for path in sorted(RUNS.glob("*/run.npz"))],
        TREE: [path.name for path in sorted(here.glob("*.tree.json"))],
        EXPERIMENT: [path.as_posix() for path in sorted(here.glob("experiments/*.yaml"))],
    }
    return [name for kind in wanted for name in names[kind]]


def _beside(path: Path) -> list[str]:
    """Return the files and directories beside a path that is not there."""
    return [each.as_posix() for each in sorted(path.parent.iterdir())] if path.parent.is_dir() else []


def _listed(known: list[str]) -> str:
    return f"; there are: {', '.join(known)}" if known else " (a file of your own: give its path)"


def _way(name: str, kind: str, wanted: tuple[str, ...]) -> str:
    """Return the command that converts something into the wanted kind, as the end of a message."""
    hints = [HINTS[kind, each] for each in wanted if (kind, each) in HINTS]
    return f": {hints[0].format(name=name)}" if hints else ""


def _a(kinds: tuple[str, ...]) -> str:
    return ("an " if kinds[0][0] in "aeiou" else "a ") + either(kinds)
