"""The rows of collision avoidance foresee where a state takes the pairs."""

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.control.avoidance import RESPONSE, Avoidance
from mcplan.control.motion import Motion
from mcplan.model.robot_file import load_robot
from mcplan.model.terms import Terms
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.place import make_contact
from mcplan.scene.settings import ControlSettings

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
    limit = Avoidance(robot, environment, settings, 1e-3).limit(terms, Motion(robot, environment, settings, q))
    A, b = limit.rows(terms)
    i = limit.names.index(f"distance of {HAND} and {BAR}")
    return A[i], b[i]


@pytest.mark.parametrize("seed", range(4))
def test_a_row_asks_for_what_the_rate_lacks_to_which_a_turning_hand_coasts(hrp2, seed):
    """The rate that is allowed is that of a state at rest; a distance d(t) that coasts has d' + T d'' after T."""
    rng, q, T = np.random.default_rng(seed), hrp2.posture("half_sitting"), RESPONSE
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
        avoidance = Avoidance(hrp2, environment, settings, 1e-3)
        for _ in range(300):  # what is asked rises bit by bit
            limit = avoidance.limit(terms, motion)
        b = limit.rows(terms)[1]
        least.append(max(b[i] for i, name in enumerate(limit.names) if name == "distance of LLEG_LINK5 and floor"))
    assert least[0] < least[1] - 0.1  # m/s²
