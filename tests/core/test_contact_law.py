"""The law of one contact against its definition, and the plane geometry beneath contact detection against sampling."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from mcplan.core.algebra import polygon as geometry, pose as poses
from mcplan.core.contact.collect import add_grasp_rows
from mcplan.core.contact.law import cone_state, project, stiffness
from mcplan.core.contact.model import (
    ANCHOR,
    AXES,
    BOUNDED_BY_BALL,
    ERROR,
    FRICTION,
    GRASP_SIZE,
    INDEX_SIZE,
    IS_FREE,
    MAX_WRENCH,
    OPEN,
    SLIDE,
    STICK,
    VALUE_SIZE,
)

CONED = BOUNDED_BY_BALL + 1


def bare(kernel):
    """A kernel that is not compiled: these are small."""
    return getattr(kernel, "py_func", kernel)


def cone_impulse(y, tangential, normal, mu):
    state = bare(cone_state)(*y, tangential, normal, mu)
    p = np.empty(3)
    bare(project)(CONED, state, *y, tangential, normal, mu, p)
    return state, p


def cases(count=200):
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield rng.normal(size=3), rng.uniform(0.3, 2.0), rng.uniform(0.3, 2.0), rng.uniform(0.1, 1.2)


def test_the_impulse_is_the_nearest_point_of_the_cone_in_the_norm_of_the_compliance():
    """Projection: p in K, R (y - p) in the polar cone, and at right angles to p."""
    seen = set()
    for y, tangential, normal, mu in cases():
        state, p = cone_impulse(y, tangential, normal, mu)
        seen.add(state)
        assert np.hypot(p[0], p[1]) <= mu * p[2] + 1e-12
        off = np.array([tangential, tangential, normal]) * (y - p)
        assert off @ p == pytest.approx(0.0, abs=1e-12)
        assert np.hypot(off[0], off[1]) * mu + off[2] <= 1e-12  # the polar cone of friction
        assert (state == STICK) == bool(np.allclose(p, y))
        assert (state == OPEN) == bool(np.allclose(p, 0.0))
    assert seen == {STICK, SLIDE, OPEN}


def test_with_an_infinite_friction_nothing_slides():
    for y, tangential, normal, _ in cases():
        assert bare(cone_state)(*y, tangential, normal, np.inf) == (STICK if y[2] > 0.0 else OPEN)


@pytest.mark.parametrize("mu", [0.0, 0.5, np.inf])
def test_a_contact_that_parts_straight_away_does_not_pull(mu):
    for z in (-1.0, 0.0):
        assert cone_impulse(np.array([0.0, 0.0, z]), 0.5, 0.5, mu)[1] == pytest.approx(0.0, abs=0.0)


def test_without_friction_the_impulse_is_along_the_normal():
    for y, tangential, normal, _ in cases():
        _, p = cone_impulse(y, tangential, normal, 0.0)
        assert p == pytest.approx([0.0, 0.0, max(y[2], 0.0)])


def test_the_impulse_of_a_hold_is_cut_to_its_ball():
    y, p = np.array([3.0, -4.0, 12.0]), np.empty(3)
    bare(project)(BOUNDED_BY_BALL, SLIDE, *y, 0.5, 0.5, 2.0, p)
    assert p == pytest.approx(2.0 * y / 13.0)
    bare(project)(BOUNDED_BY_BALL, STICK, *y, 0.5, 0.5, 20.0, p)
    assert p == pytest.approx(y)


@pytest.mark.parametrize("kind", [CONED, BOUNDED_BY_BALL])
def test_the_stiffness_is_the_derivative_of_minus_the_impulse_by_the_velocity(kind):
    """y = (aim - velocity) / R: by finite differences of the projection, away from where the state changes."""
    seen = set()
    for y, tangential, normal, mu in cases(60):
        if kind == BOUNDED_BY_BALL:
            tangential = normal

        def impulse(y, tangential=tangential, normal=normal, mu=mu):
            if kind == CONED:
                return cone_impulse(y, tangential, normal, mu)
            state, p = STICK if np.linalg.norm(y) <= mu else SLIDE, np.empty(3)
            bare(project)(kind, state, *y, tangential, normal, mu, p)
            return state, p

        state, _ = impulse(y)
        R, expected = np.array([tangential, tangential, normal]), np.empty((3, 3))
        states = {state}
        for k in range(3):
            step = 1e-6 * np.eye(3)[k]
            (a, after), (b, before) = impulse(y + step), impulse(y - step)
            states |= {a, b}
            expected[:, k] = (after - before) / 2e-6 / R[k]
        if len(states) > 1:
            continue
        seen.add(state)
        G = np.empty((3, 3))
        bare(stiffness)(kind, state, *y, tangential, normal, mu, G)
        assert pytest.approx(expected, abs=1e-6) == G
        assert pytest.approx(G.T) == G
        assert np.linalg.eigvalsh(G).min() > -1e-9
    assert seen == ({STICK, SLIDE, OPEN} if kind == CONED else {STICK, SLIDE})


def polygon(rng):
    points = rng.normal(size=(9, 2))
    return points[ConvexHull(points).vertices]


@pytest.mark.parametrize("seed", range(4))
def test_points_are_inside_of_a_polygon_or_nearest_to_its_border(seed):
    rng = np.random.default_rng(seed)
    corners = np.vstack([rng.normal(size=(2, 2)), polygon(rng)])  # it begins at the third row
    mine = corners[2:]
    hull = ConvexHull(mine).equations
    share = np.linspace(0, 1, 401)[:, None]
    border = np.vstack([a + share * (b - a) for a, b in zip(mine, np.roll(mine, -1, axis=0), strict=True)])
    for x, y in 1.5 * rng.normal(size=(60, 2)):
        depth = float((hull[:, :2] @ [x, y] + hull[:, 2]).max())
        if abs(depth) > 1e-6:
            assert bare(geometry.is_inside)(corners, 2, len(mine), x, y) == (depth < 0.0)
        near = np.array(bare(geometry.nearest_on_border)(corners, 2, len(mine), x, y))
        least = np.linalg.norm(border - [x, y], axis=1).min()
        assert np.linalg.norm(near - [x, y]) <= least + 1e-12
        assert np.linalg.norm(border - near, axis=1).min() < 0.01


@pytest.mark.parametrize("size", [2, 5])
def test_what_is_cut_to_a_polygon_is_the_part_inside_at_its_own_height(size):
    rng = np.random.default_rng(5)
    kept = 0
    for _ in range(40):
        corners = polygon(rng)
        own = rng.normal(size=(2, 2)) if size == 2 else polygon(rng)
        slope = rng.normal(size=3)
        clip = np.zeros((2, 40, 3))
        clip[0, : len(own)] = np.column_stack([own, own @ slope[:2] + slope[2]])
        left = bare(geometry.clip_polygon)(corners, 0, len(corners), clip, len(own))
        found = clip[0, :left]
        assert found[:, 2] == pytest.approx(found[:, :2] @ slope[:2] + slope[2], abs=1e-9)
        hull = ConvexHull(corners).equations
        assert np.all(found[:, :2] @ hull[:, :2].T + hull[:, 2] < 1e-9)
        weight = rng.dirichlet(np.ones(len(own)), 400)
        inside = np.all(weight @ own @ hull[:, :2].T + hull[:, 2] < 0, axis=1)
        if not inside.any():
            continue
        kept += 1
        assert left >= 2
        points = (weight @ own)[inside]
        if size == 2:
            along = own[1] - own[0]
            ends = np.sort(found[:, :2] @ along)
            assert np.all((points @ along >= ends[0] - 1e-9) & (points @ along <= ends[-1] + 1e-9))
        elif left > 2:
            part = ConvexHull(found[:, :2]).equations
            assert np.all(points @ part[:, :2].T + part[:, 2] < 1e-9)
    assert kept > 10


@pytest.mark.parametrize("free", [(), (1,), (4,), (0, 5)])
@pytest.mark.parametrize("seed", range(3))
def test_a_hold_counts_how_far_the_hand_has_moved_and_turned_from_where_it_closed(seed, free):
    """In axes of the hand, as vectors from there to here; what the hold leaves free does not count."""
    rng = np.random.default_rng(seed)
    closed, shift, turn = Rotation.random(rng=rng), rng.normal(size=3), 0.02 * rng.normal(size=3)
    now = closed * Rotation.from_rotvec(turn)
    frame = np.concatenate([now.as_matrix().ravel(), shift])[None]
    grasp = np.zeros((1, GRASP_SIZE))
    grasp[0, ANCHOR : ANCHOR + 9], grasp[0, MAX_WRENCH : MAX_WRENCH + 2] = closed.as_matrix().ravel(), (200.0, 9.0)
    grasp[0, [IS_FREE + k for k in free]] = 1.0
    scene = SimpleNamespace(patch_index=np.zeros((1, 9), int))
    touch = SimpleNamespace(
        overflow=np.zeros(1, int), index=np.zeros((2, INDEX_SIZE), int), value=np.zeros((2, VALUE_SIZE))
    )
    assert bare(add_grasp_rows)(scene, grasp, 0, 1, frame, touch, 0) == 2
    kept = [k not in free for k in range(6)]
    expected = np.concatenate([now.inv().apply(shift), turn]) * kept
    assert touch.value[:, ERROR : ERROR + 3].ravel() == pytest.approx(expected, abs=1e-4)
    assert touch.value[:, FRICTION] == pytest.approx([200.0, 9.0])
    axes = np.tile(now.as_matrix().T, (2, 1)) * np.array(kept)[:, None]
    assert touch.value[:, AXES : AXES + 9].reshape(6, 3) == pytest.approx(axes)


def test_poses_are_composed_and_points_go_out_and_in():
    rotations = Rotation.random(2, random_state=3).as_matrix()
    places = np.array([[0.3, -1.0, 2.0], [0.5, 0.7, -0.2]])
    pose = np.hstack([rotations.reshape(2, 9), places])
    out = np.zeros((1, 12))
    bare(poses.compose)(pose, 0, pose, 1, out, 0)
    assert out[0, :9].reshape(3, 3) == pytest.approx(rotations[0] @ rotations[1])
    assert out[0, 9:] == pytest.approx(places[0] + rotations[0] @ places[1])
    point = np.array([0.1, 0.2, 0.3])
    world = np.array(bare(poses.to_world)(pose, 0, *point))
    assert world == pytest.approx(places[0] + rotations[0] @ point)
    assert np.array(bare(poses.to_local)(pose, 0, *world)) == pytest.approx(point)


def test_a_direction_across_another_is_a_unit_vector_at_right_angles():
    for n in [*Rotation.random(50, random_state=1).as_matrix()[:, 2], *np.eye(3), *-np.eye(3)]:
        t = np.array(bare(poses.perpendicular)(*n))
        assert t @ n == pytest.approx(0.0, abs=1e-12)
        assert np.linalg.norm(t) == pytest.approx(1.0)
