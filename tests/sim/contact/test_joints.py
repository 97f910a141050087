"""Friction, damping, rotor inertia and limits of joints: a flywheel in a case, in free fall.

The wheel turns about its own centre of mass, so that gravity and the case's motion drop out:

    M = [[I_c + I_w, I_w], [I_w, I_w + armature]]
"""

import numpy as np
import pytest

from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment
from mcplan.settings.simulation import SimulationSettings
from mcplan.sim.contact.contact_physics import ContactPhysics
from mcplan.sim.physics import Action

CASE, WHEEL, ROTOR, EFFORT = 0.05, 0.02, 0.03, 10.0

WHEEL_IN_CASE = f"""<robot name="wheel">
<link name="case"><inertial><mass value="2"/>
<inertia ixx="{CASE}" iyy="{CASE}" izz="{CASE}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="wheel"><inertial><mass value="1"/>
<inertia ixx="{WHEEL}" iyy="{WHEEL}" izz="{WHEEL}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="axle" type="revolute"><parent link="case"/><child link="wheel"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" effort="{EFFORT}" velocity="100"/></joint></robot>"""

FILE = f"""mcplan: 1
name: wheel
urdf: wheel.urdf
base: case
armature: {{axle: {ROTOR}}}
"""

EASE = np.linalg.inv([[CASE + WHEEL, WHEEL], [WHEEL, WHEEL + ROTOR]])[1, 1]
"""Acceleration of the axle per torque, rotor included."""


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "wheel.urdf").write_text(WHEEL_IN_CASE)
    (folder / "robot.yaml").write_text(FILE)
    return load_robot(folder / "robot.yaml")


def spun(robot, seconds, torque=0.0, speed=0.0, dt=1e-3, **settings):
    """Angles and speeds of the axle, step by step."""
    v = np.zeros(7)
    v[6] = speed
    physics = ContactPhysics(robot, Environment(), robot.neutral(), (), SimulationSettings(**settings), v)
    found = []
    for _ in range(round(seconds / dt)):
        physics.step(Action(np.array([torque]), np.zeros(7), {}, {}, ()), dt)
        found.append((physics.q[7], physics.v[6]))
    return np.array(found).T


def test_the_rotor_counts(robot):
    _, speed = spun(robot, 0.1, torque=1.0)
    np.testing.assert_allclose(speed[-1], 0.1 * EASE, rtol=1e-9)


def test_viscous_damping_slows_down_exponentially(robot):
    _, speed = spun(robot, 0.2, speed=2.0, joint_damping=0.1)
    steps = np.arange(1, 201)
    # implicit Euler of v' = -d v; only the case's reaction remains
    np.testing.assert_allclose(speed, 2.0 / (1 + 1e-3 * 0.1 * EASE) ** steps, rtol=1e-6)


@pytest.mark.parametrize(("torque", "turns"), [(0.49, False), (0.51, True)])
def test_coulomb_friction_holds_up_to_its_bound(robot, torque, turns):
    angle, speed = spun(robot, 0.5, torque=torque, joint_friction=0.05)
    if turns:
        np.testing.assert_allclose(speed[-1], 0.5 * 0.01 * EASE, rtol=1e-6)
    else:
        assert abs(angle[-1]) < 1e-4


def test_coulomb_friction_stops_the_wheel_where_its_energy_ends(robot):
    angle, speed = spun(robot, 0.5, speed=3.0, joint_friction=0.05)
    deceleration = 0.5 * EASE
    np.testing.assert_allclose(angle[-1], 3.0**2 / (2 * deceleration), rtol=1e-2)
    assert abs(speed[-1]) < 1e-6


def test_a_limit_stops_the_joint_and_takes_its_energy(robot):
    angle, speed = spun(robot, 0.6, torque=2.0, speed=5.0)
    assert angle.max() < 2.0 + 1e-4
    np.testing.assert_allclose(angle[-1], 2.0, atol=1e-3)
    assert abs(speed[-1]) < 1e-6


@pytest.mark.parametrize("shift", [1.0, -1.0])
def test_a_motor_gives_no_more_than_its_limit(robot, shift):
    _, speed = spun(robot, 0.01, torque=shift * 3 * EFFORT)
    np.testing.assert_allclose(speed[-1], shift * 0.01 * EFFORT * EASE, rtol=1e-9)
