"""The program is drawn to the forces of the plan."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.control.held_contacts import FORCE_TIME_CONSTANT, PlannedForces
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.margins import with_control_margins
from mcplan.whole_body.contact import ContactConstraint, count_unknowns, least_forces

ROBOT = load_robot("hrp2")
SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
TILTED = np.array([[0.8, 0.0, 0.6], [0.0, 1.0, 0.0], [-0.6, 0.0, 0.8]])
SCENE = Environment(
    (Surface("floor", np.eye(3), np.zeros(3), SQUARE), Surface("slope", TILTED, np.ones(3), SQUARE)),
    (),
    (Bar("bar", np.array([[0.4, -0.5, 0.9], [0.4, 0.5, 0.9]]), 0.02),),
    (),
)  # fmt: skip
FOOT = make_contact(ROBOT, SCENE, {"patch": "left_sole", "surface": "slope", "x": 0.1, "y": 0.2, "yaw": 0.4})
OTHER = make_contact(ROBOT, SCENE, {"patch": "right_sole", "surface": "floor", "x": 0.1, "y": -0.2, "yaw": 0.0})
GRIP = make_contact(ROBOT, SCENE, {"patch": "left_grip", "surface": "bar"}, (np.eye(3), np.array([0.4, 0.0, 0.9])))
WRENCH = np.array([20.0, -10.0, 150.0, 3.0, -2.0, 1.0])


def plan_of(*stances):
    """Of each stance its contacts with their wrenches."""
    made = [
        SimpleNamespace(contacts=tuple(c for c, _ in stance), wrenches={c.patch: w for c, w in stance})
        for stance in stances
    ]
    return SimpleNamespace(stances=made)


@pytest.mark.parametrize("contact", [FOOT, GRIP])
def test_unknowns_of_a_wrench_have_that_wrench_and_are_the_smallest(contact):
    terms = Terms(ROBOT, [contact.patch])
    q = ROBOT.posture("half_sitting")
    terms.update(q, np.zeros(ROBOT.nv))
    frame = terms.frame(contact.patch)
    frame.R[:] = contact.R  # as if the patch were in its place
    G = ContactConstraint(contact).wrench_map(terms)
    found = least_forces(contact, WRENCH)
    assert len(found) == count_unknowns(contact) == G.shape[1]
    assert G @ found == pytest.approx(WRENCH)
    null = np.eye(len(found)) - np.linalg.pinv(G) @ G
    assert null @ found == pytest.approx(np.zeros(len(found)), abs=1e-9)


@pytest.mark.parametrize("along", [(0.0, 0.0), (40.0, 0.0), (-40.0, 0.0), (0.0, 40.0), (0.0, -40.0)])
@pytest.mark.parametrize("margin", [0.0, 0.005])
def test_points_press_where_a_wrench_is_near_an_edge_and_have_it_where_they_can(margin, along):
    """The least forces of all would pull at the heel where the pressure is at the toes, whatever acts along."""
    x, force = FOOT.points[:, 0].max() - 0.008, FOOT.axes @ [*along, 200.0]
    wrench = np.r_[force, np.cross(FOOT.R @ [x, 0.01, FOOT.points[0, 2]], force)]
    settings = ControlSettings(contact={"pressure_margin": margin})
    forces = PlannedForces(plan_of([(FOOT, wrench)]), 1e-3, settings)._stances[0]["left_sole"]
    contact = with_control_margins(FOOT, settings)
    G = np.hstack([np.vstack([FOOT.axes, np.cross(FOOT.R @ point, FOOT.axes, axisb=0).T]) for point in contact.points])
    assert (np.linalg.pinv(G) @ wrench)[2::3].min() < -5.0
    assert forces[2::3].min() > -1e-6
    assert G @ forces == pytest.approx(wrench, rel=1e-3, abs=1e-2)


def test_what_no_pressing_point_gives_is_come_near_to():
    wrench = np.r_[FOOT.normal * 200.0, np.cross(FOOT.R @ [0.4, 0.0, 0.0], FOOT.normal * 200.0)]  # off the sole
    forces = least_forces(FOOT, wrench)
    assert forces[2::3].min() > -1e-6
    assert forces[2::3].sum() == pytest.approx(200.0, rel=0.05)


def test_forces_follow_from_stance_to_stance():
    """Planned forces of new contacts start from zero, those of contacts absent from the next stance fade."""
    plan = plan_of([(FOOT, WRENCH)], [(FOOT, 0.5 * WRENCH), (OTHER, WRENCH)], [(OTHER, WRENCH)])
    forces, dt = PlannedForces(plan, 1e-3, ControlSettings()), 1e-3
    whole = least_forces(FOOT, WRENCH)
    first = forces.follow(0, (FOOT,))["left_sole"]
    assert first == pytest.approx(dt / FORCE_TIME_CONSTANT * whole)
    for _ in range(3000):
        stood = forces.follow(0, (FOOT,))
    assert stood["left_sole"] == pytest.approx(whole, rel=1e-3)
    both = forces.follow(1, (FOOT, OTHER))
    assert both["right_sole"] == pytest.approx(dt / FORCE_TIME_CONSTANT * least_forces(OTHER, WRENCH))
    for _ in range(3000):
        both = forces.follow(1, (FOOT, OTHER))
    assert both["left_sole"] == pytest.approx(0.5 * whole, rel=1e-3)
    left = forces.follow(2, (FOOT, OTHER))["left_sole"]
    assert left == pytest.approx((1.0 - dt / FORCE_TIME_CONSTANT) * both["left_sole"])
    assert "left_sole" not in forces.follow(2, (OTHER,))


def test_a_patch_that_is_held_by_another_model_than_planned_has_no_planned_force():
    forces = PlannedForces(plan_of([(FOOT, WRENCH)]), 1e-3, ControlSettings())
    assert forces.follow(0, (replace(GRIP, patch="left_sole"),)) == {}
