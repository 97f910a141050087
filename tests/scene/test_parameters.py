"""Parameters of scenario files become plain numbers; mistakes in them are found in their lines."""

import numpy as np
import pytest

from mcplan.errors import ScenarioError
from mcplan.scenario.load import check_file, load_scenario

TEXT = """\
mcplan: 1
name: trial
robot: hrp2
parameters:
  high: =2*low
  low: 0.1
  mu: 0.6
environment:
  friction: =mu
  surfaces:
    - {name: floor, size: [4, 2]}
    - {name: box, pose: {xyz: [1, 0, =high], rpy: [0, 0, =pi/2]}, size: [=10*low, "=max(high, low)"]}
start:
  base: {xyz: [0, 0, 0.65]}
  contacts: [{patch: left_sole, surface: floor}, {patch: right_sole, surface: floor}]
goal: {contacts: [{patch: left_sole, surface: box}]}
"""


def write(tmp_path, text, name="trial.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def said(tmp_path, text):
    return [(problem.line, problem.key, problem.message) for problem in check_file(write(tmp_path, text))]


def test_expressions_become_numbers(tmp_path):
    path = write(tmp_path, TEXT)
    scenario = load_scenario(path)
    box = scenario.environment.support("box")
    assert box.p[2] == pytest.approx(0.2)
    assert np.allclose(box.R[:, 0], [0, 1, 0])
    assert np.allclose(np.ptp(box.polygon, axis=0), [1.0, 0.2])
    assert box.friction == 0.6
    # what is kept with a plan or a run has numbers alone, and is the same scenario
    assert "parameters" not in scenario.document.data
    assert "=" not in scenario.document.text()
    again = load_scenario(write(tmp_path, scenario.document.text(), "again.yaml"))
    assert again.digest == scenario.digest


def test_parameters_can_be_set(tmp_path):
    path = write(tmp_path, TEXT)
    high = load_scenario(path, {"parameters.low": 0.15}).environment.support("box").p[2]
    assert high == pytest.approx(0.3)
    assert load_scenario(path, {"parameters.high": "=3*low"}).environment.support("box").p[2] == pytest.approx(0.3)
    own = load_scenario(path, {"environment.surfaces[box].pose.xyz": "[1, 0, =3*low]"})
    assert own.environment.support("box").p[2] == pytest.approx(0.3)
    with pytest.raises(ScenarioError, match=r"^override: parameters.lo: no expression uses this parameter$"):
        load_scenario(path, {"parameters.lo": 0.15})
    with pytest.raises(ScenarioError, match=r"^override: high: unknown key; did you mean `parameters.high`\?$"):
        load_scenario(path, {"high": 0.15})


def test_expressions_need_no_parameters(tmp_path):
    text = TEXT.replace("parameters:\n  high: =2*low\n  low: 0.1\n  mu: 0.6\n", "")
    for name, value in (("high", "0.2"), ("low", "0.1"), ("mu", "0.6")):
        text = text.replace(f"={name}", value).replace(name, value)
    scenario = load_scenario(write(tmp_path, text))
    assert scenario.environment.support("box").R[1, 0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        ("=high]", "=hihg]", 12, "environment.surfaces[1].pose.xyz[2]", "=hihg: unknown name `hihg`; did you mean"),
        ("=mu", "=1/0", 9, "environment.friction", "division by zero"),
        ("=pi/2", "=pi.real", 12, "environment.surfaces[1].pose.rpy[2]", "are allowed"),
        ("=2*low", "=2*high", 5, "parameters.high", "depends on itself"),
        ("=2*low", "=2*lo", 5, "parameters.high", "did you mean `low`"),
        ("low: 0.1", "low: yes", 6, "parameters.low", "expected a number"),
        ("mu: 0.6", "mu: 0.6\n  pi: 3", 8, "parameters.pi", "cannot be the name"),
        ("mu: 0.6", "mu: 0.6\n  more: 3", 8, "parameters.more", "no expression uses"),
        ("mu: 0.6", "mu: 0.6\n  lambda: 2", 8, "parameters.lambda", "cannot be the name of a parameter"),
        ("mu: 0.6", "mu: 0.6\n  None: 2", 8, "parameters.None", "cannot be the name of a parameter"),
        ("mu: 0.6", "mu: 0.6\n  \uff50\uff49: 2", 8, "parameters.\uff50\uff49", "cannot be the name of a parameter"),
        ("mu: 0.6", "mu: 0.6\n  \u00b5: =mu\n  \u03bc: =mu", 9, "parameters.\u03bc", "is the same name as `\u00b5`"),
        ("mu: 0.6", "mu: 0.6\n  \u00b5: =2*\u03bc", 8, "parameters.\u00b5", "depends on itself"),
        ("parameters:", "paramters:", 4, "paramters", "did you mean `parameters`"),
    ],
)  # fmt: skip
def test_mistakes_are_named_in_their_lines(tmp_path, old, new, line, key, says):
    found = said(tmp_path, TEXT.replace(old, new, 1))
    assert any([line, key] == place and says in message for *place, message in found), found


def test_what_only_a_range_uses_is_used(tmp_path):
    text = TEXT.replace("mu: 0.6", "mu: 0.6\n  most: 0.8") + "variants: {mu: [0.5, =most]}\n"
    assert said(tmp_path, text) == []
    assert 0.5 <= load_scenario(tmp_path / "trial.yaml", variant=0).environment.support("box").friction <= 0.8
    unused = [(place, key) for place, key, _ in said(tmp_path, text.replace("[0.5, =most]", "0.1"))]
    assert unused == [(8, "parameters.most")]


@pytest.mark.parametrize("letters", ["\u00b5\u00b5\u00b5", "\u00b5\u03bc\u00b5", "\u03bc\u00b5\u03bc"])
def test_the_sign_for_micro_is_the_greek_letter(tmp_path, letters):
    name, used, drawn = letters
    text = TEXT.replace("  mu: 0.6", f"  {name}: 0.6").replace("=mu", f"={used}")
    path = write(tmp_path, f"{text}variants: {{{drawn}: [0.3, 0.4]}}\n")
    assert check_file(path) == []
    assert load_scenario(path).environment.support("box").friction == 0.6
    assert 0.3 <= load_scenario(path, variant=0).environment.support("box").friction <= 0.4


def test_a_mistake_in_a_parameter_is_said_once(tmp_path):
    assert len(said(tmp_path, TEXT.replace("low: 0.1", "low: oops"))) == 1
    # and mistakes of other kinds beside it
    found = said(tmp_path, TEXT.replace("low: 0.1", "low: oops").replace("size: [4, 2]", "sze: [4, 2]"))
    assert [line for line, *_ in found] == [6, 11]
