"""Scenario assembly: from a document to the fields of a `Scenario`, or to all problems in the order of the file."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mcplan.document.build import Mark
from mcplan.document.document import Document, sort_by_line
from mcplan.errors import InputError, Problem, ScenarioError
from mcplan.robot.patch import MOUNT
from mcplan.robot.pose import rotation_from_quat
from mcplan.scenario.check import Checker, name_problems
from mcplan.scenario.environment_file import build_environment, expand_mesh
from mcplan.scenario.parameters import resolve, robot_place
from mcplan.scenario.schema import ScenarioSpec, StanceItem, Start
from mcplan.scenario.variant import check_variants, variant_document
from mcplan.scene.contact import Contact
from mcplan.scene.placement import mount_contact
from mcplan.scene.posture_contacts import PoseTolerance, resting_contacts
from mcplan.scene.spec import ContactSpec
from mcplan.util.bundled import bundled_robots
from mcplan.util.spelling import closest_name

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot

POSE_TOLERANCE = 1e-6
"""Tolerance of equal poses: of coordinates (m), and of 1 minus the scalar product of quaternions."""

START_TOLERANCE = PoseTolerance(0.03, 0.2)
"""Maximum distance and angle between a patch and its support in a start posture: m (for the size of HRP-2), rad."""

SUFFIXES = (".yaml", ".yml")


def _further_name_problems(problems: list[Problem], document: Document, robot: "Robot | None") -> list[Problem]:
    """Return the problems of unknown names at keys that have no problem yet."""
    keys_with_problems = {problem.key for problem in problems}
    return [problem for problem in name_problems(document, robot) if problem.key not in keys_with_problems]


def assemble(
    source: Document, variant: int | None = None, robot: "Robot | None" = None
) -> tuple[dict[str, Any] | None, list[Problem]]:
    """Return the values of a scenario by field name, and all problems in the order of the file.

    ``robot`` is that of the document, if already loaded.
    """
    robot_problems: list[Problem] = []
    if robot is None:
        robot, robot_problems = _robot_or_similar(source)
    document, unresolved = _resolve_document(source, variant, None if robot_problems else robot)
    spec, problems = document.examine(ScenarioSpec, salvage=True)
    if spec is not None and spec.environment.mesh is not None:
        document, new_problems = expand_mesh(document, spec.environment)
        spec, problems_with_mesh = document.examine(ScenarioSpec, salvage=True)
        keys_with_problems = {problem.key for problem in problems}
        problems += [
            *new_problems,
            *(problem for problem in problems_with_mesh if problem.key not in keys_with_problems),
        ]
    # if the mesh was not read, for example under a misspelt key, names of surfaces cannot be checked
    if spec is None or unresolved or spec.environment.mesh is not None:
        problems += [*unresolved, *robot_problems]
        return None, sort_by_line([*problems, *_further_name_problems(problems, document, robot)])
    environment, new_problems = build_environment(spec.environment, document)
    problems += [*new_problems, *robot_problems]
    if robot is None:
        return None, sort_by_line([*problems, *name_problems(document, None)])
    given_document = document
    if not problems:
        document, spec = _with_start_stance(document, spec, robot)
    checker = Checker(document, robot, environment)
    start = _resolve_start(spec, checker)
    checker.scenario(spec)
    problems += checker.problems
    if problems and not robot.patches:  # a bare URDF: every patch name is wrong
        advice = f"`mcplan robot new {robot.urdf_path}` proposes some"
        message = f"{robot.name} has no patches, so no contact is possible; {advice}"
        problems.append(document.problem(("robot",), message))
    if problems:  # of a contact with two wrong names, the checker reports only the first
        return None, sort_by_line([*problems, *_further_name_problems(problems, given_document, robot)])
    return dict(
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
    ), []


def _with_start_stance(document: Document, spec: ScenarioSpec, robot: "Robot") -> tuple[Document, ScenarioSpec]:
    """Insert the start contacts as item 0 of ``stances`` if missing.

    Messages about the other items keep their indices in the file.
    """
    if not spec.stances or spec.stances[0].contacts is not None or not (spec.start.contacts or robot.fixed):
        return document, spec
    data, mark = document.data, document.mark
    start, stances = mark.child("start").child("contacts"), mark.child("stances")
    start_mark = Mark(start.line, {"contacts": start})
    marks = [start_mark, *(replace(stances.child(k), index=k) for k in range(len(spec.stances)))]
    sections = {key: mark.child(key) for key in data} | {"stances": replace(stances, children=marks)}
    contacts = (data.get("start") or {}).get("contacts") or []
    new_document = document.with_data(
        {**data, "stances": [{"contacts": contacts}, *data["stances"]]}, replace(mark, children=sections)
    )
    item = StanceItem(contacts=spec.start.contacts)
    return new_document, spec.model_copy(update={"stances": (item, *spec.stances)})


def _resolve_document(source: Document, variant: int | None, robot: "Robot | None") -> tuple[Document, list[Problem]]:
    if variant is None:
        document, problems = resolve(source, None, robot)
        return document, [*problems, *check_variants(source, robot)]
    if variant < 0:
        raise ScenarioError(f"variant {variant}: a seed is a whole number from 0 on")
    return variant_document(source, variant, robot)


def _load_document_robot(name: str, document: Document) -> "Robot":
    from mcplan.robot.robot_file import load_robot

    return load_robot(robot_place(name, document))


def _robot_or_similar(document: Document) -> tuple["Robot | None", list[Problem]]:
    """Return the robot of a document, or else one of similar name for further checks, and the problems."""
    name = document.data.get("robot") if isinstance(document.data, dict) else None
    if not isinstance(name, str):
        return None, []
    try:
        return _load_document_robot(name, document), []
    except InputError as error:
        problems = [document.problem(("robot",), p.message) if p.file is None else p for p in error.problems]
    similar = closest_name(name, bundled_robots())
    return (_load_document_robot(similar, document) if similar else None), problems


def _resolve_start(spec: ScenarioSpec, checker: Checker) -> Start:
    """Return the start; its invalid parts are omitted and reported to the checker."""
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
    contacts: list[Contact] = []
    if not specs and not spec.stances and not robot.fixed:
        contacts += _resting_contacts(checker, q, spec.planner.patches)
    if robot.fixed:
        _place_base(checker, q, [(key, k, contact) for k, contact in enumerate(specs)], start.base is not None)
        contacts.append(mount_contact(robot, rotation_from_quat(q[3:7]), q[:3]))
    for k, contact in enumerate(specs):
        if robot.fixed and contact.patch == MOUNT:
            continue
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


def _resting_contacts(checker: Checker, q: np.ndarray, candidates: tuple[str, ...]) -> Sequence[Contact]:
    """Return the contacts of the start posture with supports; report a problem if there are none."""
    robot, environment = checker.robot, checker.environment
    patches = [name for name in candidates or robot.patches if name in robot.patches]
    patches = [name for name in patches if robot.patches[name].kind != "grasp"]
    tolerance = START_TOLERANCE.times(robot.scale.leg)
    contacts = resting_contacts(robot, environment, q, patches, tolerance)
    if not contacts:
        checker.report(
            ("start",),
            f"no contacts are given, and in this posture no patch is within {tolerance.distance * 1000:.0f} mm and "
            f"{np.degrees(tolerance.angle):.0f} degrees of a support: give `contacts`, or another `base`",
        )
    return contacts or ()


def _place_base(
    checker: Checker, q: np.ndarray, specs: list[tuple[tuple[str | int, ...], int, ContactSpec]], base_given: bool
) -> None:
    """Write the pose of the mount contact, if listed, into ``q``; report a contradiction to ``start.base``."""
    for key, k, contact in specs:
        if contact.patch != MOUNT or contact.pose is None:
            continue
        pose = contact.pose.array
        angle_error = 1.0 - abs(float(pose[3:] @ q[3:7]))
        if base_given and (np.abs(pose[:3] - q[:3]).max() > POSE_TOLERANCE or angle_error > POSE_TOLERANCE):
            checker.report((*key, k, "pose"), "is not where start.base has the base; leave one of them out")
        q[:7] = pose


def _quat_wxyz(R: np.ndarray) -> np.ndarray:
    if np.array_equal(R, np.eye(3)):
        return np.array([1.0, 0.0, 0.0, 0.0])
    from scipy.spatial.transform import Rotation  # slow import

    return np.array(Rotation.from_matrix(R).as_quat(canonical=True, scalar_first=True))
