"""Stand-ins for planning and simulating, called in the processes of the workers."""

import os
import signal
import time

from mcplan.sweep.store import DONE, CaseOutcome


def quick(task):
    """A number that follows from the case alone."""
    friction = task.data["environment"].get("friction", 0.0)
    row = {"success": task.seed % 3 != 0, "stances": task.seed, "plan_torque": friction, "plan_time": time.time()}
    return CaseOutcome(DONE, row, 0.0, {"plan.yaml": f"seed: {task.seed}\n".encode()})


def slow(task):
    """The same after a tenth of a second."""
    time.sleep(0.1)
    return quick(task)


def awkward(task):
    """By its seed: crash, hang, take memory, raise, print, answer."""
    if task.seed == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if task.seed == 1:
        time.sleep(1000)
    if task.seed == 2:
        held = bytearray(1_000_000_000)
        held[::4096] = b"x" * len(held[::4096])
        time.sleep(1000)
    if task.seed == 3:
        raise RuntimeError("by design")
    print("what a library says")
    return quick(task)
