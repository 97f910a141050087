"""World file reader: collision geometry of a URDF, SDF (Gazebo) or MJCF (MuJoCo) file.

All shapes are read at their initial poses, with joints at zero. Movable parts are included with a notice, because a
planned motion assumes that they do not move.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mcplan.errors import Problem, RobotError
from mcplan.robot.mesh_file import MeshError, MeshFiles
from mcplan.robot.urdf import parse_urdf, read_bytes
from mcplan.robot.xml_reader import Element, read_xml
from mcplan.scene.detection.geometry import SceneGeometry
from mcplan.scene.detection.mjcf import read_mjcf
from mcplan.scene.detection.sdf import read_sdf


def read_world(path: Path) -> SceneGeometry:
    """Return the collision geometry of a file; its root element determines the format.

    Raises
    ------
    MeshError
        The file cannot be read, or has unsupported elements.
    """
    try:
        root = read_xml(read_bytes(path), path.name)
        if root.tag not in READERS:
            raise MeshError(f"the root element is <{root.tag[:40]}>, expected <robot>, <sdf> or <mujoco>")
        return READERS[root.tag](root, path)
    except RobotError as error:
        raise MeshError("; ".join(_problem_text(problem, path) for problem in error.problems[:3])) from None


def _problem_text(problem: Problem, path: Path) -> str:
    """Return a problem as text; a problem of an included file has the name of that file."""
    file = Path(problem.file or "").name
    location = f"line {problem.line}" if file == path.name else f"{file}:{problem.line}"
    return ": ".join(part for part in (location, problem.key, problem.message) if part)


def _read_urdf(root: Element, path: Path) -> SceneGeometry:
    """Return the collision geometry of a URDF at its zero configuration."""
    model, meshes = parse_urdf(read_bytes(path), path), MeshFiles(path, siblings=True)
    world = SceneGeometry(files={meshes.find(name) for name in model.meshes})
    poses = {model.root: (np.eye(3), np.zeros(3))}
    for joint in model.joints.values():  # parents come before their children
        R, p = poses[joint.parent]
        poses[joint.child] = R @ joint.R, p + R @ joint.p
    for link in model.links.values():
        R, p = poses[link.name]
        for geometry in link.geometry:
            if geometry.role != "visual":
                world.add(geometry.shape, R @ geometry.R, p + R @ geometry.p)
    world.note_moving([joint.name for joint in model.joints.values() if joint.type != "fixed"])
    return world


READERS: dict[str, Callable[[Element, Path], SceneGeometry]] = {
    "robot": _read_urdf, "sdf": read_sdf, "mujoco": read_mjcf,
}  # fmt: skip
"""Reader by root element."""
