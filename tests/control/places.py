"""A scene to put contacts in, and contacts of a robot that have been closed in it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.control.handled import HandledObjects
from mcplan.control.motion import Motion
from mcplan.robot.description import Box
from mcplan.scene.environment import Bar, Environment, FreeObject, Surface
from mcplan.scene.placement import make_contact

SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
TILT = Rotation.from_rotvec([0.0, 0.3, 0.0]).as_matrix()
SIDE = np.array([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]])
FACE = Surface("face", SIDE, np.array([0.8, 0, 0.4]), 0.1 * SQUARE, owner="box")
BOX = FreeObject("box", Box((0.4, 0.4, 0.8)), np.eye(3), np.array([1.0, 0.0, 0.4]), 10.0, 0.4, (FACE,))
SCENE = Environment(
    (Surface("floor", np.eye(3), np.zeros(3), SQUARE), Surface("ramp", TILT, np.zeros(3), SQUARE)),
    (Bar("bar", np.array([[0.4, -0.5, 1.0], [0.4, 0.5, 1.0]]), 0.02),), (), (BOX,),
)  # fmt: skip


def contact_on(robot, patch, surface, **spec):
    return make_contact(robot, SCENE, {"patch": patch, "surface": surface, **spec})


def objects_of(robot, settings, contacts=()):
    """Return the objects that a plan handles of which a stance has these contacts."""
    stances = (SimpleNamespace(contacts=tuple(contacts), objects={}),)
    plan = SimpleNamespace(stances=stances, scenario=SimpleNamespace(robot=robot, environment=SCENE))
    return HandledObjects(plan, settings)


def closed(robot, contact, settings, **changes):
    motion = Motion(robot, SCENE, settings, robot.posture("half_sitting"))
    motion.close(contact, 1.0, 0.4, 30.0)
    motion.contacts[contact.patch] = replace(motion.contacts[contact.patch], **changes)
    motion._list_closed()
    return motion.contacts[contact.patch]
