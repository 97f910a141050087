"""Variants: what a seed draws, where it lies, and that it is the same each time."""

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

from mcplan.cli.main import main
from mcplan.document.document import dump_document
from mcplan.errors import ScenarioError
from mcplan.planning.plan_file import load_plan
from mcplan.scenario.load import check_file, load_scenario

TEXT = """\
mcplan: 1
name: trial
robot: hrp2
parameters:
  low: 0.1
  high: =2*low
  turn: 0.0
  mu: 0.7
variants:
  low: 15%
  high: 10%
  turn: 0.2
  mu: [0.5, 0.9]
  start: {xy: 0.03, yaw: =5*pi/180}
environment:
  friction: =mu
  surfaces:
    - {name: floor, pose: {xyz: [0.5, 0.2, 0], rpy: [0, 0, 0.7]}, size: [4, 4]}
    - {name: ramp, pose: {xyz: [0.3, -0.3, =high], rpy: [0.2, -0.3, =turn]}, size: [2, 2]}
    - {name: ceiling, pose: {xyz: [0.3, 0.4, 1.4], rpy: [=pi, 0, 0.3]}, size: [2, 2]}
  bars:
    - {name: bar, ends: [[-1, 0.5, =low], [1, 0.5, 1]], radius: 0.02}
start:
  base: {xyz: [0.1, 0, 0.65], rpy: [0, 0.1, 0.3]}
  contacts:
    - {patch: left_sole, surface: floor, x: -0.4, y: 0.1, yaw: 0.1}
    - {patch: right_sole, surface: ramp, x: -0.2, y: 0.1, yaw: 0.1}
    - {patch: left_grip, surface: bar, along: 0.9, angle: 0}
    - {patch: right_hand, surface: ramp}
    - {patch: left_hand, surface: ceiling, x: 0.1, y: 0.2, yaw: 0.4}
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "trial.yaml"
    path.write_text(TEXT)
    return path


def test_values_lie_in_their_ranges_and_fill_them(path):
    drawn = [load_scenario(path, variant=seed).document.data["variant"] for seed in range(60)]
    low, high, turn, mu = (np.array([draw[name] for draw in drawn]) for name in ("low", "high", "turn", "mu"))
    start = np.array([draw["start"] for draw in drawn])
    ranges = [
        (low, 0.085, 0.115),
        (high / (2 * low), 0.9, 1.1),  # about the value that `low` gives it
        (turn, -0.2, 0.2),
        (mu, 0.5, 0.9),
        (start[:, 0], -0.03, 0.03),
        (start[:, 1], -0.03, 0.03),
        (start[:, 2], -np.radians(5), np.radians(5)),
    ]
    for values, least, most in ranges:
        assert np.all((values >= least - 1e-12) & (values <= most + 1e-12))
        assert np.ptp(values) > 0.8 * (most - least)


def test_a_seed_gives_the_same_file_to_the_byte(path):
    scenario = load_scenario(path)
    texts = [scenario.variant(seed).document.text() for seed in range(5)]
    assert texts == [load_scenario(path, variant=seed).document.text() for seed in range(5)]
    assert len(set(texts)) == 5
    # the values of seed 3, in the order that the documentation promises
    rng = np.random.default_rng(3)
    low = rng.uniform(0.085, 0.115)
    high = rng.uniform(2 * low * 0.9, 2 * low * 1.1)
    data = scenario.variant(3).document.data
    assert data["variant"]["low"] == pytest.approx(low)
    assert data["environment"]["surfaces"][1]["pose"]["xyz"][2] == pytest.approx(high)
    # no variant: the values that the file gives
    assert scenario.document.data["environment"]["friction"] == 0.7
    assert "variant" not in scenario.document.data


def test_a_variant_is_a_scenario_of_its_own(path, tmp_path):
    variant = load_scenario(path, {"parameters.mu": 0.8, "variants.mu": 0}, variant=2)
    assert variant.environment.support("ramp").friction == 0.8
    kept = tmp_path / "kept.yaml"
    kept.write_text(variant.document.text())
    again = load_scenario(kept)
    assert again.digest == variant.digest
    assert check_file(kept) == []
    with pytest.raises(ScenarioError, match="no section `variants`"):
        load_scenario(kept, variant=2)
    with pytest.raises(ScenarioError, match="no stances"):
        load_plan(kept)


def test_the_start_moves_as_a_whole(path):
    """Base and contacts keep their relative places in the plane, up to where the supports guide them."""
    before = load_scenario(path, {"variants": "{start: {xy: 0.03, yaw: 0.08}}"})
    for seed in range(5):
        after = before.variant(seed)
        x, y, yaw = after.document.data["variant"]["start"]
        c, s = np.cos(yaw), np.sin(yaw)
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        X0, X1 = (scenario.robot.frame_pose(scenario.start.q, "BODY") for scenario in (before, after))
        assert np.allclose(X1[:3, :3], turn @ X0[:3, :3])
        assert np.allclose(X1[:3, 3] - X0[:3, 3], [x, y, 0])
        for old, new in zip(before.start.contacts, after.start.contacts, strict=True):
            wanted = X1[:3, 3] + turn @ (old.p - X0[:3, 3])
            if old.patch in ("left_sole", "left_hand"):  # level, from above or from below: exactly
                assert np.allclose(new.p, wanted)
                assert np.allclose(new.R, turn @ old.R)
            elif old.patch == "right_sole":  # a slope: it slides, the nearest place to where it would go
                assert np.allclose(new.axes, old.axes)
                assert np.allclose(new.axes[:, :2].T @ (new.p - wanted), 0)
                assert abs(new.axes[:, 2] @ (new.p - old.p)) < 1e-12
            elif old.patch == "left_grip":
                direction = before.environment.support("bar").direction
                assert abs(direction @ (new.p - wanted)) < 1e-12


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        ("low: 15%", "lwo: 15%", 10, "variants.lwo", "did you mean `low`"),
        ("low: 15%", "low: -15%", 10, "variants.low", "expected"),
        ("low: 15%", "low: [1, 2, 3]", 10, "variants.low", "expected 15%"),
        ("[0.5, 0.9]", "[0.9, 0.5]", 13, "variants.mu", "begins at 0.9 and ends at 0.5"),
        ("[0.5, 0.9]", "[0.5, =x]", 13, "variants.mu", "unknown name `x`"),
        ("turn: 0.2", "turn: -1", 12, "variants.turn", "expected 15%"),
        ("xy: 0.03", "xyz: 0.03", 14, "variants.start", "{xy: metres, yaw: radians}"),
        ("xy: 0.03", "xy: -0.03", 14, "variants.start", "not negative"),
        ("  base: {xyz: [0.1, 0, 0.65], rpy: [0, 0.1, 0.3]}\n", "", 14, "variants.start", "start.base"),
    ],
)
def test_mistakes_are_named_in_their_lines(path, old, new, line, key, says):
    path.write_text(TEXT.replace(old, new, 1))
    (problem,) = check_file(path)
    assert (problem.line, problem.key) == (line, key)
    assert says in problem.message
    with pytest.raises(ScenarioError, match="variants"):
        load_scenario(path, variant=0)


@pytest.mark.parametrize(
    "section",
    [
        "true",
        "5",
        "[low, mu]",
        "{low: .inf}",
        "{low: 1e308}",
        "{low: 1000000000000000%}",
        "{low: [-1e308, 1e308]}",
        "{low: [0, =1e308*low]}",
        "{start: {xy: 1e308}}",
        "{start: {yaw: .inf}}",
    ],
)
def test_what_cannot_be_drawn_is_refused_before_it_is(path, section):
    before, after = TEXT[: TEXT.index("variants:")], TEXT[TEXT.index("environment:") :]
    path.write_text(f"{before}variants: {section}\n{after}")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, variant=0)
    assert any(problem.line == 9 and problem.key.startswith("variants") for problem in caught.value.problems)


def test_a_value_that_follows_from_others_may_not_grow_beyond_what_can_be_drawn(path):
    path.write_text(TEXT.replace("high: =2*low", "high: =1e9*(low-0.1)"))
    assert all(problem.key.startswith("environment") for problem in check_file(path))
    with pytest.raises(ScenarioError, match=r"variants.high: .* is beyond 1e\+09"):
        load_scenario(path, {"variants.low": "[5, 6]"}, variant=0)


def test_a_support_that_is_no_text_is_said_of_a_variant_too(path):
    path.write_text(TEXT.replace("surface: floor", "surface: [floor]"))
    with pytest.raises(ScenarioError, match=r":26: start.contacts\[0\].surface: expected text, got \['floor'\]"):
        load_scenario(path, variant=0)


def test_contacts_on_a_mesh_move_with_the_start(path):
    """As those on the same surface that is listed."""
    mesh = trimesh.creation.box((4, 4, 0.1))
    mesh.apply_translation([0, 0, -0.05])
    mesh.export(path.parent / "slab.stl")
    data = {
        "mcplan": 1, "name": "slab", "robot": "hrp2", "variants": {"start": {"xy": 0.2, "yaw": 0.3}},
        "environment": {"mesh": "slab.stl"},
        "start": {"base": {"xyz": [0.1, 0, 0.65]}, "contacts": [
            {"patch": f"{side}_sole", "surface": "floor", "x": 0.1, "y": y, "yaw": 0}
            for side, y in (("left", 0.1), ("right", -0.1))]},
    }  # fmt: skip
    path.write_text(dump_document(data))
    (found,) = load_scenario(path).environment.surfaces
    path.write_text(dump_document(data).replace("surface: floor", f"surface: {found.name}"))
    before = load_scenario(path)
    for seed in range(3):
        after = before.variant(seed)
        x, y, yaw = after.document.data["variant"]["start"]
        turn, pivot = Rotation.from_euler("z", yaw), np.array([0.1, 0, 0.65])
        for old, new in zip(before.start.contacts, after.start.contacts, strict=True):
            np.testing.assert_allclose(new.p, pivot + np.array([x, y, 0]) + turn.apply(old.p - pivot), atol=1e-9)
            np.testing.assert_allclose(new.R, turn.as_matrix() @ old.R, atol=1e-9)


def test_a_start_beyond_its_surface_is_refused_with_its_line(path):
    text = TEXT.replace("x: -0.4, y: 0.1, yaw: 0.1}", "x: -1.89, y: 0.1, yaw: 0}")
    path.write_text(text)
    load_scenario(path)
    moves = [np.random.default_rng(seed).uniform(size=5)[4] for seed in range(20)]  # x is the fifth number drawn
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, variant=int(np.argmin(moves)))
    (problem,) = caught.value.problems
    assert problem.line == text.splitlines().index(next(row for row in text.splitlines() if "-1.89" in row)) + 1
    assert "mm beyond `floor`" in problem.message


def test_seeds(path):
    with pytest.raises(ScenarioError, match="from 0 on"):
        load_scenario(path, variant=-1)


def test_the_command_line_takes_a_variant(path, capsys):
    """`--variant` reaches the scenario: a section that is missing is refused as bad input, before any work."""
    assert main(["plan", "sway", "--variant", "0"]) == 2
    assert "no section `variants`" in capsys.readouterr().err
    with pytest.raises(SystemExit) as refused:
        main(["simulate", str(path), "--variant", "-2"])
    assert refused.value.code == 2
    assert "from 0 on" in capsys.readouterr().err
