"""Run recorder: every value is kept, HRP-2 is described rightly, and a file suffices to rebuild the robot."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.certificate.independent import Mechanism
from mcplan.certificate.verify import verify
from mcplan.control.command import Notice
from mcplan.errors import RunError
from mcplan.record.recording import record_robot
from mcplan.record.records import WorldRecord
from mcplan.record.replica import rebuild_plan, unpack_robot
from mcplan.record.run import load_run
from mcplan.record.world import with_inertias
from mcplan.robot.description import RobotWarning
from mcplan.robot.robot_file import load_robot
from mcplan.sim.recorder import PointForces, RunRecorder
from tests import shared


@pytest.fixture(scope="module")
def robot(plan):
    return plan.scenario.robot


@pytest.fixture(scope="module")
def plan():
    """HRP-2 stands on both feet and shifts its weight."""
    return shared.planned("sway")


def record_samples(plan, count, physics="qp", phase=("x", 0), status=3, **given):
    """A recorder with samples of the first posture at rest; arguments are functions of the sample's index."""
    recorder, zero = RunRecorder(plan, 0.001, physics), np.zeros(plan.scenario.robot.nv)
    values = {"q": plan.stances[0].q, "wrenches": {}, "forces_at_points": {}, "active": (), "phase": phase}
    values |= {"qp_status": status}
    for k in range(count):
        now = values | {name: value(k) for name, value in given.items()}
        recorder.append(0.001 * k, v=zero, vd=zero, tau=zero[6:], tau_ext=None, **now)
    return recorder


def standing(plan, samples=50):
    """Record HRP-2 standing still: forces by least squares from the kernels' static equation of motion."""
    robot, recorder = plan.scenario.robot, RunRecorder(plan, 0.001, "qp", 3)
    q, still = plan.stances[0].q, np.zeros(robot.nv)
    contacts = plan.stances[0].contacts
    rows = []
    for contact in contacts:
        arms = contact.points @ robot.frame_pose(q, contact.patch)[:3, :3].T
        rows += [(contact.patch, arm) for arm in arms]
    maps = []
    for patch, (x, y, z) in rows:
        J = robot.frame_jacobian(q, patch)
        skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        maps.append((J[:3] - skew @ J[3:]).T)
    h = robot.nonlinear_effects(q, still)
    G = np.concatenate(maps, axis=1)
    f = (np.linalg.pinv(G[:6]) @ h[:6]).reshape(-1, 3)
    tau = (h - G @ f.ravel())[6:]
    forces = {c.patch: f[4 * i : 4 * i + 4] for i, c in enumerate(contacts)}
    wrenches = {
        c.patch: np.concatenate(
            [forces[c.patch].sum(axis=0), np.cross([a for p, a in rows if p == c.patch], forces[c.patch]).sum(axis=0)]
        )
        for c in contacts
    }
    for k in range(samples):
        phase = ("shift", 0) if k < samples // 2 else ("settle", 0)
        if k == samples // 2:
            recorder.end_phase("error")
        recorder.append(
            0.001 * k, q, still, still, tau, None, wrenches, forces, ("left_sole", "right_sole"), phase, 0, {"qp": 1e-4}
        )
    return recorder.finish()


def test_a_standing_robot_is_recorded_and_passes(plan, tmp_path):
    """Its forces balance; the goal, a posture that it never leaves for, is not reached."""
    run = standing(plan)
    report = verify(run)
    assert all(check.name.startswith("item ") for check in report.checks if not check.passed), report.text()
    assert run.patches == ["left_sole", "right_sole"]
    assert run.phases == ["shift", "settle"]
    assert [phase.ended_by for phase in run.record.phases] == ["error", None]
    np.testing.assert_array_equal(run.phase, np.repeat([0, 1], 25))
    np.testing.assert_array_equal(run.point_start, 8 * np.arange(51))
    assert len(run.timing["qp"]) == 50
    assert run.stance_of(3, "left_sole") == 0
    np.testing.assert_array_equal(run.patch_friction("left_sole"), 0.7)
    run.save(tmp_path)
    assert verify(tmp_path).to_json() == report.to_json()


def test_same_run_same_bytes(plan, tmp_path):
    a, b = (standing(plan).save(tmp_path / name).read_bytes() for name in "ab")
    assert a == b


def test_phases_that_repeat_after_an_end_are_new(plan):
    recorder = RunRecorder(plan, 0.001)
    q, zero = plan.stances[0].q, np.zeros(plan.scenario.robot.nv)
    for k, (phase, end) in enumerate([("lift", ""), ("lift", "timeout"), ("lift", ""), ("land", "force")]):
        recorder.append(0.001 * k, q, zero, zero, zero[6:], None, {}, {}, (), (phase, None), 3)
        if end:
            recorder.end_phase(end)
    run = recorder.finish()
    assert [(p.name, p.ended_by) for p in run.record.phases] == [("lift", "timeout"), ("lift", None), ("land", "force")]
    np.testing.assert_array_equal(run.phase, [0, 0, 1, 2])


def test_a_patch_belongs_to_the_place_that_it_has_in_the_stance_to_which_a_phase_leads():
    """A foot that steps has two; while it is in the air it is that of the nearest stance in which it stands."""
    plan = shared.planned("step")
    recorder, zero = RunRecorder(plan, 0.001), np.zeros(plan.scenario.robot.nv)
    for k, stance in enumerate(plan.stances):
        recorder.append(0.001 * k, stance.q, zero, zero, zero[6:], None, {}, {}, (), (f"to {k}", k), 3)
    run, moved = recorder.finish(), set()
    for patch in ("left_sole", "right_sole"):
        standing = [k for k, stance in enumerate(plan.stances) if patch in stance.patches]
        for k in range(len(plan.stances)):
            found = run.stance_of(k, patch)
            assert abs(found - k) == min(abs(other - k) for other in standing)
            assert run.planned(patch)[k].p == plan.stances[found].contact(patch).p.tolist()
            moved.add((patch, *run.planned(patch)[k].p))
    assert len(moved) > 2


def test_slack_is_recorded_where_the_program_was_not_solved(plan):
    recorder = record_samples(plan, 4, qp_status=lambda k: k, violation=lambda k: 0.1 * k + 1e-9)
    np.testing.assert_allclose(recorder.finish().qp_slack, [0.0, 0.1, 0.2, 0.3], atol=1e-8)


def test_points_of_another_physics(plan):
    points = PointForces.of(
        np.array([3]), np.array([-1]), np.ones((1, 3)), np.array([[0, 0, 1.0]]), np.array([[0, 0, 9.0]])
    )
    recorder = record_samples(plan, 30, "contact", forces_at_points=lambda k: points)
    run = recorder.finish("knee on the floor", [Notice(0.01, "right_sole slides", ("right_sole",), 0.003)])
    assert run.record.stopped == "knee on the floor"
    report = verify(run)
    notice = {"t": 0.01, "text": "right_sole slides", "bodies": ["right_sole"], "amount": 0.003}
    assert report.to_json()["notices"] == [notice]
    assert "note: t = 0.010 s: right_sole slides" in report.text()
    (found,) = (check for check in report.checks if check.name == "unplanned contact")
    assert (found.value, found.where) == (pytest.approx(0.03), f"{run.record.links[3]} from t = 0.000 s")


def test_a_physics_may_write_its_points_into_the_same_arrays_again(plan):
    points = PointForces.of([1], [0], np.zeros((1, 3)), np.eye(3)[2:], np.zeros((1, 3)))
    recorder, q, zero = RunRecorder(plan, 1e-3), plan.stances[0].q, np.zeros(plan.scenario.robot.nv)
    for k in range(3):
        points.labels[:, 0], points.values[:] = k, 10.0 * k
        recorder.append(0.001 * k, q, zero, zero, zero[6:], None, {}, points, (), ("x", 0), 3)
    run = recorder.finish()
    assert run.point_link.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(run.point_force, 10.0 * np.arange(3.0)[:, None] * np.ones(3))


def test_points_of_a_planned_contact_are_where_its_patch_takes_them(plan):
    """Turned and tilted bases: each point is the corner of the sole at the configuration of its sample."""
    rows = [plan.stances[0].q.copy() for _ in range(3)]
    for k, q in enumerate(rows):
        q[3:7] = Rotation.from_rotvec(np.array([0.3, -0.2, 0.9]) * k).as_quat(scalar_first=True)
    on_sole = {"wrenches": lambda k: {"left_sole": np.zeros(6)}, "q": rows.__getitem__}
    run = record_samples(plan, 3, forces_at_points=lambda k: {"left_sole": np.ones((4, 3))}, **on_sole).finish()
    corners = plan.stances[0].contact("left_sole").points
    for k, q in enumerate(rows):
        X = plan.scenario.robot.frame_pose(q, "left_sole")
        expected = [X[:3, :3] @ corner + X[:3, 3] for corner in corners]
        np.testing.assert_allclose(run.point_xyz[4 * k : 4 * k + 4], expected, atol=1e-12)


def test_points_of_an_object_are_recorded_as_those_of_that_object():
    plan = shared.planned("push")
    (box,) = plan.scenario.environment.objects
    up = np.array([[0, 0, 1.0]])
    points = RunRecorder(plan, 0.001, "contact").object_points({box.name: (np.ones((1, 3)), up, 50.0 * up)})
    state = box.pose[None], np.zeros((1, 6))
    run = record_samples(plan, 1, "contact", objects=lambda k: state, object_points=lambda k: points).finish()
    assert [[*run.record.links, *run.record.objects][link] for link in run.point_link] == [box.name]
    assert run.point_patch.tolist() == [-1]


def test_the_centre_of_mass_is_that_of_the_robot_that_the_physics_moves(robot, plan):
    heavy = with_inertias(robot, {"RARM_LINK6": replace(robot.description.links["RARM_LINK6"].inertia, mass=20.0)})
    recorder = record_samples(plan, 1)
    recorder.set_world(WorldRecord(), heavy)
    com, q = recorder.finish().com[0], plan.stances[0].q
    np.testing.assert_allclose(com, heavy.com(q), atol=1e-12)
    assert np.linalg.norm(com - robot.com(q)) > 0.01


def test_a_state_that_is_not_a_number_is_kept(plan):
    q = plan.stances[0].q
    run = record_samples(plan, 2, q=[q, np.full_like(q, np.nan)].__getitem__).finish("not a number")
    assert np.isfinite(run.com[0]).all()
    assert np.isnan(run.com[1]).all()
    assert verify(run).failures[0].startswith("q is not a number at t = 0.001 s")


def test_nothing_recorded_is_an_error(plan):
    with pytest.raises(RunError, match="no samples"):
        RunRecorder(plan, 0.001).finish()


def test_description_of_hrp2_gives_the_dynamics_of_its_kernels(robot):
    """Two programs that share only the URDF."""
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(seed) for seed in range(20)])
    v, vd = rng.normal(size=(2, 20, robot.nv))
    patches = list(robot.patches)
    wrench = rng.normal(0, 100, (20, len(patches), 6))
    motion = Mechanism(record_robot(robot)).motion(q, v, vd, wrench, patches)
    for k in range(20):
        force = robot.inverse_dynamics(q[k], v[k], vd[k])
        for name, w in zip(patches, wrench[k], strict=True):
            force = force - robot.frame_jacobian(q[k], name).T @ w
            np.testing.assert_allclose(motion.R[name][k], robot.frame_pose(q[k], name)[:3, :3], atol=1e-12)
            np.testing.assert_allclose(motion.p[name][k], robot.frame_pose(q[k], name)[:3, 3], atol=1e-12)
        np.testing.assert_allclose(motion.force[k], force, rtol=0, atol=1e-10 * np.abs(force).max())
        np.testing.assert_allclose(motion.com[k], robot.com(q[k]), atol=1e-12)


def test_robot_comes_back_from_the_file_alone(robot, plan, tmp_path):
    record = load_run(standing(plan, samples=2).save(tmp_path)).record
    again = rebuild_plan(record).scenario.robot
    assert again.joint_names == robot.joint_names
    assert list(again.patches) == list(robot.patches)
    assert record_robot(again).links == record.robot.links
    q = robot.random_configuration(1)
    np.testing.assert_array_equal(again.mass_matrix(q), robot.mass_matrix(q))
    bare = record.model_copy(update={"plan": record.plan.model_copy(update={"document": {}})})
    with pytest.raises(RunError, match="has no plan document"):
        rebuild_plan(bare)


def test_robot_files_that_changed_since_loading_are_refused(robot, tmp_path):
    for name in ("hrp2.urdf", "robot.yaml"):
        (tmp_path / name).write_bytes(robot.path.with_name(name).read_bytes())
    copy = load_robot(tmp_path / "robot.yaml")
    record_robot(copy)
    with (tmp_path / "robot.yaml").open("a") as file:
        file.write("# edited\n")
    with pytest.raises(RunError, match="have changed since it was loaded"):
        record_robot(copy)


def with_urdf(record, change):
    files = record.robot.files | {"robot.urdf": change(record.robot.files["robot.urdf"])}
    return record.model_copy(update={"robot": record.robot.model_copy(update={"files": files})})


def test_broken_robot_in_a_run_is_named(short_run):
    with pytest.raises(RunError, match=r"the plan in this run cannot be rebuilt: run/robot\.urdf:"):
        rebuild_plan(with_urdf(short_run.record, lambda text: text[:5000]))
    bare = short_run.record.robot.model_copy(update={"files": {}})
    with pytest.raises(RunError, match="has no robot files"):
        rebuild_plan(short_run.record.model_copy(update={"robot": bare}))


def test_doubts_about_a_robot_are_not_reported_again_of_the_files_that_a_run_keeps(short_run, tmp_path):
    def heavy(text):
        return re.sub(r'ixx="[^"]*"', 'ixx="5"', text, count=1)

    record = with_urdf(short_run.record, heavy)
    with pytest.warns(RobotWarning, match="inertia"):
        load_robot(unpack_robot(record.robot, tmp_path))
    rebuild_plan(record)  # a warning would be an error here
