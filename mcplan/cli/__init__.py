"""Commands, one file each: a line ``HELP``, ``declare`` for the arguments, ``run``.

All commands are imported at each start, so they import heavy modules only in ``run``.
"""

COMMANDS = (
    "run",
    "plan",
    "simulate",
    "verify",
    "replay",
    "report",
    "plot",
    "export",
    "sweep",
    "check",
    "info",
    "robot",
    "scene",
    "schema",
    "bench",
)
"""Commands in the order of ``mcplan --help``."""
