"""Parts of one plane are one ground: a link may touch all of it, and nothing beside it."""

import numpy as np

import mcplan as mc
from mcplan.collision.model import CollisionModel
from mcplan.scene.coplanar import coplanar


def parts(height=0.0):
    left = mc.Surface("left", size=(2, 1), xyz=(0, 0.5, 0))
    right = mc.Surface("right", size=(2, 1), xyz=(0, -0.5, height), rpy=(0, 0, 0.0))
    wall = mc.Surface("wall", size=(1, 1), xyz=(1, 0, 0.5), rpy=(0, -np.pi / 2, 0))
    return mc.Environment([left, right, wall])


def test_surfaces_of_one_plane_are_found():
    assert coplanar(parts()) == {"left": {"left", "right"}, "right": {"left", "right"}, "wall": {"wall"}}
    assert coplanar(parts(2e-4))["left"] == {"left"}
    assert coplanar(mc.Environment()) == {}


def test_a_sole_on_one_part_may_touch_the_others_of_its_plane_only():
    robot = mc.load_robot("hrp2")
    for height, allowed in ((0.0, True), (0.01, False)):
        environment = parts(height)
        model = CollisionModel(robot, environment)
        sole = mc.contact(robot, "left_sole", environment.support("left"), x=0.0, y=-0.4, yaw=0.0)
        touched = {model.pairs[k].b for k in model.pairs_of([sole])}
        assert touched == ({"left", "right"} if allowed else {"left"})
