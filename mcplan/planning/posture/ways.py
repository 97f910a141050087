"""Whether the body gets through a swing: the planner looks for the way that the controller will take.

The proof of a swing looks at a few postures along it. Between two of them a shin may pass through a rung, and each of
them may be free on another side of it.
"""

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.core.algebra.minimum_jerk import minimum_jerk
from mcplan.model.robot import Robot
from mcplan.planning.posture.swing import Swing
from mcplan.planning.posture.transit import Led, Transit, TransitFinder
from mcplan.planning.posture.violation import Violation
from mcplan.scene.environment import Environment

HIGHER = (0.0, 0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3)
"""m: how much higher than the clearance a limb is lifted in turn, until nothing is in its way."""

BARRED = 0.01
"""m: a way that misses by more is gone around; less the avoidance makes up for."""

KNOTS = 16
"""Pieces of a way that is looked at."""

OFF, OVER, DOWN = (0.0, 0.35), (0.2, 0.8), (0.65, 1.0)
"""When a patch leaves its support, goes over, and comes down, as parts of the way."""


class Ways:
    """Looks for the ways of swings in one scene.

    Parameters
    ----------
    robot, environment, collisions : the scene.
    clearance : how far a moving patch keeps off its supports along their normals (m).
    """

    def __init__(self, robot: Robot, environment: Environment, collisions: CollisionModel, clearance: float):
        self.robot, self.clearance = robot, clearance
        self._finder = TransitFinder(robot, environment, collisions=collisions)

    def barred(self, swing: Swing) -> tuple[Violation, ...]:
        """Return what is in the way of a swing at the least, or nothing.

        The patch is lifted ever higher, as the controller does, or goes as the body does.
        """
        q0, q1, before, after = swing.q0, swing.q1, swing.before, swing.after
        straight = self.robot.difference(q0, q1)
        shares = np.linspace(0.0, 1.0, KNOTS + 1)
        guides = np.array([self.robot.integrate(q0, straight, share) for share in _eased(shares)])
        start, end = (self.robot.frame_pose(q, after.patch) for q in (q0, q1))
        old, step = before or after, end[:3, 3] - start[:3, 3]

        def way(higher: float | None) -> Transit:
            if higher is None:  # as the body goes
                return self._finder.find(guides, swing.common, (), swing.touching)
            height = self.clearance + higher
            lift = old.normal * max(height, height + float(step @ old.normal))
            approach = after.normal * max(height, height - float(step @ after.normal))
            off, over, down = (_eased((shares - t0) / (t1 - t0))[:, None] for t0, t1 in (OFF, OVER, DOWN))
            places = start[:3, 3] + off * lift + over * (step + approach - lift) - down * approach
            led = Led(after.patch, places, (start[:3, :3], end[:3, :3]))
            return self._finder.find(guides, swing.common, (led,), swing.touching)

        ways: list[Transit] = []
        heights = HIGHER[::2]  # the finer steps of the controller decide how high, hardly whether
        for higher in (None, *heights) if before is None else (*heights, None):
            ways.append(way(higher))
            if ways[-1].missed <= BARRED:
                return ()
        best = min(ways, key=lambda one: one.missed)
        return (Violation("passage", " and ".join(best.worst.bodies) or after.patch, best.missed),)


def _eased(shares: np.ndarray) -> np.ndarray:
    return np.array([minimum_jerk(share)[0] for share in shares])
