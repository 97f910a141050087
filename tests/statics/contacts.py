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
