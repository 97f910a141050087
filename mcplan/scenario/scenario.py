"""Scenario: robot, environment, start, goal, and the settings of planner, control and simulation."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mcplan.document.document import Document, dump_document
from mcplan.errors import ScenarioError
from mcplan.scenario.assemble import assemble
from mcplan.scenario.lint import warn_unusual_values
from mcplan.scenario.schema import GoalItem, StanceItem, Start
from mcplan.scenario.values import (
    contacts_data,
    environment_data,
    goal_data,
    moved_paths,
    robot_name,
    settings_data,
    start_data,
)
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import SETTING_GROUPS, ControlSettings
from mcplan.settings.planner import PlannerSettings
from mcplan.settings.simulation import SimulationSettings
from mcplan.util.arguments import check_instance, file_path
from mcplan.util.files import write_text
from mcplan.util.html_table import folded, html_of, html_table
from mcplan.util.spelling import did_you_mean_or_all

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot


def goal_text(item: GoalItem) -> str:
    """Describe a goal item in one line."""
    parts = [f"{contact.patch} on {contact.surface}" for contact in item.contacts]
    parts += ["nothing else"] if item.only else []
    if item.base is not None:
        orientation_text = "" if item.base.rpy is None else f", rpy {_numbers(item.base.rpy)}"
        parts.append(f"base at {_numbers(item.base.xyz)} within {item.base.tolerance:g} m{orientation_text}")
    if item.posture is not None:
        parts.append(f"posture {item.posture.name or '(unnamed)'} within {item.posture_tolerance:g}")
    if item.com is not None:
        parts.append(f"centre of mass at {_numbers(item.com)}")
    parts += [f"{name} at {_numbers(pose.xyz)}" for name, pose in item.objects.items()]
    return "; ".join(parts)


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def stance_text(item: StanceItem) -> str:
    """Describe the change of a sequence item in one line."""
    parts = []
    if item.contacts is not None:
        parts.append("contacts " + ", ".join(f"{c.patch} on {c.surface}" for c in item.contacts))
    if item.add is not None:
        parts.append(f"add {item.add.patch} on {item.add.surface}")
    if item.remove is not None:
        parts.append(f"remove {item.remove}")
    if item.posture is not None:
        parts.append(f"posture {item.posture.name or '(unnamed)'}")
    if item.com is not None:
        parts.append("centre of mass at " + ", ".join(f"{value:g}" for value in item.com))
    return "; ".join(parts)


ContactLike = Contact | Mapping[str, Any]

ARGUMENTS = (
    "robot", "environment", "start", "goal", "posture", "stances", "planner", "control", "simulation", "name",
    "description",
)  # fmt: skip
"""Names of the arguments of `Scenario`."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Scenario:
    """A scenario; the constructor checks it as a whole and raises all problems together.

    Parameters
    ----------
    robot, environment : the robot, and its environment.
    start : contacts at the start, each a Contact (`mcplan.contact`) or a dictionary as in a file.
    goal : contacts to reach, or a goal as in a file (``{"base": {"xyz": [1, 0, 0.65]}}``), or a list of goals.
    posture : posture at the start: a name, or ``q`` (nq,); by default ``half_sitting``, if the robot has it.
    stances : contact sequence as in a file; its first item, the start, is optional.
    planner, control, simulation : settings that differ from their defaults, by key, or a settings object.
    name, description : for file names and titles.

    Attributes
    ----------
    start : initial state (a ``Start``).
    goal : items to reach in order; within an item all conditions must hold together.
    planner, control, simulation : settings, including defaults.
    stances : the specified or planned contact sequence; empty if the planner must find it. Item 0 is the start.
    path : path of the file.
    document : content of the file, with overrides applied and expressions evaluated.
    source : the unresolved document, with its ``parameters`` and ``variants``.

    Raises
    ------
    ScenarioError
        The scenario is invalid; the error lists all problems with their keys.
    """

    name: str
    description: str
    robot: "Robot"
    environment: Environment
    start: Start
    goal: tuple[GoalItem, ...]
    planner: PlannerSettings
    control: ControlSettings
    simulation: SimulationSettings
    stances: tuple[StanceItem, ...]
    path: str
    document: Document
    source: Document

    def __init__(
        self,
        robot: "Robot",
        environment: Environment,
        start: Sequence[ContactLike] | Start = (),
        goal: Any = (),
        *,
        posture: "str | ArrayLike | None" = None,
        stances: Sequence[Any] = (),
        planner: Any = None,
        control: Any = None,
        simulation: Any = None,
        name: str = "scenario",
        description: str = "",
        **fields: Any,
    ):
        if "document" in fields:  # from a file, or from `dataclasses.replace`
            values = dict(robot=robot, environment=environment, start=start, goal=goal, stances=stances)
            values |= dict(planner=planner, control=control, simulation=simulation, name=name, description=description)
            self.__dict__.update(values | fields)
            return
        if fields:
            raise TypeError(
                f"Scenario has no argument {next(iter(fields))!r}{did_you_mean_or_all(next(iter(fields)), ARGUMENTS)}"
            )
        check_instance("Scenario", "robot", robot, _robot_type())
        check_instance("Scenario", "environment", environment, Environment).check_names()
        data: dict[str, Any] = {"mcplan": 1, "name": name, "description": description, "robot": robot_name(robot)}
        data |= {"environment": environment_data(environment), "start": start_data(robot, start, posture)}
        data |= {"goal": goal_data(goal)} if goal else {}
        data |= {"stances": list(stances)} if stances else {}
        data |= {key: settings_data(key, value) for key, value in
                 (("planner", planner), ("control", control), ("simulation", simulation)) if value}  # fmt: skip
        scenario = Scenario.of(Document.of_values(data, ScenarioError), robot=robot)
        self.__dict__.update(scenario.__dict__)
        warn_unusual_values(scenario.document)

    @classmethod
    def of(cls, source: Document, variant: int | None = None, robot: "Robot | None" = None) -> "Scenario":
        """Return the scenario of a document, or of its variant; ``robot`` is the document's, if already loaded.

        Raises
        ------
        ScenarioError
            The scenario is invalid; the error lists all problems of the document.
        """
        values, problems = assemble(source, variant, robot)
        if values is None or problems:
            raise ScenarioError(*problems)
        return cls(**values)

    def __repr__(self) -> str:
        task_text = (
            f"{len(self.stances)} stances" if self.stances else f"{len(self.goal)} goal{'s' * (len(self.goal) != 1)}"
        )
        return f"Scenario({self.name!r}, {self.robot.name}, {self.environment!r}, {task_text})"

    def _repr_html_(self) -> str:
        """Return a table of start and goal for notebooks."""
        rows = [("robot", self.robot.name), ("physics", self.simulation.physics)]
        rows += [("start", f"{contact.patch} on {contact.support}") for contact in self.start.contacts]
        rows += [(f"goal {k}", goal_text(item)) for k, item in enumerate(self.goal)]
        rows += [(f"stance {k}", stance_text(item)) for k, item in enumerate(self.stances)]
        description = f"<p>{escape(self.description)}</p>" if self.description else ""
        environment = folded("environment", self.environment._repr_html_())
        return html_of(self, description, html_table(["", ""], rows), environment)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the resolved values and of the robot."""
        return hashlib.sha256((dump_document(self.document.data) + self.robot.digest).encode()).hexdigest()

    def control_in(self, physics: str) -> ControlSettings:
        """Return the control settings for a physics back end; default values are scaled to the robot's size."""
        return self.control.under(physics, self.robot.scale)

    @property
    def transition_settings(self) -> ControlSettings:
        """Control settings for planning, whose speeds and force shares suit all physics back ends."""
        return self.control_in("contact")

    def variant(self, seed: int) -> "Scenario":
        """Return the variant of a seed; the same seed gives the same scenario.

        Raises
        ------
        ScenarioError
            The file has no ``variants``, or the variant is invalid.
        """
        return Scenario.of(self.source, seed, self.robot)

    def replace(self, **changes: Any) -> "Scenario":
        """Return the scenario with some parts replaced; it is checked, and has no variants and parameters.

        Parameters
        ----------
        changes : ``robot``, ``environment``, ``start``, ``goal``, ``stances``, ``name``, ``description`` as for a new
            scenario; ``planner``, ``control``, ``simulation``: the changed keys, or a settings object.
        """
        data = self.data()  # paths relative to the working directory
        robot: Robot = check_instance("replace", "robot", changes.pop("robot", self.robot), _robot_type())
        data["robot"] = robot_name(robot)
        for key, value in changes.items():
            if key == "environment":
                check_instance("replace", "environment", value, Environment).check_names()
                data[key] = environment_data(value)
            elif key == "start":
                first_item = {"contacts": (data.get("start") or {}).get("contacts") or []}
                if "stances" not in changes and data.get("stances") and data["stances"][0] == first_item:
                    data["stances"] = data["stances"][1:]  # the first item is the start
                data[key] = {k: v for k, v in data.get("start", {}).items() if k != "contacts"}
                data[key] |= {"contacts": contacts_data(value)}
            elif key == "goal":
                data[key] = goal_data(value)
            elif key in ("planner", "control", "simulation"):
                data[key] = _merged_settings(data.get(key, {}), settings_data(key, value))
            elif key in ("stances", "name", "description"):
                data[key] = value
            else:
                names = [part for part in ARGUMENTS if part != "posture"]
                raise TypeError(f"a scenario has no part {key!r}{did_you_mean_or_all(key, names)}")
        return Scenario.of(Document.of_values(data, ScenarioError), robot=robot)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scenario to a file, atomically; paths in it are relative to the file's directory."""
        path = file_path("save", path)
        write_text(path, dump_document(self.data(path.parent)))

    def data(self, directory: str | os.PathLike[str] = ".") -> dict[str, Any]:
        """Return the scenario as plain values, for a file in ``directory``."""
        return moved_paths(self.document.data, Path(self.path).parent, Path(directory))


def _merged_settings(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with some keys replaced; groups of control settings are merged key by key."""
    groups = {name: settings[name] | changes[name] for name in SETTING_GROUPS if name in settings and name in changes}
    return {**settings, **changes, **groups}


def _robot_type() -> type:
    """Return the class Robot, imported late because it imports Numba."""
    from mcplan.robot.robot import Robot

    return Robot
