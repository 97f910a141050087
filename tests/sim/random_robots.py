"""Random mechanisms as records, and the same as URDF text for an independent engine."""

import numpy as np

from mcplan.record.records import JointRecord, LinkRecord, PatchRecord, RobotRecord


def random_record(seed: int, links: int = 9) -> RobotRecord:
    """A random tree of links with all kinds of joints, one locked and one patch at the end of each branch."""
    rng = np.random.default_rng(seed)
    bodies, joints, coordinates = [], [], []
    for i in range(links):
        A = rng.normal(size=(3, 3))
        inertia = 0.1 * (A @ A.T) + 0.05 * np.eye(3)
        bodies.append(
            LinkRecord(name=f"link{i}", mass=rng.uniform(0.5, 5), com=rng.normal(0, 0.1, 3), inertia=inertia.tolist())
        )
    for i in range(1, links):
        kind = "fixed" if i == 2 else ("prismatic" if i % 4 == 3 else "revolute")
        axis = rng.normal(size=3)
        moves = kind != "fixed" and i != 5
        if moves:
            coordinates.append(f"joint{i}")
        joints.append(
            JointRecord(
                name=f"joint{i}",
                kind=kind,
                parent=int(rng.integers(0, i)),
                child=i,
                R=rotation_rpy(rng.uniform(-1, 1, 3)).tolist(),
                p=rng.normal(0, 0.3, 3).tolist(),
                axis=(axis / np.linalg.norm(axis)).tolist(),
                coordinate=len(coordinates) - 1 if moves else -1,
                offset=0.0 if kind == "fixed" or moves else 0.7,
            )
        )
    n = len(coordinates)
    ends = sorted(set(range(links)) - {joint.parent for joint in joints})
    patches = [
        PatchRecord(
            name=f"patch{i}",
            link=i,
            kind="surface",
            polygon=[[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]],
            R=rotation_rpy(rng.uniform(-1, 1, 3)).tolist(),
            p=rng.normal(0, 0.1, 3).tolist(),
        )
        for i in ends
    ]
    return RobotRecord(
        name="random",
        digest="",
        links=bodies,
        joints=joints,
        coordinates=coordinates,
        lower=[None] * n,
        upper=[None] * n,
        velocity=[None] * n,
        torque=[None] * n,
        armature=rng.uniform(0, 0.5, n).tolist(),
        patches=patches,
    )


def urdf_text(record: RobotRecord) -> str:
    """The record as URDF; locked joints become fixed ones."""

    def numbers(values) -> str:
        return " ".join(repr(float(value)) for value in values)

    lines = ['<robot name="random">']
    for link in record.links:
        inertia = np.array(link.inertia)
        places = {"ixx": (0, 0), "iyy": (1, 1), "izz": (2, 2), "ixy": (0, 1), "ixz": (0, 2), "iyz": (1, 2)}
        entries = " ".join(f'{name}="{float(inertia[place])!r}"' for name, place in places.items())
        lines.append(
            f'<link name="{link.name}"><inertial><origin xyz="{numbers(link.com)}"/><mass value="{link.mass!r}"/>'
            f"<inertia {entries}/></inertial></link>"
        )
    for joint in record.joints:
        R, p = np.array(joint.R), np.array(joint.p)
        axis = np.array(joint.axis)
        kind = joint.kind
        if kind != "fixed" and joint.coordinate < 0:
            if kind == "prismatic":
                p = p + R @ axis * joint.offset
            else:
                R = R @ axis_rotation(axis, joint.offset)
            kind = "fixed"
        parent, child = record.links[joint.parent].name, record.links[joint.child].name
        lines.append(
            f'<joint name="{joint.name}" type="{kind}"><origin xyz="{numbers(p)}" rpy="{numbers(rpy_of(R))}"/>'
            f'<parent link="{parent}"/><child link="{child}"/><axis xyz="{numbers(axis)}"/>'
            f'<limit lower="-9" upper="9" velocity="9" effort="999"/></joint>'
        )
    return "\n".join([*lines, "</robot>"])


def axis_rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rodrigues."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def rotation_rpy(rpy: np.ndarray) -> np.ndarray:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    x, y, z = np.eye(3)
    return axis_rotation(z, rpy[2]) @ axis_rotation(y, rpy[1]) @ axis_rotation(x, rpy[0])


def rpy_of(R: np.ndarray) -> np.ndarray:
    """Inverse of ``rotation_rpy`` away from pitch of a quarter turn."""
    return np.array([np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(R[2, 0]), np.arctan2(R[1, 0], R[0, 0])])


def random_states(record: RobotRecord, seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random q, v, vd with unit quaternions."""
    rng = np.random.default_rng(seed)
    n = len(record.coordinates)
    q, v, vd = rng.normal(size=(count, 7 + n)), rng.normal(size=(count, 6 + n)), rng.normal(size=(count, 6 + n))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q, v, vd
