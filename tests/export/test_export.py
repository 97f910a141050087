"""Exports say the same as the run, as their own readers read them."""

import csv
import json
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from mcap.reader import make_reader
from scipy.spatial.transform import Rotation

import mcplan as mc
from mcplan.cli.main import main
from mcplan.errors import InputError
from mcplan.export import export_run, foxglove
from mcplan.export.foxglove import ARROW_SCALE
from mcplan.planning.planner import plan
from mcplan.sim.mujoco.build import build
from mcplan.sim.mujoco.export import _place, _with_names_of
from mcplan.sim.simulate import simulate
from tests import shared


@pytest.fixture(scope="module")
def run():
    return shared.swaying()


def rows_of(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def test_csv_holds_every_array_to_the_last_digit(run, tmp_path):
    samples, points = export_run(run, "csv", tmp_path / "sway.csv")
    rows = rows_of(samples)
    assert len(rows) == len(run)
    joints = run.record.joints

    def column(*names):
        return np.array([[float(row[name]) for name in names] for row in rows])

    assert np.array_equal(column("t")[:, 0], run.t)
    assert np.array_equal(column(*(f"q.{name}" for name in joints)), run.q[:, 7:])
    assert np.array_equal(column("q.base.qw", "q.base.qx", "q.base.qy", "q.base.qz"), run.q[:, 3:7])
    assert np.array_equal(column("v.base.wx", "v.base.wy", "v.base.wz"), run.v[:, 3:6])
    assert np.array_equal(column(*(f"vd.{name}" for name in joints)), run.vd[:, 6:])
    assert np.array_equal(column(*(f"tau.{name}" for name in joints)), run.tau)
    assert np.array_equal(column(*(f"tau_ext.base.{part}" for part in ("fx", "fy", "fz"))), run.tau_ext[:, :3])
    assert np.array_equal(column("com.x", "com.y", "com.z"), run.com)
    assert [row["phase"] for row in rows] == [run.phases[i] for i in run.phase]
    sole = run.patches.index("left_sole")
    assert np.array_equal(column("wrench.left_sole.fz", "wrench.left_sole.mx"), run.wrench[:, sole][:, [2, 3]])
    assert [row["active.left_sole"] == "1" for row in rows] == run.active[:, sole].tolist()
    arrays = sum(np.size(a[0]) for name, a in run.arrays().items() if not name.startswith("point_"))
    assert len(rows[0]) == arrays
    touching = rows_of(points)
    assert len(touching) == len(run.point_xyz)
    assert [float(row["fz"]) for row in touching] == run.point_force[:, 2].tolist()
    assert {row["patch"] for row in touching} == {"left_sole", "right_sole"}


def test_a_rate_takes_fewer_samples_and_the_last(run, tmp_path):
    samples, _ = export_run(run, "csv", tmp_path / "sway.csv", rate=10.0)
    t = np.array([float(row["t"]) for row in rows_of(samples)])
    assert np.allclose(np.diff(t)[:-1], 0.1)
    assert t[-1] == run.t[-1]
    for rate in (0.0, -1.0, np.nan):
        with pytest.raises(InputError, match="rate"):
            export_run(run, "csv", tmp_path / "x.csv", rate)


def test_mujoco_loads_the_scene_and_its_keyframes_put_every_patch_where_the_run_has_it(run, tmp_path):
    (path,) = export_run(run, "mujoco", tmp_path / "sway.xml", rate=2.0)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    rows = run.every(2.0)
    assert model.nkey == len(rows)
    robot = run.robot
    for key, k in enumerate(rows):
        mujoco.mj_resetDataKeyframe(model, data, key)
        mujoco.mj_forward(model, data)
        assert data.time == pytest.approx(run.t[k])
        assert model.key(key).name == f"{k}:{run.phases[run.phase[k]]}"
        for i, joint in enumerate(robot.joint_names):
            assert data.joint(joint).qpos[0] == pytest.approx(run.q[k, 7 + i], abs=1e-6)
            assert data.actuator(joint).ctrl[0] == pytest.approx(run.tau[k, i], rel=1e-5, abs=1e-5)
        for link in ("BODY", "LARM_LINK5"):
            assert data.body(link).xpos == pytest.approx(robot.frame_pose(run.q[k], link)[:3, 3], abs=1e-5)
        # the momentum is the same, so that base velocity and axes are
        momentum = robot.centroidal_momentum_matrix(run.q[k]) @ run.v[k]
        mujoco.mj_subtreeVel(model, data)
        assert model.body_subtreemass[0] * data.subtree_linvel[0] == pytest.approx(momentum[:3], abs=1e-4)
        assert data.subtree_com[0] == pytest.approx(run.com[k], abs=1e-5)


def test_a_keyframe_turns_as_the_run_does_however_it_stands(run, tmp_path):
    """MuJoCo's base spins in body axes: the angular momentum says whether it was told so."""
    rng, robot = np.random.default_rng(8), run.robot
    q, v = run.q.copy(), rng.normal(size=run.v.shape)
    q[:] = [robot.random_configuration(k % 5) for k in range(len(q))]
    tumbling = replace(run, q=q, v=v)
    (path,) = export_run(tumbling, "mujoco", tmp_path / "tumbling.xml", rate=1.0)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    for key, k in enumerate(tumbling.every(1.0)[:4]):
        mujoco.mj_resetDataKeyframe(model, data, key)
        mujoco.mj_forward(model, data)
        mujoco.mj_subtreeVel(model, data)
        momentum = robot.centroidal_momentum_matrix(q[k]) @ v[k]
        assert model.body_subtreemass[0] * data.subtree_linvel[0] == pytest.approx(momentum[:3], abs=2e-3)
        assert data.subtree_angmom[0] == pytest.approx(momentum[3:], abs=2e-3)


def test_names_that_mujoco_has_itself_and_such_with_quotes_are_opened(tmp_path):
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (tmp_path / "r.urdf").write_text(
        f'<robot name="r"><link name="world">{inertial}</link><link name="a &quot;b&quot; &amp; c">{inertial}</link>'
        '<joint name="base" type="continuous"><parent link="world"/><child link="a &quot;b&quot; &amp; c"/></joint>'
        "</robot>"
    )
    robot = mc.load_robot(tmp_path / "r.urdf")
    xml = _with_names_of(robot, build(robot, mc.Environment([])).spec.to_xml())
    model = mujoco.MjModel.from_xml_string(xml)
    assert [model.joint(i).name for i in range(model.njnt)] == ["base", "joint:base"]
    assert [model.body(i).name for i in range(model.nbody)] == ["world", "body:0", 'a "b" & c']


def test_an_object_is_placed_with_its_spin_in_body_axes():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint name='box'/><geom type='box' size='0.1 0.2 0.3'/></body></worldbody>"
        "</mujoco>"
    )
    data = mujoco.MjData(model)
    rng = np.random.default_rng(9)
    quat, v = rng.normal(size=4), rng.normal(size=6)
    q = np.concatenate([[0.3, -0.2, 1.0], quat / np.linalg.norm(quat)])
    _place(model.joint("box"), data, q, v)
    mujoco.mj_forward(model, data)
    found = np.empty(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, 1, found, 0)  # world axes: angular, linear
    assert found == pytest.approx(np.concatenate([v[3:], v[:3]]))
    assert data.xpos[1] == pytest.approx(q[:3])
    assert data.xquat[1] * np.sign(data.xquat[1] @ q[3:]) == pytest.approx(q[3:])


def assert_fits(value, schema):
    """Hold a message against its JSON schema."""
    kinds = {"object": dict, "array": list, "number": (int, float), "integer": int, "string": str, "boolean": bool}
    assert isinstance(value, kinds[schema["type"]])
    if "properties" in schema:
        assert set(value) == set(schema["properties"])
        for name, part in schema["properties"].items():
            assert_fits(value[name], part)
    for item in value[:50] if schema["type"] == "array" else ():
        assert_fits(item, schema["items"])


def test_foxglove_frames_put_links_and_forces_where_the_run_has_them(run, tmp_path):
    (path,) = export_run(run, "mcap", tmp_path / "sway.mcap", rate=2.0)
    found = {}
    with open(path, "rb") as stream:
        for schema, channel, message in make_reader(stream).iter_messages(topics=["/tf", "/forces", "/joint_states"]):
            assert schema.name.startswith("foxglove.")
            found.setdefault(channel.topic, []).append(json.loads(message.data))
    messages = (found[topic] for topic in ("/tf", "/forces", "/joint_states"))
    for k, frames, forces, joints in zip(run.every(2.0), *messages, strict=True):
        for item in frames["transforms"]:
            X = run.robot.frame_pose(run.q[k], item["child_frame_id"])
            turn = Rotation.from_quat([item["rotation"][part] for part in "xyzw"]).as_matrix()
            np.testing.assert_allclose([item["translation"][axis] for axis in "xyz"], X[:3, 3], atol=1e-9)
            np.testing.assert_allclose(turn, X[:3, :3], atol=1e-9)
        total = np.zeros(3)
        for entity in forces["entities"]:
            (arrow,) = entity["arrows"]
            turn = Rotation.from_quat([arrow["pose"]["orientation"][part] for part in "xyzw"])
            total += turn.apply([arrow["shaft_length"] / ARROW_SCALE, 0.0, 0.0])
        np.testing.assert_allclose(total, run.wrench[k, :, :3].sum(axis=0), atol=1e-6)
        assert [joint["effort"] for joint in joints["joints"]] == run.tau[k].tolist()
        changes = [*forces["entities"], *forces["deletions"]]
        for stamp in [item["timestamp"] for item in (joints, *frames["transforms"], *changes)]:
            assert 0 <= stamp["nsec"] < 10**9
            assert stamp["sec"] + 1e-9 * stamp["nsec"] == pytest.approx(run.t[k], abs=1e-9)


def test_foxglove_frames_put_objects_where_the_run_has_them(run):
    rng = np.random.default_rng(0)
    turns = Rotation.random(2 * len(run), random_state=0).as_quat(scalar_first=True)
    at = np.concatenate([rng.normal(size=(2 * len(run), 3)), turns], axis=1).reshape(-1, 2, 7)
    record = run.record.model_copy(update={"objects": ["crate", "ball"]})
    pushed = replace(run, record=record, object_q=at, object_v=np.zeros((len(run), 2, 6)))
    for k in (0, len(run) - 1):
        _, _, frames = next(foxglove.frame(pushed, k))
        crate, ball = frames["transforms"][-2:]
        assert (crate["child_frame_id"], ball["child_frame_id"]) == ("object crate", "object ball")
        for item, expected in ((crate, at[k, 0]), (ball, at[k, 1])):
            assert [item["translation"][axis] for axis in "xyz"] == expected[:3].tolist()
            assert [item["rotation"][part] for part in "wxyz"] == expected[3:].tolist()


def test_a_foxglove_scene_has_each_solid_with_its_size_at_its_place_on_its_link(run):
    _, _, scene = foxglove.scene(run)
    drawn = {entity["id"]: entity for entity in scene["entities"]}
    sizes = {
        mc.Box: ("cubes", lambda box: box.size),
        mc.Sphere: ("spheres", lambda ball: [2 * ball.radius] * 3),
        mc.Cylinder: ("cylinders", lambda rod: [2 * rod.radius, 2 * rod.radius, rod.length]),
    }
    seen = {link: [each for each in all_ if each.role == "visual"] for link, all_ in run.robot.geometry.items()}
    for link, geometries in seen.items():
        for k, each in enumerate(geometries):
            kind, size = sizes[type(each.shape)]
            (solid,) = drawn[f"{link} {k}"][kind]
            assert [solid["size"][axis] for axis in "xyz"] == pytest.approx(size(each.shape))
            assert [solid["pose"]["position"][axis] for axis in "xyz"] == pytest.approx(each.p)
            turn = Rotation.from_quat([solid["pose"]["orientation"][part] for part in "xyzw"])
            np.testing.assert_allclose(turn.as_matrix(), each.R, atol=1e-9)
            assert drawn[f"{link} {k}"]["frame_id"] == link
    assert {type(each.shape) for geometries in seen.values() for each in geometries} == set(sizes)


def test_a_root_link_that_is_called_world_is_not_the_world_of_the_other_program(tmp_path):
    arm = mc.load_robot("arm7")
    (tmp_path / "arm7.urdf").write_text(arm.urdf_path.read_text().replace('"base"', '"world"'))
    (tmp_path / "robot.yaml").write_text((arm.urdf_path.parent / "robot.yaml").read_text().replace("base: base\n", ""))
    robot = mc.load_robot(tmp_path / "robot.yaml")
    run = simulate(plan(mc.Scenario(robot, mc.Environment([]), posture="ready", simulation={"physics": "qp"})))
    (path,) = export_run(run, "mujoco", tmp_path / "arm.xml", rate=2.0)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert data.body("body:0").xpos == pytest.approx(run.q[0, :3])
    assert data.body("link7").xpos == pytest.approx(robot.frame_pose(run.q[0], "link7")[:3, 3], abs=1e-5)
    _, _, frames = next(foxglove.frame(run, 0))
    parents = {item["child_frame_id"]: item["parent_frame_id"] for item in frames["transforms"]}
    assert len(parents) == len(robot.link_names)
    assert set(parents.values()) == {"world"}
    assert "world" not in parents
    _, _, scene = foxglove.scene(run)
    assert {entity["frame_id"] for entity in scene["entities"]} <= set(parents)


def test_numbers_that_are_not_finite_are_null_in_a_log(run, tmp_path):
    """As in a run that broke off because its state was no number any more."""
    vd, wrench = run.vd.copy(), run.wrench.copy()
    vd[-1], wrench[-1] = np.nan, np.inf
    (path,) = export_run(replace(run, vd=vd, wrench=wrench), "mcap", tmp_path / "broken.mcap", rate=2.0)
    last = {}
    with open(path, "rb") as stream:
        for _, channel, message in make_reader(stream).iter_messages():
            last[channel.topic] = json.loads(message.data)
    assert last["/joints"]["acceleration"] == [None] * len(run.record.joints)
    assert last["/joints"]["position"] == run.q[-1, 7:].tolist()
    assert last["/base/acceleration"]["linear"] == dict.fromkeys("xyz")
    assert last["/wrench/left_sole"]["fz"] is None


def test_mcap_reads_back_with_its_schemas(run, tmp_path):
    (path,) = export_run(run, "mcap", tmp_path / "sway.mcap", rate=20.0)
    rows = run.every(20.0)
    found = {}
    with open(path, "rb") as stream:
        reader = make_reader(stream)
        for schema, channel, message in reader.iter_messages():
            assert schema.encoding == "jsonschema"
            assert channel.message_encoding == "json"
            value = json.loads(message.data)
            assert_fits(value, json.loads(schema.data))
            found.setdefault(channel.topic, []).append((message.log_time, value))
        metadata = {item.name: item.metadata for item in reader.iter_metadata()}
    assert metadata["mcplan"]["scenario"] == "sway"
    (scene,) = found.pop("/scene")
    assert {entity["frame_id"] for entity in scene[1]["entities"]} >= {"world", "BODY"}
    assert all(len(messages) == len(rows) for messages in found.values())
    times = [time for time, _ in found["/joints"]]
    assert times == [round(t * 1e9) for t in run.t[rows]]
    for k, (_, joints), (_, com), (_, pose), (_, points) in zip(
        rows, found["/joints"], found["/com"], found["/base/pose"], found["/contact_points"], strict=True
    ):
        assert joints["name"] == list(run.robot.joint_names)
        assert joints["position"] == run.q[k, 7:].tolist()
        assert joints["effort"] == run.tau[k].tolist()
        assert [com[axis] for axis in "xyz"] == run.com[k].tolist()
        assert [pose["orientation"][part] for part in "wxyz"] == run.q[k, 3:7].tolist()
        force = sum(point["force"]["z"] for point in points["points"])
        assert force == pytest.approx(run.wrench[k, :, 2].sum(), abs=1e-6)
        normals = [[point["normal"][axis] for axis in "xyz"] for point in points["points"]]
        assert normals == run.point_normal[run.points(k)].tolist()
    for topic, rates in (("/base/twist", run.v), ("/base/acceleration", run.vd)):
        for k, (_, twist) in zip(rows, found[topic], strict=True):
            assert [twist[part][axis] for part in ("linear", "angular") for axis in "xyz"] == rates[k, :6].tolist()
    sole = run.patches.index("left_sole")
    assert [value["fz"] for _, value in found["/wrench/left_sole"]] == run.wrench[rows, sole, 2].tolist()


def test_the_command_writes_what_it_names_and_keeps_what_is_there(run, tmp_path, capsys):
    run.save(tmp_path / "run")
    target = tmp_path / "out.csv"
    assert main(["export", str(tmp_path / "run"), "--to", "csv", "-o", str(target), "--rate", "5"]) == 0
    assert capsys.readouterr().out.split() == [str(target), str(tmp_path / "out.points.csv")]
    before = target.read_bytes()
    assert main(["export", str(tmp_path / "run"), "--to", "mcap", "-o", str(target)]) == 2
    assert "--force" in capsys.readouterr().err
    assert target.read_bytes() == before
    (tmp_path / "second.points.csv").write_text("mine")
    assert main(["export", str(tmp_path / "run"), "--to", "csv", "-o", str(tmp_path / "second.csv")]) == 2
    assert "second.points.csv: exists and is kept" in capsys.readouterr().err
    assert not (tmp_path / "second.csv").exists()
    assert main(["export", str(tmp_path / "run"), "--to", "csv", "-o", str(tmp_path / "new" / "out.csv")]) == 0
    assert (tmp_path / "new" / "out.csv").is_file()
    assert main(["export", str(tmp_path / "run"), "--to", "csv", "-o", str(target / "out.csv")]) == 2
    assert "is a file" in capsys.readouterr().err
    (tmp_path / "folder").mkdir()
    assert main(["export", str(tmp_path / "run"), "--to", "csv", "-o", str(tmp_path / "folder")]) == 2
    assert "folder: is a directory; expected the name of a file" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "nothing"), "--to", "csv", "-o", str(tmp_path / "x.csv")]) == 2


def test_a_place_that_cannot_be_written_is_refused_in_python_too(run, tmp_path):
    (tmp_path / "file").write_text("kept")
    for kind, place, what in (
        ("csv", tmp_path / "file" / "x.csv", r"x\.csv: .*file is a file, so nothing can be put into it"),
        ("csv", tmp_path, "is a directory; expected the name of a file"),
        ("motion", tmp_path / "file", "is a file; expected the name of a directory"),
    ):
        with pytest.raises(InputError, match=what):
            export_run(run, kind, place)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_missing_library_is_said_to_be_an_extra(run, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    monkeypatch.setitem(sys.modules, "mcap", None)
    monkeypatch.delitem(sys.modules, "mcplan.export.mcap_log", raising=False)
    with pytest.raises(InputError, match=r"pip install mcap"):
        export_run(run, "mcap", tmp_path / "x.mcap")
