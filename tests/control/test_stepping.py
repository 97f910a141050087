"""Push recovery: only a standing robot that would fall steps, onto a support."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from mcplan.control.motion import Motion
from mcplan.control.phases import Approach, Lift, Load, Retract, Settle, Shift, Stand, Swing, Unload
from mcplan.control.program import State
from mcplan.control.stepping import MAX_FOOT_OFFSET_M, MAX_OUTSIDE_M, Lean, Regain, Restore, StepBack, StepOut, Stepping
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import SimulationFailed
from mcplan.motion.limb_path import HeldPose
from mcplan.planning import plan_file
from mcplan.planning.plan import PlannedStance
from mcplan.planning.planner import plan as make_plan
from mcplan.robot.description import Box
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.scenario.load import load_scenario
from mcplan.scene.environment import Environment, FreeObject, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.disturbance import Push
from mcplan.sim.simulate import Simulation
from mcplan.statics.support_region import support_region
from tests.sim.push_recovery import drawn, standing

ROBOT = load_robot("hrp2")
SOLES = ["left_sole", "right_sole"]
SIDES = {"left": 0.1, "right": -0.1}
SETTINGS = ControlSettings().under("contact")


def floor(x=4.0, y=4.0, z=0.0, name="floor", shift=(0.0, 0.0)):
    corners = np.array([[-x, -y], [x, -y], [x, y], [-x, y]]) / 2
    return Surface(name, np.eye(3), np.array([*shift, z]), corners)


class Standing:
    """HRP-2 on its soles, whose centre of mass moves at a velocity (m/s): its whole body does."""

    def __init__(self, velocity, surfaces=(), settings=SETTINGS, moved=0.0, objects=()):
        scene = Environment(tuple(surfaces) or (floor(),), (), (), objects)
        q = ROBOT.posture("half_sitting")
        self.motion = Motion(ROBOT, scene, settings, q)
        self.terms = Terms(ROBOT, [ROBOT.link_names[0], *SOLES])
        v = np.zeros(ROBOT.nv)
        v[:3] = velocity
        self.terms.update(q, v)
        for patch in SOLES:
            X = ROBOT.frame_pose(q, patch)
            place = {"patch": patch, "surface": "floor", "x": X[0, 3], "y": X[1, 3], "yaw": 0.0}
            self.motion.close(make_contact(ROBOT, scene, place), -1.0, 0.0)
        ahead = {"left_sole": np.array([moved, 0.0, 0.0]), "right_sole": np.zeros(3)}
        planned = [replace(contact, p=contact.p + ahead[contact.patch]) for contact in self.motion.closed]
        stance = PlannedStance(tuple(planned), "shift", None, q, {}, np.zeros(ROBOT.n), {})
        here = SimpleNamespace(robot=ROBOT, environment=scene)
        plan = SimpleNamespace(scenario=here, stances=[stance] * 3, segments=())
        self.stepping = Stepping(plan, settings)

    def divert(self, *phases, index=0):
        states = tuple(State(phase) for phase in phases)
        machine = SimpleNamespace(states=states, index=index, phase=phases[index])
        return self.stepping.update(0.0, self.terms, self.motion, machine)

    def look(self, phase=None):
        other = self.divert(phase or Stand(0))
        return other.phases if other else []

    @property
    def depth(self):
        contacts = [loaded.contact for loaded in self.motion.contacts.values()]
        omega = np.sqrt(GRAVITY / self.terms.com[2])
        xi = self.terms.com[:2] + self.terms.com_velocity[:2] / omega
        return support_region(contacts, ROBOT.mass).depth(xi)


def test_regions_of_a_plan_that_was_read_are_those_of_what_will_be_closed(tmp_path, monkeypatch):
    """A contact stays the one that was closed, through all stances that have it: no region is found in a tick."""
    file, q = tmp_path / "plan.yaml", ROBOT.posture("half_sitting")
    known = {"q": q.tolist(), "wrenches": {}, "tau": [0.0] * ROBOT.n, "margins": {}}
    left, right = ({"patch": f"{side}_sole", "surface": "floor", "x": 0, "y": y, "yaw": 0} for side, y in SIDES.items())
    changes = [
        ("start", None, [left, right]), ("shift", None, [left, right]), ("remove", "left_sole", [right]),
        ("shift", None, [right]), ("add", "left_sole", [right, left | {"x": 0.2}]),
    ]  # fmt: skip
    stances = [known | {"change": how, "moved": what, "contacts": on} for how, what, on in changes]
    file.write_text(yaml.safe_dump(load_scenario("sway").data(tmp_path) | {"mcplan": 2, "stances": stances}))
    monkeypatch.setattr(plan_file, "with_transitions", lambda scenario, stances: tuple(stances))
    plan = plan_file.load_plan(file)
    stepping, closed = Stepping(plan, SETTINGS), list(plan.stances[0].contacts)
    prepared = set(stepping._regions)
    for stance in plan.stances:
        closed = [contact for contact in closed if contact.patch in stance.patches]
        if stance.change == "add":
            closed.append(stance.contact(stance.moved))
        for contacts in closed, closed[::-1]:
            assert stepping._region(contacts) is not None
    assert set(stepping._regions) == prepared


def test_the_robot_steps_out_only_once_its_capture_point_is_well_outside_its_feet():
    depths = []
    for speed in np.linspace(0.0, 0.8, 33):
        robot = Standing((speed, 0.0, 0.0))
        depths.append((robot.depth, bool(robot.look())))
    spun = 0.01  # moved without a turn the body has some angular momentum all the same
    assert all(stepped == (depth < -MAX_OUTSIDE_M) for depth, stepped in depths if abs(depth + MAX_OUTSIDE_M) > spun)
    assert {stepped for _, stepped in depths} == {False, True}


@pytest.mark.parametrize("velocity", [(0.7, 0.0, 0.0), (-0.6, 0.0, 0.0), (0.6, 0.3, 0.0)])
def test_a_step_goes_where_the_capture_point_will_be_and_leaves_it_room(velocity):
    step, *back = Standing(velocity).look()
    assert isinstance(step, StepOut)
    assert list(map(type, back)) == [Regain, Restore]
    assert step.step.depth > 0.0
    old = ROBOT.frame_pose(ROBOT.posture("half_sitting"), step.step.contact.patch)[:2, 3]
    assert (step.step.contact.p[:2] - old) @ velocity[:2] > 0.1


def test_feet_do_not_cross_and_do_not_stand_on_each_other():
    for heading in np.linspace(0.0, 2 * np.pi, 24, endpoint=False):
        robot = Standing((0.7 * np.cos(heading), 0.7 * np.sin(heading), 0.0))
        for phase in robot.look()[:1]:
            contact = phase.step.contact
            (other,) = [c.contact for name, c in robot.motion.contacts.items() if name != contact.patch]
            apart = (contact.p - other.p)[1] * (1.0 if contact.patch == "left_sole" else -1.0)
            assert apart >= 0.13 + 0.02 - 1e-9, heading


def test_a_spin_of_the_trunk_that_has_to_be_stopped_counts():
    still, spinning = Standing((0.45, 0.0, 0.0)), Standing((0.45, 0.0, 0.0))
    assert not still.look()
    v = spinning.terms.v.copy()
    turn = ROBOT.joint_names.index("CHEST_JOINT1")
    v[6 + turn] = 3.0  # pitches ahead
    spinning.terms.update(spinning.terms.q.copy(), v)
    assert spinning.terms.momentum[4] > 1.0
    assert spinning.look()


def test_no_step_goes_off_a_surface_or_into_one_that_is_higher():
    island = floor(0.5, 0.6)
    assert not Standing((0.7, 0.0, 0.0), [island]).look()
    wall = floor(2.0, 2.0, 0.4, "block", (1.25, 0.0))
    assert not Standing((0.7, 0.0, 0.0), [floor(), wall]).look()
    plate = floor(2.0, 2.0, 0.04, "plate", (1.2, 0.0))
    step, *_ = Standing((0.7, 0.0, 0.0), [floor(), plate]).look()
    assert step.step.contact.support == "plate"


def test_who_holds_on_to_something_who_may_not_and_who_does_not_rest_does_not_step_out():
    fast = (0.7, 0.0, 0.0)
    assert not Standing(fast, settings=SETTINGS.updated({"recovery.max_steps": 0})).look()
    assert not Standing(fast, settings=ControlSettings()).look()
    robot = Standing(fast)
    loaded = robot.motion.contacts["left_sole"]
    robot.motion.contacts["left_sole"] = replace(loaded, contact=replace(loaded.contact, kind="grasp"))
    robot.motion._list_closed()
    assert not robot.look()
    robot = Standing(fast)
    robot.motion.passing = True
    assert not robot.look(Shift(1, SimpleNamespace()))


CONTACT = SimpleNamespace(patch="left_sole", kind="surface", points=np.zeros((4, 3)), carrier=None, normal=np.eye(3)[2])
STEP = [
    Stand(0),
    Shift(1, None),
    Unload(1, "left_sole"),
    Retract(1, "left_sole", None),
    Lift(2, CONTACT, None),
    Swing(2, CONTACT),
    Approach(2, CONTACT),
    Load(2, "left_sole"),
    Settle(2),
]
BACK = [Lean(1, CONTACT, None), Unload(1, "left_sole"), StepBack(1, None), Restore(1, None)]


@pytest.mark.parametrize(
    ("here", "stance", "onward"),
    [(0, 0, 0), (1, 0, 1), (2, 0, 1), (3, 2, 8), (4, 2, 8), (5, 2, 8), (6, 2, 8), (7, 2, 8), (8, 2, 8)],
)
def test_after_a_step_the_plan_goes_on_from_where_its_feet_stand(here, stance, onward):
    """Before a contact opens from the stance before, later from the one in which the foot has come down."""
    other = Standing((0.7, 0.0, 0.0)).divert(*STEP, index=here)
    assert [type(phase) for phase in other.phases] == [StepOut, Regain, Restore]
    assert other.phases[-1].stance == stance
    assert other.successor == onward


HAND = SimpleNamespace(**{**vars(CONTACT), "patch": "left_hand"})
REACH = [Stand(0), Lift(1, HAND, None), Swing(1, HAND), Approach(1, HAND), Load(1, "left_hand"), Settle(1)]
REGRASP = [Shift(1, None), Unload(1, "right_hand"), Retract(1, "right_hand", None), *REACH[1:]]


@pytest.mark.parametrize("here", [1, 2, 3])
def test_an_interrupted_hand_motion_starts_again_after_a_step(here):
    other = Standing((0.7, 0.0, 0.0)).divert(*REACH, index=here)
    assert [type(phase) for phase in other.phases] == [StepOut, Regain, Restore]
    assert (other.phases[-1].stance, other.successor) == (0, 1)


def test_after_a_hand_has_let_go_a_step_leads_to_the_stance_without_it():
    other = Standing((0.7, 0.0, 0.0)).divert(*REGRASP, index=2)
    assert (other.phases[-1].stance, other.successor) == (1, 3)


def test_a_foot_that_was_to_be_lifted_bears_again_when_the_other_steps_and_a_hand_motion_is_stopped():
    robot = Standing((0.7, 0.0, 0.0))
    motion, (step, *_) = robot.motion, robot.look()
    stays = next(patch for patch in SOLES if patch != step.step.contact.patch)
    motion.unload(stays, -0.2, 0.1, 300.0)
    assert motion.contacts[stays].limit.value(0.0) == 0.0
    motion.limbs["left_hand"] = HeldPose((np.eye(3), np.zeros(3)), 0.0)
    motion.targets["left_hand"] = HAND
    motion.descending_patches.add("left_hand")
    now = SimpleNamespace(pose=lambda patch: (robot.terms.frame(patch).R, robot.terms.frame(patch).p))
    step.enter(motion, 0.0, now)
    assert motion.contacts[stays].limit.value(0.1) == motion.contacts[stays].full
    assert set(motion.targets) == set(motion.limbs) == motion.descending_patches == {step.step.contact.patch}


def test_no_step_goes_onto_a_free_object():
    lid = Surface("lid", xyz=(0.45, 0.0, 0.08), size=(0.6, 0.8))
    box = FreeObject("box", Box((0.6, 0.8, 0.08)), xyz=(0.45, 0.0, 0.04), mass=20.0, friction=0.7, surfaces=[lid])
    (step, *_) = Standing((0.7, 0.0, 0.0), objects=(box,)).look()
    assert step.step.contact.support == "floor"


def test_a_foot_without_a_support_ends_the_recovery():
    robot = Standing((0.7, 0.0, 0.0))
    assert robot.divert(*STEP[:6], index=5) is None


@pytest.mark.parametrize("here", [0, 1, 3])
def test_a_step_during_the_return_leads_to_where_the_return_continues(here):
    other = Standing((0.7, 0.0, 0.0)).divert(*BACK, index=here)
    assert [type(phase) for phase in other.phases] == [StepOut, Regain]
    assert other.successor == 3


def test_feet_that_are_not_where_the_plan_has_them_step_back_and_are_given_up_when_they_do_not_come():
    robot = Standing(np.zeros(3), moved=0.5 * MAX_FOOT_OFFSET_M)
    assert robot.look(Restore(1, None)) == []
    robot = Standing(np.zeros(3), moved=0.2)
    for _ in range(4):
        lean, unload, back = robot.look(Restore(1, None))
        assert (lean.contact.patch, unload.patch, back.name) == ("left_sole", "left_sole", "step back left_sole")
        assert back.contact.p[0] == pytest.approx(robot.terms.frame("left_sole").p[0] + 0.2, abs=1e-6)
    with pytest.raises(SimulationFailed, match=r"restore of stance 1 at t = 0 s: .* left_sole does not return"):
        robot.look(Restore(1, None))


HARD = Push(link="HEAD_LINK1", force=(118.0, 29.0, 0.0), start=0.2, duration=0.285)


def pushed(plan, push, control=None):
    scenario = plan.scenario
    simulation = scenario.simulation.model_copy(update={"pushes": (push,)})
    settings = scenario.control.updated(control or {})
    run = Simulation(replace(plan, scenario=replace(scenario, simulation=simulation, control=settings)), "contact")
    try:
        while run.step() is not None:
            pass
    except SimulationFailed as failure:
        return run, str(failure)
    return run, ""


@pytest.mark.slow
def test_a_hard_push_is_survived_by_a_step_and_not_without():
    plan = standing()
    run, why = pushed(plan, HARD)
    assert not why
    assert any(event.name.startswith("step ") for event in run.controller.machine.events)
    assert any("steps out" in notice.text for notice in run.controller.motion.notices)
    upper = [7 + i for i, name in enumerate(run.controller.robot.joint_names) if "LEG" not in name]
    np.testing.assert_allclose(run.physics.q[upper], plan.stances[0].q[upper], atol=0.6)  # arms still moving down
    _, why = pushed(plan, HARD, {"recovery.max_steps": 0})
    assert "fell" in why


def test_a_light_push_takes_no_step():
    run, why = pushed(standing(), drawn(3))
    assert not why
    assert not any(event.name.startswith("step ") for event in run.controller.machine.events)


SHORT_WALK = {"control.timing.start_time": 1.0, "parameters.distance": 0.5, "control.pace": "fast"}


@pytest.fixture(scope="module")
def walk():
    return make_plan(load_scenario("walk", SHORT_WALK))


def stepped(run):
    return [event.name for event in run.controller.machine.events if event.name.startswith("step ")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "push",
    [
        pytest.param(HARD, id="as it stands"),
        pytest.param(Push(link="BODY", force=(-100.0, 200.0, 0.0), start=1.85, duration=0.1), id="as a foot swings"),
    ],
)
def test_a_walk_goes_on_after_a_step_from_where_the_plan_has_its_feet(walk, push):
    run, why = pushed(walk, push)
    assert not why
    names = stepped(run)
    assert any(not name.startswith("step back") for name in names)
    assert any(name.startswith("step back") for name in names)
    for contact in walk.stances[-1].contacts:
        place = run.controller.robot.frame_pose(run.physics.q, contact.patch)[:3, 3]
        np.testing.assert_allclose(place, contact.p, atol=0.02)
