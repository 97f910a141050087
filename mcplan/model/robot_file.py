"""Loading a robot: a bundled name, a ``robot.yaml``, or a bare URDF."""

import difflib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mcplan.arguments import shown
from mcplan.document import read_document
from mcplan.errors import Problem, RobotError
from mcplan.model.assemble import Assembly, NotAssembled, assemble
from mcplan.model.description import UrdfModel
from mcplan.model.mechanism_check import singular_joint
from mcplan.model.patch import MOUNT, mount_patch
from mcplan.model.robot import Robot
from mcplan.model.robot_resolve import Resolver, is_fixed, patch_frames
from mcplan.model.robot_schema import RobotSection
from mcplan.model.urdf import parse_urdf, read_bytes

BUNDLED = Path(__file__).parent / "bundled"


def bundled_robots() -> tuple[str, ...]:
    """Return the names of the robots that come with the package."""
    return tuple(sorted(file.parent.name for file in BUNDLED.glob("*/robot.yaml")))


def load_robot(
    path_or_name: str | os.PathLike[str],
    strict: bool = False,
    package_directories: Sequence[str | os.PathLike[str]] = (),
) -> Robot:
    """Load a robot.

    Parameters
    ----------
    path_or_name : a bundled name (``hrp2``), or the path of a ``robot.yaml`` or of a URDF file. A bare URDF gives a
        robot without patches and postures, whose base is fixed if its root is a link ``world`` without mass.
    strict : refuse what is otherwise a ``RobotWarning``: non-physical inertias, missing visual meshes, misspelt tags.
    package_directories : where the meshes of ``package://NAME/...`` may be found: each is the package NAME or holds it.

    Raises
    ------
    RobotError
        With every problem that was found, each with file and line.
    """
    if not isinstance(path_or_name, str | os.PathLike):
        raise RobotError(f"load_robot: expected a bundled name or the path of a file, not {shown(path_or_name)}")
    path = Path(path_or_name)
    name = str(path_or_name)
    if path.suffix == "" and name == path.name and not path.is_file():
        if name not in bundled_robots():
            near = difflib.get_close_matches(name, bundled_robots(), n=1)
            hint = f"did you mean {near[0]!r}?" if near else "a path ends in .yaml or .urdf"
            raise RobotError(f"no robot is called {name!r}; bundled: {', '.join(bundled_robots())}; {hint}")
        path = BUNDLED / name / "robot.yaml"
    directories = [Path(directory) for directory in package_directories]
    if path.suffix.lower() in (".yaml", ".yml"):
        return _from_yaml(path, strict, directories)
    return _from_urdf(path, strict, directories)


def is_robot_file(path: str | os.PathLike[str]) -> bool:
    """Whether a YAML file describes a robot: it names a ``urdf``.

    Raises
    ------
    InputError
        The file cannot be read as YAML.
    """
    data = read_document(path, collect=True).data
    return isinstance(data, dict) and "urdf" in data


def _from_urdf(path: Path, strict: bool, directories: list[Path]) -> Robot:
    data = read_bytes(path)
    model = parse_urdf(data, path, strict, directories, stacklevel=4)
    assembly = _assembled(model, {}, {})
    patches = {MOUNT: mount_patch(model.root)} if is_fixed(model) and MOUNT not in model.links else {}
    return Robot(
        model.name,
        assembly.tree,
        model,
        assembly.joint_names,
        assembly.limits,
        {**assembly.frames, **patch_frames(assembly, patches)},
        patches,
        locked=assembly.locked,
        digest=hashlib.sha256(data).hexdigest(),
    )


def _from_yaml(path: Path, strict: bool, directories: list[Path]) -> Robot:
    document = read_document(path, error=RobotError, collect=True)
    section = document.validate(RobotSection, error=RobotError)
    urdf = path.parent / section.urdf
    if not urdf.is_file():
        raise RobotError(document.problem(("urdf",), f"there is no file {str(urdf)!r}"))
    data = read_bytes(urdf)
    model = parse_urdf(data, urdf, strict, directories, stacklevel=4)
    resolver = Resolver(document, section, model)
    resolver.check()
    assembly = _assembled(model, section.locked, section.armature)
    limits = resolver.limits(assembly)
    patches = resolver.patches()
    postures = resolver.postures(assembly, limits)
    resolver.settle()
    frames = {**assembly.frames, **patch_frames(assembly, patches)}
    return Robot(
        section.name or model.name,
        assembly.tree,
        model,
        assembly.joint_names,
        limits,
        frames,
        patches,
        postures,
        assembly.locked,
        frozenset(frozenset(pair) for pair in section.collision.ignore),
        path,
        hashlib.sha256(data + path.read_bytes()).hexdigest(),
    )


def _assembled(model: UrdfModel, locked: dict[str, float], armature: dict[str, float]) -> Assembly:
    """Build the tree and refuse a mechanism whose mass matrix is singular."""
    file = str(model.path)
    try:
        assembly = assemble(model, locked, armature)
    except NotAssembled as error:
        line = model.joints[error.joint].line if error.joint in model.joints else model.links[model.root].line
        raise RobotError(Problem(file, line, error.joint, error.message)) from None
    if not all(np.isfinite(array).all() for array in assembly.tree):
        raise RobotError(Problem(file, 1, "", "masses or lengths too large to calculate with"))
    joint = singular_joint(assembly)
    if joint is not None:
        line = model.joints[joint].line if joint in model.joints else model.links[model.root].line
        message = "nothing that it moves has inertia, so its acceleration is undefined; give a link mass, or lock it"
        if joint not in model.joints:
            joint, message = model.root, "the links have no extent: the base's acceleration is undefined"
        raise RobotError(Problem(file, line, joint, message))
    return assembly
