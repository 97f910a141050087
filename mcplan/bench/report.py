"""Benchmark report as JSON and as a table on the terminal: measured values, values of peers, and targets."""

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from mcplan.bench.growth import linearity
from mcplan.bench.kernels import STATICS
from mcplan.bench.peers import TOLERANCE, Agreement
from mcplan.bench.settings import BenchSettings
from mcplan.version import __version__

FORMAT = 1
"""Version of the JSON format."""

KERNEL_RATIOS = {
    "mass_matrix": 2.0,
    "inverse_dynamics": 2.0,
    "nonlinear_effects": 2.0,
    "kinematics_and_jacobians": 3.0,
    "momentum_matrix": 3.0,
    "frame_jacobian": None,
    "forward_dynamics": None,
    "all_terms": None,
}
"""Required ratio of mcplan's time to the peer's, by kernel in the order of the table; None: no requirement."""

BATCH_RATIOS = {"1": (0.9, 0.7), "2": (0.5, 0.36)}
"""Required and target ratio of a batch's time to that of a loop of the peer, by number of cores."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Parameters
    ----------
    group, name : of the measurement.
    value, unit : measured value of mcplan.
    peer : value of the peer, in the same unit; None: no peer.
    judged : what is compared with the bounds: the ``ratio`` of mcplan's value to the peer's, or the ``value`` itself.
    required, aim : required bound, and target; upper bounds, unless ``larger_is_better``; None: no bound.
    """

    group: str
    name: str
    value: float
    unit: str = "µs"
    peer: float | None = None
    judged: str = "ratio"
    required: float | None = None
    aim: float | None = None
    larger_is_better: bool = False

    @property
    def ratio(self) -> float | None:
        """Ratio of mcplan's value to the peer's."""
        return None if self.peer is None else self.value / self.peer

    @property
    def verdict(self) -> str:
        """``aim`` (target reached), ``ok`` (requirement met) or ``short``; empty without a bound or peer."""
        judged_value = self.ratio if self.judged == "ratio" else self.value
        if judged_value is None or self.required is None:
            return ""
        sign = -1.0 if self.larger_is_better else 1.0
        if self.aim is not None and sign * judged_value <= sign * self.aim:
            return "aim"
        return "ok" if sign * judged_value <= sign * self.required else "short"


def describe_machine(load_at_start: float) -> dict[str, Any]:
    """Return processor, cores, load, Python version and BLAS threads of this machine."""
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "load_at_start": load_at_start,
        "load_at_end": os.getloadavg()[0],
        "python": platform.python_version(),
        "openblas_num_threads": os.environ.get("OPENBLAS_NUM_THREADS"),
    }


@dataclass(frozen=True)
class BenchReport:
    """Results of the benchmark: medians over the rounds, times in µs.

    Parameters
    ----------
    machine, settings : the machine (see `describe_machine`), and the sizes of the measurement.
    tick_compiled, tick_plain : reference tick: ``tick_us``, ``tick_p99_us``, ``parts_us``.
    kernels_us, statics_us : time per call by name.
    batch_us : time per configuration by name and number of cores.
    bodies_us, contacts_us : inverse dynamics by number of bodies; compiled tick by number of contact points.
    closed_loop, contact_loop : simulation in ``qp`` and in ``contact``: ``factor`` (simulated time / clock time),
        ``tick_p999_us``, ``parts_us``.
    contact_step : one physics step of standing HRP-2 by back end: ``contact``, and ``mujoco`` if it is installed.
    planning_s, plan_ticks_us, commands_s : CPU time of planning (s), of a tick of a plan in ``contact`` (µs), and of
        commands (s), by name.
    tsid, pinocchio : results of the peers; None if they were not measured.
    others : results of other packages by name.
    agreement : difference from TSID's first tick, by form of the tick.
    """

    machine: dict[str, Any]
    settings: BenchSettings
    tick_compiled: dict[str, Any]
    tick_plain: dict[str, Any]
    kernels_us: dict[str, float]
    batch_us: dict[str, dict[str, float]]
    statics_us: dict[str, float]
    bodies_us: dict[str, float]
    contacts_us: dict[str, float]
    closed_loop: dict[str, Any]
    contact_loop: dict[str, Any]
    contact_step: dict[str, float]
    planning_s: dict[str, float]
    plan_ticks_us: dict[str, float]
    commands_s: dict[str, float]
    tsid: dict[str, Any] | None = None
    pinocchio: dict[str, Any] | None = None
    others: dict[str, Any] = field(default_factory=dict)
    agreement: dict[str, Agreement] = field(default_factory=dict)

    @property
    def failures(self) -> list[str]:
        """Messages for wrong results; slow results are not failures."""
        return [
            f"first tick, {name}: accelerations differ from TSID's by {entry.acceleration:.2e} relative, "
            f"allowed {TOLERANCE:g}"
            for name, entry in self.agreement.items()
            if not entry.holds
        ]

    @property
    def rows(self) -> list[Row]:
        """All rows of the table."""
        parts = [self._ticks(), self._kernels(), self._batches(), self._statics(), self._loop(), self._waiting()]
        return [row for part in [*parts, self._growth()] for row in part]

    def _ticks(self) -> Iterator[Row]:
        group, ours, plain = "reference tick", self.tick_compiled, self.tick_plain
        theirs = self.tsid or {}
        yield Row(group, "compiled", ours["tick_us"], peer=theirs.get("tick_us"), required=1.0, aim=0.5)
        yield Row(group, "compiled, 99th percentile", ours["tick_p99_us"], peer=theirs.get("tick_p99_us"))
        for name, us in ours["parts_us"].items():
            yield Row(group, f"compiled: {name}", us)
        yield Row(group, "plain problem.solve()", plain["tick_us"], judged="value", required=2000.0, aim=1200.0)

    def _kernels(self) -> Iterator[Row]:
        theirs = (self.pinocchio or {}).get("kernels_us", {})
        for name, required in KERNEL_RATIOS.items():
            aim = None if required is None else 1.0
            yield Row("per call", name, self.kernels_us[name], peer=theirs.get(name), required=required, aim=aim)
            for other, result in self.others.items():
                if name in result["kernels_us"]:
                    yield Row("per call", f"{name}, {other}", self.kernels_us[name], peer=result["kernels_us"][name])

    def _batches(self) -> Iterator[Row]:
        theirs = (self.pinocchio or {}).get("batch_us", {})
        for cores, (required, aim) in BATCH_RATIOS.items():
            group = f"batch of {self.settings.batch}, {cores} core{'s' if cores != '1' else ''}"
            for name, entry in self.batch_us.items():
                if cores in entry:  # some machines have one core only
                    yield Row(group, name, entry[cores], peer=theirs.get(name), required=required, aim=aim)
                for other, result in self.others.items():
                    if cores == "1" and name in result["batch_us"]:
                        yield Row(group, f"{name}, {other}", entry[cores], peer=result["batch_us"][name])

    def _statics(self) -> Iterator[Row]:
        for name, (required, aim) in STATICS.items():
            yield Row(
                "static equilibrium, 4 patches", name, self.statics_us[name], judged="value", required=required, aim=aim
            )

    def _loop(self) -> Iterator[Row]:
        loops = (("qp", self.closed_loop, 5.0, 8.0), ("contact", self.contact_loop, 3.0, 5.0))
        for physics, loop, required, aim in loops:
            group = f"closed loop, {self.settings.scenario}, {physics}"
            yield Row(group, "times real time", loop["factor"], "x", None, "value", required, aim, True)
            tick_us = loop["tick_p999_us"]
            yield Row(group, "tick, 99.9th percentile", tick_us, judged="value", required=500.0, aim=200.0)
            for name, us in loop["parts_us"].items():
                yield Row(group, f"per step: {name}", us)
        step = self.contact_step
        yield Row(
            "physics alone", "contact step, 8 points", step["contact"], peer=step.get("mujoco"), required=1.5, aim=0.8
        )

    def _waiting(self) -> Iterator[Row]:
        for group, unit, values in (
            ("tick of a plan, contact, CPU", "µs", self.plan_ticks_us),
            ("planning, CPU", "s", self.planning_s),
            ("commands, CPU", "s", self.commands_s),
        ):
            for name, value in values.items():
                yield Row(group, name, value, unit)

    def _growth(self) -> Iterator[Row]:
        theirs = (self.pinocchio or {}).get("growth_us", {})
        for count, us in self.bodies_us.items():
            yield Row("growth", f"inverse dynamics, {count} bodies", us, peer=theirs.get(count))
        for count, us in self.contacts_us.items():
            yield Row("growth", f"compiled tick, {count} contact points", us)

    def to_json(self) -> dict[str, Any]:
        """Return the content of the report as JSON values."""
        peers = {"tsid": self.tsid, "pinocchio": self.pinocchio} | self.others
        return {
            "mcplan": FORMAT,
            "version": __version__,
            "machine": self.machine,
            "settings": asdict(self.settings),
            "tick_compiled_us": self.tick_compiled["tick_us"],
            "tick_plain_us": self.tick_plain["tick_us"],
            "tick": {"compiled": self.tick_compiled, "plain": self.tick_plain},
            "kernels_us": self.kernels_us,
            "batch_us": self.batch_us,
            "statics_us": self.statics_us,
            "closed_loop_real_time_factor": self.closed_loop["factor"],
            "closed_loop": self.closed_loop,
            "contact_loop": self.contact_loop,
            "contact_step_us": self.contact_step,
            "planning_s": self.planning_s,
            "plan_ticks_us": self.plan_ticks_us,
            "commands_s": self.commands_s,
            "growth": {
                "bodies_us": self.bodies_us,
                "deviation_from_line": linearity(self.bodies_us),
                "contact_points_us": self.contacts_us,
            },
            "peers": {name: answer for name, answer in peers.items() if answer},
            "agreement": {name: asdict(entry) for name, entry in self.agreement.items()},
            "rows": [asdict(row) | {"ratio": row.ratio, "verdict": row.verdict} for row in self.rows],
            "failures": self.failures,
        }


COLOURS = {"aim": "green", "ok": "green", "short": "red"}
"""Colour of each verdict."""

WIDTH = 80
"""Width in columns if the output is not a terminal."""


def render(report: BenchReport) -> Group:
    """Return the table, its legend, and the failures."""
    style: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": 0, "pad_edge": False}  # fits 80 columns
    table = Table(title=_title(report), title_justify="left", header_style="bold", **style)
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
    for name, entry in report.agreement.items():
        notes.append(
            f"first tick, {name}: accelerations within {entry.acceleration:.1e} of TSID's, torques {entry.torque:.1e}"
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
    peers = ", ".join(["TSID", "Pinocchio", *report.others]) if report.tsid else "no peers (--peers DIR)"
    return (
        f"medians of {report.settings.rounds} rounds; µs; {m['cores']} cores, "
        f"load {m['load_at_start']:.1f} to {m['load_at_end']:.1f}; {peers}"
    )


def _cells(row: Row) -> list[Text]:
    bounds = ["" if bound is None else f"{bound:g}" for bound in (row.required, row.aim)]
    return [
        Text("  " + row.name),
        Text(_number(row.value) + ("" if row.unit == "µs" else f" {row.unit}")),
        Text("" if row.peer is None else _number(row.peer)),
        Text("" if row.ratio is None else f"{row.ratio:.2f}"),
        *(Text(bound) for bound in bounds),
        Text(row.verdict, style=COLOURS.get(row.verdict, "")),
    ]


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"
