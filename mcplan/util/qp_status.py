"""How the quadratic program of a control step came out, as solutions say it and runs keep it.

At the bottom, because a run is read without the packages that solve programs.
"""

from typing import Final

SOLVED: Final = 0
SLACK: Final = 1
"""Its slack form was solved: limits are missed by as little as can be."""
HOLD: Final = 2
"""There was no solution, and the robot is only damped."""
NO_QP: Final = 3
"""The controller did not run in this step of the physics, or has no program; never the status of a solution."""
