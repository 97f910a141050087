"""Write the figures of a page of results from finished measurements, between the texts that stay.

    python docs/_ext/results_page.py PAGE table=runs/sweeps/table bench=bench.json pushes=pushes.jsonl

Each figure stands between two comments of the page, whose first names what it is made of::

    <!-- table: experiments/table.yaml -->      a sweep's directory, its tables as that experiment has them
    <!-- bench -->                              what `mcplan bench --json` printed
    <!-- pushes -->                             what `python -m tests.sim.push_recovery` wrote
    <!-- end -->

Below each stand commit and date. What is not named on the command line stays as it is. (`make results` calls this.)
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from mcplan.errors import InputError
from mcplan.sweep.columns import COLUMNS
from mcplan.sweep.experiment import Experiment, load_experiment
from mcplan.sweep.results import Results
from mcplan.sweep.statistics import wilson
from mcplan.sweep.store import Newest, Store
from mcplan.sweep.tables import Table, legend, tables_of

BLOCK = re.compile(r"(<!-- (\w+)(?:: (\S+))? -->\n)(.*?)(<!-- end -->)", re.DOTALL)
ROOT = Path(__file__).resolve().parents[2]


def rewritten(page: str, sources: dict[str, Path], root: Path = ROOT) -> str:
    """Return a page with those of its figures made anew whose source is given.

    Parameters
    ----------
    sources : by the word in the comment.
    root : from which the page names experiments.

    Raises
    ------
    InputError
        A source that the page has no place for, or that holds nothing.
    """
    places = [found[2] for found in BLOCK.finditer(page)]
    if missing := [name for name in sources if name not in places]:
        raise InputError(f"the page has no place for {', '.join(missing)}; it has: {', '.join(places) or 'none'}")

    def filled(found: re.Match[str]) -> str:
        name, argument = found[2], found[3]
        if name not in sources:
            return found[0]
        text = swept(sources[name], root / argument) if argument else MAKERS[name](sources[name])
        return f"{found[1]}\n{text.strip()}\n\n{found[5]}"

    return BLOCK.sub(filled, page)


def swept(directory: Path, file: Path) -> str:
    """Return the tables of a sweep's store, as its experiment asks for them."""
    experiment = load_experiment(file)
    with Store(directory, read_only=True) as store:
        newest = store.newest()
    results = Results(experiment, ordered(experiment, newest))
    parts = [worded(table) for table in tables_of(results)]
    if sentence := counted(results):
        parts.append(sentence + "\n")
    return "\n".join([*parts, f"{said(results)}; {origin(newest.finished, newest.commit)}. {legend(results)}\n"])


def ordered(experiment: Experiment, newest: Newest) -> tuple[dict, ...]:
    """Return rows in the order of the experiment's file: scenarios as listed there, then back ends, then seeds."""
    scenarios = list(dict.fromkeys(str(case.fields["scenario"]) for case in experiment.cases))
    if strange := sorted({str(row["scenario"]) for row in newest.rows} - set(scenarios)):
        raise InputError(f"the store has {', '.join(strange)}, which {experiment.name} does not")
    axes = {name: list(values) for name, values in experiment.spec.grid.items()}

    def place(row: dict) -> tuple:
        at = [axes[name].index(row[name]) if row.get(name) in axes[name] else 0 for name in axes]
        return scenarios.index(str(row["scenario"])), *at, row["seed"]

    return tuple(sorted(newest.rows, key=place))


def worded(table: Table) -> str:
    """Return a table with its columns in words and its scenarios as code; a sentence where it has no rows."""
    if not table.rows:
        return f"**{table.title}**: nothing.\n"
    header = []
    for name in table.header:
        unit = COLUMNS[name].unit if name in COLUMNS else ""
        header.append(name.replace("_", " ") + (f" ({unit})" if unit else ""))
    code = table.header[0] == "scenario"
    rows = tuple((f"`{row[0]}`" if code else row[0], *row[1:]) for row in table.rows)
    return Table(table.title, tuple(header), rows).markdown()


def counted(results: Results) -> str:
    """Return how many runs hold in each back end, where a sweep has several; scenarios count alike."""
    parts = []
    for physics in dict.fromkeys(row.get("simulation.physics") for row in results.rows):
        if physics is not None:
            mine = [bool(row.get("success")) for row in results.rows if row.get("simulation.physics") == physics]
            rate = wilson(sum(mine), len(mine))
            parts.append(f"{sum(mine)} of {len(mine)} in `{physics}` ({100 * rate.low:.0f}–{100 * rate.high:.0f} %)")
    return f"All scenarios together: {', '.join(parts)}." if parts else ""


def said(results: Results) -> str:
    """Return how many cases there are, on which seeds."""
    seeds = sorted({row["seed"] for row in results.rows})
    whole = seeds == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 2
    text = f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))
    return f"{len(results)} cases, seeds {text}"


def benched(file: Path) -> str:
    """Return the table of a benchmark."""
    data = json.loads(file.read_text(encoding="utf-8"))
    rows = []
    for row in data["rows"]:
        unit = "× real time" if row["unit"] == "x" else row["unit"]
        peer = "" if row["peer"] is None else f"{row['peer']:.3g}"
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        rows.append((row["group"], row["name"], f"{row['value']:.3g} {unit}", peer, ratio))
    machine = data["machine"]
    load = f"{machine['cores']} cores, load {machine['load_at_start']:.1f} to {machine['load_at_end']:.1f}"
    table = Table("", ("", "what", "mcplan", "peer", "ratio"), tuple(rows)).markdown()
    return f"{table}\n`mcplan bench`, {load}, Python {machine['python']}; {origin(file.stat().st_mtime)}.\n"


def pushed(file: Path) -> str:
    """Return what came of pushes."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    if not rows:
        raise InputError(f"{file}: no push has been carried out")
    ran = [row for row in rows if "exception" not in row]
    stood = sum(row["stopped"] is None for row in ran)
    rate = wilson(stood, len(rows))
    unsolved = sum(bool(row["qp_failures"]) for row in ran)
    return (
        f"Of {len(rows):,} pushes {stood:,} are recovered ({100 * rate.low:.1f}–{100 * rate.high:.1f} %), without a "
        f"step; {len(ran) - stood} fall, {len(rows) - len(ran)} end in an exception, and in {unsolved} "
        f"some program had no solution; {origin(file.stat().st_mtime)}.\n"
    )


MAKERS: dict[str, Callable[[Path], str]] = {"bench": benched, "pushes": pushed}


def origin(finished: float, commit: str = "", root: Path = ROOT) -> str:
    """Return commit and date of a measurement; where it does not say, the commit is the last one before it."""
    day = datetime.fromtimestamp(finished, UTC)
    if not commit:
        command = ["git", "-C", str(root), "log", "-1", f"--before={day.isoformat()}", "--format=%h"]
        commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return f"commit {commit or 'unknown'}, {day:%Y-%m-%d}"


def main(arguments: Sequence[str]) -> int:
    """Rewrite the page."""
    if len(arguments) < 2 or not all("=" in item for item in arguments[1:]):
        print(__doc__, file=sys.stderr)
        return 2
    page = Path(arguments[0])
    sources = {name: Path(place) for name, _, place in (item.partition("=") for item in arguments[1:])}
    try:
        text = rewritten(page.read_text(encoding="utf-8"), sources)
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    page.write_text(text, encoding="utf-8")
    print(f"{page}: {', '.join(sources)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
