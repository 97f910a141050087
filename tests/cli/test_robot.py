"""``mcplan robot``: a file is proposed, checked and shown, and nothing is written over."""

import json
import re

import pytest

from mcplan.cli.main import main
from mcplan.robot.mesh_file import find_package
from mcplan.robot.robot_file import load_robot
from tests.sim.other_robots import humanoid


@pytest.fixture
def urdf(tmp_path, monkeypatch):
    humanoid(tmp_path)
    monkeypatch.chdir(tmp_path)
    return "humanoid.urdf"


def test_a_robot_is_proposed_checked_and_shown(urdf, tmp_path, capsys):
    assert main(["robot", "new", urdf, "-o", "files/mine.yaml", "--name", "mine"]) == 0
    said = capsys.readouterr()
    assert "left_sole" in said.out
    assert said.err == ""
    assert load_robot("files/mine.yaml").urdf_path.resolve() == (tmp_path / urdf).resolve()
    assert main(["robot", "check", "files/mine.yaml"]) == 0
    assert capsys.readouterr().out == "files/mine.yaml: ok\n"
    assert main(["robot", "show", "files/mine.yaml", "-o", "mine.html"]) == 0
    assert (tmp_path / "mine.html").stat().st_size > 100_000
    assert main(["robot", "new", urdf, "-o", "files/mine.yaml"]) == 2
    assert "--force" in capsys.readouterr().err


def test_columns_of_info_stay_apart_whatever_links_are_called(urdf, tmp_path, capsys):
    name = "left_gripper_with_a_very_long_name"
    for file in ("humanoid.urdf", "humanoid.yaml"):
        text = (tmp_path / file).read_text()
        (tmp_path / file).write_text(re.sub(r"\bl_(sole|foot)\b", rf"{name}_\1", text))
    assert main(["info", "humanoid.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    patches = [line for line in lines if " surface " in line]
    assert any(name in line for line in patches)
    assert len({line.index(" surface ") for line in patches}) == 1
    (link,) = (line for line in lines if line.startswith(f"{name}_foot "))
    (head,) = (line for line in lines if line.startswith("link "))
    assert link[head.index("mass") + 4] == head[head.index("mass") + 4] == " "
    assert link.split()[1].replace(".", "").isdigit()


def test_what_is_doubtful_is_said_and_the_status_is_one(urdf, tmp_path, capsys):
    text = (tmp_path / "humanoid.yaml").read_text().replace("  ready:", "  half_sitting:").replace("0.64143", "0.6")
    (tmp_path / "low.yaml").write_text(text)
    assert main(["robot", "check", "low.yaml"]) == 1
    assert "left_sole is 41 mm below the ground" in capsys.readouterr().err
    (tmp_path / "far.yaml").write_text(text.replace("0.6]", "600]"))
    assert main(["robot", "check", "far.yaml"]) == 1
    assert "600 m is very far; lengths are in metres" in capsys.readouterr().err
    assert main(["robot", "check", urdf]) == 1
    assert "patches: there are none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["new", "absent.urdf"], "cannot be read"),
        (["new", "humanoid.urdf", "-o", "robot.txt"], "ends in .yaml"),
        (["new", "humanoid.yaml"], "humanoid.yaml is a robot file, expected a URDF: it names one under `urdf:`"),
        (["new", "humanoid.yaml", "-o", "other.yaml", "--force"], "humanoid.yaml is a robot file, expected a URDF"),
        (["split", "humanoid.yaml"], "humanoid.yaml is a robot file, expected a URDF"),
        (["show", "humanoid.yaml", "--posture", "lying"], "no posture 'lying'"),
    ],
)
def test_a_mistake_is_named_before_anything_is_written(urdf, tmp_path, arguments, message, capsys):
    before = set(tmp_path.iterdir())
    assert main(["robot", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert set(tmp_path.iterdir()) == before


def test_info_lists_links_with_masses_and_extents(urdf, capsys):
    assert main(["info", "humanoid.yaml", "--json"]) == 0
    links = json.loads(capsys.readouterr().out)["links"]
    assert links["l_foot"] == {"mass": 0.9, "extent": pytest.approx([0.2, 0.1, 0.04]), "shapes": ["box"]}
    assert links["l_sole"] == {"mass": 0.0, "extent": None, "shapes": []}
    assert main(["info", "humanoid.yaml"]) == 0
    out = capsys.readouterr().out
    assert "0.200 x 0.100 x 0.040" in out
    assert "frames: l_sole, r_sole" in out


def test_a_package_is_found_where_it_is_installed(tmp_path, monkeypatch):
    share = tmp_path / "share" / "my_description"
    share.mkdir(parents=True)
    assert find_package("my_description") is None
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert find_package("my_description") == share
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{tmp_path / 'share'}")
    assert find_package("my_description") == share
    assert find_package("../share/my_description") is None


def test_a_urdf_of_a_package_is_named_so_in_the_file(urdf, tmp_path, capsys):
    """As ROS names it; a package that is not there, or a file that it has not, is said with the name that was given."""
    package = tmp_path / "mine_description"
    package.mkdir()
    (tmp_path / urdf).rename(package / urdf)
    name = f"package://mine_description/{urdf}"
    assert main(["robot", "new", name, "-o", "mine.yaml", "--package-dir", str(tmp_path)]) == 0
    assert f'urdf: "{name}"\n' in (tmp_path / "mine.yaml").read_text()
    assert load_robot("mine.yaml").urdf_path == package / urdf
    assert main(["info", name, "--package-dir", str(tmp_path)]) == 0
    for place, packages in (("", "[.]"), ("config", "[..]")):  # the package itself, from within
        file = package / place / "robot.yaml"
        file.parent.mkdir(exist_ok=True)
        lines = (tmp_path / "mine.yaml").read_text().splitlines(keepends=True)
        kept = [f"packages: {packages}\n" if line.startswith("packages:") else line for line in lines]
        file.write_text("".join(kept))
        assert load_robot(file).urdf_path == package / urdf
    capsys.readouterr()
    for said, message in (
        (name, "the package 'mine_description' is not installed: name the directory that holds it in `packages`"),
        ("package://example-robot-data/no.urdf", "holds no file 'no.urdf'"),
    ):
        for command in (["robot", "new", said, "-o", "other.yaml"], ["info", said], ["check", said]):
            assert main(command) == 2
            assert message in capsys.readouterr().err, command
