"""Change of root link and base axes of a mechanism: the URDF re-rooted, with a base with x forward and z up.

Source: S2, section 4.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from mcplan.robot.description import Joint, Link, UrdfModel

AUXILIARY_PREFIX = "behind_"
"""Prefix of the name of the auxiliary link at a reversed joint, before the joint's name."""


def reroot(model: UrdfModel, base: str) -> UrdfModel:
    """Return the description with another link as its root; links keep their frames, joints their coordinates.

    Joints on the path from the old root to the new one are reversed. The pose of a joint's child in its parent is
    ``X exp(s)``, with the constant part X and the rotation or translation s. The reversed joint has the inverse
    ``exp(-s) X^-1``, whose constant part comes last: it becomes a fixed joint after an auxiliary massless link.

    Parameters
    ----------
    base : name of the new root link.
    """
    if base == model.root:
        return model
    links, joints = dict(model.links), dict(model.joints)
    for joint in joints_to_root(model, base):
        for new_joint, auxiliary in _reversed(joint):
            joints[new_joint.name] = new_joint
            if auxiliary is not None:
                links[auxiliary.name] = auxiliary
    children: dict[str, tuple[str, ...]] = {name: () for name in links}
    for joint in joints.values():
        children[joint.parent] += (joint.name,)
    link_order, joint_order, stack = [base], [], list(reversed(children[base]))
    while stack:
        joint = joints[stack.pop()]
        joint_order.append(joint.name)
        link_order.append(joint.child)
        stack.extend(reversed(children[joint.child]))
    return replace(
        model,
        root=base,
        links={name: links[name] for name in link_order},
        joints={name: joints[name] for name in joint_order},
        children=children,
    )


def joints_to_root(model: UrdfModel, link: str | None) -> Iterator[Joint]:
    """Yield the joints on the path from a link to the root."""
    parents = {joint.child: joint for joint in model.joints.values()}
    while link in parents:
        yield parents[link]
        link = parents[link].parent


def _reversed(joint: Joint) -> list[tuple[Joint, Link | None]]:
    """Return the reversed joint with its auxiliary link, and its constant part as a fixed joint."""
    R, p = np.ascontiguousarray(joint.R.T), -joint.R.T @ joint.p
    if joint.type == "fixed":
        return [(replace(joint, parent=joint.child, child=joint.parent, R=R, p=p), None)]
    auxiliary = Link(AUXILIARY_PREFIX + joint.name, joint.line, None)
    moving = replace(joint, parent=joint.child, child=auxiliary.name, R=np.eye(3), p=np.zeros(3), axis=-joint.axis)
    x = np.array([1.0, 0.0, 0.0])
    constant = Joint(auxiliary.name, joint.line, "fixed", auxiliary.name, joint.parent, R, p, x)
    return [(moving, auxiliary), (constant, None)]


Axis = Literal["x", "-x", "y", "-y", "z", "-z"]

BASE_LINK, BASE_JOINT = "base_axes", "base_axes_fixed"
"""Names of the link and the fixed joint that are added above the root."""


def direction(axis: Axis) -> np.ndarray:
    """Return the unit vector (3,) of a named axis."""
    return (-1.0 if axis.startswith("-") else 1.0) * np.eye(3)["xyz".index(axis[-1])]


def with_base_axes(model: UrdfModel, forward: Axis, up: Axis) -> UrdfModel:
    """Return the mechanism with a base with x forward and z up, from the corresponding axes of the root link.

    A massless link is added at the root's origin; ``R = [forward, up x forward, up]'`` is the root link's rotation
    in it.
    """
    x, z = direction(forward), direction(up)
    R = np.array([x, np.cross(z, x), z])
    line = model.links[model.root].line
    mount = Joint(BASE_JOINT, line, "fixed", BASE_LINK, model.root, R, np.zeros(3), np.array([1.0, 0.0, 0.0]))
    return replace(
        model,
        root=BASE_LINK,
        links={BASE_LINK: Link(BASE_LINK, line, None), **model.links},
        joints={BASE_JOINT: mount, **model.joints},
        children={BASE_LINK: (BASE_JOINT,), **model.children},
    )
