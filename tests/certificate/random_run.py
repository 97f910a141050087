"""A run of a random mechanism, right by construction: it is pushed about as its motion asks, and stands on nothing."""

import numpy as np

from mcplan.certificate.independent import Mechanism, integrate
from mcplan.record.records import PhaseRecord, PlanRecord, RobotRecord, RunRecord, StanceRecord
from mcplan.record.run import Run


def free_run(robot: RobotRecord, samples: int = 40, dt: float = 0.002, seed: int = 0) -> Run:
    """Random accelerations and wrenches on all patches; torques and ``tau_ext`` share what is left of the forces."""
    rng = np.random.default_rng(seed)
    n, patches = len(robot.coordinates), [patch.name for patch in robot.patches]
    q, v = np.zeros((samples, 7 + n)), np.zeros((samples, 6 + n))
    vd = rng.normal(0, 5, (samples, 6 + n))
    q[0] = rng.normal(0, 0.5, 7 + n)
    q[0, 3:7] /= np.linalg.norm(q[0, 3:7])
    v[0] = rng.normal(0, 1, 6 + n)
    for k in range(samples - 1):
        v[k + 1] = v[k] + dt * vd[k]
        q[k + 1] = integrate(q[k : k + 1], v[k + 1 : k + 2], dt)
    wrench = rng.normal(0, 50, (samples, len(patches), 6))
    motion = Mechanism(robot).motion(q, v, vd, wrench, patches)
    tau = rng.normal(0, 20, (samples, n))
    tau_ext = motion.force.copy()
    tau_ext[:, 6:] -= tau
    record = RunRecord(
        mcplan_run=1,
        mcplan="0",
        dt=dt,
        physics="contact",
        seed=seed,
        joints=robot.coordinates,
        links=[link.name for link in robot.links],
        patches=patches,
        phases=[PhaseRecord(name="flight", stance=0)],
        robot=robot,
        scenario={},
        plan=PlanRecord(stances=[StanceRecord(contacts=[], q=q[0].tolist())]),
    )
    return Run(
        record=record,
        t=dt * np.arange(samples),
        q=q,
        v=v,
        vd=vd,
        tau=tau,
        tau_ext=tau_ext,
        wrench=wrench,
        active=np.zeros((samples, len(patches)), bool),
        phase=np.zeros(samples, np.int64),
        com=motion.com,
        qp_status=np.zeros(samples, np.int64),
        point_start=np.zeros(samples + 1, np.int64),
        point_link=np.zeros(0, np.int64),
        point_patch=np.zeros(0, np.int64),
        point_xyz=np.zeros((0, 3)),
        point_normal=np.zeros((0, 3)),
        point_force=np.zeros((0, 3)),
    )


def with_a_mimic(robot: RobotRecord, multiplier: float = -1.7, offset: float = 0.3) -> RobotRecord:
    """The last joint that moves follows the first one."""
    last = len(robot.coordinates) - 1
    joints = [
        joint.model_copy(update={"coordinate": 0, "multiplier": multiplier, "offset": offset})
        if joint.coordinate == last
        else joint
        for joint in robot.joints
    ]
    limits = {name: [None] * last for name in ("lower", "upper", "velocity", "torque")}
    coordinates, armature = robot.coordinates[:-1], robot.armature[:-1]
    return robot.model_copy(update={"joints": joints, "coordinates": coordinates, "armature": armature, **limits})
