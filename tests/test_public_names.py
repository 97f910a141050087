"""Every public name is documented, has an example that runs, and passes a type checker with all its rules."""

import html
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

import mcplan as mc
from tests import shared

ROOT = Path(__file__).parents[1]
NAMES = {name: getattr(import_module(module), inside) for name, (module, inside) in mc._NAMES.items()}
"""Public names by what they are; ``mc.sweep`` is the package of that name as soon as this has been imported."""

PACKAGES = {name: import_module(module) for name, module in mc._PACKAGES.items()}
INSIDE = {f"{name}.{inside}": getattr(thing, inside) for name, thing in PACKAGES.items() for inside in thing.__all__}
EVERYTHING = {**NAMES, **PACKAGES, **INSIDE}
FUNCTIONS = {name: thing for name, thing in EVERYTHING.items() if inspect.isfunction(thing)}


def examples(page):
    """What is run of a page: `tests/test_pages.py` runs it."""
    return "\n".join(line[4:] for line in (ROOT / "docs" / page).read_text().splitlines() if line[:3] in (">>>", "..."))


EXAMPLES = {False: examples("reference.md"), True: examples("coordinates.md")}


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_public_name_is_documented_and_has_an_example(name):
    said = inspect.getdoc(EVERYTHING[name]) or ""
    assert len(said) > 30, said
    used = rf"\b{re.escape(name)}\b" if name in INSIDE else rf"\bmc\.{name}\b"
    if name in PACKAGES:
        used = rf"\b{name}\.\w"
    assert re.search(used, EXAMPLES[name in INSIDE or name in PACKAGES])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_and_raises(name):
    """Every parameter is named and typed, arrays have their shape, and what the function itself raises is said."""
    said, parameters = inspect.getdoc(FUNCTIONS[name]), inspect.signature(FUNCTIONS[name]).parameters
    assert not [p for p in parameters if not re.search(rf"\b{p}\b", said)]
    assert all(p.annotation is not inspect.Parameter.empty for p in parameters.values())
    if any("ArrayLike" in str(p) or p.annotation is np.ndarray for p in parameters.values()):
        assert re.search(r"\(\w[^()]*,[^()]*\)", said), "no shape"
    for raised in set(re.findall(r"raise (\w+)\(", inspect.getsource(FUNCTIONS[name]))):
        assert re.search(rf"Raises\n-+\n(.*\n)*?.*{raised}", said), f"{raised} is not said"


def test_the_public_surface_passes_a_strict_type_checker_and_wrong_uses_do_not(tmp_path):
    """Wrong uses show that the checker sees types, not `Any`."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import mcplan as mc\nx: int = mc.load_robot("hrp2")\nmc.simulate(3)\nmc.Surface(3)\n')
    options = ["--strict", "--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
    command = [sys.executable, "-m", "mypy", *options, "tests/public_api.py", str(wrong)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert [re.search(r"wrong.py:(\d)", line)[1] for line in errors if "wrong.py" in line] == ["2", "3", "4"], errors
    assert len(errors) == 3, errors


def test_what_is_offered_is_what_there_is():
    assert set(mc.__all__) <= set(dir(mc))
    with pytest.raises(AttributeError, match="did you mean `Scenario`"):
        _ = mc.Scenaro


@pytest.fixture(scope="module")
def things():
    """One of each kind of thing that public names make or return."""
    robot, plan = mc.load_robot("hrp2"), shared.planned("sway", simulation__dt=0.005)
    arm, simulation, stand = mc.load_robot("arm7"), mc.Simulation(plan), plan.stances[0]
    q, v, contacts = stand.q, np.zeros(robot.nv), stand.contacts
    rows = mc.contact_rows(robot, q, v, contacts)
    tasks = [
        mc.ComTask(),
        mc.PostureTask(q[7:]),
        mc.LinkPoseTask("BODY"),
        mc.AngularMomentumTask(),
        mc.TorqueTask(robot.n),
    ]
    tasks += [
        mc.RelativePoseTask("LARM_LINK6", "BODY"),
        mc.LookAtTask("BODY", [1, 0, 0]),
        mc.ContactForceTask("left_sole"),
    ]
    textbook = [mc.GravityCompensation(arm), mc.ImpedanceControl(arm, arm.posture("ready")[7:])]
    textbook += [mc.SupportedInverseDynamics(robot, contacts, q[7:]), mc.TaskHierarchy(robot, contacts, [tasks[:1]])]
    textbook += [mc.VirtualModelControl(robot, contacts, q), mc.InverseDynamicsControl(arm, arm.posture("ready")[7:])]
    scenario, motion, rules = plan.scenario, plan.stances[1].transition, mc.coordinates
    return [
        *tasks, *textbook, robot, robot.limits, plan, stand, stand.contacts[0], motion, motion.segments[0], scenario,
        scenario.environment, scenario.simulation, scenario.control, scenario.planner, simulation, simulation.step(),
        simulation.physics, mc.WholeBodyController(plan, dt=0.005), mc.Terms(robot), mc.BaseTarget(np.zeros(3), 0.1),
        mc.solve_posture(robot, scenario.environment, contacts), mc.balance(robot, q, contacts), rules.ZYX,
        mc.support_region(robot, q, contacts), mc.wrench_cone(contacts[0]), mc.com_polyhedron(contacts, robot.mass),
        rows, mc.ConstrainedDynamics(robot, q, v, rows), mc.ConstrainedDynamics(robot, q, v, rows).impact(),
        mc.equations_of_motion(robot, q, v), mc.stance_rank(robot, q, contacts), rules.Lagrangian(robot),
        mc.support_inverse_kinematics(robot, q, contacts, {}), mc.inverse_kinematics(robot, {"BODY": q[:3]}, q),
        rules.equations_of_motion(robot, q, v), rules.to_com(robot, q, v), rules.Maximal(robot),
        rules.fixed_base(robot, q, v[6:], "BODY"), mc.MeshShape(np.eye(3), np.array([[0, 1, 2]])),
        mc.load_experiment({"mcplan": 1, "name": "w", "scenarios": ["walk"]}),
    ]  # fmt: skip


def test_a_thing_shows_itself_in_one_line(things):
    for thing in things:
        said = repr(thing)
        assert len(said) <= 160, said
        assert "\n" not in said, said
        assert " object at 0x" not in said, said
        assert type(thing).__name__ in said, said


def test_what_holds_much_shows_itself_as_tables_in_a_notebook(things):
    """Their cells are text: what a user named cannot become markup."""
    shown = [thing for thing in things if hasattr(thing, "_repr_html_")]
    kinds = {"Robot", "Environment", "Scenario", "Plan", "PlannedStance", "Transition", "PostureResult", "Equilibrium"}
    assert {type(thing).__name__ for thing in shown} >= kinds
    for thing in [*shown, mc.Environment([mc.Surface("<b>floor", size=(4, 4))])]:
        text = thing._repr_html_()
        page = fromstring(f"<div>{text}</div>")  # balanced tags, nothing unescaped
        assert html.escape(repr(thing)) in text
        assert any(one.tag in ("table", "pre") for one in page.iter())
        assert len(text) < 20_000, (thing, len(text))


def test_settings_show_what_differs_from_the_defaults():
    assert repr(mc.ControlSettings(gains={"com_kp": 30.0})) == "ControlSettings(gains=GainSettings(com_kp=30.0))"
    assert repr(mc.SimulationSettings(physics="qp")) == "SimulationSettings()"
