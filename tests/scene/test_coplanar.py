"""Parts of one plane are one ground: a link may touch all of it, and nothing beside it."""

import numpy as np

import mcplan as mc
from mcplan.certificate.solids import gather_solids
from mcplan.record.recording import record_robot
from mcplan.scene.environment import coplanar_surfaces


def parts(height=0.0):
    left = mc.Surface("left", size=(2, 1), xyz=(0, 0.5, 0))
    right = mc.Surface("right", size=(2, 1), xyz=(0, -0.5, height), rpy=(0, 0, 0.0))
    wall = mc.Surface("wall", size=(1, 1), xyz=(1, 0, 0.5), rpy=(0, -np.pi / 2, 0))
    return mc.Environment([left, right, wall])


def test_surfaces_of_one_plane_are_found():
    assert coplanar_surfaces(parts()) == {"left": {"left", "right"}, "right": {"left", "right"}, "wall": {"wall"}}
    assert coplanar_surfaces(parts(2e-4))["left"] == {"left"}
    assert coplanar_surfaces(mc.Environment()) == {}


def test_the_certificate_lets_a_link_sink_into_all_of_the_plane_that_it_stands_on():
    robot = mc.load_robot("hrp2")
    environment = parts()
    solids = gather_solids(robot, record_robot(robot), environment)
    assert solids.supports["left"] == {"left", "right"}
    assert solids.supports["wall"] == {"wall"}
