"""Collision geometry collected from a scene file: triangles of shapes, infinite planes, files, notices."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Shape, Sphere
from mcplan.robot.mesh_file import MeshError
from mcplan.scene.detection.detect import FLOOR_MARGIN_M
from mcplan.scene.detection.triangles import MAX_TRIANGLES, join_parts

ROUND_SIDES = 32
"""Number of sides of a tessellated cylinder."""

SQUARE_FACES = np.array([[0, 1, 2], [0, 2, 3]])
"""Two triangles (2,3) of a square with four corners."""


@dataclass
class SceneGeometry:
    """Collision geometry of a scene.

    Attributes
    ----------
    parts : vertices (k,3) and faces (m,3) of each shape, in the world.
    infinite_planes : poses of infinite planes: rotation (3,3), with the normal as third column, and position (3,).
    files : mesh files and included models, without the scene file itself.
    notices : messages for the user.
    triangle_count : number of triangles so far.
    """

    parts: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    infinite_planes: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    files: set[Path] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)
    triangle_count: int = 0

    def add(self, shape: Shape, R: np.ndarray, p: np.ndarray) -> None:
        """Add a shape at a pose.

        Raises
        ------
        MeshError
            The scene has too many triangles; a short file can include a model many times.
        """
        vertices, faces = tessellate(shape)
        self._count_triangles(len(faces))
        self.parts.append((vertices @ R.T + p, faces))

    def add_plane(self, R: np.ndarray, p: np.ndarray, x: float, y: float) -> None:
        """Add a plane z = 0 of half sizes x, y (m) at a pose; infinite if one of them is 0."""
        self._count_triangles(len(SQUARE_FACES))
        if min(x, y) <= 0.0:
            self.infinite_planes.append((R, p))
            return
        self.parts.append((np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0]]) @ R.T + p, SQUARE_FACES))

    def _count_triangles(self, faces: int) -> None:
        """Count further triangles, and raise a MeshError if there are too many."""
        self.triangle_count += faces
        if self.triangle_count > MAX_TRIANGLES:
            raise MeshError(f"holds more than {MAX_TRIANGLES} triangles; make its meshes coarser")

    def note_moving(self, names: list[str]) -> None:
        """Add a notice with the names of movable parts."""
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            self.notices.append(f"movable parts are fixed at their initial pose: {', '.join(names[:5])}{more}")

    def triangles(self) -> tuple[np.ndarray, np.ndarray]:
        """Return vertices (k,3) and faces (m,3) of all parts; infinite planes reach `FLOOR_MARGIN_M` beyond the others.

        Raises
        ------
        MeshError
            The scene is empty.
        """
        corners = [vertices for vertices, _ in self.parts] + [p[None] for _, p in self.infinite_planes]
        if not corners:
            raise MeshError("holds nothing that collides")
        low, high = np.min([c.min(axis=0) for c in corners], axis=0), np.max([c.max(axis=0) for c in corners], axis=0)
        parts = list(self.parts)
        for R, p in self.infinite_planes:
            middle, half_side = R.T @ (0.5 * (low + high) - p), float(np.linalg.norm(high - low)) / 2 + FLOOR_MARGIN_M
            square = (
                np.array(
                    [[-half_side, -half_side], [half_side, -half_side], [half_side, half_side], [-half_side, half_side]]
                )
                + middle[:2]
            )
            parts.append((np.column_stack([square, np.zeros(4)]) @ R.T + p, SQUARE_FACES))
        return join_parts(parts)


def tessellate(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (k,3) and faces (m,3) of a shape in its frame."""
    import trimesh

    if isinstance(shape, MeshShape):
        return shape.vertices, shape.faces
    if isinstance(shape, Box):
        mesh = trimesh.creation.box(shape.size)
    elif isinstance(shape, Sphere):
        mesh = trimesh.creation.icosphere(2, shape.radius)
    elif isinstance(shape, Cylinder):
        mesh = trimesh.creation.cylinder(shape.radius, shape.length, ROUND_SIDES)
    else:
        assert isinstance(shape, Capsule)
        mesh = trimesh.creation.capsule(shape.length, shape.radius, [ROUND_SIDES, ROUND_SIDES // 2])
        mesh.vertices[:, 2] -= 0.5 * (mesh.bounds[0, 2] + mesh.bounds[1, 2])
    return np.array(mesh.vertices), np.array(mesh.faces)
