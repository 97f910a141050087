"""Coordinates that are left out take the nearest place: against brute force."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.scene.placement import make_contact
from mcplan.scene.polygon import max_excess


def turn_between(A, B):
    return float(np.linalg.norm(Rotation.from_matrix(A.T @ B).as_rotvec()))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["floor", "ramp", "wall"])
def test_nearest_place_on_a_surface(robot, environment, name, seed):
    rng = np.random.default_rng(seed)
    surface = environment.support(name)
    R = surface.R @ np.diag([1, -1, -1]) @ Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
    p = surface.p + surface.R @ rng.normal(size=3)
    contact = make_contact(robot, environment, {"patch": "sole", "surface": name}, (R, p))
    # no other yaw turns the patch less
    yaws = np.linspace(-np.pi, np.pi, 721)
    others = [surface.R @ Rotation.from_euler("xz", [np.pi, yaw]).as_matrix() for yaw in yaws]
    assert turn_between(R, contact.R) <= min(turn_between(R, other) for other in others) + 1e-9
    # with that yaw, no other place with the sole on the surface is nearer
    shape = contact.points @ (surface.R.T @ contact.R)[:2].T
    origin = np.array([contact.coordinates["x"], contact.coordinates["y"]])
    assert max_excess(origin + shape, surface.polygon) <= 1e-8
    low, high = surface.polygon.min(axis=0), surface.polygon.max(axis=0)
    grid = np.stack(np.meshgrid(*np.linspace(low, high, 81).T), -1).reshape(-1, 2)
    fits = grid[[max_excess(u + shape, surface.polygon) <= 0 for u in grid]]
    if len(fits):
        distances = np.linalg.norm(surface.p + fits @ surface.R[:, :2].T - p, axis=1)
        assert np.linalg.norm(contact.p - p) <= distances.min() + 1e-8


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["rail", "rung", "pole"])
def test_nearest_grasp(robot, environment, name, seed):
    rng = np.random.default_rng(seed)
    bar = environment.support(name)
    R, p = Rotation.random(random_state=seed).as_matrix(), bar.ends.mean(axis=0) + rng.normal(size=3)
    contact = make_contact(robot, environment, {"patch": "grip", "surface": name}, (R, p))
    along = np.linspace(0, bar.length, 2001)[:, None] * bar.direction + bar.ends[0]
    assert np.linalg.norm(contact.p - p) <= np.linalg.norm(along - p, axis=1).min() + 1e-12
    spec = {"patch": "grip", "surface": name, "along": contact.coordinates["along"]}
    for flip in (False, True):
        for angle in np.linspace(-np.pi, np.pi, 181):
            other = make_contact(robot, environment, spec | {"angle": float(angle), "flip": flip})
            assert turn_between(R, contact.R) <= turn_between(R, other.R) + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_nearest_place_of_a_sole_on_a_bar(robot, environment, seed):
    rng = np.random.default_rng(seed)
    R = np.diag([1.0, -1, -1]) @ Rotation.from_rotvec(0.3 * rng.normal(size=3)).as_matrix()
    p = np.array([0.3, 0.0, 0.3]) + 0.2 * rng.normal(size=3)
    contact = make_contact(robot, environment, {"patch": "sole", "surface": "rung"}, (R, p))
    assert contact.coordinates["flip"] is True
    best = np.linalg.norm(contact.p - p)
    spec = {"patch": "sole", "surface": "rung", "flip": True, "angle": contact.coordinates["angle"]}
    for along in np.linspace(0.08, 0.62, 28):
        for offset in np.linspace(-0.1, 0.13, 24):
            other = make_contact(robot, environment, spec | {"along": float(along), "offset": float(offset)})
            assert np.linalg.norm(other.p - p) >= best - 1e-9
    own = make_contact(robot, environment, {"patch": "sole", "surface": "rung", **contact.coordinates})
    assert own.same_place(contact, 1e-12)


def test_given_coordinates_stay(robot, environment):
    near = (np.diag([1.0, -1, -1]), np.array([5.0, 0.3, 0.4]))
    contact = make_contact(robot, environment, {"patch": "sole", "surface": "floor", "y": -0.5, "yaw": 0.2}, near)
    assert (contact.coordinates["y"], contact.coordinates["yaw"]) == (-0.5, 0.2)
    shape = contact.points @ contact.R[:2].T
    # the shape touches the border
    assert 0.5e-9 > max_excess(contact.p[:2] + shape, environment.support("floor").polygon) > -1e-9


def test_a_place_is_a_fixed_point(robot, environment):
    spec = {"patch": "sole", "surface": "ramp", "x": 0.3, "y": 0.2, "yaw": 0.4}
    contact = make_contact(robot, environment, spec)
    again = make_contact(robot, environment, {"patch": "sole", "surface": "ramp"}, (contact.R, contact.p))
    assert again.same_place(contact, 1e-12)


def test_a_pitched_toe_keeps_the_direction_of_its_edge(robot, environment):
    pitched = np.diag([1.0, -1, -1]) @ Rotation.from_rotvec([0, -1.2, 0]).as_matrix()
    turned = Rotation.from_rotvec([0, 0, 0.4]).as_matrix() @ pitched
    contact = make_contact(robot, environment, {"patch": "toe", "surface": "floor"}, (turned, np.zeros(3)))
    assert contact.coordinates["yaw"] == pytest.approx(0.4)


def test_a_patch_that_fits_nowhere(robot, environment):
    near = (np.diag([1.0, -1, -1]), np.zeros(3))
    with pytest.raises(InputError, match="does not fit on `stone`"):
        make_contact(robot, environment, {"patch": "sole", "surface": "stone"}, near)
    with pytest.raises(InputError, match="does not fit on `ramp` at x 5"):
        make_contact(robot, environment, {"patch": "sole", "surface": "ramp", "x": 5.0}, near)
