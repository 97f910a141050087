"""Parallel compilation on the first run: a second process compiles the control kernels during planning.

Numba compiles on one core. Both processes share the kernel cache, so the second one compiles the kernels that the first
needs last: those of the control program, of the timing of motions, with which planning ends, and of a simulation step.
If the second process fails, the first one compiles the remaining kernels itself.
"""

import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mcplan.core.jit import is_cached
from mcplan.core.posture.search import search_posture
from mcplan.core.whole_body.fill import fill
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.timing.retiming import Retimer
from mcplan.planning.transition.transition import Segment, Transition
from mcplan.robot.terms import Terms
from mcplan.scenario.load import load_scenario
from mcplan.scenario.scenario import Scenario
from mcplan.sim.simulate import Simulation
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.tasks.com import ComTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.tasks.task import Task
from mcplan.whole_body.whole_body import WholeBodyQP

SCENARIO = "table_hand"
"""Scenario whose first step uses every control kernel: surfaces, obstacles, changing contacts."""


@contextmanager
def compiling_ahead(physics: str) -> Iterator[bool]:
    """Compile in a second process during the block; yield False if the cache is complete, so that none is started."""
    if is_cached(fill) and is_cached(search_posture):
        yield False
        return
    no_stream = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, physics], stdin=no_stream, stdout=no_stream, stderr=no_stream
    )
    try:
        yield True
    finally:
        process.terminate()
        process.wait()


def compile_all(physics: str) -> None:
    """Compile the kernels of the control program, of the timing of motions and of a simulation step, in this order.

    The timing comes second, when the first process has compiled what it shares with the search for postures.
    """
    scenario = load_scenario(SCENARIO)
    _solve_program(scenario)
    _time_motion(scenario)
    _simulate_step(scenario, physics)


def _solve_program(scenario: Scenario) -> None:
    robot, start = scenario.robot, scenario.start
    contacts = [ContactConstraint(contact) for contact in start.contacts]
    tasks: list[Task] = [ComTask(), PostureTask(start.q[7:])]
    terms = Terms(robot, [contact.patch for contact in start.contacts])
    terms.update(start.q, np.zeros(robot.nv))
    program = WholeBodyQP(robot, contacts, tasks)
    program.update(terms, contacts, tasks)
    program.solve()


def _time_motion(scenario: Scenario) -> None:
    """Time a motion that lowers the body by a centimetre."""
    robot, start = scenario.robot, scenario.start
    q = np.tile(start.q, (7, 1))
    q[:, 2] -= 0.01 * np.linspace(0.0, 1.0, 7)
    segment = Segment(start.contacts, np.linspace(0.0, 1.0, 7), q, robot.com(q))
    Retimer(robot, scenario.transition_settings).time_parameterized(segment)


def _simulate_step(scenario: Scenario, physics: str) -> None:
    """Make one step of a minimal plan of two stances in the initial posture: the second lacks the last contact."""
    q, contacts = scenario.start.q, scenario.start.contacts
    wrenches, torques = {contact.patch: np.zeros(6) for contact in contacts}, np.zeros(len(q) - 7)
    first_stance = PlannedStance(contacts, "start", None, q, wrenches, torques, {})
    samples, com = 7, scenario.robot.com(q)
    segment = Segment(contacts, np.linspace(0.0, 1.0, samples), np.tile(q, (samples, 1)), np.tile(com, (samples, 1)))
    patch = contacts[-1].patch
    transition = Transition(patch, (segment,))
    second_stance = PlannedStance(contacts[:-1], "remove", patch, q, wrenches, torques, {}, transition=transition)
    Simulation(Plan(scenario, (first_stance, second_stance)), physics).step()


if __name__ == "__main__":
    gc.disable()  # collections take a tenth of the time and free little
    compile_all(sys.argv[1])
