"""A run that is right by construction: a box stands on the floor and waves its arm, then puts a finger on a wall.

The base never moves, so the wrench under it is what the base rows of the equation of motion ask for; the finger's part
is chosen. Robot and scenario are files like any other; planner and controller have no part in it.
"""

import tempfile
from pathlib import Path

import numpy as np
import yaml

from mcplan.certificate.independent import Mechanism, integrate
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.plan_file import plan_document
from mcplan.record.recording import record_document, record_plan, record_robot
from mcplan.record.records import PhaseRecord, RunRecord
from mcplan.record.run import Run
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import load_scenario
from mcplan.scenario.scenario import Scenario
from mcplan.scene.placement import make_contact

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
    },
}


def write_robot(directory: Path, tip: str = "point") -> Path:
    """Write a box of 30 kg with an arm of two hinges about y and a locked wrist; return its robot.yaml."""
    (directory / "waving_box.urdf").write_text(URDF)
    patches = ROBOT["patches"] | {"tip": {"link": "finger", **TIPS[tip]}}
    (directory / "robot.yaml").write_text(yaml.safe_dump(ROBOT | {"patches": patches}))
    return directory / "robot.yaml"


TIPS = {
    "point": {"kind": "point", "pose": {"xyz": [0.02, 0, 0]}},
    "grasp": {"kind": "grasp", "pose": {"xyz": [0.02, 0, 0]}, "max_force": 6.0, "max_moment": 1.0},
    "edge": {
        "pose": {"xyz": [0.02, 0, 0], "rpy": [0, np.pi / 2, 0]},
        "polygon": [[0, -0.05], [0, 0.05]],
    },
}
"""What the finger ends in."""


def waving_run(
    samples: int = 600,
    dt: float = 0.001,
    touch: int = 400,
    tip: str = "point",
    overhang: float = 0.0,
    crate: bool = False,
) -> Run:
    """Waving until sample ``touch``, then the arm stands still with 5 N of the wall (or of a bar) on the finger.

    Parameters
    ----------
    tip : kind of the finger's contact, see ``TIPS``.
    overhang : how far the sole reaches beyond the floor, m.
    crate : whether a crate stands by.
    """
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
    with tempfile.TemporaryDirectory() as directory:
        scenario = load_scenario(_write_scenario(Path(directory), q[-1], tip, overhang, crate))
        contacts = tuple(make_contact(scenario.robot, scenario.environment, c) for c in _spots(scenario))
        robot = record_robot(scenario.robot)
        mechanism = Mechanism(robot)
        sole = np.array([0, 0, -0.2])
        rest = np.zeros((1, 8))
        stances = []
        for k, row in enumerate((q[0], q[-1])):
            h = mechanism.motion(row[None], rest, rest).force[0]
            w = np.array([*h[:3], *(h[3:6] - np.cross(sole, h[:3]))])
            stances.append(
                PlannedStance(
                    contacts[: k + 1], "add" if k else "start", "tip" if k else None, row, {"sole": w}, h[6:], {}
                )
            )
        plan = Plan(scenario, tuple(stances))
        documents = record_document(dict(scenario.document.data)), record_plan(plan, plan_document(plan, directory))
    active = np.zeros((samples, 2), bool)
    active[:, 0] = True
    active[touch:, 1] = True
    wrench = np.zeros((samples, 2, 6))
    wrench[touch:, 1, :3] = [-5.0, 1.0, 1.0]
    if tip == "grasp":
        wrench[touch:, 1, 3:] = [0.2, -0.3, 0.1]
    patches = ["sole", "tip"]
    motion = mechanism.motion(q, v, vd, wrench, patches)
    # base rows to the sole's origin, 0.2 m under the base
    f, m = motion.force[:, :3], motion.force[:, 3:6]
    wrench[:, 0, :3], wrench[:, 0, 3:] = f, m - np.cross(sole, f)
    motion = mechanism.motion(q, v, vd, wrench, patches)
    corners = contacts[0].points @ np.array(DOWN).T
    grasp = np.concatenate([np.concatenate([np.eye(3), _cross_matrix(c)]) for c in corners], axis=1)
    forces = (wrench[:, 0] @ np.linalg.pinv(grasp).T).reshape(samples, len(corners), 3)
    ends, n = len(contacts[1].points), len(corners)
    count = n + ends * active[:, 1].astype(int)
    start = np.concatenate([[0], np.cumsum(count)])
    patch = np.concatenate([[0] * n + [1] * (c - n) for c in count])
    xyz, normal, force = np.zeros((start[-1], 3)), np.zeros((start[-1], 3)), np.zeros((start[-1], 3))
    for k in range(samples):
        rows = slice(start[k], start[k] + n)
        xyz[rows], normal[rows], force[rows] = motion.p["sole"][k] + corners, [0, 0, 1], forces[k]
        if active[k, 1]:
            rows = slice(start[k] + n, start[k + 1])
            xyz[rows] = motion.p["tip"][k] + contacts[1].points @ motion.R["tip"][k].T
            normal[rows], force[rows] = contacts[1].axes[:, 2], wrench[k, 1, :3] / ends
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
        objects=[thing.name for thing in scenario.environment.objects],
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
        qp_slack=np.zeros(samples),
        object_q=np.tile([1.5, 1.0, 0.1, 1, 0, 0, 0], (samples, 1, 1)) if crate else None,
        object_v=np.zeros((samples, 1, 6)) if crate else None,
    )


def _spots(scenario: Scenario) -> list[dict]:
    """Return the contacts of the sole and of the tip as the scenario's sequence says them."""
    first, second = scenario.document.data["stances"]
    return [first["contacts"][0], second["add"]]


def _write_scenario(directory: Path, q: np.ndarray, tip: str, overhang: float, crate: bool) -> Path:
    """Write the scenario; what the finger touches is where it is at ``q`` (9,). Return its path."""
    robot = load_robot(write_robot(directory, tip))
    X = robot.frame_pose(q, "tip")
    p, y = X[:3, 3], X[:3, 1]
    sole = {"patch": "sole", "surface": "floor", "x": 0.1, "y": -0.2, "yaw": 0}
    floor = {"name": "floor", "size": [4, 4]}
    if overhang:
        floor = {"name": "floor", "polygon": [[-2, -2], [0.4 - overhang, -2], [0.4 - overhang, 2], [-2, 2]]}
        sole["overhang"] = True
    environment = {"surfaces": [floor]}
    if tip == "grasp":
        environment["bars"] = [
            {"name": "wall", "ends": [(p - 0.3 * y).tolist(), (p + 0.3 * y).tolist()], "radius": 0.015}
        ]
        touch = {"patch": "tip", "surface": "wall"}
    else:
        wall = {"name": "wall", "pose": {"xyz": p.tolist(), "rpy": [0, -np.pi / 2, 0]}, "size": [1, 1]}
        environment["surfaces"].append(wall)
        touch = {"patch": "tip", "surface": "wall", "x": 0.0, "y": 0.0}
        if tip == "point":
            touch["yaw"] = 0
    if crate:
        box = {"name": "crate", "box": {"size": [0.2, 0.2, 0.2]}, "mass": 5, "pose": {"xyz": [1.5, 1.0, 0.1]}}
        environment["objects"] = [box]
    path = directory / "waving_box.yaml"
    document = {
        "mcplan": 1,
        "name": "waving_box",
        "robot": "robot.yaml",
        "environment": environment,
        "start": {"base": {"xyz": [0.1, -0.2, 0.2]}, "contacts": [sole]},
    }
    path.write_text(yaml.safe_dump(document))
    near = make_contact(robot, load_scenario(path).environment, touch, (X[:3, :3], p))
    path.write_text(yaml.safe_dump(document | {"stances": [{"contacts": [sole]}, {"add": near.to_data()}]}))
    return path


def _cross_matrix(r: np.ndarray) -> np.ndarray:
    x, y, z = r
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
