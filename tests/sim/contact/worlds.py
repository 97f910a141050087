"""Small worlds: free solids on surfaces, beside a robot of one link that falls aside."""

import functools
import tempfile
from pathlib import Path

import numpy as np

from mcplan.robot.description import Box
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, FreeObject, Surface
from mcplan.settings.simulation import ContactLaw, SimulationSettings
from mcplan.sim.contact.contact_physics import ContactPhysics
from mcplan.sim.physics import Action

G = 9.81

SPECK = """<robot name="speck"><link name="speck"><inertial><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


@functools.cache
def speck():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speck.urdf"
        path.write_text(SPECK)
        return load_robot(path)


def rotation(axis, angle):
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def square(half=50.0):
    return np.array([[-half, -half], [half, -half], [half, half], [-half, half]])


def plane(angle=0.0, friction=0.5, half=50.0):
    """A slab whose top passes through the origin, tilted about y: +x goes down."""
    return Surface("plane", rotation((0, 1, 0), angle), np.zeros(3), square(half), 0.05, friction)


def solid(shape=None, R=None, p=(0, 0, 0.1), mass=2.0, friction=1e6):
    R = np.eye(3) if R is None else R
    return FreeObject("solid", shape or Box((0.2, 0.2, 0.2)), R, np.array(p, float), mass, friction)


class World:
    """A physics of objects only, with energy, stepped at rest torques."""

    def __init__(self, surfaces, objects, **law):
        environment = Environment(surfaces=tuple(surfaces), objects=tuple(objects))
        robot, settings = speck(), SimulationSettings(contact=ContactLaw(**law))
        q = robot.neutral()
        q[2] = 1e3
        self.physics = ContactPhysics(robot, environment, q, settings=settings)
        self.objects = objects
        self.still = Action(np.zeros(0), np.zeros(6), {}, {}, ())

    def run(self, seconds, dt=1e-3, watch=None):
        for _ in range(round(seconds / dt)):
            outcome = self.physics.step(self.still, dt)
            if watch is not None:
                watch(self, outcome)

    @property
    def q(self):
        return self.physics.centre_q[0]

    @property
    def v(self):
        return self.physics.centre_v[0]

    def energy(self):
        """Kinetic and potential energy of the first object, J."""
        w, x, y, z = self.q[3:]
        R = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
        mass, inertia = self.objects[0].mass, self.physics.scene.body[-1, 6:9]
        turn = R.T @ self.v[3:]
        return mass * G * self.q[2] + 0.5 * mass * self.v[:3] @ self.v[:3] + 0.5 * inertia @ turn**2
