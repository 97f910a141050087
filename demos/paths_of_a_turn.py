"""The path by which inverse kinematics turns a wrist depends on its error function; one is the shortest.

    python demos/paths_of_a_turn.py

Three joints in one point (example 2.9.7 and 2.9.8 of ETH's lecture notes). The difference of the numbers of a chart
leads along a straight line in this chart; the rotation vector from here to there leads along the shortest turn.
"""

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np

import mcplan as mc
from mcplan.textbook.coordinates import ROTATION_VECTOR, XYZ, ZYX
from mcplan.textbook.kinematics import rotation_error

LINK = """<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>"""
JOINT = """<link name="{0}">{2}</link><joint name="{0}_joint" type="continuous"><parent link="{1}"/><child link="{0}"/>
<axis xyz="{3}"/></joint>"""
URDF = f"""<robot name="wrist"><link name="base">{LINK}</link>{JOINT.format("yaw", "base", LINK, "0 0 1")}
{JOINT.format("pitch", "yaw", LINK, "0 1 0")}{JOINT.format("roll", "pitch", LINK, "1 0 0")}</robot>"""


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "wrist.urdf"
        path.write_text(URDF)
        robot = mc.load_robot(path)
    start = robot.neutral()
    start[7:] = -0.7, 0.0, 1.5
    goal = ZYX.rotation([0.7, 1.5, -0.5])
    whole = np.linalg.norm(rotation_error(goal, robot.frame_pose(start, "roll")[:3, :3]))
    print(f"from start to goal the shortest turn has {np.degrees(whole):.1f} degrees")

    options = {"method": "pseudo_inverse", "gain": 0.01, "tolerance": 0.01, "max_iterations": 2000, "fixed_base": True}
    for name, chart in {"shortest turn": None, "zyx": ZYX, "xyz": XYZ, "rotation vector": ROTATION_VECTOR}.items():
        answer = mc.inverse_kinematics(robot, {"roll": goal}, start, rotation=chart, limits=False, **options)
        rotations = [robot.frame_pose(q, "roll")[:3, :3] for q in answer.path]
        length = sum(np.linalg.norm(rotation_error(after, before)) for before, after in pairwise(rotations))
        print(f"  error by {name:16s} {answer.iterations:4d} steps, {np.degrees(length):6.1f} degrees of turning")
    print(f"all end within {np.degrees(0.01):.1f} degrees of the goal: {answer.reached}")


if __name__ == "__main__":
    main()
