"""The certificate of objects: what the ground below one can hold, and motions that follow from what touches it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.certificate.independent import integrate
from mcplan.certificate.object_checks import (
    MAX_DISTANCE,
    _balance,
    _friction,
    _integration,
    _unsupported,
    run_clearance,
)
from mcplan.certificate.recomputed_run import NONE
from mcplan.certificate.transition_track import TransitionTrack
from mcplan.record.world import WorldRecord
from mcplan.robot.description import Box
from mcplan.scene.contact import Carrier
from mcplan.scene.environment import Environment, FreeObject, Surface
from tests.statics.contacts import surface_contact

G, BOX, DT, LINKS = 9.81, 20.0, 0.001, 3


def pushed(depth, friction, height, force, hands=1):
    """A stance whose hands push a box on the floor with a force (3,) between them; the robot feels the opposite."""
    middle = np.array([0.5 + depth / 2, 0.3, 0.0])
    rest = surface_contact("box", middle, half=(depth / 2, 0.3), friction=friction)
    carrier = Carrier("box", BOX, middle + np.array([0.0, 0.0, 0.5]), rest)
    places = [[0.5, 0.3 + y, height] for y in ((0.0,) if hands == 1 else (0.2, -0.2))]
    contacts = [
        replace(surface_contact(f"hand{k}", p, (-1.0, 0.0, 0.0), kind="point"), carrier=carrier)
        for k, p in enumerate(places)
    ]
    felt = np.concatenate([-np.array(force) / hands, np.zeros(3)])
    return SimpleNamespace(contacts=contacts, wrenches={contact.patch: felt for contact in contacts})


def unsupported(stance):
    """How far the box of a stance is from being held (N, N m)."""
    return _unsupported(stance, stance.contacts[0].carrier)


@pytest.mark.parametrize("hands", [1, 2])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize(
    ("depth", "friction", "height", "most"),
    [(1.0, 0.4, 0.3, 0.4 * BOX * G), (0.4, 0.7, 0.9, BOX * G * 0.2 / 0.9)],
    ids=["slides", "tips"],
)
def test_a_box_is_held_until_it_slides_or_tips(depth, friction, height, most, sign, hands):
    for share, held in ((0.0, True), (0.99, True), (1.05, False)):
        missing = unsupported(pushed(depth, friction, height, [sign * share * most, 0.0, 0.0], hands))
        assert (missing < 1e-6) == held
        assert held or missing > 0.01 * most


def test_what_lifts_a_box_off_the_ground_is_missing_below_it():
    assert unsupported(pushed(1.0, 0.5, 0.5, [0.0, 0.0, -300.0])) < 1e-6
    assert unsupported(pushed(1.0, 0.5, 0.5, [0.0, 0.0, 1.2 * BOX * G])) > 0.1 * BOX * G


def evidence(q, v, points=(), physics="contact"):
    """Two objects (N, 2, 7), (N, 2, 6), and points (object, place, force) that touch them in each sample."""
    count = len(q)
    run = SimpleNamespace(
        dt=DT,
        point_link=np.array([LINKS + i for _ in range(count) for i, _, _ in points], int),
        point_xyz=np.array([p for _ in range(count) for _, p, _ in points]).reshape(-1, 3),
        point_force=np.array([f for _ in range(count) for _, _, f in points]).reshape(-1, 3),
    )

    class Recorded(SimpleNamespace):
        def __len__(self):
            return count

    found = len(run.point_link)
    return SimpleNamespace(
        run=Recorded(**vars(run)),
        record=SimpleNamespace(links=["a", "b", "c"], objects=["first", "second"], physics=physics),
        tolerances=SimpleNamespace(eom=1e-6, integration=1e-9, force=1e-6),
        point_sample=np.repeat(np.arange(count), len(points)),
        point_contact_index=np.full(found, NONE),
        contacts=[],
        time=lambda k: f"t = {k * DT:.3f} s",
    )


TURN = Rotation.from_rotvec([0.0, 0.0, np.pi / 2])
PLACES = np.array([[2.0, 1.0, 0.5], [-1.0, 3.0, 0.8]])
BODY = SimpleNamespace(
    name="second",
    mass=BOX,
    com=[0.0, 0.0, 0.0],
    inertia=np.diag([1.0, 2.0, 3.0]).tolist(),
    up=[0, 0, 1.0],
    friction=0.4,
)


def moving(acceleration, samples=5, speed=(0.0,) * 6):
    """Poses and velocities of two objects, the second of which gains speed (6,) from step to step; the first rests."""
    q, v = np.zeros((samples, 2, 7)), np.zeros((samples, 2, 6))
    q[:, :, :3], q[:, :, 3:] = PLACES, TURN.as_quat(scalar_first=True)
    v[:, 1] = speed + DT * np.arange(samples)[:, None] * np.asarray(acceleration)
    for k in range(1, samples):
        q[k, 1] = integrate(q[k - 1 : k, 1], v[k : k + 1, 1], DT)[0]
    return q, v


def test_what_falls_freely_is_touched_by_nothing_and_what_rests_is_held():
    falling, resting = moving([0, 0, -G, 0, 0, 0]), moving(np.zeros(6))
    assert _balance(evidence(*falling), [(1, BODY)], *falling).passed
    found = _balance(evidence(*resting), [(1, BODY)], *resting)
    assert found.value == pytest.approx(BOX * G)
    held = evidence(*resting, [(1, PLACES[1], [0.0, 0.0, BOX * G])])
    assert _balance(held, [(1, BODY)], *resting).passed
    # what holds the other one holds this one not
    other = evidence(*resting, [(0, PLACES[0], [0.0, 0.0, BOX * G])])
    assert not _balance(other, [(1, BODY)], *resting).passed


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_moment_turns_an_object_by_the_inertia_about_the_axis_of_the_world(sign):
    """Turned by 90 degrees about z, its y axis lies along the world's -x: there it has 2 kg m² and not 1."""
    alpha = sign * 0.5
    q, v = moving([0, 0, 0, alpha, 0, 0])
    for inertia, passes in ((2.0, True), (1.0, False)):
        couple = inertia * alpha / (2 * 0.3)  # at 0.3 m to either side along y
        points = [
            (1, PLACES[1] + [0.0, side * 0.3, 0.0], [0.0, 0.0, BOX * G / 2 + side * couple]) for side in (-1.0, 1.0)
        ]
        found = _balance(evidence(q, v, points), [(1, BODY)], q, v)
        assert found.passed == passes


def test_a_quaternion_and_its_negative_are_the_same_pose():
    q, v = moving([0.5, 0.0, 0.0, 0.0, 0.3, 0.0], speed=(0.1, 0, 0, 0.4, 0, 0))
    assert _integration(evidence(q, v), q, v).passed
    flipped = q.copy()
    flipped[2:4, 1, 3:] *= -1.0
    assert _integration(evidence(flipped, v), flipped, v).passed
    for column in range(7):
        off = q.copy()
        off[2, 1, column] += 1e-6
        assert not _integration(evidence(off, v), off, v).passed


TWO, APART, STEP = ((0, 1, 0), (1, 2, 0)), ((0, 1, 0), (1.1, 2, 0)), ((0, 1, 0), (1, 2, 0.1))


@pytest.mark.parametrize(
    ("floor", "shift", "turn", "does"),
    [
        (TWO, [1.0, 0.3, 0.0], 0.0, True),  # over the seam
        (APART, [1.0, 0.0, 0.0], 0.0, False),  # over a gap
        (APART, [0.0, 0.3, 0.0], 0.0, True),  # beside it
        (STEP, [1.0, 0.0, 0.0], 0.0, False),
        (TWO, [1.6, 0.0, 0.0], 0.0, False),  # beyond the edge
        (TWO, [1.0, 0.0, 1e-4], 0.0, False),
        (TWO, [1.0, 0.0, 0.0], 1e-4, False),
        (TWO, [1.0, 0.0, 0.0], -1e-4, False),
    ],
)
def test_sliding_objects_stay_above_one_plane(floor, shift, turn, does, monkeypatch):
    """Whatever the planner says of it."""
    monkeypatch.setattr("mcplan.certificate.transition_track.slides", lambda *_: not does, raising=False)
    surfaces = [
        Surface(f"floor{k}", polygon=[[a, -1], [b, -1], [b, 1], [a, 1]], xyz=(0, 0, z))
        for k, (a, b, z) in enumerate(floor)
    ]
    rest = surface_contact("box", [0.5, 0.0, 0.0], half=(0.2, 0.2))
    ends = [Carrier("box", BOX, rest.p, rest), Carrier("box", BOX, rest.p + shift, replace(rest, p=rest.p + shift))]
    hands = [replace(surface_contact("hand", end.com, (-1.0, 0.0, 0.0)), carrier=end) for end in ends]
    begin = np.r_[rest.p, 1.0, 0.0, 0.0, 0.0]
    end = np.r_[ends[1].com, Rotation.from_euler("z", turn).as_quat(scalar_first=True)]
    segment, curve = SimpleNamespace(contacts=(hands[1],)), SimpleNamespace(times=np.array([0.0, 2.0]))
    poses = {"box": begin}, {"box": end}
    track = TransitionTrack(1, 0, "", segment, curve, (hands[0],), (), *poses, Environment(surfaces))
    for t in (0.0, 1.0, 2.0):
        (found,) = track.closed_at(t)
        assert (found.carrier.rest is not None) == (does or t != 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_hands_go_along_with_an_object_however_it_lies_and_turns(seed):
    """Each stays where it is in the frame of the object, and ends where that frame does."""
    rng = np.random.default_rng(seed)
    begin, end = (
        np.concatenate([rng.normal(size=3), Rotation.random(random_state=rng).as_quat(scalar_first=True)])
        for _ in range(2)
    )
    held = Carrier("box", BOX, begin[:3], None)
    hands = tuple(
        replace(surface_contact(f"hand{k}", rng.normal(size=3), rng.normal([0, 0, 3])), carrier=held) for k in range(2)
    )
    segment, curve = SimpleNamespace(contacts=hands), SimpleNamespace(times=np.array([0.0, 2.0]))
    track = TransitionTrack(1, 0, "", segment, curve, hands, (), {"box": begin}, {"box": end}, Environment())
    times = np.linspace(0.0, 2.0, 5)
    R, p = track.object_poses("box", times)
    np.testing.assert_allclose(p[[0, -1]], [begin[:3], end[:3]], atol=1e-12)
    np.testing.assert_allclose(R[-1], Rotation.from_quat(end[3:], scalar_first=True).as_matrix(), atol=1e-9)
    for k, hand in enumerate(hands):
        turned, place = track.contact_pose(hand, times)
        np.testing.assert_allclose(
            np.einsum("kji,kj->ki", R, place - p), np.tile(R[0].T @ (hand.p - p[0]), (5, 1)), atol=1e-9
        )
        np.testing.assert_allclose(np.swapaxes(R, 1, 2) @ turned, np.tile(R[0].T @ hand.R, (5, 1, 1)), atol=1e-9)
        there = [track.closed_at(t)[k] for t in times]
        np.testing.assert_allclose([c.p for c in there], place, atol=1e-9)
        np.testing.assert_allclose([c.R for c in there], turned, atol=1e-9)
        np.testing.assert_allclose([c.carrier.com for c in there], p, atol=1e-9)


@pytest.mark.parametrize("shift", [-1.0, 1.0])
def test_friction_holds_back_what_slides(shift):
    q, v = moving(np.zeros(6), speed=(shift * 0.2, 0, 0, 0, 0, 0))
    for share, passes in ((-1.0, True), (1.0, False), (-0.5, False), (-1.2, False)):
        force = [shift * share * 0.4 * BOX * G, 0.0, BOX * G]
        found = _friction(evidence(q, v, [(1, PLACES[1], force)]), [(1, BODY)], v)
        assert found.passed == passes


@pytest.mark.parametrize("moves", [(0, 1), (1, 0), (1, 1)], ids=["second", "first", "both"])
@pytest.mark.parametrize("yaw", [0.0, np.pi / 4])
@pytest.mark.parametrize("gap", [0.3, 0.03, -0.05])
def test_objects_keep_apart_from_each_other_where_each_of_them_is(moves, yaw, gap):
    """Two cubes, one of them turned: they come to a gap from far apart, or go along with it, whichever is moved."""
    half = 0.1 * (1.0 + max(abs(np.cos(yaw)), 1.0 if yaw == 0.0 else np.sqrt(2.0)))
    ends = np.array([[0.0, 0.5, 1.0], [half + gap, 0.5, 1.0]])
    along = np.array([0.0, 0.0, 1.0]) if moves == (1, 1) else np.array([2.0 * moves[1] - 1.0, 0.0, 0.0])
    q = np.zeros((5, 2, 7))
    q[:, :, :3] = ends + np.linspace(0.5, 0.0, 5)[:, None, None] * np.array(moves)[:, None] * along
    q[:, 0, 3], q[:, 1, 3:] = 1.0, [np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
    cubes = tuple(FreeObject(name, Box((0.2,) * 3), np.eye(3), np.zeros(3), 1.0, 0.4) for name in ("first", "second"))
    made = evidence(q, np.zeros((5, 2, 6)), physics="qp")
    made.plan = SimpleNamespace(scenario=SimpleNamespace(environment=Environment(objects=cubes)))
    made.run.object_q, made.record.world, made.tolerances.overlap = q, WorldRecord(), 1e-5
    found = run_clearance(made)
    assert found.value == pytest.approx(min(gap, MAX_DISTANCE), abs=1e-6)
    assert found.passed == (gap > 0.0)
