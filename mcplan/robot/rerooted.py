"""Change of root link and base axes of a mechanism: the URDF re-rooted, with a base with x forward and z up.

Source: S2, section 4.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from mcplan.robot.description import Joint, Link, UrdfModel

BEHIND = "behind_"
"""Prefix, before a joint's name, of the auxiliary link at its frame on the side of the old root."""


def rerooted(model: UrdfModel, base: str) -> UrdfModel:
    """Return the description with another link as its root; every link keeps its frame, every joint its coordinate.

    Joints on the path from the old root to the new one are reversed. In the file a joint is
    ``X_parent,child = X exp(s)`` with the rotation or translation s after its constant part X; reversed it is
    ``exp(-s) X^-1``, with the constant part last. An auxiliary massless link is inserted at the joint.

    Parameters
    ----------
    base : a link of the description.
    """
    if base == model.root:
        return model
    links, joints = dict(model.links), dict(model.joints)
    for joint in joints_to_root(model, base):
        for flipped, auxiliary in _reversed(joint):
            joints[flipped.name] = flipped
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
    """Return the reversed joint, its constant part as a fixed joint, and the auxiliary link."""
    R, p = np.ascontiguousarray(joint.R.T), -joint.R.T @ joint.p
    if joint.type == "fixed":
        return [(replace(joint, parent=joint.child, child=joint.parent, R=R, p=p), None)]
    auxiliary = Link(BEHIND + joint.name, joint.line, None)
    moving = replace(joint, parent=joint.child, child=auxiliary.name, R=np.eye(3), p=np.zeros(3), axis=-joint.axis)
    x = np.array([1.0, 0.0, 0.0])
    constant = Joint(auxiliary.name, joint.line, "fixed", auxiliary.name, joint.parent, R, p, x)
    return [(moving, auxiliary), (constant, None)]


Axis = Literal["x", "-x", "y", "-y", "z", "-z"]

BASE, BASE_JOINT = "base_axes", "base_axes_fixed"
"""Link and fixed joint added above the root."""


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
    mount = Joint(BASE_JOINT, line, "fixed", BASE, model.root, R, np.zeros(3), np.array([1.0, 0.0, 0.0]))
    return replace(
        model,
        root=BASE,
        links={BASE: Link(BASE, line, None), **model.links},
        joints={BASE_JOINT: mount, **model.joints},
        children={BASE: (BASE_JOINT,), **model.children},
    )
