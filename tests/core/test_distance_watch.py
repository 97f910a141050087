"""A watch forgets nothing that is near: it finds what a look at all pairs finds, however bodies and objects move."""

import numpy as np
import pytest

from mcplan.core.distance.many import DistanceScratch, fill_distances, write_shape_poses
from mcplan.core.distance.pair import PAIR_SIZE
from mcplan.core.distance.shape import BODY, scratch
from mcplan.core.distance.watch import (
    WATCH_SLACK,
    bound_base_motion,
    bound_body_motion,
    new_watch,
    scan_all_pairs,
    watch_distances,
)
from mcplan.core.rigid_body.manifold import integrate
from mcplan.core.rigid_body.tree import workspace
from mcplan.robot.solid import pack
from mcplan.util.arrays import read_only
from tests.core.random_shapes import KINDS, placed, random_pose, random_shape
from tests.core.random_trees import build_tree, random_bodies, random_state

MARGIN = 0.03


class Scene:
    """Random shapes on a random mechanism with joints that turn, slide and follow others, and around it."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.tree = build_tree(random_bodies(rng, 9, mimic=0.3))
        bodies = len(self.tree.topology)
        kinds = [*rng.choice(KINDS[:-1], bodies), *KINDS]
        solids = [
            placed(random_shape(rng, k)[0], random_pose(rng, 0.1 if i < bodies else 2.0)) for i, k in enumerate(kinds)
        ]
        owners = [*range(bodies), *[-1] * len(KINDS)]
        self.shapes = pack(solids, owners)
        pairs = [(i, j) for i in range(bodies) for j in range(i + 1, len(solids))]
        self.pairs = read_only(np.array(pairs, np.int64))
        self.q = random_state(rng, len(self.tree.armature))[0]

    def space(self):
        return DistanceScratch(
            workspace(self.tree), np.zeros((len(self.shapes.index), 12)), np.zeros(len(self.pairs)), scratch()
        )

    def watch(self):
        return new_watch(len(self.q), len(self.tree.topology), len(self.shapes.index), len(self.pairs))

    def outputs(self):
        return np.zeros(len(self.pairs), np.int64), np.zeros((len(self.pairs), PAIR_SIZE))

    def move(self, size):
        """Go a random way, now and then far, now and then with an object."""
        rng = self.rng
        far = 100.0 if rng.random() < 0.02 else 1.0
        integrate(self.q, far * size * rng.normal(size=len(self.tree.armature)), 1.0, self.q)
        if rng.random() < 0.05:
            offset = self.shapes.offset.copy()
            R, p = random_pose(rng, far * 0.02)
            offset[-2, 9:] += p
            if rng.random() < 0.3:
                offset[-2, :9] = R.ravel()
            self.shapes = self.shapes._replace(offset=read_only(offset))

    def pass_by(self, x):
        """Stand where only the base moves, along what stands in the world."""
        self.q[0] = x


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("joints_move", [True, False])
def test_the_same_pairs_with_the_same_values_as_by_a_look_at_all(seed, joints_move):
    scene, total, looked = Scene(seed), 0, 0
    watch, mine, fresh = scene.watch(), scene.space(), scene.space()
    wanted = (scene.rng.random(len(scene.pairs)) < 0.9).astype(np.int64)
    margins = np.where(wanted == 1, MARGIN, -np.inf)
    for x in np.linspace(-5.0, 5.0, 400):
        if joints_move:
            scene.move(3e-4)
        else:
            scene.pass_by(x)
        before = watch.q.copy()
        found, values = scene.outputs()
        count = watch_distances(
            scene.tree, scene.shapes, scene.pairs, MARGIN, wanted, scene.q, mine, watch, found, values
        )
        right, exact = scene.outputs()
        expected = fill_distances(scene.tree, scene.shapes, scene.pairs, margins, scene.q, fresh, right, exact)
        assert found[:count].tolist() == right[:expected].tolist()
        np.testing.assert_allclose(values[:count], exact[:expected], rtol=0.0, atol=1e-9)
        total, looked = total + count, looked + (watch.q != before).any()
    assert total > (400 if joints_move else 20)
    assert looked < 200 or not joints_move


@pytest.mark.parametrize("seed", range(6))
def test_no_point_moves_farther_than_its_bound(seed):
    scene = Scene(seed)
    watch, space, rng = scene.watch(), scene.space(), scene.rng
    scan_all_pairs(scene.tree, scene.shapes, scene.pairs, MARGIN, scene.q, space, watch)
    links = np.flatnonzero(scene.shapes.index[:, BODY] >= 0)
    directions = rng.normal(size=(20, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]

    def points(q):
        """Points on the bounding spheres of all links, in the world."""
        write_shape_poses(scene.tree, scene.shapes, q, space)
        ball = scene.shapes.size[links, 4]
        return [
            r * directions @ x[:9].reshape(3, 3).T + x[9:] + q[:3] for x, r in zip(space.pose[links], ball, strict=True)
        ]

    old, tight = points(scene.q), 0.0
    for size in (1e-4, 1e-3, 1e-2):
        for k in range(6, len(scene.tree.armature) + 1):
            v = size * rng.normal(size=len(scene.tree.armature))
            if k < len(v):  # one joint alone
                v[np.arange(len(v)) != k] = 0.0
            q = np.zeros(len(scene.q))
            integrate(scene.q, v, 1.0, q)
            if bound_body_motion(scene.tree, watch, q) > WATCH_SLACK:
                continue
            base = bound_base_motion(watch, q)
            for body, before, after in zip(scene.shapes.index[links, BODY], old, points(q), strict=True):
                way = np.linalg.norm(after - before, axis=1).max()
                assert way <= watch.motion[body] + base + 1e-6
                tight = max(tight, way / max(watch.motion[body] + base, 1e-6))
    assert tight > 0.5


def test_the_way_of_the_base_covers_its_turn_and_not_much_more():
    scene = Scene(0)
    watch = scene.watch()
    watch.q[:], watch.reach[0] = scene.q, 1.0
    for angle in (0.01, 0.5, 3.0):
        v, q = np.zeros(len(scene.tree.armature)), np.zeros(len(scene.q))
        v[3:6] = angle * np.array([0.6, 0.0, 0.8])
        integrate(scene.q, v, 1.0, q)
        assert 2.0 * np.sin(angle / 2) <= bound_base_motion(watch, q) + 1e-6 <= 1.01 * angle + 2e-6
        q[3:7] *= -3.0  # the same rotation
        assert 2.0 * np.sin(angle / 2) <= bound_base_motion(watch, q) + 1e-6


@pytest.mark.parametrize("change", [np.asarray, np.transpose, np.asfortranarray, lambda a: a[:, ::2]])
def test_what_is_given_to_kernels_is_contiguous_and_read_only_whatever_it_is_made_of(change):
    given = change(np.arange(12.0).reshape(3, 4))
    found = read_only(given)
    np.testing.assert_array_equal(found, given)
    assert found.flags.c_contiguous
    assert not found.flags.writeable
