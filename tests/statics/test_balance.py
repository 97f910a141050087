"""The forces that hold a posture still, and the margins of a posture: each against its definition."""

from dataclasses import replace
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from mcplan.bench.kernels import PATCHES, POSTURE, contact_at
from mcplan.errors import InputError
from mcplan.robot.robot_file import load_robot
from mcplan.statics.contact_forces import ForceUnknowns
from mcplan.statics.equilibrium import balance, equilibrium_margin, equilibrium_torque_margin, friction_margin, margins
from mcplan.statics.feasibility import shortfall
from tests.statics import contacts


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


@pytest.fixture(scope="module")
def crawl(robot):
    q = robot.posture(POSTURE)
    return q, [contact_at(robot, q, patch) for patch in PATCHES]


@pytest.fixture(scope="module")
def hanging(robot):
    """HRP-2 on its left foot, its right hand on a grip that is turned against the world."""
    q = robot.posture("half_sitting").copy()
    foot = contact_at(robot, q, "left_sole")
    X = robot.frame_pose(q, "right_grip")
    grip = contacts.make(
        "right_grip", "grasp", X[:3, :3], X[:3, 3], np.zeros((1, 3)), X[:3, :3], 0.0, max_force=300.0, max_moment=12.0
    )
    return q, [foot, grip]


@pytest.mark.parametrize("stance", ["crawl", "hanging"])
def test_forces_and_torques_solve_the_equation_of_motion_at_rest(robot, stance, request):
    q, held = request.getfixturevalue(stance)
    found = balance(robot, q, held)
    assert found.feasible
    still = np.zeros(robot.nv)
    generalised = np.concatenate([np.zeros(6), found.tau])
    for contact in held:
        generalised += robot.frame_jacobian(q, contact.patch).T @ found.wrenches[contact.patch]
    assert generalised == pytest.approx(robot.inverse_dynamics(q, still, still), abs=1e-6)
    assert found.torque_feasible == bool(np.all(np.abs(found.tau) <= 0.9 * robot.limits.torque + 1e-4))


@pytest.mark.parametrize("stance", ["crawl", "hanging"])
def test_forces_at_points_are_admissible_and_make_up_the_wrench(robot, stance, request):
    q, held = request.getfixturevalue(stance)
    found = balance(robot, q, held)
    for contact in held:
        forces, wrench = found.point_forces[contact.patch], found.wrenches[contact.patch]
        assert forces.sum(axis=0) == pytest.approx(wrench[:3], abs=1e-9)
        if contact.kind == "grasp":
            assert np.linalg.norm(wrench[:3]) <= contact.max_force
            assert np.linalg.norm(wrench[3:]) <= contact.max_moment
            continue
        arms = contacts.corners(contact) - contact.p
        assert np.cross(arms, forces).sum(axis=0) == pytest.approx(wrench[3:], abs=1e-8)
        local = forces @ contact.axes
        assert np.all(np.hypot(local[:, 0], local[:, 1]) <= contact.friction * local[:, 2] + 1e-9)


def test_no_contact_is_left_idle_that_can_bear(robot):
    """A hand beside two feet: the least forces would leave it with next to nothing."""
    q = robot.posture("half_sitting")
    *feet, hand = held = [contact_at(robot, q, patch) for patch in ("left_sole", "right_sole", "left_hand")]
    forces = balance(robot, q, held).wrenches
    assert forces["left_hand"][:3] @ hand.normal == pytest.approx(0.05 * robot.mass * 9.81, rel=0.03)
    assert all(forces[foot.patch][2] > 200.0 for foot in feet)


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_forces_are_the_least_by_pressure_within_the_share_of_the_torques(robot, crawl, hanging, share):
    least = shortfall(robot, *crawl, 0.02).amount  # of the torque limits, with which the posture holds
    for (q, held), strength in ((crawl, 1.1 * least), (hanging, 1.0)):
        weak = replace(robot, limits=replace(robot.limits, torque=strength * robot.limits.torque / share))
        found = balance(weak, q, held, torque_share=share)
        assert found.torque_feasible
        forces = ForceUnknowns(held)
        F, upper = forces.face_rows()
        A, h = generalised_map(robot, q, held), robot.nonlinear_effects(q, np.zeros(robot.nv))
        weight = []
        for contact in held:
            x, y = np.ptp(contact.points, axis=0)[:2]
            pressure = 0.03 / max(x * y, 0.002)  # that of a sole counts once
            each = [1.0] * 3 + [25.0] * 3 if contact.kind == "grasp" else [4.0, 4.0, 1.0] * len(contact.points)
            weight += [pressure * price for price in each]
        unit = robot.mass * 9.81
        f, limit = cp.Variable(A.shape[1]), share * weak.limits.torque
        torque = h[6:] / unit - A[6:] @ f
        cost = cp.sum_squares(cp.multiply(np.sqrt(weight), f))
        cost += 1e3 * cp.sum_squares(cp.pos(0.05 - forces.load_rows() @ f))
        problem = cp.Problem(
            cp.Minimize(cost), [A[:6] @ f == h[:6] / unit, F @ f <= upper / unit, cp.abs(torque) <= limit / unit]
        )
        problem.solve(cp.CLARABEL)
        start = 0
        for contact in held:
            block = unit * f.value[start : start + (6 if contact.kind == "grasp" else 3 * len(contact.points))]
            start += len(block)
            if contact.kind == "grasp":
                expected = np.concatenate([contact.R @ block[:3], contact.R @ block[3:]])
                assert found.wrenches[contact.patch] == pytest.approx(expected, abs=0.05)
            else:
                expected = block.reshape(-1, 3) @ contact.axes.T
                assert found.point_forces[contact.patch] == pytest.approx(expected, abs=0.05)
        assert np.abs(found.tau / weak.limits.torque).max() <= share + 1e-6
        if held is crawl[1]:
            assert np.abs(found.tau / weak.limits.torque).max() > share - 1e-3  # the limits bind


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_torque_limit_is_kept_on_either_side(robot, crawl, sign):
    """The joint whose torque is largest one way gets less than that; all others may do what they like."""
    q, held = crawl
    limits = np.full(robot.n, np.inf)
    free = balance(replace(robot, limits=replace(robot.limits, torque=limits)), q, held).tau
    joint = int(np.argmax(sign * free))
    limits[joint] = 0.9 * sign * free[joint]
    assert limits[joint] > 1.0
    found = balance(replace(robot, limits=replace(robot.limits, torque=limits)), q, held, torque_share=1.0)
    assert found.torque_feasible
    assert sign * found.tau[joint] == pytest.approx(limits[joint], rel=1e-4)


@pytest.mark.parametrize("weak", [0, 1])
def test_all_points_of_a_foot_together_bear_no_more_than_its_limit(robot, weak):
    """Half of the weight would be about 270 N; the other foot bears the rest."""
    q = robot.posture("half_sitting")
    feet = [contact_at(robot, q, f"{side}_sole") for side in ("left", "right")]
    free = balance(robot, q, feet)
    for limit in (200.0, 240.0, 1000.0):
        feet[weak] = replace(feet[weak], max_force=limit)
        found = balance(robot, q, feet)
        loads = [contact.normal @ found.wrenches[contact.patch][:3] for contact in feet]
        asked = feet[weak].normal @ free.wrenches[feet[weak].patch][:3]
        assert loads[weak] == pytest.approx(min(limit, asked), rel=1e-3)
        assert sum(loads) == pytest.approx(9.81 * robot.mass)


def test_a_patch_that_carries_no_load_is_left_out(robot, crawl):
    q, held = crawl
    feet = [contact.patch for contact in held[:-1]]
    found = balance(robot, q, held, feet)
    assert found.wrenches[held[-1].patch] == pytest.approx(np.zeros(6))
    assert set(found.point_forces) == set(feet)


def test_loaded_names_patches_that_are_in_contact(robot, crawl):
    q, held = crawl
    with pytest.raises(InputError, match="balance: loaded: unknown patch `left_feet`"):
        balance(robot, q, held, ["left_feet"])
    with pytest.raises(InputError, match="expected a list of str, not 'left_sole'"):
        balance(robot, q, held, "left_sole")


@pytest.mark.parametrize("smooth", [("left_sole",), ("left_sole", "right_sole")])
def test_a_contact_without_friction_bears_along_its_normal(robot, smooth):
    q = robot.posture("half_sitting")
    feet = [contact_at(robot, q, patch) for patch in ("left_sole", "right_sole")]
    found = balance(robot, q, [replace(foot, friction=0.0) if foot.patch in smooth else foot for foot in feet])
    assert found.feasible
    for foot in feet:
        local = found.point_forces[foot.patch] @ foot.axes
        assert local[:, 2].min() > 0.0
        if foot.patch in smooth:
            assert np.abs(local[:, :2]).max() < 1e-9
    assert sum(wrench[2] for wrench in found.wrenches.values()) == pytest.approx(robot.mass * 9.81)


def test_the_shortfall_is_of_a_robot_and_its_contacts(robot, crawl):
    q, held = crawl
    with pytest.raises(InputError, match="shortfall: robot: expected a Robot"):
        shortfall(q, robot, held)
    with pytest.raises(InputError, match=r"shortfall: contacts\[0\]: expected a Contact"):
        shortfall(robot, q, ["left_sole"])


def test_a_wrench_acts_where_the_patch_is_even_when_it_has_turned(robot):
    """The origin of a shin on an edge moves as it turns: the wrench is about where it is now."""
    q = robot.posture("half_sitting")
    foot, other = contact_at(robot, q, "left_sole"), contact_at(robot, q, "right_sole")
    aside = contacts.make(
        "right_sole", "surface", other.R, other.p + 0.03 * np.eye(3)[0],
        other.points + other.R.T @ [-0.03, 0, 0], other.axes, other.friction,
    )  # fmt: skip
    found, straight = balance(robot, q, [foot, aside]), balance(robot, q, [foot, other])
    for patch in ("left_sole", "right_sole"):
        assert found.wrenches[patch] == pytest.approx(straight.wrenches[patch], abs=1e-4)


def test_friction_margins_are_over_points_that_carry_more_than_a_newton():
    rng = np.random.default_rng(0)
    feet = [
        contacts.surface_contact("a", [0, 0, 0], [0.3, 0.2, 0.9], friction=0.5),
        contacts.surface_contact("b", [0.3, 0, 0], [-0.2, 0.4, 0.9], friction=0.8),
        contacts.grasp_contact("g", [0, 0, 1.0]),
    ]
    local = {
        "a": np.array([[1.0, 2.0, 40.0], [3.0, -4.0, 20.0], [0.5, 0.0, 0.9], [0, 0, 0.0]]),
        "b": np.column_stack([rng.uniform(-4, 4, (4, 2)), rng.uniform(30, 60, 4)]),
        "g": np.array([[50.0, 0.0, 1.0]]),
    }
    forces = {c.patch: local[c.patch] @ c.axes.T for c in feet}
    margin, ratio = friction_margin(feet, forces)
    assert margin == pytest.approx(0.5 * 20 - 5)  # the point of 0.9 N, past its cone, is left out; so is the grasp
    assert ratio == pytest.approx(5 / (0.5 * 20))
    assert friction_margin(feet[2:], forces) == (np.inf, 0.0)
    slippery = contacts.surface_contact("a", [0, 0, 0], [0.3, 0.2, 0.9], friction=0.0)
    assert friction_margin([slippery], forces) == (pytest.approx(-5.0), np.inf)


def test_margins_of_a_posture_are_those_of_their_definition(robot, crawl):
    q, held = crawl
    q = q.copy()
    near = robot.joint_names.index("LARM_JOINT3")
    lower, upper = robot.limits.lower, robot.limits.upper
    tau = np.linspace(-0.4, 0.3, robot.n) * np.where(np.isfinite(robot.limits.torque), robot.limits.torque, 0.0)
    found = balance(robot, q, held)
    for place in (lower[near] + 0.011, upper[near] - 0.012):
        q[7 + near] = place
        values = margins(robot, q, held, SimpleNamespace(point_forces=found.point_forces, tau=tau))
        assert values["position"] == pytest.approx(min((q[7:] - lower).min(), (upper - q[7:]).min()))
        assert values["position"] <= 0.012 + 1e-12
        assert values["torque"] == pytest.approx(0.4)
        assert values["equilibrium"] == pytest.approx(equilibrium_margin(robot.com(q), held, robot.mass))
        assert values["equilibrium_torque"] == pytest.approx(equilibrium_torque_margin(robot, q, held))
    free = margins(robot, q, held[:1], SimpleNamespace(point_forces={held[0].patch: np.zeros((4, 3))}, tau=tau))
    assert free["friction"] is None


def generalised_map(robot, q, held):
    """Return the generalised forces of the unknowns of `ContactForces`, all rows of the equation of motion."""
    rows = []
    for contact in held:
        J = robot.frame_jacobian(q, contact.patch)
        if contact.kind == "grasp":
            rows.append(J.T @ np.kron(np.eye(2), contact.R))
            continue
        for arm in contact.points @ contact.R.T:
            rows.append(J.T @ np.vstack([np.eye(3), np.cross(arm, np.eye(3)).T]) @ contact.axes)
    return np.hstack(rows)


def largest_push(robot, q, held, angle, faces, widen):
    """Return the largest push at the centre of mass by HiGHS over pyramids, shared by the links like a tilt, N.

    ``widen`` multiplies the pyramids' friction and the grasps' limits.
    """
    forces = ForceUnknowns([c.with_margin(widen) for c in held], faces)
    F, upper = forces.face_rows()
    A = generalised_map(robot, q, held)
    still = np.zeros(robot.nv)
    h = robot.inverse_dynamics(q, still, still)
    push = robot.com_jacobian(q).T @ [np.cos(angle), np.sin(angle), 0.0]
    limited = np.flatnonzero(np.isfinite(robot.limits.torque))
    limit = robot.limits.torque[limited]
    B = np.column_stack([A, push])
    result = linprog(
        np.append(np.zeros(A.shape[1]), -1.0),
        A_ub=np.vstack([np.column_stack([F, np.zeros(len(F))]), -B[6:][limited], B[6:][limited]]),
        b_ub=np.concatenate([upper, limit - h[6:][limited], limit + h[6:][limited]]),
        A_eq=B[:6],
        b_eq=h[:6],
        bounds=[(None, None)] * B.shape[1],
    )
    assert result.status == 0
    return -result.fun


def test_the_margin_within_torques_agrees_with_a_linear_program_over_fine_pyramids(robot, crawl):
    q, held = crawl
    held = [contact.with_margin(0.6) for contact in held]  # so that friction binds in places
    robot = replace(robot, limits=replace(robot.limits, torque=0.3 * robot.limits.torque))  # and torques in others
    found = equilibrium_torque_margin(robot, q, held)
    angles = 2 * np.pi * np.arange(16) / 16
    inner, outer = (
        min(largest_push(robot, q, held, angle, 32, widen) for angle in angles)
        for widen in (1.0, 1.0 / np.cos(np.pi / 32))
    )
    assert inner - 1e-3 <= found <= outer + 1e-3
    assert outer - inner < 0.02 * outer
    assert found < 0.7 * equilibrium_margin(robot.com(q), held, robot.mass)


def test_caution_takes_a_share_of_friction_and_of_all_limits(hanging):
    _, (foot, grip) = hanging
    assert foot.with_margin(0.8).friction == pytest.approx(0.8 * foot.friction)
    spared = grip.with_margin(0.8)
    assert (spared.max_force, spared.max_moment) == pytest.approx((240.0, 9.6))


def test_the_moment_of_a_grasp_bounds_the_push():
    """A foot that is a point, and a grasp at one place: the moment of the grasp alone withstands a push."""
    grip = contacts.grasp_contact("grip", [0.0, 0.0, 0.8], max_force=1e4, max_moment=16.0)
    # the push at 0.5 m above the grasp; its horizontal force is far from its limit
    assert equilibrium_margin([0.0, 0.0, 1.3], [grip], 56.0) == pytest.approx(16.0 / 0.5, rel=1e-6)
