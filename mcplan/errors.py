"""Every exception that a user of mcplan can meet.

Two families, told apart by the exit status of the command line: what the user gave is wrong (``InputError``, status 2),
or the job ran and failed (``JobFailed``, status 1). Anything else that escapes is an internal error (status 3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class McplanError(Exception):
    """Base of all exceptions raised on purpose by mcplan.

    A program that handles an error compares its fields, not its text.

    Parameters
    ----------
    code : kind of error in one word (``wrong_type``, ``unknown_name``, ``out_of_range``, ...); empty if none is given.
    name : the argument, key, joint, link, patch or file that is concerned.
    value : what it was.
    """

    exit_status = 3

    def __init__(self, *arguments: Any, code: str = "", name: str = "", value: Any = None):
        super().__init__(*arguments)
        self.code, self.name, self.value = code, name, value


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a file.

    Parameters
    ----------
    file : path of the file as the user gave it, or None for input that came as Python values.
    line : line number from 1, or None where there is none (an empty file, a missing file).
    key : dotted path of the value (``environment.surfaces[2].size``), or an element of the XML; empty if none.
    message : what is wrong, the value, and what was expected.
    code, value : see `McplanError`.
    """

    file: str | None
    line: int | None
    key: str
    message: str
    code: str = ""
    value: Any = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return ": ".join(part for part in (place, self.key, self.message) if part)


class InputError(McplanError, ValueError):
    """What the user gave is wrong: one or more ``Problem``, all that were found, in the order of the file."""

    exit_status = 2

    def __init__(self, *problems: Problem | str, code: str = "", name: str = "", value: Any = None):
        self.problems = tuple(
            p if isinstance(p, Problem) else Problem(None, None, "", p, code, value) for p in problems
        )
        first = self.problems[0] if self.problems else Problem(None, None, "", "")
        text = "\n".join(str(p) for p in self.problems)
        super().__init__(text, code=code or first.code, name=name or first.key, value=first.value)


class RobotError(InputError):
    """A robot file (URDF, robot.yaml, mesh) that cannot be used."""


class ScenarioError(InputError):
    """A scenario or plan file that cannot be used."""


class ScenarioWarning(UserWarning):
    """What a scenario says can be, but is hardly meant: degrees for radians, millimetres for metres."""


class RunError(InputError):
    """A run file that cannot be read: damaged, of another format, or not a run at all."""


class JobFailed(McplanError):  # noqa: N818 - reads as the sentence that it is
    """The input was sound, the job ran, and it did not reach its end."""

    exit_status = 1


class PlanningFailed(JobFailed):
    """No posture or no sequence of stances was found; the message names what stopped it and by how much.

    ``tree`` holds the record of the search (a ``mcplan.planning.search.tree.SearchTree``), None when none was made;
    ``best`` the path that was found where only its swings are not free (a list of
    ``mcplan.planning.search.node.Node``), else None.
    """

    tree: Any = None
    best: Any = None


class SolverFailed(JobFailed):
    """A quadratic program had no acceptable solution; the message names the conflict or the residual."""


class SimulationFailed(JobFailed):
    """The simulation had to stop: a value that is not a number, or a state that cannot be continued.

    ``cause`` says it in a few words that many runs share; ``run`` holds what was recorded up to there (a
    ``mcplan.record.run.Run``), None when nothing was.
    """

    run: Any = None

    def __init__(self, message: str, cause: str = "stopped", **fields: Any):
        super().__init__(message, **fields)
        self.cause = cause


def either(words: Sequence[str]) -> str:
    """Return the words of a choice as in ``a, b or c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
