"""Scenes and scenarios from Python values say the same as the files that they are written to."""

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import mcplan as mc
from mcplan.document.document import dump_document
from mcplan.errors import InputError, ScenarioError

FLOOR = mc.Surface("floor", size=(4, 4))
TABLE = mc.Surface("table", xyz=(0.6, 0, 0.9), rpy=(0.1, -0.2, 0.3), size=(0.4, 1.2), friction=0.6)
RAIL = mc.Bar("rail", ends=[(0, 0.6, 0.8), (2, 0.6, 0.8)], radius=0.02, max_force=250)
POST = mc.Obstacle("post", mc.Box((0.1, 0.1, 1.0)), xyz=(1.5, 1.5, 0.5), quat_wxyz=(np.sqrt(0.5), 0, 0, np.sqrt(0.5)))
CRATE = mc.FreeObject(
    "crate", mc.Box((0.4, 0.4, 0.4)), xyz=(1.5, -1.0, 0.2), rpy=(0, 0, 0.5), mass=7, friction=0.5,
    surfaces=[mc.Surface("lid", xyz=(1.5, -1.0, 0.4), size=(0.3, 0.3))],
)  # fmt: skip


@pytest.fixture(scope="module")
def robot():
    return mc.load_robot("hrp2")


@pytest.fixture(scope="module")
def soles(robot):
    return [mc.contact(robot, f"{side}_sole", FLOOR, x=0.01, y=y) for side, y in (("left", 0.095), ("right", -0.095))]


@pytest.fixture(scope="module")
def scenario(robot, soles):
    hand = mc.contact(robot, "left_hand", TABLE, x=0.05, y=0.28)
    things = [FLOOR, TABLE, RAIL, POST, CRATE]
    control = {"gains": {"com_kp": 50.0}}
    return mc.Scenario(robot, mc.Environment(things), start=soles, goal=[hand], control=control, name="reach")


def test_an_environment_sorts_what_it_is_given():
    environment = mc.Environment([POST, RAIL, FLOOR, CRATE, TABLE])
    assert environment.surfaces == (FLOOR, TABLE)
    assert (environment.bars, environment.obstacles, environment.objects) == ((RAIL,), (POST,), (CRATE,))
    assert environment.support("lid").owner == "crate"


def test_a_pose_is_that_of_the_conventions():
    np.testing.assert_allclose(TABLE.R, Rotation.from_euler("ZYX", [0.3, -0.2, 0.1]).as_matrix(), atol=1e-15)
    np.testing.assert_allclose(POST.R @ [1, 0, 0], [0, 1, 0], atol=1e-15)


def test_what_is_saved_reads_back_as_the_same_scene(scenario, tmp_path):
    scenario.save(tmp_path / "reach.yaml")
    again = mc.load_scenario(tmp_path / "reach.yaml")
    for ours, theirs in zip(scenario.environment.things, again.environment.things, strict=True):
        assert type(ours) is type(theirs)
        assert ours.name == theirs.name
        for name in ("R", "p", "polygon", "ends", "radius", "friction", "thickness", "mass", "max_force"):
            if hasattr(ours, name) and getattr(ours, name) is not None:
                np.testing.assert_allclose(getattr(theirs, name), getattr(ours, name), atol=1e-15, err_msg=name)
    np.testing.assert_allclose(again.environment.support("lid").p, [1.5, -1.0, 0.4], atol=1e-12)
    assert again.goal == scenario.goal
    assert again.control.gains.com_kp == scenario.control.gains.com_kp
    assert again.digest == scenario.digest
    for ours, theirs in zip(scenario.start.contacts, again.start.contacts, strict=True):
        assert ours.same_place(theirs, 1e-12)


def test_a_mesh_elsewhere_is_written_as_its_hull_and_one_below_stays_a_file(scenario, robot, tmp_path, monkeypatch):
    """A scenario reads meshes from its own directory alone, so what is saved in another holds the corners."""
    trimesh.creation.icosphere(subdivisions=1, radius=0.1).export(tmp_path / "rock.stl")
    data = scenario.data(tmp_path)
    data["environment"]["obstacles"] += [{"name": "rock", "mesh": {"file": "rock.stl", "scale": 2.0}}]
    (tmp_path / "here.yaml").write_text(dump_document(data))
    rocky = mc.load_scenario(tmp_path / "here.yaml")
    rock = rocky.environment.obstacles[-1].shape.vertices
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()
    rocky.save("below/there.yaml")
    rocky.save("again.yaml")
    assert "rock.stl" in (tmp_path / "again.yaml").read_text()
    for other in (mc.load_scenario("below/there.yaml"), mc.load_scenario("again.yaml"), rocky.replace(name="other")):
        again = other.environment.obstacles[-1].shape.vertices
        np.testing.assert_allclose(np.sort(again, axis=0), np.sort(rock, axis=0), atol=1e-9)


def test_meshes_of_packages_stay_and_flat_or_fine_ones_are_written_so_that_they_read(scenario, tmp_path, monkeypatch):
    monkeypatch.setattr("mcplan.scenario.values.MAX_HULL_CORNERS", 500)
    home = tmp_path / "props"
    (tmp_path / "below").mkdir()
    home.mkdir()
    (home / "package.xml").write_text("<package/>")
    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler("x", 0.7).as_matrix()
    plate = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    plate.apply_transform(turn).export(home / "plate.stl")
    ball = trimesh.creation.icosphere(subdivisions=4, radius=0.1)
    ball.export(home / "ball.stl")
    data = scenario.data(home)
    things = {"plate": "plate.stl", "ball": "ball.stl", "again": "package://props/ball.stl"}
    data["environment"]["obstacles"] += [{"name": name, "mesh": {"file": file}} for name, file in things.items()]
    (home / "here.yaml").write_text(dump_document(data))
    loaded = mc.load_scenario(home / "here.yaml")
    assert loaded.data(home)["environment"]["obstacles"][-1]["mesh"]["file"] == "package://props/ball.stl"
    loaded.save(tmp_path / "below" / "there.yaml")
    *_, flat, fine, again = mc.load_scenario(tmp_path / "below" / "there.yaml").environment.obstacles
    off = (flat.shape.vertices @ turn[:3, :3])[:, 2]
    assert np.abs(off).max() == pytest.approx(5e-5, abs=1e-7)
    assert np.ptp(flat.shape.vertices @ turn[:3, :3], axis=0) == pytest.approx([1, 1, 1e-4], abs=1e-7)
    for one in (fine, again):
        assert 400 < len(one.shape.vertices) <= 500
        assert ConvexHull(one.shape.vertices).volume == pytest.approx(ball.volume, rel=0.02)


def test_the_text_of_a_file_is_no_path(scenario):
    with pytest.raises(ScenarioError, match="expected the name of a scenario or the path of a file"):
        mc.load_scenario(scenario.document.text())


@pytest.mark.parametrize("load", [mc.load_scenario, mc.load_robot, mc.load_plan, mc.load_run])
def test_a_name_too_long_for_a_file_is_an_input_error(load):
    with pytest.raises(mc.InputError, match="xxx"):
        load(500 * "x")


def test_a_dictionary_is_what_the_file_would_say(scenario):
    assert mc.load_scenario(scenario.document.data).digest == scenario.digest


def test_a_contact_is_where_the_coordinates_say(robot):
    hand = mc.contact(robot, "left_hand", TABLE, x=0.05, y=0.28)
    np.testing.assert_allclose(hand.p, TABLE.p + TABLE.R @ [0.05, 0.28, 0.0], atol=1e-12)
    np.testing.assert_allclose(hand.R[:, 2], -TABLE.normal, atol=1e-12)
    np.testing.assert_allclose(hand.R[:, 0], TABLE.R[:, 0], atol=1e-12)


def test_coordinates_left_out_are_the_nearest_to_a_posture(robot):
    q = robot.posture("half_sitting")
    sole = mc.contact(robot, "left_sole", FLOOR, near=q)
    np.testing.assert_allclose(sole.p, robot.frame_pose(q, "left_sole")[:3, 3], atol=1e-6)


def test_a_start_posture_may_be_a_configuration(robot, soles):
    q = robot.posture("half_sitting")
    q[0] += 0.01
    q[7] += 0.05
    scenario = mc.Scenario(robot, mc.Environment([FLOOR]), start=soles, goal=soles, posture=q)
    np.testing.assert_allclose(scenario.start.q, q, atol=1e-15)


def test_parts_are_replaced_and_checked_anew(scenario, robot, soles):
    wide = scenario.replace(environment=mc.Environment([mc.Surface("floor", size=(9, 9)), TABLE]), name="wide")
    assert wide.name == "wide"
    assert [surface.name for surface in wide.environment.surfaces] == ["floor", "table"]
    assert wide.control.gains.com_kp == scenario.control.gains.com_kp
    assert scenario.replace(control={"gains": {"trunk_kp": 70.0}}).control.gains.trunk_kp == 70.0
    assert scenario.replace(control={"gains": {"trunk_kp": 70.0}}).control.gains.com_kp == scenario.control.gains.com_kp
    with pytest.raises(ScenarioError, match=r"goal.*table"):
        scenario.replace(environment=mc.Environment([FLOOR]))
    other = mc.load_scenario("walk").replace(environment=mc.Environment([mc.Surface("floor", size=(9, 9))]))
    assert np.ptp(other.environment.support("floor").polygon, axis=0) == pytest.approx([9, 9])


def test_settings_objects_are_what_they_were_given(scenario, robot):
    given = mc.SimulationSettings(dt=0.002)
    made = mc.Scenario(robot, scenario.environment, scenario.start.contacts, {"com": [0, 0]}, simulation=given)
    assert made.document.data["simulation"] == {"dt": 0.002}
    assert made.simulation == made.replace(simulation=made.simulation, control=made.control).simulation == given
    changed = made.replace(control=mc.ControlSettings(pace={"friction": 0.6}))
    assert changed.replace(control=changed.control).control == changed.control


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mc.Surface("a", size=(-1, 2)), "surface `a`: size is -1 m"),
        (lambda: mc.Surface("a"), "either size"),
        (lambda: mc.Surface("a", size=(1, 1), friction=-0.1), "friction is -0.1"),
        (lambda: mc.Surface("a", polygon=[(0, 0), (1, 0), (0.2, 0.2), (0, 1)]), "not convex"),
        (lambda: mc.Surface("a", polygon=[(0, 0), (1, 0), (1, 1), (0, 0)]), "corners 4 and 1 in the same place"),
        (lambda: mc.Surface("a", size=(1, 1), rpy=(0, 0, 0), quat_wxyz=(1, 0, 0, 0)), "one of R, rpy"),
        (lambda: mc.Bar("b", ends=[(0, 0, 0), (0, 0, 0)], radius=0.1), "same point"),
        (lambda: mc.Bar("b", ends=[(0, 0), (1, 1)], radius=0.1), "two points"),
        (lambda: mc.Environment([3]), "not 3"),
        (lambda: mc.load_scenario(3), "a dictionary, not 3"),
    ],
)
def test_a_wrong_value_is_named(make, text):
    with pytest.raises(InputError, match=text):
        make()


def test_a_wrong_contact_is_named(robot):
    for place, text in (
        (("left_sol", FLOOR, {"x": 0, "y": 0}), "did you mean `left_sole`"),
        (("left_sole", FLOOR, {"x": 0}), "y left out"),
        (("left_sole", FLOOR, {"x": 0, "y": 0, "jaw": 1}), "jaw"),
        (("left_sole", FLOOR, {"x": 1.99, "y": 0}), "beyond"),
        (("left_sole", "floor", {"x": 0, "y": 0}), "environment"),
    ):
        patch, support, coordinates = place
        with pytest.raises(InputError, match=text):
            mc.contact(robot, patch, support, **coordinates)


def test_two_things_of_one_name_are_refused(robot, soles):
    with pytest.raises(InputError, match="two things are called `floor`"):
        mc.Scenario(robot, mc.Environment([FLOOR, mc.Surface("floor", size=(1, 1))]), start=soles, goal=soles)


def test_every_object_says_in_a_line_what_it_is(scenario):
    things = [scenario, scenario.robot, scenario.environment, *scenario.environment.things, *scenario.start.contacts]
    for thing in things:
        text = repr(thing)
        assert "\n" not in text
        assert len(text) < 200
    assert repr(scenario.robot).startswith("Robot('hrp2', 28 joints, 56.0")


def test_every_public_name_can_be_had():
    for name in mc.__all__:
        assert getattr(mc, name) is not None
