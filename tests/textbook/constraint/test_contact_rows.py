"""Rows of contacts against finite differences, ranks against the textbook's cases."""

import numpy as np
import pytest

import mcplan as mc
from mcplan.errors import InputError
from mcplan.textbook.constraint.contact_rows import contact_rows, point_rows, surface_rows
from mcplan.textbook.constraint.support_kinematics import support_velocity

ROBOT = mc.load_robot("hrp2")
FLOOR = mc.Surface("floor", size=(4, 4))


def sole(side, **more):
    y = 0.095 if side == "left" else -0.095
    return mc.contact(ROBOT, f"{side}_sole", FLOOR, x=0.01, y=y, **more)


def state(seed):
    random = np.random.default_rng(seed)
    return ROBOT.random_configuration(random), random.normal(size=ROBOT.nv)


MAKERS = {
    "point": lambda q, v: point_rows(ROBOT, q, v, "RLEG_LINK5", (0.1, -0.05, -0.02)),
    "surface": lambda q, v: surface_rows(ROBOT, q, v, "left_hand"),
    "contacts": lambda q, v: contact_rows(ROBOT, q, v, [sole("left"), sole("right", slide="x"), POINT]),
}
POINT = mc.contact(ROBOT, "left_hand", FLOOR, x=1, y=0, kind="point")


@pytest.mark.parametrize("kind", MAKERS)
def test_the_rate_of_the_rows_is_their_derivative_along_the_motion(kind):
    for seed in range(4):
        q, v = state(seed)
        h = 1e-6
        before, after = (MAKERS[kind](ROBOT.integrate(q, v, s * h), v).J for s in (-1, 1))
        np.testing.assert_allclose(MAKERS[kind](q, v).bias, (after - before) @ v / (2 * h), atol=2e-6)


def test_a_point_moves_as_its_rows_say():
    q, v = state(9)
    point, h = np.array([0.1, -0.05, -0.02, 1.0]), 1e-6
    ends = [(ROBOT.frame_pose(ROBOT.integrate(q, v, s * h), "RLEG_LINK5") @ point)[:3] for s in (-1, 1)]
    np.testing.assert_allclose(MAKERS["point"](q, v).J @ v, (ends[1] - ends[0]) / (2 * h), atol=1e-8)


def test_rows_are_those_that_a_contact_constrains():
    rows = MAKERS["contacts"](*state(0))
    assert np.bincount(rows.owner).tolist() == [6, 5, 3]


def points(*names):
    return [mc.contact(ROBOT, name, FLOOR, x=k, y=0, kind="point") for k, name in enumerate(names)]


@pytest.mark.parametrize(
    ("names", "constraints", "base", "internal"),
    [
        ((), 0, 0, 0),
        (("left_sole",), 3, 3, 0),
        (("left_sole", "right_sole"), 6, 5, 1),
        (("left_sole", "right_sole", "left_hand"), 9, 6, 3),
    ],
)
def test_ranks_of_point_contacts_are_those_of_the_book(names, constraints, base, internal):
    rank = mc.stance_rank(ROBOT, ROBOT.posture("half_sitting"), points(*names))
    assert (rank.constraints, rank.base, rank.internal) == (constraints, base, internal)
    assert rank.base_controllable == (base == 6)
    assert rank.freedom == ROBOT.nv - constraints


def test_ranks_of_soles():
    q = ROBOT.posture("half_sitting")
    one, two = (mc.stance_rank(ROBOT, q, soles) for soles in ([sole("left")], [sole("left"), sole("right")]))
    assert (one.constraints, one.base, one.internal) == (6, 6, 0)
    assert (two.constraints, two.base, two.internal) == (12, 6, 6)
    assert "base controllable, 6 internal" in str(two)


def test_a_fixed_base_is_a_constraint_of_its_own():
    arm = mc.load_robot("arm7")
    with pytest.raises(InputError, match="`fixed_base` is missing"):
        contact_rows(arm, arm.posture("ready"), np.zeros(arm.nv), [])
    plan = mc.plan(mc.Scenario(arm, mc.Environment([FLOOR]), posture="ready"))
    rank = mc.stance_rank(arm, plan.stances[0].q, plan.stances[0].contacts)
    assert (rank.base, rank.internal, rank.freedom) == (6, 0, 7)


@pytest.fixture(scope="module")
def standing():
    q = ROBOT.posture("half_sitting")
    return q, [mc.contact(ROBOT, f"{side}_sole", FLOOR, near=q) for side in ("left", "right")]


def test_a_hand_reaches_its_place_while_the_feet_stay(standing):
    q, soles = standing
    goal = ROBOT.frame_pose(q, "right_hand")[:3, 3] + [0.1, -0.05, 0.25]
    com = ROBOT.com(q) + np.array([0.0, 0.02, -0.03])
    found = mc.support_inverse_kinematics(ROBOT, q, soles, {"right_hand": goal, "com": com})
    assert found.error < 1e-6
    assert found.slip < 1e-6
    for contact in soles:
        name = contact.patch
        np.testing.assert_allclose(ROBOT.frame_pose(found.q, name), ROBOT.frame_pose(q, name), atol=2e-6)
    np.testing.assert_allclose(ROBOT.frame_pose(found.q, "right_hand")[:3, 3], goal, atol=2e-6)
    assert (found.q[7:] >= ROBOT.limits.lower - 1e-12).all()
    assert (found.q[7:] <= ROBOT.limits.upper + 1e-12).all()


def test_out_of_reach_it_comes_near_and_says_by_how_much_it_misses(standing):
    q, soles = standing
    far = ROBOT.frame_pose(q, "right_hand")[:3, 3] + [3.0, 0.0, 0.0]
    found = mc.support_inverse_kinematics(ROBOT, q, soles, {"right_hand": far}, iterations=60)
    missed = np.abs(far - ROBOT.frame_pose(found.q, "right_hand")[:3, 3]).max()
    assert found.error == pytest.approx(missed, abs=1e-9)
    assert found.error < 3.0
    assert found.slip < 1e-5
    with pytest.raises(InputError, match=r"shape \(2,\)"):
        mc.support_inverse_kinematics(ROBOT, q, soles, {"right_hand": [0.0, 1.0]})


def test_what_contacts_hold_completely_is_not_moved_and_takes_nothing_from_the_rest(standing):
    q, soles = standing
    held, w = ROBOT.frame_jacobian(q, "left_sole"), np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.2])
    np.testing.assert_allclose(support_velocity(ROBOT, q, soles, held, w), 0.0, atol=1e-12)
    com, wanted = ROBOT.com_jacobian(q), np.array([0.01, 0.02, 0.0])
    alone = support_velocity(ROBOT, q, soles, com, wanted)
    np.testing.assert_allclose(com @ alone, wanted, atol=1e-12)
    both = support_velocity(ROBOT, q, soles, np.vstack([held, com]), np.concatenate([w, wanted]))
    np.testing.assert_allclose(both, alone, atol=1e-9)


def test_a_target_for_a_foot_that_stays_leaves_the_posture_as_it_is(standing):
    q, soles = standing
    aside = ROBOT.frame_pose(q, "left_sole")[:3, 3] + [0.05, 0.0, 0.0]
    found = mc.support_inverse_kinematics(ROBOT, q, soles, {"left_sole": aside}, iterations=40)
    np.testing.assert_allclose(found.q, q, atol=1e-6)
    assert found.error == pytest.approx(0.05)


@pytest.mark.parametrize("iterations", [8, 15])
def test_few_steps_are_steps_towards_the_target(standing, iterations):
    q, soles = standing
    goal = ROBOT.frame_pose(q, "right_hand")[:3, 3] + [0.1, -0.05, 0.25]
    found = mc.support_inverse_kinematics(ROBOT, q, soles, {"right_hand": goal}, iterations=iterations)
    assert found.error < 1e-6
    assert found.iterations <= iterations


def test_what_is_no_robot_contact_or_state_is_refused(standing):
    q, soles = standing
    for call, text in (
        (lambda: mc.stance_rank("hrp2", q, soles), "stance_rank: robot: expected a Robot, not 'hrp2'"),
        (lambda: mc.stance_rank(ROBOT, q, soles[0]), r"stance_rank: contacts: .*put it into a list"),
        (lambda: contact_rows(ROBOT, q, 0 * q, soles), f"contact_rows: v: expected {ROBOT.nv} finite numbers"),
        (lambda: contact_rows(q, ROBOT, q, soles), "contact_rows: robot: expected a Robot"),
        (lambda: support_velocity(ROBOT, q, ["left_sole"], np.eye(3), q[:3]), r"support_velocity: contacts\[0\]"),
        (lambda: mc.support_inverse_kinematics(ROBOT, q[:7], soles, {}), f"q: expected {ROBOT.nq} finite numbers"),
        (lambda: mc.support_inverse_kinematics(ROBOT, q, soles, {}, iterations=-1), "iterations: expected a whole"),
    ):
        with pytest.raises(InputError, match=text):
            call()
