"""The commands, one file each: a line ``HELP``, ``declare`` for its arguments, ``run``.

Every command is imported at each start, so they import heavy modules in ``run`` only.
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
