"""Cells of contacts: what their rows allow is what the coordinates of a scenario file mean."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.core.posture.rows import LINE_ROWS, POSE_ROWS, POSITION_ROWS
from mcplan.errors import InputError
from mcplan.planning.posture.freedom import GRIP_MARGIN_M, Freedom, contact_rows, resolve_contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.polygon import max_excess

STEP = 1e-6
RAMP = Rotation.from_euler("xyz", [0.3, -0.4, 0.7]).as_matrix()


@pytest.fixture(scope="module")
def place(scene):
    polygon = np.array([[0.0, 0.0], [0.7, -0.1], [0.8, 0.6], [0.1, 0.7]])
    environment = Environment(
        surfaces=(Surface("ramp", RAMP, np.array([1.0, 0.5, 0.2]), polygon),),
        bars=(Bar("bar", np.array([[0.0, 0.5, 0.8], [0.9, 0.6, 0.8]]), 0.02),),
    )

    def made(patch, support, **coordinates):
        return make_contact(scene.ROBOT, environment, {"patch": patch, "surface": support, **coordinates})

    return scene.ROBOT, environment, made


def twist(before, after):
    """Return the motion (6,) from one contact to another, in patch axes at the patch origin."""
    turn = Rotation.from_matrix(before.R.T @ after.R).as_rotvec()
    return np.concatenate([before.R.T @ (after.p - before.p), turn])


def plain(rows):
    """Return the rows (k, 6) of the cell that bound a motion of the patch, and their bounds."""
    cell = rows.cell[rows.cell[:, 1] == 0.0]
    return cell[:, 2:8], cell[:, 8], cell[:, 9]


CASES = [
    ("left_hand", "ramp", {"x": 0.4, "y": 0.3, "yaw": 0.5}, {"x": 0.02, "y": 0.03, "yaw": 0.2}),
    ("left_hand", "ramp", {"x": 0.4, "y": 0.3, "yaw": -2.5}, {"y": 0.03}),
    ("left_grip", "bar", {"along": 0.4, "angle": 0.3, "flip": False}, {"along": 0.05, "angle": 0.4}),
    ("left_grip", "bar", {"along": 0.4, "angle": -1.0, "flip": True}, {"along": 0.05, "angle": 0.4}),
]


@pytest.mark.parametrize(("patch", "support", "coordinates", "widths"), CASES)
def test_rows_of_a_cell_measure_its_coordinates_and_leave_no_other_free(place, patch, support, coordinates, widths):
    robot, environment, made = place
    here = made(patch, support, **coordinates)
    rows = contact_rows(robot, environment, here, Freedom(**widths))
    assert rows.mode == POSE_ROWS
    assert np.linalg.matrix_rank(rows.select) == len(rows.select) == 6 - len(widths)
    A, low, high = plain(rows)
    for k, (name, width) in enumerate(widths.items()):
        moved = twist(here, made(patch, support, **coordinates | {name: coordinates[name] + STEP})) / STEP
        assert A[k] @ moved == pytest.approx(1.0, abs=1e-5)
        assert (low[k], high[k]) == (-width, width)
        assert np.delete(A[: len(widths)], k, axis=0) @ moved == pytest.approx(np.zeros(len(widths) - 1), abs=1e-5)
        assert rows.select @ moved == pytest.approx(np.zeros(len(rows.select)), abs=1e-5)


def test_a_cell_ends_where_the_patch_would_leave_its_surface(place):
    robot, environment, made = place
    here = made("left_hand", "ramp", x=0.25, y=0.2, yaw=0.9)
    A, low, high = plain(contact_rows(robot, environment, here, Freedom(x=0.3, y=0.3)))
    surface, told = environment.support("ramp"), [0, 0]
    shape = (here.world_points - here.p) @ RAMP[:, :2]
    for dx, dy in np.random.default_rng(0).uniform(-0.3, 0.3, (300, 2)):
        moved = np.concatenate([here.R.T @ RAMP[:, :2] @ [dx, dy], np.zeros(3)])
        values = A @ moved
        gap = max_excess(np.array([0.25 + dx, 0.2 + dy]) + shape, surface.polygon)
        if abs(gap) > 1e-6:
            allowed = bool(np.all((low - 1e-9 <= values) & (values <= high + 1e-9)))
            assert allowed == (gap < 0.0)
            told[allowed] += 1
    assert min(told) > 20


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("along", [0.05, 0.85])
def test_a_grasp_does_not_run_over_the_end_of_its_bar(place, flip, along):
    robot, environment, made = place
    bar = environment.support("bar")
    here = made("left_grip", "bar", along=along, angle=0.2, flip=flip)
    A, low, high = plain(contact_rows(robot, environment, here, Freedom(along=0.5)))
    forward = twist(here, made("left_grip", "bar", along=along + STEP, angle=0.2, flip=flip)) / STEP
    rate = float(A[0] @ forward)
    reach = np.sort([low[0] / rate, high[0] / rate])
    assert along + reach == pytest.approx(
        [max(GRIP_MARGIN_M, along - 0.5), min(bar.length - GRIP_MARGIN_M, along + 0.5)]
    )


def test_a_sole_on_a_bar_stays_within_its_length_and_its_own(place):
    robot, environment, made = place
    bar = environment.support("bar")
    here = made("left_sole", "bar", along=0.4, offset=0.05, angle=0.0)
    rows = contact_rows(robot, environment, here, Freedom(along=2.0, offset=2.0, angle=np.inf))
    assert rows.mode == LINE_ROWS
    assert rows.cell[:, 1].tolist() == [1.0, 2.0]
    (offset_low, offset_high), (low, high) = rows.cell[:, 8:]
    x = robot.patches["left_sole"].polygon[:, 0]
    assert (offset_low, offset_high) == pytest.approx((x.min(), x.max()))
    for along in (low, high):
        made("left_sole", "bar", along=float(along), offset=0.05, angle=0.0)
    # the sole is not as wide to both sides; what it cannot do to one of them it does not to the other
    with pytest.raises(InputError):
        made("left_sole", "bar", along=float(low) - 0.03, offset=0.05, angle=0.0)
    with pytest.raises(InputError):
        made("left_sole", "bar", along=float(high) + 0.03, offset=0.05, angle=0.0)
    assert bar.length - high == pytest.approx(low)
    near = contact_rows(robot, environment, here, Freedom(along=0.1, offset=0.02)).cell[:, 8:]
    assert near == pytest.approx(np.array([[0.03, 0.07], [0.3, 0.5]]))


def test_points_have_no_rotation_and_fixed_contacts_no_cell(place):
    robot, environment, made = place
    point = contact_rows(robot, environment, made("left_hand", "ramp", x=0.4, y=0.3, yaw=0.0, kind="point"), None)
    assert (point.mode, len(point.select), len(point.cell)) == (POSITION_ROWS, 3, 0)
    fixed = contact_rows(robot, environment, made("left_hand", "ramp", x=0.4, y=0.3, yaw=0.0), Freedom())
    assert (fixed.mode, len(fixed.select), len(fixed.cell)) == (POSE_ROWS, 6, 0)


def test_an_edge_keeps_its_height_and_turns_about_itself_alone(place):
    """Tilting across the edge is ruled out, rolling over it is not; the yaw has its cell."""
    robot, environment, made = place
    here = made("left_toe", "ramp", x=0.4, y=0.3, yaw=0.3)
    rows = contact_rows(robot, environment, here, Freedom(x=0.02, y=0.02, yaw=0.1))
    u = here.points[1] - here.points[0]
    u = u / np.linalg.norm(u)
    across = np.cross([0.0, 0.0, 1.0], u)
    up, tilt, over = (np.concatenate(v) for v in (([0, 0, 1.0], [0, 0, 0]), ([0, 0, 0], across), ([0, 0, 0], u)))
    assert np.abs(rows.select @ up).max() == pytest.approx(1.0)
    # the kernel reads the second row as the direction of the edge: its angle to the surface is what is kept
    assert rows.select[1, 3:] == pytest.approx(u)
    assert np.abs(rows.select[0] @ tilt) + np.abs(rows.select[0] @ over) == pytest.approx(0.0)
    turn = rows.cell[rows.cell[:, 1] == 3.0]
    assert turn[0, 8:] == pytest.approx([-np.sin(0.1), np.sin(0.1)])


def test_a_settled_contact_is_the_nearest_place_with_the_given_coordinates_kept(place):
    robot, environment, made = place
    start = made("left_hand", "ramp", x=0.4, y=0.3, yaw=0.5)
    goal = made("left_hand", "ramp", x=0.4312347, y=0.28, yaw=0.7123456)
    found = resolve_contact(robot, environment, start, Freedom(x=0.1, yaw=1.0), (goal.R, goal.p))
    assert found.coordinates["y"] == 0.3
    assert found.coordinates["x"] == pytest.approx(0.4312347, abs=1e-8)
    assert found.coordinates["yaw"] == pytest.approx(0.7123456, abs=1e-8)
