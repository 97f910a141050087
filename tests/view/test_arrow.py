"""Arrows, cones and centres of pressure: what is drawn has the place, direction and size of what it stands for."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.record.records import PhaseRecord
from mcplan.scene.contact import Contact
from mcplan.view.arrow import MAX_CONE_HEIGHT_M, METRES_PER_NEWTON, MIN_DRAWN_FORCE_N, draw_cone, draw_force
from mcplan.view.drawing import Drawing
from mcplan.view.film import contact_heights
from mcplan.view.plan_film import _forces, _interpolate_force
from mcplan.view.replay import _force
from mcplan.view.shapes import capsule, cone, continuous, tube
from tests.sim.waving_box import waving_run
from tests.view.tracks import Scene

SINGLE = 2e-6  # pages hold single precision


def changing(rng, count=6):
    """Return places and forces that differ from frame to frame."""
    return rng.uniform(-1, 1, (count, 3)), rng.uniform(-300, 300, (count, 3))


def test_an_arrow_starts_where_the_force_acts_and_is_as_long_as_it_is_large():
    place, force = changing(np.random.default_rng(1))
    drawing = Drawing(np.arange(float(len(force))))
    draw_force(drawing, "f", place, force)
    scene = Scene(drawing)
    for k, (p, f) in enumerate(zip(place, force, strict=True)):
        begin, end = scene.ends("f/shaft", k)
        assert begin == pytest.approx(p, abs=SINGLE)
        assert end == pytest.approx(p + f * 0.6 / 600.0, abs=SINGLE)  # 0.6 m for the weight of a humanoid, 600 N
        base, apex = scene.ends("f/head", k)
        assert base == pytest.approx(end, abs=SINGLE)
        assert np.cross(apex - base, f) == pytest.approx(np.zeros(3), abs=SINGLE * 600)
        assert (apex - base) @ f > 0
    (head,) = scene.object["f/head/solid"]["geometries"]
    assert head["radiusTop"] == 0.0 < head["radiusBottom"]  # it tapers where it points to


def test_a_force_below_a_newton_has_no_arrow():
    force = np.array(
        [[0, 0, 0.5 * MIN_DRAWN_FORCE_N], [0, 0, 2.0 * MIN_DRAWN_FORCE_N], [0, -2.0 * MIN_DRAWN_FORCE_N, 0]]
    )
    drawing = Drawing(np.arange(3.0))
    draw_force(drawing, "f", np.zeros((3, 3)), force)
    scene = Scene(drawing)
    for part in ("f/shaft", "f/head"):
        assert [bool(scene.value(part, ".visible", k, True)) for k in range(3)] == [False, True, True]


def test_a_cone_opens_by_the_angle_of_friction_around_the_normal_and_is_as_high_as_the_normal_force():
    rng = np.random.default_rng(2)
    place, _ = changing(rng)
    normal = Rotation.random(6, random_state=3).as_matrix()[:, :, 2]
    along = Rotation.random(6, random_state=4).as_matrix()[:, :, 0]
    across = np.cross(normal, along)
    pressure = np.array([20.0, 100.0, 200.0, 1e4, 80.0, 150.0])
    friction = np.array([0.3, 0.5, 0.7, 0.6, np.nan, 1.2])
    drawing = Drawing(np.arange(6.0))
    draw_cone(drawing, "c", place, pressure[:, None] * normal + 15.0 * across, normal, friction)
    scene = Scene(drawing)
    vertices, _ = cone()
    for k in (0, 1, 2, 3, 5):
        assert scene.value("c", ".visible", k, True)
        offset = scene.place("c", vertices, k) - place[k]
        apex, rim = offset[0], offset[1:]
        height = min(pressure[k] * METRES_PER_NEWTON, MAX_CONE_HEIGHT_M)
        assert apex == pytest.approx(np.zeros(3), abs=SINGLE)
        assert rim @ normal[k] == pytest.approx(np.full(len(rim), height), abs=SINGLE)
        sideways = np.linalg.norm(rim - np.outer(rim @ normal[k], normal[k]), axis=1)
        assert sideways == pytest.approx(np.full(len(rim), friction[k] * height), abs=SINGLE)
    assert not scene.value("c", ".visible", 4, True)  # a grasp has no cone


def patch_on(kind="surface"):
    """Return a contact somewhere on a tilted surface: its patch is turned, its axes are not those of the patch."""
    R = Rotation.from_rotvec([2.9, 0.4, 0.3]).as_matrix()
    axes = R @ np.diag([1.0, -1.0, -1.0])
    corners = np.array([[0.1, 0.05, 0], [-0.1, 0.05, 0], [-0.1, -0.05, 0], [0.1, -0.05, 0]])
    return Contact("sole", "ramp", kind, R, np.array([0.3, -0.2, 0.5]), corners, axes, 0.6, 100.0, 5.0, np.eye(6))


def pushed(contact, local, forces):
    """Return the wrench at the patch's origin of forces at points in patch axes."""
    arms = local @ contact.R.T
    return np.concatenate([forces.sum(axis=0), np.cross(arms, forces).sum(axis=0)])


def test_a_planned_force_acts_at_the_mean_of_its_points_weighted_by_their_pressure():
    contact, rng = patch_on(), np.random.default_rng(5)
    pressure = np.array([10.0, 80.0, 40.0, 5.0])
    forces = pressure[:, None] * contact.axes[:, 2] + rng.uniform(-4, 4, (4, 2)) @ contact.axes[:, :2].T
    stance = SimpleNamespace(wrenches={"sole": pushed(contact, contact.points, forces)})
    place, force, normal, friction = _forces(stance, [contact])["sole"]
    assert place == pytest.approx(contact.p + contact.R @ (pressure @ contact.points) / pressure.sum(), abs=1e-12)
    assert force == pytest.approx(forces.sum(axis=0))
    assert normal == pytest.approx(contact.axes[:, 2])
    assert friction == contact.friction


def test_a_grasp_acts_at_its_patch_and_has_no_cone():
    contact = patch_on("grasp")
    stance = SimpleNamespace(wrenches={"sole": np.array([10.0, 20.0, 30.0, 1.0, 2.0, 3.0])})
    place, _, normal, _ = _forces(stance, [contact])["sole"]
    assert place == pytest.approx(contact.p)
    assert normal == pytest.approx(np.zeros(3))


def test_a_force_grows_from_nothing_and_vanishes_to_nothing_in_place():
    a = (np.zeros(3), np.array([0.0, 0, 100]), np.array([0, 0, 1.0]), 0.5)
    b = (np.ones(3), np.array([0.0, 40, 200]), np.array([0, 0, 1.0]), 0.5)
    for begin, end, place, force in (
        (a, b, [0.25] * 3, [0, 10, 125]),
        (None, b, [1.0] * 3, [0, 10, 50]),
        (a, None, [0.0] * 3, [0, 0, 75]),
    ):
        found = _interpolate_force(begin, end, 0.25)
        assert found[0] == pytest.approx(np.array(place))
        assert found[1] == pytest.approx(np.array(force))
        assert found[3] == 0.5


def test_a_recorded_force_acts_at_the_mean_of_its_points_and_has_the_cone_of_its_contact():
    run = waving_run(samples=60, touch=40)
    frames = np.array([0, 17, 45, 59])
    acting = _force(run, 0, frames)
    for row, k in enumerate(frames):
        mine = run.point_xyz[run.points(k)][:4]
        weight = np.linalg.norm(run.point_force[run.points(k)][:4], axis=1)
        assert acting.force[row] == pytest.approx(run.wrench[k, 0, :3])
        assert acting.place[row] == pytest.approx(weight @ mine / weight.sum())
        assert acting.normal[row] == pytest.approx([0, 0, 1])
        assert acting.friction[row] == 0.7
    tip = _force(run, 1, frames)
    assert tip.force[:2] == pytest.approx(np.zeros((2, 3)))
    assert tip.place[2] == pytest.approx(run.point_xyz[run.points(45)][4])
    assert tip.normal[2] == pytest.approx([-1, 0, 0])


def test_the_ground_is_the_lowest_point_in_contact_and_stays_while_there_is_none():
    points = [np.array([[0, 0, 0.4], [1, 0, 0.2]]), np.zeros((0, 3)), np.array([[0, 0, -0.1]])]
    assert contact_heights(points) == pytest.approx([0.2, 0.2, -0.1])


def test_solids_of_a_replay_have_their_measures():
    vertices, _ = capsule(0.1, 0.5)
    assert np.ptp(vertices, axis=0) == pytest.approx([0.2, 0.2, 0.7], abs=1e-9)
    axis = np.clip(vertices[:, 2], -0.25, 0.25)
    to_axis = np.linalg.norm(vertices - np.column_stack([np.zeros((len(axis), 2)), axis]), axis=1)
    assert to_axis == pytest.approx(np.full(len(axis), 0.1))
    line = np.array([[0, 0, 0], [0.3, 0, 0.1], [0.5, 0.2, 0.1], [0.5, 0.2, 0.6]])
    skin, faces = tube(line, 0.02, around=6)
    rings = skin.reshape(len(line), 6, 3)
    assert rings.mean(axis=1) == pytest.approx(line)
    assert np.linalg.norm(rings - line[:, None], axis=2) == pytest.approx(np.full((4, 6), 0.02))
    assert faces.max() == len(skin) - 1


def test_turns_between_frames_take_the_short_way():
    quat = Rotation.from_rotvec(np.outer(np.linspace(0, 12, 50), [0.3, 0.4, 0.5])).as_quat(scalar_first=True)
    rng = np.random.default_rng(6)
    smooth = continuous(quat * rng.choice([-1.0, 1.0], 50)[:, None])
    assert np.all(np.einsum("ij,ij->i", smooth[1:], smooth[:-1]) > 0)
    assert np.abs(np.einsum("ij,ij->i", smooth, quat)) == pytest.approx(np.ones(50))


def test_phases_of_a_run_are_told_apart_by_number_not_by_name():
    from mcplan.view.palette import band_colours, phase_bands

    run = waving_run(samples=50, touch=20)
    phases = [PhaseRecord(name="shift", stance=0), PhaseRecord(name="swing tip", stance=1)]
    object.__setattr__(run, "record", run.record.model_copy(update={"phases": phases}))
    assert phase_bands(run) == [
        (0.0, pytest.approx(run.t[20]), "shift"),
        (pytest.approx(run.t[20]), pytest.approx(run.t[-1]), "swing tip"),
    ]
    colours = band_colours(["swing tip", "shift", "swing sole"])
    assert colours["swing tip"] == colours["swing sole"] != colours["shift"]
