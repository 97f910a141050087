"""Report of an experiment: CSV, Parquet, Markdown tables, figures, one offline HTML page; summary in the terminal."""

import base64
import html
import platform
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from mcplan.sweep.axes import seeds_text
from mcplan.sweep.case import code_version, commit
from mcplan.sweep.compare import Comparison
from mcplan.sweep.condition import Verdict
from mcplan.sweep.figures import figures_of
from mcplan.sweep.results import Results, shown_value
from mcplan.sweep.store import write_file
from mcplan.sweep.tables import Table, legend, tables_of
from mcplan.version import __version__

MAX_PRINTED_ROWS = 60
"""Maximum number of rows of a table, and of regressions, in the terminal."""


def print_results(results: Results, verdicts: Sequence[Verdict], comparison: Comparison | None = None) -> None:
    """Print tables, causes of failure, the comparison and the verdicts on standard output."""
    console = Console(width=None if Console().is_terminal else 200, highlight=False)
    for table in tables_of(results):
        _print(console, table)
    for cause, count in causes(results):
        console.print(Text(f"{count:5d} x {cause}"))
    if comparison is not None:
        _print(console, comparison.table)
        for line in (comparison.text(), *comparison.regressions[:MAX_PRINTED_ROWS]):
            console.print(Text(line))
    for verdict in verdicts:
        console.print(Text(f"{'pass' if verdict.passed else 'FAIL'}  {verdict.text}"))
    total = len(results.experiment)
    console.print(Text(f"{len(results)} of {total} cases in the table, {results.failed} failed"))


def causes(results: Results, max_causes: int = 12) -> list[tuple[str, int]]:
    """Return the causes of failure (stage, first line of the message) with their counts, the most frequent first."""
    found = Counter(
        f"{row.get('scenario')}: {row.get('stage') or '?'}: {(row.get('failure') or '').splitlines()[0][:160]}"
        for row in results.rows
        if not row.get("success") and row.get("failure")
    )
    return found.most_common(max_causes)


def _print(console: Console, table: Table) -> None:
    view = RichTable(title=table.title or None, box=SIMPLE_HEAD, title_justify="left")
    for name in table.header:
        view.add_column(Text(name), overflow="fold")
    for row in table.rows[:MAX_PRINTED_ROWS]:
        view.add_row(*map(Text, row))
    console.print(view)
    if len(table.rows) > MAX_PRINTED_ROWS:
        console.print(f"... and {len(table.rows) - MAX_PRINTED_ROWS} rows more: see the files")


MAX_PAGE_CASES = 2000
"""Maximum number of cases that the page lists; the CSV has all of them."""

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1100px; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; }
caption { text-align: left; font-weight: 600; padding: .3em 0; }
th, td { border-bottom: 1px solid #ddd; padding: .2em .7em; text-align: left; vertical-align: top; }
th { background: #f4f4f2; }
img { max-width: 100%; }
pre { background: #f4f4f2; padding: .8em; overflow-x: auto; font-size: 13px; }
.fail { color: #b3261e; font-weight: 600; } .pass { color: #1b7f3b; }
.cases { max-height: 30em; overflow: auto; }
"""


def write_report(
    results: Results, verdicts: Sequence[Verdict], comparison: Comparison | None, directory: Path
) -> list[Path]:
    """Write the files of the report into a directory; return their paths."""
    texts = {"results.csv": results.csv(), "tables.md": _markdown(results)}
    pictures = {name: _png(figure) for name, figure in figures_of(results).items()}
    texts["report.html"] = _page(results, verdicts, comparison, pictures)
    for name, text in texts.items():
        write_file(directory / name, text.encode())
    for name, picture in pictures.items():
        write_file(directory / "figures" / f"{name}.png", picture)
    paths = [directory / name for name in texts] + [directory / "figures" / f"{name}.png" for name in pictures]
    if find_spec("pyarrow") is not None:
        results.write_parquet(directory / "results.parquet")
        paths.insert(1, directory / "results.parquet")
    return paths


def origin(results: Results) -> str:
    """Return the provenance of a table: version, commit or code hash, and seeds."""
    code = f"commit {commit()}" if commit() else f"code {code_version()}"
    return f"mcplan {__version__}, {code}, {seeds_text(results.experiment.spec)}"


def _markdown(results: Results) -> str:
    tables = "\n".join(table.markdown() for table in tables_of(results))
    return f"{tables}\n{len(results)} of {len(results.experiment)} cases; {origin(results)}. {legend(results)}\n"


def _page(
    results: Results, verdicts: Sequence[Verdict], comparison: Comparison | None, pictures: dict[str, bytes]
) -> str:
    experiment = results.experiment
    title = html.escape(experiment.name)
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{STYLE}</style><body>",
        f"<h1>{title}</h1><p>{html.escape(experiment.spec.question)}</p>",
        f"<p>{len(results)} of {len(experiment)} cases, {results.failed} failed; {html.escape(origin(results))}, "
        f"Python {platform.python_version()}, {html.escape(platform.platform())}.</p>",
    ]
    for verdict in verdicts:
        word = "pass" if verdict.passed else "fail"
        parts.append(f'<p><span class="{word}">{word.upper()}</span> {html.escape(verdict.text)}</p>')
    parts += [table.html() for table in tables_of(results)]
    parts.append(f"<p>{html.escape(legend(results))}</p>")
    for name, picture in pictures.items():
        data = base64.b64encode(picture).decode("ascii")
        parts.append(f'<p><img alt="{html.escape(name)}" src="data:image/png;base64,{data}"></p>')
    if comparison is not None:
        parts.append(f"<h2>Before and after</h2><p>{html.escape(comparison.text())}</p>{comparison.table.html()}")
        parts += [f'<p class="fail">{html.escape(text)}</p>' for text in comparison.regressions]
    failure_causes = causes(results)
    if failure_causes:
        rows = tuple((str(count), cause) for cause, count in failure_causes)
        parts.append(f"<h2>Causes of failure</h2>{Table('', ('cases', 'cause'), rows).html()}")
    parts.append(f'<h2>Cases</h2><div class="cases">{_cases(results).html()}</div>')
    parts.append(f"<h2>Experiment</h2><pre>{html.escape(experiment.document.text())}</pre></body></html>\n")
    return "\n".join(parts)


def _cases(results: Results) -> Table:
    columns = [*results.shown, *(() if "failure" in results.shown else ("failure",)), "case"]
    title = "" if len(results) <= MAX_PAGE_CASES else f"the first {MAX_PAGE_CASES}; all are in results.csv"
    rows = tuple(tuple(shown_value(row.get(name)) for name in columns) for row in results.rows[:MAX_PAGE_CASES])
    return Table(title, tuple(columns), rows)


def _png(figure) -> bytes:
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=130)
    return stream.getvalue()
