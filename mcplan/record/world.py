"""World of a physics back end: robot, environment and contacts, with payloads and model errors."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from threading import local
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.record.recording import record_link
from mcplan.record.records import LinkRecord, PlaceRecord, WorldRecord
from mcplan.robot.assemble import assemble, lump
from mcplan.robot.description import Inertia
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, FreeObject, Surface
from mcplan.settings.disturbance import Payload
from mcplan.settings.simulation import SimulationSettings


class World(NamedTuple):
    """Robot and environment of a physics back end.

    They may differ from those of the controller, for example by a payload or a slippery floor.

    Parameters
    ----------
    robot, environment : with the masses, frictions and poses of the physics.
    q : (7+n,) initial configuration.
    patches : names of the recorded patches; contact points refer to them by index.
    settings : settings of the simulation.
    contacts : planned contacts of all stances, with friction, limits and free directions; ``pair_frictions`` and
        ``closing_grasp`` choose among several contacts of a patch.
    """

    robot: Robot
    environment: Environment
    q: np.ndarray
    patches: Sequence[str]
    settings: SimulationSettings
    contacts: Sequence[Contact]


Thing = TypeVar("Thing", Surface, Bar, FreeObject)


def pair_frictions(contacts: Iterable[Contact]) -> dict[tuple[str, str], float]:
    """Return the smallest friction coefficient among the contacts of each pair (patch, support), without grasps.

    Physics back ends use one constant friction coefficient for a pair, while stances may have different ones.
    """
    frictions: dict[tuple[str, str], float] = {}
    for contact in contacts:
        if contact.kind != "grasp":
            pair = contact.patch, contact.support
            frictions[pair] = min(frictions.get(pair, np.inf), contact.friction)
    return frictions


def closing_grasp(contacts: Iterable[Contact], p: np.ndarray) -> Contact | None:
    """Return the planned contact of a grip that closes at p (3,): the nearest; among equally near ones, the weakest."""
    return min(contacts, key=lambda c: (float(np.linalg.norm(c.p - p)), c.max_force, c.max_moment), default=None)


def draw_world(nominal: World, start_supports: Sequence[str], seed: int) -> tuple[World, WorldRecord]:
    """Return the world with payloads and random model errors, and the record of its differences from the plan.

    Parameters
    ----------
    nominal : the world of the scenario, without errors.
    start_supports : names of the supports that carry the robot at the start; these are not displaced.
    seed : seed of all errors. Each kind has its own generator, so that one does not change another.
    """
    errors = nominal.settings.imperfections
    world = nominal
    links: dict[str, LinkRecord] = {}
    friction: dict[str, float] = {}
    surfaces: dict[str, PlaceRecord] = {}
    if nominal.settings.payloads or errors.mass_scale != 1.0 or errors.mass_error:
        inertias = _inertias(nominal, np.random.default_rng([seed, 1]))
        links = {name: record_link(name, inertia) for name, inertia in inertias.items()}
        world = world._replace(robot=with_inertias(nominal.robot, inertias))
    if errors.friction_scale != 1.0 or errors.friction_error:
        factors = _random_factors(errors.friction_scale, errors.friction_error, np.random.default_rng([seed, 2]))
        environment = nominal.environment
        groups = [getattr(environment, kind) for kind in ("surfaces", "bars", "objects")]
        friction = {thing.name: next(factors) for group in groups for thing in group}
        friction |= {surface.name: friction[o.name] for o in environment.objects for surface in o.surfaces}
    if errors.ground_height or errors.ground_tilt:
        rng = np.random.default_rng([seed, 3])
        for surface in nominal.environment.surfaces:
            height, *tilt = rng.uniform(-1.0, 1.0, 3) * (errors.ground_height, errors.ground_tilt, errors.ground_tilt)
            if surface.name not in start_supports:
                R, p = displaced(surface, height, np.array(tilt))
                surfaces[surface.name] = PlaceRecord(R=R.tolist(), p=p.tolist())
    record = WorldRecord(links=links, friction=friction, surfaces=surfaces)
    contacts = [replace(c, friction=c.friction * friction.get(c.support, 1.0)) for c in nominal.contacts]
    return world._replace(environment=with_imperfections(nominal.environment, record), contacts=contacts), record


def with_inertias(robot: Robot, inertias: dict[str, Inertia]) -> Robot:
    """Return the robot with the given link inertias in place of its own."""
    model = robot.description
    links = {name: replace(link, inertia=inertias.get(name, link.inertia)) for name, link in model.links.items()}
    model = replace(model, links=links)
    armature = dict(zip(robot.joint_names, robot.armature.tolist(), strict=True))
    tree = assemble(model, robot.locked, armature, robot.fixed).tree
    return replace(robot, tree=tree, description=model, _scratch=local())


def with_losses(robot: Robot, settings: SimulationSettings) -> Robot:
    """Return the robot with the joint friction and damping of the settings added.

    It loses its torque limits if ``settings.torque_limits`` is False.
    """
    joints, max_torque = dict(robot.description.joints), robot.limits.torque
    for name, torque_limit in zip(
        robot.joint_names, np.where(np.isfinite(max_torque), max_torque, 0.0).tolist(), strict=True
    ):
        friction = joints[name].friction + settings.joint_friction * torque_limit
        joints[name] = replace(joints[name], friction=friction, damping=joints[name].damping + settings.joint_damping)
    limits = robot.limits if settings.torque_limits else replace(robot.limits, torque=np.full_like(max_torque, np.inf))
    return replace(robot, description=replace(robot.description, joints=joints), limits=limits)


def with_imperfections(environment: Environment, record: WorldRecord) -> Environment:
    """Return the environment with the friction coefficients and surface poses of a record."""
    if not (record.friction or record.surfaces):
        return environment

    def with_friction(thing: Thing) -> Thing:
        return replace(thing, friction=thing.friction * record.friction.get(thing.name, 1.0))

    def with_record(surface: Surface) -> Surface:
        pose = record.surfaces.get(surface.name)
        surface = with_friction(surface)
        return surface if pose is None else replace(surface, R=np.array(pose.R), p=np.array(pose.p))

    return replace(
        environment,
        surfaces=tuple(map(with_record, environment.surfaces)),
        bars=tuple(map(with_friction, environment.bars)),
        objects=tuple(
            replace(with_friction(thing), surfaces=tuple(map(with_record, thing.surfaces)))
            for thing in environment.objects
        ),
    )


def displaced(surface: Surface, height: float, tilt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pose R (3,3), p (3,) of a surface after a shift along its normal and a rotation about its centre.

    Parameters
    ----------
    height : m, along the normal.
    tilt : (2,) rotation vector in the axes x, y of the surface, rad.
    """
    centre = surface.p + surface.R[:, :2] @ (surface.polygon.min(axis=0) + surface.polygon.max(axis=0)) / 2
    rotation = Rotation.from_rotvec(surface.R[:, :2] @ tilt).as_matrix()
    return rotation @ surface.R, centre + rotation @ (surface.p - centre) + height * surface.normal


def with_payload(inertia: Inertia | None, payload: Payload) -> Inertia:
    """Return the inertia of a link with an added point mass."""
    origin_pose = np.eye(3), np.zeros(3)
    point_mass = Inertia(payload.mass, np.array(payload.com), np.zeros((3, 3)))
    lumped = lump([(part, *origin_pose) for part in (inertia, point_mass) if part is not None])
    matrix = lumped[4:][[[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
    return Inertia(float(lumped[0]), lumped[1:4], matrix)


def _inertias(world: World, rng: np.random.Generator) -> dict[str, Inertia]:
    """Return the inertias of the links by name, with payloads and mass errors."""
    errors, inertias = world.settings.imperfections, {}
    factors = _random_factors(errors.mass_scale, errors.mass_error, rng)
    for name, link in world.robot.description.links.items():
        factor, inertia = next(factors), link.inertia
        if inertia is not None:
            inertia = Inertia(inertia.mass * factor, inertia.com, inertia.matrix * factor)
        for payload in (load for load in world.settings.payloads if load.link == name):
            inertia = with_payload(inertia, payload)
        if inertia is not None:
            inertias[name] = inertia
    return inertias


def _random_factors(scale: float, error: float, rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield scale * (1.0 + error * float(rng.uniform(-1.0, 1.0)))
