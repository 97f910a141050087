"""From one patch of a link to another without leaving the support: a heel that rises onto its toe edge, and comes down.

flat F, edge E on the same link, r = R_LF' (p_LE - p_LF):    p_E = p_F + R_F r,   and back:   p_F = p_E - R_F r
"""

import numpy as np

from mcplan.errors import InputError
from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.place import make_contact

LEVEL = 0.01
"""m: an edge that lies this near to the plane of a flat patch can take its place."""


def roll(robot: Robot, environment: Environment, contact: Contact, patch: str) -> Contact | None:
    """Return the contact of ``patch`` that takes over from ``contact`` in place, or None where there is none."""
    now, then = robot.patches[contact.patch], robot.patches[patch]
    edges = [len(now.polygon) == 2, len(then.polygon) == 2]
    support = environment.support(contact.support)
    if now.link != then.link or sum(edges) != 1 or contact.kind != "surface" or not isinstance(support, Surface):
        return None
    flat, edge = (then, now) if edges[0] else (now, then)
    arm = flat.R.T @ (edge.p - flat.p)
    if abs(arm[2]) > robot.scale.sole * LEVEL:
        return None
    spec = {"patch": patch, "surface": contact.support}
    turned = contact.R @ now.R.T @ then.R
    try:
        if edges[0]:
            yaw = round(float(make_contact(robot, environment, spec | {"overhang": True}, (turned, contact.p))
                              .coordinates["yaw"]), 6)  # fmt: skip
            c, s = np.cos(yaw), np.sin(yaw)
            R = support.R @ np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]])
            p = contact.p - R @ arm
        else:
            R, p = turned, contact.p + contact.R @ arm
            yaw = round(
                float(make_contact(robot, environment, spec | {"overhang": True}, (R, p)).coordinates["yaw"]), 6
            )
        x, y, _ = support.R.T @ (p - support.p)
        return make_contact(robot, environment, spec | {"x": round(float(x), 9), "y": round(float(y), 9), "yaw": yaw})
    except InputError:
        return None
