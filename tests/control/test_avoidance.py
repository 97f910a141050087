"""The rows of collision avoidance foresee where a state takes the pairs."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys
from scipy.spatial.transform import Rotation

from mcplan.collision.model import ALLOWED_PENETRATION, CollisionModel
from mcplan.control import avoidance as control_avoidance
from mcplan.control.avoidance import (
    MAX_JERK_M_S3,
    PASSING_OVERLAP_M,
    RESPONSE_TIME_S,
    SAMPLES,
    WAITING_DISTANCE_M,
    Avoidance,
)
from mcplan.control.motion import Motion
from mcplan.core.whole_body.avoidance import avoid
from mcplan.core.whole_body.planned_goals import MIN_DISTANCE_M, PLAN_TOLERANCE_M
from mcplan.errors import InputError
from mcplan.motion.spline import PostureSpline
from mcplan.motion.time_parameterization import TimedPath, TimeParameterization
from mcplan.planning.transition.nearness import CLEARANCE_PER_DISTANCE
from mcplan.robot.description import Box
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.scene.environment import Bar, Environment, FreeObject, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings
from mcplan.whole_body.collision_avoidance import DECELERATION_M_S2

HAND, BAR = "LARM_LINK5", "bar"


@pytest.fixture(scope="module")
def hrp2():
    return load_robot("hrp2")


def nearest(robot, environment, q):
    """The distance of hand and bar: they have one shape each."""
    found = CollisionModel(robot, environment).distances(q, 1.0)
    return next(one for one in found if (one.pair.a, one.pair.b) == (HAND, BAR))


def beside_a_bar(robot, q, rng):
    """A bar of any direction, 1 cm from the left hand."""
    ends = robot.frame_pose(q, "left_grip")[:3, 3] + [0.0, 0.3, 0.0] + np.outer([-0.5, 0.5], rng.normal(size=3))
    far = nearest(robot, Environment(bars=(Bar(BAR, ends, 0.02),)), q)
    return Environment(bars=(Bar(BAR, ends + (far.distance - 0.01) * far.normal, 0.02),))


def row(robot, environment, q, v):
    """The row of hand and bar in the first period of a state."""
    settings, terms = ControlSettings(), Terms(robot)
    terms.update(q, v)
    limit = Avoidance(robot, environment, settings, 1e-3)
    limit.update(terms, Motion(robot, environment, settings, q))
    A, b = limit.rows(terms)
    i = limit.names.index(f"distance of {HAND} and {BAR}")
    return A[i], b[i]


@pytest.mark.parametrize("seed", range(4))
def test_a_row_asks_for_what_the_rate_lacks_to_which_a_turning_hand_coasts(hrp2, seed, monkeypatch):
    """The rate that is allowed is that of a state at rest; a distance d(t) that coasts has d' + T d'' after T."""
    monkeypatch.setattr(control_avoidance, "MAX_JERK_M_S3", np.inf)
    rng, q, T = np.random.default_rng(seed), hrp2.posture("half_sitting"), RESPONSE_TIME_S
    environment = beside_a_bar(hrp2, q, rng)
    v = np.zeros(hrp2.nv)
    arm = [6 + k for k, name in enumerate(hrp2.joint_names) if name.startswith("LARM")]
    v[arm] = 0.5 * rng.normal(size=len(arm))

    allowed = T * row(hrp2, environment, q, np.zeros(hrp2.nv))[1]
    J, least = row(hrp2, environment, q, v)
    now, later = (nearest(hrp2, environment, posture).distance for posture in (q, hrp2.integrate(q, v, T)))
    coasting = 2.0 * (later - now) / T - J @ v
    assert abs(coasting - J @ v) > 0.1 * T  # m/s: it is not the rate at the beginning
    assert T * least == pytest.approx(allowed - coasting, abs=1e-6)


def test_what_a_hand_that_comes_on_is_asked_for_rises_bit_by_bit(hrp2, monkeypatch):
    q, settings, terms = hrp2.posture("half_sitting"), ControlSettings(), Terms(hrp2)
    environment = beside_a_bar(hrp2, q, np.random.default_rng(0))
    away = nearest(hrp2, environment, q).normal
    v, most = np.zeros(hrp2.nv), {}
    v[:3] = -0.3 * away
    terms.update(q, v)
    motion = Motion(hrp2, environment, settings, q)
    for onset in (MAX_JERK_M_S3, np.inf):
        monkeypatch.setattr(control_avoidance, "MAX_JERK_M_S3", onset)
        limit = Avoidance(hrp2, environment, settings, 1e-3)
        most[onset] = []
        for _ in range(60):
            limit.update(terms, motion)
            most[onset].append(limit.rows(terms)[1].max())
    slow, sudden = most[MAX_JERK_M_S3], most[np.inf]
    assert sudden[0] > 5.0
    np.testing.assert_allclose(slow[:5], np.arange(1, 6))
    assert np.diff(slow).max() < 1.0 + 1e-9
    assert slow[-1] == pytest.approx(sudden[-1])


def test_a_sole_may_come_near_its_floor_only_near_its_place(hrp2):
    q = hrp2.posture("half_sitting")
    up = q.copy()
    up[2] += 0.005
    sole = hrp2.frame_pose(q, "left_sole")[:3, 3]
    square = np.array([[2.0, 2.0], [-2.0, 2.0], [-2.0, -2.0], [2.0, -2.0]])
    floor = Surface("floor", np.eye(3), np.array([0.0, 0.0, sole[2]]), square)
    environment, settings, least = Environment(surfaces=(floor,)), ControlSettings(), []
    for ahead in (0.0, 0.3):
        motion, terms = Motion(hrp2, environment, settings, q), Terms(hrp2, ["left_sole"])
        terms.update(up, np.zeros(hrp2.nv))
        place = {"patch": "left_sole", "surface": "floor", "x": sole[0] + ahead, "y": sole[1], "yaw": 0.0}
        motion.targets["left_sole"] = make_contact(hrp2, environment, place)
        limit = Avoidance(hrp2, environment, settings, 1e-3)
        for _ in range(300):  # the goal rises gradually
            limit.update(terms, motion)
        b = limit.rows(terms)[1]
        least.append(max(b[i] for i, name in enumerate(limit.names) if name == "distance of LLEG_LINK5 and floor"))
    assert least[0] < least[1] - 0.1  # m/s²


def test_the_rate_of_a_row_counts_the_motion_of_the_object(hrp2):
    """Against finite differences of the distance while robot and object move."""
    q, rng = hrp2.posture("half_sitting"), np.random.default_rng(1)
    hand = hrp2.frame_pose(q, "left_grip")[:3, 3]
    boxes = [
        FreeObject(name, Box((0.1, 0.1, 0.1)), np.eye(3), hand + y * np.eye(3)[1], 1.0, 0.5)
        for name, y in (("far", 1.0), ("near", 0.15))
    ]
    environment, settings = Environment(objects=tuple(boxes)), ControlSettings()
    model = CollisionModel(hrp2, environment)
    distances = model.distances(q, 0.5)
    one = min((d for d in distances if (d.pair.a, d.pair.b) == (HAND, "near")), key=lambda d: d.distance)
    rest = {box.name: (box.R, box.p + (one.distance - 0.01) * one.normal) for box in boxes}
    v = np.concatenate([0.3 * rng.normal(size=hrp2.nv), 0.3 * rng.normal(size=12)])

    def distance(h):
        poses = {}
        for k, (name, (R, p)) in enumerate(rest.items()):
            w = v[hrp2.nv + 6 * k :][:6]
            poses[name] = Rotation.from_rotvec(h * w[3:]).as_matrix() @ R, p + h * w[:3]
        near = model.distances(hrp2.integrate(q, v[: hrp2.nv], h), 0.1, objects=poses)
        return min(d.distance for d in near if (d.pair.a, d.pair.b) == (HAND, "near"))

    terms = SimpleNamespace(q=np.concatenate([q, np.zeros(14)]), v=v)
    avoidance = Avoidance(hrp2, environment, settings, 1e-3)
    avoidance.update(terms, Motion(hrp2, environment, settings, q), rest)
    A, _ = avoidance.rows(terms)
    row = A[avoidance.names.index(f"distance of {HAND} and near")]
    assert row[hrp2.nv + 6 :].any()
    assert row @ v == pytest.approx((distance(1e-6) - distance(-1e-6)) / 2e-6, abs=1e-6)


def test_a_configuration_that_is_no_number_is_refused(hrp2):
    q, settings, environment = hrp2.posture("half_sitting"), ControlSettings(), Environment()
    terms = SimpleNamespace(q=np.full(hrp2.nq, np.nan), v=np.zeros(hrp2.nv))
    with pytest.raises(InputError, match="not finite"):
        Avoidance(hrp2, environment, settings, 1e-3).update(terms, Motion(hrp2, environment, settings, q))


def test_a_tick_allocates_nothing_in_its_one_kernel(hrp2, monkeypatch):
    q, settings = hrp2.posture("half_sitting"), ControlSettings()
    environment = beside_a_bar(hrp2, q, np.random.default_rng(0))
    calls = []
    monkeypatch.setattr(control_avoidance, "avoid", lambda *arguments: calls.append(arguments) or avoid(*arguments))
    terms = Terms(hrp2)
    terms.update(q, np.zeros(hrp2.nv))
    avoidance = Avoidance(hrp2, environment, settings, 1e-3)
    avoidance.update(terms, Motion(hrp2, environment, settings, q))
    ((*arguments, _),) = calls
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        assert avoid(*arguments, 2) > 0
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc == before.alloc


def test_what_each_pair_is_to_keep_follows_from_what_its_contacts_do(hrp2):
    """Each kind of pair has its goal: held, fixed, left, waiting, approaching, others."""
    q, settings = hrp2.posture("half_sitting"), ControlSettings(avoidance={"clearance": 0.006})
    ground = hrp2.frame_pose(q, "left_sole")[2, 3]
    square = np.array([[2.0, 2.0], [-2.0, 2.0], [-2.0, -2.0], [2.0, -2.0]])
    environment = Environment(surfaces=(Surface("floor", np.eye(3), np.array([0.0, 0.0, ground]), square),))
    model = CollisionModel(hrp2, environment)

    def sole(patch, **where):
        X = hrp2.frame_pose(q, patch)
        place = {"patch": patch, "surface": "floor", "x": X[0, 3], "y": X[1, 3], "yaw": 0.0} | where
        return make_contact(hrp2, environment, place)

    def goals(physics="qp", **tables):
        chosen = settings.under(physics)
        motion, terms = Motion(hrp2, environment, chosen, q), Terms(hrp2, list(hrp2.patches))
        for patch in tables.pop("closed", ()):
            motion.close(sole(patch), 0.0, 0.0)
        for name, value in tables.items():
            setattr(motion, name, value)
        terms.update(q, np.zeros(hrp2.nv))
        limit = Avoidance(hrp2, environment, chosen, 1e-3)
        limit.update(terms, motion)
        return limit._targets.goal

    # a foot has two shapes: the lower one is meant
    pairs, distance, _ = model.near_pairs(q, 0.3)
    near = dict(zip(pairs.tolist(), distance.tolist(), strict=True))

    def pair_of(*names):
        return min((p for p in near if set(model.pairs[p][:2]) == set(names)), key=near.__getitem__)

    left, right = pair_of("LLEG_LINK5", "floor"), pair_of("RLEG_LINK5", "floor")
    feet = pair_of("LLEG_LINK5", "RLEG_LINK5")
    standing = goals(closed=["left_sole", "right_sole"])
    assert standing[left] == standing[right] == -np.inf
    assert standing[feet] == -np.inf
    far = [p for p in range(len(standing)) if near.get(p, 1.0) > 0.01 and standing[p] > -np.inf]
    assert len(far) > 50
    assert standing[far] == pytest.approx(np.full(len(far), 0.006))
    free = goals(closed=["right_sole"])
    # planned nearer than the clearance: as near as planned, but for a millimetre, and never to a touch
    assert free[left] == pytest.approx(np.clip(near[left] - PLAN_TOLERANCE_M, MIN_DISTANCE_M, 0.006))
    assert free[feet] > 0.0
    released = goals(closed=["right_sole"], released={"left_sole": sole("left_sole")})
    assert released[left] == pytest.approx(PASSING_OVERLAP_M - ALLOWED_PENETRATION)
    waiting = goals(closed=["right_sole"], targets={"left_sole": sole("left_sole")}, waiting_patches={"left_sole"})
    assert waiting[left] == WAITING_DISTANCE_M
    # what feels for its support may go as deep as it searches
    for physics, deeper in (("qp", 0.0), ("contact", settings.under("contact").contact.touch_depth)):
        sought = goals(
            physics, closed=["right_sole"], targets={"left_sole": sole("left_sole")}, descending_patches={"left_sole"}
        )
        assert sought[left] == pytest.approx(-ALLOWED_PENETRATION - deeper)
    for ahead in (0.0, 0.004, 0.5):
        coming = goals(closed=["right_sole"], targets={"left_sole": sole("left_sole", x=0.008 + ahead)})
        distance_left = np.linalg.norm(sole("left_sole", x=0.008 + ahead).p - hrp2.frame_pose(q, "left_sole")[:3, 3])
        assert coming[left] == pytest.approx(
            min(0.006, PASSING_OVERLAP_M - ALLOWED_PENETRATION + CLEARANCE_PER_DISTANCE * distance_left)
        )


@pytest.mark.parametrize("nearest_at", ["start", "middle", "end"])
@pytest.mark.parametrize("foreseen", [False, True])
def test_a_pair_may_come_as_near_as_its_motion_takes_it(hrp2, nearest_at, foreseen, monkeypatch):
    """A bar that a hand leaves, passes or comes to: nothing parts the two before the motion does.

    Distances cached by `foresee` are not computed again.
    """
    q, settings = hrp2.posture("half_sitting"), ControlSettings(avoidance={"clearance": 0.015})
    environment = beside_a_bar(hrp2, q, np.random.default_rng(1))
    away = [q.copy(), q.copy()]
    arm = 7 + list(hrp2.joint_names).index("LARM_JOINT1")
    away[0][arm], away[1][arm] = q[arm] - 0.2, q[arm] - 0.2
    assert min(nearest(hrp2, environment, posture).distance for posture in away) > 0.02
    knots = {"start": [q, *away], "middle": [away[0], q, away[1]], "end": [*away, q]}[nearest_at]
    motion, terms = Motion(hrp2, environment, settings, knots[0]), Terms(hrp2)
    motion.posture = PostureSpline(np.array([0.0, 1.0, 2.0]), np.array(knots))
    terms.update(knots[0], np.zeros(hrp2.nv))
    limit = Avoidance(hrp2, environment, settings, 1e-3)
    (pair,) = [k for k, pair in enumerate(limit._model.pairs) if (pair.a, pair.b) == (HAND, BAR)]
    if foreseen:
        limit.cache_end_distances(motion.posture.knots)
        limit.cache_fixed_pairs(())
        monkeypatch.setattr(Avoidance, "_ends", None)
        monkeypatch.setattr(CollisionModel, "fixed_by", None)
    for _ in range(SAMPLES):  # the samples between the ends
        limit.update(terms, motion)
    assert limit._targets.goal[pair] == pytest.approx(0.01 - PLAN_TOLERANCE_M, abs=1e-6)


@pytest.mark.parametrize("between", [False, True])
def test_a_pair_is_seen_where_it_is_nearest_between_two_knots(hrp2, between):
    """The arm turns past a bar, in 0.4 s or in 4 s: it may come as near as it passes, and as quickly."""
    q, settings = hrp2.posture("half_sitting"), ControlSettings(avoidance={"clearance": 0.015})
    environment = beside_a_bar(hrp2, q, np.random.default_rng(1))
    arm = 7 + list(hrp2.joint_names).index("LARM_JOINT1")
    knots = np.tile(q, (4, 1))
    knots[:, arm] += [-0.6, -0.2, 0.2, 0.6] if between else [-0.6, 0.0, 0.3, 0.6]
    duration, limit, motion = 0.4, Avoidance(hrp2, environment, settings, 1e-3), Motion(hrp2, environment, settings, q)
    (pair,) = [k for k, pair in enumerate(limit._model.pairs) if (pair.a, pair.b) == (HAND, BAR)]
    curve = PostureSpline(np.linspace(0.0, duration, 4), knots)
    distances = [nearest(hrp2, environment, curve.sample(t).q).distance for t in np.linspace(0.0, duration, 400)]
    terms = Terms(hrp2)
    terms.update(knots[0], np.zeros(hrp2.nv))
    braking = {}
    for slower in (1.0, 10.0):
        path = PostureSpline(slower * np.linspace(0.0, duration, 4), knots)
        law = TimeParameterization([0.0, slower * duration], [0.0, slower * duration], [1.0, 1.0], [0.0, 0.0])
        for motion.posture in (path, TimedPath(path, law, 0.0)):
            for _ in range(SAMPLES):
                limit.update(terms, motion)
            assert limit._targets.goal[pair] == pytest.approx(
                max(min(distances) - PLAN_TOLERANCE_M, MIN_DISTANCE_M), abs=1e-3
            )
            braking.setdefault(slower, set()).add(float(limit._targets.braking[pair]))
    assert len(braking[1.0]) == len(braking[10.0]) == 1
    # a planned fast approach is allowed; other approaches are braked as usual
    assert max(braking[1.0]) > DECELERATION_M_S2
    assert braking[10.0] == {DECELERATION_M_S2}


def test_what_is_planned_near_an_object_is_where_the_object_goes(hrp2):
    """A crate slides towards a hand that waits for it: the two may come as near as they are planned."""
    q, settings = hrp2.posture("half_sitting"), ControlSettings(avoidance={"clearance": 0.006})
    beside, away = hrp2.frame_pose(q, "left_grip")[:3, 3] + [0.0, 0.2, 0.0], np.array([0.0, 0.5, 0.0])
    first = FreeObject("crate", Box((0.1, 0.1, 0.1)), np.eye(3), beside, 1.0, 0.5)
    model = CollisionModel(hrp2, Environment(objects=(first,)))
    near = min((d for d in model.distances(q, 0.5) if d.pair.a == HAND), key=lambda d: d.distance)
    end = first.p + (near.distance - 0.004) * near.normal
    for start, goes_to in ((end + away, end), (end, end + away)):
        environment = Environment(objects=(replace(first, p=start),))
        motion, terms = Motion(hrp2, environment, settings, q), Terms(hrp2)
        motion.objects["crate"] = SimpleNamespace(end=(np.eye(3), goes_to))
        terms.update(q, np.zeros(hrp2.nv))
        state = SimpleNamespace(q=terms.q, v=np.zeros(hrp2.nv + 6))
        limit = Avoidance(hrp2, environment, settings, 1e-3)
        limit.update(state, motion, {"crate": (np.eye(3), start)})
        pairs = [p for p, pair in enumerate(limit._model.pairs) if {pair.a, pair.b} == {HAND, "crate"}]
        least = 0.004 - PLAN_TOLERANCE_M if goes_to is end else 0.006
        assert min(limit._targets.goal[pairs]) == pytest.approx(least, abs=1e-6)
