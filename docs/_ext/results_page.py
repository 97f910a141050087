"""Generator of the measured results in pages: it replaces the blocks between marked comments.

    python docs/_ext/results_page.py docs/results.md README.md table=runs/sweeps/table bench=bench.json

Each block is between two comments of a page; the first comment names its source::

    <!-- table: experiments/table.yaml -->      all tables of the experiment, from the store of a sweep
    <!-- table: experiments/table.yaml, What broke, ... -->     only the tables with these titles, without title; rows
                                           that differ only in the scenario are merged
    <!-- table: experiments/table.yaml, in a sentence -->       no table, only the number of successful cases
    <!-- pace: experiments/pace.yaml, in a sentence by control.pace -->     the same for each value of a field
    <!-- bench -->                              output of `mcplan bench --json`
    <!-- pushes -->                             output of `python -m tests.sim.push_recovery`
    <!-- walking -->, <!-- dynamic -->          its output for a walking robot, with and without a rest on each foot
    <!-- jumps -->                              output of `python -m tests.sim.torque_jumps`
    <!-- laws -->                               output of `python -m tests.planning.measure_retiming`
    <!-- faults -->                             output of `python -m tests.mutation.campaign`
    <!-- end -->

Commit and date follow each block. From a sweep's store only rows of the newest code version are used, for any seeds.
Blocks without a source on the command line stay unchanged. (`make results` calls this.)
"""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from mcplan.errors import InputError
from mcplan.sweep.columns import COLUMNS, with_flags
from mcplan.sweep.experiment import Experiment, load_experiment
from mcplan.sweep.results import Results, Row, groups
from mcplan.sweep.store import Store
from mcplan.sweep.tables import Table, legend, tables_of, wilson

BLOCK = re.compile(
    r"(<!-- (\w+)(?:: ([^,\n]+?)(?:, ([^\n]+?))?)? -->\n)(?P<figures>(?:(?!<!--).)*)(<!-- end -->)", re.DOTALL
)
SENTENCE = "in a sentence"
INTERVALS = "Rates with 95 % Wilson intervals."
ROOT = Path(__file__).resolve().parents[2]


def rewritten(page: str, sources: dict[str, Path], root: Path = ROOT) -> str:
    """Return a page with the blocks of the given sources replaced.

    Parameters
    ----------
    sources : by the word in the comment.
    root : directory of the experiment paths in the page.

    Raises
    ------
    InputError
        A source is empty, or the experiment lacks a table.
    """

    def filled(found: re.Match[str]) -> str:
        name, argument, titles = found[2], found[3], found[4]
        if name not in sources:
            return found[0]
        text = swept(sources[name], root / argument, titles) if argument else MAKERS[name](sources[name])
        return f"{found[1]}\n{text.strip()}\n\n{found[6]}"

    return BLOCK.sub(filled, page)


def places(page: str) -> list[str]:
    """Return the words in the block comments of a page."""
    return [found[2] for found in BLOCK.finditer(page)]


@cache
def experiment_at(file: Path) -> Experiment:
    """Return an experiment, loaded once; packages of its runs need not be installed here."""
    return load_experiment(file, elsewhere=True)


def swept(directory: Path, file: Path, titles: str | None = None) -> str:
    """Return the experiment's tables from a sweep's store: all, or those with these titles."""
    experiment = experiment_at(file)
    with Store(directory, read_only=True) as store:
        newest = store.newest()
    if strange := sorted({str(row["scenario"]) for row in newest.rows} - set(experiment.scenarios)):
        raise InputError(f"the store has {', '.join(strange)}, which {experiment.name} does not")
    results = Results(experiment, ordered(experiment, own_rows(experiment, newest.rows, directory)))
    form, _, by = (titles or "").partition(" by ")
    tables = chosen(tables_of(results), SENTENCE if form == SENTENCE else titles)
    parts = [worded(table) if titles is None else worded(gathered(table)) for table in tables]
    parts.append(counted(results, by if form == SENTENCE else "") + ("\n" if titles is None else ""))
    end = f"{extent(results)}; {origin(newest.finished, newest.commit)}."
    return "\n".join([*parts, f"{end} {legend(results) if titles is None else INTERVALS}\n"])


def gathered(table: Table) -> Table:
    """Return a table without its title, whose rows name all scenarios of which they say the same."""
    rows: dict[tuple, list[str]] = {}
    for name, *cells in table.rows:
        rows.setdefault(tuple(cells), []).append(name)
    return Table("", table.header, tuple(("`, `".join(names), *cells) for cells, names in rows.items()))


def chosen(tables: Sequence[Table], titles: str | None) -> list[Table]:
    """Return those of the tables that a page asks for."""
    if titles is None or titles == SENTENCE:
        return [] if titles else list(tables)
    by_title = {table.title: table for table in tables}
    asked = titles.split(", ")
    if missing := [title for title in asked if title not in by_title]:
        raise InputError(f"no table is called {', '.join(missing)}; there are: {', '.join(by_title)}")
    return [by_title[title] for title in asked]


def own_rows(experiment: Experiment, rows: Sequence[Row], directory: Path) -> list[Row]:
    """Return those rows of a store that are of cases of the experiment on the seeds that are there.

    A row is known by its configuration. Where none of a scenario has one of the experiment's, the scenario or its robot
    has changed since its cases were run; they are taken as they are then, unless two say that they are the same case.
    """
    seeds = tuple(sorted({row["seed"] for row in rows}))
    there = replace(experiment, spec=experiment.spec.model_copy(update={"seeds": seeds}))
    known = {case.configuration for case in there.cases}
    as_asked = {str(row["scenario"]) for row in rows if row["configuration"] in known}
    if changed := [row for row in rows if str(row["scenario"]) not in as_asked]:
        given = Counter(json.dumps([row.get(name) for name in experiment.fields]) for row in changed)
        if most := [fields for fields, count in given.items() if count > 1]:
            text = f"the store mixes several configurations of {most[0]}, and none is one of {experiment.name}"
            raise InputError(f"{directory}: {text}")
        names = ", ".join(dict.fromkeys(str(row["scenario"]) for row in changed))
        text = f"made of other scenarios, robots or settings than {experiment.name} has"
        print(f"{directory}: {text}: {names}", file=sys.stderr)
    own = [row for row in rows if row["configuration"] in known or str(row["scenario"]) not in as_asked]
    if others := Counter(str(row["scenario"]) for row in rows) - Counter(str(row["scenario"]) for row in own):
        counts = ", ".join(f"{count} of {name}" for name, count in others.items())
        print(f"{directory}: left out, as {experiment.name} has no such configuration: {counts}", file=sys.stderr)
    return [with_flags(row, experiment.spec.steps) for row in own]


def ordered(experiment: Experiment, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows in the order of the experiment's file: scenarios as listed there, then back ends, then seeds."""
    scenarios = list(experiment.scenarios)
    axes = {name: list(values) for name, values in experiment.spec.grid.items()}

    def place(row: dict) -> tuple:
        at = [axes[name].index(row[name]) if row.get(name) in axes[name] else 0 for name in axes]
        return scenarios.index(str(row["scenario"])), *at, row["seed"]

    return tuple(sorted(rows, key=place))


def worded(table: Table) -> str:
    """Return a table with readable column names and scenarios as code; a sentence if it has no rows."""
    if not table.rows:
        return f"**{table.title}**: nothing.\n"
    header = []
    for name in table.header:
        unit = COLUMNS[name].unit if name in COLUMNS else ""
        header.append(name.replace("_", " ") + (f" ({unit})" if unit else ""))
    code = table.header[0] == "scenario"
    rows = tuple((f"`{row[0]}`" if code else row[0], *row[1:]) for row in table.rows)
    return Table(table.title, tuple(header), rows).markdown()


def counted(results: Results, by: str = "") -> str:
    """Return the success rate in each back end, or of plans found and certified, over all scenarios.

    ``by``: a field; one rate for each of its values.
    """
    if not by:
        return f"All scenarios together: {together(results.rows)}."
    parts = (f"at `{value}` {together(rows)}" for (value,), rows in groups(results.rows, [by]).items())
    return f"All scenarios together: {'; '.join(parts)}."


def together(rows: Sequence[Row]) -> str:
    """Return the success rates of rows as text."""
    runs: dict[str, list[bool]] = {}
    for row in rows:
        if (physics := row.get("simulation.physics")) is not None:
            runs.setdefault(f"in `{physics}`", []).append(bool(row.get("success")))
    if not runs:
        runs = {name: [bool(row.get(name)) for row in rows] for name in ("planned", "certified")}
    return ", ".join(rated(good, where, 0) for where, good in runs.items())


def rated(good: Sequence[bool], where: str, digits: int) -> str:
    """Return a success rate with its confidence interval as text."""
    rate = wilson(sum(good), len(good))
    return f"{sum(good)} of {len(good)} {where} ({100 * rate.low:.{digits}f}–{100 * rate.high:.{digits}f} %)"


def extent(results: Results) -> str:
    """Return the number of cases and their seeds as text."""
    seeds = sorted({row["seed"] for row in results.rows})
    whole = seeds == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 2
    text = f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))
    return f"{len(results)} cases, seeds {text}"


def benched(file: Path) -> str:
    """Return the table of a benchmark."""
    data = json.loads(file.read_text(encoding="utf-8"))
    rows = []
    for row in data["rows"]:
        value, unit = row["value"], "× real time" if row["unit"] == "x" else row["unit"]
        if unit == "µs" and value >= 1000.0 and row["peer"] is None:
            value, unit = value / 1000.0, "ms"
        peer = "" if row["peer"] is None else f"{row['peer']:.3g}"
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        rows.append((row["group"], row["name"], f"{value:.3g} {unit}", peer, ratio))
    machine = data["machine"]
    load = f"{machine['cores']} cores, load {machine['load_at_start']:.1f} to {machine['load_at_end']:.1f}"
    table = Table("", ("", "what", "mcplan", "peer", "ratio"), tuple(rows)).markdown()
    return f"{table}\n`mcplan bench`, {load}, Python {machine['python']}; {origin(file.stat().st_mtime)}.\n"


def lines_of(file: Path, nothing: str) -> list[dict]:
    """Return the lines of a file, each a JSON object; ``nothing`` is the message for an empty file."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    if not rows:
        raise InputError(f"{file}: {nothing}")
    return rows


def pushed(file: Path) -> str:
    """Return the results of pushes as text."""
    rows = lines_of(file, "no push has been simulated")
    ran = [row for row in rows if "exception" not in row]
    stood = sum(row["stopped"] is None for row in ran)
    stepped = sum(row["stopped"] is None and row["steps"] > 0 for row in ran)
    rate = wilson(stood, len(rows))
    unsolved = sum(bool(row["qp_failures"]) for row in ran)
    return (
        f"Of {len(rows):,} pushes {stood:,} are recovered ({100 * rate.low:.1f}–{100 * rate.high:.1f} %), {stepped} of "
        f"them by a step; {len(ran) - stood} fall, {len(rows) - len(ran)} end in an exception, and in {unsolved} "
        f"some program had no solution; {origin(file.stat().st_mtime, rows[-1].get('commit'))}.\n"
    )


def walked(file: Path) -> str:
    """Return the results of pushes on a walking robot, by back end, as text."""
    rows = lines_of(file, "no push has been simulated")
    stood: dict[str, list[bool]] = {}
    for row in rows:
        stood.setdefault(row["physics"], []).append("exception" not in row and row["stopped"] is None)
    parts = [rated(good, f"in `{physics}`", 1) for physics, good in stood.items()]
    paces = ", ".join(f"`{pace}`" for pace in sorted({str(row["pace"]) for row in rows}))
    end = origin(file.stat().st_mtime, rows[-1]["commit"])
    return f"At {paces} are recovered {' and '.join(parts)}; {end}.\n"


def jumped(file: Path) -> str:
    """Return how far torques and forces jump, by scenario and back end."""
    rows = lines_of(file, "no run has been looked at")
    header = ("scenario", "pace", "physics", "torque (N m)", "in", "force (N)", "holds")
    cells = []
    for row in rows:
        where = f"{row['phase']}, t = {row['t']:.2f} s"
        measured = (f"{row['torque']:.2f}", where, f"{row['force']:.0f}", "yes" if row["holds"] else "no")
        cells.append((f"`{row['scenario']}`", f"`{row['pace']}`", row["physics"], *measured))
    end = origin(file.stat().st_mtime, rows[-1]["commit"])
    return f"{Table('', header, tuple(cells)).markdown()}\n{end}.\n"


def timed(file: Path) -> str:
    """Return what laws of time cost, and how near they are to those of the program as it is declared."""
    rows = lines_of(file, "no law of time has been measured")
    header = ("scenario", "pace", "transitions", "median (ms)", "most (ms)", "of planning", "off the declared program")
    cells = []
    for row in rows:
        found = ("no plan", *4 * "–")
        if row["transitions"]:
            costs = f"{row['median']:.1f}", f"{row['most']:.1f}", f"{100 * row['part']:.1f} %"
            found = (f"{row['transitions']}", *costs, f"{row['difference']:.0e}")
        cells.append((f"`{row['scenario']}`", f"`{row['pace']}`", *found))
    end = origin(file.stat().st_mtime, rows[-1]["commit"])
    laws = sum(row["laws"] for row in rows)
    return f"{Table('', header, tuple(cells)).markdown()}\n{laws:,} laws; {end}.\n"


def noticed(file: Path) -> str:
    """Return how many deliberate faults of each area the tests have noticed, in the tree that was looked at last."""
    rows = [row for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()) if "id" in row]
    if not rows:
        raise InputError(f"{file}: no fault has been judged")
    last = {row["id"]: row for row in rows if row["tree"] == rows[-1]["tree"]}
    areas: dict[str, list[bool]] = {}
    for row in last.values():
        areas.setdefault(row["area"], []).append(row["outcome"] not in ("survived", "not judged"))
    counts = [(area, f"{sum(caught)}", f"{len(caught)}") for area, caught in areas.items()]
    counts.append(("all", f"{sum(map(sum, areas.values()))}", f"{len(last)}"))
    table = Table("", ("faults in", "noticed", "of"), tuple(counts)).markdown()
    return f"{table}\n{origin(file.stat().st_mtime, rows[-1]['commit'])}.\n"


MAKERS: dict[str, Callable[[Path], str]] = {
    "bench": benched,
    "pushes": pushed,
    "walking": walked,
    "dynamic": walked,
    "jumps": jumped,
    "laws": timed,
    "faults": noticed,
}


def origin(finished: float, commit: str = "", root: Path = ROOT) -> str:
    """Return commit and date of a measurement; where it does not say, the commit is the last one before it."""
    day = datetime.fromtimestamp(finished, UTC)
    if not commit:
        command = ["git", "-C", str(root), "log", "-1", f"--before={day.isoformat()}", "--format=%h"]
        commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return f"commit {commit or 'unknown'}, {day:%Y-%m-%d}"


def main(arguments: Sequence[str]) -> int:
    """Rewrite the pages."""
    pages = [Path(item) for item in arguments if "=" not in item]
    sources = {name: Path(place) for name, eq, place in (item.partition("=") for item in arguments) if eq}
    if not pages or not sources:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        texts = [page.read_text(encoding="utf-8") for page in pages]
        there = [place for text in texts for place in places(text)]
        if missing := [name for name in sources if name not in there]:
            raise InputError(f"no page has a place for {', '.join(missing)}; there are: {', '.join(there) or 'none'}")
        made = [rewritten(text, sources) for text in texts]
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    for page, text in zip(pages, made, strict=True):
        page.write_text(text, encoding="utf-8")
    print(f"{', '.join(map(str, pages))}: {', '.join(sources)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
