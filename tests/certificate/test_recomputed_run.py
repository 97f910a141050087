"""What a run is held against: places and normals go along with what they belong to, friction is that of the world."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.certificate.contact_checks import force_checks
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.record.records import ContactRecord, PlanRecord, StanceRecord, WorldRecord
from tests.certificate.random_run import free_run
from tests.sim.random_robots import random_record

SAMPLES = 30
CORNERS = [[0.1, 0.05, 0.0], [-0.1, 0.05, 0.0], [-0.1, -0.05, 0.0], [0.1, -0.05, 0.0]]
FLIPPED = np.diag([1.0, -1.0, -1.0])
"""From the axes of a patch, whose z points out of its link, to those of what it touches."""


@pytest.fixture(scope="module")
def flight():
    """A mechanism that tumbles, one of whose patches is recorded as touching something."""
    return free_run(random_record(1, links=3), SAMPLES)


def touching(run, objects=(), points=None, friction=None, **changes):
    """The run as if its first patch had been on a support from the first sample on, and the evidence of it.

    Parameters
    ----------
    objects : poses (position, rotation) of an object that the support is on, one a sample.
    points : contact points (N, k, 3), m, each loaded with 100 N along its normal and 40 N across it.
    friction : factors of the world, by support.
    changes : fields of the planned contact.
    """
    patch = run.patches[0]
    bare = RecomputedRun(run).motion
    R, p = bare.R[patch], bare.p[patch]
    contact = {
        "patch": patch, "support": "floor", "kind": "surface", "R": R[0].tolist(), "p": p[0].tolist(),
        "points": CORNERS, "axes": (R[0] @ FLIPPED).tolist(), "friction": 0.5, "selection": np.eye(6).tolist(),
    } | changes  # fmt: skip
    arrays = {"active": np.zeros_like(run.active)}
    arrays["active"][:, 0] = True
    names = []
    if len(objects):
        poses = np.array([[*place, *turn.as_quat(scalar_first=True)] for place, turn in objects])
        contact |= {"carrier": "crate", "carrier_pose": poses[0].tolist()}
        names, arrays["object_q"] = ["crate"], poses[:, None]
        arrays["object_v"] = np.zeros((len(run), 1, 6))
    if points is not None:
        count = points.shape[1]
        out = np.repeat(R @ FLIPPED[:, 2], count, axis=0)
        across = np.repeat(R[:, :, 0], count, axis=0)
        (link,) = (found.link for found in run.record.robot.patches if found.name == patch)
        arrays |= {
            "point_start": count * np.arange(len(run) + 1), "point_link": np.full(len(out), link),
            "point_patch": np.zeros(len(out), int), "point_xyz": points.reshape(-1, 3), "point_normal": out,
            "point_force": 100.0 * out + 40.0 * across,
        }  # fmt: skip
    stance = StanceRecord(contacts=[ContactRecord(**contact)], q=run.q[0].tolist())
    world = WorldRecord(friction=friction or {})
    record = run.record.model_copy(
        update={"plan": PlanRecord(stances=[stance]), "objects": names, "world": world, "physics": "qp"}
    )
    return RecomputedRun(replace(run, record=record, **arrays))


def moved(run):
    """Pose of the first patch in each sample relative to where it is in the first: (N,) rotations, (N, 3) m, world."""
    motion = RecomputedRun(run).motion
    R, p = motion.R[run.patches[0]], motion.p[run.patches[0]]
    return Rotation.from_matrix(R @ R[0].T), p - p[0]


def carried(run):
    """An object that goes along with the patch as if both were one body."""
    turn, _ = moved(run)
    p = RecomputedRun(run).motion.p[run.patches[0]]
    arm, first = np.array([0.3, -0.2, 0.5]), Rotation.from_rotvec([0.4, -0.3, 0.8])
    return [(p[k] + turn[k].apply(arm), turn[k] * first) for k in range(len(run))]


def test_a_patch_that_moves_is_off_its_place_by_its_way(flight):
    turn, shift = moved(flight)
    found = touching(flight).planned_error(0, slice(SAMPLES - 1, SAMPLES), 0)
    assert found[1] == pytest.approx([turn[-1].magnitude()])
    free_to_turn = touching(flight, selection=np.eye(6)[:3].tolist())
    distance, angle = free_to_turn.planned_error(0, slice(0, SAMPLES), 0)
    assert distance == pytest.approx(np.linalg.norm(shift, axis=1), abs=1e-12)
    assert angle == pytest.approx(np.zeros(SAMPLES))


@pytest.mark.parametrize("free", range(3))
def test_a_free_direction_is_one_of_the_patch(flight, free):
    """What slides along an axis of its patch counts only along the others, however the patch stands in the world."""
    evidence = touching(flight, selection=np.delete(np.eye(6)[:3], free, axis=0).tolist())
    shift = moved(flight)[1] @ np.array(evidence.contacts[0].R)
    expected = np.linalg.norm(np.delete(shift, free, axis=1), axis=1)
    assert evidence.planned_error(0, slice(0, SAMPLES), 0)[0] == pytest.approx(expected, abs=1e-12)


def test_what_goes_along_with_its_object_has_not_slipped(flight):
    evidence = touching(flight, objects=carried(flight))
    for distance, angle in (evidence.planned_error(0, slice(0, SAMPLES), 0), evidence.drift(0, slice(5, SAMPLES), 0)):
        assert distance == pytest.approx(np.zeros(len(distance)), abs=1e-12)
        assert angle == pytest.approx(np.zeros(len(angle)), abs=1e-7)
    standing = touching(flight, objects=carried(flight)[:1] * SAMPLES)
    assert standing.planned_error(0, slice(0, SAMPLES), 0)[0].max() > 0.01


def corners(run):
    motion = RecomputedRun(run).motion
    R, p = motion.R[run.patches[0]], motion.p[run.patches[0]]
    return p[:, None] + np.array(CORNERS) @ R.transpose(0, 2, 1)


@pytest.mark.parametrize("of", ["object", "patch"])
def test_a_normal_turns_with_the_object_or_with_the_patch_that_rolls(flight, of):
    """Both turn as the patch does here: the normal is that of the patch in each sample."""
    objects, rolls = (carried(flight), False) if of == "object" else ((), True)
    evidence = touching(flight, objects, corners(flight), rolls=rolls)
    assert evidence.support_normal == pytest.approx(evidence.run.point_normal, abs=1e-12)
    fixed = touching(flight, (), corners(flight))
    assert np.abs(fixed.support_normal - fixed.run.point_normal).max() > 0.01


def test_points_of_a_turned_patch_lie_in_it(flight):
    lines = {check.name: check for check in force_checks(touching(flight, points=corners(flight)))}
    assert lines["contact points on their patch"].value < 1e-12
    off = corners(flight)
    off[7, 2] += 0.003 * Rotation.from_rotvec([0.3, 0.2, 0.1]).as_matrix()[:, 0]
    lines = {check.name: check for check in force_checks(touching(flight, points=off))}
    assert lines["contact points on their patch"].value == pytest.approx(0.003)


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (0.81, True), (0.79, False)])
def test_friction_is_that_of_the_ground_as_it_was(flight, factor, holds):
    """Points press with 100 N and hold 40 N across; the plan believed in friction 0.5."""
    evidence = touching(flight, (), corners(flight), {"floor": factor, "wall": 0.1}, rolls=True)
    margin = next(check for check in force_checks(evidence) if check.name == "friction margin")
    assert margin.value == pytest.approx(50.0 * factor - 40.0)
    assert margin.passed is holds
