"""A custom mechanism, thrown into the air: its momentum obeys gravity, whatever its joint does.

    python demos/pendulum_in_flight.py

Any URDF loads; without a robot.yaml the base floats and there are no patches. The joint is driven by a torque, so the
energy changes, but the angular momentum about the centre of mass cannot, and the centre of mass flies a parabola.
"""

import tempfile
from pathlib import Path

import numpy as np

import mcplan as mc

URDF = """<?xml version="1.0"?>
<robot name="thrown">
  <link name="body"><inertial><mass value="2.0"/><origin xyz="0 0 0.1"/>
    <inertia ixx="0.02" iyy="0.03" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><inertial><mass value="1.0"/><origin xyz="0 0 -0.3"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="continuous">
    <parent link="body"/><child link="arm"/><origin xyz="0 0.1 0.2"/><axis xyz="0 1 0"/>
  </joint>
</robot>
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "thrown.urdf"
        path.write_text(URDF)
        robot = mc.load_robot(path)
    print(f"{robot.name}: {robot.mass} kg, joints {robot.joint_names}")

    q = robot.neutral()
    v = np.array([1.0, 0.0, 4.0, 0.3, 2.0, -0.5, -3.0])  # thrown up and forward, turning, the arm swinging
    com, velocity = robot.com(q), robot.com_jacobian(q) @ v
    spin = (robot.centroidal_momentum_matrix(q) @ v)[3:]

    dt, steps = 1e-4, 8000
    for k in range(steps):
        tau = np.array([0.5 * np.sin(20 * k * dt)])
        v = v + dt * robot.forward_dynamics(q, v, tau)
        q = robot.integrate(q, v, dt)

    t = steps * dt
    parabola = com + velocity * t + 0.5 * np.array([0.0, 0.0, -9.81]) * t**2
    drift = np.linalg.norm(robot.com(q) - parabola)
    change = np.linalg.norm((robot.centroidal_momentum_matrix(q) @ v)[3:] - spin)
    print(f"after {t:g} s the centre of mass is {1e3 * drift:.2f} mm off its parabola (the step alone explains that),")
    print(f"and the angular momentum has changed by {change / np.linalg.norm(spin):.1e} of its size")


if __name__ == "__main__":
    main()
