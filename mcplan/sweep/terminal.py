"""The results on the terminal."""

from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from mcplan.sweep.compare import Comparison
from mcplan.sweep.expectation import Verdict
from mcplan.sweep.results import Results
from mcplan.sweep.tables import Table, tables_of

MOST_ROWS = 60


def print_results(results: Results, verdicts: Sequence[Verdict], comparison: Comparison | None = None) -> None:
    """Print tables, causes of failure, the comparison and the verdicts on standard output."""
    console = Console(width=None if Console().is_terminal else 200, highlight=False)
    for table in tables_of(results):
        _print(console, table)
    for cause, count in causes(results):
        console.print(Text(f"{count:5d} x {cause}"))
    if comparison is not None:
        _print(console, comparison.table)
        for line in (comparison.text(), *comparison.regressions[:MOST_ROWS]):
            console.print(Text(line))
    for verdict in verdicts:
        console.print(Text(f"{'pass' if verdict.passed else 'FAIL'}  {verdict.text}"))
    total = len(results.experiment)
    console.print(Text(f"{len(results)} of {total} cases in the table, {results.failed} failed"))


def causes(results: Results, most: int = 12) -> list[tuple[str, int]]:
    """Return what stopped cases, the most frequent first: the stage and the first line of the failure."""
    found = Counter(
        f"{row.get('scenario')}: {row.get('stage') or '?'}: {(row.get('failure') or '').splitlines()[0][:160]}"
        for row in results.rows
        if not row.get("success") and row.get("failure")
    )
    return found.most_common(most)


def _print(console: Console, table: Table) -> None:
    view = RichTable(title=table.title or None, box=SIMPLE_HEAD, title_justify="left")
    for name in table.header:
        view.add_column(Text(name), overflow="fold")
    for row in table.rows[:MOST_ROWS]:
        view.add_row(*map(Text, row))
    console.print(view)
    if len(table.rows) > MOST_ROWS:
        console.print(f"... and {len(table.rows) - MOST_ROWS} rows more: see the files")
