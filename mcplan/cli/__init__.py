"""The commands, one file each: ``HELP`` in a line, ``declare`` its arguments, ``carry_out`` it.

They are read whenever the command line is, so they import what is heavy only in ``carry_out``.
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
"""In the order in which ``mcplan --help`` names them."""
