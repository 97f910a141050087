"""Frames of a replay, from a run, a plan or a search tree, and their drawing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from meshcat import geometry as mg

from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.view import palette, shapes
from mcplan.view.arrow import draw_cone, draw_force
from mcplan.view.drawing import Drawing, node_name
from mcplan.view.environment import animate_objects, draw_environment, pose, set_stage
from mcplan.view.robot import animate_robot, body_points, draw_collision, draw_frames, draw_robot
from mcplan.view.support import draw_support


@dataclass(frozen=True)
class PatchForce:
    """Force on one patch in each frame.

    Attributes
    ----------
    place : (frames, 3) point of application, m.
    force : (frames, 3) force, N.
    normal : (frames, 3) outward normal of the support; zero without a friction cone (no contact, or a grasp).
    friction : (frames,) friction coefficient.
    """

    place: np.ndarray
    force: np.ndarray
    normal: np.ndarray
    friction: np.ndarray


@dataclass(frozen=True)
class Film:
    """A motion to draw.

    Attributes
    ----------
    robot, environment : the scene.
    times : (frames,) time, s; of a plan the number of the stance.
    q : (frames, nq) configurations.
    com : (frames, 3) centre of mass, m.
    ground : (frames,) height at which the centre of mass is projected, m.
    touching : {patch: (frames,) booleans}, True in frames with this contact.
    moved : {patch: (frames,) booleans}, True in frames in which this contact changes.
    carrying : contacts that carry load in each frame; they define the support region.
    forces : force on each patch.
    trails : (points, 3) paths of patches through the air.
    object_q : (frames, objects, 7) poses of the objects, or None if none moves.
    """

    robot: Robot
    environment: Environment
    times: np.ndarray
    q: np.ndarray
    com: np.ndarray
    ground: np.ndarray
    touching: dict[str, np.ndarray]
    carrying: Sequence[tuple[Contact, ...]]
    moved: dict[str, np.ndarray] = field(default_factory=dict)
    forces: dict[str, PatchForce] = field(default_factory=dict)
    trails: Sequence[np.ndarray] = ()
    object_q: np.ndarray | None = None

    def draw(self) -> Drawing:
        """Draw scene, robot, forces, trails, centre of mass and support region."""
        drawing = Drawing(self.times)
        set_stage(drawing, self.com, self.environment, body_points(self.robot, self.q))
        draw_environment(drawing, self.environment)
        if self.object_q is not None:
            animate_objects(drawing, self.environment, self.object_q)
        draw_robot(drawing, self.robot)
        draw_collision(drawing, self.robot)
        draw_frames(drawing, self.robot, self.touching)
        animate_robot(drawing, self.robot, self.q)
        for patch, touching in self.touching.items():
            node = f"robot/{node_name(self.robot.patches[patch].link)}"
            moved = self.moved.get(patch, np.zeros(len(self.times), dtype=bool))
            drawing.animate(f"{node}/{node_name(patch, 'patch ')}", visible=touching & ~moved)
            drawing.animate(f"{node}/{node_name(patch, 'moved ')}", visible=moved)
        for patch, patch_force in self.forces.items():
            node = node_name(patch)
            draw_force(drawing, f"forces/{node}", patch_force.place, patch_force.force)
            draw_cone(
                drawing, f"cones/{node}", patch_force.place, patch_force.force, patch_force.normal, patch_force.friction
            )
        for number, trail in enumerate(self.trails):
            drawing.root[f"trails/{number}"].set_object(
                shapes.mesh(*shapes.tube(trail, 0.004)), shapes.material(palette.TRAIL, flat=True)
            )
        _draw_com(drawing, self.com, self.ground)
        draw_support(drawing, self.carrying, self.ground, self.robot.mass, self.environment)
        return drawing


def contact_heights(points: Sequence[np.ndarray]) -> np.ndarray:
    """Return the height of the lowest contact point (k, 3) of each frame; without contact, that of the frame before."""
    height, last = np.zeros(len(points)), 0.0
    for row, frame_points in enumerate(points):
        last = float(frame_points[:, 2].min()) if len(frame_points) else last
        height[row] = last
    return height


def _draw_com(drawing: Drawing, com: np.ndarray, ground: np.ndarray) -> None:
    """Draw the centre of mass as a ball, its projection as a disc, and the line between them."""
    colour = shapes.material(palette.COM, flat=True, on_top=True)
    drawing.root["com/ball"].set_object(mg.Sphere(0.025), colour)
    for name, solid, transform in (
        ("disc", mg.Cylinder(0.004, 0.022), shapes.CYLINDER_TO_Z),
        ("line", mg.Cylinder(1.0, 0.003), pose(np.eye(3), [0, 0, 0.5]) @ shapes.CYLINDER_TO_Z),
    ):
        drawing.root["com"][name]["solid"].set_object(solid, shapes.material(palette.COM, flat=True, on_top=True))
        drawing.root["com"][name]["solid"].set_transform(transform)
    below = np.column_stack([com[:, :2], ground + 0.006])
    ones = np.ones(len(com))
    drawing.animate("com/ball", position=com)
    drawing.animate("com/disc", position=below)
    drawing.animate("com/line", position=below, scale=np.column_stack([ones, ones, com[:, 2] - below[:, 2]]))
