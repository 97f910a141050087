"""``A_l vd >= b_l``: limits that are added, such as distances of bodies that are to be kept."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mcplan.model.terms import Terms
from mcplan.whole_body.limit import Limit
from mcplan.whole_body.rows.block import Array, Block, Conflict, Failure, Gradient, Rows, Values
from mcplan.whole_body.tasks.task import checked_rows

if TYPE_CHECKING:
    from mcplan.whole_body.declaration import Declaration


class Added(Block):
    """The rows of all added limits, one below the other."""

    def __init__(self, d: "Declaration"):
        if count := d.structure.limit_rows:
            A, lower = d.parameter("limit_matrix", (count, d.structure.nv)), d.parameter("limit_lower", count)
            self.rows = [Rows("limit", lower - A @ d.vd, False, penalty=1e3, price=50.0)]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add ``-A_l' y`` for the accelerations."""
        if self.rows:
            gradient.vd.append(-data["limit_matrix"].T @ y["limit"])

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Name what each row keeps."""
        if self.rows:
            for name, amount in zip(failure.limits, failure.slack["limit"].tolist(), strict=False):
                yield Conflict(name, amount, "m/s²")


def fill_limits(data: dict[str, Array], terms: Terms, limits: Sequence[Limit]) -> None:
    """Write the rows of all limits; ``InputError`` where one has rows of another shape than it says."""
    row = 0
    for limit in limits:
        block = slice(row, row + limit.dimension)
        A, lower = data["limit_matrix"], data["limit_lower"]
        A[block], lower[block] = checked_rows(limit, limit.rows(terms), A.shape[1])
        row += limit.dimension


def limit_names(limits: Sequence[Limit]) -> list[str]:
    """Return what the rows keep."""
    return [name for limit in limits for name in limit.names]
