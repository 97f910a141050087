"""One posture for contacts in a scene, from Python."""

from collections.abc import Iterable, Sequence

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.errors import InputError
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.posture.result import PostureResult
from mcplan.planning.posture.settings import PostureSettings
from mcplan.planning.posture.task import BaseTarget
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.util.arguments import each, instance, vector


def solve_posture(
    robot: Robot,
    environment: Environment,
    contacts: Sequence[Contact],
    near: np.ndarray | str | None = None,
    *,
    loaded: Iterable[str] | None = None,
    com: np.ndarray | None = None,
    base: BaseTarget | None = None,
    collisions: bool = True,
    settings: PostureSettings | None = None,
) -> PostureResult:
    """Find a posture near another one with contacts in place, balanced, within limits, and with bodies apart.

        minimise    |q - near|^2 weighted
        subject to  contacts in place,  joint limits,  centre of mass in the support region of what is loaded,
                    distances between bodies,  forces within cones and limits,  torques within their share

    ``print`` of the result says whether it was found, and which requirement is missed by how much.

    Parameters
    ----------
    robot, environment : who, and what its links keep clear of.
    contacts : at least one (`mcplan.contact`).
    near : (nq,) the posture that is preferred, or its name; the robot's ``half_sitting`` or neutral one by default.
    loaded : names of the patches that carry load; all by default.
    com : (2,) or (3,) centre of mass that is asked for (m).
    base : where the base is asked for.
    collisions : whether bodies are kept apart.
    settings : margins and budgets.

    Raises
    ------
    InputError
        No contacts, one patch twice, or a posture of another robot.
    """
    where = "solve_posture"
    instance(where, "robot", robot, Robot)
    instance(where, "environment", environment, Environment)
    contacts = each(where, "contacts", contacts, Contact)
    names = [contact.patch for contact in contacts]
    if not names or len(set(names)) < len(names):
        raise InputError(f"solve_posture: expected contacts of different patches, not {', '.join(names) or 'none'}")
    if near is None:
        near = robot.posture("half_sitting") if "half_sitting" in robot.postures else robot.neutral()
    guide = robot.posture(near) if isinstance(near, str) else vector(where, f"near (q of {robot.name})", near, robot.nq)
    com = None if com is None else vector(where, "com", com, 2, 3)
    model = CollisionModel(robot, environment) if collisions else None
    generator = PostureGenerator(robot, environment, settings, model)
    return generator.generate(contacts, loaded, guide, com=com, base=base)
