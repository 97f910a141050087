"""Goals by the scenario's words: each field on both sides of its tolerance, items in order, every kind of place."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.certificate.goal_checks import GoalChecker, GoalStates, GoalTolerances, goal_items, place_errors
from mcplan.certificate.verify import verify
from mcplan.record.records import PatchRecord
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.spec import ContactSpec
from tests.certificate.forging import asking, broken, line, put, tampered
from tests.sim.waving_box import waving_run

BASE = np.array([0.1, -0.2, 0.2])


@pytest.fixture(scope="module")
def run():
    return waving_run(120, touch=80, crate=True)


@pytest.fixture(scope="module")
def end(run):
    """Joints and centre of mass at the end."""
    return SimpleNamespace(joints=run.q[-1, 7:].tolist(), com=run.com[-1].tolist())


def off(values, by):
    return np.add(values, by).tolist()


def base(off=(0, 0, 0), **more):
    return {"base": {"xyz": (BASE + off).tolist(), **more}}


SOLE, TIP = {"patch": "sole", "surface": "floor"}, {"patch": "tip", "surface": "wall"}
CRATE = {"xyz": [1.5, 1.0, 0.1]}


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(
    ("item", "wrong"),
    [
        (lambda s, end: base([0, 0, s * 0.051]), {"base"}),
        (lambda s, end: base([s * 0.049, 0, 0]), set()),
        (lambda s, end: base([0, s * 0.012, 0], tolerance=0.01), {"base"}),
        (lambda s, end: base([0, s * 0.008, 0], tolerance=0.01), set()),
        (lambda s, end: base(rpy=[0, 0, s * 0.11], angle_tolerance=0.1), {"base, angle"}),
        (lambda s, end: base(rpy=[s * 0.11, 0, 0], angle_tolerance=0.1), {"base, angle"}),
        (lambda s, end: base(rpy=[0, s * 0.09, 0], angle_tolerance=0.1), set()),
        (lambda s, end: base(rpy=[0, s * 0.09, 0]), set()),
        (lambda s, end: base(rpy=[0, s * 0.11, 0]), {"base, angle"}),
        (lambda s, end: {"posture": {"joints": {"shoulder": end.joints[0] + s * 0.21}}}, {"posture"}),
        (lambda s, end: {"posture": {"joints": {"elbow": end.joints[1] + s * 0.19}}}, set()),
        (
            lambda s, end: {"posture": {"joints": {"elbow": end.joints[1] + s * 0.06}}, "posture_tolerance": 0.05},
            {"posture"},
        ),
        (
            lambda s, end: {"posture": {"joints": {"elbow": end.joints[1] + s * 0.04}}, "posture_tolerance": 0.05},
            set(),
        ),
        (lambda s, end: {"com": off(end.com, [0, 0, s * 0.011])}, {"centre of mass"}),
        (lambda s, end: {"com": off(end.com, [0, s * 0.009, 0])}, set()),
        (lambda s, end: {"com": off(end.com[:2], [s * 0.011, 0])}, {"centre of mass"}),
        (lambda s, end: {"com": end.com[:2]}, set()),
        (lambda s, end: {"com": off(end.com, [0, 0, s * 0.02]), "com_tolerance": 0.03}, set()),
        (lambda s, end: {"com": off(end.com, [0, 0, s * 0.002]), "com_tolerance": 0.001}, {"centre of mass"}),
        (lambda s, end: {"objects": {"crate": {"xyz": [1.5, 1.0 + s * 0.006, 0.1]}}}, {"objects"}),
        (lambda s, end: {"objects": {"crate": {"xyz": [1.5, 1.0, 0.1 + s * 0.004]}}}, set()),
        (lambda s, end: {"objects": {"crate": CRATE | {"rpy": [0, 0, s * 0.02]}}}, {"objects, angle"}),
        (lambda s, end: {"objects": {"crate": CRATE | {"rpy": [s * 0.015, 0, 0]}}}, set()),
        (lambda s, end: {"contacts": [SOLE, TIP]}, set()),
        (lambda s, end: {"contacts": [SOLE | {"x": 0.1 + s * 1.1e-3}]}, {"contacts"}),
        (lambda s, end: {"contacts": [SOLE | {"y": -0.2 + s * 1.1e-3}]}, {"contacts"}),
        (lambda s, end: {"contacts": [SOLE | {"x": 0.1 + s * 0.9e-3}]}, set()),
        (lambda s, end: {"contacts": [SOLE | {"yaw": s * 0.01}]}, {"contacts, angle"}),
        (lambda s, end: {"contacts": [SOLE | {"yaw": s * 0.008}]}, set()),
        (lambda s, end: {"contacts": [TIP | {"x": s * 1.1e-3}]}, {"contacts"}),
        (lambda s, end: {"contacts": [TIP | {"y": s * 0.9e-3}]}, set()),
        (lambda s, end: {"contacts": [SOLE | {"x": 0.1 + s * 1.1e-3}, TIP]}, {"contacts"}),
        (lambda s, end: {"contacts": [TIP, SOLE | {"y": -0.2 + s * 1.1e-3}]}, {"contacts"}),
        (lambda s, end: {"contacts": [SOLE | {"yaw": s * 0.01}, TIP]}, {"contacts, angle"}),
        (lambda s, end: {"contacts": [SOLE, TIP], "only": True}, set()),
        (lambda s, end: {"contacts": [SOLE], "only": True}, {"no other contacts"}),
        (lambda s, end: {"contacts": [SOLE | {"surface": "wall"}]}, {"contacts", "contacts, angle"}),
    ],
)
def test_each_field_is_held_to_its_tolerance_in_both_signs(run, end, item, wrong, sign):
    assert broken(asking(run, item(sign, end))) == {f"goal: {name}" for name in wrong}


def test_fields_hold_together_and_each_is_named(run, end):
    everything = base() | {"contacts": [SOLE, TIP], "only": True, "com": end.com, "objects": {"crate": CRATE}}
    everything["posture"] = {"joints": {"elbow": float(end.joints[1])}}
    report = verify(asking(run, everything))
    assert report.success, report.text()
    (item,) = report.goals
    assert item["item"] == "goal"
    assert item["reached"]
    names = [field["name"] for field in item["fields"]]
    assert names == ["contacts", "contacts, angle", "no other contacts", "base", "posture", "centre of mass", "objects",
                     "objects, angle"]  # fmt: skip
    assert broken(asking(run, everything | base([1, 0, 0]) | {"com": [9, 9]})) == {"goal: base", "goal: centre of mass"}


def test_a_goal_that_is_missed_says_where_what_and_by_how_much(run):
    text = "\n".join(verify(asking(run, base([0, 0, 0.1]))).failures)
    assert text == "goal: base is not reached: at the end the base is off by 0.1 m, allowed 0.05 m"


@pytest.mark.parametrize("turned", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("moved", [(), (0,), (1,), (0, 1)])
def test_each_of_several_objects_has_to_be_where_and_as_it_is_asked_to_be(run, turned, moved):
    poses = {"crate": [1.5, 1.0, 0.1, 1.0, 0.0, 0.0, 0.0], "ball": [0.2, -1.0, 0.3, 1.0, 0.0, 0.0, 0.0]}
    asked = {name: {"xyz": pose[:3], "rpy": [0.0, 0.0, 0.0]} for name, pose in poses.items()}
    for k, pose in enumerate(poses.values()):
        pose[0] += 0.1 * (k in moved)
        pose[3:] = Rotation.from_rotvec([0.0, 0.0, 0.3 * (k in turned)]).as_quat(scalar_first=True)
    objects = {name: np.array([pose]) for name, pose in poses.items()}
    states = GoalStates(run.q[:1], run.com[:1], {}, {}, {}, objects, str)
    checker = GoalChecker(run.record.robot, run.robot, Environment(), states, GoalTolerances(*[0.01] * 5))
    found = {check.name: check.passed for check in checker.checks({"goal": [{"objects": asked}]})}
    assert found == {"goal: objects": not moved, "goal: objects, angle": not turned}


@pytest.mark.parametrize("yaw", [-0.5, 0.5])
def test_orientations_are_those_of_the_world(run, yaw):
    """Of a base and of a crate that are turned: rpy is R = Rz(yaw) Ry(pitch) Rx(roll)."""
    rpy = [0.2, -0.3, yaw]
    quat = Rotation.from_euler("ZYX", rpy[::-1]).as_quat(scalar_first=True)
    now = tampered(run, q=put((slice(None), slice(3, 7)), quat), object_q=put((slice(None), 0, slice(3, 7)), quat))
    for said, off in ((rpy, False), ([-x for x in rpy], True), ([0.2, -0.3, -yaw], True), ([-0.3, 0.2, yaw], True)):
        item = base(rpy=said, angle_tolerance=0.01) | {"objects": {"crate": CRATE | {"rpy": said}}}
        asked = asking(now, item)
        assert [line(asked, f"goal: {name}, angle").passed for name in ("base", "objects")] == [not off, not off]


def test_items_are_reached_in_their_order(run):
    """The arm is farthest out in the middle of its wave: before the finger touches, not after it."""
    out = {"posture": {"joints": {"shoulder": float(run.q[40, 7])}}, "posture_tolerance": 0.001}
    home = {"posture": {"joints": {"shoulder": float(run.q[-1, 7])}}, "posture_tolerance": 0.001}
    touching = {"contacts": [TIP]}
    assert abs(run.q[40, 7] - run.q[-1, 7]) > 0.005
    assert broken(asking(run, out, touching, home)) == set()
    assert broken(asking(run, touching, out, home)) == {"goal 2 of 3: posture"}
    assert broken(asking(run, home, out)) == {"goal 2 of 2: posture"}
    assert [item["item"] for item in verify(asking(run, out, home)).goals] == ["goal 1 of 2", "goal 2 of 2"]


def test_the_last_item_holds_at_the_end(run):
    """What was true a moment before does not count."""
    assert line(asking(run, {"contacts": [TIP]}), "goal: contacts").passed
    let_go = tampered(run, active=put((-1, 1), False))
    assert not line(asking(let_go, {"contacts": [TIP]}), "goal: contacts").passed
    assert line(asking(let_go, {"contacts": [TIP]}, {"contacts": [SOLE]}), "goal 1 of 2: contacts").passed


def test_a_hand_written_sequence_is_the_goal_where_there_is_no_other():
    first, second = {"contacts": [SOLE]}, {"add": TIP, "com": [1, 2]}
    items = goal_items({"stances": [first, second, {"remove": "sole"}, {"posture": "sit"}]})
    assert [title for title, _ in items] == [f"item {i} of 4" for i in (1, 2, 3, 4)]
    assert [item["contacts"] for _, item in items] == [[SOLE], [SOLE, TIP], [TIP], [TIP]]
    assert [item.get("com") for _, item in items] == [None, [1, 2], None, None]
    assert all(item["only"] for _, item in items)
    assert goal_items({"goal": {"com": [0, 0]}, "stances": [first]}) == [("goal", {"com": [0, 0]})]
    planned = {"stances": [{"contacts": [SOLE], "q": [0]}]}
    assert goal_items(planned) == []
    assert goal_items(planned | {"plan": {"sequence": [first, second]}}) == goal_items({"stances": [first, second]})


def test_a_goal_that_cannot_be_read_is_not_reached(run):
    assert "goal" in broken(asking(run, {"base": {"xyz": "home"}}))
    assert "goal" in broken(asking(run, {"objects": {"cart": CRATE}}))
    assert "goal" in broken(asking(run, {"contacts": [{"patch": "tail", "surface": "floor"}]}))


POLYGON = [[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]]
EDGE = [[0.02, 0.06], [-0.02, -0.06]]
SLOPE = Surface("slope", Rotation.from_euler("xyz", [0.3, -0.4, 0.7]).as_matrix(), np.array([0.4, -0.3, 0.2]),
                np.array([[-0.5, -0.4], [0.5, -0.4], [0.5, 0.4], [-0.5, 0.4]]))  # fmt: skip
RAIL = Bar("rail", np.array([[0.1, 0.2, 0.5], [0.7, -0.2, 0.9]]), 0.02)

PLACES = {
    "sole": ("surface", POLYGON, SLOPE, {"x": 0.1, "y": -0.05, "yaw": 0.6}),
    "edge": ("surface", EDGE, SLOPE, {"x": 0.1, "y": -0.05, "yaw": -1.1}),
    "point": ("point", [[0.0, 0.0]], SLOPE, {"x": 0.1, "y": -0.05, "yaw": 0.0}),
    "grasp": ("grasp", [[0.0, 0.0]], RAIL, {"along": 0.3, "angle": 0.4, "flip": True}),
    "sole on a bar": ("surface", POLYGON, RAIL, {"along": 0.3, "offset": 0.04, "angle": 0.4, "flip": False}),
    "point on a bar": ("point", [[0.0, 0.0]], RAIL, {"along": 0.3, "angle": 0.4}),
}


def placed(name):
    """A contact as planning places it, what the scenario says of it, its patch and its support."""
    kind, polygon, support, said = PLACES[name]
    patch = SimpleNamespace(
        name="patch", kind=kind, polygon=np.array(polygon), max_force=np.inf, max_moment=np.inf, link="hand", radius=0.0
    )
    environment = SimpleNamespace(supports={support.name: support}, owners={})
    robot = SimpleNamespace(name="robot", patches={"patch": patch})
    spec = ContactSpec(patch="patch", surface=support.name, **said)
    record = PatchRecord(name="patch", link=0, kind=kind, polygon=polygon, R=np.eye(3).tolist(), p=[0, 0, 0])
    return make_contact(robot, environment, spec), spec, record, support


@pytest.mark.parametrize("name", PLACES)
def test_what_planning_places_is_where_the_scenario_says(name):
    """Two readings of the same conventions, written apart, agree."""
    contact, spec, patch, support = placed(name)
    off, angle = place_errors(spec, patch, support, contact.R[None], contact.p[None])
    assert max(off[0], angle[0]) < 1e-12
    free = ContactSpec(patch="patch", surface=support.name)
    assert max(place_errors(free, patch, support, contact.R[None], contact.p[None]))[0] < 1e-12


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("name", PLACES)
def test_a_patch_moved_or_turned_along_what_its_contact_holds_is_off_by_as_much(name, sign):
    """Along each axis of the patch by 1 mm and about each by 10 mrad; what the contact leaves free does not count."""
    contact, spec, patch, support = placed(name)
    held = contact.selection.T @ contact.selection
    free_turn = {"point": "xyz", "point on a bar": "xyz", "sole on a bar": "y", "edge": ""}.get(name, "")
    for axis in range(3):
        step = sign * 1e-3 * contact.R[:, axis]
        off, _ = place_errors(spec, patch, support, contact.R[None], (contact.p + step)[None])
        assert off[0] == pytest.approx(1e-3 * np.linalg.norm(held[axis, :3]), rel=0.02), axis
        if "xyz"[axis] in free_turn:
            continue
        turn = Rotation.from_rotvec(sign * 0.01 * np.eye(3)[axis]).as_matrix()
        moved, angle = place_errors(spec, patch, support, (contact.R @ turn)[None], contact.p[None])
        if name == "edge":  # off its plane by its ends, or turned in it
            assert max(moved[0] / 0.02, angle[0]) > 5e-3 or axis != 2
            continue
        assert angle[0] == pytest.approx(0.01, rel=0.02), axis


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("name", PLACES)
def test_coordinates_count_where_they_are_given(name, sign):
    contact, spec, patch, support = placed(name)
    for key, value in spec.given.items():
        if key == "flip" or (key, name) in {("yaw", "point"), ("angle", "sole on a bar"), ("angle", "point on a bar")}:
            continue
        other = spec.model_copy(update={key: value + sign * 0.01})
        off, angle = place_errors(other, patch, support, contact.R[None], contact.p[None])
        assert max(off[0], angle[0]) == pytest.approx(0.01, rel=1e-6), key


def test_a_patch_that_reaches_beyond_its_surface_is_off_it_unless_it_may():
    contact, _, patch, support = placed("sole")
    spec = ContactSpec(patch="patch", surface="slope")
    for shift in (support.R[:, 0], -support.R[:, 0], support.R[:, 1], -support.R[:, 1]):
        reach = [float(place_errors(spec, patch, support, contact.R[None], (contact.p + s * shift)[None])[0][0])
                 for s in (0.2, 0.7)]  # fmt: skip
        assert reach[1] > 0.05
        assert reach[0] < reach[1]
        over = spec.model_copy(update={"overhang": True})
        assert place_errors(over, patch, support, contact.R[None], (contact.p + 0.4 * shift)[None])[0][0] < 1e-9
        assert place_errors(over, patch, support, contact.R[None], (contact.p + 0.9 * shift)[None])[0][0] > 0.05


@pytest.mark.parametrize("sign", [-1, 1])
def test_directions_that_a_contact_frees_are_not_asked_for(sign):
    contact, spec, patch, support = placed("sole")
    slid = (contact.p + sign * 0.05 * contact.R[:, 0])[None]
    assert place_errors(spec, patch, support, contact.R[None], slid)[0][0] == pytest.approx(0.05)
    free = spec.model_copy(update={"slide": ("x",)})
    assert place_errors(free, patch, support, contact.R[None], slid)[0][0] < 1e-9
    aside = (contact.p + sign * 0.05 * contact.R[:, 1])[None]
    assert place_errors(free, patch, support, contact.R[None], aside)[0][0] == pytest.approx(0.05)
    turn = contact.R @ Rotation.from_rotvec([0, 0, sign * 0.1]).as_matrix()
    hinged = spec.model_copy(update={"hinge": ("z",)})
    assert place_errors(hinged, patch, support, turn[None], contact.p[None])[1][0] < 1e-9
    contact, spec, patch, support = placed("grasp")
    turn = contact.R @ Rotation.from_rotvec([0, sign * 0.1, 0]).as_matrix()
    assert place_errors(spec, patch, support, turn[None], contact.p[None])[1][0] == pytest.approx(0.1)
    hinged = spec.model_copy(update={"hinge": ("y",)})
    assert place_errors(hinged, patch, support, turn[None], contact.p[None])[1][0] < 1e-9
    along = (contact.p + sign * 0.05 * contact.R[:, 1])[None]
    sliding = spec.model_copy(update={"slide": ("y",)})
    assert place_errors(sliding, patch, support, contact.R[None], along)[0][0] < 1e-9


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_sole_beside_its_bar_does_not_stand_on_it(sign):
    """The bar crosses the patch within its polygon, which ends 0.1 m from its origin."""
    contact, _, patch, support = placed("sole on a bar")
    spec = ContactSpec(patch="patch", surface="rail")
    for shift, off in ((0.05, 0.0), (0.15 if sign < 0 else 0.07, None)):
        moved = (contact.p - sign * shift * contact.R[:, 0])[None]  # the bar is then at offset 0.04 + sign * shift
        beyond = max(0.0, abs(0.04 + sign * shift) - 0.1)
        found = place_errors(spec, patch, support, contact.R[None], moved)[0][0]
        assert found == pytest.approx(beyond if off is None else off, abs=1e-9)


def test_a_hand_beyond_the_end_of_its_bar_holds_nothing():
    contact, _, patch, support = placed("grasp")
    spec = ContactSpec(patch="patch", surface="rail")
    for along, holds in ((-0.29, True), (-0.31, False), (support.length - 0.31, True), (support.length - 0.29, False)):
        off, _ = place_errors(spec, patch, support, contact.R[None], (contact.p + along * support.direction)[None])
        assert (off[0] < 1e-9) == holds


def test_a_surface_on_an_object_goes_with_it():
    contact, spec, patch, support = placed("sole")
    R, p = Rotation.from_euler("xyz", [0.2, 0.5, -0.3]), np.array([0.3, 0.1, -0.2])
    pose = np.array([[*p, *R.as_quat(scalar_first=True)]])
    moved_R, moved_p = (R.as_matrix() @ contact.R)[None], (R.as_matrix() @ contact.p + p)[None]
    assert max(place_errors(spec, patch, support, moved_R, moved_p, pose))[0] < 1e-12
    off, angle = place_errors(spec, patch, support, contact.R[None], contact.p[None], pose)
    assert off[0] > 0.1
    assert angle[0] > 0.1
