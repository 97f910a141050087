"""Report of a certificate: checks with value, unit, bound and failure; as text, table and JSON."""

import re
from dataclasses import dataclass
from html import escape
from typing import Any

KEYS = (
    "goal_reached",
    "fell",
    "eom_residual",
    "integration_residual",
    "friction_margin",
    "friction_ratio",
    "torque_ratio",
    "velocity_ratio",
    "position_margin",
    "slip",
    "clearance",
    "solver_failures",
)
"""Keys of ``report.json`` other than ``success``, ``goals``, ``failures`` and ``notices``."""


@dataclass(frozen=True)
class Check:
    """One line of the certificate.

    Parameters
    ----------
    name : name of the check.
    value : worst value found; None if the check does not apply.
    unit : unit of the value.
    bound : allowed values as text (``<= 1e-06``); empty for a line without a verdict.
    passed : whether the value is allowed.
    where : joint, contact or body, and time, of the worst value.
    failure : message: what is wrong, where, when, and by how much; empty if the check passed.
    """

    name: str
    value: float | None
    unit: str
    bound: str
    passed: bool
    where: str = ""
    failure: str = ""

    def row(self) -> tuple[str, str, str, str, str]:
        """Return the columns of the line: verdict, name, value with unit, bound, where."""
        verdict = ("pass" if self.passed else "FAIL") if self.bound else "-"
        value = "none" if self.value is None else f"{self.value:.4g} {self.unit}".rstrip()
        return verdict, self.name, value, self.bound, self.where


def at_most(name: str, value: float, unit: str, bound: float, where: str, failure: str) -> Check:
    """Return the check of a value with an upper bound; ``failure`` is the message if the value exceeds it."""
    passed = bool(value <= bound)
    return Check(name, value, unit, f"<= {bound:g}", passed, where, "" if passed else failure)


class WorstCase:
    """Check of the worst of several values; collects the messages of all failures.

    Parameters
    ----------
    name, unit : name of the check, and unit of its value.
    bound : upper bound of the value; with ``at_least``, lower bound.
    value : initial value; with None the check does not apply until a value is added.
    """

    def __init__(self, name: str, unit: str, bound: float, at_least: bool = False, value: float | None = None):
        self.name, self.unit, self.bound, self.sign = name, unit, bound, -1.0 if at_least else 1.0
        self.value, self.where, self.failures = value, "", list[str]()

    def update(self, value: float, where: str, failure: str, bound: float | None = None) -> None:
        """Add a value; ``failure`` is the message if the value violates ``bound`` (default: the bound of the check)."""
        if self.value is None or not self.sign * value <= self.sign * self.value:
            self.value, self.where = value, where
        if not self.sign * value <= self.sign * (self.bound if bound is None else bound):
            self.failures.append(f"{where}: {failure}")

    def check(self) -> Check:
        """Return the check of the worst value so far."""
        bound = "" if self.value is None else f"{'>=' if self.sign < 0 else '<='} {self.bound:g}"
        return Check(self.name, self.value, self.unit, bound, not self.failures, self.where, "; ".join(self.failures))


@dataclass(frozen=True, repr=False)
class Report:
    """The result of a verification.

    Parameters
    ----------
    title : name of the run or plan.
    checks : the lines of the certificate.
    values : the keys of ``report.json`` (``KEYS``); None if a check does not apply.
    notices : events that the controller reported: time (s), text, bodies and amount (m). They are not checks.
    """

    title: str
    checks: tuple[Check, ...]
    values: dict[str, Any]
    notices: tuple[dict[str, Any], ...] = ()

    @property
    def success(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> list[str]:
        """Messages of failed checks, one sentence each: what is wrong, where, when, and by how much."""
        return [check.failure or check.name for check in self.checks if not check.passed]

    @property
    def goals(self) -> list[dict[str, Any]]:
        """Items of the goal in order: title, whether it is reached, and the error of each of its fields."""
        found: dict[str, list[Check]] = {}
        for check in self.checks:
            title, colon, _ = check.name.partition(": ")
            if colon and title.startswith(("goal", "item ")):
                found.setdefault(title, []).append(check)
        return [
            {
                "item": title,
                "reached": all(check.passed for check in checks),
                "fields": [
                    {"name": c.name.partition(": ")[2], "value": c.value, "unit": c.unit, "bound": c.bound}
                    for c in checks
                ],
            }
            for title, checks in found.items()
        ]

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        count = len(self.failures)
        return f"Report({self.title!r}, {'holds' if self.success else f'{count} of {len(self.checks)} checks broken'})"

    def _repr_html_(self) -> str:
        """Return the certificate as a table for notebooks."""
        rows = "".join(
            f"<tr style='color:{ {'pass': '#1a7f37', 'FAIL': '#cf222e'}.get(row[0], 'inherit') }'>"
            + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row)
            + "</tr>"
            for row in self.rows()
        )
        verdict = "certificate holds" if self.success else "CERTIFICATE BROKEN"
        return f"<b>{escape(self.title)}: {verdict}</b><table>{rows}</table>"

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return the certificate as a table: verdict, name, value, bound, where."""
        return [check.row() for check in self.checks]

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``report.json``: plain numbers, flags and texts."""
        values = {key: self.values.get(key) for key in KEYS}
        lists = {"goals": self.goals, "failures": self.failures, "notices": list(self.notices)}
        return {"success": self.success, **values, **lists}

    def _notes(self) -> list[str]:
        """Return the lines of text about notices: one for each kind of notice, and one about the certificate.

        Notices are of one kind if their texts differ only in numbers.
        """
        kinds: dict[str, list[dict[str, Any]]] = {}
        for notice in self.notices:
            kinds.setdefault(re.sub(r"-?\d[\d.]*(e-?\d+)?", "#", notice["text"]), []).append(notice)
        lines = []
        for group in kinds.values():
            first, last = group[0], group[-1]
            when = f"t = {first['t']:.3f} s"
            if len(group) > 1:
                when = f"{len(group)} times from t = {first['t']:.3f} s to {last['t']:.3f} s"
            lines.append(f"{when}: {first['text']}")
        if lines:
            verdict = "the certificate holds nevertheless" if self.success else "see the failures above"
            lines.append(f"events outside the plan; {verdict}")
        return lines

    def text(self, width: int | None = None) -> str:
        """Return the certificate as text; ``where`` is on a separate line if the ``width`` in columns is too small."""
        rows = self.rows()
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        if width is not None and 8 + sum(widths) > width:  # a very long value shifts only the bound of its own line
            widths[2] = max(8, min(widths[2], width - 8 - widths[0] - widths[1] - widths[3]))
        lines = [f"{self.title}: {'certificate holds' if self.success else 'CERTIFICATE BROKEN'}"]
        for row in rows:
            columns = "  ".join(cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True))
            if width is not None and row[4] and len(columns) + 4 + len(row[4]) > width:
                lines += [f"  {columns}".rstrip(), f"        {row[4]}"]
            else:
                lines.append(f"  {columns}  {row[4]}".rstrip())
        lines += [f"  broken: {failure}" for failure in self.failures]
        lines += [f"  note: {text}" for text in self._notes()]
        return "\n".join(lines)
