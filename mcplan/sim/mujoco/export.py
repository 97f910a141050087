"""Export of a run as a MuJoCo scene with keyframes: one MJCF file for ``mujoco.MjModel.from_xml_path``."""

import re
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from mcplan.record.run import Run
from mcplan.robot.robot import Robot
from mcplan.sim.mujoco.build import build
from mcplan.sim.mujoco.physics import MujocoPhysics
from mcplan.textbook.coordinates.maximal import Maximal
from mcplan.util.files import write_text

DEFAULT_RATE = 20.0
"""Default number of keyframes per second."""

WORLD = "world"
"""Name of MuJoCo's root body."""


def write(run: Run, path: Path, rate: float | None = None) -> list[Path]:
    """Write robot, environment and keyframes as MJCF; return the path.

    Bodies are named after the links (a link ``world`` becomes ``body:0``, by its index), joints and actuators after the
    robot's joints (a joint ``base`` becomes ``joint:base``, because the free joint is ``base``). A keyframe has time,
    qpos, qvel and, as ctrl, the joint torques; it is named by the index of its sample and its phase.

    Parameters
    ----------
    rate : keyframes per second; None: 20.
    """
    robot, environment = run.robot, run.scenario.environment
    spec = build(robot, environment, run.q[0]).spec
    physics = MujocoPhysics(robot, environment, run.q[0])
    model, data = physics.model, physics.data
    motors = [model.actuator(f"motor:{name}").id for name in robot.joint_names]
    for k in run.every(DEFAULT_RATE if rate is None else rate):
        physics.reset(run.q[k], run.v[k])
        if run.object_q is not None and run.object_v is not None:
            for name, q, v in zip(run.record.objects, run.object_q[k], run.object_v[k], strict=True):
                _place(model.joint(f"object:{name}"), data, q, v)
        ctrl = np.zeros(model.nu)
        ctrl[motors] = physics.controls(run.tau[k])
        phase = run.phases[run.phase[k]]
        spec.add_key(name=f"{k}:{phase}", time=float(run.t[k]), qpos=data.qpos, qvel=data.qvel, ctrl=ctrl)
    spec.modelname = run.scenario.name
    spec.compile()
    write_text(path, _with_names_of(robot, spec.to_xml()))
    return [path]


def _with_names_of(robot: Robot, xml: str) -> str:
    """Rename the bodies in an MJCF text to their links, and its joints and motors to the robot's joints."""
    # a link cannot be called "world" in MuJoCo: its root body has this name
    names = enumerate(Maximal(robot).bodies)
    links = [f"body:{i}" if name == WORLD else escape(name, {'"': "&quot;"}) for i, name in names]
    xml = re.sub(r'"body:(\d+)"', lambda found: f'"{links[int(found[1])]}"', xml)
    return re.sub(r'"(?:joint|motor):(?!base")([^"]*)"', r'"\1"', xml)


def _place(joint, data, q: np.ndarray, v: np.ndarray) -> None:
    """Set the state of a free joint; MuJoCo's angular velocity is in body axes, ``R' w``."""
    w, u = q[3], q[4:7]
    rotation_term = 2.0 * np.cross(u, np.cross(u, v[3:]) - w * v[3:])
    joint_q, joint_v = int(joint.qposadr[0]), int(joint.dofadr[0])
    data.qpos[joint_q : joint_q + 7] = q
    data.qvel[joint_v : joint_v + 6] = [*v[:3], *(v[3:] + rotation_term)]
