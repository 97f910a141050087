"""What rows of tasks and contacts say is what the robot does: derivatives on the manifold, and power."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.tasks.com import AngularMomentumTask, ComTask
from mcplan.whole_body.tasks.forces import ContactForceTask, TorqueTask
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.tasks.task import Task
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import contact_at, random_state, standing_tasks

STEP = 1e-4
"""s: central differences are then right to 1e-6 of what changes within a second."""


@pytest.fixture
def moving(standing):
    """A state in motion, and accelerations."""
    random_state(standing, 1.5)
    standing.vd = standing.rng.normal(size=standing.robot.nv)
    return standing


def rate(state, value):
    """Return the time derivative of ``value(q, v)`` along the motion with the accelerations of the state."""
    ends = []
    for h in (STEP, -STEP):
        q = state.robot.integrate(state.q, state.v + 0.5 * h * state.vd, h)
        ends.append(value(q, state.v + h * state.vd))
    return (ends[0] - ends[1]) / (2 * STEP)


def asked(task, state):
    """Return by how much the accelerations of the state exceed what the rows of a task ask for."""
    A, b = task.rows(state.terms)
    return (state.vd[A] if task.diagonal else A @ state.vd) - b


def filled(task, rng):
    """Give every reference of a task some value."""
    for name in ("velocity", "acceleration", "momentum", "rate"):
        if hasattr(task, name):
            getattr(task, name)[:] = rng.normal(size=len(getattr(task, name)))
    task.kd = rng.uniform(1, 9, len(task.kd))
    if hasattr(task, "kp"):
        task.kp = rng.uniform(10, 90, len(task.kp))
    return task


def test_the_centre_of_mass_is_asked_for_its_error_dynamics(moving):
    robot, rng = moving.robot, moving.rng
    velocity = robot.com_jacobian(moving.q) @ moving.v
    acceleration = rate(moving, lambda q, v: robot.com_jacobian(q) @ v)
    for axes in ((0, 1, 2), (2, 0)):
        task = filled(ComTask(axes=axes), rng)
        task.position = robot.com(moving.q) + rng.normal(size=3)
        wanted = task.acceleration + task.kp * (task.position - robot.com(moving.q)) + task.kd * (
            task.velocity - velocity
        )  # fmt: skip
        assert asked(task, moving) == pytest.approx((acceleration - wanted)[list(axes)], abs=1e-4)
        assert task.error(moving.terms) == pytest.approx((task.position - robot.com(moving.q))[list(axes)])


@pytest.mark.parametrize(("position", "orientation"), [(True, True), (True, False), (False, True)])
def test_a_link_is_asked_for_its_error_dynamics_in_world_axes(moving, position, orientation):
    robot, rng, name = moving.robot, moving.rng, "left_hand"
    X = robot.frame_pose(moving.q, name)
    turn = np.array([0.4, -0.7, 0.3])
    task = filled(LinkPoseTask(name, position, orientation), rng)
    task.p, task.R = X[:3, 3] + [0.1, -0.2, 0.3], Rotation.from_rotvec(turn).as_matrix() @ X[:3, :3]
    half = np.r_[0:3] if not orientation else np.r_[3:6] if not position else np.r_[0:6]
    acceleration = rate(moving, lambda q, v: robot.frame_jacobian(q, name) @ v)
    velocity = robot.frame_jacobian(moving.q, name) @ moving.v
    error = np.concatenate([[0.1, -0.2, 0.3], turn])
    wanted = task.acceleration + task.kp * error + task.kd * (task.velocity - velocity)
    assert asked(task, moving) == pytest.approx((acceleration - wanted)[half], abs=1e-4)
    assert task.error(moving.terms) == pytest.approx(error[half])


def test_the_angular_momentum_is_asked_for_its_rate(moving):
    robot = moving.robot
    task = filled(AngularMomentumTask(), moving.rng)
    momentum = robot.centroidal_momentum_matrix(moving.q) @ moving.v
    change = rate(moving, lambda q, v: robot.centroidal_momentum_matrix(q) @ v)
    wanted = task.rate + task.kd * (task.momentum - momentum[3:])
    assert asked(task, moving) == pytest.approx(change[3:] - wanted, abs=1e-3)


def test_joints_are_asked_for_their_error_dynamics(moving):
    task = filled(PostureTask(moving.q[7:] + 0.1), moving.rng)
    wanted = task.acceleration + 0.1 * task.kp + task.kd * (task.velocity - moving.v[6:])
    assert asked(task, moving) == pytest.approx(moving.vd[6:] - wanted)


@pytest.mark.parametrize(
    ("patch", "kind", "selection"),
    [
        ("left_hand", "surface", None),
        ("left_hand", "point", None),
        ("left_grip", "grasp", np.delete(np.eye(6), 4, axis=0)),
        ("left_sole", "surface", np.delete(np.eye(6), 0, axis=0)),
    ],
)
def test_a_contact_brings_its_drift_back_in_patch_axes(moving, patch, kind, selection):
    robot, rng = moving.robot, moving.rng
    contact = ContactConstraint(contact_at(robot, patch, moving.q, kind, selection=selection))
    contact.kp, contact.kd = rng.uniform(10, 90, 6), rng.uniform(1, 9, 6)
    X = robot.frame_pose(moving.q, patch)
    turn = np.array([0.03, -0.05, 0.02])  # in patch axes
    contact.p = X[:3, 3] + X[:3, :3] @ [0.01, -0.02, 0.03]
    contact.R = X[:3, :3] @ Rotation.from_rotvec(turn).as_matrix()
    into = np.kron(np.eye(2), X[:3, :3].T)
    acceleration = into @ rate(moving, lambda q, v: robot.frame_jacobian(q, patch) @ v)
    velocity = into @ robot.frame_jacobian(moving.q, patch) @ moving.v
    wanted = contact.kp * np.concatenate([[0.01, -0.02, 0.03], turn]) - contact.kd * velocity
    A, b = contact.rows(moving.terms)
    assert A @ moving.vd - b == pytest.approx(contact.selection @ (acceleration - wanted), abs=1e-4)


@pytest.mark.parametrize(("patch", "kind"), [("left_hand", "surface"), ("left_hand", "point"), ("left_grip", "grasp")])
def test_forces_do_the_work_of_their_points(moving, patch, kind):
    """f' (velocity of the points) = v' (force map) f, for the forces and the points in the world."""
    robot = moving.robot
    contact = ContactConstraint(contact_at(robot, patch, moving.q, kind, max_force=100.0, max_moment=10.0))
    f = moving.rng.normal(size=6 if kind == "grasp" else 3 * len(contact.points))
    power = moving.v @ contact.force_map(moving.terms) @ f

    def places(q):
        X = robot.frame_pose(q, patch)
        return X[:3, 3] + contact.points @ X[:3, :3].T

    ends = [places(robot.integrate(moving.q, moving.v, h)) for h in (STEP, -STEP)]
    velocity = (ends[0] - ends[1]) / (2 * STEP)
    if kind == "grasp":
        X = robot.frame_pose(moving.q, patch)
        spin = (robot.frame_jacobian(moving.q, patch) @ moving.v)[3:]
        expected = (X[:3, :3] @ f[:3]) @ velocity[0] + (X[:3, :3] @ f[3:]) @ spin
    else:
        expected = np.sum((f.reshape(-1, 3) @ contact.axes.T) * velocity)
        assert contact.point_forces(moving.terms, f) == pytest.approx(f.reshape(-1, 3) @ contact.axes.T)
    assert power == pytest.approx(expected, abs=1e-6)


def test_force_rates_cost_what_they_say(standing):
    """Where no bound is active the program is a linear system: that of the cost written by hand."""
    robot, terms, rng = standing.robot, standing.terms, standing.rng
    contacts = [ContactConstraint(contact_at(robot, patch, standing.q)) for patch in ("left_sole", "right_sole")]
    grip = contact_at(robot, "left_grip", standing.q, "grasp", max_force=300.0, max_moment=20.0)
    contacts.append(ContactConstraint(grip))
    tasks = standing_tasks(standing, (0.001, 0.002, 0.0))
    settings = QPSettings(force_weight=1e-3, force_rate_weight=1e-2)
    qp = WholeBodyQP(robot, contacts, tasks, settings)
    previous = {c.patch: np.tile([0.0, 0.0, 60.0], 4) + rng.uniform(-3, 3, 12) for c in contacts[:2]}
    previous["left_grip"] = np.array([2.0, -1.0, 3.0, 0.1, -0.2, 0.3])
    qp.update(terms, contacts, tasks, previous=previous)
    s = qp.solve()
    assert s.ok
    nv, n = robot.nv, robot.n
    H, g = np.zeros((nv, nv)), np.zeros(nv)
    H += 1e-3 * np.eye(nv)
    for task in tasks:
        A, b = task.rows(terms)
        A = np.eye(nv)[A] if task.diagonal else A
        H, g = H + A.T @ (np.reshape(task.weight, (-1, 1)) * A), g + A.T @ (task.weight * b)
    price, pull, maps = [], [], []
    for c in contacts:
        along = 1.0 / c.friction**2  # the pressure that friction takes
        each = np.tile([along, along, 1.0], 4) if c.patch != "left_grip" else np.repeat([1.0, (300.0 / 20.0) ** 2], 3)
        price.append((1e-3 + 1e-2) * each)
        pull.append(1e-2 * each * previous[c.patch])
        maps.append(c.force_map(terms))
    G, J = np.hstack(maps), np.vstack([c.rows(terms)[0] for c in contacts])
    held = np.concatenate([c.rows(terms)[1] for c in contacts])
    k = G.shape[1]
    # unknowns vd, f; the joints' rows of the equation of motion only give the torques
    E = np.vstack([np.hstack([terms.M[:6], -G[:6]]), np.hstack([J, np.zeros((len(J), k))])])
    Q = np.zeros((nv + k, nv + k))
    Q[:nv, :nv], Q[nv:, nv:] = H, np.diag(np.concatenate(price))
    K = np.block([[Q, E.T], [E, np.zeros((len(E), len(E)))]])
    rhs = np.concatenate([g, np.concatenate(pull), -terms.h[:6], held])
    x = np.linalg.lstsq(K, rhs, rcond=None)[0]
    start = nv
    for c in contacts:
        f = x[start : start + len(previous[c.patch])]
        start += len(f)
        assert s.unknowns[c.patch] == pytest.approx(f, abs=1e-5)
        if c.patch != "left_grip":
            local = f.reshape(-1, 3)
            assert np.all(0.9 * c.friction * local[:, 2] > np.hypot(local[:, 0], local[:, 1]))
    assert s.vd == pytest.approx(x[:nv], abs=1e-6)
    assert np.abs(s.tau).max() < 0.9 * np.min(robot.limits.torque[robot.limits.torque > np.abs(s.tau).max()])
    assert n == len(s.tau)


def test_tasks_on_all_joints_are_on_as_many_as_there_are(standing):
    """Kernels take the number of joints from the robot: they would read other tasks' numbers, or beyond them all."""
    robot, q = standing.robot, standing.q
    right = PostureTask(q[7:])
    for wrong, text in (
        (PostureTask(q), rf"PostureTask: position has {robot.nq} numbers, expected {robot.n} \(q\[7:\]\)"),
        (PostureTask(q[7:13]), "position has 6 numbers"),
        (TorqueTask(5), f"TorqueTask: torque has 5 numbers, expected {robot.n}$"),
    ):
        with pytest.raises(InputError, match=text):
            WholeBodyQP(robot, [], [ComTask(), wrong])
        declared = WholeBodyQP(robot, [], [TorqueTask(robot.n) if isinstance(wrong, TorqueTask) else right])
        with pytest.raises(InputError, match=text):
            declared.update(standing.terms, [], [wrong])


@pytest.mark.parametrize("axes", [(1, 2, 3), (-1,), (0.5,)])
def test_an_axis_that_is_none_is_refused(axes):
    with pytest.raises(InputError, match=r"expected of 0, 1, 2 \(x, y, z\)"):
        ComTask(axes=axes)


@pytest.mark.parametrize("components", [(0, 6), (-1,)])
def test_a_component_of_a_wrench_that_is_none_is_refused(components):
    with pytest.raises(InputError, match="expected of 0 to 5"):
        ContactForceTask("left_sole", components=components)


class Sideways(ComTask):
    """The centre of mass, with a feed-forward of its own."""

    def rows(self, terms):
        A, b = super().rows(terms)
        return A, b + np.array([0.0, 0.7, 0.0])


def test_rows_of_a_class_derived_from_a_task_with_a_kernel_are_its_own(standing):
    targets = []
    for task in (ComTask(weight=4.0), Sideways(weight=4.0)):
        qp = WholeBodyQP(standing.robot, [], [task])
        qp.update(standing.terms, [], [task])
        targets.append(qp.data["task_target"].copy())
    np.testing.assert_allclose(targets[1] - targets[0], [0.0, 1.4, 0.0], atol=1e-12)


class Own(Task):
    """Rows of any shape."""

    dimension = 2

    def __init__(self, A, b, unknown="vd", diagonal=False, **more):
        self.given, self.unknown, self.diagonal = (np.zeros(A), np.zeros(b)), unknown, diagonal
        vars(self).update(more)

    def rows(self, terms, contact=None):
        return self.given


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (Own((2, 7), (2, 1)), r"task Own: rows\(\) returned .* \(2, 7\) and \(2, 1\), expected \(2, NV\) and \(2,\)"),
        (Own(7, 2), r"\(7,\) and \(2,\), expected \(2, NV\)"),
        (Own((1, 7), 2), r"\(1, 7\) and \(2,\), expected \(2, NV\)"),
        (Own(3, 2, diagonal=True), r"\(3,\) and \(2,\), expected \(2,\) and \(2,\)"),
        (Own(2, 1, unknown="torque", diagonal=True), r"\(2,\) and \(1,\), expected \(2,\) and \(2,\)"),
        (Own((2, 6), 2, unknown="force", patch="left_sole"), r"\(2, 6\) and \(2,\), expected \(2, 12\)"),
        (Own((2, 30), 2, unknown="torque"), "task Own: diagonal is False, but a task on torques is diagonal"),
        (Own(2, 2, unknown="force", diagonal=True), "diagonal is True, but a task on forces is not diagonal"),
    ],
)
def test_rows_of_another_shape_than_a_task_says_are_refused_by_its_name(standing, task, text):
    """Numpy would broadcast some, and say of others no more than what does not fit."""
    contacts = [ContactConstraint(contact_at(standing.robot, "left_sole", standing.q))]
    with pytest.raises(InputError, match=text.replace("NV", str(standing.robot.nv))):
        WholeBodyQP(standing.robot, contacts, [task]).update(standing.terms, contacts, [task])


def test_rows_of_a_limit_have_the_shape_that_it_says(standing):
    rows = np.zeros((2, standing.robot.nv)), np.zeros(1)
    limit = SimpleNamespace(dimension=2, frames=(), names=["one", "other"], rows=lambda terms: rows)
    qp = WholeBodyQP(standing.robot, [], [], limits=[limit])
    with pytest.raises(InputError, match=r"limit SimpleNamespace: .* and \(1,\), expected .* and \(2,\)"):
        qp.update(standing.terms, [], [], limits=[limit])
