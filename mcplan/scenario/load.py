"""Scenario loader: find, read and check scenario files."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcplan.core.jit import interpreted
from mcplan.document.document import Document, read_document
from mcplan.errors import InputError, Problem, ScenarioError
from mcplan.scenario.assemble import SUFFIXES, assemble
from mcplan.scenario.lint import lint, lint_robot, warn_unusual_values
from mcplan.scenario.parameters import resolve
from mcplan.scenario.scenario import Scenario
from mcplan.util.arguments import check_integer, describe
from mcplan.util.bundled import bundled_robots, bundled_scenarios
from mcplan.util.spelling import did_you_mean_or_all

MAX_PATH_CHARACTERS = 4096
"""Maximum number of characters of a path; a longer text, or one of several lines, is taken to be a file's content."""


def load_scenario(
    source: str | os.PathLike[str] | Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    variant: int | None = None,
) -> Scenario:
    """Load a scenario, or the scenario part of a plan file.

    Parameters
    ----------
    source : a bundled name (``step``), the path of a file, or its content as a dictionary.
    overrides : new values by key path, ``{"environment.friction": 0.4, "control.solver": "OSQP"}``.
    variant : seed of a variant of the scenario (see `mcplan.scenario.variant`); None: the nominal scenario.

    Raises
    ------
    ScenarioError
        The scenario is invalid; the error lists all problems of the file with their lines.
    """
    if isinstance(source, Mapping):
        document = Document.of_values(source, ScenarioError)
    elif isinstance(source, str | os.PathLike):
        document = read_document(find_scenario(source), ScenarioError, collect=True)
    else:
        expected = "the name of a bundled scenario, the path of a file, or a dictionary"
        raise ScenarioError(f"load_scenario: expected {expected}, not {describe(source)}")
    if variant is not None:
        check_integer("load_scenario", "variant", variant, ScenarioError)
    if overrides is not None and not isinstance(overrides, Mapping):
        expected = "a dictionary {key path: value}"
        raise ScenarioError(f"load_scenario: overrides: expected {expected}, not {describe(overrides)}")
    if overrides:
        document = document.with_overrides(overrides, ScenarioError)
    scenario = Scenario.of(document, variant)
    warn_unusual_values(scenario.document)
    return scenario


def find_scenario(name_or_path: str | os.PathLike[str]) -> Path:
    """Return the path of a bundled scenario by its name; a path is returned unchanged."""
    name = os.fspath(name_or_path)
    if "\n" in name or len(name) > MAX_PATH_CHARACTERS:
        raise ScenarioError(f"expected the name of a scenario or the path of a file, not {describe(name)}")
    path = Path(name)
    if path.suffix.lower() in SUFFIXES or len(path.parts) > 1 or os.path.isfile(path):
        return path
    known = bundled_scenarios()
    if name in known:
        return known[name]
    hint = did_you_mean_or_all(name, known)
    raise ScenarioError(f"there is no scenario `{name}`{hint} (for a custom file give its path, ending in .yaml)")


def check_file(path: str | os.PathLike[str]) -> list[Problem]:
    """Return all problems of a scenario, plan, robot.yaml or URDF file, given by its path or bundled name."""
    from mcplan.robot.robot_file import load_robot

    name = os.fspath(path)
    try:
        is_plain_name = len(Path(name).parts) == 1 and not Path(name).suffix
        if is_plain_name and name not in bundled_scenarios() and not os.path.exists(name):
            if name not in bundled_robots():
                known = ", ".join(bundled_scenarios())
                message = f"there is no such file, no bundled robot and no bundled scenario of this name ({known})"
                return [Problem(name, None, "", message)]
            load_robot(name)
            return []
        if Path(name).suffix.lower() in (".urdf", ".xml"):
            load_robot(name)
            return []
        document = read_document(find_scenario(name), ScenarioError, collect=True)
        if isinstance(document.data, dict) and "urdf" in document.data:
            load_robot(document.path)
            return []
        with interpreted():
            return assemble(document)[1]
    except InputError as error:
        return list(error.problems)


def lint_file(path: str | os.PathLike[str]) -> list[Problem]:
    """Return likely mistakes in a valid scenario or robot file, such as angles in degrees."""
    name = os.fspath(path)
    if Path(name).suffix.lower() in (".urdf", ".xml") or (not Path(name).suffix and name not in bundled_scenarios()):
        return []
    document = read_document(find_scenario(name), ScenarioError, collect=True)
    if not isinstance(document.data, dict):
        return []
    if "urdf" in document.data:
        return lint_robot(document)
    with interpreted():
        return lint(resolve(document)[0])
