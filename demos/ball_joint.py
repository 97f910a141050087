"""A pendulum on a ball joint under a body in flight: one motion in four charts of the joint.

    python demos/ball_joint.py

In the file the joint is `<joint type="ball">`; the robot's own coordinates of it are the rotation vector of its unit
quaternion. The framework of the base (a chart, its constraint, a multiplier) takes every ball joint as well.
"""

import tempfile
from pathlib import Path

import numpy as np

import mcplan as mc
from mcplan.textbook.coordinates import ROLL_PITCH_YAW, ROTATION_MATRIX, ROTATION_VECTOR, UNIT_QUATERNION, Lagrangian

URDF = """<robot name="pendulum">
  <link name="body"><inertial><mass value="3"/>
    <inertia ixx=".1" iyy=".2" izz=".15" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="socket" type="ball"><parent link="body"/><child link="bob"/><origin xyz="0 0 -0.2"/></joint>
  <link name="bob"><inertial><origin xyz="0 0 -0.4"/><mass value="1"/>
    <inertia ixx=".02" iyy=".02" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "pendulum.urdf"
        path.write_text(URDF)
        robot = mc.load_robot(path)
    print(f"coordinates: {', '.join(robot.joint_names)}; the first of each ball joint: {robot.ball_columns}")
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[7:], v[6:] = (0.6, 0.2, 0.0), (0.5, 3.0, 6.0)
    ends = {}
    for chart in (ROTATION_VECTOR, UNIT_QUATERNION, ROTATION_MATRIX, ROLL_PITCH_YAW):
        dynamics = Lagrangian(robot, UNIT_QUATERNION, chart)
        start = dynamics.coordinates(q)
        motion = dynamics.simulate(start, dynamics.rates(start, v), duration=0.4, dt=1e-3)
        drift = max(np.abs(dynamics.constraint(x)).max() for x in motion.q)
        ends[chart.name] = dynamics.configuration(motion.q[-1])
        print(f"{chart.name:32s} {dynamics.size:2d} coordinates, constraints kept to {drift:.1e}")
    reference = ends[ROTATION_VECTOR.name]
    apart = max(np.abs(robot.difference(reference, end)).max() for end in ends.values())
    print(f"after 0.4 s in the air the four are {apart:.1e} rad or m apart")


if __name__ == "__main__":
    main()
