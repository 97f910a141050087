"""Searches that go on step by step.

Such a search is a generator that yields after a fraction of a millisecond's work, so that a controller can search on
from tick to tick; `run` takes all steps at once.
"""

from collections.abc import Generator
from typing import TypeVar

Found = TypeVar("Found")
Steps = Generator[None, None, Found]
"""A search that goes on step by step, and returns what it has found."""


def run(steps: Steps[Found]) -> Found:
    """Take all steps of a search and return what it finds."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
