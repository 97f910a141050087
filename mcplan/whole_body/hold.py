"""The last resort: damp the joints, carry the weight, obey the equation of motion."""

from collections.abc import Sequence

import numpy as np

from mcplan.model.terms import Terms
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.solution import Array

DAMPING = 10.0
"""1/s: the velocities are to decay at this rate."""


def damped_hold(
    terms: Terms, h: Array, contacts: Sequence[ContactConstraint], torque: Array
) -> tuple[Array, Array, list[Array]]:
    """Return accelerations, torques and force unknowns that need no solver.

    The forces are the smallest ones that carry the base through ``vd* = -damping v``, brought back into their cones;
    the torques follow from the joints' rows and are cut at their limits; the accelerations are what the equation of
    motion then gives, exactly.

    Parameters
    ----------
    terms : terms of the state.
    h : (nv,) bias forces less external ones.
    contacts : contacts, in the order of the answer.
    torque : (n,) torque limits.
    """
    wanted = terms.M @ (-DAMPING * terms.v) + h
    joints = slice(6, 6 + len(torque))
    maps = [contact.force_map(terms) for contact in contacts]
    forces: list[Array] = []
    carried = np.zeros_like(wanted)
    if maps:
        J = np.hstack(maps)
        base = np.delete(J, joints, axis=0)  # of the robot, and of objects that move freely
        gram = base @ base.T
        f = base.T @ np.linalg.solve(gram + 1e-9 * np.trace(gram) * np.eye(len(gram)), np.delete(wanted, joints))
        place = 0
        for contact, part in zip(contacts, maps, strict=True):
            mine = _into_cone(contact, f[place : place + part.shape[1]])
            forces.append(mine)
            carried += part @ mine
            place += part.shape[1]
    tau = np.clip((wanted - carried)[joints], -torque, torque)
    push = carried - h
    push[joints] += tau
    return np.asarray(np.linalg.solve(terms.M, push), dtype=np.float64), tau, forces


def _into_cone(contact: ContactConstraint, f: Array) -> Array:
    """Return the unknowns cut to what the contact can bear."""
    if contact.shape.grasp:
        wrench = contact.selection.T @ f
        force, moment = float(np.linalg.norm(wrench[:3])), float(np.linalg.norm(wrench[3:]))
        return f * min(1.0, contact.limit / max(force, 1e-9), contact.max_moment / max(moment, 1e-9))
    points = f.reshape(-1, 3).copy()
    points[:, 2] = np.maximum(points[:, 2], 0.0)
    tangential = np.hypot(points[:, 0], points[:, 1])
    points[:, :2] *= np.minimum(1.0, contact.friction * points[:, 2] / np.maximum(tangential, 1e-9))[:, None]
    return (points * min(1.0, contact.limit / max(float(points[:, 2].sum()), 1e-9))).ravel()
