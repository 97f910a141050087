"""Find, read and check scenario files."""

import difflib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mcplan.document import Document, dump_document, read_document
from mcplan.document.document import in_file_order
from mcplan.errors import InputError, Problem, ScenarioError
from mcplan.scene.build import build_environment
from mcplan.scene.check import Checker
from mcplan.scene.contact import Contact
from mcplan.scene.parameters import resolve
from mcplan.scene.scenario import Scenario, Start
from mcplan.scene.schema import ScenarioSpec
from mcplan.scene.variant import check_variants, variant_document

if TYPE_CHECKING:
    from mcplan.model.robot import Robot

SUFFIXES = (".yaml", ".yml")


def load_scenario(
    name_or_path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None, variant: int | None = None
) -> Scenario:
    """Load a scenario, or the scenario part of a plan file.

    Parameters
    ----------
    name_or_path : a bundled name (``step``) or the path of a file.
    overrides : from a key path to a value, ``{"environment.friction": 0.4, "control.solver": "OSQP"}``.
    variant : seed of a variant of the scenario (see `mcplan.scene.variant`); None: the scenario as it stands.

    Raises
    ------
    ScenarioError
        With everything that is wrong with the file, each with its line.
    """
    document = read_document(find_scenario(name_or_path), ScenarioError, collect=True)
    if overrides:
        document = document.with_overrides(overrides, ScenarioError)
    return assemble(document, variant)


def assemble(source: Document, variant: int | None = None, robot: "Robot | None" = None) -> Scenario:
    """Return the scenario of a document, or of its variant, or raise a ScenarioError with all that is wrong.

    ``robot`` is that of the document if it is loaded already.
    """
    scenario, problems = _assemble(source, variant, robot)
    if scenario is None or problems:
        raise ScenarioError(*problems)
    return scenario


def find_scenario(name_or_path: str | os.PathLike[str]) -> Path:
    """Return the file of a bundled scenario, or the path itself."""
    name = os.fspath(name_or_path)
    path = Path(name)
    if path.suffix.lower() in SUFFIXES or len(path.parts) > 1 or path.is_file():
        return path
    known = bundled_scenarios()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"bundled are: {', '.join(known) or 'none'}"
    raise ScenarioError(f"there is no scenario `{name}`; {hint} (a file of your own: give its path, ending in .yaml)")


def bundled_scenarios() -> dict[str, Path]:
    """Return the files of the scenarios that come with mcplan, by name."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "stances", package.parent / "stances"):  # in a wheel, in an editable install
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    return {}


def check_file(path: str | os.PathLike[str]) -> list[Problem]:
    """Return everything that is wrong with a scenario, plan, robot.yaml or URDF file; bundled names work too."""
    from mcplan.model.robot_file import load_robot

    name = os.fspath(path)
    try:
        plain_name = len(Path(name).parts) == 1 and not Path(name).suffix
        if plain_name and name not in bundled_scenarios() and not Path(name).exists():
            try:
                load_robot(name)
            except InputError:
                known = ", ".join(bundled_scenarios())
                message = f"there is no such file, no bundled robot and no bundled scenario of this name ({known})"
                return [Problem(name, None, "", message)]
            return []
        if Path(name).suffix.lower() in (".urdf", ".xml"):
            load_robot(name)
            return []
        document = read_document(find_scenario(name), ScenarioError, collect=True)
        if isinstance(document.data, dict) and "urdf" in document.data:
            load_robot(document.path)
            return []
        return _assemble(document)[1]
    except InputError as error:
        return list(error.problems)


def _assemble(
    source: Document, variant: int | None = None, robot: "Robot | None" = None
) -> tuple[Scenario | None, list[Problem]]:
    """Return the scenario and all problems in the order of the file."""
    document, unresolved = _resolved(source, variant)
    spec, problems = document.examine(ScenarioSpec, salvage=True)
    if spec is None or unresolved:
        return None, in_file_order([*problems, *unresolved])
    environment, more = build_environment(spec.environment, document)
    problems += more
    try:
        robot = _robot(spec.robot, document) if robot is None else robot
    except InputError as error:
        problems += [document.problem(("robot",), p.message) if p.file is None else p for p in error.problems]
        return None, in_file_order(problems)
    checker = Checker(document, robot, environment)
    start = _start(spec, checker)
    checker.scenario(spec)
    problems = in_file_order([*problems, *checker.problems])
    if problems:
        return None, problems
    digest = hashlib.sha256((dump_document(document.data) + robot.digest).encode()).hexdigest()
    scenario = Scenario(
        name=spec.name,
        description=spec.description,
        robot=robot,
        environment=environment,
        start=start,
        goal=spec.goal,
        planner=spec.planner,
        control=spec.control,
        simulation=spec.simulation,
        stances=spec.stances,
        path=document.path,
        document=document,
        source=source,
        digest=digest,
    )
    return scenario, []


def _resolved(source: Document, variant: int | None) -> tuple[Document, list[Problem]]:
    if variant is None:
        document, problems = resolve(source)
        return document, [*problems, *check_variants(source)]
    if variant < 0:
        raise ScenarioError(f"variant {variant}: a seed is a whole number from 0 on")
    return variant_document(source, variant)


def _robot(name: str, document: Document) -> "Robot":
    from mcplan.model.robot_file import load_robot

    path = Path(name)
    is_path = path.suffix.lower() in (*SUFFIXES, ".urdf", ".xml") or len(path.parts) > 1
    return load_robot(Path(document.path).parent / path if is_path else name)


def _start(spec: ScenarioSpec, checker: Checker) -> Start:
    """Return the start; what cannot be is reported to the checker and left out."""
    robot, start = checker.robot, spec.start
    default = "half_sitting" if "half_sitting" in robot.postures else None
    q = np.array(robot.neutral() if default is None else robot.posture(default), float)
    if start.posture is not None and checker.posture(("start", "posture"), start.posture):
        if start.posture.name is not None:
            q = np.array(robot.posture(start.posture.name), float)
        q = start.posture.apply(robot, q)
    if start.base is not None:
        q[:3] = start.base.p
        q[3:7] = _quat_wxyz(start.base.R)
    specs, key = start.contacts, ("start", "contacts")
    if not specs and spec.stances and spec.stances[0].contacts:
        specs, key = spec.stances[0].contacts, ("stances", 0, "contacts")  # type: ignore[assignment]
    if not specs and not spec.stances:
        checker.report(("start",), "contacts are missing: what touches what at the start?")
    contacts: list[Contact] = []
    for k, contact in enumerate(specs):
        if contact.patch in robot.patches:
            X = robot.frame_pose(q, contact.patch)
            resolved = checker.contact((*key, k), contact, (X[:3, :3], X[:3, 3]))
            contacts += [resolved] if resolved is not None else []
        else:
            checker.contact((*key, k), contact)
    names = [contact.patch for contact in start.contacts]
    for k, name in enumerate(names):
        if name in names[:k]:
            checker.report(("start", "contacts", k, "patch"), f"`{name}` is listed twice")
    return Start(q, tuple(contacts), start.posture is not None, start.base is not None)


def _quat_wxyz(R: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return np.array(Rotation.from_matrix(R).as_quat(canonical=True, scalar_first=True))
