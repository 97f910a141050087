"""Sizes of the benchmark."""

from dataclasses import dataclass

from mcplan.bench.growth import BODIES, CONTACTS


@dataclass(frozen=True)
class BenchSettings:
    """Sizes of the measurement.

    Parameters
    ----------
    rounds : each round measures everything once, ours and the peers' in turn; the figures are medians over rounds.
    ticks, plain_ticks, skipped : compiled and plain ticks per round, and how many at their start do not count.
    calls, repeats : of each kernel per round; short blocks of calls, because the median of many blocks does not see the
        few that the system interrupted.
    batch, batch_repeats : configurations of a batch, and how often it is computed.
    bodies, points : of the growth.
    growth_ticks : ticks per number of contact points.
    scenario, steps : of the closed loop; all its steps if None.
    physics_steps : of the contact physics, and of MuJoCo.
    """

    rounds: int = 3
    ticks: int = 3000
    plain_ticks: int = 3000
    skipped: int = 200
    calls: int = 100
    repeats: int = 101
    batch: int = 10_000
    batch_repeats: int = 9
    bodies: tuple[int, ...] = BODIES
    points: tuple[int, ...] = tuple(CONTACTS)
    growth_ticks: int = 500
    scenario: str = "table_hand"
    steps: int | None = None
    physics_steps: int = 2000


QUICK = BenchSettings(
    rounds=1, ticks=600, plain_ticks=300, skipped=100, calls=50, repeats=21, batch=1000, batch_repeats=3,
    bodies=(10, 100), points=(4, 8), growth_ticks=100, steps=3000, physics_steps=200,
)  # fmt: skip
"""Quick run in seconds, without precise results."""
