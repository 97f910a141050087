"""World of a physics back end: robot, environment and contacts, with payloads and imperfections."""

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
    """Robot and environment of a back end. They may differ from those of the controller: a payload, a slippery floor.

    Parameters
    ----------
    robot, environment : with the masses, frictions and poses of the physics.
    q : (7+n,) initial configuration.
    patches : names; contact points refer to patches by their index here.
    settings : of the simulation.
    contacts : of all stances, with friction, limits and free directions. ``pair_frictions`` and ``closing_grasp``
        choose among several contacts of a patch.
    """

    robot: Robot
    environment: Environment
    q: np.ndarray
    patches: Sequence[str]
    settings: SimulationSettings
    contacts: Sequence[Contact]


Thing = TypeVar("Thing", Surface, Bar, FreeObject)


def pair_frictions(contacts: Iterable[Contact]) -> dict[tuple[str, str], float]:
    """Return the friction of each patch on each support, without grasps: the minimum over their contacts.

    A physics has one constant friction coefficient per patch and support; stances may have different ones.
    """
    found: dict[tuple[str, str], float] = {}
    for contact in contacts:
        if contact.kind != "grasp":
            pair = contact.patch, contact.support
            found[pair] = min(found.get(pair, np.inf), contact.friction)
    return found


def closing_grasp(contacts: Iterable[Contact], p: np.ndarray) -> Contact | None:
    """Return the contact of a grip that closes at p (3,): the nearest; among several in one place, the weakest."""
    return min(contacts, key=lambda c: (float(np.linalg.norm(c.p - p)), c.max_force, c.max_moment), default=None)


def draw_world(nominal: World, start_supports: Sequence[str], seed: int) -> tuple[World, WorldRecord]:
    """Return the world with payloads and imperfections, and the record of its differences from the plan.

    Parameters
    ----------
    nominal : the world of the scenario.
    start_supports : names of the supports that carry the robot at the start; these are not displaced.
    seed : of all errors. Each kind has its own generator, so that one does not change another.
    """
    flaws = nominal.settings.imperfections
    world = nominal
    links: dict[str, LinkRecord] = {}
    friction: dict[str, float] = {}
    surfaces: dict[str, PlaceRecord] = {}
    if nominal.settings.payloads or flaws.mass_scale != 1.0 or flaws.mass_error:
        inertias = _inertias(nominal, np.random.default_rng([seed, 1]))
        links = {name: record_link(name, inertia) for name, inertia in inertias.items()}
        world = world._replace(robot=with_inertias(nominal.robot, inertias))
    if flaws.friction_scale != 1.0 or flaws.friction_error:
        factors = _factors(flaws.friction_scale, flaws.friction_error, np.random.default_rng([seed, 2]))
        environment = nominal.environment
        named = {kind: [thing.name for thing in getattr(environment, kind)] for kind in ("surfaces", "bars", "objects")}
        friction = {name: next(factors) for names in named.values() for name in names}
        friction |= {surface.name: friction[o.name] for o in environment.objects for surface in o.surfaces}
    if flaws.ground_height or flaws.ground_tilt:
        rng = np.random.default_rng([seed, 3])
        for surface in nominal.environment.surfaces:
            height, *tilt = rng.uniform(-1.0, 1.0, 3) * (flaws.ground_height, flaws.ground_tilt, flaws.ground_tilt)
            if surface.name not in start_supports:
                R, p = displaced(surface, height, np.array(tilt))
                surfaces[surface.name] = PlaceRecord(R=R.tolist(), p=p.tolist())
    record = WorldRecord(links=links, friction=friction, surfaces=surfaces)
    contacts = [replace(c, friction=c.friction * friction.get(c.support, 1.0)) for c in nominal.contacts]
    return world._replace(environment=with_imperfections(nominal.environment, record), contacts=contacts), record


def with_inertias(robot: Robot, inertias: dict[str, Inertia]) -> Robot:
    """Return the robot with other link inertias."""
    model = robot.description
    links = {name: replace(link, inertia=inertias.get(name, link.inertia)) for name, link in model.links.items()}
    model = replace(model, links=links)
    armature = dict(zip(robot.joint_names, robot.armature.tolist(), strict=True))
    tree = assemble(model, robot.locked, armature, robot.fixed).tree
    return replace(robot, tree=tree, description=model, _scratch=local())


def with_losses(robot: Robot, settings: SimulationSettings) -> Robot:
    """Return the robot with additional joint friction and damping of the settings, optionally without limits."""
    joints, limit = dict(robot.description.joints), robot.limits.torque
    for name, torque_limit in zip(robot.joint_names, np.where(np.isfinite(limit), limit, 0.0).tolist(), strict=True):
        friction = joints[name].friction + settings.joint_friction * torque_limit
        joints[name] = replace(joints[name], friction=friction, damping=joints[name].damping + settings.joint_damping)
    limits = robot.limits if settings.torque_limits else replace(robot.limits, torque=np.full_like(limit, np.inf))
    return replace(robot, description=replace(robot.description, joints=joints), limits=limits)


def with_imperfections(environment: Environment, record: WorldRecord) -> Environment:
    """Return the environment with the friction coefficients and poses of the physics."""
    if not (record.friction or record.surfaces):
        return environment

    def with_friction(thing: Thing) -> Thing:
        return replace(thing, friction=thing.friction * record.friction.get(thing.name, 1.0))

    def moved(surface: Surface) -> Surface:
        place = record.surfaces.get(surface.name)
        surface = with_friction(surface)
        return surface if place is None else replace(surface, R=np.array(place.R), p=np.array(place.p))

    return replace(
        environment,
        surfaces=tuple(map(moved, environment.surfaces)),
        bars=tuple(map(with_friction, environment.bars)),
        objects=tuple(replace(with_friction(o), surfaces=tuple(map(moved, o.surfaces))) for o in environment.objects),
    )


def displaced(surface: Surface, height: float, tilt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return R (3,3) and p (3,) of a surface shifted along its normal (m) and rotated about its centre by tilt (2,)."""
    centre = surface.p + surface.R[:, :2] @ (surface.polygon.min(axis=0) + surface.polygon.max(axis=0)) / 2
    rotation = Rotation.from_rotvec(surface.R[:, :2] @ tilt).as_matrix()
    return rotation @ surface.R, centre + rotation @ (surface.p - centre) + height * surface.normal


def with_payload(inertia: Inertia | None, payload: Payload) -> Inertia:
    """Return the inertia of a link with an added point mass."""
    at_origin = np.eye(3), np.zeros(3)
    mass = Inertia(payload.mass, np.array(payload.com), np.zeros((3, 3)))
    row = lump([(part, *at_origin) for part in (inertia, mass) if part is not None])
    matrix = row[4:][[[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
    return Inertia(float(row[0]), row[1:4], matrix)


def _inertias(world: World, rng: np.random.Generator) -> dict[str, Inertia]:
    """Return the inertias of the links, with payloads and errors."""
    flaws, found = world.settings.imperfections, {}
    factors = _factors(flaws.mass_scale, flaws.mass_error, rng)
    for name, link in world.robot.description.links.items():
        factor, inertia = next(factors), link.inertia
        if inertia is not None:
            inertia = Inertia(inertia.mass * factor, inertia.com, inertia.matrix * factor)
        for payload in (load for load in world.settings.payloads if load.link == name):
            inertia = with_payload(inertia, payload)
        if inertia is not None:
            found[name] = inertia
    return found


def _factors(scale: float, error: float, rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield scale * (1.0 + error * float(rng.uniform(-1.0, 1.0)))
