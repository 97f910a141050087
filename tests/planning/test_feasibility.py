"""Feasibility beyond a posture: room of the centre of mass, free links, swings that pass, and guides that fit."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.core.posture.rows import COVECTOR, HIGH, KIND, LOW, POINT_HEIGHT
from mcplan.core.rigid_body.tree import MASS, PARENT, V
from mcplan.planning.feasibility import (
    MAX_REPAIRED_TORQUE,
    MIN_COM_INSET_M,
    MIN_LOAD_N,
    Feasibility,
    OutOfCalls,
    ReferencePostures,
    base_moved_to_contact,
    is_nearly_feasible,
    with_com_inset,
)
from mcplan.planning.linking import Linker
from mcplan.planning.posture.freedom import Freedom
from mcplan.planning.posture.limbs import LIFT_HEIGHT_M, NEIGHBOUR_GAP_M, swing_limb_rows
from mcplan.planning.posture.result import Effort, PostureResult, Violation
from mcplan.planning.posture.task import DISTAL_MASS_WEIGHT, Weights, coordinate_weights
from mcplan.planning.search.improve import REFINEMENT_SETTINGS
from mcplan.planning.transition.segments import SwingMotion
from mcplan.robot.description import Box
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import load_scenario
from mcplan.scene.environment import Environment, Obstacle, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings
from tests.planning.obstacle_step import step_past

SETTINGS = ControlSettings()


def result(stage="done", violations=(), **margins):
    return PostureResult(np.zeros(7), (), (), None, margins, tuple(violations), stage, Effort())


@pytest.fixture(scope="module")
def checks(scene):
    q = scene.ROBOT.posture("half_sitting")
    return Feasibility(scene.ROBOT, scene.ENVIRONMENT, q, ["left_sole", "right_sole"], SETTINGS)


def test_a_posture_without_room_for_its_centre_of_mass_is_not_steady():
    roomy, tight = result(com_inset=MIN_COM_INSET_M + 1e-4), result(com_inset=MIN_COM_INSET_M - 1e-3)
    assert with_com_inset(roomy) is roomy
    refused = with_com_inset(tight)
    assert not refused.found
    assert refused.stage == "balance"
    (violation,) = refused.violations
    assert (violation.kind, violation.thing) == ("equilibrium", "com")
    assert violation.amount == pytest.approx(1e-3)
    failed = result("reach", com_inset=0.0)
    assert with_com_inset(failed) is failed
    assert with_com_inset(result()).found  # contacts that offer no region of their own say nothing


@pytest.mark.parametrize(("missing", "eased"), [(0.5 * MAX_REPAIRED_TORQUE, True), (2.0 * MAX_REPAIRED_TORQUE, False)])
def test_a_posture_of_the_search_that_misses_a_torque_by_little_is_moved_until_it_does_not(scene, missing, eased):
    q = scene.ROBOT.posture("half_sitting")
    checks = Feasibility(scene.ROBOT, scene.ENVIRONMENT, q, ["left_sole", "right_sole"], SETTINGS)
    short = result("forces", [Violation("torque", "r_knee", missing)])
    checks.postures._quick = SimpleNamespace(generate=lambda *given, **options: short)
    checks.postures.generator = SimpleNamespace(generate=lambda *given, **options: replace(result(com_inset=1.0), q=q))
    assert checks.postures.find(scene.feet(0.0), [], q).found == eased


def test_legs_that_are_lifted_next_may_be_straight_and_those_that_arrive_may_not(scene):
    q = scene.ROBOT.posture("half_sitting")
    checks = Feasibility(scene.ROBOT, scene.ENVIRONMENT, q, ["left_sole", "right_sole"], SETTINGS)
    asked = []

    def generate(*given, leaving=()):
        asked.append(leaving)
        return replace(result(com_inset=1.0), q=q)

    checks.postures._quick, (left, right) = SimpleNamespace(generate=generate), scene.feet(0.0)
    checks.postures.continuity = SimpleNamespace(make_reachable=lambda held, result, q: result)
    checks.postures.find((left, right), ["right_sole"], q, held_contacts=(left, right))
    checks.postures.find((left, right), ["right_sole"], q, held_contacts=(left,))
    assert asked == [("right_sole",), ()]


def test_only_a_small_miss_of_the_place_itself_passes():
    assert is_nearly_feasible(result("balance", [Violation("reach", "hand", 1.9e-3)]))
    assert not is_nearly_feasible(result("balance", [Violation("reach", "hand", 2.1e-3)]))
    assert not is_nearly_feasible(result("collision", [Violation("reach", "hand", 1e-4)]))
    both = [Violation("reach", "hand", 1e-4), Violation("equilibrium", "com", 1e-4)]
    assert not is_nearly_feasible(result("balance", both))


def test_a_robot_is_moved_rigidly_onto_a_contact(scene):
    robot, q = scene.ROBOT, scene.ROBOT.random_configuration(4)
    contact = scene.contact("right_sole", x=0.3, y=-0.2, yaw=0.8)
    moved = base_moved_to_contact(robot, q, contact)
    X = robot.frame_pose(moved, "right_sole")
    assert X[:3, :3] == pytest.approx(contact.R, abs=1e-12)
    assert X[:3, 3] == pytest.approx(contact.p, abs=1e-12)
    assert np.array_equal(moved[7:], q[7:])
    assert np.linalg.norm(moved[3:7]) == pytest.approx(1.0)


def test_a_foot_across_the_seam_of_a_floor_that_is_cut_in_two_is_in_nothing(scene):
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    halves = [Surface(f"f{k}", p=[x, 0.0, 0.0], polygon=corners) for k, x in ((1, -0.95), (2, 1.05))]
    floor = Environment(surfaces=tuple(halves))
    q = scene.ROBOT.posture("half_sitting")
    spec = {"patch": "left_sole", "surface": "f1", "x": 0.96, "y": 0.095, "yaw": 0.0, "overhang": True}
    foot = make_contact(scene.ROBOT, floor, spec)
    checks = Feasibility(scene.ROBOT, floor, q, ["left_sole", "right_sole"], SETTINGS)
    assert checks.occupancy.overlap(foot) is None
    step = replace(halves[1], p=np.array([1.05, 0.0, 0.05]))
    stepped = Feasibility(scene.ROBOT, Environment(surfaces=(halves[0], step)), q, ["left_sole"], SETTINGS)
    assert stepped.occupancy.overlap(foot)


def test_a_place_is_blocked_by_what_the_link_would_be_in_and_by_how_much(scene):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    foot = scene.contact("left_sole", x=0.5, y=0.1, yaw=0.0)
    X = robot.frame_pose(base_moved_to_contact(robot, q, foot), "left_sole")
    clear = Feasibility(robot, scene.ENVIRONMENT, q, ["left_sole", "right_sole"], SETTINGS)
    assert clear.occupancy.overlap(foot) is None
    size = np.array([0.05, 0.05, 0.2])
    front = 0.5 + max(robot.patches["left_sole"].polygon[:, 0])  # of the sole
    for gap in (0.05, 0.01):
        centre = np.array([front + gap + size[0] / 2, X[1, 3], 0.1])
        post = Obstacle("post", Box(tuple(size)), np.eye(3), centre)
        near = Feasibility(robot, replace(scene.ENVIRONMENT, obstacles=(post,)), q, ["left_sole"], SETTINGS)
        free = near.collisions.distances(base_moved_to_contact(robot, q, foot), 0.2, [foot])
        apart = min(
            d for pair, d in zip(free.pairs, free.distance, strict=True) if pair.a == "LLEG_LINK5" and pair.b == "post"
        )
        assert near.occupancy.overlap(foot) is None
        hit = near.occupancy.overlap(foot, float(apart) + 0.004)
        assert hit[0] == "LLEG_LINK5 and post"
        assert hit[1] == pytest.approx(0.004)
        assert near.occupancy.overlap(foot, float(apart) - 0.004) is None


def test_a_place_is_covered_by_what_hangs_over_the_toes_not_by_what_stands_before_them(scene):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    foot = scene.contact("left_sole", x=0.5, y=0.1, yaw=0.0)
    X = robot.frame_pose(base_moved_to_contact(robot, q, foot), "left_sole")
    toe = 0.5 + max(robot.patches["left_sole"].polygon[:, 0])
    for reach, low, covered in ((0.02, 0.06, True), (-0.02, 0.06, False), (0.02, 0.12, False)):
        centre = np.array([toe - reach + 0.1, X[1, 3], low + 0.1])
        tread = Obstacle("tread", Box((0.2, 0.2, 0.2)), np.eye(3), centre)
        checks = Feasibility(robot, replace(scene.ENVIRONMENT, obstacles=(tread,)), q, ["left_sole"], SETTINGS)
        assert checks.occupancy.overlap(foot) is None
        assert checks.occupancy.landing_obstructed(foot) == covered
    edge = scene.contact("left_toe", x=0.5, y=0.1, yaw=0.0)
    assert not checks.occupancy.landing_obstructed(edge)  # its link may turn


def test_a_wall_that_no_lift_clears_blocks_a_swing_and_a_low_one_does_not():
    robot, environment, right, before, after, q0, q1 = step_past((0.02, 0.3, 0.02), [0.2, 0.6, 2.0])
    wall = Obstacle("wall", Box((0.02, 0.10, 1.2)), np.eye(3), np.array([0.18, 0.16, 0.6]))
    for obstacles, free in ((environment.obstacles, True), ((wall,), False)):
        scene = replace(environment, obstacles=obstacles)
        checks = Feasibility(robot, scene, q0, ["left_sole", "right_sole"], SETTINGS)
        found = checks.motions.swing(SwingMotion((right,), before, (after,), q0, q1))
        assert (found == ()) == free
        if found:
            assert found[0].kind == "collision"
            assert "wall" in found[0].thing


def test_the_budget_of_postures_is_kept(scene):
    q = scene.ROBOT.posture("half_sitting")
    checks = Feasibility(scene.ROBOT, scene.ENVIRONMENT, q, ["left_sole", "right_sole"], SETTINGS)
    checks.budget.limit = 1
    feet = scene.feet()
    first = checks.postures.find(feet, (), q)
    assert checks.postures.find(feet[::-1], (), q) is first  # the same stance costs nothing again
    assert checks.budget.calls == 1
    with pytest.raises(OutOfCalls):
        checks.postures.find(feet, ("left_sole",), q)


def test_a_stance_that_no_reference_fits_has_a_posture_for_each_one_before(scene):
    q = scene.ROBOT.posture("half_sitting")
    checks = Feasibility(scene.ROBOT, scene.ENVIRONMENT, q, ["left_sole", "right_sole"], SETTINGS)
    checks.postures._quick = SimpleNamespace(generate=lambda contacts, loaded, guide, *more, **options: (
        replace(result(com_inset=1.0), q=guide)
    ))  # fmt: skip
    hand = [scene.contact("left_hand", "table", x=0.0, y=0.2, yaw=0.0)]
    assert not any("left_hand" in bearing for bearing, *_ in checks.references.postures[:1])
    checks.references.postures = checks.references.postures[:1]
    raised = q + np.eye(len(q))[2] * 0.1
    found = [checks.postures.find(hand, (), one).q[2] for one in (q, raised, q)]
    assert found == pytest.approx([q[2], raised[2], q[2]])
    assert checks.budget.calls == 2
    first = checks.postures.find(scene.feet(), (), q)  # that of the start fits: one posture, whatever was before
    checks.postures.free_limbs = SimpleNamespace(crossing=lambda *_: ())
    assert checks.postures.find(scene.feet(), (), raised) is first


def test_what_a_patch_has_to_carry_is_in_proportion_to_the_mass_of_the_robot(checks, scene):
    assert checks.min_load == MIN_LOAD_N
    small = load_robot("go2")
    light = Feasibility(small, scene.ENVIRONMENT, small.posture(next(iter(small.postures))), (), SETTINGS)
    assert light.min_load == pytest.approx(MIN_LOAD_N * small.mass / scene.ROBOT.mass, rel=1e-4)


def test_the_reference_whose_patches_fit_best_is_set_down_on_the_contacts(scene, checks):
    feet = scene.feet(0.4)
    guide = checks.references.guide(feet, scene.ROBOT.random_configuration(0))
    for contact in feet:
        X = scene.ROBOT.frame_pose(guide, contact.patch)
        assert X[:3, 3] == pytest.approx(contact.p, abs=0.02)
    other = scene.ROBOT.random_configuration(1)
    assert checks.references.guide((), other) is other


def test_the_offset_between_patches_does_not_depend_on_the_heading_of_the_reference(scene):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting").copy()
    turned = q.copy()
    turned[3:7] = (Rotation.from_euler("z", 0.8) * Rotation.from_quat(q[[4, 5, 6, 3]])).as_quat(scalar_first=True)
    soles = ("left_sole", "right_sole")
    offsets = [ReferencePostures(robot, pose, soles).offset(*soles) for pose in (q, turned)]
    assert offsets[0] == pytest.approx([0.0, -0.19, 0.0], abs=1e-6)
    assert offsets[1] == pytest.approx(offsets[0], abs=1e-9)


def test_moving_a_joint_costs_by_the_mass_beyond_it(scene):
    robot, price = scene.ROBOT, coordinate_weights(scene.ROBOT, Weights(3.0, 7.0, 2.0))
    topology, mass = robot.tree.topology, robot.tree.inertia[:, MASS]
    assert price[:6] == pytest.approx([3.0] * 3 + [7.0] * 3)
    for body in range(1, len(topology)):
        beyond = 0.0
        for other in range(1, len(topology)):
            ancestor = other
            while ancestor > body:
                ancestor = int(topology[ancestor, PARENT])
            beyond += mass[other] if ancestor == body else 0.0
        assert price[topology[body, V]] == pytest.approx(2.0 + 2.0 * DISTAL_MASS_WEIGHT * (beyond / robot.mass) ** 2)


def test_a_lifted_foot_stays_above_the_floor_and_beside_the_other_one(scene):
    left, right = scene.feet()
    q = scene.ROBOT.posture("half_sitting")
    ((patch, rows),) = swing_limb_rows(scene.ROBOT, scene.ENVIRONMENT, q, [right], [left]).items()
    assert patch == "left_sole"
    assert rows.body == scene.ROBOT.frame(patch)[0]
    assert (rows.cell[:, KIND] == POINT_HEIGHT).all()
    assert (rows.cell[:, HIGH] >= 100.0).all()
    # n . x >= d for each corner x, n in the world and x in the patch's axes
    points = scene.ROBOT.patches[patch].points
    above, beside = rows.cell[: len(points)], rows.cell[len(points) :]
    for cell in (above, beside):
        assert cell[:, COVECTOR + 3 : LOW] == pytest.approx(points)
    assert above[0, COVECTOR : COVECTOR + 3] == pytest.approx([0.0, 0.0, 1.0])
    assert above[:, LOW] == pytest.approx(LIFT_HEIGHT_M)
    # its own edge stays as far from the other's edge as it was, at most NEIGHBOUR_GAP_M
    edge = right.world_points[:, 1].max()
    apart = left.world_points[:, 1].min() - edge
    assert beside[0, COVECTOR : COVECTOR + 3] == pytest.approx([0.0, 1.0, 0.0])
    assert beside[:, LOW] == pytest.approx(edge + min(apart, NEIGHBOUR_GAP_M))
    assert swing_limb_rows(scene.ROBOT, scene.ENVIRONMENT, q, [left, right], [left]) == {}


def test_knee_and_toe_of_a_shank_are_lifted_together_where_the_knee_alone_would_press_the_foot_into_the_floor():
    """HRP-2 on hands, knees and toes draws a leg forward by 0.35 m."""
    scenario = load_scenario("crawl")
    robot, environment, patches = scenario.robot, scenario.environment, scenario.planner.patches
    q, start = scenario.start.q, scenario.start.contacts
    checks = Feasibility(robot, environment, q, patches, scenario.transition_settings)
    leg = ["left_knee", "left_toe"]
    places = (("left_knee", -0.15, 0.10, 3.04), ("left_toe", -0.389, 0.113, -0.10))
    added = tuple(
        make_contact(robot, environment, {"patch": patch, "surface": "floor", "x": x, "y": y, "yaw": yaw})
        for patch, x, y, yaw in places
    )
    common = tuple(contact for contact in start if contact.patch not in leg)
    lifted = checks.postures.find(start, leg, q, held_contacts=start)
    free = dict.fromkeys(leg, Freedom(x=0.03, y=0.03, yaw=0.1))
    placed = checks.postures.find((*common, *added), leg, lifted.q, free, common)
    assert lifted.found, lifted.stage
    assert placed.found, placed.violations
    old = next(contact for contact in start if contact.patch == "left_knee")
    both = SwingMotion(common, old, tuple(map(placed.contact, leg)), lifted.q, placed.q)
    alone = checks.motions.swing(replace(both, added=both.added[:1]))
    assert alone[0].kind == "collision"
    assert alone[0].thing == "LLEG_LINK5 and floor"
    assert checks.motions.swing(both) == ()


@pytest.mark.parametrize(
    ("control", "share", "inset"),
    [
        ({}, 0.9, 0.005),
        ({"friction_fraction": 0.6, "pressure_margin": 0.012}, 0.6, 0.012),
        ({"force_fraction": 0.5}, 0.9, 0.005),
        ({"friction_faces": 4}, np.cos(np.pi / 4) / np.cos(np.pi / 8), 0.005),
        ({"friction_faces": 6, "friction_fraction": 0.95}, 0.95 * np.cos(np.pi / 6), 0.005),
        ({"friction_faces": 16, "friction_fraction": 0.95}, 0.9, 0.005),
    ],
)
def test_postures_count_on_no_more_of_contacts_than_the_controller_that_holds_them(scene, control, share, inset):
    robot, environment, q = scene.ROBOT, scene.ENVIRONMENT, scene.ROBOT.posture("half_sitting")
    settings = ControlSettings(contact=control)
    checks = Feasibility(robot, environment, q, ["left_sole", "right_sole"], settings)
    for asked in (
        checks.postures.generator.settings,
        checks.motions._swing_generator.settings,
        checks.generator(REFINEMENT_SETTINGS[0]).settings,
        checks.motions.segments.finder.knots.settings,
        Linker(robot, environment, q, settings).generator.settings,
    ):
        assert (asked.friction_share, asked.pressure_inset) == (pytest.approx(share), inset)
        assert asked.force_share == min(0.9, settings.contact.force_fraction)
    corners = (2 * np.arange(8) + 1) * np.pi / 8
    normals = 2 * np.pi * np.arange(settings.contact.friction_faces) / settings.contact.friction_faces
    used = asked.friction_share * np.cos(normals[:, None] - corners).max()
    assert used <= settings.contact.friction_fraction * np.cos(np.pi / settings.contact.friction_faces) + 1e-12
