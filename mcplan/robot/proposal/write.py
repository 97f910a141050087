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
from mcplan.robot.mesh_file import INSTALL_COMMANDS, find_package, package_file
from mcplan.robot.proposal.limbs import base_axes, light_joints
from mcplan.robot.proposal.patches import LimbProposal, propose_limbs
from mcplan.robot.proposal.standing import half_sitting
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import load_robot
from mcplan.util.files import PACKAGE_URI

SAMPLE_COUNT, MIN_OVERLAP_SHARE, MAX_JOINTS_BETWEEN = 200, 0.5, 2
"""Ignored pairs: number of random postures, share of these in which the links overlap, joints between the links."""


def often_overlapping(robot: Robot) -> dict[frozenset[str], float]:
    """Return the pairs of links, at most ``MAX_JOINTS_BETWEEN`` joints apart, that overlap in most random postures.

    The value is the share of these postures.
    """
    random = np.random.default_rng(0)
    count: dict[frozenset[str], int] = {}
    for overlapping_pairs in overlaps(robot, [robot.random_configuration(random) for _ in range(SAMPLE_COUNT)]):
        for pair in overlapping_pairs:
            count[pair] = count.get(pair, 0) + 1
    share = {pair: number / SAMPLE_COUNT for pair, number in count.items()}
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


STANDING_NAMES = ("half_sitting", "standing", "default")
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
    urdf : path of the URDF, or ``package://NAME/path``; an SRDF beside it is read.
    directory : directory of the robot.yaml, to which its paths are relative.
    name : name of the robot; None: that of the URDF.
    package_directories : as for ``load_robot``; they are listed in the robot.yaml.

    Raises
    ------
    RobotError
        The URDF cannot be read, or it has no moving joint.
    """
    package_url = str(urdf) if str(urdf).startswith(PACKAGE_URI) else None
    folders = [Path(folder) for folder in package_directories]
    path = Path(urdf) if package_url is None else package_file(package_url, folders)
    packages = [str(Path(folder).resolve()) for folder in package_directories]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `mcplan robot check` reports them
        urdf_robot = load_robot(path, package_directories=packages)
        if urdf_robot.n == 0:
            raise RobotError(f"{path}: nothing moves in this robot, so there is nothing to propose")
        forward, up = base_axes(urdf_robot)
        neutral_positions = dict(zip(urdf_robot.joint_names, urdf_robot.neutral()[7:].tolist(), strict=True))
        locked = {joint: neutral_positions[joint] for joint in light_joints(urdf_robot)}
        header = {"mcplan": 1, "name": name or urdf_robot.name, "urdf": str(path.resolve())}
        settings = {"forward": forward, "up": up, "locked": locked, "packages": packages}
        robot = _load(header | settings)
        proposal = propose_limbs(robot, _initial_posture(robot))
        q = half_sitting(proposal)
    header["urdf"] = package_url or _urdf_name(path, Path(directory))
    relative_packages = [os.path.relpath(folder, directory) for folder in packages]
    return "\n".join(_lines(proposal, q, header, settings | {"packages": relative_packages})) + "\n"


def _load(data: dict) -> Robot:
    with tempfile.TemporaryDirectory(prefix="mcplan-") as directory:
        file = Path(directory) / "robot.yaml"
        file.write_text(dump_document(data), encoding="utf-8")
        return load_robot(file)


def _initial_posture(robot: Robot) -> np.ndarray:
    for name in STANDING_NAMES:
        if name in robot.postures:
            q = robot.posture(name)
            q[3:7] = [1.0, 0.0, 0.0, 0.0]
            return q
    return robot.neutral()


def _urdf_name(path: Path, directory: Path) -> str:
    """Return the reference to the URDF in the file: in an installed package, or a relative path."""
    for package in INSTALL_COMMANDS:
        package_directory = find_package(package)
        if package_directory is not None and path.resolve().is_relative_to(package_directory.resolve()):
            return f"package://{package}/{path.resolve().relative_to(package_directory.resolve()).as_posix()}"
    return Path(os.path.relpath(path.resolve(), directory.resolve())).as_posix()


def _lines(proposal: LimbProposal, q: np.ndarray, header: dict, settings: dict) -> Iterator[str]:
    robot = proposal.robot
    size = f"{robot.n} joints, {robot.mass:.2f} kg"
    yield f"# {inline(header['name'])}: {size}; by `mcplan robot new` from shapes and names."
    yield "# Look at it with `mcplan robot show`, and let `mcplan robot check` look. SI units, radians."
    yield "mcplan: 1"
    yield f"name: {inline(header['name'])}"
    yield f"urdf: {inline(header['urdf'])}"
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
    yield from _ignored(proposal, q)
    yield ""
    yield "# Patch frame: z out of the link, x ahead. Two corners are an edge."
    yield "patches:" if proposal.patches else "patches: {}"
    for patch in proposal.patches:
        yield from patch.lines()
    yield ""
    yield "# Base pose, with the ground at z = 0, and joints; joints that are not named are 0."
    for notice in proposal.notices:
        yield f"# {comment(notice)}"
    yield "postures:"
    yield "  half_sitting:"
    yield f"    base: {{xyz: [{', '.join(f'{x:.6g}' for x in q[:3] + 0.0)}]}}"
    yield "    joints:" if q[7:].any() else "    joints: {}"
    for joint, value in zip(robot.joint_names, q[7:], strict=True):
        if value != 0.0:
            yield f"      {inline(joint)}: {inline(float(value))}"


def _ignored(proposal: LimbProposal, q: np.ndarray) -> Iterator[str]:
    robot = proposal.robot
    standing_overlaps, random_overlaps = overlaps(robot, [q])[0], often_overlapping(robot)
    if not standing_overlaps and not random_overlaps:
        return
    yield ""
    yield "# Pairs with harmless overlaps: shapes larger than the real links. Adjacent links need not be listed."
    yield "collision:"
    yield "  ignore:"
    for pair in sorted({*standing_overlaps, *random_overlaps}, key=sorted):
        evidence = (
            [f"{1000 * standing_overlaps[pair]:.1f} mm deep in half_sitting"] if pair in standing_overlaps else []
        )
        evidence += [f"in {100 * random_overlaps[pair]:.0f} % of random postures"] if pair in random_overlaps else []
        yield f"    - {inline(sorted(pair))}  # {'; '.join(evidence)}"
