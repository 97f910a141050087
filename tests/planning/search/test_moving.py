"""What the search asks of the prover for a move, and the steps that it makes of the answers."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.planning.feasibility import CARRIES
from mcplan.planning.posture.result import Effort, PostureResult, Violation
from mcplan.planning.search.improve import barred_motions, proven
from mcplan.planning.search.node import Move, Node, shifts_to, swing_to
from mcplan.planning.search.potential import Standing
from mcplan.planning.search.stance_search import AWAY, SHUFFLE, StanceSearch
from mcplan.planning.search.tree import SearchTree
from mcplan.planning.transition.segments import SwingMotion
from mcplan.statics.equilibrium import Equilibrium

REQUIRE = (frozenset(["hand"]), frozenset(["left"]))


def posture(q, stage="done", contacts=(), wrenches=None, violations=()):
    forces = Equilibrium(True, True, wrenches or {}, {}, np.zeros(0), 0.0)
    return PostureResult(np.array([float(q)]), tuple(contacts), (), forces, {}, violations, stage, Effort())


class Asked:
    """A prover that writes down what it is asked, and answers as it is told."""

    def __init__(self, scene):
        self.scene, self.robot, self.asked, self.swings = scene, scene.ROBOT, [], []
        self.answers, self.hits, self.barred_swings, self.barred_shifts = {}, None, (), ()
        self.generator = SimpleNamespace(settings=SimpleNamespace(clearance=0.003))
        self.calls, self.overhang, self.carries = 0, np.inf, CARRIES

    def prove(self, contacts, unloaded, q, free=None, held=None, near=False):
        said = sorted(contact.patch for contact in contacts), sorted(unloaded), float(q[0])
        self.asked.append((*said, None if held is None else sorted(c.patch for c in held)))
        return self.answers.get(len(self.asked)) or posture(
            len(self.asked), contacts=contacts, wrenches={c.patch: np.full(6, 20.0) for c in contacts[:1]}
        )

    def blocked(self, contact, clearance=0.0):
        self.clearance = clearance
        return self.hits

    def covered(self, contact):
        return contact.p[0] > self.overhang

    def swing(self, swing):
        self.swings.append(swing)
        return self.barred_swings

    def shift(self, shift):
        return self.barred_shifts

    def barred(self, motion):
        return self.swing(motion) if isinstance(motion, SwingMotion) else self.shift(motion)


@pytest.fixture
def search(scene):
    prover = Asked(scene)
    places = [scene.contact("left_sole", x=x, y=0.095, yaw=0.0) for x in (0.3, 0.03)]
    sampled = SimpleNamespace(
        contact=lambda i: places[i] if i < 2 else None, freedom=[None] * 3, goal=np.array([False, True, False]),
        place=np.array([c.p for c in (*places, places[0])]), beside=lambda i, distance: (),
    )  # fmt: skip
    goal = SimpleNamespace(specs={}, hit=lambda contact: False, reached=lambda contacts: False)
    space = SimpleNamespace(
        prover=prover, candidates={"left_sole": sampled}, require=REQUIRE, due=True, goal=goal, robot=scene.ROBOT,
        stand=lambda contact: Standing(float(contact.p[0]), 0.0, False), potential=lambda standing, missing: 0.5,
        limbs={"left": SimpleNamespace(patches=("left_sole",))},
        guide=SimpleNamespace(at=lambda s: (np.array([s, 0.0, 0.65]), 0.0)), offsets={"left_sole": np.zeros(3)},
    )  # fmt: skip
    return StanceSearch(space, SearchTree()), prover


def start(scene):
    contacts = tuple(sorted(scene.feet(0.0), key=lambda contact: contact.patch))
    standing = {contact.patch: Standing(0.0, 0.0, False) for contact in contacts}
    return Node(contacts, standing, np.array([0.0]), None, None, (), 3.0, 2.0, "right", frozenset(), 0)


STEP = Move("left", ("left_sole",), (("left_sole", 0),))


def names(contacts):
    return sorted(contact.patch for contact in contacts)


def test_a_step_lifts_with_all_in_place_and_puts_down_on_what_stays(search, scene):
    made, prover = search
    parent = start(scene)
    node = made.prove(parent, STEP)
    # first all contacts, the one that leaves without load; then the new one in place without load, the others held
    assert prover.asked == [
        (["left_sole", "right_sole"], ["left_sole"], 0.0, ["left_sole", "right_sole"]),
        (["left_sole", "right_sole"], ["left_sole"], 1.0, ["right_sole"]),
    ]
    assert prover.clearance == prover.generator.settings.clearance
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
    (proven,) = prover.swings
    for found in (swing, proven):
        assert names(found.common) == ["right_sole"]
        assert found.before.p[0] == 0.0
        assert found.after.p[0] == pytest.approx(0.3)
        assert (float(found.q0[0]), float(found.q1[0])) == (1.0, 2.0)


@pytest.mark.parametrize("kept_down", [False, True, "barred"])
def test_a_patch_that_opens_before_another_of_its_limb_leaves_its_support(search, scene, kept_down):
    """Unless an ankle at its limit keeps it down, or the motion there is barred, as others like it were."""
    made, prover = search
    feet = start(scene)
    toe = scene.contact("left_toe", x=0.2, y=0.095, yaw=0.0)
    parent = replace(feet, contacts=(*feet.contacts, toe))
    if kept_down == "barred":
        barred = (Violation("passage", "shank and floor", 0.01),)
        prover.shift = lambda shift: barred if names(shift.leaving) == ["left_sole"] else ()
    elif kept_down:
        prover.answers = {k: posture(7, "collision") for k in (2, 3)}
    node = made.prove(parent, Move("left", ("left_toe", "left_sole"), (("left_sole", 0),)))
    both, gone = ["left_sole", "right_sole"], ["left_sole", "left_toe"]
    asked = [(both, gone, 1.0, both)] * (2 if kept_down else 1)  # near the posture; then near the reference
    assert prover.asked[1:-1] == asked
    toe_opens, sole_opens, _ = node.steps
    assert (toe_opens.moved, sole_opens.moved) == ("left_toe", "left_sole")
    assert names(toe_opens.touching) == names(parent.contacts)
    assert names(sole_opens.touching) == (names(parent.contacts) if kept_down else both)
    q0 = 1.0 if kept_down else 2.0
    assert (float(toe_opens.q[0]), float(sole_opens.q[0])) == (1.0, q0)
    assert float(swing_to(parent, node).q0[0]) == float(prover.swings[0].q0[0]) == q0
    before, *between = shifts_to(parent, node)
    assert (names(before.contacts), names(before.leaving)) == (names(parent.contacts), gone)
    assert [(names(one.contacts), names(one.leaving)) for one in between] == ([] if kept_down else [(both, gone[:1])])
    assert [(float(one.q0[0]), float(one.q1[0])) for one in between] == ([] if kept_down else [(1.0, 2.0)])


def test_places_below_something_are_looked_at_after_the_others(search, scene):
    made, prover = search
    parent = start(scene)
    made._often_barred = lambda node, move: False
    made.space.candidates["left_sole"].progress = lambda i: 0.0
    made.space.offsets = dict.fromkeys(("left_sole", "right_sole"), np.zeros(3))
    assert not made._unlikely(parent, STEP)
    prover.overhang = 0.1
    assert made._unlikely(parent, STEP)
    assert not made._unlikely(parent, Move("left", ("left_sole",), (("left_sole", 1),)))
    assert not made._unlikely(parent, Move("left", ("left_sole",), ()))


@pytest.mark.parametrize("yaw", [0.0, np.pi / 2, np.pi])
def test_a_foot_that_would_cross_the_other_waits(search, scene, yaw):
    made, _ = search
    c, n = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, -n, 0.0], [n, c, 0.0], [0.0, 0.0, 1.0]])
    made.space.guide = SimpleNamespace(at=lambda s: (np.zeros(3), yaw))
    made.space.offsets = {"left_sole": np.array([0.0, 0.095, -0.65]), "right_sole": np.array([0.0, -0.095, -0.65])}
    made._often_barred = lambda node, move: False
    here = replace(start(scene), contacts=tuple(replace(contact, p=turn @ contact.p) for contact in scene.feet(0.0)))
    sampled = made.space.candidates["left_sole"]
    sampled.progress = lambda i: 0.0
    for y, waits in ((0.095, False), (-0.1, False), (-0.13, True)):
        sampled.place = np.array([turn @ [0.3, y, 0.0]])
        assert made._unlikely(here, STEP) == waits
        assert not made._unlikely(here, Move("left", ("left_sole", "right_sole"), (("left_sole", 0),)))


def test_each_reason_for_a_refusal_is_in_the_record(search, scene):
    made, prover = search
    parent = start(scene)
    far = (Violation("reach", "left_sole", 0.2),)
    prover.answers = {1: posture(1, "balance", violations=far)}
    assert made.prove(parent, STEP) is None
    assert made.tree.rejected[-1]["stage"] == "lift, balance"
    assert parent.stuck == {("left_sole",)}
    prover.answers = {2: posture(1, "balance", violations=far)}
    assert made.prove(parent, STEP) is None  # once is enough: it is counted, not told again
    assert len(made.tree.rejected) == 1
    assert made.tree.skipped["its limb could not be lifted"] == 1
    prover.answers = {4: posture(2, "reach", violations=far)}
    assert made.prove(parent, STEP) is None
    assert made.tree.rejected[-1]["stage"] == "place, reach"
    ((direction, distance),) = parent.failed["left"]
    assert distance == pytest.approx(np.linalg.norm([0.3, 0.095, -0.65]))
    assert direction @ [0.3, 0.095, -0.65] == pytest.approx(distance)
    prover.hits = ("LLEG_LINK5 and post", 0.02)
    assert made.prove(parent, STEP) is None
    assert made.tree.rejected[-1]["kind"] == "collision"
    assert made.tree.rejected[-1]["amount"] == 0.02
    prover.hits, prover.barred_swings = None, far
    assert made.prove(parent, STEP) is None
    assert made.tree.rejected[-1]["stage"] == "swing"
    assert made.prove(parent, Move("left", ("left_sole",), (("left_sole", 2),))) is None
    assert made.tree.skipped["the patch does not fit on its support"] == 1


def test_a_patch_whose_link_is_in_the_way_is_put_aside_but_not_in_the_goal(search, scene):
    made, prover = search
    aside = scene.contact("left_sole", x=0.28, y=0.095, yaw=0.0)
    steps = []

    def beside(i, distance):
        steps.append(distance)
        return iter([aside])

    made.space.candidates["left_sole"].beside = beside
    prover.blocked = lambda contact, clearance: None if contact is aside else ("LLEG_LINK5 and post", 0.02)
    node = made.prove(start(scene), STEP)
    assert node.touching["left_sole"].p[0] == pytest.approx(0.28)
    assert steps == [pytest.approx(0.02 + AWAY)]
    made.space.candidates["left_sole"].goal = np.array([True, True, False])
    assert made.prove(start(scene), STEP) is None
    assert len(steps) == 1
    assert made.tree.rejected[-1]["stage"] == "link"


def test_the_place_of_the_goal_needs_no_clearance_and_a_shuffle_no_swing(search, scene):
    made, prover = search
    prover.barred_swings = (Violation("passage", "a and b", 0.1),)
    node = made.prove(start(scene), Move("left", ("left_sole",), (("left_sole", 1),)))
    assert node is not None
    assert prover.clearance == 0.0
    assert prover.swings == []  # while it is searched for; as a part of a path it is looked at
    assert np.linalg.norm(node.touching["left_sole"].p - start(scene).touching["left_sole"].p) < SHUFFLE
    (barred,) = barred_motions(prover, [start(scene), node])
    assert (barred.node, barred.violations) == (node, prover.barred_swings)
    assert len(prover.swings) == 1


def test_where_the_body_is_in_the_way_before_a_lift_a_nearer_posture_is_tried(search, scene):
    made, prover = search
    parent, asked = start(scene), []
    free = (Violation("passage", "head and rail", 0.05),)
    prover.shift = lambda shift: asked.append(float(shift.q1[0])) or (free if len(asked) == 1 else ())
    node = made.prove(parent, STEP)
    assert asked == [1.0, 2.0]  # the posture near the reference, and the one near the parent's
    assert float(node.steps[0].q[0]) == 2.0
    asked.clear()
    prover.shift = lambda shift: free
    assert made.prove(parent, STEP) is None
    assert made.tree.rejected[-1]["stage"] == "shift"


def through(made, scene, moves, posture_of):
    """Let a search go from stance to stance by names; ``posture_of`` gives the q of one, None where it has none."""
    root = start(scene)
    root.contacts = (SimpleNamespace(patch="left", support="root"),)
    made.tree = SimpleNamespace(expand=lambda index: None, nodes=[], skipped=Counter())

    def prove(parent, move):
        ((name, _),) = move.added
        q = posture_of(name)
        contacts, steps = (SimpleNamespace(patch="left", support=name),), (SimpleNamespace(q=q),)
        node = Node(contacts, {}, q, parent, move, steps, parent.g + 1.0, 1.0, "left", frozenset(), 1)
        return None if q is None else node

    made.space.prover.calls = made.space.prover.limit = 0
    made.space.candidates |= dict.fromkeys(moves, SimpleNamespace(specs=[{"surface": "any"}]))
    ways = {name: [Move("left", (), ((after, 0),)) for after in moves[name]] for name in moves}
    made.maker = SimpleNamespace(moves=lambda node, window: ways[node.contacts[0].support])
    made.prove, made.done = prove, lambda node: "goal" in node.contacts[0].support
    made._key = lambda parent, move: move.added
    made._cells_of = lambda node: {"left": node.contacts[0].support}
    made._h = lambda node, move: 1.0
    made._unlikely = lambda parent, move: False
    found = []
    for node in made.paths(root, SimpleNamespace(calls=99, window=1.0, weight=1.0), 99):
        found.append(node.contacts[0].support)
        made.bar([node.path()[1]])
    return found


def test_nothing_is_reached_through_a_stance_that_was_given_up(search, scene):
    """Two ways to the goal lead through the same first stance; when that is barred, so is the other way."""
    names = {"root": ["first"], "first": ["second"], "second": ["goal", "other goal"], "goal": [], "other goal": []}
    proven = []

    def once(name):
        proven.append(name)
        return np.zeros(1) if proven.count(name) == 1 else None

    assert through(search[0], scene, names, once) == ["goal"]


@pytest.mark.parametrize("postures", [1, 2, 3])
def test_a_stance_that_was_given_up_is_tried_again_in_another_posture_only(search, scene, postures):
    """What is known of a barred motion may lead the proof to another one; where it does not, there would be no end."""
    others = iter(range(postures))
    names = {"root": ["first"], "first": ["goal"], "goal": []}

    def made(name):
        return np.full(1, next(others, postures - 1) if name == "first" else 0)

    assert through(search[0], scene, names, made) == ["goal"] * postures


def test_what_a_patch_carried_at_either_end_of_a_move_counts(search, scene):
    made, prover = search
    made.space.require = (frozenset(["left_sole"]), frozenset(["right_sole"]), frozenset(["hand"]))
    heavy, light = np.full(6, 20.0), np.full(6, 0.1)
    for first, second in ((heavy, light), (light, heavy)):
        prover.asked.clear()
        left = made.space.candidates["left_sole"].contact(0)
        contacts = (*start(scene).contacts[1:], left)
        prover.answers = {
            1: posture(1, wrenches={"right_sole": first}),
            2: posture(2, contacts=contacts, wrenches={"right_sole": second}),
        }
        assert made.prove(start(scene), STEP).met == {1}


def test_a_shortened_path_moves_no_limb_twice_in_a_row(search, scene):
    made, prover = search
    made.space.goal.reached = lambda contacts: True
    made.space.require = ()
    made.accept = None
    path = proven(made, start(scene), [STEP])
    assert [node.limb for node in path] == ["right", "left"]
    prover.asked.clear()
    assert proven(made, start(scene), [STEP, STEP]) is None
    assert len(prover.asked) == 2  # the second was not even asked for
    made.space.goal.reached = lambda contacts: False
    assert proven(made, start(scene), [STEP]) is None


def test_a_search_goes_on_at_its_goal_until_all_that_is_required_has_carried(search, scene):
    made, _ = search
    made.space.goal.reached = lambda contacts: True
    made.accept = None
    node = start(scene)
    for node.met, done in ((frozenset(), False), (frozenset([1]), False), (frozenset([0, 1]), True)):
        assert made.done(node) is done
