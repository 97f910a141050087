from typing import get_args

import cvxpy as cp
import numpy as np
import pytest

from mcplan.errors import InputError, SimulationFailed
from mcplan.settings.control import Solver
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.pool import ProblemPool
from mcplan.whole_body.settings import SOLVER_PACKAGES, SOLVERS, QPSettings
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import contact_at, random_state, standing_tasks
from tests.whole_body.reference import inequalities

SOLES = ("left_sole", "right_sole")


def soles(state, **options):
    return [ContactConstraint(contact_at(state.robot, patch, state.q), **options) for patch in SOLES]


def solved(state, contacts, tasks, extra=None, **settings):
    qp = WholeBodyQP(state.robot, contacts, tasks, QPSettings(**settings), extra)
    qp.update(state.terms, contacts, tasks)
    return qp, qp.solve()


def test_standing_still_carries_the_weight_and_does_not_move(standing):
    _, s = solved(standing, soles(standing), standing_tasks(standing))
    assert s.ok
    np.testing.assert_allclose(s.vd, 0, atol=0.05)
    total = s.wrenches["left_sole"][:3] + s.wrenches["right_sole"][:3]
    np.testing.assert_allclose(total, [0, 0, 9.81 * standing.robot.mass], atol=10)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_kkt_conditions_at_random_states(standing, seed, compiled):
    standing.rng = np.random.default_rng(seed)
    random_state(standing)
    contacts = soles(standing)
    contacts[seed % 2].max_force = 200.0
    hand = ContactConstraint(
        contact_at(standing.robot, "left_grip", standing.q, "grasp", max_force=300.0, max_moment=20.0)
    )
    contacts = contacts + [hand] * (seed > 2)
    qp, s = solved(standing, contacts, standing_tasks(standing, (0.02, 0.03, 0.0)), compiled=compiled)
    qp.write_back()
    assert s.ok, s.message
    assert s.residuals.motion < 1e-9
    assert s.residuals.contact < 1e-9
    assert s.residuals.stationarity < 1e-9
    f = np.concatenate([s.unknowns[c.patch] for c in qp.contacts])
    duals = {
        rows.name: np.atleast_1d(c.dual_value)
        for rows, c in zip(qp.declaration.rows, qp.problem.constraints, strict=True)
    }
    for name, value in inequalities(qp.declaration, qp.data, s.vd, f).items():
        assert np.all(duals[name] > -1e-9)
        np.testing.assert_allclose(duals[name] * value, 0, atol=1e-6)


def test_what_the_arrays_say_is_what_the_robot_says(standing):
    """The answer obeys the equation of motion and the contacts written with the robot's own Jacobians."""
    random_state(standing, 0.3)
    robot, t = standing.robot, standing.terms
    contacts = soles(standing)
    _, s = solved(standing, contacts, standing_tasks(standing))
    assert s.ok, s.message
    force = np.r_[np.zeros(6), s.tau]
    for c in contacts:
        force += robot.frame_jacobian(standing.q, c.patch).T @ s.wrenches[c.patch]
        force_sum, R = s.forces[c.patch].sum(axis=0), t.frame(c.patch).R
        moment = sum(np.cross(R @ p, f) for p, f in zip(c.points, s.forces[c.patch], strict=True))
        np.testing.assert_allclose(np.r_[force_sum, moment], s.wrenches[c.patch], atol=1e-9)
        J, bias = t.frame(c.patch).J, t.frame(c.patch).bias
        np.testing.assert_allclose(J @ s.vd + bias, -20 * (J @ standing.v), atol=1e-9)
    M, h = robot.mass_matrix(standing.q), robot.nonlinear_effects(standing.q, standing.v)
    np.testing.assert_allclose(M @ s.vd + h, force, atol=1e-8)


@pytest.mark.parametrize("solver", ["OSQP", "CLARABEL", "PIQP"])
def test_solvers_agree(standing, solver):
    random_state(standing, 0.5)
    contacts, tasks = soles(standing), standing_tasks(standing, (0.02, 0.05, 0))
    _, reference = solved(standing, contacts, tasks)
    _, s = solved(standing, contacts, tasks, solver=solver)
    assert reference.ok
    assert s.ok, s.message
    assert s.objective == pytest.approx(reference.objective, rel=1e-6)
    np.testing.assert_allclose(s.vd, reference.vd, atol=1e-4)


@pytest.mark.parametrize("faces", [4, 8])
def test_forces_and_torques_keep_the_true_limits(standing, faces):
    """Hard sideways accelerations drive the forces to the edge of the pyramid, and never out of the cone."""
    contacts = soles(standing, faces=faces)
    worst = []
    for angle in np.linspace(0, 2 * np.pi, 7):
        tasks = standing_tasks(standing)
        tasks[0].acceleration = 6 * np.array([np.cos(angle), np.sin(angle), 0])
        _, s = solved(standing, contacts, tasks)
        assert s.ok, s.message
        assert np.all(np.abs(s.tau) <= standing.robot.limits.torque)
        for c in contacts:
            f = s.forces[c.patch] @ c.axes
            worst.append(np.min(c.friction * f[:, 2] - np.hypot(f[:, 0], f[:, 1])))
            assert np.all(f[:, 2] >= 0)
    assert 0 <= min(worst) < 1e-4


def test_grasp_pulls_within_its_ball(standing):
    """Leaning far back, the hand holds the robot; force and moment stay inside their balls."""
    grip = ContactConstraint(
        contact_at(standing.robot, "left_grip", standing.q, "grasp", max_force=60.0, max_moment=3.0)
    )
    tasks = standing_tasks(standing)
    tasks[0].acceleration = np.array([4.0, 3.0, 0.0])
    _, s = solved(standing, [*soles(standing), grip], tasks)
    assert s.ok, s.message
    w = s.wrenches["left_grip"]
    assert 50 < np.linalg.norm(w[:3]) <= 60
    assert np.linalg.norm(w[3:]) <= 3


def test_a_grasp_is_not_twisted_where_a_pull_does(standing):
    """A moment costs what it is over the lever: with that of the hand's limits it takes a much smaller part of them."""
    grip = ContactConstraint(
        contact_at(standing.robot, "left_grip", standing.q, "grasp", max_force=300.0, max_moment=20.0)
    )
    assert grip.lever == pytest.approx(20.0 / 300.0)
    moments = []
    for lever in (1.0, grip.lever):
        grip.lever = lever
        tasks = standing_tasks(standing)
        tasks[0].acceleration = np.array([1.0, 1.0, 0.0])
        _, s = solved(standing, [*soles(standing), grip], tasks)
        assert s.ok, s.message
        moments.append(np.linalg.norm(s.wrenches["left_grip"][3:]))
    assert moments[1] < 0.3 * moments[0]


def test_normal_force_between_its_bounds_down_to_zero(standing):
    contacts = soles(standing)
    tasks = standing_tasks(standing)
    right = standing.terms.frame("right_sole").p
    tasks[0].position[:2] = standing.terms.com[:2] * 0.5 + 0.5 * right[:2]
    for high in (100.0, 1.0, 0.0):
        contacts[0].max_force = high
        _, s = solved(standing, contacts, tasks)
        assert s.ok, s.message
        assert -1e-9 <= s.wrenches["left_sole"][2] <= high + 2e-4
    contacts[0].max_force, contacts[0].min_force = np.inf, 400.0
    _, s = solved(standing, contacts, tasks)
    assert s.ok, s.message
    assert s.wrenches["left_sole"][2] >= 400


def test_reduced_contacts_leave_their_directions_free(standing):
    """Point, hinge and slide: m rows, no force in the free directions, accelerations possible there."""
    hinge = np.delete(np.eye(6), 4, axis=0)
    slide = np.delete(np.eye(6), 0, axis=0)
    for patch, kind, selection in (
        ("left_hand", "point", None),
        ("left_sole", "surface", hinge),
        ("left_sole", "surface", slide),
    ):
        contact = ContactConstraint(contact_at(standing.robot, patch, standing.q, kind, selection=selection))
        others = [c for c in soles(standing) if c.patch != patch]
        _, s = solved(standing, [contact, *others], standing_tasks(standing, (0, -0.08, 0)), explain="never")
        assert s.ok, s.message
        R = standing.terms.frame(patch).R
        w = np.r_[R.T @ s.wrenches[patch][:3], R.T @ s.wrenches[patch][3:]]
        free = np.eye(6) - contact.selection.T @ contact.selection
        np.testing.assert_allclose(free @ w, 0, atol=1e-9)
    assert contact.shape.free_rows == 1


def test_one_problem_serves_all_that_share_a_structure(standing):
    pool = ProblemPool(standing.robot)
    tasks = standing_tasks(standing)
    left, right = soles(standing)
    assert pool.get([left], tasks) is pool.get([right], tasks)
    assert pool.get([left, right], tasks) is pool.get([right, left], tasks)
    assert len(pool) == 2
    with pytest.raises(InputError, match="another structure"):
        pool.get([left], tasks).update(standing.terms, [left, right], tasks)


def test_the_order_of_contacts_does_not_matter(standing):
    random_state(standing)
    left, right = soles(standing)
    tasks = standing_tasks(standing)
    _, one = solved(standing, [left, right], tasks)
    _, other = solved(standing, [right, left], tasks)
    np.testing.assert_allclose(one.wrenches["left_sole"], other.wrenches["left_sole"], atol=1e-9)


def test_force_rate_holds_the_forces_back(standing):
    contacts, tasks = soles(standing), standing_tasks(standing)
    qp, first = solved(standing, contacts, tasks, force_rate_weight=1.0)
    tasks[0].acceleration = np.array([0, 1.0, 0])
    qp.update(standing.terms, contacts, tasks)
    free = qp.solve()
    qp.update(standing.terms, contacts, tasks, previous=first.unknowns)
    held = qp.solve()
    change = [sum(np.sum((s.unknowns[p] - first.unknowns[p]) ** 2) for p in SOLES) for s in (free, held)]
    assert change[1] < 0.5 * change[0]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_friction_of_what_slides_is_all_that_there_is_and_holds_it_back(standing, sign):
    slip = np.array([0.0, sign, 0.0])
    sliding = contact_at(
        standing.robot, "right_sole", standing.q, friction=0.3, selection=np.delete(np.eye(6), 1, axis=0)
    )
    contacts = [soles(standing)[0], ContactConstraint(sliding, slip=slip)]
    _, s = solved(standing, contacts, standing_tasks(standing))
    assert s.ok, s.message
    force = s.forces["right_sole"].sum(axis=0)
    assert force[2] > 50.0
    # the cone about the slanted force keeps a friction of a thousandth, so that it has an inside
    assert force @ slip == pytest.approx(-0.3 * force[2], rel=5e-3)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("weight", "drawn_to"), [("force_rate_weight", "previous"), ("force_weight", "planned")])
def test_forces_go_on_as_they_were_or_as_they_are_planned_where_many_do(standing, weight, drawn_to, compiled):
    """Two soles can press against each other as they like: what they did so far, or are to do, costs nothing."""
    contacts, tasks = soles(standing), standing_tasks(standing)
    _, squeezed = solved(standing, contacts, tasks, lambda qp: ([], [qp.force[1] == 60.0]))
    qp, loose = solved(standing, contacts, tasks, compiled=compiled, **{weight: 1e4})
    qp.update(standing.terms, contacts, tasks, **{drawn_to: squeezed.unknowns})
    drawn = qp.solve()
    for patch in SOLES:
        np.testing.assert_allclose(drawn.unknowns[patch], squeezed.unknowns[patch], atol=0.5)
        assert np.abs(loose.unknowns[patch] - squeezed.unknowns[patch]).max() > 5.0


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_torques_keep_off_their_limits_by_the_margin(standing, sign):
    """An arm is pushed with more than its motor can bear."""
    joint = standing.robot.joint_names.index("RARM_JOINT3")
    contacts, tasks = soles(standing), standing_tasks(standing)
    push = np.zeros(standing.robot.nv)
    push[6 + joint] = 300.0 * sign
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings(torque_margin=1.5))
    qp.update(standing.terms, contacts, tasks, push)
    s = qp.solve()
    assert s.ok, s.message
    assert s.tau[joint] == pytest.approx(-sign * (standing.robot.limits.torque[joint] - 1.5), abs=1e-4)


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("settings", [{}, {"position_margin": 0.05}])
def test_a_joint_that_is_drawn_beyond_its_limit_stops_there_or_before_it_by_the_margin(standing, side, settings):
    """It is on by default."""
    robot, terms, dt = standing.robot, standing.terms, 0.005
    joint = robot.joint_names.index("RARM_JOINT3")
    limit, inwards = getattr(robot.limits, side)[joint], {"lower": 1.0, "upper": -1.0}[side]
    q, v = standing.q.copy(), np.zeros(robot.nv)
    q[7 + joint] = limit + 0.1 * inwards
    terms.update(q, v)
    contacts, tasks = soles(standing), standing_tasks(standing)
    tasks[1].position = np.array(q[7:])
    tasks[1].position[joint] = limit - 0.3 * inwards
    qp, nearest = WholeBodyQP(robot, contacts, tasks, QPSettings(dt=dt, **settings)), np.inf
    for _ in range(160):
        qp.update(terms, contacts, tasks)
        v = v + dt * qp.solve().vd
        q = robot.integrate(q, v, dt)
        terms.update(q, v)
        nearest = min(nearest, inwards * (q[7 + joint] - limit))
    assert nearest == pytest.approx(settings.get("position_margin", 0.0), abs=1e-3)


def test_users_terms_and_parameters(standing):
    target = cp.Parameter(value=200.0)

    def extra(qp):
        normal = cp.sum(qp.force_of("left_sole")[2::3])
        return [10 * cp.square(normal - target)], [qp.tau[3] <= 60.0]

    contacts, tasks = soles(standing), standing_tasks(standing)
    qp, s = solved(standing, contacts, tasks, extra)
    assert s.ok, s.message
    assert s.wrenches["left_sole"][2] == pytest.approx(200.0, abs=2.0)
    target.value = 330.0
    assert qp.solve().wrenches["left_sole"][2] == pytest.approx(330.0, abs=2.0)


def test_a_problem_that_loses_dpp_is_refused(standing):
    a, b = cp.Parameter(nonneg=True, value=1.0), cp.Parameter(value=1.0)
    with pytest.raises(InputError, match="DPP"):
        WholeBodyQP(standing.robot, soles(standing), [], extra=lambda qp: ([a * cp.square(b * qp.tau[0])], []))


def test_nan_is_refused_by_name(standing):
    contacts, tasks = soles(standing), standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks)
    tasks[0].position[1] = np.nan
    with pytest.raises(SimulationFailed, match="task com"):
        qp.update(standing.terms, contacts, tasks)
    with pytest.raises(InputError, match="after its update"):
        qp.solve()
    v = standing.v.copy()
    v[6 + 3] = np.nan
    standing.terms.update(standing.q, v)
    name = standing.robot.joint_names[3]
    with pytest.raises(SimulationFailed, match=rf"v\[9\] of {name} is nan"):
        qp.update(standing.terms, contacts, standing_tasks(standing))


def test_a_scenario_may_name_the_solvers_that_there_are():
    assert set(get_args(Solver)) == set(SOLVERS) == set(SOLVER_PACKAGES)


def test_unknown_solver_is_refused():
    with pytest.raises(InputError, match="one of DAQP, OSQP"):
        QPSettings(solver="SIMPLEX")


def test_flight_is_a_free_fall(standing):
    """Without contacts nothing but gravity moves the centre of mass."""
    _, s = solved(standing, [], standing_tasks(standing))
    assert s.ok, s.message
    np.testing.assert_allclose(standing.terms.com_jacobian @ s.vd, [0, 0, -9.81], atol=1e-8)
    assert s.forces == {}


def test_wrench_cost_is_what_it_says(standing):
    """The cost with wrench weights equals the one computed from the wrench in the link's axes."""
    terms, contacts = standing.terms, soles(standing)
    w = (1e-2, 1e-2, 1e-5, 4e-2, 4e-2, 4e-2)
    _, s = solved(standing, contacts, [], wrench_weight=w, wrench_frame={p: "BODY" for p in SOLES}, force_weight=1e-9)
    assert s.ok, s.message
    forces = [s.unknowns[c.patch].reshape(-1, 3) / [c.friction, c.friction, 1.0] for c in contacts]
    cost = 1e-3 * s.vd @ s.vd + sum(1e-9 * np.sum(f**2) for f in forces)
    body = terms.frame("BODY")
    for p in SOLES:
        force, moment = s.wrenches[p][:3], s.wrenches[p][3:]
        moment = moment + np.cross(terms.frame(p).p - body.p, force)
        cost += np.array(w) @ np.r_[body.R.T @ force, body.R.T @ moment] ** 2
    assert s.objective == pytest.approx(cost, rel=1e-9)


def test_two_posture_tasks_add_up(standing):
    one, two = PostureTask(standing.q[7:] + 0.1, weight=0.3), PostureTask(standing.q[7:] - 0.2, weight=0.6)
    both = PostureTask(standing.q[7:] - 0.1, weight=0.9)
    _, a = solved(standing, soles(standing), [one, two])
    _, b = solved(standing, soles(standing), [both])
    np.testing.assert_allclose(a.vd, b.vd, atol=1e-8)


def test_swing_foot_follows_its_feed_forward(standing):
    swing = LinkPoseTask("left_sole")
    frame = standing.terms.frame("left_sole")
    swing.R, swing.p = frame.R.copy(), frame.p.copy()
    swing.acceleration[:] = [0.2, 0.0, 0.5, 0, 0, 0.3]
    tasks = [*standing_tasks(standing, (0, -0.09, 0)), swing]
    _, s = solved(standing, soles(standing)[1:], tasks)
    assert s.ok, s.message
    np.testing.assert_allclose(frame.J @ s.vd, swing.acceleration, atol=0.05)


def test_a_part_of_the_velocity_limit_is_all_of_it(standing):
    robot, joint = standing.robot, standing.robot.joint_names.index("RARM_JOINT3")
    v = np.zeros(robot.nv)
    v[6 + joint] = 0.8 * robot.limits.velocity[joint]
    standing.terms.update(standing.q, v)
    tasks, most = standing_tasks(standing), {}
    for fraction in (1.0, 0.9, 0.7):
        qp = WholeBodyQP(robot, [], tasks, QPSettings(velocity_fraction=fraction, dt=0.01))
        qp.update(standing.terms, [], tasks)
        most[fraction] = qp.data["acceleration_max"][list(qp.structure.bounded).index(joint)]
    limit = robot.limits.velocity[joint]
    assert most[0.9] == pytest.approx(0.1 * limit / 0.01, rel=1e-6)
    assert most[1.0] == pytest.approx(0.2 * limit / 0.01, rel=1e-6)
    assert most[0.7] < 0.0


def test_forces_of_the_last_tick_go_to_the_patches_that_they_are_of(standing):
    """A program is handed other contacts of the same shapes, some of which had no forces, with the last unknowns."""
    tasks, (left, right) = standing_tasks(standing), soles(standing)
    hand = ContactConstraint(contact_at(standing.robot, "left_hand", standing.q))
    assert hand.shape == left.shape
    qp, s = solved(standing, [left, right], tasks, force_rate_weight=1.0)
    qp.update(standing.terms, [hand, left], tasks, previous=s.unknowns)
    drawn = qp._tables.last
    for contact, place in zip(qp.contacts, qp.structure.slices(), strict=True):
        np.testing.assert_allclose(drawn[place], s.unknowns[left.patch] if contact is left else 0.0, atol=1e-9)
