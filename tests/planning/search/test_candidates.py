"""Candidate places on surfaces and bars, and the moves that a search makes of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.path import GuidePath
from mcplan.planning.posture.freedom import GRIP_MARGIN_M
from mcplan.planning.posture.limbs import nominal_offsets
from mcplan.planning.search.candidates import (
    MAX_SIDESTEP_M,
    Lattice,
    _is_natural_orientation,
    _lines,
    _yaw_offset,
    sample_candidates,
)
from mcplan.planning.search.cost import SeededPerturbation
from mcplan.planning.search.failure import check_surface_size
from mcplan.planning.search.moves import MoveGenerator
from mcplan.planning.search.node import ContactProgress
from mcplan.planning.stance_planner import _StancePlanner
from mcplan.robot.anatomy import HRP2_SCALE, Limb, limbs_of
from mcplan.robot.pose import base_yaw
from mcplan.scenario.schema import GoalItem
from mcplan.scene.environment import Bar, Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.polygon import max_excess
from mcplan.scene.spec import ContactSpec

STRAIGHT = GuidePath(np.array([[0.0, 0, 0.65], [1.2, 0, 0.65]]), np.zeros(2))
SQUARE = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])


@pytest.fixture(scope="module")
def find(scene):
    """Find the candidates of a patch among the supports of the scene, a rung across the way, and others."""
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    rung = Bar("rung", np.array([[0.6, -0.5, 0.9], [0.6, 0.45, 0.9]]), 0.02)
    environment = replace(scene.ENVIRONMENT, bars=(rung,))
    limbs = limbs_of(robot, q, ("left_sole", "right_sole", "left_grip", "right_grip"))
    offsets = nominal_offsets(robot, q, scene.feet(0.0), limbs)

    def found(patch, *specs, grid=0.1, loose=False, known=(), others=()):
        item = GoalItem(contacts=specs) if specs else GoalItem(com=(0.0, 0.0))  # or one without contacts
        near = robot.frame_pose(q, patch)[:3, :3]
        supports = replace(
            environment,
            surfaces=(*environment.surfaces, *(one for one in others if isinstance(one, Surface))),
            bars=(*environment.bars, *(one for one in others if isinstance(one, Bar))),
        )
        lattice = Lattice(robot, patch, STRAIGHT, offsets[patch], near, grid, known, loose)
        return sample_candidates(lattice, supports, Goal.of(item)), offsets[patch]

    return environment, found


@pytest.mark.parametrize("grid", [0.05, 0.1])
def test_grasps_lie_along_all_of_a_bar_but_its_ends(find, grid):
    environment, found = find
    bar = environment.support("rung")
    places, _ = found("left_grip", grid=grid)
    on_bar = [k for k, spec in enumerate(places.specs) if spec["surface"] == "rung"]
    along = np.unique([places.specs[k]["along"] for k in on_bar])
    step = max(0.1, grid)
    assert GRIP_MARGIN_M - 1e-9 <= along.min() <= GRIP_MARGIN_M + step / 2
    assert bar.length - GRIP_MARGIN_M - step / 2 <= along.max() <= bar.length - GRIP_MARGIN_M + 1e-9
    assert np.diff(along).max() <= step + 1e-9
    for k in on_bar:
        contact = places.contact(k)
        assert contact.p == pytest.approx(places.positions[k], abs=1e-9)
        # across the way, a hand likes its y axis to the right
        assert contact.R[1, 1] < 0.0


def test_a_flat_patch_stays_on_a_bar_with_all_of_its_width(find):
    environment, found = find
    places, _ = found("left_sole")
    alongs = np.unique([spec["along"] for spec in places.specs if spec["surface"] == "rung"])
    half = np.abs(places.robot.patches["left_sole"].polygon[:, 1]).max()
    length = environment.support("rung").length
    assert half - 1e-4 <= alongs.min() <= half + 0.05
    assert length - half - 0.05 <= alongs.max() <= length - half + 1e-4
    # rounded to a tenth of a millimetre, all of them can be made
    assert all(places.contact(k) is not None for k, spec in enumerate(places.specs) if spec["surface"] == "rung")


def test_what_the_goal_gives_is_taken_exactly_and_the_rest_left_open(find):
    _, found = find
    spec = ContactSpec(patch="left_grip", surface="rung", along=0.3071, flip=True)
    places, _ = found("left_grip", spec)
    (hit,) = np.flatnonzero(places.goal)
    assert places.specs[hit]["along"] == 0.3071
    assert places.specs[hit]["flip"] is True
    assert places.freedom[hit].names == ("angle",)
    assert sum(s["surface"] == "rung" for s in places.specs) > 5  # others stay possible on the way there


def test_a_stone_whose_borders_are_at_an_angle_has_a_place_between_the_lines_of_the_lattice(scene):
    angles = np.arange(6) * np.pi / 3
    stone = Surface("stone", p=[0.363, 0.237, 0.05], polygon=0.18 * np.column_stack([np.cos(angles), np.sin(angles)]))
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    offsets = nominal_offsets(robot, q, scene.feet(0.0), limbs_of(robot, q, ("left_sole", "right_sole")))
    for across in np.arange(0.0, 0.1, 0.02):
        moved = replace(stone, p=stone.p + np.array([0.0, across, 0.0]))
        near = robot.frame_pose(q, "left_sole")[:3, :3]
        lattice = Lattice(robot, "left_sole", STRAIGHT, offsets["left_sole"], near, 0.1)
        environment = replace(scene.ENVIRONMENT, surfaces=(*scene.ENVIRONMENT.surfaces, moved))
        goal = Goal.of(GoalItem(contacts=(ContactSpec(patch="left_sole", surface="stone"),)))
        places = sample_candidates(lattice, environment, goal)
        assert any(places.contact(k) is not None for k in np.flatnonzero(places.goal))


def test_candidates_keep_their_whole_cell_of_numbers_on_the_surface(find):
    environment, found = find
    for grid in (0.1, 0.05):
        places, _ = found("left_sole", grid=grid)
        for k in range(0, len(places.specs), 7):
            support = environment.support(places.specs[k]["surface"])
            if support.name == "rung":
                continue
            contact = places.contact(k)
            assert contact is not None
            local = (contact.world_points - support.p) @ support.R[:, :2]
            assert max_excess(local, support.polygon) < 1e-4


def test_the_lattice_goes_through_the_places_of_the_start_and_has_its_progress(find, scene):
    _, found = find
    left, _ = scene.feet(0.037)
    places, offset = found("left_sole", known=[left])
    floor = [k for k, spec in enumerate(places.specs) if spec["surface"] == "floor"]
    xs = np.unique([places.specs[k]["x"] for k in floor])
    assert np.abs(xs - 0.037).min() < 1e-6
    inner = xs[1:-1]
    assert np.allclose((inner - 0.037) / 0.1, np.rint((inner - 0.037) / 0.1), atol=1e-6)
    for k in floor[::11]:
        assert places.s[k] == pytest.approx(places.positions[k][0] - offset[0])
        assert places.progress(k) == places.s[k]


def test_what_is_added_later_is_in_no_window_and_has_its_progress(find, scene):
    _, found = find
    places, _ = found("left_sole")
    contact = scene.contact("left_sole", x=0.4, y=0.1, yaw=0.0)
    i = places.add(contact, 0.4, 0.02, True)
    assert places.contact(i) is contact
    assert places.progress(i) == 0.4
    assert np.isinf(places.s[i])
    assert (places.guide_distance[i], bool(places.goal[i]), places.freedom[i]) == (0.02, True, None)


def test_a_place_where_the_patch_does_not_fit_is_no_contact(find):
    environment, found = find
    places, _ = found("left_sole")
    k = next(k for k, spec in enumerate(places.specs) if spec["surface"] == "floor")
    places.specs[k] = places.specs[k] | {"x": 1.99}
    assert places.contact(k) is None
    with pytest.raises(InputError):
        make_contact(places.robot, environment, places.specs[k])


def test_beside_a_candidate_are_places_on_its_surface_where_the_patch_fits(find):
    _, found = find
    places, _ = found("left_sole")
    k = next(k for k, spec in enumerate(places.specs) if spec["surface"] == "floor")
    spec, away = places.specs[k], 0.005
    steps = {
        (round(c.coordinates["x"] - spec["x"], 6), round(c.coordinates["y"] - spec["y"], 6))
        for c in places.nearby_contacts(k, away)
    }
    assert steps <= {(away, 0.0), (-away, 0.0), (0.0, away), (0.0, -away)}
    inner = next(
        k
        for k, spec in enumerate(places.specs)
        if spec["surface"] == "floor" and abs(spec["x"]) < 0.5 and abs(spec["y"]) < 0.5
    )
    assert len(list(places.nearby_contacts(inner, away))) == 4
    assert not list(places.nearby_contacts(inner, 2.0 * MAX_SIDESTEP_M * places.robot.scale.leg))
    places.specs[inner] = places.specs[inner] | {"x": 1.99}
    assert all(c.coordinates["x"] < 1.99 for c in places.nearby_contacts(inner, away))


def test_lines_are_even_through_their_anchor_and_include_the_borders():
    A, b = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]]), np.array([1.0, 0.43, 1, 1])
    corners = np.array([-0.5, 1.2])
    lines = _lines(corners, A, b, 0, 0.07, 0.2, None)
    assert lines == pytest.approx([-0.43, -0.33, -0.13, 0.07, 0.27, 0.47, 0.67, 0.87, 1.0])
    assert _lines(corners, A, b, 0, 0.07, 0.2, 0.3) == pytest.approx([0.3])
    assert len(_lines(corners, A, np.array([-1.0, 0.43, 1, 1]), 0, 0.0, 0.2, None)) == 0


def test_a_patch_keeps_its_heading_ahead_back_or_aside():
    down = np.diag([1.0, -1.0, -1.0])

    def at(yaw, R=down):
        c, s = np.cos(yaw), np.sin(yaw)
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]]) @ R

    for aside, expected in ((0.2, 0.0), (2.9, np.pi), (1.5, np.pi / 2), (-1.3, -np.pi / 2)):
        assert _yaw_offset(at(aside)) == pytest.approx(expected)
    tilted = down @ np.array([[1, 0, 0], [0, 0.8, -0.6], [0, 0.6, 0.8]])
    assert _yaw_offset(at(1.5, tilted)) == 0.0  # in the air it hangs any way


@pytest.mark.parametrize("heading", [0.0, np.pi / 2, 2.5])
def test_feet_lie_ahead_of_a_robot_that_has_turned_since_the_start(scene, heading):
    """Of a guide whose base has another heading than that of the start."""
    robot, feet = scene.ROBOT, scene.feet(0.0)
    q = robot.posture("half_sitting")
    c, s = np.cos(heading), np.sin(heading)
    guide = GuidePath(np.array([[0.0, 0.0, 0.65], [0.6 * c, 0.6 * s, 0.65]]), np.full(2, heading))
    facing = Rotation.from_euler("yz", [-np.pi / 2, heading]).as_matrix()
    wall = Surface("wall", facing, [0.5 * c, 0.5 * s, 1.0], SQUARE)
    planning = SimpleNamespace(
        robot=robot, environment=replace(scene.ENVIRONMENT, surfaces=(*scene.ENVIRONMENT.surfaces, wall)),
        first=SimpleNamespace(q=q, contacts=feet), patches=("left_sole", "left_hand"),
        perturbation=SeededPerturbation(0),
    )  # fmt: skip
    offsets = nominal_offsets(robot, q, feet, limbs_of(robot, q, planning.patches))
    sampled = _StancePlanner._sample(planning, Goal.of(GoalItem(com=(0.0, 0.0))), guide, offsets, (), 0.2)
    soles = {spec["yaw"] for spec in sampled["left_sole"].specs if spec["surface"] == "floor"}
    assert list(soles) == pytest.approx([heading], abs=1e-4)
    turned = robot.frame_pose(q, "left_hand")[:3, :3]
    nearest = make_contact(
        robot, planning.environment, {"patch": "left_hand", "surface": "wall", "x": 0.0, "y": 0.0},
        (Rotation.from_euler("z", heading).as_matrix() @ turned, np.zeros(3)),
    )  # fmt: skip
    hands = {spec["yaw"] for spec in sampled["left_hand"].specs if spec["surface"] == "wall"}
    assert list(hands) == pytest.approx([nearest.coordinates["yaw"]], abs=1e-4)


@pytest.mark.parametrize("lean", [0.0, 1e-12, 0.05])
def test_an_upright_pole_is_grasped_either_way_up(find, lean):
    _, found = find
    pole = Bar("pole", np.array([[0.5, 0.3, 0.2], [0.5 + lean, 0.3 - lean, 1.8]]), 0.02)
    places, _ = found("left_grip", others=[pole])
    on_pole = [k for k, spec in enumerate(places.specs) if spec["surface"] == "pole"]
    for flip in (False, True):
        same = [k for k in on_pole if places.specs[k]["flip"] is flip]
        assert len(same) > 5
        assert all(places.contact(k) is not None for k in same)


UPRIGHT = Rotation.from_euler("y", -np.pi / 2).as_matrix()
LEANING = np.array([[0.6, 0.1, 0.5], [0.6, -0.4, 0.9]])


@pytest.mark.parametrize(
    ("support", "given"),
    [
        (Surface("there", UPRIGHT, [0.6, 0.0, 0.5], SQUARE), {}),
        (Surface("there", UPRIGHT, [0.6, 0.0, 0.5], SQUARE), {"x": 0.1, "y": 0.2, "yaw": 0.3}),
        (Bar("there", LEANING, 0.02), {}),
        (Bar("there", LEANING, 0.02), {"along": 0.3, "flip": True}),
        (Bar("there", np.array([[0.5, 0.12, 0.2], [0.5, 0.07, 0.2]]), 0.02), {"overhang": True}),
    ],
    ids=["wall", "place on a wall", "steep bar", "place on a steep bar", "short bar"],
)
def test_where_no_foot_would_go_by_itself_it_goes_for_the_goal(find, support, given):
    _, found = find
    spec = ContactSpec(patch="left_sole", surface="there", **given)
    places, _ = found("left_sole", spec, others=[support])
    hits = np.flatnonzero(places.goal)
    assert any(places.contact(k) is not None for k in hits)
    assert all(spec.given.items() <= places.specs[k].items() for k in hits)
    places, _ = found("left_sole", others=[support])
    assert not any(one["surface"] == "there" for one in places.specs)


def test_a_patch_lies_across_a_support_of_the_goal_that_is_too_narrow_for_it_ahead(find, scene):
    _, found = find
    length, width = np.ptp(scene.ROBOT.patches["left_sole"].polygon, axis=0)
    middle = 0.5 * (length + width)
    for narrow, turns in ((length + 0.05, {0.0}), (middle, {-np.pi / 2, np.pi / 2}), (0.9 * width, set())):
        beam = Surface("beam", np.eye(3), [0.5, 0.0, 0.0], SQUARE * [narrow / 2, 0.8])
        places, _ = found("left_sole", ContactSpec(patch="left_sole", surface="beam"), others=[beam])
        hits = np.flatnonzero(places.goal)
        assert sorted({places.specs[k]["yaw"] for k in hits}) == pytest.approx(sorted(turns), abs=1e-4)
        assert all(places.contact(k) is not None for k in hits)
    places, _ = found("left_sole", ContactSpec(patch="left_sole", surface="beam", yaw=0.0), others=[beam])
    assert not places.goal.any()


def test_a_contact_of_the_goal_without_a_place_is_refused_with_the_reason(find, scene):
    _, found = find
    q = scene.ROBOT.posture("half_sitting")
    bar = Bar("bar", np.array([[0.5, 0.12, 0.2], [0.5, 0.07, 0.2]]), 0.02)
    spec = ContactSpec(patch="left_sole", surface="bar")
    places, _ = found("left_sole", spec, others=[bar])
    goal = Goal.of(GoalItem(contacts=(spec,)))
    said = check_surface_size(goal, {"left_sole": places}, q)
    assert said == "goal: left_sole does not fit on bar: the patch `left_sole` is wider than the bar `bar` is long"
    chosen = check_surface_size(replace(goal, chosen=True), {"left_sole": places}, q)
    assert chosen.startswith("goal: left_sole does not fit on bar, a contact that the planner chose: the patch")
    beyond = ContactSpec(patch="left_sole", surface="rung", along=0.0, flip=True)
    places, _ = found("left_sole", beyond)  # a candidate of the goal that no contact can be made of
    assert places.goal.any()
    assert "reaches" in check_surface_size(Goal.of(GoalItem(contacts=(beyond,))), {"left_sole": places}, q)
    good = ContactSpec(patch="left_sole", surface="floor")
    assert check_surface_size(Goal.of(GoalItem(contacts=(good,))), {"left_sole": found("left_sole", good)[0]}, q) == ""


def test_hands_are_turned_as_limbs_like_it():
    bar = Bar("bar", np.array([[0.3, -1, 1.0], [0.3, 1, 1.0]]), 0.02)
    left, right = np.array([0.3, 0.2, 0.4]), np.array([0.3, -0.2, 0.4])
    for offset in (left, right):
        assert _is_natural_orientation(np.array([0.0, -1, 0]), STRAIGHT, bar, offset)
        assert not _is_natural_orientation(np.array([0.0, 1, 0]), STRAIGHT, bar, offset)
    for offset, y in ((left, -1.0), (right, 1.0)):  # along the way
        assert _is_natural_orientation(np.array([y, 0, 0]), STRAIGHT, bar, offset)
        assert not _is_natural_orientation(np.array([-y, 0, 0]), STRAIGHT, bar, offset)


def test_the_heading_of_a_base_turns_with_it(scene):
    q = scene.ROBOT.posture("half_sitting").copy()
    for yaw in (-2.0, 0.5, 3.0):
        for pitch in (0.0, 1.5):  # upright, and bent over so that its x axis points down
            q[3:7] = Rotation.from_euler("ZY", [yaw, pitch]).as_quat(scalar_first=True)
            assert base_yaw(q) == pytest.approx(yaw)


# -- moves ----------------------------------------------------------------------------------------------------------


def sampled(*places, patch="l", surface="floor"):
    place = np.array(places, float).reshape(-1, 3)
    return SimpleNamespace(
        s=place[:, 0].copy(), positions=place, specs=[{"patch": patch, "surface": surface}] * len(place),
        goal=np.zeros(len(place), bool),
    )  # fmt: skip


def maker(left, hand=(), require=(), requirements_apply=True):
    limbs = {
        "leg": Limb("leg", ("l",), np.array([0.0, 0.1, 0.0]), 0.7),
        "other": Limb("other", ("r",), np.array([0.0, -0.1, 0.0]), 0.7),
        "arm": Limb("arm", ("hand",), np.array([0.0, 0.2, 0.4]), 0.5),
    }
    space = SimpleNamespace(
        limbs=limbs, modes={name: tuple((patch,) for patch in limb.patches) for name, limb in limbs.items()},
        candidates={"l": sampled(*left), "r": sampled(), "hand": sampled(*hand, patch="hand")},
        guide=GuidePath(np.array([[0.0, 0, 0.7], [5, 0, 0.7]]), np.zeros(2)), require=require,
        requirements_apply=requirements_apply,
        robot=SimpleNamespace(
            patches={limb.patches[0]: SimpleNamespace(limb=limb.name) for limb in limbs.values()}, scale=HRP2_SCALE
        ),
        feasibility=None,
    )  # fmt: skip
    made = MoveGenerator(space)
    made._rolls = lambda *_: []
    return made


def node(limb=None, requirements_met=frozenset(), **standing):
    touching = {
        patch: SimpleNamespace(patch=patch, support="floor", p=np.array([s, 0.0, 0.0])) for patch, s in standing.items()
    }
    return SimpleNamespace(
        touching=touching,
        limb=limb,
        requirements_met=requirements_met,
        progress={patch: ContactProgress(s, 0, False) for patch, s in standing.items()},
    )


def listed(moves):
    return sorted((move.limb, move.removed, move.added) for move in moves)


def test_a_limb_goes_where_it_reaches_within_the_window_of_the_others():
    # from the other foot at 1 m: in the window, beyond it, behind it, out of reach to the side, and where it stands
    places = [(1.3, 0.1, 0), (1.5, 0.1, 0), (0.55, 0.1, 0), (1.2, 0.95, 0), (0.9, 0.0, 0)]
    found = listed(maker(places).moves(node(l=0.9, r=1.0), 0.4))
    assert [move for move in found if move[0] == "leg"] == [("leg", ("l",), ()), ("leg", ("l",), (("l", 0),))]
    assert ("other", ("r",), ()) in found


def test_a_limb_reaches_as_far_whichever_way_the_guide_leads():
    rng = np.random.default_rng(5)
    places = np.column_stack([rng.uniform(0.6, 1.4, 300), rng.uniform(-1.0, 1.0, 300), rng.uniform(-0.2, 0.4, 300)])
    found = []
    for heading in (0.0, 2.0):
        made, turn = maker(places), Rotation.from_euler("z", heading)
        made.space.guide = GuidePath(turn.apply(made.space.guide.points), np.full(2, heading))
        made.space.candidates["l"].positions = turn.apply(places)
        found.append([move for move in listed(made.moves(node(l=9.0, r=1.0), 9.0)) if move[0] == "leg"])
    assert found[0] == found[1]
    assert 50 < len(found[0]) < 250


def test_a_limb_does_not_move_twice_in_a_row_and_the_last_one_stays():
    places = [(1.3, 0.1, 0)]
    assert [m for m in maker(places).moves(node("leg", l=0.9, r=1.0), 0.4) if m.limb == "leg"] == []
    assert [m for m in maker(places).moves(node(l=0.9), 0.4) if m.limb == "leg"] == []  # nothing else would carry


def test_what_is_required_close_by_is_touched_before_limbs_move_on():
    require = (frozenset(["hand"]),)
    close, far = (maker([(1.3, 0.1, 0)], [(x, 0.3, 1.0)], require) for x in (1.2, 1.9))
    assert {move.limb for move in close.moves(node(l=1.0, r=1.0), 0.4)} == {"arm"}
    assert "leg" in {move.limb for move in far.moves(node(l=1.0, r=1.0), 0.4)}
    done = close.moves(node(requirements_met=frozenset([0]), l=1.0, r=1.0), 0.4)
    assert "leg" in {move.limb for move in done}
    touching = close.moves(node(l=1.0, r=1.0, hand=1.0), 0.4)
    assert "leg" in {move.limb for move in touching}
    later = maker([(1.3, 0.1, 0)], [(1.2, 0.3, 1.0)], require, requirements_apply=False)
    assert "leg" in {move.limb for move in later.moves(node(l=1.0, r=1.0), 0.4)}
