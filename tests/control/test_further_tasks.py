"""Tasks that a scenario asks for beside those of its plan."""

import numpy as np
import pytest

import mcplan as mc
from mcplan.control.further_tasks import TASK_FACTORIES
from mcplan.settings.tasks import KINDS

TARGET = [1.5, 0.8, 1.3]
FEW = {"control.avoidance.pairs": 0, "simulation.time_limit": 1.5}


def simulated(tasks, until):
    plan = mc.plan(mc.load_scenario("sway", FEW | {"control.tasks": tasks}))
    simulation = mc.Simulation(plan)
    while simulation.t < until and simulation.step() is not None:
        pass
    return simulation


def off_target(robot, q):
    X = robot.frame_pose(q, "HEAD_LINK1")
    direction = np.array(TARGET) - X[:3, 3]
    return np.arccos(X[:3, 0] @ direction / np.linalg.norm(direction))


def test_look_and_force_and_torques_are_followed():
    tasks = [
        {"look_at": {"frame": "HEAD_LINK1", "target": TARGET}, "weight": 50.0, "kp": 400.0},
        {"contact_force": {"patch": "left_sole", "normal": 350.0}, "weight": 1.0},
        {"torque": {"by_limit": True}, "weight": 1e-3},
    ]
    simulation = simulated(tasks, 0.6)
    assert off_target(simulation.plan.scenario.robot, simulation.physics.q) < 0.02
    assert simulation.controller.normal_force("left_sole") == pytest.approx(350.0, abs=2.0)


def test_a_task_weighs_something_in_its_states_alone():
    task = {"look_at": {"frame": "HEAD_LINK1", "target": TARGET}, "weight": 50.0, "kp": 400.0, "during": ["shift"]}
    simulation = simulated([task], 0.19)
    robot, controller = simulation.plan.scenario.robot, simulation.controller
    assert controller.machine.state.name == "stand"
    before = off_target(robot, simulation.physics.q)
    while simulation.t < 0.75:
        simulation.step()
    assert controller.machine.state.name == "shift"
    assert before > 0.3
    assert off_target(robot, simulation.physics.q) < 0.02


def test_a_relative_pose_of_a_later_level_yields_to_what_goes_before():
    moved = {"frame": "left_hand", "reference": "BODY", "orientation": False, "pose": {"xyz": [0.3, 0.35, 0.2]}}
    first = simulated([{"relative_pose": moved, "kp": 100.0, "priority": 1}], 0.5)
    robot = first.plan.scenario.robot

    def place(simulation):
        X = np.linalg.solve(*(robot.frame_pose(simulation.physics.q, name) for name in ("BODY", "left_hand")))
        return X[:3, 3]

    goal = np.array([0.3, 0.35, 0.2])
    start = np.linalg.solve(*(robot.frame_pose(first.plan.stances[0].q, name) for name in ("BODY", "left_hand")))[:3, 3]
    assert np.linalg.norm(place(first) - goal) < 0.35 * np.linalg.norm(start - goal)
    later = simulated([{"relative_pose": moved, "kp": 100.0, "priority": 2}], 0.5)
    # the plan's posture, however light, has the first level: it determines all joints, and nothing is left
    assert np.linalg.norm(place(later) - goal) > 0.8 * np.linalg.norm(start - goal)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"look_at": {"frame": "HEAD_LINK", "target": TARGET}}, r"unknown link or patch `HEAD_LINK`"),
        ({"contact_force": {"patch": "left_soul", "normal": 1}}, "did you mean `left_sole`"),
        ({"contact_force": {"patch": "left_sole"}}, "give either `force`"),
        ({"torque": {}, "look_at": {"frame": "BODY", "target": TARGET}}, "give one of look_at"),
        ({"torque": {}, "kp": 3.0}, "has no kp"),
        ({"look_at": {"frame": "BODY", "target": TARGET, "axis": [0, 0, 0]}}, "axis .* has no direction"),
        ({"link_pose": {"frame": "BODY", "position": False, "orientation": False}}, "neither position nor orientation"),
        ({"relative_pose": {"frame": "BODY", "reference": "left_hand", "position": False, "orientation": False}},
         "neither position nor orientation"),
        ({"torque": {}, "priority": 0}, "priority.*1"),
        ({"torque": {}, "during": ["swingg left_sole"]}, r"during\[0\]: unknown state `swingg`; did you mean `swing`"),
    ],
)  # fmt: skip
def test_errors_of_a_task_are_reported(task, message):
    with pytest.raises(mc.InputError, match=message):
        mc.load_scenario("sway", {"control.tasks": [task]})


def test_tasks_on_forces_and_torques_have_the_last_priority():
    with pytest.raises(mc.InputError, match="have the last priority, which is 2 here"):
        mc.load_scenario("sway", {"control.posture_priority": 2, "control.tasks": [{"torque": {}}]})


def test_a_state_that_is_not_there_is_refused():
    task = {"look_at": {"frame": "BODY", "target": TARGET}, "during": ["swing left_sole"]}
    plan = mc.plan(mc.load_scenario("sway", {"control.tasks": [task]}))
    with pytest.raises(mc.InputError, match="there is no state `swing left_sole`; there are: stand"):
        mc.Simulation(plan)


def test_a_posture_of_a_later_level_pulls_the_centre_of_mass_off_by_nothing():
    """A chest that leans forward takes the centre of mass along, unless the legs compensate."""
    lean = {"posture": {"joints": {"CHEST_JOINT1": 0.3}}, "over": 0.5}
    states = [{"state": "lean", "after": "stand", "do": lean, "until": {"finished": 0.2}}]
    off = []
    for level in (1, 2):
        heavy = {"control.weights.posture": 1000.0, "control.posture_priority": level, "control.states": states}
        simulation = mc.Simulation(mc.plan(mc.load_scenario("sway", FEW | heavy)))
        controller = simulation.controller
        while simulation.t < 0.8:
            simulation.step()
        assert controller.machine.state.name == "lean"
        off.append(np.linalg.norm(controller.terms.com - controller.motion.com.sample(simulation.t).value))
    assert off[0] > 3e-3
    assert off[1] < 0.05 * off[0]


def test_each_kind_of_task_can_be_made():
    assert set(TASK_FACTORIES) == set(KINDS)
