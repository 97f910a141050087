"""Collision avoidance with analytic pairs: the distance is kept, and nothing changes where nothing is near."""

from dataclasses import dataclass

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.core.algebra.consistent_rows import NEUTRAL
from mcplan.core.whole_body.avoidance import fill_avoidance_rows
from mcplan.errors import InputError
from mcplan.whole_body.collision_avoidance import CollisionAvoidance
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.pool import ProblemPool
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.closed_loop import rate, ticks
from tests.whole_body.conftest import contact_at, random_state, standing_tasks


@dataclass
class Spheres:
    """Spheres on two frames: d = |p_a - p_b| - r_a - r_b."""

    a: str
    b: str
    radii: float

    def __call__(self, terms):
        a, b = terms.frame(self.a), terms.frame(self.b)
        r, u = a.p - b.p, (a.velocity - b.velocity)[:3]
        D = np.linalg.norm(r)
        n = r / D
        bias = n @ (a.bias - b.bias)[:3] + (u @ u - (n @ u) ** 2) / D
        return D - self.radii, n @ (a.J - b.J)[:3], bias


@dataclass
class SphereAndPlane:
    """A sphere on a frame above the plane n'x = offset."""

    frame: str
    n: np.ndarray
    offset: float
    radius: float

    def __call__(self, terms):
        f = terms.frame(self.frame)
        return self.n @ f.p - self.offset - self.radius, self.n @ f.J[:3], self.n @ f.bias[:3]


def give(avoidance, terms, pairs):
    values = [pair(terms) for pair in pairs]
    d, J, bias = (np.array(part) for part in zip(*values, strict=True))
    avoidance.set_pairs(d, J, bias, [type(pair).__name__ for pair in pairs])
    return d


def soles(state):
    return [ContactConstraint(contact_at(state.robot, p, state.q)) for p in ("left_sole", "right_sole")]


def reach(state, target):
    """The tasks of a controller that draws the left hand to a target."""
    task = LinkPoseTask("left_hand", orientation=False, weight=300.0, kp=60.0)
    task.p = np.array(target)
    return [*standing_tasks(state), task]


@pytest.mark.parametrize("seed", range(2))
def test_gradients_of_the_pairs_used_here_are_right(standing, seed):
    standing.rng = np.random.default_rng(seed)
    random_state(standing)
    robot, terms, q, v = standing.robot, standing.terms, standing.q, standing.v
    for pair in (Spheres("left_hand", "right_hand", 0.1), SphereAndPlane("left_hand", np.array([0, 0.6, 0.8]), 0, 0.1)):
        _, J, bias = pair(terms)
        J = J.copy()
        assert rate(robot, terms, q, v, lambda t, p=pair: p(t)[0]) == pytest.approx(J @ v, abs=1e-8)
        assert rate(robot, terms, q, v, lambda t, p=pair: p(t)[1] @ v) == pytest.approx(bias, abs=1e-7)


@pytest.mark.parametrize("case", ["spheres", "plane"])
def test_a_hand_drawn_into_an_obstacle_stops_before_it(standing, case):
    """Closed loop on HRP-2: without the rows the hand goes through; with them the distance stays at least safe."""
    hand = standing.terms.frame("left_hand").p.copy()
    pair = (
        Spheres("left_hand", "right_hand", 0.12)
        if case == "spheres"
        else SphereAndPlane("left_hand", np.array([-1.0, 0, 0]), -(hand[0] + 0.10), 0.05)
    )
    target = standing.terms.frame("right_hand").p if case == "spheres" else hand + np.array([0.2, 0, 0])
    least = {}
    for protected in (True, False):
        avoidance, distances = CollisionAvoidance(3, safe=0.02), []

        def measure(terms, avoidance=avoidance, distances=distances, protected=protected):
            distances.append(give(avoidance, terms, [pair])[0])
            if not protected:
                avoidance.set_pairs([], np.zeros((0, standing.robot.nv)))

        for tick in ticks(standing, soles(standing), reach(standing, target), 500, [avoidance], measure):
            assert tick.fallbacks == 0
        least[protected] = min(distances)
    # the rows hold the rate of d to first order in dt, so the stop is safe up to dt times the speed
    assert 0.02 - 5e-4 < least[True] < 0.03
    assert least[False] < 0.0


def test_links_keep_apart_with_the_distances_of_the_collision_model(standing):
    """The left hand is drawn through the trunk: the model's nearest pairs feed the rows, and no pair comes too near."""
    clearance, model = 0.005, CollisionModel(standing.robot)
    before = model.smallest(standing.q).distance
    trunk = standing.terms.frame("BODY").p
    least = {}
    for protected in (True, False):
        avoidance, distances = CollisionAvoidance(12, safe=0.0, influence=0.1), []

        def measure(terms, avoidance=avoidance, distances=distances, protected=protected):
            near = model.constraint_rows(terms.q, 0.1, clearance=clearance)
            distances.append(float(np.min(near.distance)))
            if protected:
                avoidance.set_pairs(near.distance, near.rows, names=[str(pair) for pair in near.pairs])

        for tick in ticks(standing, soles(standing), reach(standing, trunk), 500, [avoidance], measure):
            assert tick.fallbacks == 0
        least[protected] = min(distances)
    assert before > clearance
    # to first order in dt, and without the curvature of the nearest points, which the rows neglect
    assert least[True] > -1e-3
    assert least[False] < -0.01


def test_rows_without_a_pair_change_nothing(standing):
    random_state(standing, 0.3)
    contacts, tasks = soles(standing), standing_tasks(standing, (0.02, 0.02, 0))
    plain = WholeBodyQP(standing.robot, contacts, tasks)
    plain.update(standing.terms, contacts, tasks)
    avoidance = CollisionAvoidance(5)
    qp = WholeBodyQP(standing.robot, contacts, tasks, limits=[avoidance])
    expected = plain.solve()
    for distance in ([], [0.5, 9.0]):
        avoidance.set_pairs(distance, np.ones((len(distance), standing.robot.nv)))
        qp.update(standing.terms, contacts, tasks, limits=[avoidance])
        assert avoidance.active == 0
        s = qp.solve()
        assert s.ok, s.message
        assert s.residuals.stationarity < 1e-8
        np.testing.assert_allclose(s.vd, expected.vd, atol=1e-7)


def test_the_pool_hands_out_a_problem_with_as_many_rows_as_there_are_pairs(standing):
    pool, contacts, tasks = ProblemPool(standing.robot), soles(standing), standing_tasks(standing)
    few, many = (pool.get(contacts, tasks, [CollisionAvoidance(count)]) for count in (2, 5))
    assert few is not many
    assert pool.get(contacts, tasks, [CollisionAvoidance(2)]) is few
    for count, qp in ((2, few), (5, many)):
        qp.update(standing.terms, contacts, tasks, limits=[CollisionAvoidance(count)])


def test_the_pairs_that_ask_for_most_get_the_rows(standing):
    """At rest these are the nearest; a pair that closes in goes before one that is nearer but still."""
    nv = standing.robot.nv
    avoidance = CollisionAvoidance(2, influence=0.3)
    avoidance.set_pairs([0.25, 0.1, 0.4, 0.2], np.arange(4)[:, None] * np.ones((4, nv)), names=list("abcd"))
    A, b = avoidance.rows(standing.terms)
    np.testing.assert_array_equal(A[:, 0], [1, 3])
    assert (avoidance.active, avoidance.ignored) == (2, 1)
    assert avoidance.names == ["distance of b", "distance of d"]
    assert np.all(b < 0)
    v = np.zeros(nv)
    v[0] = 0.3
    standing.terms.update(standing.q, v)
    avoidance.set_pairs([0.25, 0.1, 0.2], np.array([-1.0, 1.0, 0.0])[:, None] * np.eye(nv)[0], names=list("abc"))
    avoidance.rows(standing.terms)
    assert avoidance.names == ["distance of a", "distance of b"]
    avoidance.set_pairs([0.1], np.ones((1, nv)))
    A, b = avoidance.rows(standing.terms)
    assert not np.any(A[1])
    assert b[1] < 0


def test_what_the_velocity_alone_adds_to_a_distance_need_not_be_asked_for(standing):
    """``J vd + bias >= a``: of each pair, in whatever row it is."""
    nv, bias = standing.robot.nv, {"a": -0.7, "b": 0.4, "c": 1.5}
    random_state(standing)
    J = 0.01 * np.random.default_rng(3).normal(size=(3, nv))
    avoidance, least = CollisionAvoidance(4), []
    for given in (None, list(bias.values())):
        avoidance.set_pairs([0.1, 0.05, 0.2], J, given, list("abc"))
        _, b = avoidance.rows(standing.terms)
        assert avoidance.active == 3
        least.append(dict(zip(avoidance.names, b.tolist(), strict=True)))
    for name, more in bias.items():
        assert least[0][f"distance of {name}"] - least[1][f"distance of {name}"] == pytest.approx(more)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 5, 0, 4, 1, 2]])
def test_rows_of_one_pair_of_bodies_do_not_crowd_out_the_others(order):
    """Four corners of a sole ask for more than two other pairs: of four rows the corners get two."""
    distance, group = np.array([0.01, 0.012, 0.011, 0.013, 0.05, 0.06])[order], np.array([7, 7, 7, 7, 8, 9])
    J = np.eye(6)[order]
    A, b, need, chosen = np.zeros((4, 6)), np.full(4, NEUTRAL), np.zeros(4), np.zeros(4, np.int64)
    near = fill_avoidance_rows(
        distance, J, np.zeros(6), np.zeros(6), np.array(order), group, 0.0, 0.3, 1e-3, np.full(6, 3.0), 100.0, 0.1,
        need, chosen, A, b,
    )  # fmt: skip
    assert near == 6
    assert np.argmax(A, axis=1).tolist() == [0, 2, 4, 5]
    assert np.all(np.diff(need) < 0.0)


def test_a_penetrating_pair_parts(standing):
    """Nearer than safe, the row asks for a speed that brings the pair apart."""
    avoidance = CollisionAvoidance(1, safe=0.02)
    pair = SphereAndPlane("left_hand", np.array([0.0, 0, 1]), standing.terms.frame("left_hand").p[2], 0.01)
    assert give(avoidance, standing.terms, [pair])[0] == pytest.approx(-0.01)
    contacts, tasks = soles(standing), standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks, limits=[avoidance])
    qp.update(standing.terms, contacts, tasks, limits=[avoidance])
    s = qp.solve()
    assert s.ok, s.message
    assert pair(standing.terms)[1] @ s.vd == pytest.approx(avoidance.ceiling, abs=1e-6)


def test_a_pair_that_cannot_be_kept_apart_is_named(standing):
    """Two planes that close in on the hand from both sides contradict each other; the explanation says which."""
    hand = standing.terms.frame("left_hand").p
    avoidance = CollisionAvoidance(2)
    pairs = [SphereAndPlane("left_hand", np.array([s, 0, 0]), s * hand[0] + 0.01, 0.0) for s in (1.0, -1.0)]
    give(avoidance, standing.terms, pairs)
    contacts, tasks = soles(standing), standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks, limits=[avoidance])
    qp.update(standing.terms, contacts, tasks, limits=[avoidance])
    s = qp.solve()
    assert s.status == 1
    assert any(c.name == "distance of SphereAndPlane" for c in s.conflicts), s.message


def test_wrong_options_and_shapes_are_refused(hrp2):
    with pytest.raises(InputError, match="1 or more"):
        CollisionAvoidance(0)
    with pytest.raises(InputError, match="more than the distance kept"):
        CollisionAvoidance(1, safe=0.1, influence=0.05)
    with pytest.raises(InputError, match="do not fit"):
        CollisionAvoidance(1).set_pairs([0.1, 0.2], np.zeros((1, hrp2.nv)))
