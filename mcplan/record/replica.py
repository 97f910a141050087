"""From the record of a run back to its Plan, Scenario and Robot, without any other file."""

import tempfile
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from mcplan.document.document import dump_document
from mcplan.errors import InputError, RunError
from mcplan.record.mesh_record import unpack_scene, unpack_urdf
from mcplan.record.records import RobotRecord, RunRecord
from mcplan.robot.description import RobotWarning
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import load_robot

if TYPE_CHECKING:
    from mcplan.planning.plan import Plan


def rebuild_plan(record: RunRecord) -> "Plan":
    """Rebuild the Plan that was simulated; its scenario holds the robot and the environment.

    Raises
    ------
    RunError
        The record keeps no plan (it was not made by a simulation), or a broken one.
    """
    if not record.plan.document:
        raise RunError("this run keeps no plan document, so there is nothing to rebuild")
    from mcplan.planning.plan_file import load_plan

    with _home("plan") as home:
        document = {**record.plan.document, "robot": unpack_robot(record.robot, Path(home.name)).name}
        document = unpack_scene(document, record.plan.meshes, Path(home.name))
        path = Path(home.name) / "plan.yaml"
        path.write_text(dump_document(document), encoding="utf-8")
        plan = load_plan(path)
    weakref.finalize(plan.scenario.robot, home.cleanup)
    return plan


def rebuild_robot(record: RobotRecord) -> Robot:
    """Rebuild the robot alone.

    Raises
    ------
    RunError
        The record keeps no robot files, or broken ones.
    """
    with _home("robot") as home:
        robot = load_robot(unpack_robot(record, Path(home.name)))
    weakref.finalize(robot, home.cleanup)
    return robot


@contextmanager
def _home(what: str) -> Iterator[tempfile.TemporaryDirectory]:
    """Give a directory for the files of a robot, which must be there for as long as it is, to be recorded again.

    What is doubtful in them was said when the robot was read for the run, by names of files that somebody knows.
    """
    home = tempfile.TemporaryDirectory(prefix="mcplan-")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RobotWarning)
            yield home
    except BaseException as error:
        home.cleanup()
        if isinstance(error, InputError) and not isinstance(error, RunError):
            raise RunError(f"the {what} in this run cannot be rebuilt: {error}".replace(home.name, "run")) from error
        raise


def unpack_robot(record: RobotRecord, directory: Path) -> Path:
    """Write the robot's files into a directory and return the one to load."""
    if "robot.urdf" not in record.files:
        raise RunError("this run keeps no robot files, so there is nothing to rebuild")
    urdf = unpack_urdf(record.files["robot.urdf"], record.meshes, directory)
    (directory / "robot.urdf").write_text(urdf, encoding="utf-8")
    if "robot.srdf" in record.files:  # found there by its name
        (directory / "robot.srdf").write_text(record.files["robot.srdf"], encoding="utf-8")
    text = record.files.get("robot.yaml")
    if text is None:
        return directory / "robot.urdf"
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise RunError(f"the robot.yaml in this run cannot be read: {error}") from error
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    values = {key.value: value for key, value in pairs if key.value in ("urdf", "srdf")}
    if "urdf" not in values:
        raise RunError("the robot.yaml in this run names no urdf")
    # only these values are replaced, from the last one on, so that line numbers and everything else stay
    for key, value in sorted(values.items(), key=lambda item: -item[1].start_mark.index):
        text = text[: value.start_mark.index] + f"robot.{key}" + text[value.end_mark.index :]
    (directory / "robot.yaml").write_text(text, encoding="utf-8")
    return directory / "robot.yaml"
