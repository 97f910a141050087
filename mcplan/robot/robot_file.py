"""Robot loader: from a bundled name, a ``robot.yaml`` or a URDF to a ``Robot`` with a regular mass matrix."""

import hashlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from mcplan.core.jit import interpreted
from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.tree import MASS, workspace
from mcplan.document.document import Document, read_document
from mcplan.errors import Problem, RobotError
from mcplan.robot.assemble import Assembly, AssemblyError, assemble
from mcplan.robot.description import MeshShape, RobotWarning, UrdfModel
from mcplan.robot.link_solids import MAX_IGNORED_OVERLAP_M, format_pairs, rest_overlaps, without_permanent_overlaps
from mcplan.robot.mesh_file import package_file, separator_hint
from mcplan.robot.patch import MOUNT, mount_patch
from mcplan.robot.patch_shape import with_patch_shapes
from mcplan.robot.robot import Robot
from mcplan.robot.robot_resolve import Resolver, is_fixed, patch_frames
from mcplan.robot.robot_schema import RobotSection
from mcplan.robot.srdf import Srdf, read_srdf, srdf_beside
from mcplan.robot.urdf import parse_urdf, read_bytes
from mcplan.util.arguments import describe
from mcplan.util.bundled import ROBOTS, bundled_robots
from mcplan.util.files import PACKAGE_URI
from mcplan.util.spelling import did_you_mean

MIN_EIGENVALUE = 1e-13
"""Minimum eigenvalue of a regular M that is scaled to unit diagonal; rounding errors are about 1e-16 times nv."""


def singular_joint(assembly: Assembly) -> str | None:
    """Return the joint with the largest motion that moves no mass, ``""`` for the base, or None if M is regular.

    M is evaluated at a generic configuration, so that only a mechanism that is singular everywhere is found.
    """
    tree = assembly.tree
    nv = len(tree.armature)
    q = np.zeros(nv + 1)
    q[3] = 1.0
    q[7:] = 0.3 + 0.1 * np.sin(np.arange(nv - 6))  # all joints away from zero, and different
    M = np.empty((nv, nv))
    mass_matrix(tree, q, workspace(tree), M)
    # scaled to unit diagonal, so that units and size of the mechanism do not matter
    scale = np.sqrt(np.maximum(np.diag(M), tree.inertia[:, MASS].sum() * 1e-12))
    eigenvalues, eigenvectors = np.linalg.eigh(M / np.outer(scale, scale))
    if eigenvalues[0] > MIN_EIGENVALUE:
        return None
    motion = np.abs(eigenvectors[:, 0])
    joint_motion = motion[6:]
    if len(joint_motion) and joint_motion.max() > 0.1 * motion.max():
        return assembly.joint_names[int(np.argmax(joint_motion))]
    return ""


MAX_SHAPES = 2000
"""Maximum number of collision shapes of all links, because their pairs are checked."""


def load_robot(
    path_or_name: str | os.PathLike[str],
    strict: bool = False,
    package_directories: Sequence[str | os.PathLike[str]] = (),
) -> Robot:
    """Load a robot.

    Parameters
    ----------
    path_or_name : a bundled name (``hrp2``), or the path of a ``robot.yaml`` or of a URDF file, or
        ``package://NAME/path`` of either. A bare URDF gives a robot without patches and postures, whose base is fixed
        if its root is a link ``world`` without mass.
    strict : whether a ``RobotWarning`` becomes an error: non-physical inertias, missing visual meshes, misspelt tags.
    package_directories : directories for ``package://NAME/...``; each is the package NAME or contains it.

    Raises
    ------
    RobotError
        The robot cannot be loaded; the error lists all problems with file and line.
    """
    if not isinstance(path_or_name, str | os.PathLike):
        raise RobotError(f"load_robot: expected a bundled name or the path of a file, not {describe(path_or_name)}")
    path = Path(path_or_name)
    name = str(path_or_name)
    if path.suffix == "" and name == path.name and not os.path.isfile(path):
        if name not in bundled_robots():
            hint = did_you_mean(name, bundled_robots()) or "; a path ends in .yaml or .urdf"
            raise RobotError(f"no robot is called {name!r}; bundled: {', '.join(bundled_robots())}{hint}")
        path = ROBOTS / name / "robot.yaml"
    directories = [Path(directory) for directory in package_directories]
    if name.startswith(PACKAGE_URI):
        path = package_file(name, directories)
    if (hint := separator_hint(name)) and not path.is_file():
        raise RobotError(Problem(repr(name), None, "", f"cannot be read: no such file{hint}"))
    with interpreted():
        if path.suffix.lower() in (".yaml", ".yml"):
            return _from_yaml(path, strict, directories)
        return _from_urdf(path, strict, directories)


def robot_identity(robot: Robot) -> str:
    """Return a hash (hex) of a robot's dynamics and collision geometry; "" for a robot without a file.

    It is the robot's digest (of URDF, robot.yaml and SRDF), or, if there are collision meshes, a hash of digest and
    meshes, because mesh files may change independently. Visual meshes do not count.
    """
    if robot not in _identities:
        _identities[robot] = _identity(robot)
    return _identities[robot]


_identities: WeakKeyDictionary[Robot, str] = WeakKeyDictionary()


def _identity(robot: Robot) -> str:
    shapes = [g.shape for geometries in robot.geometry.values() for g in geometries if g.role != "visual"]
    meshes = [shape for shape in shapes if isinstance(shape, MeshShape)]
    if not robot.digest or not meshes:
        return robot.digest
    hasher = hashlib.sha256(robot.digest.encode())
    for mesh in meshes:
        # single precision without negative zeros: last digits, and signs of zeros, depend on the processor
        vertices = np.asarray(mesh.vertices, "<f4") + np.float32(0.0)
        hasher.update(vertices.tobytes() + np.asarray(mesh.faces, "<i8").tobytes())
    return hasher.hexdigest()


def _from_urdf(path: Path, strict: bool, directories: list[Path]) -> Robot:
    data = read_bytes(path)
    model = parse_urdf(data, path, strict, directories, stacklevel=4)
    _check_shape_count(model)
    srdf = _srdf(None, model, strict)
    patches = {MOUNT: mount_patch(model.root)} if is_fixed(model) and MOUNT not in model.links else {}
    assembly = _assemble_regular(model, {}, srdf.armature if srdf else {}, strict, MOUNT in patches)
    robot = Robot(
        model.name,
        assembly.tree,
        model,
        assembly.joint_names,
        assembly.limits,
        {**assembly.frames, **patch_frames(assembly, patches)},
        patches,
        srdf.postures(model, assembly, assembly.limits) if srdf else {},
        locked=assembly.locked,
        collision_ignore=srdf.ignored if srdf else frozenset(),
        digest=hashlib.sha256(data + (srdf.data if srdf else b"")).hexdigest(),
        srdf_path=srdf.path if srdf else None,
        srdf_postures=frozenset(srdf.states if srdf else ()),
    )
    return _ignore_shallow_overlaps(robot, strict)


def _from_yaml(path: Path, strict: bool, directories: list[Path]) -> Robot:
    document = read_document(path, error=RobotError, collect=True)
    section, problems = document.examine(RobotSection, salvage=True)
    if section is None or any(problem.key.startswith("packages") for problem in problems):
        raise RobotError(*problems)  # with wrong packages, meshes would be reported as missing
    directories = [*directories, *(path.parent / folder for folder in section.packages)]
    try:
        urdf = _find_file(section.urdf, ("urdf",), document, directories)
        data = read_bytes(urdf)
        model = parse_urdf(data, urdf, strict, directories, stacklevel=4)
        _check_shape_count(model)
    except RobotError as error:
        raise RobotError(*problems, *error.problems) from None
    resolver = Resolver(document, section, model, problems)
    resolver.check()
    model = resolver.model
    srdf = _srdf(_find_file(section.srdf, ("srdf",), document, directories) if section.srdf else None, model, strict)
    armature = (srdf.armature if srdf else {}) | section.armature
    patches = resolver.patches()
    assembly = _assemble_regular(model, section.locked, armature, strict, MOUNT in patches)
    limits = resolver.limits(assembly)
    postures = resolver.postures(assembly, limits)
    resolver.raise_problems()
    frames = {**assembly.frames, **patch_frames(assembly, patches)}
    ignored = frozenset(frozenset(pair) for pair in section.collision.ignore)
    robot = Robot(
        section.name or model.name,
        assembly.tree,
        with_patch_shapes(model, assembly.frames, patches),
        assembly.joint_names,
        limits,
        frames,
        patches,
        (srdf.postures(model, assembly, limits) if srdf else {}) | postures,
        assembly.locked,
        ignored | (srdf.ignored if srdf else frozenset()),
        path,
        hashlib.sha256(data + path.read_bytes() + (srdf.data if srdf else b"")).hexdigest(),
        srdf.path if srdf else None,
        frozenset(srdf.states if srdf else ()) - frozenset(section.postures),
    )
    return _ignore_shallow_overlaps(robot, strict)


def _check_shape_count(model: UrdfModel) -> None:
    count = 0
    for name, link in model.links.items():
        count += sum(shape.role != "visual" for shape in link.geometry)
        if count > MAX_SHAPES:
            message = f"more than {MAX_SHAPES} shapes that collide, this link's among them: give links fewer"
            raise RobotError(Problem(str(model.path), link.line, name, message))


def _find_file(name: str, key: tuple[str], document: Document, directories: list[Path]) -> Path:
    """Return the path of a file named in a robot.yaml: relative to it, or ``package://NAME/path``."""
    if not name.startswith(PACKAGE_URI):
        path = Path(document.path).parent / name
        if not path.is_file():
            raise RobotError(document.problem(key, f"there is no file {str(path)!r}{separator_hint(name)}"))
        return path
    try:
        return package_file(name, directories)
    except RobotError as error:
        raise RobotError(document.problem(key, str(error))) from None


def _srdf(srdf_path: Path | None, model: UrdfModel, strict: bool) -> Srdf | None:
    """Return the SRDF named in a robot.yaml, or the one beside the URDF, or None.

    Without ``strict``, an invalid SRDF beside the URDF is ignored with a warning.
    """
    path = srdf_path or srdf_beside(model)
    if path is None:
        return None
    try:
        return read_srdf(path, model, strict, stacklevel=6)
    except RobotError as error:
        if srdf_path or strict:
            raise
        warnings.warn(f"not read: {error}", RobotWarning, stacklevel=5)
        return None


def _ignore_shallow_overlaps(robot: Robot, strict: bool) -> Robot:
    """Return the robot with overlaps of hulls at rest ignored up to ``MAX_IGNORED_OVERLAP_M``; warn of all overlaps."""
    overlaps = rest_overlaps(robot)
    shallow_overlaps = {pair: depth for pair, depth in overlaps.items() if depth <= MAX_IGNORED_OVERLAP_M}
    deep_overlaps = {pair: depth for pair, depth in overlaps.items() if depth > MAX_IGNORED_OVERLAP_M and robot.patches}
    deep_overlaps = without_permanent_overlaps(robot, deep_overlaps)
    file = robot.path or robot.urdf_path
    if shallow_overlaps:
        text = f"hulls of meshes overlap at rest by at most {1000 * MAX_IGNORED_OVERLAP_M:g} mm, which is ignored"
        warnings.warn(f"{file}: {text}: {format_pairs(shallow_overlaps)}", RobotWarning, stacklevel=5)
    if deep_overlaps:
        text = f"meshes whose hulls overlap at rest block every motion: {format_pairs(deep_overlaps)}"
        message = (
            f"{text}; name pairs that do no harm in `collision: {{ignore: [[a, b], ...]}}`; where a hull fills "
            "a hollow, `mcplan robot split` makes convex parts"
        )
        if strict:
            raise RobotError(Problem(str(file), None, "collision.ignore", message))
        warnings.warn(f"{file}: {message}", RobotWarning, stacklevel=5)
    return (
        replace(robot, collision_ignore=robot.collision_ignore | frozenset(shallow_overlaps))
        if shallow_overlaps
        else robot
    )


def _assemble_regular(
    model: UrdfModel, locked: dict[str, float], armature: dict[str, float], strict: bool, fixed_base: bool
) -> Assembly:
    """Assemble the mechanism with joints locked that move no inertia; raise an error if it remains singular."""
    file = str(model.path)
    massless: dict[str, float] = {}
    while True:
        try:
            assembly = assemble(model, {**locked, **massless}, armature, fixed_base)
        except AssemblyError as error:
            line = model.joints[error.joint].line if error.joint in model.joints else model.links[model.root].line
            raise RobotError(Problem(file, line, error.joint, error.message)) from None
        if not all(np.isfinite(array).all() for array in assembly.tree):
            raise RobotError(Problem(file, 1, "", "masses or lengths too large to calculate with"))
        name = singular_joint(assembly)
        if name is None:
            break
        if name not in model.joints:
            message = "the links have no extent: the base's acceleration is undefined"
            raise RobotError(Problem(file, model.links[model.root].line, model.root, message))
        joint = model.joints[name]
        if strict:
            message = "nothing that it moves has inertia: its acceleration is undefined; give a link mass, or lock it"
            raise RobotError(Problem(file, joint.line, name, message))
        massless[name] = float(np.clip(0.0, joint.lower, joint.upper))
    if massless:
        names = ", ".join(f"{name} = {value:g}" for name, value in massless.items())
        text = f"joints that move nothing with inertia are locked: {names}"
        warnings.warn(f"{file}: {text}", RobotWarning, stacklevel=5)
    return assembly
