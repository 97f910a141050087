"""What runs inside a Dask worker: hand a case to the worker's own process, and say what became of it.

The case is not run in the worker itself: a case that crashes, hangs or takes all memory would take the worker, and with
it the connection that tells of it.
"""

import atexit
import platform
import time
from typing import Any

from mcplan.errors import InputError
from mcplan.sweep.identity import code_version
from mcplan.sweep.process import CaseError, CaseProcess, Limit, ProcessDied
from mcplan.sweep.store import FAILED, Outcome

START = 600.0
"""s that a process may take to start."""

_process: CaseProcess | None = None
_code = ""
"""Version of the code that the process has loaded."""


def work(function: str, argument: Any, limit: Limit, code: str) -> Outcome:
    """Run a case; a process that dies under it costs it one retry.

    Raises
    ------
    InputError
        The version of the code on this machine is not ``code``.
    """
    began = time.perf_counter()
    for retry in (False, True):
        try:
            return _ready(function, code).call(function, argument, limit)
        except ProcessDied as error:
            reason = f"{error}, twice" if retry else ""
        except CaseError as error:
            reason = str(error)
            break
    row = {"success": False, "stage": "case", "cause": reason.partition("\n")[0], "failure": reason}
    return Outcome(FAILED, row, time.perf_counter() - began)


def prepare(function: str, argument: Any, code: str) -> str:
    """Call a function once before any case, without limits; return what went wrong.

    Raises
    ------
    InputError
        As `work`.
    """
    try:
        _ready(function, code).call(function, argument, Limit())
    except CaseError as error:
        return str(error)
    return ""


def version() -> str:
    """Return the version of the code that this worker would run: of the files as they are, though it may be older."""
    return code_version.__wrapped__()


def _ready(function: str, code: str) -> CaseProcess:
    """Return a process that has imported the function of this code: the limits are those of the case alone."""
    global _process, _code
    if _process is None or not _process.alive or _code != code:
        if _process is None:
            atexit.register(_close)
        elif _process.alive:
            _process.close()
        _process, _code = CaseProcess(), ""
        _code = _process.call("mcplan.sweep.child:load", function, Limit(time=START))
    if _code != code:
        raise InputError(f"{platform.node()}: another version of mcplan ({_code}) than where the sweep began ({code})")
    return _process


def _close() -> None:
    if _process is not None:
        _process.close()
