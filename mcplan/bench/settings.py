"""Settings of the benchmark: numbers of rounds, calls and ticks."""

from dataclasses import dataclass

from mcplan.bench.growth import BODY_COUNTS, FEET_AND_POINTS


@dataclass(frozen=True)
class BenchSettings:
    """Settings of the measurement.

    Parameters
    ----------
    rounds : number of rounds; each measures everything once, mcplan and the peers in turn. Results are medians.
    ticks, plain_ticks, skipped : compiled and plain ticks per round, and how many of each at the start do not count.
    calls, repeats : calls per block, and blocks, of each kernel per round. Blocks are short, so that the median over
        blocks is not affected by the few during which the system interrupted the program.
    batch, batch_repeats : configurations per batch, and repetitions of each batch.
    bodies, points : measured numbers of bodies, and of contact points.
    growth_ticks : ticks for each number of contact points.
    scenario, steps : scenario of the closed loop, and its number of steps; None: to its end.
    physics_steps : measured steps of the contact physics, and of MuJoCo.
    plans, plan_ticks : scenarios that are planned, and ticks of each plan.
    walks : lengths (m) of walks that are planned.
    commands, first_run : whether to measure commands, and one with an empty cache of kernels.
    """

    rounds: int = 3
    ticks: int = 3000
    plain_ticks: int = 3000
    skipped: int = 200
    calls: int = 100
    repeats: int = 101
    batch: int = 10_000
    batch_repeats: int = 9
    bodies: tuple[int, ...] = BODY_COUNTS
    points: tuple[int, ...] = tuple(FEET_AND_POINTS)
    growth_ticks: int = 500
    scenario: str = "table_hand"
    steps: int | None = None
    physics_steps: int = 2000
    plans: tuple[str, ...] = ("stairs", "ladder", "crawl", "push")
    plan_ticks: int = 2000
    walks: tuple[float, ...] = (2.0, 10.0, 40.0)
    commands: bool = True
    first_run: bool = True


QUICK = BenchSettings(
    rounds=1, ticks=600, plain_ticks=300, skipped=100, calls=50, repeats=21, batch=1000, batch_repeats=3,
    bodies=(10, 100), points=(4, 8), growth_ticks=100, steps=3000, physics_steps=200, plans=("stairs",),
    plan_ticks=500, walks=(2.0,), first_run=False,
)  # fmt: skip
"""Settings of a quick run: seconds instead of minutes, imprecise results."""
