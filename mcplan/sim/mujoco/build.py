"""Builder of the MuJoCo model of robot and environment."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError
from mcplan.record.world import pair_frictions
from mcplan.robot.description import Capsule
from mcplan.robot.robot import Robot
from mcplan.robot.solid import shape_inertia
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, FreeObject, Surface
from mcplan.sim.mujoco.bodies import add_robot
from mcplan.sim.mujoco.shapes import (
    OBJECT,
    OBJECT_SURFACE,
    SLIDING,
    SOLIMP,
    SOLREF,
    STIFF,
    WORLD,
    add_shape,
    contact_options,
    quat_wxyz,
    recede,
    slab,
)

OBSTACLE_FRICTION = 0.7
"""Friction coefficient of obstacles, for unplanned contacts."""

MIN_MASS, MIN_INERTIA = 1e-12, 1e-13
"""kg, kg m²: lower bounds for every moving body. They are negligible: a robot with twenty massless bodies between its
links, accelerated at 1,000 rad/s², satisfies its equation of motion to 1e-8 N m."""


@dataclass
class BuiltModel:
    """A MuJoCo model, and the links and patches of its geoms.

    Attributes
    ----------
    model : mujoco.MjModel.
    spec : mujoco.MjSpec of the model.
    link : per geom, index of the robot's link; links are followed by objects; -1 for the environment.
    patch : per geom, name of the patch, or None.
    grasps : by patch, ids of the weld and of the two pins that can hold it.
    """

    model: Any
    spec: Any
    link: np.ndarray
    patch: list[str | None]
    grasps: dict[str, tuple[int, ...]] = field(default_factory=dict)


def build(
    robot: Robot, environment: Environment, q: np.ndarray | None = None, contacts: Sequence[Contact] = ()
) -> BuiltModel:
    """Build the model.

    ``q`` (7+n,) has the pose of a fixed base; None: the world origin. ``contacts`` that may slide get friction
    parameters with which they do not hop.

    The bodies are those of the robot's tree, with the same merged fixed and locked joints, and rotor inertias as
    armature. Contacts have no torsional friction (condim 3), so the recorded point forces are complete.

    Raises
    ------
    InputError
        MuJoCo rejects the robot.
    """
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.autolimits = False
    # MuJoCo rejects massless moving links, such as between the axes of a joint; these bounds are negligible
    spec.compiler.boundmass, spec.compiler.boundinertia = MIN_MASS, MIN_INERTIA
    option = spec.option
    option.gravity = [0.0, 0.0, -GRAVITY]
    option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    option.impratio = 10.0
    option.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    option.disableflags = int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
    _add_environment(spec, environment)
    grasps = add_robot(spec, robot, (robot.neutral() if q is None else np.asarray(q))[:7])
    _add_pairs(spec, environment, contacts)
    try:
        model = spec.compile()
    except ValueError as error:
        raise InputError(f"MuJoCo rejects robot {robot.name!r}: {error}") from error
    names = [model.geom(i).name for i in range(model.ngeom)]
    order = {name: i for i, name in enumerate([*robot.link_names, *(thing.name for thing in environment.objects)])}
    link = np.array([_link_of(name, robot, order) for name in names], int)
    patch = [name.split(":")[1] if name.startswith("patch:") else None for name in names]
    holds = {grip: tuple(model.equality(name).id for name in own) for grip, own in grasps.items()}
    return BuiltModel(model, spec, link, patch, holds)


def _link_of(name: str, robot: Robot, order: dict[str, int]) -> int:
    kind, thing = name.split(":")[:2]
    if kind == "world":
        return -1
    return order[robot.patches[thing].link if kind == "patch" else thing]


def _add_environment(spec: Any, environment: Environment) -> None:
    world = spec.worldbody
    for surface in environment.surfaces:
        options = contact_options(WORLD, 0, surface.friction) | {"name": f"world:{surface.name}"}
        _add_slab(spec, world, surface, surface.R, surface.p, options)
    for bar in environment.bars:
        z = bar.direction
        R = np.linalg.svd(z[None])[2][[1, 2, 0]].T
        R[:, 2] = z
        R[:, 1] = np.cross(z, R[:, 0])
        # capsule: a box touches it in two points, which support a sole on a rung; a cylinder only in one
        shape = Capsule(bar.radius, max(bar.length - 2 * bar.radius, 1e-3))
        options = contact_options(WORLD, 0, bar.friction) | {"name": f"world:{bar.name}"}
        add_shape(spec, world, shape, R, bar.ends.mean(axis=0), **options)
    for obstacle in environment.obstacles:
        options = contact_options(WORLD, 0, OBSTACLE_FRICTION) | {"name": f"world:{obstacle.name}"}
        add_shape(spec, world, obstacle.shape, obstacle.R, obstacle.p, **options)
    others = [geom.name for geom in world.geoms]
    for thing in environment.objects:
        _add_object(spec, thing)
        for other in others:
            _allow_sliding(spec, f"object:{thing.name}", other, thing.friction)
        others.append(f"object:{thing.name}")


def _add_slab(spec: Any, body: Any, surface: Surface, R: np.ndarray, p: np.ndarray, options: dict[str, Any]) -> None:
    shape, middle = slab(surface.polygon, surface.thickness)
    add_shape(spec, body, shape, R, p + R @ middle, **options)


def _add_pairs(spec: Any, environment: Environment, contacts: Sequence[Contact]) -> None:
    """Set the friction of planned contacts in place of that of their supports, and allow planned sliding."""
    fixed = [support.name for support in environment.surfaces] + [bar.name for bar in environment.bars]
    supports = {name: f"world:{name}" for name in fixed}
    for thing in environment.objects:
        supports |= {surface.name: f"object:{thing.name}:{i}" for i, surface in enumerate(thing.surfaces)}
    slide = {(contact.patch, contact.support) for contact in contacts if contact.options.get("slide")}
    other = {(contact.patch, contact.support) for contact in contacts if "friction" in contact.options}
    for (patch, name), friction in pair_frictions(contacts).items():
        own, support = f"patch:{patch}", supports.get(name)
        if support is None or spec.geom(own) is None:
            continue
        if (patch, name) in slide:
            _allow_sliding(spec, own, support, friction)
        elif (patch, name) in other:
            pair = spec.add_pair(geomname1=support, geomname2=own, condim=3)
            pair.friction = [friction, friction, 0.0, 0.0, 0.0]
            pair.solref, pair.solimp = SOLREF, SOLIMP


def _allow_sliding(spec: Any, geom: str, other: str, friction: float) -> None:
    """Set friction parameters with which an object or a patch slides on another geom without hopping (`SLIDING`)."""
    pair = spec.add_pair(geomname1=other, geomname2=geom, condim=3)
    pair.friction = [friction, friction, 0.0, 0.0, 0.0]
    pair.solref, pair.solimp, pair.solreffriction = SOLREF, STIFF, SLIDING


def _add_object(spec: Any, thing: FreeObject) -> None:
    body = spec.worldbody.add_body(name=f"object:{thing.name}", pos=thing.p, quat=quat_wxyz(thing.R))
    body.add_joint(type=mujoco.mjtJoint.mjJNT_FREE, name=f"object:{thing.name}", align=False)
    body.explicitinertial, body.mass = True, thing.mass
    body.ipos, body.inertia = shape_inertia(thing.shape, thing.mass)  # of the original shape, not of the receded one
    planes = [(thing.R.T @ s.R[:, 2], thing.R.T @ (s.p - thing.p)) for s in thing.surfaces]
    shape, p = recede(thing.shape, np.eye(3), np.zeros(3), planes)
    options = contact_options(OBJECT, WORLD | OBJECT, thing.friction) | {"name": f"object:{thing.name}", "priority": 2}
    add_shape(spec, body, shape, np.eye(3), p, **options)
    for i, surface in enumerate(thing.surfaces):
        options = contact_options(OBJECT_SURFACE, 0, surface.friction) | {"name": f"object:{thing.name}:{i}"}
        place = thing.R.T @ (surface.p - thing.p)
        _add_slab(spec, body, surface, thing.R.T @ surface.R, place, options)
