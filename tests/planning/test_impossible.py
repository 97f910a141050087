"""What cannot be done is refused on the command line with status 1 and a reason that says what to change."""

import pytest

from mcplan.cli.main import main

SCENARIO = """
mcplan: 1
name: impossible
robot: hrp2
start:
  posture: half_sitting
  base: {xyz: [0, 0, 0.649]}
  contacts:
    - {patch: left_sole, surface: floor, x: 0.01, y: 0.095, yaw: 0}
    - {patch: right_sole, surface: floor, x: 0.01, y: -0.095, yaw: 0}
planner: {patches: [left_sole, right_sole], max_calls: 60}
goal:
  only: true
  contacts:
    - {patch: left_sole, surface: TARGET, x: 1.5, y: 0.095, yaw: 0}
    - {patch: right_sole, surface: TARGET, x: 1.5, y: -0.095, yaw: 0}
environment:
  surfaces:
    - {name: floor, polygon: [[-1, -1], [EDGE, -1], [EDGE, 1], [-1, 1]], friction: 0.05}
"""
BEYOND = SCENARIO.replace("TARGET", "beyond").replace("EDGE", "0.4")
AHEAD = SCENARIO.replace("TARGET", "floor").replace("EDGE", "3")
GAP = BEYOND + "    - {name: beyond, pose: {xyz: [3.4, 0, 0]}, polygon: [[0, -1], [3, -1], [3, 1], [0, 1]]}"
SLOPE = (
    BEYOND
    + """
    - name: beyond
      pose: {xyz: [0.4, 0, 0], rpy: [0, -0.2, 0]}
      polygon: [[0, -1], [3, -1], [3, 1], [0, 1]]
      friction: 0.05
"""
)
CEILING = AHEAD + "  obstacles: [{name: ceiling, box: {size: [1, 2, 0.1]}, pose: {xyz: [0.9, 0, 0.75]}}]"
POST = AHEAD + "  obstacles: [{name: post, box: {size: [0.4, 0.4, 1]}, pose: {xyz: [1.5, 0.1, 0.5]}}]"


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (GAP, ["left_sole cannot come to beyond", "m are missing", "put a surface between"]),
        (SLOPE, ["beyond is tilted by 11.5 degrees with friction 0.05", "at least 0.20 is needed"]),
        (CEILING, ["no path for the base", "inside ceiling", "what would have to change", "closest stance"]),
        (POST, ["left_sole is", "m inside: LLEG_LINK5 and post overlap", "move the goal or the obstacle"]),
    ],
    ids=["gap", "slope", "ceiling", "post"],
)
def test_what_cannot_be_is_refused_with_a_reason(text, reasons, tmp_path, capsys):
    (tmp_path / "impossible.yaml").write_text(text)
    assert main(["plan", str(tmp_path / "impossible.yaml"), "-o", str(tmp_path / "plan.yaml")]) == 1
    told = capsys.readouterr().err
    for reason in reasons:
        assert reason in told, told
    assert not (tmp_path / "plan.yaml").exists()
