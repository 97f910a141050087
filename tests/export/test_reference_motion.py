"""Reference motions and joint trajectories say what the run says, in the frames and orders that they promise."""

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from mcplan.cli.main import main
from mcplan.errors import InputError
from mcplan.export import export_run
from mcplan.export.reference_motion import ReferenceMotion
from mcplan.robot.robot_file import load_robot
from tests import shared


@pytest.fixture(scope="module")
def run():
    return shared.swaying()


def rows_of(run, rate):
    return np.rint(np.arange(0, run.t[-1] + 1e-9, 1 / rate) / run.dt).astype(int)


def test_rows_hold_base_with_the_scalar_last_and_joints(run, tmp_path):
    (file,) = export_run(run, "reference", tmp_path / "sway.csv", rate=20)
    rows = np.loadtxt(file, delimiter=",")
    k = rows_of(run, 20)
    assert rows.shape == (len(k), run.q.shape[1])
    np.testing.assert_allclose(rows[:, :3], run.q[k, :3], rtol=1e-8)
    turned = Rotation.from_quat(rows[:, 3:7]).as_matrix()
    np.testing.assert_allclose(turned, Rotation.from_quat(run.q[k, 3:7], scalar_first=True).as_matrix(), atol=1e-7)
    np.testing.assert_allclose(rows[:, 7:], run.q[k, 7:], rtol=1e-8, atol=1e-12)
    names = file.read_text().splitlines()[0].removeprefix("# ").split(",")
    assert names[7:] == run.record.joints


class Sampled:
    """As much of a run as a reference motion is made of: three samples of a robot at random states."""

    def __init__(self, robot):
        random = np.random.default_rng(5)
        self.robot, self.dt, self.t, self.patches = robot, 0.01, 0.01 * np.arange(3), []
        self.q = np.array([robot.random_configuration(random) for _ in self.t])
        self.v = random.normal(size=(3, robot.nv))
        self.active, self.com = np.zeros((3, 0), bool), np.zeros((3, 3))

    def __len__(self):
        return len(self.t)


@pytest.mark.filterwarnings("ignore::mcplan.robot.description.RobotWarning")
@pytest.mark.parametrize("said", ["forward: y", "base: LARM_LINK2", "base: LARM_LINK2\nforward: y"])
def test_the_base_is_the_root_of_the_urdf_whatever_the_robots_own_is(tmp_path, said):
    """Who knows the URDF alone finds all links where the motion says that they are."""
    urdf = load_robot("hrp2").urdf_path
    (tmp_path / "robot.yaml").write_text(f"mcplan: 1\nurdf: {urdf}\n{said}\n")
    known, run = load_robot(urdf), Sampled(load_robot(tmp_path / "robot.yaml"))
    motion = ReferenceMotion.of(run, 100.0)
    assert motion.bodies[0] == known.link_names[0]
    order = [motion.joints.index(name) for name in known.joint_names]
    q = np.hstack([motion.q[:, :7], motion.q[:, 7:][:, order]])
    v = np.hstack([motion.v[:, :6], motion.v[:, 6:][:, order]])
    np.testing.assert_array_equal(motion.body_pos[:, 0], motion.q[:, :3])
    for k, link in enumerate(motion.bodies):
        np.testing.assert_allclose(motion.body_pos[:, k], known.frame_pose(q, link)[:, :3, 3], atol=1e-12)
        twist = np.einsum("tij,tj->ti", known.frame_jacobian(q, link), v)
        np.testing.assert_allclose(motion.body_ang_vel[:, k], twist[:, 3:], atol=1e-10)
    assert set(motion.bodies) == set(known.link_names)


def test_velocities_are_the_rates_of_the_poses(run):
    """Central differences of position and rotation of every link, to second order in the step."""
    motion = ReferenceMotion.of(run, 200)
    dt = 1 / 200
    rate = (motion.body_pos[2:] - motion.body_pos[:-2]) / (2 * dt)
    scale = np.abs(motion.body_lin_vel).max()
    np.testing.assert_allclose(motion.body_lin_vel[1:-1], rate, atol=0.02 * scale)
    turns = Rotation.from_quat(motion.body_quat_wxyz.reshape(-1, 4), scalar_first=True).as_matrix()
    turns = turns.reshape(*motion.body_quat_wxyz.shape[:2], 3, 3)
    step = turns[2:] @ turns[:-2].swapaxes(-1, -2)
    angular = Rotation.from_matrix(step.reshape(-1, 3, 3)).as_rotvec().reshape(rate.shape) / (2 * dt)
    np.testing.assert_allclose(motion.body_ang_vel[1:-1], angular, atol=0.02 * np.abs(motion.body_ang_vel).max())


def test_the_folder_is_made_with_those_that_lead_there_and_a_file_in_its_place_is_kept(run, tmp_path, capsys):
    run.save(tmp_path / "run")
    command = ["export", str(tmp_path / "run"), "--to", "motion", "--rate", "5", "-o"]
    assert main([*command, str(tmp_path / "new" / "folder" / "motion")]) == 0
    assert (tmp_path / "new" / "folder" / "motion" / "joint_pos.csv").is_file()
    (tmp_path / "file").write_text("mine")
    assert main([*command, str(tmp_path / "file"), "--force"]) == 2
    assert "is a file; expected the name of a directory" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_the_folder_has_the_files_and_columns_of_its_format(run, tmp_path):
    export_run(run, "motion", tmp_path / "sway")
    tables = {file.stem: np.loadtxt(file, delimiter=",", skiprows=1) for file in (tmp_path / "sway").glob("*.csv")}
    bodies, n = len(run.robot.link_names), len(run.record.joints)
    count = len(rows_of(run, 50))
    assert {name: table.shape for name, table in tables.items()} == {
        "joint_pos": (count, n), "joint_vel": (count, n), "body_pos": (count, 3 * bodies),
        "body_quat": (count, 4 * bodies), "body_lin_vel": (count, 3 * bodies), "body_ang_vel": (count, 3 * bodies),
    }  # fmt: skip
    k = rows_of(run, 50)
    np.testing.assert_allclose(tables["body_pos"][:, :3], run.q[k, :3], rtol=1e-8)
    sign = np.sign(np.sum(tables["body_quat"][:, :4] * run.q[k, 3:7], axis=1))[:, None]
    np.testing.assert_allclose(sign * tables["body_quat"][:, :4], run.q[k, 3:7], atol=1e-7)
    np.testing.assert_allclose(tables["joint_vel"], run.v[k, 6:], rtol=1e-7, atol=1e-10)
    names = (tmp_path / "sway" / "body_quat.csv").read_text().splitlines()[0].split(",")
    assert names[:4] == ["body_0_w", "body_0_x", "body_0_y", "body_0_z"]
    assert f"[{' '.join(map(str, range(bodies)))}]" in (tmp_path / "sway" / "metadata.txt").read_text()
    assert run.record.joints[0] in (tmp_path / "sway" / "info.txt").read_text()


def test_arrays_carry_their_names_and_the_contacts(run, tmp_path):
    (file,) = export_run(run, "npz", tmp_path / "sway.npz", rate=25)
    with np.load(file, allow_pickle=False) as data:
        k = rows_of(run, 25)
        assert float(data["fps"]) == 25
        assert data["joint_names"].tolist() == run.record.joints
        assert np.array_equal(data["contact"], run.active[k])
        assert data["contact_names"].tolist() == run.patches
        for column, link in enumerate(data["body_names"].tolist()[::7]):
            X = run.robot.frame_pose(run.q[k[3]], link)
            np.testing.assert_allclose(data["body_pos_w"][3, 7 * column], X[:3, 3], atol=1e-12)


def test_a_joint_trajectory_is_the_message_of_ros(run, tmp_path):
    (file,) = export_run(run, "trajectory", tmp_path / "sway.yaml", rate=10)
    message = yaml.safe_load(file.read_text())
    assert message["joint_names"] == run.record.joints
    last = message["points"][-1]
    time = last["time_from_start"]["sec"] + 1e-9 * last["time_from_start"]["nanosec"]
    assert time == pytest.approx(run.t[-1] - run.t[0], abs=1e-9)
    assert last["positions"] == run.q[-1, 7:].tolist()
    assert last["effort"] == run.tau[-1].tolist()


def test_a_rate_above_that_of_the_run_is_refused(run, tmp_path):
    with pytest.raises(InputError, match="200 samples per second"):
        export_run(run, "npz", tmp_path / "sway.npz", rate=1000)
    with pytest.raises(InputError, match="no export `cvs`"):
        export_run(run, "cvs", tmp_path / "sway.csv")


def test_the_command_writes_a_folder(run, tmp_path, capsys):
    run.save(tmp_path)
    assert main(["export", str(tmp_path), "--to", "motion", "-o", str(tmp_path / "clip"), "--rate", "10"]) == 0
    assert "joint_pos.csv" in capsys.readouterr().out


def test_a_data_frame_has_a_column_per_number(run):
    frame = run.to_pandas(rate=10)
    assert len(frame) == len(run.every(10))
    assert frame["q.RLEG_JOINT3"].iloc[-1] == run.q[-1, 7 + run.record.joints.index("RLEG_JOINT3")]
