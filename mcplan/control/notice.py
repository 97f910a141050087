"""What happened that the plan did not foresee: kept with the run, for people to read."""

from typing import NamedTuple


class Notice(NamedTuple):
    """Something out of the ordinary.

    t : when (s).
    text : what, in words.
    bodies : names of the patch, or of the two bodies, that it is about; empty where no one of them stands out.
    amount : how much is missing (m), None where there is nothing to measure.
    """

    t: float
    text: str
    bodies: tuple[str, ...] = ()
    amount: float | None = None
