"""What a page needs to know of a certificate: those who verify hand it over, views only show it."""

from collections.abc import Sequence
from typing import Any, Protocol


class Line(Protocol):
    """One line of a certificate."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def value(self) -> float | None: ...  # noqa: D102
    @property
    def unit(self) -> str: ...  # noqa: D102
    @property
    def bound(self) -> str: ...  # noqa: D102
    @property
    def passed(self) -> bool: ...  # noqa: D102
    @property
    def where(self) -> str: ...  # noqa: D102
    @property
    def failure(self) -> str: ...  # noqa: D102
    def row(self) -> tuple[str, str, str, str, str]: ...  # noqa: D102


class Certificate(Protocol):
    """What was verified, and whether it holds: a `mcplan.certificate.report.Report`."""

    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def checks(self) -> Sequence[Line]: ...  # noqa: D102
    @property
    def success(self) -> bool: ...  # noqa: D102
    @property
    def failures(self) -> list[str]: ...  # noqa: D102
    @property
    def values(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def notices(self) -> Sequence[dict[str, Any]]: ...  # noqa: D102


def certificate_data(certificate: Certificate | None) -> dict[str, Any] | None:
    """Return a certificate as plain values for a page: what is broken first, then in order."""
    if certificate is None:
        return None
    rows = sorted((check.row() for check in certificate.checks), key=lambda row: row[0] != "FAIL")
    judged = [check for check in certificate.checks if check.bound]
    return {
        "success": certificate.success,
        "judged": len(judged),
        "broken": sum(not check.passed for check in certificate.checks),
        "rows": [list(row) for row in rows],
        "failures": certificate.failures,
    }
