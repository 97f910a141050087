"""SRDF reader: disabled collision pairs, named postures (as MoveIt writes them), and rotor inertias.

``rotor_params`` are Pinocchio's: rotor inertia of each joint (kg m², in the attribute ``mass``) and gear ratio. The
reflected inertia is the rotor inertia times the squared gear ratio.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mcplan.core.rigid_body.frame import frame_pose
from mcplan.core.rigid_body.tree import workspace
from mcplan.errors import Problem, RobotError
from mcplan.robot.assemble import Assembly, JointLimits, resolve_mimic
from mcplan.robot.description import UrdfModel
from mcplan.robot.pose import Pose, quat_from_rotation, rotation_from_quat
from mcplan.robot.urdf import read_bytes, refuse_encoding
from mcplan.robot.xml_reader import Element, Notes, read_xml
from mcplan.util.arrays import read_only

SUFFIX = ".srdf"


@dataclass(frozen=True, eq=False)
class Srdf:
    """Content of one SRDF file.

    Parameters
    ----------
    path, data : the path of the file, and its bytes.
    ignored : pairs of links in ``disable_collisions`` that exist in the URDF.
    states : positions by joint for each name of a ``group_state``; a floating joint has seven values, x y z and the
        quaternion x y z w. States of the same name in several groups are merged.
    armature : reflected inertia of the rotor (kg m²) by joint.
    """

    path: Path
    data: bytes
    ignored: frozenset[frozenset[str]] = frozenset()
    states: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    armature: dict[str, float] = field(default_factory=dict)

    def postures(self, model: UrdfModel, assembly: Assembly, limits: JointLimits) -> dict[str, np.ndarray]:
        """Return the states as ``q`` (nq,) by name; a joint with seven values gives the pose of the URDF's root link.

        Joints missing in a state are at zero; all joints are clipped to their limits.
        """
        index = {name: i for i, name in enumerate(assembly.joint_names)}
        postures_by_name = {}
        for name, values in self.states.items():
            root_pose = None
            q = np.zeros(7 + len(index))
            q[3] = 1.0
            for joint, value in values.items():
                if joint in index:
                    # continuous joints may also be given as cosine and sine
                    q[7 + index[joint]] = value[0] if len(value) == 1 else math.atan2(value[1], value[0])
                elif len(value) == 7 and joint not in model.joints and np.linalg.norm(value[3:]) > 0.5:
                    root_pose = rotation_from_quat(value[[6, 3, 4, 5]]), value[:3]
            q[7:] = np.clip(q[7:], limits.lower, limits.upper)
            if root_pose is not None:
                q[:7] = _base(assembly, q, model.urdf_root, root_pose)
            postures_by_name[name] = read_only(q)
        return postures_by_name


def _base(assembly: Assembly, q: np.ndarray, link: str, pose: Pose) -> np.ndarray:
    """Return position and quaternion (7,) of the base B for which a link L has the pose ``R_WL, p_WL``.

    ``R_WB = R_WL R_BL'``,  ``p_WB = p_WL - R_WB p_BL``.  The joints are those of ``q`` (nq,), whose base is at the
    world's origin.
    """
    body, offset = assembly.frames[link]
    X = np.empty((4, 4))
    frame_pose(assembly.tree, q, body, offset, workspace(assembly.tree), X)
    R = pose[0] @ X[:3, :3].T
    return np.concatenate([pose[1] - R @ X[:3, 3], quat_from_rotation(R)])


def srdf_beside(model: UrdfModel) -> Path | None:
    """Return the SRDF of a URDF, beside it or in ``../srdf``, or None.

    It has the same file name, or is the only one in the directory with the same robot name.
    """
    home = model.path.parent
    for folder in (home, home.parent / "srdf"):
        if (candidate := folder / (model.path.stem + SUFFIX)).is_file():
            return candidate
        of_robot = [path for path in sorted(folder.glob("*" + SUFFIX)) if _robot_of(path) == model.name]
        if len(of_robot) == 1:
            return of_robot[0]
    return None


def _robot_of(path: Path) -> str | None:
    try:
        return read_xml(read_bytes(path), str(path)).attributes.get("name")
    except RobotError:
        return None


def read_srdf(path: Path, model: UrdfModel, strict: bool, stacklevel: int) -> Srdf:
    """Read an SRDF. Links that the URDF does not have are ignored, because several URDFs may share an SRDF.

    Raises
    ------
    RobotError
        The file is not an SRDF, or contains invalid numbers.
    """
    data = read_bytes(path)
    root = read_xml(data, str(path))
    refuse_encoding(data, str(path))
    if root.tag != "robot":
        raise RobotError(Problem(str(path), root.line, "", f"the root element is <{root.tag[:40]}>, not <robot>"))
    notes = Notes(str(path), strict)
    ignored = set()
    for element in root.all("disable_collisions"):
        pair = [notes.text(element, side, "disable_collisions") for side in ("link1", "link2")]
        if None not in pair and pair[0] != pair[1] and all(link in model.links for link in pair):
            ignored.add(frozenset(str(link) for link in pair))
    states: dict[str, dict[str, np.ndarray]] = {}
    for element in root.all("group_state"):
        name = notes.text(element, "name", "group_state")
        if name is not None:
            states.setdefault(name, {}).update(_values(element, name, notes))
    armature = _armature(root, model, notes)
    notes.raise_problems()
    notes.warn(stacklevel)
    return Srdf(path, data, frozenset(ignored), states, armature)


def _armature(root: Element, model: UrdfModel, notes: Notes) -> dict[str, float]:
    """Return the reflected rotor inertia by joint; negative values are reported as problems.

    A mimic joint ``q = k q_m + c`` adds ``k²`` times its inertia to that of its master m.
    """
    armature: dict[str, float] = {}
    for element in (joint for rotors in root.all("rotor_params") for joint in rotors.all("joint")):
        name = notes.text(element, "name", "rotor_params")
        inertia, ratio = (
            notes.bounded_vector(element, attribute, 1, "rotor_params") for attribute in ("mass", "gear_ratio")
        )
        if name is None or inertia is None or ratio is None:
            continue
        if inertia[0] < 0.0:
            message = f"{name}: mass={inertia[0]:g} should be a rotor's inertia, 0 or more"
            notes.problem(element, "rotor_params", message)
        elif name in model.joints and model.joints[name].type != "ball":
            armature[name] = float(inertia[0] * ratio[0] ** 2)
    for name in [name for name in armature if model.joints[name].mimic is not None]:
        master, k, _ = resolve_mimic(model.joints[name], model.joints)
        armature[master] = armature.get(master, 0.0) + k**2 * armature.pop(name)
    return armature


def _values(state: Element, key: str, notes: Notes) -> dict[str, np.ndarray]:
    values = {}
    for element in state.all("joint"):
        joint = notes.text(element, "name", key)
        size = len(element.attributes.get("value", "").split())
        value = notes.bounded_vector(element, "value", max(size, 1), key)
        if joint is not None and value is not None:
            values[joint] = value
    return values
