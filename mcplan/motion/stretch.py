"""Time of references that waits for the robot: it runs slower while what follows them is behind."""

FREE, FULL = 1.5, 4.0
"""Errors, in what is near enough, up to which time runs as planned, and from which on it runs slowest."""

SLOWEST = 0.3
"""Least rate of the time of references."""

SMOOTHING = 0.03
"""s: time constant with which the rate follows what it is to be, so that neither velocities nor accelerations jump."""

SAME = 1e-6
"""A rate that differs by less from 1 is as planned."""


class Stretch:
    """The rate k at which the time of references runs, and how late they are by it.

    ``k'' = (k* - k) / T² - 2 k' / T``, with k* from 1 down to `SLOWEST` as the error grows.

    Attributes
    ----------
    rate, change : k, and its derivative (1/s).
    late : time that the references have lost (s).
    """

    def __init__(self) -> None:
        self.rate, self.change, self.late = 1.0, 0.0, 0.0

    def advance(self, dt: float, error: float) -> None:
        """Go on by dt (s) with an error relative to what is near enough."""
        behind = min(max((error - FREE) / (FULL - FREE), 0.0), 1.0)
        wanted = 1.0 - (1.0 - SLOWEST) * behind
        # taken implicitly, so that it is stable for any dt and does not overshoot
        share = dt / SMOOTHING
        change = (self.change + share / SMOOTHING * (wanted - self.rate)) / (1.0 + share) ** 2
        rate = min(self.rate + dt * change, 1.0)
        if wanted == 1.0 and 1.0 - rate < SAME:
            rate, change = 1.0, 0.0
        self.late += dt * (1.0 - 0.5 * (rate + self.rate))
        self.rate, self.change = rate, change
