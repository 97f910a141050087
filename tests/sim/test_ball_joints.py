"""A robot with ball joints in the physics: by its own equation of motion, and as other engines have it."""

import numpy as np
import pytest

from mcplan.certificate.reproduction import reproduce
from mcplan.certificate.verify import verify
from mcplan.errors import RunError, SimulationFailed
from mcplan.planning.planner import plan
from mcplan.record.recording import record_robot
from mcplan.record.records import RobotRecord
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import load_scenario
from mcplan.scene.environment import Environment
from mcplan.sim.mujoco.physics import MujocoPhysics
from mcplan.sim.simulate import simulate
from tests.ball_robot import write_ball_robot


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_ball_robot(tmp_path_factory.mktemp("balls"))


@pytest.fixture(scope="module")
def robot(path):
    return load_robot(path)


@pytest.fixture(scope="module")
def swaying(path):
    return plan(load_scenario("sway", {"robot": str(path), "simulation.time_limit": 0.25}))


def test_its_feet_and_hands_are_where_they_are_on_hinges(robot):
    hinges = load_robot("hrp2")
    for posture in ("half_sitting", "crawl", "ladder"):
        q, p = robot.posture(posture), hinges.posture(posture)
        for patch in ("left_sole", "right_knee", "left_hand", "right_grip"):
            np.testing.assert_allclose(robot.frame_pose(q, patch), hinges.frame_pose(p, patch), atol=1e-12)
    assert robot.mass == pytest.approx(hinges.mass, rel=1e-12)


def test_mujoco_accelerates_it_as_its_equation_of_motion_says(robot):
    """In the air, with torques in every joint and turns in every ball; MuJoCo's own step is of the first order."""
    random = np.random.default_rng(2)
    q, v = robot.posture("half_sitting"), random.normal(size=robot.nv)
    q[2] = 5.0
    physics = MujocoPhysics(robot, Environment(()), q, v)
    tau = random.uniform(-5.0, 5.0, robot.n)
    outcome = physics.step(tau, 1e-3)
    expected = robot.forward_dynamics(q, v, np.concatenate([np.zeros(6), tau]))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(outcome.vd[6:], expected[6:], atol=1e-7 * scale)
    np.testing.assert_allclose(physics.v, v + 1e-3 * outcome.vd, atol=1e-12)
    np.testing.assert_allclose(physics.q[7:], q[7:] + 1e-3 * physics.v[6:], atol=1e-14)


def test_torques_on_balls_are_cut_to_their_limits(robot):
    physics = MujocoPhysics(robot, Environment(()), robot.posture("half_sitting"))
    np.testing.assert_allclose(physics.controls(1e6 * np.ones(robot.n)), physics.controls(robot.limits.torque))


@pytest.mark.parametrize("physics", ["qp", "contact", "mujoco"])
def test_a_run_is_found_again_by_other_engines(swaying, physics):
    with pytest.raises(SimulationFailed, match="time limit") as stopped:
        simulate(swaying, physics=physics)
    run = stopped.value.run
    lines = {check.name: check for check in verify(run).checks}
    for name in ("integration identity", "equation of motion", "centre of mass", "external forces", "clearance"):
        assert lines[name].passed, lines[name].failure
    for engine, checks in reproduce(run, ("pinocchio", "mujoco")).items():
        wrong = [f"{engine}: {check.name}: {check.failure}" for check in checks if not check.passed]
        assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "change", [{"coordinate": 5}, {"axis": [0.0, 1.0, 0.0]}, {"multiplier": 2.0}, {"p": [0.0, 0.0, 0.1]}]
)
def test_a_record_with_half_a_ball_joint_is_refused(robot, change):
    data = record_robot(robot).model_dump()
    last = next(joint for joint in data["joints"] if joint["name"] == "RLEG_JOINT0_z")
    RobotRecord(**data)
    last |= change
    with pytest.raises((ValueError, RunError), match="RLEG_JOINT0_z is not a valid part of a ball joint"):
        RobotRecord(**data)
