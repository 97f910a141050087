"""The forces and margins of the stances of a plan, taken anew at the postures that a search found."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.errors import PlanningFailed
from mcplan.planning.feasibility import Feasibility
from mcplan.planning.plan import PlannedStance
from mcplan.planning.posture.generator import contact_at
from mcplan.planning.posture.result import Violation
from mcplan.planning.search import finish
from mcplan.planning.search.finish import LIMIT_SHARES, GoalLeg, _cone_error, _final_stance, _stance, finish_stances
from mcplan.planning.search.node import ContactStep
from mcplan.planning.stance_planner import _StancePlanner
from mcplan.settings.control import ControlSettings
from mcplan.statics.equilibrium import balance, equilibrium_margin

BLOCKED = (Violation("passage", "hand and table", 0.02),)


@pytest.fixture(scope="module")
def checks(scene):
    q = scene.ROBOT.posture("half_sitting")
    return Feasibility(scene.ROBOT, scene.ENVIRONMENT, q, ["left_sole", "right_sole"], ControlSettings())


@pytest.fixture(scope="module")
def lifted(scene, checks):
    """Both feet in place, the left one without load."""
    feet = scene.feet()
    found = checks.postures.find(feet, ["left_sole"], scene.ROBOT.posture("half_sitting"))
    assert found.found
    return feet, found.q


def removal(feet, q, leaving=0):
    """The step that removes the contact of one of two feet."""
    gone, stays = feet[leaving], feet[1 - leaving]
    return ContactStep((stays,), "remove", gone.patch, feet, (stays.patch,), q, feet)


def test_the_stance_balances_at_its_posture_on_the_feet_that_carry(scene, checks, lifted):
    robot, (feet, q) = scene.ROBOT, lifted
    stance = _stance(checks, removal(feet, q), feet[1:])
    assert not stance.wrenches["left_sole"].any()
    rest = robot.nonlinear_effects(q, np.zeros(robot.nv))
    rest[6:] -= stance.tau
    for patch, wrench in stance.wrenches.items():
        rest -= robot.frame_jacobian(q, patch).T @ wrench
    assert np.abs(rest).max() < 1e-6
    there = contact_at(robot, q, feet[1])
    assert stance.margins["equilibrium"] == pytest.approx(
        equilibrium_margin(robot.com(q), [there], robot.mass), rel=1e-6
    )
    near = checks.collisions.smallest(q, contacts=feet)
    assert stance.margins["clearance"] == pytest.approx(near.distance)
    assert (stance.change, stance.moved, [c.patch for c in stance.contacts]) == ("remove", "left_sole", ["right_sole"])


def test_forces_take_the_least_share_of_friction_and_torques_that_will_do(checks, lifted, monkeypatch):
    """Shares are tried from the least; where none gives forces within their cones, that which comes nearest."""
    settings, (feet, q) = checks.postures.generator.settings, lifted
    asked, right, off = [], balance, []

    def watched(robot, q, contacts, loaded, torque_share):
        asked.append((contacts[1].friction / feet[1].friction, contacts[1].max_force, torque_share))
        held = right(robot, q, contacts, loaded, torque_share)
        outside = off[len(asked) - 1]
        if outside is None:
            return replace(held, feasible=False)
        held.point_forces["right_sole"][0] = [0.0, 0.0, -outside]
        return replace(held, tau=np.full(len(held.tau), outside))

    monkeypatch.setattr(finish, "balance", watched)
    strong = (feet[0], replace(feet[1], max_force=5000.0))
    for given, tried, taken in (
        ([0.0], 1, 0.0),
        ([None, None, 0.0], 3, 0.0),
        ([None, 3e-3, 2e-3, 1e-3, 4e-3, None], 6, 1e-3),
    ):
        asked.clear()
        off[:] = given
        stance = _stance(checks, removal(strong, q), strong[1:])
        friction, force, torque = np.array(asked).T
        assert friction == pytest.approx(settings.friction_share * np.array(LIMIT_SHARES[:tried]))
        assert force == pytest.approx(5000.0 * friction)
        assert torque == pytest.approx(settings.torque_share * np.array(LIMIT_SHARES[:tried]))
        assert stance.tau == pytest.approx(np.full(len(stance.tau), taken))


def test_a_posture_whose_forces_cannot_be_had_is_refused_with_its_change(scene, checks, lifted):
    feet, q = lifted
    with pytest.raises(PlanningFailed, match="remove right_sole: no contact forces hold the posture"):
        _stance(checks, removal(feet, q, leaving=1), feet[:1])
    weak = replace(feet[1], max_force=0.9 * scene.ROBOT.mass * 9.81)
    with pytest.raises(PlanningFailed):
        _stance(checks, removal((feet[0], weak), q), (weak,))


def test_contacts_stay_in_their_order_and_new_ones_come_last(monkeypatch):
    a, b, c, d = (SimpleNamespace(patch=patch) for patch in "abcd")
    monkeypatch.setattr(finish, "_stance", lambda checks, step, contacts: replace(first, contacts=contacts))
    first = PlannedStance((b, a, c), "start", None, np.zeros(1), {}, np.zeros(1), {})
    for after, expected in (((a, b, d, c), "bacd"), ((a, b), "ba")):
        step = ContactStep(after, "add", "d", after, (), np.zeros(1), after)
        leg = GoalLeg(None, [None, SimpleNamespace(steps=(step,))])
        assert "".join(finish_stances(None, None, first, [leg])[-1].patches) == expected


def test_how_far_forces_are_outside_their_cones_is_told_of_the_worst_point(scene):
    left, right = (replace(contact, friction=0.5) for contact in scene.feet())
    forces = {"left_sole": np.tile([0.0, 0.0, 10.0], (4, 1)), "right_sole": np.tile([0.0, 0.0, 10.0], (4, 1))}
    held = SimpleNamespace(point_forces=forces)
    assert _cone_error([left, right], held) == 0.0
    forces["right_sole"][2] = [3.0, 4.0, 9.0]
    assert _cone_error([left, right], held) == pytest.approx(5.0 - 0.5 * 9.0)
    forces["left_sole"][1] = [0.0, 0.0, -2.0]
    assert _cone_error([left, right], held) == pytest.approx(2.0)
    grip = replace(right, kind="grasp")
    assert _cone_error([grip], held) == 0.0


def test_a_contact_is_where_its_patch_is(scene):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    foot = scene.feet()[0]
    there = contact_at(robot, q, foot)
    X = robot.frame_pose(q, "left_sole")
    assert there.p == pytest.approx(X[:3, 3])
    assert pytest.approx(X[:3, :3]) == there.R
    assert there.axes == pytest.approx(foot.axes)


@pytest.mark.parametrize(
    ("constrains", "blocked", "stays"), [(False, True, True), (False, False, False), (True, True, False)]
)
def test_an_end_without_constraints_is_left_out_where_the_motion_to_it_is_blocked(
    scene, checks, lifted, monkeypatch, constrains, blocked, stays
):
    feet, q = lifted
    there = scene.ROBOT.posture("half_sitting")
    before = replace(_stance(checks, removal(feet, q), feet[1:]), contacts=feet)
    end = SimpleNamespace(found=True, missing="", result=SimpleNamespace(q=there))
    solver = SimpleNamespace(find=lambda *_: end, constrains=lambda item: constrains)
    checked = []
    monkeypatch.setattr(checks.motions, "violations", lambda motion: checked.append(motion) or blocked * BLOCKED)
    stance = _final_stance(checks, solver, SimpleNamespace(goal=SimpleNamespace(item=None), end=end), before)
    np.testing.assert_array_equal(stance.q, q if stays else there)
    for motion in checked:
        assert (motion.contacts, motion.leaving) == (feet, ())
        np.testing.assert_array_equal([motion.q0, motion.q1], [q, there])
    assert (stance.change, stance.moved) == ("shift", None)


@pytest.mark.parametrize(
    ("constrains", "missing", "blocked", "message"),
    [
        (True, "", False, ""),
        (True, "", True, "along the path hand and table come 20 mm too close"),
        (True, "the base is 0.1 m off", True, "the base is 0.1 m off"),
        (False, "not asked for", True, ""),
    ],
)
def test_the_end_of_an_item_can_be_reached(lifted, checks, monkeypatch, constrains, missing, blocked, message):
    """A posture with the hands on the other side of a table is no end."""
    feet, q = lifted
    checked = []
    monkeypatch.setattr(checks.motions, "violations", lambda motion: checked.append(motion) or blocked * BLOCKED)
    end, solver = SimpleNamespace(missing=missing, result=SimpleNamespace(q=q + 1.0)), SimpleNamespace()
    solver.constrains = lambda item: constrains
    planner = SimpleNamespace(solver=solver, _goal_posture=lambda *_: end, feasibility=checks)
    assert _StancePlanner._unmet(planner, None, SimpleNamespace(contacts=feet, q=q)) == message
    for motion in checked:
        assert (motion.contacts, motion.leaving) == (feet, ())
        np.testing.assert_array_equal([motion.q0, motion.q1], [q, q + 1.0])
    assert bool(checked) == (constrains and not missing)
