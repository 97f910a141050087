"""Robots, plans and runs that several test files look at: each is made once in a process; no test changes it."""

from functools import cache

import mcplan as mc
from mcplan.planning.plan import Plan
from mcplan.planning.planner import plan
from mcplan.planning.sequence import complete_sequence
from mcplan.record.run import Run
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import load_scenario
from mcplan.scene.contact import Contact
from mcplan.sim.simulate import Simulation, simulate


@cache
def robot(name: str = "hrp2") -> Robot:
    """Load a bundled robot."""
    return load_robot(name)


@cache
def soles() -> tuple[Contact, ...]:
    """Both soles of HRP-2 on a level floor, below half-sitting."""
    floor, q = mc.Surface("floor", size=(4, 4)), robot().posture("half_sitting")
    return tuple(mc.contact(robot(), f"{side}_sole", floor, near=q) for side in ("left", "right"))


@cache
def planned(name: str, **changed: float | str | bool) -> Plan:
    """Plan a bundled scenario; ``control__pace="fast"`` sets `control.pace`."""
    return plan(load_scenario(name, {key.replace("__", "."): value for key, value in changed.items()}))


@cache
def planned_up_to(name: str, added: str) -> Plan:
    """Plan a sequence written by hand up to the first time that a patch is added, for a simulation at 500 Hz."""
    items = load_scenario(name).document.data["stances"]
    last = next(k for k, item in enumerate(items) if item.get("add", {}).get("patch") == added)
    return complete_sequence(load_scenario(name, {"simulation.dt": 0.002, "stances": items[: last + 1]}))


def simulated(plan: Plan) -> tuple[Simulation, int]:
    """Simulate a plan to its end; return the simulation, and how many programs were declared before it."""
    simulation = Simulation(plan)
    declared = len(simulation.controller.tasks.pool)
    while simulation.step() is not None:
        pass
    return simulation, declared


@cache
def swaying() -> Run:
    """Let HRP-2 shift its weight from one foot to the other, at 200 Hz."""
    return simulate(planned("sway", simulation__dt=0.005))


@cache
def short_run(name: str = "sway", physics: str = "qp", ticks: int = 20) -> Run:
    """Simulate the first ticks of a bundled scenario: a small, real record."""
    simulation = Simulation(planned(name), physics)
    for _ in range(ticks):
        simulation.step()
    return simulation.finish()
