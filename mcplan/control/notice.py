"""What happened that the plan did not foresee: kept with the run, for people to read."""

from typing import NamedTuple


class Notice(NamedTuple):
    """Something out of the ordinary: when (s), and what in words."""

    t: float
    text: str
