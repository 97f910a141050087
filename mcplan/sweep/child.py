"""Child process that runs cases: reads calls from standard input, writes their results to standard output.

    python -m mcplan.sweep.child

A call is ("module:function", argument). The process ends with its parent, even in the middle of a case. It ignores
Ctrl-C, which a terminal sends to every process of a command: only the parent reacts to it.
"""

import os
import signal
import sys
import traceback
from importlib import import_module
from typing import Any

from mcplan.sweep.case import code_version
from mcplan.sweep.process import Channel


def main() -> None:
    """Answer calls until the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # libraries that print must not write into the stream of messages
    answer_stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    channel = Channel(sys.stdin.buffer, answer_stream, on_end=lambda: os._exit(0))
    while True:
        name, argument = channel.receive()
        channel.send(_call(name, argument))


def _call(name: str, argument: Any) -> tuple[str, Any]:
    """Return ("value", result) of the function ``module:function``, or ("error", message)."""
    module, _, function = name.partition(":")
    try:
        return "value", getattr(import_module(module), function)(argument)
    except MemoryError:
        return "error", "out of memory"
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return (
            "error",
            f"internal error: {type(error).__name__}: {error} ({os.path.basename(frame.filename)}:{frame.lineno})",
        )


def load(name: str) -> str:
    """Import the module of ``module:function``, which may take longer than a case; return the code version.

    Call it in a new process: only then are the hashed files the ones that were imported.
    """
    import_module(name.partition(":")[0])
    return code_version()


if __name__ == "__main__":
    main()
