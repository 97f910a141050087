"""The base of a robot whose root link does not have x ahead and z up."""

from dataclasses import replace
from typing import Literal

import numpy as np

from mcplan.model.description import Joint, Link, UrdfModel

Axis = Literal["x", "-x", "y", "-y", "z", "-z"]

BASE, BASE_JOINT = "base_axes", "base_axes_fixed"
"""Link and fixed joint that are added above the root."""


def direction(axis: Axis) -> np.ndarray:
    """Return the unit vector (3,) of a named axis."""
    return (-1.0 if axis.startswith("-") else 1.0) * np.eye(3)["xyz".index(axis[-1])]


def with_base_axes(model: UrdfModel, forward: Axis, up: Axis) -> UrdfModel:
    """Return the mechanism under a base with x ahead and z up, given which axes of the root link these are.

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
