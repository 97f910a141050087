"""A run that is right by construction: a box stands on the floor and waves its arm, then puts a finger on a wall.

The base never moves, so the wrench under it is what the base rows of the equation of motion ask for; the finger's part
is chosen. Robot and scenario are files like any other; planner and controller have no part in it.
"""

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import yaml

from mcplan.model.robot_file import load_robot
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.plan_file import plan_document
from mcplan.scene.load import load_scenario
from mcplan.scene.place import make_contact
from mcplan.sim.independent import Mechanism, integrate
from mcplan.sim.records import PhaseRecord, RobotRecord, RunRecord
from mcplan.sim.robot_record import record_document, record_plan, record_robot
from mcplan.sim.run import Run

DOWN = [[1.0, 0, 0], [0, -1, 0], [0, 0, -1]]
CORNERS = [[0.3, 0.3], [-0.3, 0.3], [-0.3, -0.3], [0.3, -0.3]]

URDF = """<robot name="waving_box">
<link name="box"><inertial><mass value="30"/><inertia ixx="0.5" iyy="0.5" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial>
</link>
<link name="upper"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.001" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.001" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="finger"><inertial><mass value="0.1"/>
<inertia ixx="0.0001" iyy="0.0001" izz="0.0001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="box"/><child link="upper"/>
<origin xyz="0 0 0.3"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="3" effort="60"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
<origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="9" velocity="99" effort="60"/></joint>
<joint name="wrist" type="revolute"><parent link="lower"/><child link="finger"/>
<origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="3" effort="60"/></joint>
</robot>
"""

ROBOT = {
    "mcplan": 1,
    "urdf": "waving_box.urdf",
    "locked": {"wrist": 0.2},
    "armature": {"shoulder": 0.1, "elbow": 0.0},
    "patches": {
        "sole": {"link": "box", "pose": {"xyz": [0, 0, -0.2], "quat_wxyz": [0, 1, 0, 0]}, "polygon": CORNERS},
        "tip": {"link": "finger", "kind": "point", "pose": {"xyz": [0.02, 0, 0]}},
    },
}


def write_robot(directory: Path) -> Path:
    """Write a box of 30 kg with an arm of two hinges about y and a locked wrist; return its robot.yaml."""
    (directory / "waving_box.urdf").write_text(URDF)
    (directory / "robot.yaml").write_text(yaml.safe_dump(ROBOT))
    return directory / "robot.yaml"


@cache
def box_robot() -> RobotRecord:
    """Return the record of the box."""
    with tempfile.TemporaryDirectory() as directory:
        return record_robot(load_robot(write_robot(Path(directory))))


def waving_run(samples: int = 600, dt: float = 0.001, touch: int = 400) -> Run:
    """Waving until sample ``touch``, then the arm stands still with 5 N of the wall on the finger."""
    robot = box_robot()
    mechanism = Mechanism(robot)
    t = dt * np.arange(samples)
    q, v, vd = np.zeros((samples, 9)), np.zeros((samples, 8)), np.zeros((samples, 8))
    q[0, :7] = [0.1, -0.2, 0.2, 1, 0, 0, 0]
    # whole periods of velocity until the touch, so that the arm then stands still
    phase = 2 * np.pi / touch
    shape = np.where(np.arange(samples) < touch, np.cos(phase * (np.arange(samples) + 0.5)), 0.0)
    vd[:, 6], vd[:, 7] = 20 * shape, -15 * shape
    for k in range(samples - 1):
        v[k + 1] = v[k] + dt * vd[k]
        q[k + 1] = integrate(q[k : k + 1], v[k + 1 : k + 2], dt)
    active = np.zeros((samples, 2), bool)
    active[:, 0] = True
    active[touch:, 1] = True
    wrench = np.zeros((samples, 2, 6))
    wrench[touch:, 1, :3] = [-5.0, 1.0, 1.0]
    patches = ["sole", "tip"]
    motion = mechanism.motion(q, v, vd, wrench, patches)
    # base rows to the sole's origin, 0.2 m under the base
    f, m = motion.force[:, :3], motion.force[:, 3:6]
    sole = np.array([0, 0, -0.2])
    wrench[:, 0, :3], wrench[:, 0, 3:] = f, m - np.cross(sole, f)
    motion = mechanism.motion(q, v, vd, wrench, patches)
    corners = np.column_stack([np.array(CORNERS), np.zeros(4)]) @ np.array(DOWN).T
    grasp = np.concatenate([np.concatenate([np.eye(3), _cross_matrix(c)]) for c in corners], axis=1)
    forces = (wrench[:, 0] @ np.linalg.pinv(grasp).T).reshape(samples, 4, 3)
    count = 4 + active[:, 1].astype(int)
    start = np.concatenate([[0], np.cumsum(count)])
    patch = np.concatenate([[0] * 4 + [1] * (c - 4) for c in count])
    xyz, normal, force = np.zeros((start[-1], 3)), np.zeros((start[-1], 3)), np.zeros((start[-1], 3))
    for k in range(samples):
        rows = slice(start[k], start[k] + 4)
        xyz[rows], normal[rows], force[rows] = motion.p["sole"][k] + corners, [0, 0, 1], forces[k]
        if active[k, 1]:
            i = start[k] + 4
            xyz[i], normal[i], force[i] = motion.p["tip"][k], [-1, 0, 0], wrench[k, 1, :3]
    rest = np.zeros((1, 8))
    at_rest = [mechanism.motion(row[None], rest, rest).force[0] for row in (q[0], q[-1])]
    with tempfile.TemporaryDirectory() as directory:
        scenario = load_scenario(_write_scenario(Path(directory), motion.p["tip"][-1]))
        spots = [{"patch": "sole", "surface": "floor", "x": 0.1, "y": -0.2, "yaw": 0}, TIP_ON_WALL]
        contacts = tuple(make_contact(scenario.robot, scenario.environment, spot) for spot in spots)
        stances = []
        for k, (row, h) in enumerate(zip((q[0], q[-1]), at_rest, strict=True)):
            w = np.array([*h[:3], *(h[3:6] - np.cross(sole, h[:3]))])
            stances.append(
                PlannedStance(
                    contacts[: k + 1], "add" if k else "start", "tip" if k else None, row, {"sole": w}, h[6:], {}
                )
            )
        plan = Plan(scenario, tuple(stances))
        documents = record_document(dict(scenario.document.data)), record_plan(plan, plan_document(plan, directory))
    record = RunRecord(
        mcplan_run=1,
        mcplan="0",
        dt=dt,
        physics="qp",
        seed=0,
        joints=robot.coordinates,
        links=[link.name for link in robot.links],
        patches=patches,
        phases=[PhaseRecord(name="wave", stance=1, ended_by="time"), PhaseRecord(name="touch", stance=1)],
        robot=robot,
        scenario=documents[0],
        plan=documents[1],
    )
    return Run(
        record=record,
        t=t,
        q=q,
        v=v,
        vd=vd,
        tau=motion.force[:, 6:].copy(),
        tau_ext=np.zeros((samples, 8)),
        wrench=wrench,
        active=active,
        phase=active[:, 1].astype("<i8"),
        com=motion.com,
        qp_status=np.zeros(samples, "<i8"),
        point_start=start.astype("<i8"),
        point_link=np.where(patch == 0, 0, 3).astype("<i8"),
        point_patch=patch.astype("<i8"),
        point_xyz=xyz,
        point_normal=normal,
        point_force=force,
    )


TIP_ON_WALL = {"patch": "tip", "surface": "wall", "x": 0.0, "y": 0.0, "yaw": 0}


def _write_scenario(directory: Path, tip: np.ndarray) -> Path:
    """Write the scenario: the wall's frame is where the tip touches it, with z towards the box; return its path."""
    write_robot(directory)
    sole = {"patch": "sole", "surface": "floor", "x": 0.1, "y": -0.2, "yaw": 0}
    document = {
        "mcplan": 1,
        "name": "waving_box",
        "robot": "robot.yaml",
        "environment": {
            "surfaces": [
                {"name": "floor", "size": [4, 4]},
                {"name": "wall", "pose": {"xyz": tip.tolist(), "rpy": [0, -np.pi / 2, 0]}, "size": [1, 1]},
            ]
        },
        "start": {"base": {"xyz": [0.1, -0.2, 0.2]}, "contacts": [sole]},
        "stances": [{"contacts": [sole]}, {"add": TIP_ON_WALL}],
    }
    path = directory / "waving_box.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def _cross_matrix(r: np.ndarray) -> np.ndarray:
    x, y, z = r
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
