"""Checks of a move, the steps that it makes, and the order and end of a search."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.planning.feasibility import MIN_LOAD_N, CallBudget
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.path import GuidePath
from mcplan.planning.posture.result import Effort, PostureResult, Violation
from mcplan.planning.search.cost import Potential, SearchPass
from mcplan.planning.search.improve import blocked_motions, replay_moves
from mcplan.planning.search.move_checks import EXTRA_SIDESTEP_M, MIN_SWING_M, MoveAttempt
from mcplan.planning.search.moves import SearchSpace
from mcplan.planning.search.node import ContactProgress, Move, StanceNode, shifts_to, swing_to
from mcplan.planning.search.stance_search import StanceSearch
from mcplan.planning.search.tree import SearchTree
from mcplan.planning.transition.segments import SwingMotion
from mcplan.robot.anatomy import Limb
from mcplan.robot.pose import rotate_z
from mcplan.scenario.schema import GoalItem
from mcplan.statics.equilibrium import Equilibrium


def posture(q, stage="done", contacts=(), wrenches=None, violations=()):
    forces = Equilibrium(True, True, wrenches or {}, {}, np.zeros(0), 0.0)
    return PostureResult(np.array([float(q)]), tuple(contacts), (), forces, {}, violations, stage, Effort())


class Checks:
    """Feasibility that records what is checked, and gives the answers that a test sets."""

    def __init__(self, scene):
        self.robot, self.environment, self.min_load = scene.ROBOT, scene.ENVIRONMENT, MIN_LOAD_N
        self.postures = self.motions = self.occupancy = self
        self.generator = SimpleNamespace(settings=SimpleNamespace(clearance=0.003))
        self.budget, self.overhang = CallBudget(), np.inf
        self.asked, self.swings, self.answers, self.hit, self.blocked_swings = [], [], {}, None, ()

    def find(self, contacts, unloaded, q, free_coordinates=None, held_contacts=None, near_previous=False):
        self.asked.append(
            (names(contacts), sorted(unloaded), float(q[0]), None if held_contacts is None else names(held_contacts))
        )
        return self.answers.get(len(self.asked)) or posture(
            len(self.asked), contacts=contacts, wrenches={c.patch: np.full(6, 20.0) for c in contacts[:1]}
        )

    def overlap(self, contact, clearance=0.0):
        self.clearance = clearance
        return self.hit

    def landing_obstructed(self, contact):
        return contact.p[0] > self.overhang

    def swing(self, swing):
        self.swings.append(swing)
        return self.blocked_swings

    def shift(self, shift):
        return ()

    def violations(self, motion):
        return self.swing(motion) if isinstance(motion, SwingMotion) else self.shift(motion)


@pytest.fixture
def search(scene):
    """A search with places of the left sole one step ahead and beside itself, and one where it does not fit."""
    checks = Checks(scene)
    places = [scene.contact("left_sole", x=x, y=0.095, yaw=0.0) for x in (0.3, 0.03)]
    sampled = SimpleNamespace(
        contact=lambda i: places[i] if i < 2 else None, freedom=[None] * 3, goal=np.array([False, True, False]),
        positions=np.array([c.p for c in (*places, places[0])]), nearby_contacts=lambda i, distance: (),
        progress=lambda i: 0.0,
        specs=[{"surface": "floor"}] * 3,
    )  # fmt: skip
    potential = Potential(Goal.of(GoalItem(com=(0.0, 0.0))), {}, {})
    guide = GuidePath(np.array([[0.0, 0.0, 0.65], [1.0, 0.0, 0.65]]), np.zeros(2))
    limbs = {"left": Limb("left", ("left_sole",), np.zeros(3), 0.7)}
    space = SearchSpace(
        checks, limbs, {}, guide, {"left_sole": np.zeros(3), "right_sole": np.zeros(3)}, {"left_sole": sampled},
        potential, (frozenset(["hand"]), frozenset(["left"])),
    )  # fmt: skip
    return StanceSearch(space, SearchTree()), checks


def start(scene):
    contacts = tuple(sorted(scene.feet(0.0), key=lambda contact: contact.patch))
    standing = {contact.patch: ContactProgress(0.0, 0.0, False) for contact in contacts}
    return StanceNode(contacts, standing, np.array([0.0]), None, None, (), 3.0, 2.0, "right", frozenset(), 0)


STEP = Move("left", ("left_sole",), (("left_sole", 0),))


def names(contacts):
    return sorted(contact.patch for contact in contacts)


def test_a_step_lifts_with_all_in_place_and_puts_down_on_what_stays(search, scene):
    made, checks = search
    parent = start(scene)
    node = made.checker.child(parent, STEP)
    # first all contacts, the one that leaves without load; then the new one in place without load, the others held
    assert checks.asked == [
        (["left_sole", "right_sole"], ["left_sole"], 0.0, ["left_sole", "right_sole"]),
        (["left_sole", "right_sole"], ["left_sole"], 1.0, ["right_sole"]),
    ]
    assert checks.clearance == checks.postures.generator.settings.clearance
    lift, place = node.steps
    assert (lift.change, lift.moved, place.change, place.moved) == ("remove", "left_sole", "add", "left_sole")
    assert names(lift.contacts) == ["right_sole"]
    assert names(lift.in_place) == names(lift.touching) == ["left_sole", "right_sole"]
    assert lift.in_place[0].p[0] == 0.0
    assert names(place.contacts) == names(place.in_place) == ["left_sole", "right_sole"]
    assert place.contacts[0].p[0] == pytest.approx(0.3)
    assert lift.loaded == place.loaded == ("right_sole",)
    assert (float(lift.q[0]), float(place.q[0]), float(node.q[0])) == (1.0, 2.0, 2.0)
    assert (node.g, node.limb, node.parent) == (4.0, "left", parent)
    swing = swing_to(parent, node)
    (checked,) = checks.swings
    for found in (swing, checked):
        assert names(found.common) == ["right_sole"]
        assert found.before.p[0] == 0.0
        assert found.after.p[0] == pytest.approx(0.3)
        assert (float(found.q0[0]), float(found.q1[0])) == (1.0, 2.0)


@pytest.mark.parametrize("kept_down", [False, True, "blocked"])
def test_a_patch_that_opens_before_another_of_its_limb_leaves_its_support(search, scene, kept_down):
    """Unless an ankle at its limit keeps it down, or the motion there is blocked, as others like it were."""
    made, checks = search
    feet = start(scene)
    toe = scene.contact("left_toe", x=0.2, y=0.095, yaw=0.0)
    parent = replace(feet, contacts=(*feet.contacts, toe))
    if kept_down == "blocked":
        blocked = (Violation("passage", "shank and floor", 0.01),)
        checks.shift = lambda shift: blocked if names(shift.leaving) == ["left_sole"] else ()
    elif kept_down:
        checks.answers = {k: posture(7, "collision") for k in (2, 3)}
    node = made.checker.child(parent, Move("left", ("left_toe", "left_sole"), (("left_sole", 0),)))
    both, gone = ["left_sole", "right_sole"], ["left_sole", "left_toe"]
    asked = [(both, gone, 1.0, both)] * (2 if kept_down else 1)  # near the posture; then near the reference
    assert checks.asked[1:-1] == asked
    toe_opens, sole_opens, _ = node.steps
    assert (toe_opens.moved, sole_opens.moved) == ("left_toe", "left_sole")
    assert names(toe_opens.touching) == names(parent.contacts)
    assert names(sole_opens.touching) == (names(parent.contacts) if kept_down else both)
    q0 = 1.0 if kept_down else 2.0
    assert (float(toe_opens.q[0]), float(sole_opens.q[0])) == (1.0, q0)
    assert float(swing_to(parent, node).q0[0]) == float(checks.swings[0].q0[0]) == q0
    before, *between = shifts_to(parent, node)
    assert (names(before.contacts), names(before.leaving)) == (names(parent.contacts), gone)
    assert [(names(one.contacts), names(one.leaving)) for one in between] == ([] if kept_down else [(both, gone[:1])])
    assert [(float(one.q0[0]), float(one.q1[0])) for one in between] == ([] if kept_down else [(1.0, 2.0)])


def test_places_below_something_are_deprioritized(search, scene):
    made, checks = search
    parent = start(scene)
    assert not made._is_deprioritized(parent, STEP)
    checks.overhang = 0.1
    assert made._is_deprioritized(parent, STEP)
    assert not made._is_deprioritized(parent, Move("left", ("left_sole",), (("left_sole", 1),)))
    assert not made._is_deprioritized(parent, Move("left", ("left_sole",), ()))


@pytest.mark.parametrize("yaw", [0.0, np.pi / 2, np.pi])
def test_a_foot_that_would_cross_the_other_is_deprioritized(search, scene, yaw):
    guide = GuidePath(np.zeros((2, 3)), np.full(2, yaw))
    offsets = {"left_sole": np.array([0.0, 0.095, -0.65]), "right_sole": np.array([0.0, -0.095, -0.65])}
    made = StanceSearch(replace(search[0].space, guide=guide, offsets=offsets), SearchTree())
    here = replace(start(scene), contacts=tuple(replace(c, p=rotate_z(yaw, c.p)) for c in scene.feet(0.0)))
    for y, waits in ((0.095, False), (-0.1, False), (-0.13, True)):
        made.space.candidates["left_sole"].positions = np.array([rotate_z(yaw, [0.3, y, 0.0])])
        assert made._is_deprioritized(here, STEP) == waits
        assert not made._is_deprioritized(here, Move("left", ("left_sole", "right_sole"), (("left_sole", 0),)))


def test_each_reason_for_a_rejection_is_in_the_record(search, scene):
    made, checks = search
    parent = start(scene)
    far = (Violation("reach", "left_sole", 0.2),)
    checks.answers = {1: posture(1, "balance", violations=far)}
    assert made.checker.child(parent, STEP) is None
    assert made.tree.rejected[-1]["stage"] == "lift, balance"
    assert parent.unliftable == {("left_sole",)}
    checks.answers = {2: posture(1, "balance", violations=far)}
    assert made.checker.child(parent, STEP) is None  # once is enough: then it is only counted
    assert len(made.tree.rejected) == 1
    assert made.tree.skipped["its limb could not be lifted"] == 1
    checks.answers = {4: posture(2, "reach", violations=far)}
    assert made.checker.child(parent, STEP) is None
    assert made.tree.rejected[-1]["stage"] == "place, reach"
    ((direction, distance),) = parent.unreachable["left"]
    assert distance == pytest.approx(np.linalg.norm([0.3, 0.095, -0.65]))
    assert direction @ [0.3, 0.095, -0.65] == pytest.approx(distance)
    checks.hit = ("LLEG_LINK5 and post", 0.02)
    assert made.checker.child(parent, STEP) is None
    assert made.tree.rejected[-1]["kind"] == "collision"
    assert made.tree.rejected[-1]["amount"] == 0.02
    checks.hit, checks.blocked_swings = None, far
    assert made.checker.child(parent, STEP) is None
    assert made.tree.rejected[-1]["stage"] == "swing"
    assert made.checker.child(parent, Move("left", ("left_sole",), (("left_sole", 2),))) is None
    assert made.tree.skipped["the patch does not fit on its support"] == 1


def test_a_patch_whose_link_is_in_collision_is_put_aside_but_not_in_the_goal(search, scene):
    made, checks = search
    aside = scene.contact("left_sole", x=0.28, y=0.095, yaw=0.0)
    steps = []

    def beside(i, distance):
        steps.append(distance)
        return iter([aside])

    made.space.candidates["left_sole"].nearby_contacts = beside
    checks.overlap = lambda contact, clearance: None if contact is aside else ("LLEG_LINK5 and post", 0.02)
    node = made.checker.child(start(scene), STEP)
    assert node.touching["left_sole"].p[0] == pytest.approx(0.28)
    assert steps == [pytest.approx(0.02 + EXTRA_SIDESTEP_M)]
    made.space.candidates["left_sole"].goal = np.array([True, True, False])
    assert made.checker.child(start(scene), STEP) is None
    assert len(steps) == 1
    assert made.tree.rejected[-1]["stage"] == "link"


def test_the_place_of_the_goal_needs_no_clearance_and_a_shuffle_no_swing(search, scene):
    made, checks = search
    checks.blocked_swings = (Violation("passage", "a and b", 0.1),)
    node = made.checker.child(start(scene), Move("left", ("left_sole",), (("left_sole", 1),)))
    assert node is not None
    assert checks.clearance == 0.0
    assert checks.swings == []  # in the search; as a part of a path it is checked
    assert np.linalg.norm(node.touching["left_sole"].p - start(scene).touching["left_sole"].p) < MIN_SWING_M
    (blocked,) = blocked_motions(checks, [start(scene), node])
    assert (blocked.node, blocked.violations) == (node, checks.blocked_swings)
    assert len(checks.swings) == 1


def test_where_the_body_collides_before_a_lift_a_nearer_posture_is_tried(search, scene):
    made, checks = search
    parent, asked = start(scene), []
    free = (Violation("passage", "head and rail", 0.05),)
    checks.shift = lambda shift: asked.append(float(shift.q1[0])) or (free if len(asked) == 1 else ())
    node = made.checker.child(parent, STEP)
    assert asked == [1.0, 2.0]  # the posture near the reference, and the one near the parent's
    assert float(node.steps[0].q[0]) == 2.0
    asked.clear()
    checks.shift = lambda shift: free
    assert made.checker.child(parent, STEP) is None
    assert made.tree.rejected[-1]["stage"] == "shift"


def through(search, scene, moves, posture_of):
    """Let a search go from stance to stance by names; ``posture_of`` gives the q of one, None where it has none."""
    contact = scene.feet(0.0)[0]
    sampled = dict.fromkeys(moves, SimpleNamespace(specs=[{"surface": "any"}]))
    made = StanceSearch(replace(search.space, candidates=sampled), SearchTree())
    for k in range(2):
        made.tree.add_node(None, str(k), (), np.zeros(1), 0.0, 0.0)

    def child(parent, move):
        ((name, _),) = move.added
        q = posture_of(name)
        contacts, steps = (replace(contact, support=name),), (SimpleNamespace(q=q),)
        node = StanceNode(contacts, {}, q, parent, move, steps, parent.g + 1.0, 1.0, "left", frozenset(), 1)
        return None if q is None else node

    options = {name: [Move("left", (), ((after, 0),)) for after in moves[name]] for name in moves}
    made.generator = SimpleNamespace(moves=lambda node, window: options[node.contacts[0].support])
    made.checker = SimpleNamespace(child=child)
    made.reaches_goal = lambda node: "goal" in node.contacts[0].support
    made._cells_after = lambda parent, move: move.added
    made._cells_of = lambda node: {"left": node.contacts[0].support}
    made._f = lambda node, move, farther=0.0: node.g + 2.0
    made._is_deprioritized = lambda parent, move: False
    found, root = [], replace(start(scene), contacts=(replace(contact, support="root"),))
    for node in made.paths(root, SearchPass(1.0, 99, 1.0), 99):
        found.append(node.contacts[0].support)
        made.block([node.path()[1]])
    return found


def test_nothing_is_reached_through_a_stance_that_was_dropped(search, scene):
    """Two paths to the goal lead through the same first stance; when that is blocked, so is the other path."""
    names = {"root": ["first"], "first": ["second"], "second": ["goal", "other goal"], "goal": [], "other goal": []}
    seen = []

    def once(name):
        seen.append(name)
        return np.zeros(1) if seen.count(name) == 1 else None

    assert through(search[0], scene, names, once) == ["goal"]


@pytest.mark.parametrize("postures", [1, 2, 3])
def test_a_stance_that_was_dropped_is_tried_again_in_another_posture_only(search, scene, postures):
    """A known blocked motion may lead the checks to another posture; where it does not, there would be no end."""
    others = iter(range(postures))
    names = {"root": ["first"], "first": ["goal"], "goal": []}

    def posture_of(name):
        return np.full(1, next(others, postures - 1) if name == "first" else 0)

    assert through(search[0], scene, names, posture_of) == ["goal"] * postures


def test_what_a_patch_carried_at_either_end_of_a_move_counts(search, scene):
    made, checks = search
    require = (frozenset(["left_sole"]), frozenset(["right_sole"]), frozenset(["hand"]))
    made = StanceSearch(replace(made.space, require=require), SearchTree())
    heavy, light = np.full(6, 20.0), np.full(6, 0.1)
    for first, second in ((heavy, light), (light, heavy)):
        checks.asked.clear()
        left = made.space.candidates["left_sole"].contact(0)
        contacts = (*start(scene).contacts[1:], left)
        checks.answers = {
            1: posture(1, wrenches={"right_sole": first}),
            2: posture(2, contacts=contacts, wrenches={"right_sole": second}),
        }
        assert made.checker.child(start(scene), STEP).requirements_met == {1}


def test_a_shortened_path_moves_no_limb_twice_in_a_row(search, scene):
    made, checks = search
    made = StanceSearch(replace(made.space, require=()), SearchTree())
    path = replay_moves(made, start(scene), [STEP])
    assert [node.limb for node in path] == ["right", "left"]
    checks.asked.clear()
    assert replay_moves(made, start(scene), [STEP, STEP]) is None
    assert len(checks.asked) == 2  # the second is not even checked
    elsewhere = Goal.of(GoalItem.model_validate({"contacts": [{"patch": "left_sole", "surface": "table"}]}))
    made = StanceSearch(replace(made.space, potential=Potential(elsewhere, {}, {})), SearchTree())
    assert replay_moves(made, start(scene), [STEP]) is None


def test_a_search_goes_on_at_its_goal_until_all_required_patches_have_carried(search, scene):
    node = start(scene)
    for node.requirements_met, done in ((frozenset(), False), (frozenset([1]), False), (frozenset([0, 1]), True)):
        assert search[0].reaches_goal(node) is done


def test_a_requirement_takes_a_move_to_touch_and_half_of_one_to_carry(search):
    space = replace(search[0].space, require=(frozenset("ab"), frozenset("c"), frozenset("d")))
    assert space.moves_for_requirements(frozenset(), ()) == 3.0
    assert space.moves_for_requirements(frozenset([2]), ("b",)) == 1.5
    assert (
        replace(space, requirements_apply=False).moves_for_requirements(frozenset(), ()) == 0.0
    )  # until the last item of the goal


def test_of_two_wrenches_of_a_patch_the_one_of_greater_force_counts():
    weak, strong = np.array([0, 0, 3.0, 90, 0, 0]), np.array([0, 4.0, 0, 0, 0, 0])
    for one, other in ((weak, strong), (strong, weak)):
        attempt = MoveAttempt(None, STEP, (), np.zeros(1))
        for wrench in (one, other):
            attempt.advance_to(posture(0, wrenches={"a": wrench}))
        assert attempt.wrenches["a"] is strong
