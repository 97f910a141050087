"""The slowest tick: which one it is, in which phase, and which part of it took the time."""

from types import SimpleNamespace

import numpy as np

from mcplan.analysis.slowest_tick import describe_slowest_tick
from mcplan.util.qp_status import NO_QP, SOLVED


def run(**timing):
    """Eight samples of 1 ms, the controller at every second one."""
    status = np.array([SOLVED, NO_QP] * 4)
    return SimpleNamespace(
        t=np.arange(8) * 1e-3, qp_status=status, phase=np.array([0, 0, 0, 0, 1, 1, 1, 1]), phases=["start", "swing"],
        timing={name: np.array(values) for name, values in timing.items()},
    )  # fmt: skip


def test_it_is_reported_with_time_phase_and_the_slowest_part():
    parts = {"machine": [0, 0, 0.045, 0], "program": [1e-3, 1e-3, 4e-3, 1e-3]}
    text = describe_slowest_tick(run(control=[1e-3, 1e-3, 0.05, 2e-3], **parts))
    assert text == "slowest tick: 50 ms at t = 0.004 s in swing, 45 ms of it machine (median 1.5 ms)"


def test_a_run_without_clock_times_says_nothing():
    assert describe_slowest_tick(run()) == ""
