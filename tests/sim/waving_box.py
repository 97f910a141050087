"""A run that is right by construction: a box stands on the floor and waves its arm, then puts a finger on a wall.

The base never moves, so the wrench under it is what the base rows of the equation of motion ask for; the finger's part
is chosen. Everything is built from records, without planner and controller.
"""

import numpy as np

from mcplan.sim.independent import Mechanism, integrate
from mcplan.sim.records import (
    ContactRecord,
    DocumentRecord,
    JointRecord,
    LinkRecord,
    PatchRecord,
    PhaseRecord,
    PlanRecord,
    RobotRecord,
    RunRecord,
    StanceRecord,
)
from mcplan.sim.run import Run

DOWN = [[1.0, 0, 0], [0, -1, 0], [0, 0, -1]]
CORNERS = [[0.3, 0.3], [-0.3, 0.3], [-0.3, -0.3], [0.3, -0.3]]
IDENTITY = np.eye(3).tolist()


def box_robot() -> RobotRecord:
    """A box of 30 kg with an arm of two hinges about y and a locked wrist."""
    inertia = np.diag([0.5, 0.5, 0.5]).tolist()
    links = [LinkRecord(name="box", mass=30.0, com=[0, 0, 0], inertia=inertia)]
    links += [
        LinkRecord(name=name, mass=1.0, com=[0.1, 0, 0], inertia=np.diag([0.001, 0.01, 0.01]).tolist())
        for name in ("upper", "lower")
    ]
    links += [LinkRecord(name="finger", mass=0.1, com=[0, 0, 0], inertia=np.diag([1e-4] * 3).tolist())]
    y = [0.0, 1.0, 0.0]
    joints = [
        JointRecord(
            name="shoulder", kind="revolute", parent=0, child=1, R=IDENTITY, p=[0, 0, 0.3], axis=y, coordinate=0
        ),
        JointRecord(name="elbow", kind="revolute", parent=1, child=2, R=IDENTITY, p=[0.3, 0, 0], axis=y, coordinate=1),
        JointRecord(name="wrist", kind="revolute", parent=2, child=3, R=IDENTITY, p=[0.3, 0, 0], axis=y, offset=0.2),
    ]
    patches = [
        PatchRecord(name="sole", link=0, kind="surface", polygon=CORNERS, R=DOWN, p=[0, 0, -0.2]),
        PatchRecord(name="tip", link=3, kind="point", polygon=[[0, 0]], R=IDENTITY, p=[0.02, 0, 0]),
    ]
    return RobotRecord(
        name="waving_box",
        digest="none",
        links=links,
        joints=joints,
        coordinates=["shoulder", "elbow"],
        lower=[-2.0, -2.0],
        upper=[2.0, None],
        velocity=[3.0, None],
        torque=[60.0, 60.0],
        armature=[0.1, 0.0],
        patches=patches,
    )


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
    wall = {"R": motion.R["tip"][-1].tolist(), "p": motion.p["tip"][-1].tolist()}
    contacts = [
        ContactRecord(
            patch="sole",
            support="floor",
            kind="surface",
            R=DOWN,
            p=[0.1, -0.2, 0.0],
            points=[[*c, 0] for c in CORNERS],
            axes=IDENTITY,
            friction=0.7,
            selection=np.eye(6).tolist(),
        ),
        ContactRecord(
            patch="tip",
            support="wall",
            kind="point",
            **wall,
            points=[[0, 0, 0]],
            axes=[[0, 0, -1.0], [1, 0, 0], [0, -1, 0]],
            friction=0.7,
            selection=np.eye(6)[:3].tolist(),
        ),
    ]
    rest = np.zeros((1, 8))
    at_rest = [mechanism.motion(row[None], rest, rest).force[0] for row in (q[0], q[-1])]
    stances = []
    for k, (row, h) in enumerate(zip((q[0], q[-1]), at_rest, strict=True)):
        w = [*h[:3], *(h[3:6] - np.cross(sole, h[:3]))]
        stances.append(
            StanceRecord(
                contacts=contacts[: k + 1],
                moved="tip" if k else None,
                change="add" if k else "start",
                q=row.tolist(),
                wrenches={"sole": w},
                tau=h[6:].tolist(),
            )
        )
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
        scenario=DocumentRecord(),
        plan=PlanRecord(stances=stances),
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


def _cross_matrix(r: np.ndarray) -> np.ndarray:
    x, y, z = r
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
