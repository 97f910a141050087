"""Status of the quadratic program of a control step, in solutions and runs.

In the lowest layer, because runs are read without the packages that solve programs.
"""

from typing import Final

SOLVED: Final = 0
"""The program was solved."""
SLACK: Final = 1
"""The slack form was solved, with minimum constraint violation."""
HOLD: Final = 2
"""No solution; the robot is only damped."""
NO_QP: Final = 3
"""The controller did not run in this physics step, or has no quadratic program; never the status of a solution."""
