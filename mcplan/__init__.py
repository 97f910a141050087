"""mcplan: multi-contact motion planning, whole-body control and simulation for humanoids.

    import mcplan as mc
    scenario = mc.load_scenario("table_hand")
    run = mc.simulate(mc.plan(scenario))
    print(mc.verify(run).text())
    mc.save_html(run, "replay.html")

Names are imported when they are first used, so that ``import mcplan`` and ``mcplan --help`` start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcplan.version import __version__

if TYPE_CHECKING:
    from mcplan.certificate.verify import verify
    from mcplan.model.robot_file import load_robot
    from mcplan.planning import plan
    from mcplan.scene.load import load_scenario
    from mcplan.sim.run_file import load_run
    from mcplan.sim.simulate import simulate
    from mcplan.view.replay import save_html

_HOME = {
    "load_robot": "mcplan.model.robot_file",
    "load_scenario": "mcplan.scene.load",
    "plan": "mcplan.planning",
    "simulate": "mcplan.sim.simulate",
    "verify": "mcplan.certificate.verify",
    "load_run": "mcplan.sim.run_file",
    "save_html": "mcplan.view.replay",
}

__all__ = ["__version__", "load_robot", "load_run", "load_scenario", "plan", "save_html", "simulate", "verify"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'mcplan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
