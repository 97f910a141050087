"""Drawing of the robot: links with visual or collision geometry, patches in contact, frames, target postures.

A run file has only convex hulls of large meshes; the meshes of the installed robot are drawn if available.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from meshcat import geometry as mg
from scipy.spatial.transform import Rotation

from mcplan.errors import McplanError
from mcplan.record.run import Run
from mcplan.robot.description import Geometry, MeshShape, Sphere
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import load_robot
from mcplan.view import palette, shapes
from mcplan.view.drawing import Drawing, node_name
from mcplan.view.environment import pose

PATCH_OVERHANG_M = 0.008
"""Overhang of the plate of a patch, so that it is visible around the link (m)."""

BALL_SCALE = 1.05
"""Drawn radius of a spherical patch / its radius, so that it covers the link's own surface."""

AXIS_LENGTH, AXIS_RADIUS = 0.08, 0.002
"""Length and radius of the axes of a frame (m)."""

AXIS_COLOURS = ((0.85, 0.15, 0.15, 1.0), (0.15, 0.65, 0.15, 1.0), (0.15, 0.25, 0.85, 1.0))
"""Colours of the axes of a frame: x red, y green, z blue (z of a patch points out of the link)."""

CAMERA_SAMPLES = 30
"""Maximum number of configurations of a motion from which the camera is set."""


def draw_robot(drawing: Drawing, robot: Robot, path: str = "robot") -> None:
    """Draw the links with their visual geometry; links without it with their collision geometry."""
    for link, geometries in robot.geometry.items():
        visual = [g for g in geometries if g.role != "collision"] or list(geometries)
        for index, geometry in enumerate(visual):
            shapes.draw(
                drawing.root[path][node_name(link)][f"shape{index}"],
                geometry.shape,
                geometry.color or palette.ROBOT,
                pose(geometry.R, geometry.p),
            )
    for patch in robot.patches.values():
        for kind, colour in (("patch", palette.CONTACT), ("moved", palette.MOVED)):
            node = drawing.root[path][node_name(patch.link)][node_name(patch.name, f"{kind} ")]
            if patch.radius:
                shapes.draw(node, Sphere(BALL_SCALE * patch.radius), colour, pose(patch.R, patch.p))
            else:
                node.set_object(patch_mesh(patch.polygon), shapes.material(colour, flat=True))
                node.set_transform(pose(patch.R, patch.p))
            node.set_property("visible", False)


def drawn_links(robot: Robot) -> list[str]:
    """Return the links with geometry or patches; all links of a robot that has neither."""
    patched = {patch.link for patch in robot.patches.values()}
    drawn = [link for link in robot.link_names if robot.geometry.get(link) or link in patched]
    return drawn or list(robot.link_names)


def body_points(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return the positions of the links (m, 3) in evenly sampled configurations of q (k, nq)."""
    rows = np.unique(np.linspace(0, len(q) - 1, min(len(q), CAMERA_SAMPLES)).astype(int))
    return np.concatenate([robot.frame_pose(q[rows], link)[:, :3, 3] for link in drawn_links(robot)])


def patch_mesh(polygon: np.ndarray):
    """Return a thin plate, slightly larger than the patch; for a line or point, a strip."""
    polygon = np.asarray(polygon, dtype=float)
    half = PATCH_OVERHANG_M
    if len(polygon) < 3:
        begin, end = polygon[0], polygon[-1]
        along = (end - begin) / (np.linalg.norm(end - begin) or 1.0)
        along = along if np.any(along) else np.array([1.0, 0.0])
        across = half * np.array([-along[1], along[0]])
        begin, end = begin - half * along, end + half * along
        polygon = np.array([begin - across, end - across, end + across, begin + across])
    else:
        outward = polygon - polygon.mean(axis=0)
        polygon = polygon + np.sqrt(2) * PATCH_OVERHANG_M * outward / np.linalg.norm(outward, axis=1, keepdims=True)
    return shapes.mesh(*shapes.prism(polygon, 0.002, -0.002))


def animate_robot(drawing: Drawing, robot: Robot, q: np.ndarray, path: str = "robot") -> None:
    """Move the links through the configurations ``q`` (frames, nq)."""
    for link in dict.fromkeys([robot.link_names[0], *drawn_links(robot)]):  # the base, which has axes, too
        X = robot.frame_pose(q, link)
        quat = shapes.continuous(Rotation.from_matrix(X[:, :3, :3]).as_quat(scalar_first=True))
        drawing.animate(f"{path}/{node_name(link)}", position=X[:, :3, 3], quat_wxyz=quat)


def draw_collision(drawing: Drawing, robot: Robot) -> None:
    """Draw the collision bodies of links where they differ from the visual ones, hidden at first."""
    for link, geometries in robot.geometry.items():
        if all(geometry.role == "collision" for geometry in geometries):
            continue  # already drawn as visual geometry
        visual = [geometry for geometry in geometries if geometry.role == "visual"]
        for index, geometry in enumerate(geometries):
            if geometry.role == "collision" and not any(_equal_geometry(geometry, other) for other in visual):
                node = drawing.root["robot"][node_name(link)][f"collision{index}"]
                shapes.draw(node, geometry.shape, palette.COLLISION, pose(geometry.R, geometry.p), coat=True)
                node.set_property("visible", False)


def _equal_geometry(a: Geometry, b: Geometry) -> bool:
    """Return whether two geometries are equal, as collision and visual geometry often are."""
    if not (np.array_equal(a.R, b.R) and np.array_equal(a.p, b.p) and type(a.shape) is type(b.shape)):
        return False
    if isinstance(a.shape, MeshShape) and isinstance(b.shape, MeshShape):
        pairs = ((a.shape.vertices, b.shape.vertices), (a.shape.faces, b.shape.faces))
        return all(np.array_equal(x, y) for x, y in pairs)
    return a.shape == b.shape


def draw_frames(drawing: Drawing, robot: Robot, patches: Iterable[str]) -> None:
    """Draw the axes of patches and of the base, hidden at first."""
    frames = {robot.link_names[0]: [("base", np.eye(4))]}
    for name in patches:
        patch = robot.patches[name]
        frames.setdefault(patch.link, []).append((name, pose(patch.R, patch.p)))
    for link, link_frames in frames.items():
        for name, X in link_frames:
            path = f"robot/{node_name(link)}/{node_name(name, 'frame ')}"
            for axis, colour in enumerate(AXIS_COLOURS):
                R = np.roll(np.eye(3), axis + 1, axis=1)  # rotates z to this axis
                node = drawing.root[f"{path}/{'xyz'[axis]}"]
                node.set_object(mg.Cylinder(AXIS_LENGTH, AXIS_RADIUS), shapes.material(colour, flat=True, on_top=True))
                node.set_transform(X @ pose(R, AXIS_LENGTH / 2 * np.eye(3)[axis]) @ shapes.CYLINDER_TO_Z)
            drawing.root[path].set_property("visible", False)


@dataclass(frozen=True)
class RobotAppearance:
    """A robot with the geometry of another one, for drawing only."""

    robot: Any
    geometry: dict[str, tuple[Geometry, ...]]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.robot, name)


def robot_to_draw(run: Run) -> Any:
    """Return the robot of a run for drawing, with the masses of the physics.

    A run in memory has its full meshes. A run file has convex hulls of large meshes; then the installed robot, or the
    one at the scenario's path, provides the geometry, if its digest is the same.
    """
    if run.live_plan is not None or not run.record.robot.meshes:
        return run.loaded_robot
    name = run.record.scenario.document.get("robot")
    if not isinstance(name, str):
        return run.loaded_robot
    try:
        installed = load_robot(name)
    except (McplanError, OSError):
        return run.loaded_robot
    same_files = installed.digest == run.record.robot.digest
    return RobotAppearance(run.loaded_robot, installed.geometry) if same_files else run.loaded_robot


def ghost_data(
    robot: Robot, postures: Sequence[np.ndarray], spans: Sequence[tuple[float, float, int]]
) -> dict[str, Any]:
    """Return the nodes of links, their poses (position, quaternion x y z w) in each posture, and time spans.

    Parameters
    ----------
    postures : configurations (nq,).
    spans : begin, end and index of the target posture of each interval.
    """
    links = [link for link in drawn_links(robot) if robot.geometry.get(link)]
    poses = []
    for q in postures:
        rows = []
        for link in links:
            X = robot.frame_pose(q, link)
            xyzw = Rotation.from_matrix(X[:3, :3]).as_quat()
            rows.append([*np.round(X[:3, 3], 5).tolist(), *np.round(xyzw, 6).tolist()])
        poses.append(rows)
    return {"links": [node_name(link) for link in links], "poses": poses, "spans": [list(span) for span in spans]}


def run_ghost(run: Run, bands: Sequence[tuple[float, float, str]]) -> dict[str, Any]:
    """Return the posture of each phase's target stance."""
    stances = run.plan.stances
    changes = np.concatenate([[0], np.flatnonzero(np.diff(run.phase)) + 1])
    targets = [run.record.phases[run.phase[k]].stance for k in changes]
    spans = [(begin, end, target) for (begin, end, _), target in zip(bands, targets, strict=True) if target is not None]
    return ghost_data(run.robot, [stance.q for stance in stances], spans)
