"""What the controller measures for the criteria of the state machine, against its definition."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.control.command import LoadedContact, Ramp
from mcplan.control.controller import BALANCE_FIRST_ERROR, ROTATION_LEVER_M, WholeBodyController, contacts_along
from mcplan.motion.limb_path import HeldPose
from mcplan.planning.plan import PlannedStance
from mcplan.planning.planner import plan
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import load_scenario
from mcplan.sim.simulate import Simulation
from tests import shared


def controller(**parts):
    """A controller that has these parts only."""
    made = WholeBodyController.__new__(WholeBodyController)
    for name, part in parts.items():
        setattr(made, name, part)
    return made


@pytest.mark.parametrize("approaching", [False, True])
@pytest.mark.parametrize("normal", [[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.6, 0.0, 0.8], [0.0, 0.6, -0.8]])
def test_the_normal_force_is_along_the_normal_of_the_support(normal, approaching):
    contact = SimpleNamespace(kind="surface", normal=np.array(normal))
    loaded = {} if approaching else {"sole": LoadedContact(contact, Ramp(0, 100.0, 0, 0), 100.0)}
    motion = SimpleNamespace(contacts=loaded, targets={"sole": contact} if approaching else {})
    along = np.cross(normal, [0.36, -0.48, 0.8])  # what acts along the support does not count
    wrench = np.concatenate([70.0 * contact.normal + 20.0 * along, [1.0, 2.0, 3.0]])
    measured = controller(motion=motion, _wrenches={"sole": wrench})
    assert measured.normal_force("sole") == pytest.approx(70.0)
    assert measured.normal_force("hand") == 0.0


@pytest.mark.parametrize("turn", [0.0, 0.4, -2.0])
@pytest.mark.parametrize("away", [[0.0, 0.0, 0.0], [0.03, -0.04, 0.0]])
def test_a_radian_counts_as_a_displacement_of_an_arm(turn, away):
    R = Rotation.from_rotvec([0.5, -0.3, 0.8]).as_matrix()
    axis = np.array([0.48, 0.6, 0.64])
    path = HeldPose((R, np.ones(3)), 0.0)
    R_now, p_now = Rotation.from_rotvec(turn * axis).as_matrix() @ R, np.ones(3) + away
    frame = SimpleNamespace(velocity=np.concatenate([away, turn * axis]))
    terms = SimpleNamespace(frame=lambda name: frame, frame_values=lambda name: np.append(R_now, p_now))
    measured = controller(terms=terms, motion=SimpleNamespace(limbs={"sole": path}, objects={}), _t=0.0)
    expected = np.sqrt(np.linalg.norm(away) ** 2 + (ROTATION_LEVER_M * turn) ** 2)
    assert measured._error("sole") == pytest.approx(expected, abs=1e-12)
    assert measured._speed("sole") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("fastest", [-1.5, 1.5])
def test_the_speed_of_the_joints_is_that_of_the_fastest_in_either_direction(fastest):
    """Neither the base nor an object counts."""
    v = np.concatenate([np.full(6, 9.0), [0.3, fastest, -0.2], np.full(6, 8.0)])
    measured = controller(terms=SimpleNamespace(v=v), _nv=9)
    assert measured._speed("joints") == pytest.approx(1.5)


def test_every_program_of_a_plan_is_declared_before_its_first_tick():
    """To declare and compile one takes a hundred times as long as a tick."""
    dt, planned = 0.005, shared.planned("step")
    robot, q, v = planned.scenario.robot, planned.stances[0].q.copy(), np.zeros(planned.scenario.robot.nv)
    controller = WholeBodyController(planned, dt)
    declared, t = len(controller.tasks.pool), 0.0
    assert declared > 1
    while not controller.machine.done:
        vd = controller.step(t, q, v).vd
        q, v, t = robot.integrate(q, v + 0.5 * dt * vd, dt), v + dt * vd, t + dt
    assert t > 5.0
    assert len(controller.tasks.pool) == declared


def test_a_hand_that_was_let_go_is_led_while_a_foot_steps():
    """Until its limb reaches for another contact; another patch of a limb that stays closed is not led."""

    def stance(change, moved, closed, *segments):
        contacts = tuple(SimpleNamespace(patch=patch) for patch in closed)
        transition = SimpleNamespace(
            segments=[
                SimpleNamespace(
                    contacts=[SimpleNamespace(patch=patch) for patch in on],
                    courses=[SimpleNamespace(patch=patch, target=meets) for patch, meets in courses],
                    objects=None,
                )
                for on, courses in segments
            ]
        )
        return PlannedStance(
            contacts, change, moved, np.zeros(7), {}, np.zeros(0), {}, transition=transition if segments else None
        )

    soles = ("left_sole", "right_sole")
    stances = (
        stance("start", None, (*soles, "left_hand", "left_toe")),
        stance("remove", "left_toe", (*soles, "left_hand"), ((*soles, "left_hand", "left_toe"), [])),
        stance("remove", "left_hand", soles, ((*soles, "left_hand"), []), (soles, [("left_hand", None)])),
        stance("remove", "left_sole", ("right_sole",), (soles, [])),
        stance("add", "left_sole", soles, (("right_sole",), [("left_sole", object())])),
        stance("add", "left_hand", (*soles, "left_hand"), (soles, [("left_hand", object())])),
    )
    found = contacts_along(SimpleNamespace(stances=stances, scenario=SimpleNamespace(robot=load_robot("hrp2"))))
    assert [(tuple(contact.patch for contact in closed), sorted(led)) for closed, led, _, _ in found] == [
        ((*soles, "left_hand", "left_toe"), []),
        ((*soles, "left_hand", "left_toe"), []), ((*soles, "left_hand"), []),
        ((*soles, "left_hand"), []), (soles, ["left_hand"]), (soles, ["left_hand"]),
        (soles, ["left_hand"]), (("right_sole",), ["left_hand", "left_sole"]),
        (("right_sole",), ["left_hand", "left_sole"]), (soles, ["left_hand"]),
        (soles, ["left_hand"]), ((*soles, "left_hand"), []),
    ]  # fmt: skip


def test_joints_are_held_to_what_is_measured_once_a_patch_has_met_its_support(monkeypatch):
    simulation = Simulation(shared.planned("step", control__pace="fast"), physics="contact")
    impedance, met = simulation.controller.impedance, []
    meet = impedance.reset_velocity
    monkeypatch.setattr(impedance, "reset_velocity", lambda v: (met.append(v.copy()), meet(v)))
    while not met:
        closed = set(simulation.controller.motion.contacts)
        simulation.step()
    assert set(simulation.controller.motion.contacts) - closed
    np.testing.assert_array_equal(met[0], simulation.controller.joint_rates)


@pytest.mark.parametrize(("off", "looked"), [(0.9, False), (1.1, True)])
def test_balance_is_looked_after_where_the_capture_point_is_off_its_course(monkeypatch, off, looked):
    standing = plan(load_scenario("sway"))
    made = WholeBodyController(standing, 1e-3, "contact")
    calls = []
    monkeypatch.setattr(made.tasks, "put_balance_first", lambda *given: calls.append(given))
    error = off * BALANCE_FIRST_ERROR * made.settings.timing.com_tolerance
    follow = made.tasks.follow
    monkeypatch.setattr(made.tasks, "follow", lambda *given: (follow(*given), error)[1])
    q = standing.stances[0].q
    made.step(0.0, q, np.zeros(made.robot.nv))
    assert [(t, terms) for t, terms, _ in calls] == [(0.0, made.terms)] * looked


def test_time_and_error_of_a_phase_are_those_of_references_that_wait_for_the_robot():
    """A robot that does not move: what it should do goes on more and more slowly, and so does the phase."""
    dt, planned = 0.005, shared.planned("step", control__pace="fast")
    made, q = WholeBodyController(planned, dt), planned.stances[0].q
    still = np.zeros(made.robot.nv)
    for t in dt * np.arange(120):
        made.step(t, q, still)
        measured, clock = made.measure(t), made.motion.clock
        away = made.robot.com(q) - made.motion.com.sample(t).value
        assert measured.error["com"] == pytest.approx(np.linalg.norm(away), abs=1e-12)
        assert measured.elapsed == pytest.approx(t - made.machine.start_time - clock.delay, abs=1e-12)
    assert measured.error["com"] > 0.02
    assert clock.delay > 0.1
