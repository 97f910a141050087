"""CollisionModel on HRP-2: which pairs, which distances, how they change, what contacts are allowed."""

import warnings

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from mcplan.collision.model import ALLOWED_PENETRATION, CollisionModel
from mcplan.collision.pairs import always_touching
from mcplan.core.rigid_body.tree import PARENT
from mcplan.errors import InputError
from mcplan.robot.description import Box, MeshShape, RobotWarning, Sphere
from mcplan.robot.link_solids import candidate_pairs, link_solids
from mcplan.robot.robot_file import load_robot
from mcplan.scene.contact import Carrier, Contact
from mcplan.scene.environment import Bar, Environment, FreeObject, Obstacle, Surface

EYE = np.eye(3)


def rectangle(x, y):
    return np.array([[-x, -y], [x, -y], [x, y], [-x, y]])


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


@pytest.fixture(scope="module")
def alone(robot):
    return CollisionModel(robot)


@pytest.fixture(scope="module")
def environment():
    crate = Surface("crate_top", EYE, np.array([0.9, 0, 0.8]), rectangle(0.2, 0.2), owner="crate")
    return Environment(
        surfaces=(
            Surface("floor", EYE, np.zeros(3), rectangle(2, 1)),
            Surface("wedge", EYE, np.array([0, 1.2, 0.3]), np.array([[0, 0], [0.4, 0], [0.1, 0.5]])),
        ),
        bars=(Bar("rail", np.array([[0.0, -0.6, 0.7], [1.0, -0.6, 0.9]]), 0.02),),
        obstacles=(Obstacle("ball", Sphere(0.1), EYE, np.array([0.4, 0.3, 1.0])),),
        objects=(FreeObject("crate", Box((0.4, 0.4, 0.8)), EYE, np.array([0.9, 0, 0.4]), 20, 0.4, (crate,)),),
    )


@pytest.fixture(scope="module")
def model(robot, environment):
    return CollisionModel(robot, environment)


def near_half_sitting(robot, rng):
    """Half sitting, joints moved by some 0.3 rad within their limits, base by some centimetres and 0.2 rad."""
    v = np.concatenate([0.05 * rng.normal(size=3), 0.2 * rng.normal(size=3), 0.3 * rng.normal(size=robot.n)])
    q = robot.integrate(robot.posture("half_sitting"), v, 1.0)
    q[7:] = np.clip(q[7:], robot.limits.lower, robot.limits.upper)
    return q


def test_every_named_posture_is_clear_of_itself(robot, alone):
    for name in robot.postures:
        least = alone.smallest(robot.posture(name))
        assert least.distance > 0.005, f"{name}: {least.pair}"


def test_pairs_leave_out_neighbours_and_ignored_ones(robot, alone):
    parent, body = robot.tree.topology[:, PARENT], {link: robot.frame(link)[0] for link in robot.link_names}
    for pair in alone.pairs:
        a, b = body[pair.a], body[pair.b]
        assert a != b
        assert parent[a] != b
        assert parent[b] != a
        assert frozenset((pair.a, pair.b)) not in robot.collision_ignore
    named = {frozenset((pair.a, pair.b)) for pair in alone.pairs}
    assert frozenset(("RLEG_LINK5", "LLEG_LINK5")) in named
    assert frozenset(("LARM_LINK5", "BODY")) in named


BLOCKS = """<robot name="blocks">
  {links}
  <joint name="j1" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0.3 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="j2" type="revolute"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="j3" type="fixed"><parent link="c"/><child link="d"/><origin xyz="0.3 0 0"/></joint>
  <joint name="j4" type="revolute"><parent link="d"/><child link="e"/><origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>"""


def test_pairs_that_always_touch_are_found(tmp_path):
    """Body b is a joint's length inside both a and c: a and c overlap whatever the joints do; d belongs to c's body."""
    shape = '<geometry><box size="0.7 0.1 0.1"/></geometry>'
    small = '<geometry><sphere radius="0.02"/></geometry>'
    link = (
        '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        "</inertial><collision>{}</collision></link>"
    )
    links = [link.format(name, shape if name in "ac" else small) for name in "abcde"]
    path = tmp_path / "blocks.urdf"
    path.write_text(BLOCKS.format(links="\n".join(links)))
    blocks = load_robot(path)
    names = link_solids(blocks)[0]
    candidates = {(names[i], names[j]) for i, j in candidate_pairs(blocks)}
    assert candidates == {("a", "c"), ("a", "d"), ("a", "e"), ("b", "e")}  # c-e and d-e: one joint, j4
    assert always_touching(blocks) == {frozenset("ac")}
    assert ("a", "c") not in {pair[:2] for pair in CollisionModel(blocks).pairs}


def test_what_always_touches_is_that_of_the_meshes_as_they_are_now(tmp_path):
    """Two arms reach into each other from a base, or do not, as a mesh is long or short; the URDF stays the same."""
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    arm = (
        f'<link name="{{0}}">{mass}<collision><geometry><mesh filename="arm.stl"/></geometry></collision></link>'
        '<joint name="j{0}" type="revolute"><parent link="base"/><child link="{0}"/><origin xyz="{1} 0 0"/>'
        '<axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/></joint>'
    )
    path = tmp_path / "arms.urdf"
    arms = arm.format("a", 0.2) + arm.format("b", -0.2)
    path.write_text(f'<robot name="arms"><link name="base">{mass}</link>{arms}</robot>')
    found, digests = [], set()
    for length in (0.1, 1.0, 0.1):
        trimesh.creation.box((length, 0.1, 0.1)).export(tmp_path / "arm.stl")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RobotWarning)  # of the overlap
            robot = load_robot(path)
        digests.add(robot.digest)
        found.append(always_touching(robot))
    assert found == [frozenset(), {frozenset("ab")}, frozenset()]
    assert len(digests) == 1


def test_distances_change_as_the_rows_say(robot, model):
    """Central differences on the manifold, at pairs of which each is nearest at one point only (no kink, one slope)."""
    rng = np.random.default_rng(11)
    checked = 0
    for _ in range(6):
        q = near_half_sitting(robot, rng)
        v = rng.normal(size=robot.nv)
        d0, rows, pairs = model.constraint_rows(q, 0.15)
        assert rows.shape == (len(pairs), robot.nv)
        step = 1e-6

        keys = [(pair.a, pair.b) for pair in pairs]
        before, after = (by_name(model.distances(robot.integrate(q, v, h), 0.2)) for h in (-step, step))
        for key, d, row in zip(keys, d0, rows, strict=True):
            if keys.count(key) > 1 or key not in before or key not in after:
                continue
            left, right = (d - before[key]) / step, (after[key] - d) / step
            if abs(left - right) < 1e-3:
                checked += 1
                assert row @ v == pytest.approx((left + right) / 2, abs=5e-3), key
    assert checked > 60


def by_name(distances):
    names = [(pair.a, pair.b) for pair in distances.pairs]
    return {name: d for name, d in zip(names, distances.distance, strict=True) if names.count(name) == 1}


def test_self_distances_do_not_depend_on_the_base(robot, alone):
    rng = np.random.default_rng(12)
    q = near_half_sitting(robot, rng)
    other = q.copy()
    other[:7] = robot.random_configuration(3)[:7]
    mine, moved = alone.distances(q), alone.distances(other)
    assert mine.pairs == moved.pairs
    np.testing.assert_allclose(mine.distance, moved.distance, atol=1e-9)
    _, rows, _ = alone.constraint_rows(q, 0.1)
    np.testing.assert_allclose(rows[:, :6], 0, atol=1e-12)


def test_witness_points_are_where_the_normal_says(robot, model):
    rng = np.random.default_rng(13)
    for _ in range(20):
        near = model.distances(near_half_sitting(robot, rng), 0.3)
        np.testing.assert_allclose(
            np.sum(near.normal * (near.point_a - near.point_b), axis=1), near.distance, atol=1e-9
        )


def test_smallest_is_the_least_of_all(robot, model):
    rng = np.random.default_rng(14)
    for _ in range(30):
        q = near_half_sitting(robot, rng)
        near = model.distances(q, 1.0)
        least = model.smallest(q)
        assert least.distance == pytest.approx(near.distance.min(), abs=1e-9)
        rest = model.smallest(q, ignore=[least.pair[:2]])
        others = [d for d, pair in zip(near.distance, near.pairs, strict=True) if pair != least.pair]
        assert rest.distance == pytest.approx(min(others), abs=1e-9)


def test_a_clear_posture_stays_clear_of_a_margin(robot, model):
    """What ``distances`` leaves out is beyond the margin: nothing nearer is missed by the bounds."""
    rng = np.random.default_rng(15)
    for _ in range(20):
        q = near_half_sitting(robot, rng)
        everything, near = model.distances(q, np.inf), model.distances(q, 0.05)
        assert len(everything) == len(model.pairs)
        inside = everything.distance <= 0.05
        assert near.pairs == tuple(pair for pair, i in zip(everything.pairs, inside, strict=True) if i)
        np.testing.assert_allclose(near.distance, everything.distance[inside], atol=1e-9)


@pytest.mark.parametrize(("sunk", "allowed"), [(0.0, True), (0.0015, True), (0.0025, False)])
def test_a_link_may_touch_what_its_patch_rests_on(robot, model, sunk, allowed):
    """HRP-2's soles lie on the floor at half sitting; two millimetres deep they count no more."""
    q = robot.posture("half_sitting")
    ground = robot.frame_pose(q, "left_sole")[2, 3]
    q[2] -= ground + sunk
    contacts = [("LLEG_LINK5", "floor"), ("RLEG_LINK5", "floor")]
    least = model.smallest(q, contacts=contacts)
    if allowed:
        assert least.distance > 0
        assert least.pair.b != "floor" or not least.pair.in_contact
    else:
        assert least.pair.in_contact
        assert least.distance == pytest.approx(-sunk, abs=1e-6)
    rows = model.constraint_rows(q, 0.05, contacts, clearance=0.01)
    raw = model.distances(q, 0.05, contacts)
    assert rows.pairs == raw.pairs
    slack = np.array([ALLOWED_PENETRATION if pair.in_contact else -0.01 for pair in raw.pairs])
    np.testing.assert_allclose(rows.distance, raw.distance + slack, atol=1e-12)
    assert sum(pair.in_contact for pair in raw.pairs) >= 2
    np.testing.assert_array_equal(raw.clearance >= 0, [d >= (-0.002 if p.in_contact else 0) for p, d in by_pair(raw)])


@pytest.mark.parametrize("own", ["left", "right"])
@pytest.mark.parametrize(("height", "level"), [(0.0, True), (0.01, False), (-0.01, False)])
def test_a_sole_on_a_seam_may_touch_all_plates_of_its_plane(robot, own, height, level):
    """Whichever of them it is planned on, and none that lies higher or lower; nor may the other foot."""
    q = robot.posture("half_sitting").copy()
    q[2] -= robot.frame_pose(q, "left_sole")[2, 3] + 0.5 * ALLOWED_PENETRATION
    seam = robot.frame_pose(q, "left_sole")[1, 3]
    other = "right" if own == "left" else "left"
    plates = [
        Surface(name, EYE, np.array([0.0, seam + side, height if name == other else 0.0]), rectangle(1, 1))
        for name, side in (("left", 1.0), ("right", -1.0))
    ]
    model = CollisionModel(robot, Environment(surfaces=tuple(plates)))
    found = model.distances(q, np.inf, [resting("left_sole", own)])
    touching = {(pair.a, pair.b) for pair in found.pairs if pair.in_contact}
    assert touching == {("LLEG_LINK5", name) for name in ((own, other) if level else (own,))}


def by_pair(distances):
    return list(zip(distances.pairs, distances.distance, strict=True))


def test_objects_move_and_their_surfaces_are_their_sides(robot, model):
    q = robot.posture("half_sitting")
    start = {(p.a, d) for p, d in by_pair(model.distances(q, np.inf)) if p.b == "crate"}
    shift = np.array([0.1, -0.2, 0.05])
    at = {"crate": (EYE, np.array([0.9, 0, 0.4]) + shift)}
    q_too = q.copy()
    q_too[:3] += shift
    moved = {(p.a, d) for p, d in by_pair(model.distances(q_too, np.inf, objects=at)) if p.b == "crate"}
    assert {a for a, _ in start} == {a for a, _ in moved}
    np.testing.assert_allclose(sorted(d for _, d in start), sorted(d for _, d in moved), atol=1e-9)
    touching = model.distances(q, np.inf, contacts=[("LARM_LINK5", "crate_top")])
    assert {(p.a, p.b) for p in touching.pairs if p.in_contact} == {("LARM_LINK5", "crate")}
    assert not any(p.b == "crate_top" for p in model.pairs)


def test_same_question_same_answer(robot, model):
    rng = np.random.default_rng(16)
    questions = [near_half_sitting(robot, rng) for _ in range(5)]
    first = [model.distances(q, 0.2).distance for q in questions]
    again = [model.distances(q, 0.2).distance for q in reversed(questions)][::-1]
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_mistakes_are_named(robot, model):
    q = robot.posture("half_sitting")
    with pytest.raises(InputError, match="shape"):
        model.smallest(q[:-1])
    q[9] = np.nan
    with pytest.raises(InputError, match=r"q\[9\]"):
        model.smallest(q)
    q[9] = 0
    with pytest.raises(InputError, match="flor"):
        model.smallest(q, contacts=[("LLEG_LINK5", "flor")])
    with pytest.raises(InputError, match="box"):
        model.distances(q, objects={"box": (EYE, np.zeros(3))})


def resting(patch, support, rows=6, carrier=None):
    """As much of a contact as the model asks for."""
    points, selection = np.zeros((4, 3)), np.eye(6)[:rows]
    return Contact(
        patch, support, "surface", EYE, np.zeros(3), points, EYE, 0.7, np.inf, np.inf, selection, carrier=carrier
    )


def test_contacts_fix_what_cannot_move_by_them(robot, model):
    """A link that is held is fixed to all that stands around, and to other links that are held."""
    both = [resting("left_sole", "floor"), resting("right_sole", "floor")]
    fixed = {frozenset(model.pairs[p][:2]) for p in model.fixed_by(both)}
    for foot in ("LLEG_LINK5", "RLEG_LINK5"):
        for thing in ("floor", "wedge", "rail", "ball", "crate"):
            assert frozenset((foot, thing)) in fixed
    assert frozenset(("LLEG_LINK5", "RLEG_LINK5")) in fixed
    feet = {"LLEG_LINK5", "RLEG_LINK5"}
    assert all(pair & feet and not (pair & set(robot.link_names)) - feet for pair in fixed)
    one = {frozenset(model.pairs[p][:2]) for p in model.fixed_by(both[:1])}
    assert frozenset(("LLEG_LINK5", "RLEG_LINK5")) not in one
    assert frozenset(("LLEG_LINK5", "rail")) in one
    assert model.fixed_by([resting("left_sole", "floor", rows=5)]) == set()


def test_what_is_held_to_an_object_moves_with_it_past_all_else(robot, model):
    """Hands on a crate are fixed to it and to each other; feet on the floor to that, but not to what hands may move."""
    crate = Carrier("crate", 20.0, np.zeros(3), None)
    hands = [resting(patch, "crate_top", carrier=crate) for patch in ("left_hand", "right_hand")]
    feet = [resting(patch, "floor") for patch in ("left_sole", "right_sole")]
    one, other = (robot.patches[contact.patch].link for contact in hands)
    fixed = {frozenset(model.pairs[p][:2]) for p in model.fixed_by(hands + feet)}
    assert {frozenset((one, "crate")), frozenset((other, "crate")), frozenset((one, other))} <= fixed
    for foot in ("LLEG_LINK5", "RLEG_LINK5"):
        assert frozenset((foot, "rail")) in fixed
        assert not {frozenset((foot, name)) for name in ("crate", one, other)} & fixed
    assert not {frozenset((hand, thing)) for hand in (one, other) for thing in ("floor", "rail", "ball")} & fixed


def test_room_is_the_distance_to_what_is_allowed(robot, model):
    q = robot.posture("half_sitting")
    found = model.distances(q, 0.5, [resting("left_sole", "floor")])
    touching = np.array([pair.in_contact for pair in found.pairs])
    assert touching.any()
    assert not touching.all()
    assert found.clearance[touching] == pytest.approx(found.distance[touching] + ALLOWED_PENETRATION)
    assert found.clearance[~touching] == pytest.approx(found.distance[~touching])


WELDED = """<robot name="welded">
  <link name="base"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <origin xyz="0.1 0.2 0.3" rpy="0.4 0.1 0.2"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="weld" type="fixed"><parent link="arm"/><child link="tool"/>
    <origin xyz="0.3 0 0.1" rpy="0.5 -0.3 0.9"/></joint>
  <link name="tool"><collision><origin xyz="0.2 0.05 -0.1" rpy="0.7 0 0.2"/>
    <geometry><box size="0.1 0.2 0.3"/></geometry></collision></link>
</robot>"""


def test_a_shape_on_a_link_that_is_welded_to_another_is_where_its_link_has_it(tmp_path):
    (tmp_path / "welded.urdf").write_text(WELDED)
    robot = load_robot(tmp_path / "welded.urdf")
    q = robot.random_configuration(1)
    tool, (geometry,) = robot.frame_pose(q, "tool"), robot.geometry["tool"]
    centre = tool[:3, :3] @ geometry.p + tool[:3, 3]
    turn = tool[:3, :3] @ geometry.R
    for axis, half in ((0, 0.05), (1, 0.1), (2, 0.15)):
        ball = Obstacle("ball", Sphere(0.02), EYE, centre + (half + 0.07) * turn[:, axis])
        (found,) = CollisionModel(robot, Environment(obstacles=(ball,))).distances(q, 0.2)
        assert found.distance == pytest.approx(0.05, abs=1e-9)
        assert found.normal == pytest.approx(-turn[:, axis], abs=1e-6)


def test_an_object_is_as_far_away_as_one_that_began_where_it_was_moved(robot):
    """Also where its shape does not lie around its frame."""
    corners = np.array([[0.1, 0, 0], [0.5, 0, 0], [0.1, 0.3, 0], [0.1, 0, 0.4], [0.5, 0.3, 0.4]])
    shape = MeshShape(corners, ConvexHull(corners).simplices)
    turn = Rotation.from_rotvec([0.3, -0.8, 0.5]).as_matrix()
    first = FreeObject("stone", shape, turn.T, np.array([1.0, 0.2, 0.6]), 5.0, 0.4)
    environment, q = Environment(objects=(first,)), robot.posture("half_sitting")
    p = np.array([0.4, -0.3, 0.9])
    pose = np.concatenate([p, Rotation.from_matrix(turn).as_quat(scalar_first=True)])
    moved = CollisionModel(robot, environment).distances(q, 1.0, objects={"stone": (turn, p)})
    begun = CollisionModel(robot, environment.placed({"stone": pose})).distances(q, 1.0)
    assert moved.pairs == begun.pairs
    assert moved.distance == pytest.approx(begun.distance, abs=1e-7)
    assert moved.point_b == pytest.approx(begun.point_b, abs=1e-4)
