"""A peer is a program with its own interpreter that may be missing, fail, hang, or talk nonsense."""

import json
import sys

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.bench.growth import plain_urdf
from mcplan.bench.measure import tick_of_peer
from mcplan.bench.peers import SCRIPTS, Peers, run_job
from mcplan.bench.reference_tick import TickDefinition
from mcplan.bench.settings import BenchSettings
from mcplan.errors import InputError, JobFailed
from mcplan.robot.robot_file import load_robot


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "peer.py"
        path.write_text(text)
        return path

    return write


def test_a_directory_without_the_peers_is_bad_input(tmp_path):
    with pytest.raises(InputError, match=r"tsid.*does not exist"):
        Peers.find(tmp_path)


def test_the_environments_are_found_where_they_are_made(tmp_path):
    for name in ("tsid", "pin"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").symlink_to(sys.executable)
    peers = Peers.find(tmp_path)
    assert peers.tsid == tmp_path / "tsid" / "bin" / "python"
    assert peers.pinocchio == tmp_path / "pin" / "bin" / "python"
    assert not peers.others
    (tmp_path / "frax").symlink_to(tmp_path / "pin")
    assert Peers.find(tmp_path).others == {"frax": tmp_path / "frax" / "bin" / "python"}


def test_a_job_goes_in_and_an_answer_comes_out_with_one_thread(script):
    text = 'import json, os, sys; print(json.dumps([json.load(sys.stdin), os.environ["OPENBLAS_NUM_THREADS"]]))'
    assert run_job(sys.executable, script(text), {"a": [1, 2]}) == [{"a": [1, 2]}, "1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise SystemExit('no such joint')", "exit status 1: no such joint"),
        ("print('hello')", "not JSON: 'hello"),
        ("import time; time.sleep(60)", "no answer after 1 s"),
    ],
)
def test_a_failure_is_told_in_one_line(script, text, message):
    with pytest.raises(JobFailed, match=message):
        run_job(sys.executable, script(text), {}, timeout=1)


def test_an_interpreter_that_is_none_is_told(script, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("")
    with pytest.raises(JobFailed, match="cannot be run"):
        run_job(broken, script(""), {})


def test_pinocchio_answers_for_all_kernels(tmp_path):
    """This environment has Pinocchio too, so its script runs here."""
    robot = load_robot("hrp2")
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(plain_urdf(robot.description, robot.locked))
    job = {
        "urdf": str(urdf), "frame": "LLEG_LINK5", "calls": 2, "repeats": 1, "batch": 3, "batch_repeats": 1,
        "batches": ["mass_matrix"], "chains": {"7": str(urdf)},
    }  # fmt: skip
    answer = run_job(sys.executable, SCRIPTS / "peer_pinocchio.py", job)
    assert answer["nv"] == robot.nv
    assert set(answer["batch_us"]) == {"mass_matrix"}
    assert set(answer["growth_us"]) == {"7"}
    assert all(us > 0 for us in answer["kernels_us"].values())
    assert json.dumps(answer)


def test_the_peer_is_given_the_posture_and_the_feet_of_the_tick(tmp_path):
    robot, definition = load_robot("hrp2"), TickDefinition()
    q = robot.posture(definition.posture)
    job = tick_of_peer(robot, definition, tmp_path / "robot.urdf", BenchSettings())
    base = robot.frame_pose(q, robot.description.root)
    np.testing.assert_allclose(job["base_xyzw"][:3], base[:3, 3])
    np.testing.assert_allclose(Rotation.from_quat(job["base_xyzw"][3:]).as_matrix(), base[:3, :3], atol=1e-12)
    assert [job["joints"][name] for name in robot.joint_names] == q[7:].tolist()
    for patch in (robot.patches[name] for name in definition.patches):
        link, sole = robot.frame_pose(q, patch.link), robot.frame_pose(q, patch.name)
        corners = np.array(job["feet"][patch.link]) @ link[:3, :3].T + link[:3, 3]
        np.testing.assert_allclose(corners, patch.points @ sole[:3, :3].T + sole[:3, 3], atol=1e-12)
