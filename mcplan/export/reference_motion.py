"""Reference motion of a run for imitation learning: base, joints, poses and velocities of all links, contacts.

Three formats, all at a constant rate (default 50 samples per second), in SI units and world axes. The base is the root
link of the URDF, even if a robot.yaml selects another one; the links are those of the URDF:

``reference``
    CSV with names only in a first line that begins with ``#``: base x y z, base quaternion **x y z w**, joints.
``motion``
    A folder with ``joint_pos.csv``, ``joint_vel.csv``, ``body_pos.csv``, ``body_quat.csv`` (w x y z),
    ``body_lin_vel.csv``, ``body_ang_vel.csv``, ``metadata.txt`` and ``info.txt``, each CSV with a line of names; body 0
    is the base. Joints and bodies have mcplan's order, which may differ from that of the reading program; ``info.txt``
    lists their names. Source: GR00T-WholeBodyControl, "Motion reference data".
``npz``
    ``joint_pos, joint_vel (T, n)``, ``body_pos_w (T, B, 3)``, ``body_quat_w (T, B, 4)`` w x y z, ``body_lin_vel_w,
    body_ang_vel_w (T, B, 3)``, ``contact (T, P)``, ``com (T, 3)``, ``base (T, 7)``, ``fps``, and the names of joints,
    bodies and patches.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.record.run import Run
from mcplan.robot.rerooted import AUXILIARY_PREFIX, BASE_LINK
from mcplan.util.files import atomic_write, write_text

RATE = 50.0
"""Default samples per second: the usual control rate of learned controllers."""


@dataclass(frozen=True, eq=False)
class ReferenceMotion:
    """Joints, links and contacts at T instants; linear velocities are those of the links' origins.

    Parameters
    ----------
    rate : samples per second.
    joints, bodies, patches : names of the n joints, B links and P patches; body 0 is the base (URDF root link).
    q, v : (T, 7+n), (T, 6+n) as in the run, but with the root link of the URDF as base.
    body_pos, body_quat_wxyz, body_lin_vel, body_ang_vel : (T, B, 3), (T, B, 4), (T, B, 3), (T, B, 3).
    contact : (T, P) whether the patch is in contact.
    com : (T, 3) m.
    """

    rate: float
    joints: tuple[str, ...]
    bodies: tuple[str, ...]
    patches: tuple[str, ...]
    q: np.ndarray
    v: np.ndarray
    body_pos: np.ndarray
    body_quat_wxyz: np.ndarray
    body_lin_vel: np.ndarray
    body_ang_vel: np.ndarray
    contact: np.ndarray
    com: np.ndarray

    @classmethod
    def of(cls, run: Run, rate: float | None = None) -> "ReferenceMotion":
        """Return the motion of a run: its sample nearest to each instant, with ``rate`` (1/s, default `RATE`)."""
        rate = RATE if rate is None else rate
        if rate > 1.0 / run.dt + 1e-9:
            raise InputError(f"rate {rate:g}: the run has {1.0 / run.dt:g} samples per second")
        instants = np.arange(0.0, run.t[-1] - run.t[0] + 0.5 * run.dt, 1.0 / rate)
        rows = np.minimum(np.rint(instants / run.dt).astype(int), len(run) - 1)
        robot, q, v = run.robot, np.ascontiguousarray(run.q[rows]), run.v[rows]
        base, joints = robot.description.root, robot.description.joints
        root = robot.description.urdf_root or base
        reroot_links = set() if base == root else {BASE_LINK, *(AUXILIARY_PREFIX + name for name in joints)}
        links = [root, *(link for link in robot.link_names if link != root and link not in reroot_links)]
        poses, twists = [], []
        for link in links:
            poses.append(robot.frame_pose(q, link))
            twists.append(np.einsum("tij,tj->ti", robot.frame_jacobian(q, link), v))
        X, twist = np.stack(poses, axis=1), np.stack(twists, axis=1)
        quaternions = Rotation.from_matrix(X[:, :, :3, :3].reshape(-1, 3, 3)).as_quat(canonical=True, scalar_first=True)
        quaternions = quaternions.reshape(len(q), -1, 4)
        if root != base:
            q = np.concatenate([X[:, 0, :3, 3], quaternions[:, 0], q[:, 7:]], axis=1)
            v = np.concatenate([twist[:, 0], v[:, 6:]], axis=1)
        return cls(
            rate, robot.joint_names, tuple(links), tuple(run.patches), q, v, X[:, :, :3, 3],
            quaternions, twist[..., :3], twist[..., 3:], run.active[rows], run.com[rows],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.q)


def write_csv(run: Run, path: Path, rate: float | None = None) -> list[Path]:
    """Write format ``reference``: a row of base and joints per sample; return the path."""
    motion = ReferenceMotion.of(run, rate)
    rows = np.concatenate([motion.q[:, :3], motion.q[:, [4, 5, 6, 3]], motion.q[:, 7:]], axis=1)
    names = ["base_x", "base_y", "base_z", "base_qx", "base_qy", "base_qz", "base_qw", *motion.joints]
    with atomic_write(path) as partial:
        np.savetxt(partial, rows, fmt="%.9g", delimiter=",", header=",".join(names), encoding="utf-8")
    return [path]


def write_folder(run: Run, path: Path, rate: float | None = None) -> list[Path]:
    """Write format ``motion``: a folder of CSV files; return their paths."""
    motion = ReferenceMotion.of(run, rate)
    count, joints = len(motion.bodies), range(len(motion.joints))
    vectors = [f"body_{k}_{axis}" for k in range(count) for axis in "xyz"]
    arrays = {
        "joint_pos": ([f"joint_{k}" for k in joints], motion.q[:, 7:]),
        "joint_vel": ([f"joint_vel_{k}" for k in joints], motion.v[:, 6:]),
        "body_pos": (vectors, motion.body_pos),
        "body_quat": ([f"body_{k}_{part}" for k in range(count) for part in "wxyz"], motion.body_quat_wxyz),
        "body_lin_vel": (vectors, motion.body_lin_vel),
        "body_ang_vel": (vectors, motion.body_ang_vel),
    }
    path.mkdir(parents=True, exist_ok=True)
    files = []
    for name, (header, array) in arrays.items():
        files.append(path / f"{name}.csv")
        with atomic_write(files[-1]) as partial:
            rows = array.reshape(len(motion), -1)
            np.savetxt(partial, rows, fmt="%.9g", delimiter=",", header=",".join(header), comments="", encoding="utf-8")
    name = run.record.scenario.document.get("name") or run.record.robot.name
    indices = " ".join(str(k) for k in range(count))
    texts = {
        "metadata.txt": f"Metadata for: {name}\n{'=' * 30}\n\nBody part indexes:\n[{indices}]\n\n"
        f"Total timesteps: {len(motion)}\n",
        "info.txt": "\n".join(
            [
                f"{name}: {run.record.robot.name}, {run.record.physics}, {len(motion)} samples at {motion.rate:g} Hz",
                f"joints: {', '.join(motion.joints)}",
                f"bodies: {', '.join(motion.bodies)}",
                *(f"{key}.csv: {array.shape}" for key, (_, array) in arrays.items()),
                "",
            ]
        ),
    }
    for key, text in texts.items():
        files.append(path / key)
        write_text(files[-1], text)
    return files


def write_npz(run: Run, path: Path, rate: float | None = None) -> list[Path]:
    """Write format ``npz``: a file of arrays; return its path."""
    motion = ReferenceMotion.of(run, rate)
    with atomic_write(path) as partial, open(partial, "wb") as stream:
        np.savez_compressed(
            stream, fps=np.array(motion.rate), joint_names=np.array(motion.joints),
            body_names=np.array(motion.bodies), contact_names=np.array(motion.patches),
            base=motion.q[:, :7], joint_pos=motion.q[:, 7:], joint_vel=motion.v[:, 6:], body_pos_w=motion.body_pos,
            body_quat_w=motion.body_quat_wxyz, body_lin_vel_w=motion.body_lin_vel, body_ang_vel_w=motion.body_ang_vel,
            contact=motion.contact, com=motion.com,
        )  # fmt: skip
    return [path]
