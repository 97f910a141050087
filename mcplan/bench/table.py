"""The report as a table on the terminal."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from mcplan.bench.growth import linearity
from mcplan.bench.report import BenchReport, Row

COLOURS = {"aim": "green", "ok": "green", "short": "red"}
WIDTH = 80
"""Columns when the output is no terminal."""


def render(report: BenchReport) -> Group:
    """Return the table, what the figures are, and what is wrong."""
    look: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": 0, "pad_edge": False}  # fits 80 columns
    table = Table(title=_title(report), title_justify="left", header_style="bold", **look)
    for name, justify in (
        ("what", "left"), ("mcplan", "right"), ("peer", "right"), ("ratio", "right"), ("least", "right"),
        ("aim", "right"), ("", "left"),
    ):  # fmt: skip
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    group = ""
    for row in report.rows:
        if row.group != group:
            group = row.group
            table.add_section()
            table.add_row(Text(group, style="bold"))
        table.add_row(*_cells(row))
    notes = [f"growth with bodies: within {100 * linearity(report.bodies_us):.0f} % of a straight line"]
    for name, found in report.agreement.items():
        notes.append(
            f"first tick, {name}: accelerations within {found.acceleration:.1e} of TSID's, torques {found.torque:.1e}"
        )
    failures = [Text(f"FAILED: {text}", style="bold red") for text in report.failures]
    return Group(table, *(Text(note) for note in notes), *failures)


def show(report: BenchReport) -> None:
    """Print the report."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print(render(report))


def _title(report: BenchReport) -> str:
    m = report.machine
    peers = "TSID, Pinocchio" if report.tsid else "no peers (--peers DIR)"
    return (
        f"medians of {report.settings.rounds} rounds; µs; {m['cores']} cores, "
        f"load {m['load_at_start']:.1f} to {m['load_at_end']:.1f}; {peers}"
    )


def _cells(row: Row) -> list[Text]:
    bounds = ["" if bound is None else f"{bound:g}" for bound in (row.required, row.aim)]
    return [
        Text("  " + row.name),
        Text(_figure(row.value) + (" x" if row.unit == "x" else "")),
        Text("" if row.peer is None else _figure(row.peer)),
        Text("" if row.ratio is None else f"{row.ratio:.2f}"),
        *(Text(bound) for bound in bounds),
        Text(row.verdict, style=COLOURS.get(row.verdict, "")),
    ]


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"
