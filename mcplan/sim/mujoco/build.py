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
    SOLIMP,
    SOLIMP_STIFF,
    SOLREF,
    SOLREF_SLIDING,
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
"""Lower bounds of mass (kg) and inertia (kg m²) of every moving body.

They are negligible: a robot with twenty massless bodies between its links, accelerated at 1,000 rad/s², satisfies its
equation of motion to 1e-8 N m."""


@dataclass
class BuiltModel:
    """A MuJoCo model, and the links and patches of its geoms.

    Attributes
    ----------
    model : the compiled model (mujoco.MjModel).
    spec : the specification that it was compiled from (mujoco.MjSpec).
    link : for each geom, the index of its link or, counted after the links, of its object; -1: the environment.
    patch : for each geom, the name of its patch, or None.
    grasps : for each grip, the ids of its equality constraints: a weld and two pins.
    """

    model: Any
    spec: Any
    link: np.ndarray
    patch: list[str | None]
    grasps: dict[str, tuple[int, ...]] = field(default_factory=dict)


def build(
    robot: Robot, environment: Environment, q: np.ndarray | None = None, contacts: Sequence[Contact] = ()
) -> BuiltModel:
    """Build the MuJoCo model of a robot in its environment.

    The bodies are those of the robot's tree, with the same merged fixed and locked joints, and rotor inertias as
    armature. Contacts have no torsional friction (condim 3), so the recorded point forces are complete.

    Parameters
    ----------
    q : (7+n,) configuration with the pose of a fixed base; None: the world origin.
    contacts : planned contacts; they give friction, and sliding ones get friction parameters that prevent hopping.

    Raises
    ------
    InputError
        MuJoCo rejects the robot.
    """
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.autolimits = False
    # MuJoCo rejects moving bodies without mass, such as those between the axes of a universal joint
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
    index_of = {name: i for i, name in enumerate([*robot.link_names, *(thing.name for thing in environment.objects)])}
    link = np.array([_link_of(name, robot, index_of) for name in names], int)
    patch = [name.split(":")[1] if name.startswith("patch:") else None for name in names]
    constraint_ids = {grip: tuple(model.equality(name).id for name in own) for grip, own in grasps.items()}
    return BuiltModel(model, spec, link, patch, constraint_ids)


def _link_of(name: str, robot: Robot, index_of: dict[str, int]) -> int:
    kind, thing = name.split(":")[:2]
    if kind == "world":
        return -1
    return index_of[robot.patches[thing].link if kind == "patch" else thing]


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
        # capsule, not cylinder: a sole (box) touches a capsule in two points, which support it; a cylinder only in one
        shape = Capsule(bar.radius, max(bar.length - 2 * bar.radius, 1e-3))
        options = contact_options(WORLD, 0, bar.friction) | {"name": f"world:{bar.name}"}
        add_shape(spec, world, shape, R, bar.ends.mean(axis=0), **options)
    for obstacle in environment.obstacles:
        options = contact_options(WORLD, 0, OBSTACLE_FRICTION) | {"name": f"world:{obstacle.name}"}
        add_shape(spec, world, obstacle.shape, obstacle.R, obstacle.p, **options)
    geom_names = [geom.name for geom in world.geoms]
    for thing in environment.objects:
        _add_object(spec, thing)
        for other in geom_names:
            _allow_sliding(spec, f"object:{thing.name}", other, thing.friction)
        geom_names.append(f"object:{thing.name}")


def _add_slab(spec: Any, body: Any, surface: Surface, R: np.ndarray, p: np.ndarray, options: dict[str, Any]) -> None:
    shape, middle = slab(surface.polygon, surface.thickness)
    add_shape(spec, body, shape, R, p + R @ middle, **options)


def _add_pairs(spec: Any, environment: Environment, contacts: Sequence[Contact]) -> None:
    """Give pairs of geoms the friction of their planned contacts, and allow sliding where it is planned."""
    fixed_supports = [support.name for support in environment.surfaces] + [bar.name for bar in environment.bars]
    supports = {name: f"world:{name}" for name in fixed_supports}
    for thing in environment.objects:
        supports |= {surface.name: f"object:{thing.name}:{i}" for i, surface in enumerate(thing.surfaces)}
    sliding = {(contact.patch, contact.support) for contact in contacts if contact.options.get("slide")}
    with_friction = {(contact.patch, contact.support) for contact in contacts if "friction" in contact.options}
    for (patch, name), friction in pair_frictions(contacts).items():
        patch_geom, support = f"patch:{patch}", supports.get(name)
        if support is None or spec.geom(patch_geom) is None:
            continue
        if (patch, name) in sliding:
            _allow_sliding(spec, patch_geom, support, friction)
        elif (patch, name) in with_friction:
            pair = spec.add_pair(geomname1=support, geomname2=patch_geom, condim=3)
            pair.friction = [friction, friction, 0.0, 0.0, 0.0]
            pair.solref, pair.solimp = SOLREF, SOLIMP


def _allow_sliding(spec: Any, geom: str, other: str, friction: float) -> None:
    """Set friction parameters with which a geom slides on another one without hopping (`SOLREF_SLIDING`)."""
    pair = spec.add_pair(geomname1=other, geomname2=geom, condim=3)
    pair.friction = [friction, friction, 0.0, 0.0, 0.0]
    pair.solref, pair.solimp, pair.solreffriction = SOLREF, SOLIMP_STIFF, SOLREF_SLIDING


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
        position = thing.R.T @ (surface.p - thing.p)
        _add_slab(spec, body, surface, thing.R.T @ surface.R, position, options)
