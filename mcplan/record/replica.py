"""Reconstruction of plan, scenario and robot from the record of a run."""

import html
import re
import tempfile
import warnings
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from mcplan.document.build import PARSER, Mark, plain_value
from mcplan.document.document import Document
from mcplan.errors import InputError, RunError
from mcplan.record.records import MeshRecord, RobotRecord, RunRecord
from mcplan.robot.description import RobotWarning

if TYPE_CHECKING:
    from mcplan.planning.plan import Plan


_FILENAME = re.compile(r"""(filename\s*=\s*)(["'])(.*?)\2""")


def rebuild_plan(record: RunRecord) -> "Plan":
    """Rebuild the Plan that was simulated; its scenario holds the robot and the environment.

    Raises
    ------
    RunError
        The record has no plan (it does not come from a simulation), or an invalid one.
    """
    if not record.plan.document:
        raise RunError("this run has no plan document, so there is nothing to rebuild")
    from mcplan.planning.plan_file import plan_of
    from mcplan.scenario.scenario import Scenario

    # the directory is kept until the robot is deleted, because recording the robot reads its files again
    directory = tempfile.TemporaryDirectory(prefix="mcplan-")
    try:
        with warnings.catch_warnings():
            # these warnings were printed when the robot was loaded for the run, with the user's file names
            warnings.simplefilter("ignore", RobotWarning)
            document = {**record.plan.document, "robot": unpack_robot(record.robot, Path(directory.name)).name}
            document = unpack_scene(document, record.plan.meshes, Path(directory.name))
            path = Path(directory.name) / "plan.yaml"  # no such file: it has no more than the document
            plan = plan_of(Scenario.of(Document(str(path), plain_value(document), Mark(1))))
    except BaseException as error:
        directory.cleanup()
        if isinstance(error, InputError) and not isinstance(error, RunError):
            raise RunError(f"the plan in this run cannot be rebuilt: {error}".replace(directory.name, "run")) from error
        raise
    weakref.finalize(plan.scenario.robot, directory.cleanup)
    return plan


def unpack_robot(record: RobotRecord, directory: Path) -> Path:
    """Write the robot's files into a directory; return the path of the one to load."""
    if "robot.urdf" not in record.files:
        raise RunError("this run has no robot files, so there is nothing to rebuild")
    urdf = unpack_urdf(record.files["robot.urdf"], record.meshes, directory)
    (directory / "robot.urdf").write_text(urdf, encoding="utf-8")
    if "robot.srdf" in record.files:  # the robot reader finds it by this name
        (directory / "robot.srdf").write_text(record.files["robot.srdf"], encoding="utf-8")
    text = record.files.get("robot.yaml")
    if text is None:
        return directory / "robot.urdf"
    text = text.removeprefix("\ufeff")  # not counted by the parser
    try:
        node = yaml.compose(text, Loader=PARSER)
    except yaml.YAMLError as error:
        raise RunError(f"the robot.yaml in this run cannot be read: {error}") from error
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    values = {key.value: value for key, value in pairs if key.value in ("urdf", "srdf")}
    if "urdf" not in values:
        raise RunError("the robot.yaml in this run has no key urdf")
    # replace these values only, the last one first, so that line numbers and the rest of the text are unchanged
    for key, value in sorted(values.items(), key=lambda item: -item[1].start_mark.index):
        text = text[: value.start_mark.index] + f"robot.{key}" + text[value.end_mark.index :]
    (directory / "robot.yaml").write_text(text, encoding="utf-8")
    return directory / "robot.yaml"


def unpack_urdf(text: str, meshes: Mapping[str, MeshRecord], directory: Path) -> str:
    """Write the meshes of a URDF into a directory; return its text with their new names, on the same lines."""
    names = {name: f"mesh_{k}.off" for k, name in enumerate(sorted(meshes))}
    for name, file in names.items():
        write_off(meshes[name], directory / file)

    def new_reference(match: re.Match[str]) -> str:
        file = names.get(html.unescape(match[3]).strip())
        return match[0] if file is None else f"{match[1]}{match[2]}{file}{match[2]}"

    return _FILENAME.sub(new_reference, text)


def unpack_scene(document: dict[str, Any], meshes: Mapping[str, MeshRecord], directory: Path) -> dict[str, Any]:
    """Write the meshes of a scene into a directory; return the document with their new names."""
    environment = dict(document.get("environment") or {})
    for group in ("obstacles", "objects"):
        if environment.get(group):
            environment[group] = [_unpacked(item, meshes, directory) for item in environment[group]]
    return document | {"environment": environment} if environment else document


def write_off(mesh: MeshRecord, path: Path) -> None:
    """Write a mesh in the Object File Format, with all digits of a double."""
    lines = ["OFF", f"{len(mesh.vertices)} {len(mesh.faces)} 0"]
    lines += [" ".join(map(repr, vertex)) for vertex in mesh.vertices]
    lines += ["3 " + " ".join(map(str, face)) for face in mesh.faces]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def _unpacked(item: dict[str, Any], meshes: Mapping[str, MeshRecord], directory: Path) -> dict[str, Any]:
    name = str(item.get("name"))
    if "mesh" not in item or name not in meshes:
        return item
    file = f"thing_{sorted(meshes).index(name)}.off"
    write_off(meshes[name], directory / file)
    return item | {"mesh": {"file": file}}
