"""Proposal of a ``robot.yaml`` for a URDF: patches, base axes, locked joints, ignored pairs and a standing posture."""

import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mcplan.core.rigid_body.tree import parents_of
from mcplan.document.document import comment, dump_document, inline
from mcplan.errors import RobotError
from mcplan.robot.link_solids import overlaps
from mcplan.robot.mesh_file import EXTRAS, find_package, package_file
from mcplan.robot.proposal.limbs import base_axes, light_joints
from mcplan.robot.proposal.patches import LimbProposal, propose_limbs
from mcplan.robot.proposal.standing import half_sitting
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import load_robot
from mcplan.util.files import PACKAGE_URI

SAMPLES, MIN_OVERLAP_SHARE, MAX_JOINTS_BETWEEN = 200, 0.5, 2
"""Number of random configurations; share of overlaps from which a pair is ignored; maximum joints between its links."""


def often_overlapping(robot: Robot) -> dict[frozenset[str], float]:
    """Return the pairs of links with few joints between them that overlap in most random postures."""
    random = np.random.default_rng(0)
    count: dict[frozenset[str], int] = {}
    for found in overlaps(robot, [robot.random_configuration(random) for _ in range(SAMPLES)]):
        for pair in found:
            count[pair] = count.get(pair, 0) + 1
    share = {pair: number / SAMPLES for pair, number in count.items()}
    return {
        pair: s
        for pair, s in share.items()
        if s > MIN_OVERLAP_SHARE and _joints_between(robot, pair) <= MAX_JOINTS_BETWEEN
    }


def _joints_between(robot: Robot, pair: frozenset[str]) -> int:
    """Return the number of joints between two links."""
    parent = parents_of(robot.tree)
    paths = []
    for link in pair:
        path = [robot.frame(link)[0]]
        while path[-1] > 0:
            path.append(int(parent[path[-1]]))
        paths.append(path)
    common = set(paths[0]) & set(paths[1])
    return sum(len(set(path) - common) for path in paths)


STANDING = ("half_sitting", "standing", "default")
"""Names of standing postures in an SRDF, in order of preference."""


def propose(
    urdf: str | os.PathLike[str],
    directory: str | os.PathLike[str] = ".",
    name: str | None = None,
    package_directories: Sequence[str | os.PathLike[str]] = (),
) -> str:
    """Return the text of a robot.yaml, for a file in ``directory``.

    Parameters
    ----------
    urdf : the URDF, or ``package://NAME/path``, also used in the file; an SRDF beside it is read.
    name : of the robot; that of the URDF by default.
    package_directories : as for ``load_robot``; listed in the file.

    Raises
    ------
    RobotError
        The URDF cannot be read, or nothing moves in it.
    """
    named = str(urdf) if str(urdf).startswith(PACKAGE_URI) else None
    path = Path(urdf) if named is None else package_file(named, [Path(folder) for folder in package_directories])
    packages = [str(Path(folder).resolve()) for folder in package_directories]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `mcplan robot check` reports them
        bare = load_robot(path, package_directories=packages)
        if bare.n == 0:
            raise RobotError(f"{path}: nothing moves in this robot, so there is nothing to propose")
        forward, up = base_axes(bare)
        at = dict(zip(bare.joint_names, bare.neutral()[7:].tolist(), strict=True))
        locked = {joint: at[joint] for joint in light_joints(bare)}
        head = {"mcplan": 1, "name": name or bare.name, "urdf": str(path.resolve())}
        settings = {"forward": forward, "up": up, "locked": locked, "packages": packages}
        robot = _load(head | settings)
        found = propose_limbs(robot, _initial_posture(robot))
        q = half_sitting(found)
    head["urdf"] = named or _urdf_name(path, Path(directory))
    relative_packages = [os.path.relpath(folder, directory) for folder in packages]
    return "\n".join(_lines(found, q, head, settings | {"packages": relative_packages})) + "\n"


def _load(data: dict) -> Robot:
    with tempfile.TemporaryDirectory(prefix="mcplan-") as home:
        file = Path(home) / "robot.yaml"
        file.write_text(dump_document(data), encoding="utf-8")
        return load_robot(file)


def _initial_posture(robot: Robot) -> np.ndarray:
    for name in STANDING:
        if name in robot.postures:
            q = robot.posture(name)
            q[3:7] = [1.0, 0.0, 0.0, 0.0]
            return q
    return robot.neutral()


def _urdf_name(path: Path, directory: Path) -> str:
    """Return the reference to the URDF in the file: in an installed package, or a relative path."""
    for package in EXTRAS:
        home = find_package(package)
        if home is not None and path.resolve().is_relative_to(home.resolve()):
            return f"package://{package}/{path.resolve().relative_to(home.resolve()).as_posix()}"
    return Path(os.path.relpath(path.resolve(), directory.resolve())).as_posix()


def _lines(found: LimbProposal, q: np.ndarray, head: dict, settings: dict) -> Iterator[str]:
    robot = found.robot
    size = f"{robot.n} joints, {robot.mass:.2f} kg"
    yield f"# {inline(head['name'])}: {size}; by `mcplan robot new` from shapes and names."
    yield "# Look at it with `mcplan robot show`, and let `mcplan robot check` look. SI units, radians."
    yield "mcplan: 1"
    yield f"name: {inline(head['name'])}"
    yield f"urdf: {inline(head['urdf'])}"
    if settings["packages"]:
        yield f"packages: {inline(settings['packages'])}"
    if robot.srdf_path is not None:
        yield f"# pairs that never collide, postures and rotors are also read from {comment(robot.srdf_path.name)}"
    if (settings["forward"], settings["up"]) != ("x", "z"):
        yield ""
        yield "# axes of the root link; the robot's base has x ahead and z up"
        yield f"forward: {settings['forward']}"
        yield f"up: {settings['up']}"
    if settings["locked"]:
        yield ""
        yield "# joints that move less than 0.4 % of the robot's mass: fingers, grippers, eyes"
        yield f"locked: {inline(settings['locked'])}"
    if not robot.armature.any():
        yield ""
        yield "# reflected rotor inertia, kg m²: gear ratio squared times the rotor's. Files have none here:"
        yield "# joints that drive light links, as those of feet, accelerate much more easily than they would"
        yield "# armature: {JOINT: 0.1}"
    yield from _ignored(found, q)
    yield ""
    yield "# Patch frame: z out of the link, x ahead. Two corners are an edge."
    yield "patches:" if found.patches else "patches: {}"
    for patch in found.patches:
        yield from patch.lines()
    yield ""
    yield "# Base pose, with the ground at z = 0, and joints; joints that are not named are 0."
    for notice in found.notices:
        yield f"# {comment(notice)}"
    yield "postures:"
    yield "  half_sitting:"
    yield f"    base: {{xyz: [{', '.join(f'{x:.6g}' for x in q[:3] + 0.0)}]}}"
    yield "    joints:" if q[7:].any() else "    joints: {}"
    for joint, value in zip(robot.joint_names, q[7:], strict=True):
        if value != 0.0:
            yield f"      {inline(joint)}: {inline(float(value))}"


def _ignored(found: LimbProposal, q: np.ndarray) -> Iterator[str]:
    robot = found.robot
    here, often = overlaps(robot, [q])[0], often_overlapping(robot)
    if not here and not often:
        return
    yield ""
    yield "# Pairs with harmless overlaps: shapes larger than the real links. Adjacent links need not be listed."
    yield "collision:"
    yield "  ignore:"
    for pair in sorted({*here, *often}, key=sorted):
        where = [f"{1000 * here[pair]:.1f} mm deep in half_sitting"] if pair in here else []
        where += [f"in {100 * often[pair]:.0f} % of random postures"] if pair in often else []
        yield f"    - {inline(sorted(pair))}  # {'; '.join(where)}"
