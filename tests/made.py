"""Plans and runs that several files of tests look at: each is made once in a process, and none of them changes it."""

from functools import cache

from mcplan.planning.plan import Plan
from mcplan.planning.planner import plan
from mcplan.planning.sequence import complete
from mcplan.record.run import Run
from mcplan.scenario.load import load_scenario
from mcplan.sim.simulate import simulate


@cache
def planned(name: str, **changed: float | str | bool) -> Plan:
    """Plan a bundled scenario; ``control__pace="swift"`` sets `control.pace`."""
    return plan(load_scenario(name, {key.replace("__", "."): value for key, value in changed.items()}))


@cache
def planned_up_to(name: str, added: str) -> Plan:
    """Plan a sequence written by hand up to the first time that a patch is added, for a simulation at 500 Hz."""
    items = load_scenario(name).document.data["stances"]
    last = next(k for k, item in enumerate(items) if item.get("add", {}).get("patch") == added)
    return complete(load_scenario(name, {"simulation.dt": 0.002, "stances": items[: last + 1]}))


@cache
def swaying() -> Run:
    """Let HRP-2 shift its weight from one foot to the other, at 200 Hz."""
    return simulate(planned("sway", simulation__dt=0.005))
