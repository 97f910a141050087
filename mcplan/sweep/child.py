"""The process in which cases run: reads calls from its standard input, writes what they return to its standard output.

    python -m mcplan.sweep.child

A call is ("module:function", argument). It ends with its parent, even in the middle of a case; Ctrl-C, which a terminal
sends to every process of a command, is for the one that hands out the cases.
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
    """Answer calls until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a library prints must not end up among the messages.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    channel = Channel(sys.stdin.buffer, answers, on_end=lambda: os._exit(0))
    while True:
        name, argument = channel.receive()
        channel.send(_call(name, argument))


def _call(name: str, argument: Any) -> tuple[str, Any]:
    module, _, function = name.partition(":")
    try:
        return "value", getattr(import_module(module), function)(argument)
    except MemoryError:
        return "error", "out of memory"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return (
            "error",
            f"internal error: {type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})",
        )


def load(name: str) -> str:
    """Import the module of a function ``module:function``, which may take longer than a case; return the version.

    This process is new when it is asked, so what it says of the files is true of what it has imported.
    """
    import_module(name.partition(":")[0])
    return code_version()


if __name__ == "__main__":
    main()
