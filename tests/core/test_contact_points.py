"""What an engine's contacts come to: held against sums in NumPy, over random contacts of random sides."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.core.contact.model import PATCH_BODY, PATCH_LINK, PATCH_POSITION, PATCH_RADIUS
from mcplan.core.contact.points import (
    CONTACT,
    FORCE,
    INDEX_SIZE,
    LINK,
    NORMAL,
    PATCH,
    POINT_SIZE,
    POSITION,
    split_contacts,
    sum_patches,
)
from mcplan.core.contact.touching import NO_PATCH, Patches

LINKS = 4
LINK_OF = np.array([-1, 0, 1, 2, 3, 4, 1])
"""Of seven shapes: one stands fast, one is an object's, two are of one link."""

PATCH_OF = np.array([NO_PATCH, 0, 1, NO_PATCH, NO_PATCH, NO_PATCH, 2])


def patches(bodies, link_of, offset):
    """Return three patches of which none decides by the position of a point."""
    index, shape = np.zeros((3, 5), int), np.zeros((3, 13))
    index[:, PATCH_BODY], index[:, PATCH_LINK] = bodies, link_of
    shape[:, PATCH_POSITION:PATCH_RADIUS] = offset
    return Patches(index, shape, np.zeros((0, 2)), np.zeros((LINKS, 3), int), np.zeros((3, 12)))


def contacts(seed, count=12):
    random = np.random.default_rng(seed)
    geoms = np.array([random.choice(7, 2, replace=False) for _ in range(count)])
    rows = np.where(random.random(count) < 0.2, -1, 3 * np.arange(count))
    frames = Rotation.random(count, random_state=random).as_matrix()
    forces = random.normal(size=3 * count)
    return rows, geoms, random.normal(size=(count, 3)), frames, forces


def split(rows, geoms, places, frames, forces):
    index, point = np.empty((2 * len(rows), INDEX_SIZE), np.int64), np.empty((2 * len(rows), POINT_SIZE))
    flat = frames.reshape(-1, 9)
    none = patches(0, 0, 0.0)
    active = np.zeros(3, int)
    count = split_contacts(rows, geoms, places, flat, forces, LINK_OF, PATCH_OF, none, active, index, point)
    return index[:count], point[:count]


@pytest.mark.parametrize("seed", range(20))
def test_each_side_that_belongs_to_something_feels_the_force_of_the_other(seed):
    rows, geoms, places, frames, forces = contacts(seed)
    index, point = split(rows, geoms, places, frames, forces)
    expected = []
    for k, row in enumerate(rows):
        if row < 0 or forces[row] <= 0.0:
            continue
        on_second = frames[k].T @ forces[row : row + 3]
        for side, sign in ((0, -1.0), (1, 1.0)):
            mine, other = LINK_OF[geoms[k, side]], LINK_OF[geoms[k, 1 - side]]
            if mine < 0:
                continue
            meets = mine < LINKS and not 0 <= other < LINKS
            patch = PATCH_OF[geoms[k, side]] if meets else NO_PATCH
            expected.append(((mine, patch, k), np.r_[places[k], sign * frames[k, 0], sign * on_second]))
    assert index.tolist() == [list(key) for key, _ in expected]
    np.testing.assert_allclose(point, np.reshape([value for _, value in expected], (-1, POINT_SIZE)), atol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_points_of_a_patch_come_to_its_wrench_and_contacts_of_none_are_named(seed):
    random = np.random.default_rng([seed, 1])
    index, point = split(*contacts(seed))
    before = index.copy()
    bodies, offset, link_of = np.array([0, 2, 1]), random.normal(size=(3, 3)), np.array([0, 7, 1])
    R, p = Rotation.random(3, random_state=random).as_matrix(), random.normal(size=(3, 3))
    wrench, touched, loose = np.full((3, 6), np.nan), np.ones(3, bool), np.empty(len(index), np.int64)
    table = patches(bodies, link_of, offset)
    count = sum_patches(index, point, table, R.reshape(3, 9), p, wrench, touched, loose)
    for patch in range(3):
        mine = before[:, PATCH] == patch
        origin = p[bodies[patch]] + R[bodies[patch]] @ offset[patch]
        arm, force = point[mine, POSITION:NORMAL] - origin, point[mine, FORCE:]
        expected = np.r_[force.sum(axis=0), np.cross(arm, force).sum(axis=0)]
        np.testing.assert_allclose(wrench[patch], expected, atol=1e-13)
        assert touched[patch] == mine.any()
    on_patch = before[:, PATCH] >= 0
    assert index[on_patch, LINK].tolist() == link_of[before[on_patch, PATCH]].tolist()
    assert index[~on_patch].tolist() == before[~on_patch].tolist()
    some = {int(k) for k in before[on_patch, CONTACT]}
    assert loose[:count].tolist() == sorted({int(k) for k in before[:, CONTACT]} - some)
