"""Contacts made by hand for the tests of statics, without a robot or a scene."""

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.scene.contact import Contact

SQUARE = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])


def surface_contact(
    name,
    p,
    normal=(0.0, 0.0, 1.0),
    half=(0.1, 0.05),
    yaw=0.0,
    friction=0.7,
    max_force=np.inf,
    kind="surface",
    **options,
):
    """A rectangular patch (or a point) at ``p`` on a plane with this normal."""
    tilt = (
        Rotation.align_vectors([normal], [[0.0, 0.0, 1.0]])[0]
        if np.dot(normal, [0, 0, 1]) > -1
        else Rotation.identity()
    )
    axes = tilt.as_matrix() @ Rotation.from_euler("z", yaw).as_matrix()
    R = axes @ np.diag([1.0, -1.0, -1.0])
    points = np.zeros((1, 3)) if kind == "point" else np.column_stack([SQUARE * half, np.zeros(4)])
    return make(name, kind, R, np.asarray(p, dtype=float), points, axes, friction, max_force, **options)


def grasp_contact(name, p, max_force=200.0, max_moment=20.0):
    """A grasp at ``p`` with patch axes parallel to the world's."""
    return make(
        name, "grasp", np.eye(3), np.asarray(p, dtype=float), np.zeros((1, 3)), np.eye(3), 0.0, max_force, max_moment
    )


def make(name, kind, R, p, points, axes, friction, max_force=np.inf, max_moment=np.inf, **options):
    rows = np.eye(6)[:3] if kind == "point" else np.eye(6)
    return Contact(name, "ground", kind, R, p, points, axes, friction, max_force, max_moment, rows, {}, options)


def corners(contact):
    """Contact points in the world."""
    return contact.p + contact.points @ contact.R.T


def random_contacts(rng, count):
    """Patches, points and grasps at random places, normals within 60 degrees of up."""
    contacts = []
    for i in range(count):
        p = rng.uniform([-0.4, -0.4, 0.0], [0.4, 0.4, 0.8])
        normal = rng.normal(size=3) * 0.5 + [0.0, 0.0, 1.0]
        normal[2] = abs(normal[2]) + 0.3
        kind = rng.choice(["surface", "surface", "point", "grasp"])
        if kind == "grasp":
            contacts.append(grasp_contact(f"g{i}", p, rng.uniform(50, 300), rng.uniform(5, 20)))
        else:
            limit = rng.choice([np.inf, 400.0])
            normal = normal / np.linalg.norm(normal)
            yaw = rng.uniform(-np.pi, np.pi)
            contacts.append(
                surface_contact(f"c{i}", p, normal, rng.uniform(0.02, 0.1, 2), yaw, rng.uniform(0.2, 0.9), limit, kind)
            )
    return contacts


def any_contact(rng, i):
    """A contact of any kind in any orientation: polygon, edge, point, grasp, sole on a bar; friction from 0 to 1.

    One in three is placed on a grid in place and orientation, where programs are degenerate.
    """
    kind = rng.choice(["polygon", "polygon", "edge", "point", "grasp", "bar"])
    aligned = rng.random() < 1.0 / 3.0
    p = rng.uniform([-0.5, -0.5, 0.0], [0.5, 0.5, 1.2])
    axes = Rotation.random(random_state=rng).as_matrix()
    friction = rng.choice([0.0, 1.0, rng.uniform()], p=[0.1, 0.1, 0.8])
    if aligned:
        p = np.round(4.0 * p) / 4.0
        axes = Rotation.create_group("O").as_matrix()[rng.integers(24)]
        friction = np.round(friction, 1)
    if axes[2, 2] < 0.0 and rng.random() < 0.5:  # more of them face up than down
        axes = axes @ np.diag([1.0, -1.0, -1.0])
    limit = rng.choice([np.inf, rng.uniform(50.0, 800.0)])
    half = np.round(rng.uniform(0.02, 0.12, 2), 2)
    points = {
        "polygon": np.column_stack([SQUARE * half, np.zeros(4)]),
        "edge": np.array([[0.0, half[1], 0.0], [0.0, -half[1], 0.0]]),
        "point": np.zeros((1, 3)),
        "grasp": np.zeros((1, 3)),
        "bar": np.array([[0.03, half[1], 0.015], [0.03, -half[1], 0.015]]),  # the line lies off the patch's plane
    }[kind]
    R = axes if kind == "grasp" else axes @ np.diag([1.0, -1.0, -1.0])
    if kind == "grasp":
        moment, free = rng.choice([np.inf, rng.uniform(2.0, 30.0)]), rng.random() < 0.3
        options = {"hinge": "y"} if free else {}
        return make(f"grasp{i}", "grasp", R, p, points, axes, 0.0, rng.uniform(50.0, 500.0), moment, **options)
    options = {"slide": ["x"]} if rng.random() < 0.05 else {}
    name = "point" if kind == "point" else "surface"
    return make(f"{kind}{i}", name, R, p, points, axes, float(friction), float(limit), **options)
