"""From a contact as a file says it to world geometry, missing coordinates filled in with the nearest place.

A nearest place turns the patch by the smallest angle that makes it fit the support's direction, then moves it by the
smallest distance that brings its polygon onto the support.
"""

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mcplan.arguments import shown
from mcplan.document import Document
from mcplan.errors import InputError
from mcplan.model.patch import MOUNT
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.mount import mount_contact
from mcplan.scene.place_bar import place_on_bar
from mcplan.scene.place_surface import place_on_surface
from mcplan.scene.resting import carrier
from mcplan.scene.selection import constrained_directions, named_freedoms, of_a_ball, rotation_about
from mcplan.scene.spec import ContactSpec

if TYPE_CHECKING:
    from mcplan.model.patch import Patch
    from mcplan.model.robot import Robot

Near = tuple[np.ndarray, np.ndarray]
"""Rotation (3,3) and position (3,) of a patch frame in the world."""

FLIP_X = np.diag([1.0, -1.0, -1.0])
"""Rotation by half a turn about x."""


def make_contact(
    robot: "Robot", environment: Environment, spec: ContactSpec | Mapping[str, Any], near: Near | None = None
) -> Contact:
    """Return the contact in world geometry.

    Parameters
    ----------
    robot : has ``patches``.
    environment : has the surface or bar.
    spec : the contact as files write it.
    near : pose of the patch frame now. Needed only for coordinates that ``spec`` leaves out and where it has no pose.

    Raises
    ------
    InputError
        Unknown patch or support, a kind that they do not allow, coordinates missing, or a place beyond the support.
    """
    if not isinstance(spec, ContactSpec):
        spec = ContactSpec.model_validate(dict(spec))
    patch = robot.patches.get(spec.patch)
    if patch is None:
        raise InputError(f"robot {robot.name} has no patch `{spec.patch}`{_hint(spec.patch, robot.patches)}")
    if spec.patch == MOUNT:
        place_of_base = near if spec.pose is None else (spec.pose.R, spec.pose.p)
        if place_of_base is None:
            raise InputError(f"{MOUNT}: a pose is missing: where does the base stand?")
        return mount_contact(robot, *place_of_base)
    support = environment.supports.get(spec.surface)
    if support is None:
        raise InputError(f"there is no surface or bar `{spec.surface}`{_hint(spec.surface, environment.supports)}")
    kind = spec.kind or patch.kind
    if near is None and spec.pose is not None:
        near = (spec.pose.R, spec.pose.p)
    if (kind == "ball") != (patch.kind == "ball"):
        raise InputError(f"the patch `{patch.name}` is a {patch.kind}, so it cannot be a contact of kind {kind}")
    if kind == "ball" and not isinstance(support, Surface):
        raise InputError(f"the ball `{patch.name}` rolls on surfaces, and `{support.name}` is a bar")
    polygon = _polygon(patch, kind)
    if isinstance(support, Surface):
        place = place_on_surface(spec, kind, polygon, support, near, patch.radius)
        axes = support.R
    else:
        place = place_on_bar(spec, kind, polygon, support, near)
        axes = place.R if kind == "grasp" else place.R @ FLIP_X
    max_force = patch.max_force if spec.max_force is None else spec.max_force
    if kind == "grasp" and spec.max_force is None and isinstance(support, Bar) and support.max_force is not None:
        max_force = support.max_force
    if kind == "grasp" != patch.kind:
        raise InputError(
            f"the patch `{patch.name}` is a {patch.kind}, so it cannot be a contact of kind grasp: what holds has "
            "`kind: grasp`, max_force and max_moment in robot.yaml"
        )
    free = named_freedoms(spec.slide, spec.hinge)
    if kind == "point":
        free += named_freedoms((), ("x", "y", "z"))
    elif kind == "surface" and len(place.points) == 2:
        edge = place.points[1] - place.points[0]
        free.append(rotation_about(edge / np.linalg.norm(edge), place.points[0]))
    return Contact(
        patch=spec.patch,
        support=spec.surface,
        kind=kind,
        R=place.R,
        p=place.p,
        points=place.points,
        axes=axes,
        friction=support.friction if spec.friction is None else spec.friction,
        max_force=float(max_force),
        max_moment=float(patch.max_moment) if kind == "grasp" else np.inf,
        selection=of_a_ball(patch.radius) if kind == "ball" else constrained_directions(free),
        radius=patch.radius,
        coordinates=place.coordinates,
        options=spec.options,
        carrier=carrier(environment, support.owner) if isinstance(support, Surface) and support.owner else None,
    )


def contact(
    robot: "Robot",
    patch: str,
    support: "Surface | Bar | str",
    *,
    near: np.ndarray | None = None,
    environment: Environment | None = None,
    **place: Any,
) -> Contact:
    """Return a contact in world geometry.

        contact(robot, "left_sole", floor, x=0.01, y=0.095)
        contact(robot, "right_grip", rail, along=0.4, angle=0.0)

    Parameters
    ----------
    robot : has the patch.
    patch : its name.
    support : a surface or bar; or its name, with the ``environment`` that holds it.
    near : (nq,) a posture; coordinates that are left out are those nearest to the patch there. Without it the
        orientations ``yaw``, ``angle`` and ``flip`` are 0, and the others must be given.
    environment : needed for the surfaces of free objects, and for names.
    place : ``x, y, yaw`` on a surface (m, rad); ``along, angle, flip, offset`` on a bar; ``kind``, ``friction``,
        ``max_force``, ``slide``, ``hinge``, ``overhang`` as in a file.

    Raises
    ------
    InputError
        Unknown patch or support, a kind that they do not allow, coordinates missing, or a place beyond the support.
    """
    if not hasattr(robot, "patches"):
        raise InputError(f"contact: robot: expected a Robot, not {shown(robot)}; mcplan.load_robot(...) gives one")
    if not isinstance(support, Surface | Bar | str):
        raise InputError(f"contact: support: expected a Surface, a Bar or the name of one, not {shown(support)}")
    known = Environment([support]) if environment is None and isinstance(support, Surface | Bar) else environment
    if known is None:
        raise InputError(f"support {support!r} is a name: give the environment that holds it too")
    name = support if isinstance(support, str) else support.name
    try:
        spec, problems = Document.of_values({"patch": patch, "surface": name, **place}).examine(ContactSpec)
    except InputError as error:  # a number that is not finite
        spec, problems = None, list(error.problems)
    if spec is None or problems:
        raise InputError(*(f"contact of {patch} on {name}: {p.key}: {p.message}" for p in problems))
    if near is not None:
        if patch not in robot.patches:
            raise InputError(f"robot {robot.name} has no patch `{patch}`{_hint(patch, robot.patches)}")
        X = robot.frame_pose(near, patch)
        return make_contact(robot, known, spec, (X[:3, :3], X[:3, 3]))
    turns = ("yaw",) if isinstance(known.supports.get(name), Surface) else ("angle", "flip")
    left = {turn: 0.0 if turn != "flip" else False for turn in turns if getattr(spec, turn) is None}
    return make_contact(robot, known, spec.model_copy(update=left))


def _polygon(patch: "Patch", kind: str) -> np.ndarray:
    if kind != "surface":
        return np.zeros((1, 2))
    polygon = np.zeros((0, 2)) if patch.polygon is None else np.asarray(patch.polygon, float).reshape(-1, 2)
    if len(polygon) < 2:
        raise InputError(f"patch `{patch.name}` has no polygon, so it cannot be a contact of kind surface")
    return polygon


def _hint(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean `{near[0]}`?" if near else f"; there are: {', '.join(known) or 'none'}"
